"""The commands that ask the API: facts, pending updates, sources, and what is erased."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from graphs.cli.shell import YES, Json, Refused, Shell, asks, confirm_first, counted, examples_of_use, route, word

if TYPE_CHECKING:
    from graphs.cli.client import MemoryClient

_FACT = ("id", "category", "confidence", "pinned", "content")


def _show_page(shell: Shell, page: Json) -> None:
    shell.rows(page, found := page["facts"], *_FACT)
    if len(found) < page["total"]:
        shell.note(f"{len(found)} of {page['total']}; --limit and --offset show the others")


def _show_fact(shell: Shell, fact: Json) -> None:
    shell.rows(fact, [fact], *_FACT)
    if why := fact["held"]:
        shell.note(f"nothing uses it before your yes ({why}): `palimpsest facts release {fact['id']}`")


def _show_undone(shell: Shell, done: Json) -> None:
    restored = [f"restored {fact['id']}  {fact['content']}" for fact in done["restored"]]
    shell.answer(done, "\n".join(restored + [f"removed  {fact_id}" for fact_id in done["removed"]]))


def _table_of(name: str, *columns: str) -> Callable[[Shell, Json], None]:
    """Return what shows these fields of all that an answer has under a name."""
    return lambda shell, found: shell.rows(found, found[name], *columns)


def _show_updates(shell: Shell, found: Json) -> None:
    updates = found["updates"]
    shell.rows(found, updates, "key", "state", "messages", "due", "attempts", "thread_id", "error")
    if any(each["state"] == "dead" for each in updates):
        shell.note("dead ones wait for you: `palimpsest pending retry --all`, or `pending discard KEY`")


FACT = click.Argument(["fact_id"], metavar="FACT", type=word)
CATEGORY = click.Option(["--category"], help="preference, knowledge, context, behavior, goal or correction.")
CONFIDENCE = click.Option(["--confidence"], help="How sure it is, 0 to 1.")
EXPIRES = click.Option(
    ["--expires", "expires_at"], help="Until when it holds: 2026-12-31, 2026-12 or 2026; empty: no end."
)
PAGE = (
    CATEGORY,
    click.Option(
        ["--status"], default="active",
        help="active: used. quarantined, waiting: wait for your yes. superseded, ended, evicted: history.",
    ),
    click.Option(["--thread"], help="Only what was said in this thread."),
    click.Option(["--limit"], type=int, default=50, help="So many at most."),
    click.Option(["--offset"], type=int, default=0, help="Leave out so many at the beginning."),
)  # fmt: skip

facts = click.Group(
    "facts",
    help="Facts: list, search, add, edit, pin, delete; what one said before; undo.",
    epilog=examples_of_use("facts list", 'facts search "allergies"', "facts undo"),
    commands=[
        route(
            "list", "GET /facts", _show_page, "List facts, strongest first.", *PAGE,
            shown=("facts list --category preference", "facts list --json"),
        ),
        route(
            "search", "POST /facts/search", _show_page,
            "Search facts for TEXT: those that hold it, then those that share words with it.",
            click.Argument(["text"]), *PAGE, shown=('facts search "where I live"',),
        ),
        route(
            "show", "GET /facts/{fact_id}", Shell.fields,
            "Show all that is known of one fact: where it comes from, how often it was said again.", FACT,
        ),
        route(
            "add", "POST /facts", _show_fact,
            "Add a fact, TEXT, as one short sentence. One that is known already takes over a pin and an end.",
            click.Argument(["content"], metavar="TEXT"),
            click.Option(["--category"], default="knowledge", help=CATEGORY.help), CONFIDENCE, EXPIRES,
            click.Option(["--pin", "pinned"], is_flag=True, help="Show it first, and never let others push it out."),
            shown=('facts add "Is allergic to peanuts" --pin', 'facts add "Is in Paris" --expires 2026-12-31'),
        ),
        route(
            "edit", "PATCH /facts/{fact_id}", _show_fact,
            "Change a fact; what is not named stays, and what it said before goes to its history.", FACT,
            click.Option(["--content"], help="What it is to say."), CATEGORY, CONFIDENCE, EXPIRES,
            shown=('facts edit fact_1a2b3c4d --content "Lives in Bergen"', 'facts edit fact_1a2b3c4d --expires ""'),
        ),
        route(
            "pin", "PATCH /facts/{fact_id}", _show_fact,
            "Pin a fact: it comes first in what the model is shown, and others never push it out.", FACT,
            pinned=True,
        ),
        route(
            "unpin", "PATCH /facts/{fact_id}", _show_fact, "Take the pin off a fact.", FACT,
            pinned=False,
        ),
        route(
            "release", "PATCH /facts/{fact_id}", _show_fact,
            "Say yes to a fact that waits for you: a quarantined one, or one that was proposed.", FACT,
            status="active", shown=("facts list --status quarantined", "facts release fact_1a2b3c4d"),
        ),
        route(
            "delete", "DELETE /facts/{fact_id}",
            lambda shell, done: shell.answer(done, "deleted; `palimpsest facts undo` restores it"),
            "Delete a fact: nothing uses or learns it any more. `facts undo` restores it; `erase fact` is for good.",
            FACT,
        ),
        route(
            "restore", "POST /facts/{fact_id}/restore", _show_fact,
            "Bring back a fact that was deleted, replaced, or went at the limit.", FACT,
            shown=("facts list --status evicted", "facts restore fact_1a2b3c4d"),
        ),
        route(
            "history", "GET /facts/{fact_id}/history",
            _table_of(
                "revisions", "updated_at", "valid_from", "valid_to", "source", "category", "confidence", "content"
            ),
            "Show what a fact said before, oldest first.",
            FACT,
        ),
        route(
            "undo", "POST /undo", _show_undone,
            "Take back the last change of facts, whoever made it: you, or an update that learned something.",
            shown=("facts undo    # once more does it again",),
        ),
    ],
)  # fmt: skip

KEYS = click.Argument(["keys"], nargs=-1, metavar="[KEY]...")
ALL = click.Option(["--all", "every"], is_flag=True, help="All dead ones.")


def _dead_updates(memory: "MemoryClient", keys: tuple[str, ...], every: bool) -> list[Json]:
    """Return the dead updates that are meant: all, or those with the keys."""
    if bool(keys) == every:  # neither, or both: a slip must not discard all
        raise click.UsageError("name the keys, or --all")
    dead = memory.get("/updates", state="dead")["updates"]
    if unknown := {*keys}.difference(each["key"] for each in dead):
        raise Refused(f"no dead update has the key {min(unknown)}: it may be done, or still wait")
    return [each for each in dead if every or each["key"] in keys]


@asks("retry", KEYS, ALL, shown=("pending retry KEY", "pending retry --all"))
def retry(memory: "MemoryClient", shell: Shell, keys: tuple[str, ...], every: bool) -> None:
    """Give dead updates another chance, now: those with a KEY, or all."""
    again = [memory.post(f"/updates/{each['key']}/retry") for each in _dead_updates(memory, keys, every)]
    _show_updates(shell, {"updates": again})


@asks("discard", KEYS, ALL, YES, shown=("pending discard KEY", "pending discard --all --yes"))
def discard(memory: "MemoryClient", shell: Shell, keys: tuple[str, ...], every: bool, yes: bool) -> None:
    """Throw dead updates away, those with a KEY or all: what they hold is not learned."""
    chosen = _dead_updates(memory, keys, every)
    messages = sum(each["messages"] for each in chosen)
    confirm_first(f"What was said in {counted(messages, 'message')} will not be learned.", yes or not chosen)
    for each in chosen:
        memory.ask("DELETE", f"/updates/{each['key']}")
    shell.answer({"updates": chosen}, f"{counted(len(chosen), 'update')} discarded")


pending = click.Group(
    "pending",
    help="Updates that wait or failed for good (dead): list, retry, discard.",
    epilog=examples_of_use("pending list", "pending retry --all"),
    commands=[
        route(
            "list", "GET /updates", _show_updates, "List what waits to be learned, oldest first.",
            click.Option(["--state"], help="pending: waits. running: is being read. dead: failed for good."),
            click.Option(["--thread"], help="Only those of this thread."),
            shown=("pending list --state dead", "pending list --json"),
        ),
        retry,
        discard,
    ],
)  # fmt: skip

sources = route(
    "sources", "GET /sources",
    _table_of("sources", "name", "origin", "begun", "conversations", "messages", "learned", "waiting", "dead"),
    "List what was imported, and how much of it waits.",
    shown=("sources", "erase source chatgpt"),
)  # fmt: skip


def _fact_goes(there: Json) -> str:
    content = there["revisions"][-1]["content"]  # who is asked should see the words, not an id
    return (
        f"“{content}” goes for good, with what it corrected and what corrected it, its history, and the "
        "messages of journal and pending updates that tell of it. Conversations keep their words."
    )


def _source_goes(there: Json) -> str:
    talks, messages = counted(there["conversations"], "conversation"), counted(there["messages"], "message")
    return (
        f"{talks} with {messages} of {there['name']} go for good, with what was learned of them. Facts that you "
        "changed or pinned stay, and those that other conversations said too."
    )


def _thread_goes(there: Json) -> str:
    return (
        f"The conversation {there['thread_id']} goes for good, with its summaries, its journal, "
        f"{counted(there['total'], 'fact')} said in it, what of it waits to be learned, and its crons."
    )


def _everything_goes(there: Json) -> str:
    known, waiting = counted(there["facts"], "fact"), counted(there["pending"] + there["dead"], "pending update")
    return (
        f"Everything goes for good: {known} and {waiting} of the agent {there['agent_name']}, those of every other "
        "agent, the profile, the journal, all your threads and all your crons. `palimpsest export FILE` keeps a copy."
    )


def _erasing(what: str, goes: Callable[[Json], str], seen: str, does: str, *named: click.Parameter) -> click.Command:
    """Return the command that erases one sort of thing, once a person has seen what goes and said yes.

    Args:
        what: What is erased.
        goes: Says what goes for good, of what is seen.
        seen: The path of the API where that is seen.
        does: What it does.
        named: Which of them is erased.
    """

    # A server holds words in its own memory and files, too, so only a server erases.
    @asks(what, *named, YES, has_local=False, does=does)
    def command(memory: "MemoryClient", shell: Shell, yes: bool, **given: str) -> None:
        there = memory.get(seen.format(**given), thread=given.get("thread_id"))
        if what == "source":
            there = next((each for each in there["sources"] if each["name"] == given["source"]), None)
            if not there:
                raise Refused(f"nothing was imported as {given['source']}: `palimpsest sources` lists what was")
        there.update(given)
        confirm_first(goes(there), yes)
        done = memory.post(f"/erase/{what}", **(given or {"erase": what}))
        shell.fields(done)
        # Of one fact, threads that keep the words are as promised; of everything, each is one that should be gone.
        if done["still_in_threads"] and not named:
            raise Refused(done["note"])

    return command


erase = click.Group(
    "erase",
    help="Erase a fact, a thread, an import or everything, for good: no undo. (`facts delete` can be undone.) "
    "A server must run, as it has words in files of its own.",
    epilog=examples_of_use("erase fact fact_1a2b3c4d", "erase source chatgpt", "erase everything"),
    commands=[
        _erasing(
            "fact", _fact_goes, "/facts/{fact_id}/history",
            "Erase one fact wherever memory holds it. Conversations keep their words; those that do are named.", FACT,
        ),
        _erasing(
            "source", _source_goes, "/sources",
            "Take an import back: journal, pending updates, and the facts that nothing else supports.",
            click.Argument(["source"], metavar="ID"),
        ),
        _erasing(
            "thread", _thread_goes, "/facts",
            "Erase a thread and what came from it: messages, summaries, facts, journal, pending updates, its crons.",
            click.Argument(["thread_id"], metavar="THREAD"),
        ),
        _erasing(
            "everything", _everything_goes, "/overview",
            "Erase all that is remembered about you, of every agent; all your threads; all your crons.",
        ),
    ],
)  # fmt: skip
