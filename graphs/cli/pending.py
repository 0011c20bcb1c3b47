"""`palimpsest pending`: what was said and is not learned yet, and what failed for good."""

from typing import TYPE_CHECKING

import click

from graphs.cli.asking import YES, asks, route
from graphs.cli.shell import Json, Refused, Shell, confirm_first, counted, examples

if TYPE_CHECKING:
    from graphs.cli.client import MemoryClient

KEYS = click.Argument(["keys"], nargs=-1, metavar="[KEY]...")
ALL = click.Option(["--all", "every"], is_flag=True, help="All dead ones.")


def _show_waiting(shell: Shell, found: Json) -> None:
    updates = found["updates"]
    shell.rows(updates, "key", "state", "messages", "due", "attempts", "thread_id", "error")
    if any(each["state"] == "dead" for each in updates):
        shell.note("dead ones wait for you: `palimpsest pending retry --all`, or `pending discard KEY`")


def _dead(memory: "MemoryClient", keys: tuple[str, ...], every: bool) -> list[Json]:
    """Return the dead updates that are meant: all, or of each key the one whose own begins so."""
    if bool(keys) == every:  # neither, or both: a slip must not discard all
        raise click.UsageError("name the keys, or --all")
    dead = memory.get("/updates", state="dead")["updates"]
    for key in keys:
        named = sum(each["key"].startswith(key) for each in dead)
        if not named:
            raise Refused(f"no dead update has a key that begins with {key}: it may be done, or still wait")
        if named > 1:
            raise Refused(f"{named} dead updates have keys that begin with {key}: type more of the one that you mean")
    return [each for each in dead if every or each["key"].startswith(keys)]


@asks("retry", KEYS, ALL, shown=("pending retry 3f2a", "pending retry --all"))
def retry(memory: "MemoryClient", shell: Shell, keys: tuple[str, ...], every: bool) -> None:
    """Give dead updates another chance, now: those with a KEY, of which the first characters do, or all."""
    again = [memory.post(f"/updates/{each['key']}/retry") for each in _dead(memory, keys, every)]
    shell.answer({"updates": again})
    _show_waiting(shell, {"updates": again})


@asks("discard", KEYS, ALL, YES, shown=("pending discard 3f2a", "pending discard --all --yes"))
def discard(memory: "MemoryClient", shell: Shell, keys: tuple[str, ...], every: bool, yes: bool) -> None:
    """Throw dead updates away, those with a KEY or all: what they hold is not learned."""
    chosen = _dead(memory, keys, every)
    messages = sum(each["messages"] for each in chosen)
    confirm_first(f"What was said in {counted(messages, 'message')} will not be learned.", yes or not chosen)
    for each in chosen:
        memory.ask("DELETE", f"/updates/{each['key']}")
    shell.answer({"updates": chosen})
    shell.say(f"{counted(len(chosen), 'update')} discarded")


pending = click.Group(
    "pending",
    help="Updates that wait or failed for good (dead): list, retry, discard.",
    epilog=examples("pending list", "pending retry --all"),
    commands=[
        route(
            "list", "GET /updates", _show_waiting, "List what waits to be learned, oldest first.",
            click.Option(["--state"], help="pending: waits. running: is being read. dead: failed for good."),
            click.Option(["--thread"], help="Only those of this thread."),
            shown=("pending list --state dead", "pending list --json"),
        ),
        retry,
        discard,
    ],
)  # fmt: skip
