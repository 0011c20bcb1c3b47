"""`palimpsest pending`: what was said and is not learned yet, and what failed for good."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from graphs.cli.asking import asks_memory
from graphs.cli.shell import Json, Output, Refused, confirm_first, counted, examples

if TYPE_CHECKING:
    from graphs.cli.client import MemoryClient

State = Literal["pending", "running", "dead"]

pending = typer.Typer(
    no_args_is_help=True,
    help="Updates that wait or failed for good (dead): list, retry, discard.",
    epilog=examples("palimpsest pending list", "palimpsest pending retry --all"),
)

Keys = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY", help="The update's key, or its first characters, as `pending list` shows it."),
]
All = Annotated[bool, typer.Option("--all", help="All dead ones.")]


@pending.command("list", epilog=examples("palimpsest pending list --state dead", "palimpsest pending list --json"))
@asks_memory()
async def list_waiting(
    memory: "MemoryClient",
    out: Output,
    state: Annotated[
        State | None, typer.Option(help="pending: waits. running: is being read. dead: failed for good.")
    ] = None,
    thread: Annotated[str | None, typer.Option(metavar="THREAD", help="Only those of this thread.")] = None,
) -> None:
    """List what waits to be learned, oldest first."""
    found = await memory.get("/updates", state=state, thread=thread)
    out.answer(found)
    # Each with so many characters: a key's first are enough to name it.
    columns = {"key": 12, "state": 9, "messages": 9, "due": 19, "attempts": 9, "thread_id": 99, "error": 999}
    updates = found["updates"]
    out.table(list(columns), [[str(each[name])[:most] for name, most in columns.items()] for each in updates])
    if not updates:
        out.note("nothing waits")
    if any(each["state"] == "dead" for each in updates):
        out.note("dead ones wait for you: `palimpsest pending retry --all`, or `pending discard KEY`")


@pending.command(epilog=examples("palimpsest pending retry 3f2a", "palimpsest pending retry --all"))
@asks_memory()
async def retry(memory: "MemoryClient", out: Output, keys: Keys = None, every: All = False) -> None:
    """Give dead updates another chance, now."""
    again = [await memory.post(f"/updates/{each['key']}/retry") for each in await _dead(memory, keys or [], every)]
    out.answer({"updates": again})
    later = "; a server that runs on these files takes them up within a minute" if memory.is_local else ""
    out.say(f"{counted(len(again), 'update')} to be read again{later}")


@pending.command(epilog=examples("palimpsest pending discard 3f2a", "palimpsest pending discard --all --yes"))
@asks_memory()
async def discard(
    memory: "MemoryClient",
    out: Output,
    keys: Keys = None,
    every: All = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Throw dead updates away: what they hold is not learned."""
    chosen = await _dead(memory, keys or [], every)
    if chosen:
        messages = counted(sum(each["messages"] for each in chosen), "message")
        dead = counted(len(chosen), "dead update")
        confirm_first(f"Discard {dead} with {messages}: what was said in them is not learned.", yes)
    for each in chosen:
        await memory.ask("DELETE", f"/updates/{each['key']}")
    out.answer({"updates": chosen})
    out.say(f"{counted(len(chosen), 'update')} discarded")


async def _dead(memory: "MemoryClient", keys: list[str], every: bool) -> list[Json]:
    """Return the updates that are meant: all dead ones, or those whose keys begin so."""
    if bool(keys) == every:  # neither, or both: a slip must not discard all
        raise typer.BadParameter("name the keys, or --all")
    found = (await memory.get("/updates"))["updates"]
    chosen = [each for each in found if each["state"] == "dead" and (every or each["key"].startswith(tuple(keys)))]
    for key in keys:
        named = [each for each in found if each["key"].startswith(key)]
        if len(named) != 1:
            why = "no update has this key; it may be done" if not named else "several updates have keys that begin so"
            raise Refused(f"{key}: {why}")
        if named[0]["state"] != "dead":
            raise Refused(f"{key}: this update is {named[0]['state']}, not dead")
    return chosen
