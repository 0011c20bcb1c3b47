"""What an update reads, when it starts, and that a model that hangs keeps no process from ending."""

import subprocess
import sys
import time
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from palimpsest import ConversationContext, FactStore
from tests.laws.talk import Talk, remembers

# So much stands between two facts that no piece holds both: the model finds one fact a line.
FILLER = "And so it went on for a while. " * 130
SCHEDULED: list[BaseMessage] = [
    HumanMessage("[SCHEDULED] nightly report", id="u1"),
    AIMessage("REPORT: likes kale", id="a1"),
    HumanMessage("I like figs", id="u2"),
    AIMessage("Noted.", id="a2"),
]


async def test_every_part_of_a_long_message_is_learned_and_names_its_message() -> None:
    talk = Talk()
    await talk.say("".join(f"I like thing{number}. {FILLER}\n" for number in range(8)), id="u1")
    assert await talk.learn() == [f"Likes thing{number}" for number in range(8)]
    assert {fact.message_ids for fact in FactStore(talk.store, "ada").list()} == {("u1",)}
    assert len(talk.memory.prompts) > 1
    assert max(len(prompt[-1].text) for prompt in talk.memory.prompts) < 8 * len(FILLER)


@pytest.mark.parametrize("cut", [1, 2, 4])
@pytest.mark.parametrize("kind", ["turn", "cut"])
def test_B7_a_scheduled_reply_is_never_read_however_it_is_cut_apart(kind: Any, cut: int) -> None:
    talk = Talk()
    updater = talk.updater()
    parts: list[tuple[list[BaseMessage], Any]] = [(SCHEDULED[:cut], kind), (SCHEDULED[cut:], "cut")]
    for messages, of in parts:
        updater.process(ConversationContext("T", "ada", messages=messages, kind=of))
    assert [fact.content for fact in FactStore(talk.store, "ada").list()] == ["Likes figs"]
    assert "REPORT" not in talk.stored() + str(talk.memory.prompts)


def test_a_thread_that_is_given_whole_again_is_read_at_once() -> None:
    talk = Talk()
    updater = talk.updater()
    said = [HumanMessage(f"I like thing{number}", id=f"u{number}") for number in range(14)]
    talk.memory.replies = [TimeoutError()]
    updater.process(ConversationContext("T", "ada", messages=said[:12]))
    talk.clock.advance(talk.settings.memory.retry_max_seconds)
    updater.process(ConversationContext("T", "ada", messages=said))
    assert len(FactStore(talk.store, "ada").list()) == len(said)
    assert len(talk.memory.prompts) == 2  # the first was in vain


async def test_B9_the_updates_of_one_sweep_start_apart() -> None:
    talk, starts, apart = Talk(memory={"update_spacing_seconds": 0.2}), list[float](), 0.2

    def respond(messages: list[BaseMessage]) -> str:
        starts.append(time.monotonic())
        return remembers(messages)

    talk.memory.respond = respond
    for number, user in enumerate(("ada", "ada", "bob")):
        await talk.say("I like figs", f"T{number}", user=user)
    before = time.monotonic()
    await talk.learn()
    assert len(starts) == 3
    # An update may be held up on its way to the model, so that only the last one's distance to all is certain.
    assert max(starts) - before >= 2 * apart


def test_B5_a_hung_call_does_not_keep_the_process_from_ending() -> None:
    program = """
import threading
from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore
from palimpsest import ConversationContext, MemoryUpdater

begun = threading.Event()

def hang(_):
    begun.set()
    threading.Event().wait()

updater = MemoryUpdater(InMemoryStore(), hang)
said = ConversationContext("T", "ada", messages=[HumanMessage("I like figs", id="u1")])
threading.Thread(target=updater.process, args=[said], daemon=True).start()
begun.wait()
print("leaving")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout == "leaving\n"
