"""A memory model that is away, for however long: what was said waits for it, and is learned when it is back."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.exceptions import ModelAuthenticationError
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import Op, PutOp, Result
from langgraph.store.memory import InMemoryStore

from tests.fakes import Refused
from tests.laws.doors import House
from tests.laws.talk import AGENTS, Talk, remembers

HOUR = 3600.0
MINUTE = 60.0


class APITimeoutError(ConnectionError):
    """How OpenAI's package tells that its own deadline passed."""


NOT_NOW = [*(Refused(status) for status in (402, 429, 500, 503, 529)), ConnectionRefusedError()]
NOT_NOW += [Refused(400, "Your credit balance is too low"), Refused(403, "Quota exceeded")]


async def updates(talk: Talk) -> list[dict[str, Any]]:
    """What waits of ada, as her client lists it."""
    return list((await _asked(talk, "/updates"))["updates"])


async def _asked(talk: Talk, path: str) -> Any:
    house = House(talk.store, InMemorySaver(), {}, talk.clock, Path("no such folder"))
    status, answer = await house.ask("GET", path)
    assert status == 200
    return answer


def fails(error: Exception, when: str = "") -> Callable[[list[BaseMessage]], Exception | str]:
    """Answer as a memory model that fails, or does where its prompt has a word."""
    return lambda messages: error if when in messages[-1].text else remembers(messages)


async def away(talk: Talk, hours: int, error: Exception, when: str = "") -> None:
    """Let the model fail for so many hours, and everything that is due be tried meanwhile."""
    talk.memory.respond = fails(error, when)
    for _ in range(hours):
        await talk.learn()
        talk.clock.advance(HOUR + MINUTE)
    talk.memory.respond = remembers


@pytest.mark.parametrize("error", NOT_NOW, ids=repr)
async def test_an_outage_of_many_hours_loses_nothing(error: Exception) -> None:
    talk = Talk()
    await talk.say("I like figs")
    await away(talk, 9, error)
    assert [each["state"] for each in await updates(talk)] == ["pending"]
    assert await talk.learn() == ["Likes figs"]


async def test_what_was_said_is_in_the_journal_from_the_first_failure_on_and_once() -> None:
    talk = Talk()
    await talk.say("I like figs")
    await away(talk, 1, Refused(503))
    assert str(await _asked(talk, "/journal")).count("I like figs") == 1
    await away(talk, 3, Refused(503))
    await talk.learn()
    assert str(await _asked(talk, "/journal")).count("I like figs") == 1


@pytest.mark.parametrize("wait", ["7200", "Thu, 09 Oct 2025 10:53:21 GMT"])
async def test_a_provider_is_not_asked_before_the_time_that_it_named(wait: str) -> None:
    talk = Talk()
    await talk.say("I like figs")
    talk.memory.respond = fails(Refused(429, retry_after=wait))
    await talk.learn()
    talk.memory.respond = remembers
    talk.clock.advance(1.9 * HOUR)
    assert await talk.learn() == []
    talk.clock.advance(0.2 * HOUR)
    assert await talk.learn() == ["Likes figs"]


@pytest.mark.parametrize(
    "error", [Refused(429, "Request too large"), Refused(400), TimeoutError(), APITimeoutError()], ids=repr
)
async def test_what_fails_by_its_own_fault_is_given_up_at_last(error: Exception) -> None:
    talk = Talk()
    await talk.say("I like figs")
    await away(talk, 9, error)
    assert [each["state"] for each in await updates(talk)] == ["dead"]


async def test_one_message_that_no_server_survives_holds_no_other() -> None:
    talk = Talk()
    for what in ("figs", "crashes", "plums"):
        await talk.say(f"I like {what}")
    await away(talk, 6, Refused(500), when="crashes")
    assert await talk.known() == ["Likes figs", "Likes plums"]
    assert len(await updates(talk)) == 1


