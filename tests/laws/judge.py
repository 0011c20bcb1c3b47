"""What is looked at when a cell is over, and the laws that it is judged by."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tests.archive_lines import document_of
from tests.laws.doors import CAP, LONGEST_WAIT, House
from tests.laws.operations import WAITING, WORDS
from tests.laws.worlds import World

Rows = Counter[tuple[str, ...]]


@dataclass(frozen=True)
class View:
    """What can be seen of a memory from outside.

    Attributes:
        active: Content, and the word that a fact had under this id at first, of each active fact.
        held: The same of those that wait for a person.
        traits: Content, pin and confirmations of active facts.
        history: Content, status and first word of what facts said before.
        journal: Thread, role and text of each line.
        profile: Section and text.
        pending: How many updates are not done.
        words: Those that are kept anywhere: items, checkpoints, bytes of files.
        shown: Those that a model may be shown, or was sent.
        at_once: Those that the store keeps right after whoever erases is answered.
        undone: Those that facts say after as many undos as there are.
    """

    active: Rows
    held: Rows
    traits: Rows
    history: Rows
    journal: Rows
    profile: Rows
    pending: int
    words: frozenset[str]
    shown: frozenset[str]
    at_once: frozenset[str]
    undone: frozenset[str]


def words_in(text: str) -> frozenset[str]:
    return frozenset(word for word in WORDS if word in text.casefold())


async def settle(world: World) -> House:
    """Let a fresh process do what is left to be done."""
    house = world.house()
    for _ in range(4):
        world.clock.advance(LONGEST_WAIT)
        await house.sweep()
        if not (await house.ask("GET", "/updates"))[1]["updates"]:
            break
    return house


def told(view: View) -> str:
    """Return what is there in sentences."""
    pins = {content: " pinned" if pinned == "True" else "" for content, pinned, _ in view.traits}
    lines = [f"{content} is active {count}{pins[content]}" for content, _, count in view.traits]
    lines += [f"{row[0]} is {row[1]}" for row in (*view.held, *view.history)]
    lines += [f"{name}: {text}" for name, text in view.profile] + [f"said {text}" for _, _, text in view.journal]
    return "\n".join(
        [*lines, *(f"{word} is kept" for word in view.words), *(f"{word} comes back" for word in view.undone)]
    )


async def look(world: World, house: House, at_once: frozenset[str], *, undoes: bool) -> View:
    """See what is there; the world is closed after this."""
    first = {fact_id: word for word, fact_id in world.ids.items()}
    document = document_of((await house.ask("GET", "/export"))[1])
    facts = await house.facts.alist(None)
    active = [fact for fact in facts if fact.status == "active"]
    counts = {fact.id: str((await house.facts.aconfirmations(fact.id)).count) for fact in active}
    shown = words_in(house.prompts() + await house.shown())
    undone = words_in(repr([fact.content for fact in active]))
    for _ in range(4 if undoes else 0):
        world.clock.advance(1)
        if (await house.ask("POST", "/undo", {}))[0] != 200:
            break
        undone |= words_in(repr([fact.content for fact in await house.facts.alist()]))
    return View(
        active=Counter((fact.content, first.get(fact.id, "")) for fact in active),
        held=Counter((fact.content, fact.status) for fact in facts if fact.status != "active"),
        traits=Counter((fact.content, str(fact.pinned), counts[fact.id]) for fact in active),
        history=Counter((each["content"], each["status"], first.get(each["id"], "")) for each in document["history"]),
        journal=Counter(
            (line["thread_id"], said["role"], said["text"]) for line in document["journal"] for said in line["messages"]
        ),
        profile=Counter((name, text) for name, text in document["profile"].items()),
        pending=len(document["updates"]),
        shown=shown,
        at_once=at_once,
        undone=undone,
        words=words_in(await world.text()),
    )


def nothing_waits_for_ever(view: View) -> Iterable[object]:
    yield from ["updates are pending"] * view.pending


def nothing_doubled(view: View) -> Iterable[object]:
    contents = Counter(content.casefold() for content, _ in view.active.elements())
    yield from (content for content, count in contents.items() if count > 1)
    yield from (line for line, count in view.journal.items() if count > 1)


def nothing_above_the_cap(view: View) -> Iterable[object]:
    if view.active.total() > CAP:
        yield f"{view.active.total()} facts"


def what_waits_is_shown_to_no_model(view: View) -> Iterable[object]:
    waiting = words_in(repr(list(view.held))) & WAITING
    yield from waiting & view.shown


def nothing_lost(view: View, right: View) -> Iterable[object]:
    for rows, wanted in ((view.active, right.active), (view.held, right.held), (view.profile, right.profile)):
        yield from {row[0] for row in wanted} - {row[0] for row in rows}
    yield from right.journal - view.journal


def nothing_comes_back(view: View, right: View) -> Iterable[object]:
    for rows, wanted in ((view.active, right.active), (view.held, right.held), (view.profile, right.profile)):
        yield from {row[0] for row in rows} - {row[0] for row in wanted}
    yield from view.journal - right.journal


def erased_words_are_nowhere(view: View, right: View) -> Iterable[object]:
    yield from view.words - right.words
    yield from (f"{word} when it is answered" for word in view.at_once - right.at_once)


def ids_are_kept(view: View, right: View) -> Iterable[object]:
    yield from right.active - view.active


def confirmed_and_pinned_as_often_as_said(view: View, right: View) -> Iterable[object]:
    yield from right.traits - view.traits


def history_is_whole(view: View, right: View) -> Iterable[object]:
    yield from (f"missing {row}" for row in right.history - view.history)
    yield from (f"too much {row}" for row in view.history - right.history)


def undo_stops_at_an_erase(view: View, right: View) -> Iterable[object]:
    yield from view.undone - right.undone


ALWAYS: Sequence[Callable[[View], Iterable[object]]] = (
    nothing_waits_for_ever, nothing_doubled, nothing_above_the_cap, what_waits_is_shown_to_no_model,
)  # fmt: skip
AS_IN_ORDER: Sequence[Callable[[View, View], Iterable[object]]] = (
    nothing_lost, nothing_comes_back, erased_words_are_nowhere, ids_are_kept, confirmed_and_pinned_as_often_as_said,
    history_is_whole, undo_stops_at_an_erase,
)  # fmt: skip


def judge(view: View, right: Sequence[View]) -> list[str]:
    """Return which laws are broken and by what; `right` are the ends of which one has to be reached."""
    broken = [f"{law.__name__}: {each}" for law in ALWAYS for each in law(view)]
    return broken + min((_against(view, each) for each in right), key=len)


def _against(view: View, right: View) -> list[str]:
    return [f"{law.__name__}: {each}" for law in AS_IN_ORDER for each in law(view, right)]
