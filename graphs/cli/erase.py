"""`palimpsest erase`: words that go for good, after a look at what goes."""

from typing import TYPE_CHECKING

import click

from graphs.cli.asking import YES, asks
from graphs.cli.shell import Json, Refused, Shell, confirm_first, counted, examples

if TYPE_CHECKING:
    from graphs.cli.client import MemoryClient


@asks("fact", click.Argument(["fact_id"], metavar="FACT"), YES, shown=("erase fact fact_1a2b3c4d",))
def fact(memory: "MemoryClient", shell: Shell, fact_id: str, yes: bool) -> None:
    """Erase one fact wherever memory holds it. Conversations keep their words; those that do are named."""
    # Read first: who is asked should see the words, not an id.
    found = memory.get(f"/facts/{fact_id}")
    confirm_first(
        f"“{found['content']}” goes for good, with what it corrected and what corrected it, its history, and the "
        "messages of journal and pending updates that tell of it. Conversations keep their words.",
        yes,
    )
    _erase(memory, shell, "fact", fact_id=fact_id)


@asks("source", click.Argument(["source"], metavar="ID"), YES, shown=("sources", "erase source chatgpt"))
def source(memory: "MemoryClient", shell: Shell, source: str, yes: bool) -> None:
    """Take back what was imported as a whole: journal, pending updates, and the facts that nothing else supports."""
    found = {each["name"]: each for each in memory.get("/sources")["sources"]}.get(source)
    if found is None:
        raise Refused(f"nothing was imported as {source}: `palimpsest sources` lists what was")
    talks, messages = counted(found["conversations"], "conversation"), counted(found["messages"], "message")
    confirm_first(
        f"{talks} with {messages} of {source} go for good, with what was learned of them. Facts that you changed or "
        "pinned stay, and those that other conversations said too.",
        yes,
    )
    _erase(memory, shell, "source", source=source)


@asks("thread", click.Argument(["thread_id"], metavar="THREAD"), YES)
def thread(memory: "MemoryClient", shell: Shell, thread_id: str, yes: bool) -> None:
    """Erase a thread and all that came from it: messages, summaries, facts, journal, pending updates, its crons."""
    _check_asks_a_server(memory)
    known = memory.get("/facts", thread=thread_id, limit=1)["total"]
    confirm_first(
        f"The conversation {thread_id} goes for good, with its summaries, its journal, {counted(known, 'fact')} said "
        "in it, what of it waits to be learned, and its crons.",
        yes,
    )
    _erase(memory, shell, "thread", thread_id=thread_id)


@asks("everything", YES, shown=("export backup.jsonl", "erase everything"))
def everything(memory: "MemoryClient", shell: Shell, yes: bool) -> None:
    """Erase all that is remembered about you, of every agent; all your threads; all your crons."""
    _check_asks_a_server(memory)
    there = memory.get("/overview")
    known, waiting = counted(there["facts"], "fact"), counted(there["pending"] + there["dead"], "pending update")
    confirm_first(
        f"Everything goes for good: {known} and {waiting} of the agent {there['agent_name']}, those of every "
        "other agent, the profile, the journal, all your threads and all your crons. "
        "`palimpsest export FILE` keeps a copy.",
        yes,
    )
    done = _erase(memory, shell, "everything", erase="everything")
    # Of one fact, threads that keep the words are as promised; here each is one that should be gone.
    if done["still_in_threads"]:
        raise Refused(done["note"])


def _check_asks_a_server(memory: "MemoryClient") -> None:
    if memory.is_local:
        raise Refused(
            "threads lie in the server's own files too, so only the server can erase them: start `palimpsest dev` and "
            "ask without --local"
        )


def _erase(memory: "MemoryClient", shell: Shell, what: str, **named: str) -> Json:
    """Erase, and say what went and what still holds the words."""
    done = memory.post(f"/erase/{what}", **named)
    shell.answer(done)
    gone = [counted(done["threads"], "thread"), counted(done["crons"], "cron"), counted(done["items"], "item")]
    shell.say(f"erased {', '.join(gone)} of memory")
    for holder in ("thread", "cron"):
        for each in done[f"still_in_{holder}s"]:
            shell.say(f"still in {holder} {each}")
    if done["facts_kept"] or done["facts_restored"]:
        shell.say(
            f"{counted(done['facts_kept'], 'fact')} of other origin stay, {done['facts_restored']} are there again"
        )
    if done["note"]:
        shell.note(done["note"])
    return done


erase = click.Group(
    "erase",
    help="Erase a fact, a thread, an import or everything, for good: no undo. (`facts delete` can be undone.)",
    epilog=examples("erase fact fact_1a2b3c4d", "erase source chatgpt"),
    commands=[fact, source, thread, everything],
)
