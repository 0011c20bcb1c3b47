"""What a provider can cache: how much of each prompt is the one before it, measured on what the model received."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from langchain_core.messages import BaseMessage

from graphs.turn.context import Context
from memory.facts.changes import Change, Extraction
from memory.facts.store import FactStore
from memory.message import iso_time
from tests.laws.talk import Talk

SENTENCE = "the harbour was quiet and we walked along the water talking about boats weather bread and work"
WORDS = SENTENCE.split()


def sentence(seed: int, words: int) -> str:
    return f"{seed}: " + " ".join(WORDS[(seed * 7 + n) % len(WORDS)] for n in range(words))


def text_of(prompt: Sequence[BaseMessage]) -> str:
    return "\n".join(f"{message.type}: {message.text}" for message in prompt)


def unchanged(prompts: Sequence[Sequence[BaseMessage]]) -> list[float]:
    """The share of each prompt, from the second on, that is exactly the beginning of the one before."""
    return [common(before, after) / len(after) for before, after in pairwise(map(text_of, prompts))]


def common(before: str, after: str) -> int:
    """How many characters two texts begin with alike."""
    differing = (at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other)
    return next(differing, min(len(before), len(after)))


def learn(facts: FactStore, number: int, now: float, target: str | None = None) -> str:
    """Another thread's update brings a fact, or corrects one."""
    change = Change(
        action="corrects" if target else "new",
        content=f"User has been to harbour number {number} and liked it",
        confidence=0.9,
        target=target,
        sources=(f"m{number}",),
        said_at=iso_time(now),
    )
    applied = facts.apply(Extraction(changes=(change,)), thread_id="another", epoch="initial", now=iso_time(now))
    return applied.created[0]


@pytest.mark.parametrize(("max_tokens", "least"), [(4096, 0.80), (8192, 0.90)])
async def test_F9_most_of_a_prompt_is_the_beginning_of_the_one_before(max_tokens: int, least: float) -> None:
    talk = Talk(context=Context(max_tokens=max_tokens), memory={"debounce_seconds": 3600})
    talk.chat.respond = lambda messages: sentence(len(messages), 50)
    talk.memory.respond = lambda _: '{"facts": []}' if "JSON" in str(_) else sentence(1, 100)
    talk.summaries.respond = talk.memory.respond
    facts = FactStore(talk.store, "ada", clock=talk.clock)
    known = [learn(facts, number, talk.clock()) for number in range(40)]
    for turn in range(100):
        talk.clock.advance(20)
        if turn % 6 == 5:
            known.append(learn(facts, 100 + turn, talk.clock()))
        if turn in (40, 75):
            learn(facts, 200 + turn, talk.clock(), target=known[turn // 3])
        talk.clock.advance(19)
        await talk.say(sentence(turn, 40))

    shares = unchanged(talk.chat.prompts)

    assert len(shares) == 99
    assert sum(shares) / len(shares) >= least
