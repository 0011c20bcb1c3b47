"""The node that chooses what the model knows about the user, seen from what the model received."""

import json

from memory.facts.changes import Change, Extraction
from memory.facts.store import FactStore
from memory.message import iso_time
from tests.laws.talk import Talk


def learn(talk: Talk, content: str) -> str:
    """Let an update of another thread bring a fact."""
    talk.clock.advance(5)
    now = iso_time(talk.clock())
    change = Change(action="new", content=content, confidence=0.9, sources=(content,), said_at=now)
    facts = FactStore(talk.store, "ada", clock=talk.clock)
    return facts.apply(Extraction(changes=(change,)), thread_id="another", epoch="initial", now=now).created[0]


async def test_what_arrives_stands_before_the_newest_message_and_the_state_holds_ids_and_never_texts() -> None:
    talk = Talk()
    oslo = learn(talk, "User lives in Oslo")
    await talk.say("Hello")
    before = talk.chat.prompts[-1][0].text
    dog = learn(talk, "User has a dog")

    state = await talk.say("What now?")

    system, *_, asked = talk.chat.prompts[-1]
    assert system.text == before
    assert "User has a dog" in asked.text
    assert asked.text.endswith("What now?")
    receipt = state["memory"]["receipt"]
    assert receipt["facts"] == [oslo, dog]
    assert set(receipt["tokens"]) == {"system", "memory", "recalled", "summary", "messages", "budget"}
    assert receipt["tokens"]["memory"] > 0
    assert receipt["tokens"]["recalled"] > 0
    kept = json.dumps([state["memory"], state["messages"]], default=str)
    assert "Oslo" not in kept
    assert "dog" not in kept
