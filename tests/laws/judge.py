"""What is looked at when a cell is over, and the laws that it is judged by."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.archive_lines import document_of
from tests.laws.doors import CAP, LONGEST_WAIT, USER, House, reply_to
from tests.laws.operations import CODER, LIMES, NEW, OF_OTHERS, OTHER, PLUMS, WAITING, WORDS
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
        journal: Conversation, role and text of each line.
        profile: Section and text.
        pending: How many updates are not done.
        words: Those that are kept anywhere: items, checkpoints, bytes of files.
        shown: Those that a model may be shown, or was sent.
        at_once: Those that the store keeps right after whoever erases is answered.
        stored: Those that the store keeps in the end.
        undone: Those that facts say after as many undos as there are.
        others: Whose memory it is, and what the other user and the user's other agent have.
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
    stored: frozenset[str]
    undone: frozenset[str]
    others: Rows


_ENDS: Mapping[str, Any] = json.loads(Path(__file__).with_name("ends.json").read_text())
_THREADS = {LIMES: "limes", PLUMS: "plums", OTHER: "other", NEW: "new"}


def _conversation(thread_id: str) -> str:
    """Return what `ends.json` calls a conversation: what is imported has the name of its source."""
    imported = re.match(r"import:(\w+):", thread_id)
    return imported[1] if imported else _THREADS[thread_id]


@cache
def end(name: str, otherwise: str) -> View:
    """Return an end as it is written down by hand, or the other one where that name has none."""
    rows = _rows(name if name in _ENDS else otherwise)
    facts, conversations = rows["facts"], rows["journal"].items()
    journal = [
        line for name, texts in conversations for place, text in enumerate(texts) for line in _lines(name, place, text)
    ]
    said = {row[0]: (str("pinned" in row), str(row.count("said again"))) for row in facts}
    kept = frozenset(rows["kept"])
    return View(
        active=Counter((row[0], row[1]) for row in facts),
        held=Counter(map(tuple, rows["waiting"])),
        traits=Counter((content, *traits) for content, traits in said.items()),
        history=Counter(map(tuple, rows["history"])),
        journal=Counter(journal),
        profile=Counter(rows["profile"].items()),
        pending=0,
        words=kept,
        shown=kept,
        at_once=kept - frozenset(rows["erased"]),
        stored=kept - frozenset(rows["erased"]),
        undone=kept - frozenset(rows["erased"]),
        others=Counter((user, row) for user, rows_of in rows["others"].items() for row in rows_of),
    )


def _rows(name: str) -> dict[str, Any]:
    """Return all rows of an end: those that it begins from, without what is gone, and its own."""
    own = _ENDS[name]
    if "from" not in own:
        return {**own, "erased": []}
    before, gone = _rows(own["from"]), own.get("gone", {})
    rows: dict[str, Any] = {"erased": own.get("erased", [])}
    for part in ("facts", "waiting", "history"):
        rows[part] = [row for row in before[part] if row[0] not in gone.get(part, ())] + own.get(part, [])
    for part in ("journal", "profile"):
        left = {key: value for key, value in before[part].items() if key not in gone.get(part, ())}
        rows[part] = {**left, **own.get(part, {})}
    rows["others"] = before["others"]
    rows["kept"] = [word for word in before["kept"] if word not in gone.get("kept", ())] + own.get("kept", [])
    return rows


def _lines(conversation: str, place: int, text: str) -> list[tuple[str, str, str]]:
    """Return a person's line and what was answered; what a summary took away here has no answers."""
    if conversation == "cut":
        return [("other", "user", text)]
    answer = reply_to(text) if conversation in _THREADS.values() else f"Noted {place}."
    return [(conversation, "user", text), (conversation, "assistant", answer)]


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


async def look(world: World, house: House, at_once: frozenset[str], *, undoes: bool) -> View:
    """See what is there; the world is closed after this."""
    first = {fact_id: word for word, fact_id in world.ids.items()}
    document = document_of((await house.ask("GET", "/export"))[1])
    facts = await house.facts.alist(None)
    active = [fact for fact in facts if fact.status == "active"]
    counts = {fact.id: str((await house.facts.aconfirmations(fact.id)).count) for fact in active}
    told = house.prompts() + await house.shown()
    shown = words_in(told) | {word for word in OF_OTHERS if word in told}
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
            (_conversation(line["thread_id"]), said["role"], said["text"])
            for line in document["journal"]
            for said in line["messages"]
        ),
        profile=Counter((name, text) for name, text in document["profile"].items()),
        pending=len(document["updates"]),
        shown=shown,
        at_once=at_once,
        stored=words_in(repr(await world.items())),
        undone=undone,
        others=Counter([*await _memory(house, "bob", ""), *await _memory(house, USER, f"?agent_name={CODER}")]),
        words=words_in(await world.text()),
    )


async def _memory(house: House, user: str, agent: str) -> list[tuple[str, ...]]:
    """Return what an export of somebody who does nothing tells."""
    document = document_of((await house.ask("GET", f"/export{agent}", user=user))[1])
    facts = [(user, fact["content"]) for fact in document["facts"]]
    lines = [
        (user, said["text"]) for line in document["journal"] for said in line["messages"] if said["role"] == "user"
    ]
    return [*facts, *lines, *((user, update["thread_id"]) for update in document["updates"])]


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


def nobody_is_shown_what_is_anothers(view: View) -> Iterable[object]:
    yield from view.shown & OF_OTHERS


def nothing_changes_for_others(view: View, right: View) -> Iterable[object]:
    yield from (f"missing {row}" for row in right.others - view.others)
    yield from (f"too much {row}" for row in view.others - right.others)


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
    yield from (f"{word} in the store" for word in view.stored - right.stored)
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
    nobody_is_shown_what_is_anothers,
)  # fmt: skip
AS_IN_ORDER: Sequence[Callable[[View, View], Iterable[object]]] = (
    nothing_lost, nothing_changes_for_others, nothing_comes_back, erased_words_are_nowhere, ids_are_kept,
    confirmed_and_pinned_as_often_as_said, history_is_whole, undo_stops_at_an_erase,
)  # fmt: skip


def judge(view: View, right: Sequence[View]) -> list[str]:
    """Return which laws are broken and by what; `right` are the ends of which one has to be reached."""
    broken = [f"{law.__name__}: {each}" for law in ALWAYS for each in law(view)]
    return broken + min((_against(view, each) for each in right), key=len)


def _against(view: View, right: View) -> list[str]:
    return [f"{law.__name__}: {each}" for law in AS_IN_ORDER for each in law(view, right)]
