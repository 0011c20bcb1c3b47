"""Spans tell how many and how long, never what was said."""

import subprocess
import sys

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from graphs.chat import build_graph
from graphs.process.service import MemoryService
from graphs.settings import Settings
from memory.model_calls import span
from memory.namespaces import Owner
from tests.fakes import RecordingModel, learns


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)  # once in a process: OpenTelemetry refuses a second one
    return exporter


async def test_a_turn_and_its_update_are_spans_without_a_word_of_it(exporter: InMemorySpanExporter) -> None:
    def respond(messages: list[BaseMessage]) -> str:
        return learns(messages) if "[1] user" in messages[-1].text else "yes"

    exporter.clear()
    service = MemoryService(Settings(model="fake:model"), lambda *_: RecordingModel(respond=respond))
    store = InMemoryStore()
    chat = build_graph(service=service).compile(checkpointer=InMemorySaver(), store=store)
    who: RunnableConfig = {"configurable": {"thread_id": "secret-thread", "langgraph_auth_user_id": "lovelace"}}
    await chat.ainvoke({"messages": [HumanMessage("I like figs.")]}, who)
    await service.adrain(store, Owner.of("lovelace"))
    service.close(0)
    spans = [each for each in exporter.get_finished_spans() if each.name.startswith("palimpsest.")]
    assert {each.name for each in spans} == {"palimpsest.summary", "palimpsest.recall", "palimpsest.extraction"}
    told = "".join(each.to_json() for each in spans)
    assert not [word for word in ("figs", "lovelace", "secret-thread") if word in told]


def test_a_failure_is_told_by_its_class_alone(exporter: InMemorySpanExporter) -> None:
    exporter.clear()

    def fails() -> None:
        with span("palimpsest.recall") as told:
            told(facts=3)
            raise ValueError("somebody likes figs")

    with pytest.raises(ValueError, match="figs"):
        fails()
    (failed,) = exporter.get_finished_spans()
    assert dict(failed.attributes or {}) == {"palimpsest.facts": 3, "error.type": "ValueError"}
    assert not failed.status.is_ok
    assert "figs" not in failed.to_json()


def test_a_text_is_no_attribute() -> None:
    with span("palimpsest.recall") as told, pytest.raises(TypeError, match="must be a number"):
        told(said="I like figs")


def test_without_the_api_there_are_no_spans_and_nothing_fails() -> None:
    # In a process of its own: this one has loaded the API.
    program = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from memory.model_calls import span, trace\n"
        "assert trace is None\n"
        "with span('palimpsest.recall') as told: told(facts=3)\n"
        "print('went on')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr
