"""`palimpsest erase`: words that go for good, after a look at what goes."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from graphs.cli.asking import YES, asks
from graphs.cli.shell import Refused, Shell, confirm_first, counted, examples

if TYPE_CHECKING:
    from graphs.cli.client import MemoryClient


def _fact_goes(memory: "MemoryClient", fact_id: str) -> str:
    # Who is asked should see the words, not an id.
    return (
        f"“{memory.get(f'/facts/{fact_id}')['content']}” goes for good, with what it corrected and what corrected it, "
        "its history, and the messages of journal and pending updates that tell of it. Conversations keep their words."
    )


def _source_goes(memory: "MemoryClient", source: str) -> str:
    found = {each["name"]: each for each in memory.get("/sources")["sources"]}.get(source)
    if found is None:
        raise Refused(f"nothing was imported as {source}: `palimpsest sources` lists what was")
    talks, messages = counted(found["conversations"], "conversation"), counted(found["messages"], "message")
    return (
        f"{talks} with {messages} of {source} go for good, with what was learned of them. Facts that you changed or "
        "pinned stay, and those that other conversations said too."
    )


def _thread_goes(memory: "MemoryClient", thread_id: str) -> str:
    _check_asks_a_server(memory)
    known = memory.get("/facts", thread=thread_id, limit=1)["total"]
    return (
        f"The conversation {thread_id} goes for good, with its summaries, its journal, {counted(known, 'fact')} said "
        "in it, what of it waits to be learned, and its crons."
    )


def _everything_goes(memory: "MemoryClient", _: str) -> str:
    _check_asks_a_server(memory)
    there = memory.get("/overview")
    known, waiting = counted(there["facts"], "fact"), counted(there["pending"] + there["dead"], "pending update")
    return (
        f"Everything goes for good: {known} and {waiting} of the agent {there['agent_name']}, those of every other "
        "agent, the profile, the journal, all your threads and all your crons. `palimpsest export FILE` keeps a copy."
    )


def _check_asks_a_server(memory: "MemoryClient") -> None:
    if memory.is_local:
        raise Refused(
            "threads lie in the server's own files too, so only the server can erase them: start `palimpsest dev` and "
            "ask without --local"
        )


def _erasing(
    what: str, named: click.Argument | None, goes: Callable[["MemoryClient", str], str], does: str
) -> click.Command:
    """Return the command that erases one sort of thing, once a person has seen what goes and said yes."""

    @asks(what, *([named] if named else []), YES, does=does)
    def command(memory: "MemoryClient", shell: Shell, yes: bool, **given: str) -> None:
        given = given or {"erase": what}
        confirm_first(goes(memory, *given.values()), yes)
        done = memory.post(f"/erase/{what}", **given)
        shell.answer(done)
        shell.fields(done)
        # Of one fact, threads that keep the words are as promised; of everything, each is one that should be gone.
        if done["still_in_threads"] and not named:
            raise Refused(done["note"])

    return command


erase = click.Group(
    "erase",
    help="Erase a fact, a thread, an import or everything, for good: no undo. (`facts delete` can be undone.)",
    epilog=examples("erase fact fact_1a2b3c4d", "erase source chatgpt", "erase everything"),
    commands=[
        _erasing(
            "fact", click.Argument(["fact_id"], metavar="FACT"), _fact_goes,
            "Erase one fact wherever memory holds it. Conversations keep their words; those that do are named.",
        ),
        _erasing(
            "source", click.Argument(["source"], metavar="ID"), _source_goes,
            "Take an import back: journal, pending updates, and the facts that nothing else supports.",
        ),
        _erasing(
            "thread", click.Argument(["thread_id"], metavar="THREAD"), _thread_goes,
            "Erase a thread and what came from it: messages, summaries, facts, journal, pending updates, its crons.",
        ),
        _erasing(
            "everything", None, _everything_goes,
            "Erase all that is remembered about you, of every agent; all your threads; all your crons.",
        ),
    ],
)  # fmt: skip
