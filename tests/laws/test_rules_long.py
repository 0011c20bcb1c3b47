"""Of a message of any length memory reads and keeps its beginning and its end; the thread keeps all."""

import re
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from langchain_core.tools import tool

import palimpsest
from palimpsest import PalimpsestMemory, PalimpsestSummary
from tests.fakes import RecordingModel
from tests.laws.shop import calls
from tests.laws.talk import DAY, DOORS, NARROW, Talk

HOUSE = Path(palimpsest.__file__).parents[1]
ROOMS = tuple(str(HOUSE / room) for room in ("memory", "graphs"))
LONG = 10_000_000
MOST_READ = 1_000_000
HALF = 50_000


def long_text(filler: str, chars: int = LONG) -> str:
    return f"I like plums.\n{filler * (chars // len(filler))}\nI like pears."


@contextmanager
def characters_read() -> Iterator[Counter[str]]:
    """Count the characters of texts longer than what is kept that code of ours gives to patterns and methods."""
    read: Counter[str] = Counter()
    ours: dict[str, bool] = {}

    def look(frame: FrameType, event: str, arg: object) -> None:
        code, size = frame.f_code, 0
        if not ours.setdefault(code.co_filename, code.co_filename.startswith(ROOMS)):
            return
        if event == "c_call":
            owner, name = getattr(arg, "__self__", None), getattr(arg, "__name__", "")
            if isinstance(owner, str) and name not in ("startswith", "endswith"):
                size = len(owner)
            elif isinstance(owner, re.Pattern) or name in ("normalize", "update", "dumps"):
                size = max((len(each) for each in frame.f_locals.values() if isinstance(each, str)), default=0)
        if size > 3 * HALF:
            read[f"{Path(code.co_filename).stem}.{code.co_name}"] += size

    sys.setprofile(look)
    threading.setprofile(look)
    try:
        yield read
    finally:
        threading.setprofile(None)
        sys.setprofile(None)


async def test_of_ten_million_characters_memory_reads_one_million() -> None:
    talk = Talk(context=NARROW)
    with characters_read() as read:
        for text in ("I like figs.", long_text("\n"), "Thanks.", "I like dates.", "And now?"):
            await talk.say(text)
            await talk.learn()
    assert await talk.known() == [f"Likes {what}" for what in ("dates", "figs", "pears", "plums")]
    assert read.total() <= MOST_READ, read.most_common(5)


@pytest.mark.parametrize("door", DOORS)
async def test_the_thread_keeps_all_of_a_long_message_and_memory_its_two_ends(door: str) -> None:
    talk, said = Talk(door), long_text("\n")
    await talk.say("I like figs.")
    await talk.learn()
    await talk.say(said)
    assert len(talk.stored()) < MOST_READ
    await talk.learn()
    talk.clock.advance(DAY)
    await talk.process().aclean(talk.store)
    kept = next(text for text in texts(talk) if "plums" in text)
    assert kept.startswith(said[:HALF])
    assert kept.endswith(said[-HALF:])
    assert f"{len(said) - 2 * HALF:,} characters left out" in kept[HALF:-HALF]
    assert "I like figs." in texts(talk), "the line pushed older ones out"
    assert await talk.known() == ["Likes figs", "Likes pears", "Likes plums"]
    assert said in [message.text for message in (await talk.values())["messages"]]


async def test_a_message_of_a_hundred_thousand_characters_is_kept_whole() -> None:
    talk, said = Talk(), long_text("\n", 2 * HALF - 28)
    for text in (said, f"I {said[:-1]}"):
        await talk.say(text)
    await talk.learn()
    whole, shortened = (text for text in texts(talk) if text.endswith(("pears.", "pears")))
    assert whole == said
    assert len(whole) == 2 * HALF
    assert "1 characters left out" in shortened


@pytest.mark.parametrize("door", DOORS)
async def test_a_turn_tells_once_that_its_messages_do_not_fit(door: str, caplog: pytest.LogCaptureFixture) -> None:
    talk = Talk(door, tools=[look], context=NARROW, around=lambda memory: [memory, summarizing(memory)])
    for turns in (1, 2):
        talk.chat.replies = [calls(("look", {})), calls(("look", {})), "Noted."]
        await talk.say(long_text(" word", 20_000))
        assert caplog.text.count("do not fit") == turns


@tool
def look() -> str:
    """Look around."""
    return "a wood. " * 2000


def summarizing(memory: PalimpsestMemory) -> PalimpsestSummary:
    model = RecordingModel(respond=lambda _: "They talked.")
    return PalimpsestSummary(model, memory=memory, trigger=("tokens", 700), keep=("tokens", 300), max_summary_tokens=64)


def texts(talk: Talk) -> list[str]:
    """Return what the journal's lines say."""
    entries = [item.value for item in talk.store.search((), limit=1000) if item.namespace[-1] == "journal"]
    return [str(one["text"]) for entry in entries for one in entry.get("messages", ())]
