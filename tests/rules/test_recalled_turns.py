"""What was said in other conversations comes back when a message asks for it, seen from what the model received."""

import json
import threading
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from langgraph.store.memory import InMemoryStore

from graphs.process.recalling import WorkBehind
from graphs.turn.context import Context
from memory.control import change_control
from memory.door import run
from memory.facts.store import FactStore
from memory.message import iso_time
from memory.namespaces import Owner
from memory.recall.user_index import Asked
from memory.turn import open_turn
from tests.laws.embedding import indexed
from tests.laws.talk import Talk

ADA = Owner.of("ada")
SECTION = "Past conversations:"
ASKED = "Who teaches me the cello?"


async def learned(*texts: str) -> Talk:
    """Return a talk of which each text was said in a thread of its own, and learned."""
    talk = Talk()
    for number, text in enumerate(texts, 1):
        await talk.say(text, str(number))
    await talk.learn()
    await indexed(talk.service, talk.store, "ada")
    return talk


async def shown(talk: Talk, text: str, thread: str) -> str:
    """Say something, and return the whole prompt that the model was sent."""
    await talk.say(text, thread)
    return talk.shown()


async def test_what_was_said_in_another_thread_comes_back_with_its_day_and_who_said_it() -> None:
    talk = await learned("My cello teacher is called Ines [goal | 0.90]")
    fact = FactStore(talk.store, "ada").create("Keeps a cello in Oslo", "context", 0.9)

    state = await talk.say(ASKED, "asked")
    memory = state["memory"]

    prompt, day = talk.shown(), iso_time(talk.clock())[:10]
    assert f"- {day} user: My cello teacher is called Ines (goal | 0.90)" in prompt
    assert prompt.index(SECTION) < prompt.rindex(ASKED)
    assert memory["receipt"]["recalled"] == [entry for entry, _ in memory["deltas"][0]["lines"]][:1]
    assert "in Oslo" in prompt
    assert memory["receipt"]["facts"] == [fact.id]
    kept = json.dumps([memory, state["messages"]], default=str)
    assert "Ines" not in kept
    assert "Oslo" not in kept
    assert (await shown(talk, f"And {ASKED}", "1")).count("Ines") == 1, "that thread shows it itself"


async def test_a_later_turn_keeps_what_it_showed_and_adds_what_its_message_asks_for() -> None:
    talk = await learned("My cello teacher is called Ines", "We sailed to Bergen in a wooden boat")
    first = await shown(talk, "Who is my cello teacher?", "long")

    second = await shown(talk, "Where did we sail with the boat?", "long")

    assert "Ines" in first
    assert "Bergen" not in first
    assert second.startswith(first[: first.rindex("Who is my cello teacher?")])
    assert "user: We sailed to Bergen" in second


LONG = (
    "I write a report on bridges, with a table of the spans that engineers of the last century dared to build. "
    "Its second chapter needs a figure of a cable, and a paragraph on rust. "
)


async def test_a_question_within_a_long_message_about_something_else_is_heard_and_that_alone_recalls_nothing() -> None:
    talk = await learned("My cello teacher is called Ines", "We sailed to Bergen in a wooden boat")

    assert SECTION not in await shown(talk, LONG, "first")
    asked = await shown(talk, f"{LONG} Who is my cello teacher?", "first")
    assert "Ines" in asked
    assert "Bergen" not in asked
    assert SECTION not in await shown(talk, "Thanks, that helps!", "second")


async def test_nothing_of_what_was_erased_stays_in_memory() -> None:
    talk = await learned("My cello teacher is called Ines")
    recalling = talk.service.recalling
    assert SECTION in await shown(talk, ASKED, "asked")
    assert ADA in recalling._stores[talk.store]

    talk.service.forget("another thread")
    assert ADA in recalling._stores[talk.store]
    talk.service.forget("1")
    assert ADA not in recalling._stores[talk.store]
    await indexed(talk.service, talk.store, "ada")
    assert ADA in recalling._stores[talk.store]
    talk.service.forget(ADA.segment)

    assert ADA not in recalling._stores[talk.store]


@pytest.mark.parametrize(("assistants", "users"), [("Pacific/Auckland", None), ("Europe/Oslo", "Pacific/Auckland")])
async def test_yesterday_counts_from_the_day_where_the_user_is(assistants: str, users: str | None) -> None:
    talk = Talk(context=Context(time_zone=assistants, memory_tokens=200))
    talk.clock.seconds = datetime(2026, 3, 9, 13, tzinfo=UTC).timestamp()  # in Auckland, the tenth has begun
    if users:
        run(talk.store, change_control(ADA, time_zone=users))
    facts = FactStore(talk.store, "ada")
    for day in range(1, 9):
        facts.create(f"Went to harbour {day} on 2026-03-0{day} by ferry", "context", 0.9)
    facts.create("Went to the fair on 2026-03-09 by tram", "context", 0.1)

    assert "the fair" in await shown(talk, "Where did I go yesterday?", "asked")


def test_of_many_who_come_at_once_one_is_indexed_after_the_other() -> None:
    seen, together = list[object](), threading.Barrier(2)

    def work(_: object, owner: Owner) -> None:
        seen.append(owner)
        with suppress(threading.BrokenBarrierError):
            together.wait(0.2)
            seen.append("at once")

    behind = WorkBehind(work, "", "")
    for end in [behind.ask(InMemoryStore(), Owner.of(name)) for name in "ab"]:
        end.result()
    assert "at once" not in seen


async def test_only_one_turn_waits_for_an_index_that_takes_too_long() -> None:
    talk = await learned("Ms Berg teaches me the cello.")
    opening, recalling = run(talk.store, open_turn(ADA, "new", "normal", None, ())), talk.process().recalling
    with recalling.behind.turn:
        for seconds in (0.0, 600.0):
            found = await recalling.recall(talk.store, ADA, opening, Asked(ASKED), seconds)
            assert "turn" not in [hit.document.kind for hit in found.hits]
