"""`palimpsest facts`: what is remembered as facts; look, correct, take back."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from graphs.cli.asking import asks_memory
from graphs.cli.shell import Json, Output, examples

if TYPE_CHECKING:
    from graphs.cli.client import MemoryClient

# Written out, as they are of the API: a command that asks a server imports nothing of memory.
Category = Literal["preference", "knowledge", "context", "behavior", "goal", "correction"]
Status = Literal["active", "quarantined", "waiting", "superseded", "ended", "evicted"]

_WHY = {
    "secret": "it may hold a secret",
    "order": "it reads as an order",
    "number": "nobody said a number in it",
    "approval": "you want to be asked",
}

facts = typer.Typer(
    no_args_is_help=True,
    help="Facts: list, search, add, edit, pin, delete; what one said before; undo.",
    epilog=examples("palimpsest facts list", 'palimpsest facts search "allergies"', "palimpsest facts undo"),
)

FactId = Annotated[str, typer.Argument(metavar="FACT", help="The fact's id, as `facts list` shows it.")]
_CATEGORY = typer.Option(
    show_choices=False, metavar="NAME", help="preference, knowledge, context, behavior, goal or correction."
)
OfCategory = Annotated[Category | None, _CATEGORY]
OfStatus = Annotated[
    Status,
    typer.Option(
        show_choices=False,
        metavar="NAME",
        help="active: used. quarantined, waiting: wait for your yes (`facts release`). Others are history.",
    ),
]
OfThread = Annotated[str | None, typer.Option(metavar="THREAD", help="Only what was said in this thread.")]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="So many at most.")]
Offset = Annotated[int, typer.Option(min=0, help="Leave out so many at the beginning.")]
_CONFIDENCE = typer.Option(min=0, max=1, help="How sure it is, 0 to 1.")
Expires = Annotated[
    str | None, typer.Option(metavar="DAY", help="Until when it holds: 2026-12-31, 2026-12 or 2026; empty for no end.")
]


@facts.command("list", epilog=examples("palimpsest facts list --category preference", "palimpsest facts list --json"))
@asks_memory()
async def list_some(
    memory: "MemoryClient",
    out: Output,
    category: OfCategory = None,
    status: OfStatus = "active",
    thread: OfThread = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> None:
    """List facts, strongest first."""
    page = {"category": category, "status": status, "thread": thread, "limit": limit, "offset": offset}
    _show_page(out, await memory.get("/facts", **page), offset)


@facts.command(epilog=examples('palimpsest facts search "where I live"', "palimpsest facts search figs --json"))
@asks_memory()
async def search(
    memory: "MemoryClient",
    out: Output,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What they hold, or share words with.")],
    category: OfCategory = None,
    status: OfStatus = "active",
    thread: OfThread = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> None:
    """Search facts for a text: those that hold it, then those that share words with it."""
    page = {"category": category, "status": status, "thread": thread, "limit": limit, "offset": offset}
    _show_page(out, await memory.post("/facts/search", text=text, **page), offset)


@facts.command(epilog=examples("palimpsest facts show fact_1a2b3c4d"))
@asks_memory()
async def show(memory: "MemoryClient", out: Output, fact: FactId) -> None:
    """Show all that is known of one fact: where it comes from, how often it was said again."""
    found = await memory.get(f"/facts/{fact}")
    out.answer(found)
    told = {name: ", ".join(map(str, said)) if isinstance(said, list) else str(said) for name, said in found.items()}
    out.table(["field", "value"], list(told.items()))


@facts.command(
    epilog=examples(
        'palimpsest facts add "Is allergic to peanuts" --pin',
        'palimpsest facts add "Likes figs" --category preference --confidence 0.8',
        'palimpsest facts add "Is in Paris" --expires 2026-12-31',
    )
)
@asks_memory()
async def add(
    memory: "MemoryClient",
    out: Output,
    content: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember of you, as one short sentence.")],
    category: Annotated[Category, _CATEGORY] = "knowledge",
    confidence: Annotated[float, _CONFIDENCE] = 1.0,
    expires: Expires = None,
    pin: Annotated[
        bool, typer.Option("--pin", help="Show it to the model first, and never let others push it out.")
    ] = False,
) -> None:
    """Add a fact. One that is known already is shown as it is."""
    fact = {"content": content, "category": category, "confidence": confidence, "pinned": pin, "expires_at": expires}
    _show_one(out, await memory.post("/facts", **fact))


@facts.command(
    epilog=examples(
        'palimpsest facts edit fact_1a2b3c4d --content "Lives in Bergen"',
        "palimpsest facts edit fact_1a2b3c4d --category goal --confidence 0.9",
        'palimpsest facts edit fact_1a2b3c4d --expires ""    # it has no end any more',
    )
)
@asks_memory()
async def edit(
    memory: "MemoryClient",
    out: Output,
    fact: FactId,
    content: Annotated[str | None, typer.Option(metavar="TEXT", help="What it is to say.")] = None,
    category: OfCategory = None,
    confidence: Annotated[float | None, _CONFIDENCE] = None,
    expires: Expires = None,
) -> None:
    """Change a fact; what is not named stays, and what it said before goes to its history."""
    changed = {"content": content, "category": category, "confidence": confidence, "expires_at": expires}
    if set(changed.values()) == {None}:
        raise typer.BadParameter("name what to change: --content, --category, --confidence or --expires")
    await _change(memory, out, fact, **changed)


@facts.command(epilog=examples("palimpsest facts pin fact_1a2b3c4d"))
@asks_memory()
async def pin(memory: "MemoryClient", out: Output, fact: FactId) -> None:
    """Pin a fact: it comes first in what the model is shown, and others never push it out."""
    await _change(memory, out, fact, pinned=True)


@facts.command(epilog=examples("palimpsest facts unpin fact_1a2b3c4d"))
@asks_memory()
async def unpin(memory: "MemoryClient", out: Output, fact: FactId) -> None:
    """Take the pin off a fact."""
    await _change(memory, out, fact, pinned=False)


@facts.command(
    "release", epilog=examples("palimpsest facts list --status quarantined", "palimpsest facts release fact_1a2b3c4d")
)
@asks_memory()
async def say_yes_to(memory: "MemoryClient", out: Output, fact: FactId) -> None:
    """Say yes to a fact that waits for you: a quarantined one, or one that was proposed."""
    await _change(memory, out, fact, status="active")


@facts.command("delete", epilog=examples("palimpsest facts delete fact_1a2b3c4d", "palimpsest facts undo"))
@asks_memory()
async def drop(memory: "MemoryClient", out: Output, fact: FactId) -> None:
    """Delete a fact: it is used no more, and not learned again. `facts undo` restores it; `erase fact` is for good."""
    out.answer(await memory.ask("DELETE", f"/facts/{fact}"))
    out.say(f"deleted {fact}; `palimpsest facts undo` restores it")


@facts.command(
    "restore", epilog=examples("palimpsest facts list --status evicted", "palimpsest facts restore fact_1a2b3c4d")
)
@asks_memory()
async def bring_back(memory: "MemoryClient", out: Output, fact: FactId) -> None:
    """Bring back a fact that went at the limit; the weakest of the others goes in its place."""
    _show_one(out, await memory.post(f"/facts/{fact}/restore"))


@facts.command(epilog=examples("palimpsest facts history fact_1a2b3c4d"))
@asks_memory()
async def history(memory: "MemoryClient", out: Output, fact: FactId) -> None:
    """Show what a fact said before, oldest first."""
    found = await memory.get(f"/facts/{fact}/history")
    out.answer(found)
    fields = ("updated_at", "valid_from", "valid_to", "source", "category", "confidence", "content")
    rows = [[str(each[name])[: 19 if name == "updated_at" else None] for name in fields] for each in found["revisions"]]
    out.table(["written", "from", "until", "by", "category", "confidence", "content"], rows)


@facts.command("undo", epilog=examples("palimpsest facts undo", "palimpsest facts undo    # once more does it again"))
@asks_memory()
async def take_back(memory: "MemoryClient", out: Output) -> None:
    """Take back the last change of facts, whoever made it: you, or an update that learned something."""
    done = await memory.post("/undo")
    out.answer(done)
    for fact in done["restored"]:
        out.say(f"restored {fact['id']}  {fact['content']}")
    for fact_id in done["removed"]:
        out.say(f"removed  {fact_id}")


async def _change(memory: "MemoryClient", out: Output, fact: str, **fields: object) -> None:
    _show_one(out, await memory.ask("PATCH", f"/facts/{fact}", body=fields))


def _show_page(out: Output, page: Json, offset: int) -> None:
    out.answer(page)
    _show_facts(out, page["facts"])
    shown = offset + len(page["facts"])
    if not page["total"]:
        out.note("no facts")
    elif shown < page["total"]:
        out.note(f"{shown} of {page['total']}; --limit and --offset show the others")


def _show_one(out: Output, fact: Json) -> None:
    out.answer(fact)
    _show_facts(out, [fact])
    if why := _WHY.get(fact["held"]):
        out.note(f"nothing uses it before your yes, as {why}: `palimpsest facts release {fact['id']}`")


def _show_facts(out: Output, found: Sequence[Json]) -> None:
    rows = [
        (each["id"], each["category"], f"{each['confidence']:.2f}", "pinned" if each["pinned"] else "", each["content"])
        for each in found
    ]
    out.table(["id", "category", "confidence", "", "content"], rows)
