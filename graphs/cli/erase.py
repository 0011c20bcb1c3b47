"""`palimpsest erase`: words that go for good, after a look at what goes."""

from typing import TYPE_CHECKING, Annotated

import typer

from graphs.cli.asking import asks_memory
from graphs.cli.shell import Json, Output, Refused, confirm_first, counted, examples

if TYPE_CHECKING:
    from graphs.cli.client import MemoryClient

erase = typer.Typer(
    no_args_is_help=True,
    help="Erase a fact, a thread, an import or everything, for good: no undo. (`facts delete` can be undone.)",
    epilog=examples("palimpsest erase fact fact_1a2b3c4d", "palimpsest erase source chatgpt"),
)

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@erase.command(epilog=examples("palimpsest erase fact fact_1a2b3c4d", "palimpsest erase fact fact_1a2b3c4d --yes"))
@asks_memory(files="alone")
async def fact(
    memory: "MemoryClient",
    out: Output,
    fact: Annotated[str, typer.Argument(metavar="FACT", help="The fact's id, as `facts list` shows it.")],
    yes: Yes = False,
) -> None:
    """Erase one fact wherever memory holds it. Conversations keep their words; those that do are named."""
    # Read first: who is asked should see the words, not an id.
    found = await memory.get(f"/facts/{fact}")
    confirm_first(
        f"“{found['content']}” goes for good, with what it corrected and what corrected it, its history, and the "
        "messages of journal and pending updates that tell of it. Conversations keep their words.",
        yes,
    )
    await _erase(memory, out, "fact", fact_id=fact)
    if memory.is_local:
        out.note("Crons are known to the server only: whether one holds the words was not looked for.")


@erase.command(epilog=examples("palimpsest sources", "palimpsest erase source chatgpt"))
@asks_memory(files="alone")
async def source(
    memory: "MemoryClient",
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
    confirm_first(
        f"{talks} with {counted(found['messages'], 'message')} of {source} go for good, with what was learned of them. "
        "Facts that you changed or pinned stay, and those that other conversations said too.",
        yes,
    )
    done = await _erase(memory, out, "source", source=source)
    if done["facts_kept"]:
        out.say(f"{counted(done['facts_kept'], 'fact')} stay: said elsewhere too, or changed or pinned by you")
    if done["facts_restored"]:
        out.say(f"{counted(done['facts_restored'], 'fact')} that it had replaced are there again")


@erase.command(epilog=examples("palimpsest erase thread 0b8e2f6a-4c1d-4f2e-9a57-2f6f0c3b7d11"))
@asks_memory()
async def thread(
    memory: "MemoryClient",
    out: Output,
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")],
    yes: Yes = False,
) -> None:
    """Erase a thread and all that came from it: messages, summaries, facts, journal, pending updates, its crons."""
    _check_asks_a_server(memory)
    known = (await memory.get("/facts", thread=thread, limit=1))["total"]
    waiting = len((await memory.get("/updates", thread=thread))["updates"])
    confirm_first(
        f"The conversation {thread} goes for good, with its summaries, its journal, {counted(known, 'fact')} "
        f"said in it, {counted(waiting, 'pending update')}, and its crons.",
        yes,
    )
    await _erase(memory, out, "thread", thread_id=thread)


@erase.command(epilog=examples("palimpsest export backup.jsonl", "palimpsest erase everything"))
@asks_memory()
async def everything(memory: "MemoryClient", out: Output, yes: Yes = False) -> None:
    """Erase all that is remembered about you, of every agent; all your threads; all your crons."""
    _check_asks_a_server(memory)
    there = await memory.get("/overview")
    known = counted(there["facts"], "fact")
    waiting = counted(there["pending"] + there["dead"], "pending update")
    confirm_first(
        f"Everything goes for good: {known} and {waiting} of the agent {there['agent_name']}, those of every other "
        "agent, the profile, the journal, all your threads and all your crons. `palimpsest export FILE` keeps a copy.",
        yes,
    )
    done = await _erase(memory, out, "everything", erase="everything")
    # Of one fact, threads that keep the words are as promised; here each is one that should be gone.
    if done["still_in_threads"]:
        raise Refused(done["note"])


def _check_asks_a_server(memory: "MemoryClient") -> None:
    if memory.is_local:
        raise Refused(
            "threads lie in the server's own files too, so only the server can erase them: start `palimpsest dev` and "
            "ask without --local"
        )


async def _erase(memory: "MemoryClient", out: Output, what: str, **named: object) -> Json:
    """Erase, and say what went and what still holds the words."""
    done = await memory.ask("POST", f"/erase/{what}", body=named, patience=600.0)
    out.answer(done)
    counts = {name: done.get(f"{name}s", 0) for name in ("thread", "cron")}
    parts = [counted(number, name) for name, number in counts.items() if number]
    out.say("erased " + ", ".join([*parts, f"{counted(done['items'], 'item')} of memory"]))
    for name in counts:
        for each in done.get(f"still_in_{name}s", ()):
            out.say(f"still in {name} {each}")
    if done.get("note"):
        out.note(done["note"])
    return done
