"""One memory, whichever door a conversation comes in by: told, known, corrected, erased, kept out, kept apart."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.store.memory import InMemoryStore

from memory import FactStore
from memory.context.tokens import shared_counter
from tests.doors import DOORS, MAX_TOKENS, House
from tests.forgetting import aerase_user

FACT = {"message": 1, "action": "new", "known": 0, "content": "User is allergic to peanuts", "category": "knowledge", "confidence": 0.9}  # fmt: skip  # noqa: E501

NewHouse = Callable[..., House]


@pytest.fixture(params=DOORS)
def enter(request: pytest.FixtureRequest) -> NewHouse:
    """Return a new house with one of the doors."""
    return lambda **options: House(request.param, **options)


@pytest.fixture
def house(enter: NewHouse) -> House:
    return enter()


async def test_G2_what_is_said_in_one_thread_is_known_in_the_next(house: House) -> None:
    house.facts = [FACT]
    await house.say("I am allergic to peanuts.")
    assert "[knowledge" not in house.shown()
    await house.settle()
    await house.say("What should I cook?", thread="another")
    assert "- [knowledge | 0.90] User is allergic to peanuts" in house.chat.prompts[-1][0].text


async def test_the_state_keeps_no_text_of_what_is_known(house: House) -> None:
    house.facts = [FACT]
    await house.say("I am allergic to peanuts.")
    await house.settle()
    await house.say("What should I cook?", thread="another")
    state = house.graph.get_state({"configurable": {"thread_id": "another"}}).values
    assert "peanuts" in house.shown()
    assert "peanuts" not in str(state)


async def test_what_is_learned_meanwhile_stands_before_the_question_and_stays_there(house: House) -> None:
    house.facts = [FACT]
    await house.say("I am allergic to peanuts.", thread="another")
    await house.say("Hello", id="h1")
    await house.settle()
    await house.say("What should I cook?", id="h2")
    system, *_, question = house.chat.prompts[-1]
    assert "peanuts" not in system.text
    assert "User is allergic to peanuts" in question.text
    await house.say("And for dessert?", id="h3")
    prompt = house.chat.prompts[-1]
    assert "User is allergic to peanuts" in next(message.text for message in prompt if message.id == "h2")


async def test_what_is_said_in_a_turn_that_an_edit_overtakes_does_not_change_the_fact(house: House) -> None:
    facts = FactStore(house.store, "local")
    fact = facts.create("User is allergic to nuts", "knowledge", 0.9)

    def answer_late(_: list[BaseMessage]) -> str:
        facts.update(fact.id, content="User is allergic to almonds", source="api")
        return "Noted."

    house.chat.respond = answer_late
    house.facts = [{**FACT, "action": "corrects", "known": 1}]
    await house.say("I am allergic to peanuts.")
    await house.settle()
    assert [each.content for each in facts.list()] == ["User is allergic to almonds"]

    house.chat.respond = lambda _: "Noted."
    await house.say("Really, I am allergic to peanuts.")
    await house.settle()
    assert [each.content for each in facts.list()] == ["User is allergic to peanuts"]


async def test_erase_wins_over_a_question_that_was_never_answered(house: House) -> None:
    house.chat.replies = [ConnectionError("down")]
    with pytest.raises((RuntimeError, ConnectionError)):
        await house.say("I am allergic to peanuts.")
    await aerase_user(house.store, "local")
    await house.say("Hello again.")
    assert house.pending() == {"Hello again."}


async def test_a_question_that_no_model_answered_is_learned(house: House) -> None:
    house.facts = [FACT]
    house.chat.replies = [ConnectionError("down")]
    with pytest.raises((RuntimeError, ConnectionError)):
        await house.say("I am allergic to peanuts.")
    await house.say("Hello?")
    await house.settle()
    assert [fact.content for fact in FactStore(house.store, "local").list()] == ["User is allergic to peanuts"]


class BrokenStore(InMemoryStore):
    def batch(self, ops: Any) -> Any:
        raise OSError("disk full")

    async def abatch(self, ops: Any) -> Any:
        raise OSError("disk full")


async def test_a_broken_store_never_fails_a_turn(enter: NewHouse, caplog: pytest.LogCaptureFixture) -> None:
    house = enter(store=BrokenStore())
    state = await house.say("Hello")
    assert state["messages"][-1].text == "reply to Hello"
    assert "OSError" in caplog.text
    assert "Hello" not in caplog.text


async def test_C1_G2_a_long_thread_is_summarized_and_keeps_its_messages(enter: NewHouse) -> None:
    house = enter(summarizes=True)
    for number in range(12):
        state = await house.say(f"{number}: " + "word " * 60)
        prompt = house.chat.prompts[-1]
        assert shared_counter()(prompt) <= MAX_TOKENS + 1200 * house.door.startswith("deep")
        assert prompt[-1].text.startswith(f"{number}: ")
    assert len(state["messages"]) == 24
    assert "They talked." in house.chat.prompts[-1][0].text
    assert len(house.chat.prompts[-1]) < 24
    assert {entry["kind"] for entry in house.outbox()} == {"turn", "cut"}
    cut = [message["id"] for entry in house.outbox() if entry["kind"] == "cut" for message in entry["messages"]]
    assert len(cut) == len(set(cut))


async def test_what_is_known_takes_no_more_than_its_tokens(enter: NewHouse) -> None:
    house = enter(memory_tokens=200)
    facts = FactStore(house.store, "local")
    for number in range(60):
        facts.create(f"User has been to harbour number {number} and liked the boats there", "knowledge", 0.9)
    for number in range(6):
        await house.say(f"Which boats were in harbour number {number * 9}?", id=f"h{number}")
        shown = re.findall(r"<memory>.*?</memory>", house.shown(), re.DOTALL)
        assert shown
        assert shared_counter().text(shown[0]) <= 200
        # What was recalled for messages takes as much again before a new block takes its place, and the last of it.
        assert house.is_graph or sum(map(shared_counter().text, shown)) <= 3 * 200
    nothing = enter(memory_tokens=0, store=house.store)
    await nothing.say("Which boats?", thread="another")
    assert "harbour number" not in nothing.shown()


async def test_everything_that_was_said_is_learned_once(enter: NewHouse) -> None:
    house = enter(summarizes=True)
    said = [f"{number}: " + "word " * 60 for number in range(12)]
    read: list[str] = []
    for text in said:
        await house.say(text)
        await house.settle()
    for prompt in house.memory.prompts:
        if "Answer with JSON only" in prompt[0].text:
            read += [text for text in said if text.split(":")[0] + ": word" in prompt[-1].text]
    assert set(read) == set(said)


async def test_what_a_program_wrote_in_a_persons_place_is_not_learned(house: House) -> None:
    made = HumanMessage("I like peanuts", additional_kwargs={"lc_source": "summarization"})
    await house.invoke({"messages": [made, HumanMessage("Hello")]})
    assert house.pending() == {"Hello"}
