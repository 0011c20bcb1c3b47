"""What comes while a turn runs, in Python and in JavaScript."""

import re
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest
from langgraph_sdk import get_client

from tests.e2e.javascript import run_javascript
from tests.stories.conftest import Meet
from tests.stories.host import Place
from tests.stories.model import SUMMARY
from tests.stories.people import SMALL, Person, message, token_of
from tests.stories.serving import PROJECT, variables

MODES: Any = ["values", "updates", "messages-tuple", "custom", "debug"]
NODES = {"inject_memory", "summarize", "call_model", "flush_memory"}
STORIES = ("talks", "streams", "stamps", "chooses")


@pytest.fixture(scope="module")
def javascript(shared: dict[str, Place]) -> Any:
    """What came of all stories of the JavaScript client: one process tells them side by side."""
    tokens = {story: token_of(f"javascript {story}") for story in STORIES}
    return run_javascript("stories.mjs", url=shared["guarded"].url, tokens=tokens)


def said(values: Any) -> list[str]:
    """Return the messages of a state."""
    return [each["content"] for each in values["messages"]]


def check_modes(parts: list[tuple[str, Any]], state: Any) -> None:
    """Assert that each mode brought what it is for."""
    by_mode = {name: [data for event, data in parts if event == name] for name, _ in parts}
    assert {"values", "updates", "messages", "custom", "debug"} <= set(by_mode)
    assert by_mode["values"][-1] == state
    assert {node for update in by_mode["updates"] for node in update} <= NODES
    for update in by_mode["updates"]:
        assert all("messages" not in written for node, written in update.items() if node != "call_model")
    assert "memory.queued" in [event["name"] for event in by_mode["custom"]]
    tokens = [chunk["content"] for chunk, _ in by_mode["messages"] if chunk["type"] == "AIMessageChunk"]
    assert "".join(tokens) == "One word after the other."
    assert len([token for token in tokens if token]) == 5


def test_32_each_mode_brings_its_own_in_python(ada: Person) -> None:
    thread = ada.thread()
    parts = ada.sdk.runs.stream(thread, "chat", input=message("Take your time."), stream_mode=MODES)
    check_modes([(part.event, part.data) for part in parts], ada.state(thread))


def test_33_each_mode_brings_its_own_in_javascript_as_it_is_produced(javascript: Any) -> None:
    told = javascript["streams"]
    check_modes([(part["event"], part["data"]) for part in told["parts"]], told["state"])
    words = [part["at"] for part in told["parts"] if part["event"] == "messages"]
    assert words[-1] - words[0] > 500, "they came when they were said, and not in the end"


def test_34_the_words_of_a_summary_are_in_no_stream_of_tokens(ada: Person) -> None:
    thread, custom, tokens = ada.thread(), [], ""
    for n in range(8):
        text = f"{n}: " + "The ferry leaves at seven. " * 15
        modes: Any = ["messages-tuple", "custom"]
        for part in ada.sdk.runs.stream(thread, "chat", input=message(text), context=SMALL, stream_mode=modes):
            custom += [part.data["name"]] if part.event == "custom" else []
            tokens += str(part.data[0]["content"]) if part.event == "messages" else ""
    assert "memory.summarized" in custom
    assert custom.count("memory.injected") == custom.count("memory.queued") == 8
    assert SUMMARY not in tokens
    assert tokens == "Noted." * 8


async def test_35_the_newest_protocol_says_which_checkpoint_a_state_equals(ada: Person) -> None:
    thread_id = ada.thread()
    headers = {"Authorization": f"Bearer {ada.token}"}
    async with (
        get_client(url=ada.place.url, headers=headers) as client,
        client.threads.stream(thread_id, assistant_id="chat") as thread,
    ):
        await thread.run.start(input=message("I keep bees."))
        events = [event async for event in thread.subscribe(["values", "checkpoints", "custom"])]
    pairs = [(event["method"], event["params"]["data"]) for event in events if event["method"] != "custom"]
    saved = {each["checkpoint"]["checkpoint_id"]: each for each in ada.sdk.threads.get_history(thread_id, limit=50)}
    stamped = [(envelope, state) for (_, envelope), (method, state) in pairwise(pairs) if method == "values"]
    assert len(stamped) >= 4
    for envelope, state in stamped:
        there: Any = saved[envelope["id"]]
        assert said(state) == said(there["values"])
        assert envelope["parent_id"] == there["parent_checkpoint"]["checkpoint_id"]
        assert (envelope["step"], envelope["source"]) == (there["metadata"]["step"], there["metadata"]["source"])
    assert "memory.injected" in str(events)


def test_36_the_example_shows_the_checkpoint_that_each_step_ended_in(opened: Place, meet: Meet) -> None:
    ada = meet(opened)
    turns = ["--say", "Good day.", "--say", "What do you see?", "--url", opened.url]
    done = subprocess.run(
        [sys.executable, "examples/stream.py", *turns], cwd=PROJECT, env=variables(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (thread,) = re.findall(r"^thread (\S+)$", done.stdout, re.M)
    shown = re.findall(r"checkpoint (\S+) step", done.stdout)
    saved = [each["checkpoint"]["checkpoint_id"] for each in ada.sdk.threads.get_history(thread, limit=50)]
    assert len(shown) >= 8
    assert set(shown) <= set(saved)
    assert "Noted." in done.stdout
    assert "memory.injected" in done.stdout


def test_37_the_javascript_client_talks_and_is_remembered(javascript: Any) -> None:
    told = javascript["talks"]
    assert "- [knowledge | 0.90] User lives in Oslo." in told["seen"]
    assert {told["told"], told["asked"]} <= set(told["threads"])


def test_38_every_event_carries_its_checkpoint_in_javascript(javascript: Any) -> None:
    events, saved = javascript["stamps"]["events"], javascript["stamps"]["saved"]
    assert {"on_chain_start", "on_chain_stream", "on_chain_end", "on_custom_event"} <= {each["type"] for each in events}
    for each in events:
        assert each["type"] == each["event"]
        assert set(each["checkpoint"]) == {"id", "parent_id", "step", "source"}
        assert each["checkpoint"]["id"] in saved
    assert events[-1]["checkpoint"]["id"] == saved[0]


def test_39_the_javascript_client_chooses_a_context_and_is_refused_a_bad_one(javascript: Any) -> None:
    told = javascript["chooses"]
    assert told["seen"].startswith("You are a pirate.")
    assert told["refused"]["status"] == 422
    assert "max_tokens" in told["refused"]["message"]
