"""`palimpsest facts`: what is remembered as facts; look, correct, take back."""

import click

from graphs.cli.asking import route
from graphs.cli.shell import Json, Shell, examples


def _show_page(shell: Shell, page: Json) -> None:
    found = page["facts"]
    shell.rows(found, "id", "category", "confidence", "pinned", "content")
    if len(found) < page["total"]:
        shell.note(f"{len(found)} of {page['total']}; --limit and --offset show the others")


def _show_fact(shell: Shell, fact: Json) -> None:
    _show_page(shell, {"facts": [fact], "total": 1})
    if why := fact["held"]:
        shell.note(f"nothing uses it before your yes ({why}): `palimpsest facts release {fact['id']}`")


def _show_history(shell: Shell, found: Json) -> None:
    columns = ("updated_at", "valid_from", "valid_to", "source", "category", "confidence", "content")
    shell.rows(found["revisions"], *columns)


def _show_undone(shell: Shell, done: Json) -> None:
    for fact in done["restored"]:
        shell.say(f"restored {fact['id']}  {fact['content']}")
    for fact_id in done["removed"]:
        shell.say(f"removed  {fact_id}")


def _show_deleted(shell: Shell, _: Json) -> None:
    shell.say("deleted; `palimpsest facts undo` restores it")


FACT = click.Argument(["fact_id"], metavar="FACT")
CATEGORY = click.Option(["--category"], help="preference, knowledge, context, behavior, goal or correction.")
CONFIDENCE = click.Option(["--confidence"], type=float, help="How sure it is, 0 to 1.")
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
    epilog=examples("facts list", 'facts search "allergies"', "facts undo"),
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
            "Add a fact, TEXT, as one short sentence. One that is known already is shown as it is.",
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
            "delete", "DELETE /facts/{fact_id}", _show_deleted,
            "Delete a fact: nothing uses or learns it any more. `facts undo` restores it; `erase fact` is for good.",
            FACT,
        ),
        route(
            "restore", "POST /facts/{fact_id}/restore", _show_fact,
            "Bring back a fact that went at the limit; the weakest of the others goes in its place.", FACT,
            shown=("facts list --status evicted", "facts restore fact_1a2b3c4d"),
        ),
        route(
            "history", "GET /facts/{fact_id}/history", _show_history, "Show what a fact said before, oldest first.",
            FACT,
        ),
        route(
            "undo", "POST /undo", _show_undone,
            "Take back the last change of facts, whoever made it: you, or an update that learned something.",
            shown=("facts undo    # once more does it again",),
        ),
    ],
)  # fmt: skip
