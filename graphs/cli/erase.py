"""`palimpsest erase`: words that go for good, after a look at what goes."""

from typing import Annotated

import typer

from graphs.cli.asking import asks_memory
from graphs.cli.client import MemoryClient
from graphs.cli.output import Output, counted, examples
from graphs.cli.shell import Json, Refused, confirm

erase = typer.Typer(
    no_args_is_help=True,
    help="Erase a fact, a thread, an import or everything, for good: no undo. (`facts delete` can be undone.)",
    epilog=examples("palimpsest erase fact fact_1a2b3c4d", "palimpsest erase source chatgpt"),
)

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

_PATIENCE_SECONDS = 600.0
_SERVERS_OWN = (
    "threads lie in the server's own files too, so only the server can erase them: start `palimpsest dev` and ask "
    "without --local"
)


@erase.command(epilog=examples("palimpsest erase fact fact_1a2b3c4d", "palimpsest erase fact fact_1a2b3c4d --yes"))
@asks_memory(files="alone")
async def fact(
    memory: MemoryClient,
    out: Output,
    fact: Annotated[str, typer.Argument(metavar="FACT", help="The fact's id, as `facts list` shows it.")],
    yes: Yes = False,
) -> None:
    """Erase one fact wherever memory holds it. Conversations keep their words; those that do are named."""
    # Read first: who is asked should see the words, not an id.
    found = await memory.get(f"/facts/{fact}")
    confirm(
        f"“{found['content']}” goes for good, with what it corrected and what corrected it, its history, and the "
        "messages of journal and pending updates that tell of it. Conversations keep their words.",
        yes,
    )
    done = await memory.ask("POST", "/erase/fact", body={"fact_id": fact}, patience=_PATIENCE_SECONDS)

    def lines() -> None:
        _told(out, done)
        if memory.is_local:
            out.note("Crons are known to the server only: whether one holds the words was not looked for.")

    out.answer(done, lines)


@erase.command(epilog=examples("palimpsest sources", "palimpsest erase source chatgpt"))
@asks_memory(files="alone")
async def source(
    memory: MemoryClient,
    out: Output,
    source: Annotated[str, typer.Argument(metavar="ID", help="What it is called, as `palimpsest sources` shows it.")],
    yes: Yes = False,
) -> None:
    """Take back what was imported as a whole: journal, pending updates, and the facts that nothing else supports."""
    listed = (await memory.get("/sources"))["sources"]
    found = next((each for each in listed if each["name"] == source), None)
    if found is None:
        raise Refused(f"nothing was imported as {source}: `palimpsest sources` lists what was")
    talks = counted(found["conversations"], "conversation")
    confirm(
        f"{talks} with {counted(found['messages'], 'message')} of {source} go for good, with what was learned of them. "
        "Facts that you changed or pinned stay, and those that other conversations said too.",
        yes,
    )
    done = await memory.ask("POST", "/erase/source", body={"source": source}, patience=_PATIENCE_SECONDS)

    def lines() -> None:
        out.say(f"erased {counted(done['items'], 'item')} of memory")
        if done["facts_kept"]:
            out.say(f"{counted(done['facts_kept'], 'fact')} stay: said elsewhere too, or changed or pinned by you")
        if done["facts_restored"]:
            out.say(f"{counted(done['facts_restored'], 'fact')} that it had replaced are there again")

    out.answer(done, lines)


@erase.command(epilog=examples("palimpsest erase thread 0b8e2f6a-4c1d-4f2e-9a57-2f6f0c3b7d11"))
@asks_memory()
async def thread(
    memory: MemoryClient,
    out: Output,
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")],
    yes: Yes = False,
) -> None:
    """Erase a thread and all that came from it: messages, summaries, facts, journal, pending updates, its crons."""
    if memory.is_local:
        raise Refused(_SERVERS_OWN)
    known = (await memory.get("/facts", thread=thread, limit=1))["total"]
    waiting = len((await memory.get("/updates", thread=thread))["updates"])
    confirm(
        f"The conversation {thread} goes for good, with its summaries, its journal, {counted(known, 'fact')} "
        f"said in it, {counted(waiting, 'pending update')}, and its crons.",
        yes,
    )
    done = await memory.ask("POST", "/erase/thread", body={"thread_id": thread}, patience=_PATIENCE_SECONDS)
    out.answer(done, lambda: _told(out, done))


@erase.command(epilog=examples("palimpsest export backup.jsonl", "palimpsest erase everything"))
@asks_memory()
async def everything(memory: MemoryClient, out: Output, yes: Yes = False) -> None:
    """Erase all that is remembered about you, of every agent; all your threads; all your crons."""
    if memory.is_local:
        raise Refused(_SERVERS_OWN)
    there = await memory.get("/overview")
    known = counted(there["facts"], "fact")
    waiting = counted(there["pending"] + there["dead"], "pending update")
    confirm(
        f"Everything goes for good: {known} and {waiting} of the agent {there['agent_name']}, those of every other "
        "agent, the profile, the journal, all your threads and all your crons. `palimpsest export FILE` keeps a copy.",
        yes,
    )
    done = await memory.ask("POST", "/erase/everything", body={"erase": "everything"}, patience=_PATIENCE_SECONDS)
    out.answer(done, lambda: _told(out, done))
    # Of one fact, threads that keep the words are as promised; here each is one that should be gone.
    if done["still_in_threads"]:
        raise Refused(done["note"])


def _told(out: Output, done: Json) -> None:
    """Say what was erased, and what still holds the words."""
    parts = [counted(done[f"{name}s"], name) for name in ("thread", "cron") if done[f"{name}s"]]
    out.say("erased " + ", ".join([*parts, f"{counted(done['items'], 'item')} of memory"]))
    for name in ("threads", "crons"):
        for each in done[f"still_in_{name}"]:
            out.say(f"still in {name[:-1]} {each}")
    if done["note"]:
        out.note(done["note"])
