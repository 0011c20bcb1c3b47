"""A thread with images, over the wire to a provider that reads them, and to one that refuses them."""

import json
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.messages import AIMessage, HumanMessage

from graphs.process.models import load_chat_model
from graphs.settings import Settings
from tests.laws.talk import Talk
from tests.stub_model import ChatRequest, Json, Reply, StubModel

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


class Told(Talk):
    """One thread of the chat graph, whose model is asked over the wire."""

    def __init__(self, stub: StubModel) -> None:
        settings: dict[str, Any] = {"model": "openai:any", "openai_base_url": stub.url}
        super().__init__(
            settings=settings, models={"chat": load_chat_model("openai:any", Settings(**settings), purpose="chat")}
        )

    async def tell(self, *content: Any) -> AIMessage:
        """Send one message, and return its answer."""
        state = await self.run({"messages": [HumanMessage([*content])]})
        return cast(AIMessage, state["messages"][-1])


def text(said: str) -> Json:
    return {"type": "text", "text": said}


async def test_an_image_and_a_file_of_a_chat_client_reach_openai_as_it_knows_them() -> None:
    with StubModel(Provider()) as stub:
        await Told(stub).tell(text("What is on it?"), IMAGE, FILE)
        (request,) = stub.requests
        assert request.messages[-1]["content"] == [
            text("What is on it?"),
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            {"type": "file", "file": {"filename": "menu.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}},
        ]


async def test_a_model_that_cannot_read_an_image_answers_without_it_and_is_not_asked_with_it_again() -> None:
    with StubModel(provider := Provider(reads=("text",))) as stub:
        talk = Told(stub)
        assert (await talk.tell(text("What is on it?"), IMAGE)).text == "Noted."
        assert stub.requests[-1].messages[-1]["content"] == f"What is on it?\n{NOTE}"
        await talk.tell(text("And now?"))
        await talk.tell(text("I like figs."))
        assert provider.refusals == ["image_url"]
        assert NOTE in stub.requests[-1].text
        kept = (await talk.values())["messages"]
        assert kept[0].content == [text("What is on it?"), IMAGE]
        assert PNG not in json.dumps([one.additional_kwargs for one in kept])


async def test_what_no_package_can_translate_is_left_out_too() -> None:
    with StubModel(Provider(), strict=False) as stub:  # what nobody knows is sent once, and refused by the provider
        talk = Told(stub)
        await talk.tell(text("Read it."), {"type": "file", "url": "https://example.org/menu.pdf"})
        assert "[file left out: the model cannot read it]" in stub.requests[-1].text
        await talk.tell(text("And this."), {"type": "hologram", "light": 1})
        assert "[attachment left out: the model cannot read it]" in stub.requests[-1].text