async def test_an_update_that_succeeds_wakes_one_after_another_of_those_that_waited_for_its_model() -> None:
    talk, others = Talk(), ("ada", "bob", "cyd")
    for user in others:
        await talk.say("I like figs", user, user=user)
    talk.memory.respond = fails(Refused(503))
    for _ in range(12):
        talk.clock.advance(HOUR)
        await talk.service.asweep(talk.store)
    talk.memory.respond = remembers
    await talk.say("I like figs", "dan", user="dan")
    talk.clock.advance(3 * MINUTE)
    await talk.service.asweep(talk.store)  # only what dan said is due
    await asyncio.to_thread(talk.service.close)
    assert [await talk.known(user) for user in (*others, "dan")] == [["Likes figs"]] * 4


class KeyRefused(ModelAuthenticationError):
    """How LangChain's package of a provider tells of a key that it does not know."""

    status_code = 401


@pytest.mark.parametrize("door", AGENTS)
async def test_an_agents_failure_is_told_in_a_sentence_and_stays_of_its_kind(door: str) -> None:
    talk = Talk(door)
    talk.chat.replies.append(KeyRefused("Incorrect key sk-1234"))
    with pytest.raises(RuntimeError, match=r"^The key for .* was refused: set that provider's key") as told:
        await talk.say("I like figs")
    assert isinstance(told.value, KeyRefused)
    assert "1234" not in str(told.value)
    talk.chat.replies.append(ValueError("a guard of the agent's own"))
    with pytest.raises(ValueError, match="guard"):
        await talk.say("I like figs")


async def test_half_a_character_of_an_agents_answer_is_in_no_piece_of_a_stream() -> None:
    talk, told = Talk("agent"), list[str]()
    talk.chat.replies.append("Half of one: \ud83d it was.")

    async def stream() -> None:
        async for message, _ in talk.graph.astream({"messages": "Hi"}, talk.who(), stream_mode="messages"):
            told.append(message.text)

    with pytest.raises(RuntimeError, match="characters that are no text"):
        await stream()
    assert "".join(told).encode().startswith(b"Half")


class Slow(InMemoryStore):
    """A store that takes its time for what it is given."""

    seconds = 0.0

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        threading.Event().wait(self.seconds)
        return super().batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, ops)


ENDING = """
import asyncio, atexit
from tests.laws.test_rules_outages import Slow, Talk

store = Slow()
# What is registered first runs last.
atexit.register(lambda: print(*(item.key for item in store.search(("palimpsest",)) if item.namespace[-1] == "outbox")))

async def main():
    talk = Talk(store=store, memory={"write_timeout_seconds": 0.2})
    store.seconds = 0.3
    assert (await talk.say("I like figs"))["memory"]["receipt"]["not_written"]

asyncio.run(main())
"""


def test_the_end_of_a_program_waits_longer_for_a_slow_store_than_a_turn_does() -> None:
    command, here = [sys.executable, "-c", ENDING], Path(__file__).parents[2]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=60, check=True)
    assert len(done.stdout.split()) == 1, done.stderr


async def test_what_is_lost_at_the_end_of_a_program_is_called_so(caplog: pytest.LogCaptureFixture) -> None:
    store = Slow()
    talk = Talk(store=store, memory={"write_timeout_seconds": 0.2})
    store.seconds = 1.5
    await talk.say("I like figs")
    await asyncio.to_thread(talk.service.close, 0.1)
    assert "1 turns are lost unless a checkpointer keeps their threads" in caplog.text


class Choosy(InMemoryStore):
    """A store that takes no poison."""

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        listed = list(ops)
        if any(isinstance(op, PutOp) and "poison" in str(op.value) for op in listed):
            raise TypeError("not serializable")
        return await super().abatch(listed)


async def test_a_value_that_no_store_takes_keeps_no_later_turn_from_memory() -> None:
    talk = Talk(store=Choosy(), memory={"retry_base_seconds": 0})
    assert (await talk.say("I like poison."))["memory"]["receipt"]["not_written"] == "failed"
    await asyncio.sleep(0.2)  # somebody looks meanwhile whether the store is there
    # It is tried again a few times, keeps no later turn from being written down, and is let go.
    for number in range(4):
        memory = (await talk.say(f"I like fig{number}."))["memory"]
        assert not {"not_written", "without_memory"} & memory["receipt"].keys()
    assert "unwritten" not in memory
    assert await talk.learn() == [f"Likes fig{number}" for number in range(4)]
