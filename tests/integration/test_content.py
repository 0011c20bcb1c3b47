"""A thread with images, over the wire to a provider that reads them, and to one that refuses them."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.process.failures import ModelUnavailable
from graphs.process.models import Purpose, load_chat_model
from graphs.settings import Settings
from graphs.turn.context import Context
from memory.config import MemoryConfig
from memory.namespaces import Owner
from tests.fakes import RecordingModel, learns
from tests.stub_model import ChatRequest, Json, Reply, StubModel
from tests.untriggered import Untriggered

LOCAL = Owner.of("local")
PNG = "iVBORw0KGgoAAAANSUhEUg=="
PDF = "JVBERi0xLjQK"
IMAGE = {"type": "image", "mimeType": "image/png", "data": PNG, "metadata": {"name": "a.png"}}
FILE = {"type": "file", "mimeType": "application/pdf", "data": PDF, "metadata": {"filename": "menu.pdf"}}
NOTE = "[image left out: the model cannot read it]"


@dataclass
class Provider:
    """Answers like OpenAI: it refuses a content block that it does not know, and those of its model's blind kinds."""

    reads: tuple[str, ...] = ("text", "image_url", "file")
    said: str = "Noted."
    refusals: list[str] = field(default_factory=list)

    def __call__(self, request: ChatRequest) -> Reply:
        types = [str(block["type"]) for message in request.messages for block in blocks(message)]
        unknown = next((each for each in types if each not in self.reads), None)
        if unknown:
            self.refusals.append(unknown)
            return Reply(status=400, text=f"Invalid value: '{unknown}'. Supported values are: {self.reads}.")
        return Reply(text=self.said)


def blocks(message: Json) -> list[Json]:
    content = message.get("content")
    return content if isinstance(content, list) else []


class Talk:
    """One thread of the chat graph, whose model is asked over the wire."""

    def __init__(self, stub: StubModel) -> None:
        self.stub, self.store = stub, InMemoryStore()
        self.memory = RecordingModel(
            respond=lambda asked: learns(asked) if "Messages:" in asked[-1].text else "A talk."
        )
        config = MemoryConfig(update_spacing_seconds=0)
        settings = Settings(model="openai:any", openai_base_url=stub.url, single_user=True, memory=config)

        def load(name: str, purpose: Purpose) -> BaseChatModel:
            return load_chat_model(name, settings, purpose=purpose) if purpose == "chat" else self.memory

        self.service = Untriggered(settings, load)
        self.graph = build_graph(service=self.service).compile(checkpointer=InMemorySaver(), store=self.store)
        self.config: RunnableConfig = {"configurable": {"thread_id": "T"}}

    async def say(self, *content: Any, context: Context | None = None) -> AIMessage:
        """Send one message, and return its answer."""
        asked = HumanMessage([*content])
        state = await self.graph.ainvoke({"messages": [asked]}, self.config, context=context)
        answer = state["messages"][-1]
        assert isinstance(answer, AIMessage)
        return answer


def text(said: str) -> Json:
    return {"type": "text", "text": said}


async def test_an_image_and_a_file_of_a_chat_client_reach_openai_as_it_knows_them() -> None:
    with StubModel(Provider()) as stub:
        await Talk(stub).say(text("What is on it?"), IMAGE, FILE)
        (request,) = stub.requests
        assert request.messages[-1]["content"] == [
            text("What is on it?"),
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            {"type": "file", "file": {"filename": "menu.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}},
        ]


async def test_a_model_that_cannot_read_an_image_answers_without_it_and_is_not_asked_with_it_again() -> None:
    with StubModel(provider := Provider(reads=("text",))) as stub:
        talk = Talk(stub)
        assert (await talk.say(text("What is on it?"), IMAGE)).text == "Noted."
        assert stub.requests[-1].messages[-1]["content"] == f"What is on it?\n{NOTE}"
        await talk.say(text("And now?"))
        await talk.say(text("I like figs."))
        assert provider.refusals == ["image_url"]
        assert NOTE in stub.requests[-1].text
        state = await talk.graph.aget_state(talk.config)
        assert state.values["messages"][0].content == [text("What is on it?"), IMAGE]
        assert PNG not in json.dumps([one.additional_kwargs for one in state.values["messages"]])


async def test_what_no_package_can_translate_is_left_out_too() -> None:
    with StubModel(Provider(), strict=False) as stub:  # what nobody knows is sent once, and refused by the provider
        talk = Talk(stub)
        await talk.say(text("Read it."), {"type": "file", "url": "https://example.org/menu.pdf"})
        assert "[file left out: the model cannot read it]" in stub.requests[-1].text
        await talk.say(text("And this."), {"type": "hologram", "light": 1})
        assert "[attachment left out: the model cannot read it]" in stub.requests[-1].text


async def test_a_refusal_that_no_content_explains_is_told_as_before() -> None:
    with StubModel(lambda _: Reply(status=400, text="bad request")) as stub:
        talk = Talk(stub)
        with pytest.raises(ModelUnavailable):
            await talk.say(text("Hello."))
        assert len(stub.requests) == 1
        with pytest.raises(ModelUnavailable):
            await talk.say(text("Look."), IMAGE)
        assert len(stub.requests) == 3
