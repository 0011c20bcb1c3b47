"""Images, sounds and files reach every provider's package in a form that it translates, whatever client wrote them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.content import is_data_content_block

from graphs.turn.content import standard

PNG = "iVBORw0KGgoAAAANSUhEUg=="
PDF = "JVBERi0xLjQK"
SOUND = "UklGRiQAAABXQVZF"
IMAGE = {"type": "image", "base64": PNG, "mime_type": "image/png"}
FILE = {"type": "file", "base64": PDF, "mime_type": "application/pdf", "extras": {"filename": "menu.pdf"}}
AUDIO = {"type": "audio", "base64": SOUND, "mime_type": "audio/wav"}
HTTP = "https://example.org/a.png"


@pytest.mark.parametrize(
    "block",
    [
        pytest.param({"type": "image", "mimeType": "image/png", "data": PNG, "metadata": {"name": "a.png"}}, id="ui"),
        pytest.param({"type": "image", "mime_type": "image/png", "data": PNG}, id="snake"),
        pytest.param({"type": "image", "data": PNG}, id="nameless"),
        pytest.param({"type": "image", "data": f"data:image/png;base64,{PNG}"}, id="data url in data"),
        pytest.param({"type": "image", "url": f"data:image/png;base64,{PNG}"}, id="data url in url"),
        pytest.param({"type": "image", "source_type": "base64", "mime_type": "image/png", "data": PNG}, id="v0"),
        pytest.param({"type": "file", "mimeType": "image/png", "data": PNG}, id="an image as a file"),
        pytest.param({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}, id="openai"),
        pytest.param({"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}, id="responses"),
        pytest.param(
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}, id="anthropic"
        ),
        pytest.param({"type": "media", "mime_type": "image/png", "data": PNG}, id="google"),
        pytest.param(IMAGE, id="standard"),
    ],
)
def test_an_image_is_a_standard_image(block: dict[str, Any]) -> None:
    assert standard(HumanMessage([block])).content == [IMAGE]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "file", "mimeType": "application/pdf", "data": PDF, "metadata": {"filename": "menu.pdf"}},
        {"type": "file", "source_type": "base64", "mime_type": "application/pdf", "data": PDF, "filename": "menu.pdf"},
        {"type": "file", "file": {"filename": "menu.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}},
        {"type": "input_file", "filename": "menu.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
        {
            "type": "document",
            "title": "menu.pdf",
            "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
        },
    ],
)
def test_a_file_is_a_standard_file_with_its_name(block: dict[str, Any]) -> None:
    assert standard(HumanMessage([block])).content == [FILE]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "audio", "mimeType": "audio/x-wav", "data": SOUND},
        {"type": "audio", "source_type": "base64", "mime_type": "audio/wav", "data": SOUND},
        {"type": "input_audio", "input_audio": {"data": SOUND, "format": "wav"}},
    ],
)
def test_a_sound_is_a_standard_sound(block: dict[str, Any]) -> None:
    assert standard(HumanMessage([block])).content == [AUDIO]


@pytest.mark.parametrize(
    ("block", "sent"),
    [
        ({"type": "image", "url": HTTP}, {"type": "image", "url": HTTP}),
        ({"type": "image_url", "image_url": HTTP}, {"type": "image_url", "image_url": {"url": HTTP}}),
        (
            {"type": "image_url", "image_url": {"url": HTTP, "detail": "low"}},
            {"type": "image_url", "image_url": {"url": HTTP, "detail": "low"}},
        ),
        ({"type": "file", "fileId": "file-1"}, {"type": "file", "file_id": "file-1"}),
        ({"type": "file", "source_type": "id", "id": "file-1"}, {"type": "file", "file_id": "file-1"}),
        ({"type": "tool_reference", "tool_name": "look"}, {"type": "tool_reference", "tool_name": "look"}),
    ],
)
def test_what_lies_elsewhere_is_named_and_what_nobody_knows_stays(block: dict[str, Any], sent: dict[str, Any]) -> None:
    assert standard(HumanMessage([block])).content == [sent]


@pytest.mark.parametrize("block", [IMAGE, FILE, {"type": "image", "url": HTTP}, {"type": "file", "file_id": "file-1"}])
@pytest.mark.parametrize(
    "more", [{"cache_control": {"type": "ephemeral"}}, {"extras": {"citations": {"enabled": True}}}]
)
def test_what_only_some_providers_take_stays_on_a_standard_block(block: dict[str, Any], more: dict[str, Any]) -> None:
    assert standard(HumanMessage([{**block, **more}])).content == [{**block, **more}]


def test_the_type_of_a_file_that_lies_elsewhere_is_told() -> None:
    block = {"type": "file", "file_id": "files/1", "mime_type": "application/pdf"}
    assert standard(HumanMessage([{**block}])).content == [block]


@pytest.mark.parametrize("place", [{"url": HTTP}, {"file_id": "file-1"}])
def test_a_standard_block_is_the_kind_that_its_client_says(place: dict[str, str]) -> None:
    block = {"type": "file", "mime_type": "image/png", **place}
    assert standard(HumanMessage([{**block}])).content == [block]


def test_a_file_of_no_name_and_no_type_is_named_as_what_it_is_taken_for() -> None:
    sent = standard(HumanMessage([{"type": "file", "data": PDF[1:]}])).content
    assert sent == [{**FILE, "base64": PDF[1:], "extras": {"filename": "file.pdf"}}]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "hello"}], "hello"),
        (["one", {"type": "text", "text": ""}, {"type": "input_text", "text": "two"}], "one\ntwo"),
        ([{"type": "text-plain", "text": "a note", "mime_type": "text/plain"}], "a note"),
        ([{"type": "file", "source_type": "text", "text": "a note"}], "a note"),
        ([{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a note"}}], "a note"),
        ([{"type": "image", "mimeType": "image/png"}], "[image left out: nothing was sent with it]"),
        ([], ""),
    ],
)
def test_what_is_only_text_is_sent_as_text(content: Any, text: str) -> None:
    assert standard(HumanMessage(content)).content == text
    assert standard(ToolMessage(content, tool_call_id="1")).content == text


def test_what_the_model_said_stays_as_it_is() -> None:
    said = AIMessage([{"type": "thinking", "thinking": "…", "signature": "s"}, {"type": "text", "text": "yes"}])
    assert standard(said) is said
    cached = [{"type": "text", "text": "long", "cache_control": {"type": "ephemeral"}}]
    assert standard(HumanMessage([*cached])).content == cached


a_value = st.sampled_from([PNG, f"data:image/png;base64,{PNG}", HTTP, "", 5, None, {"url": HTTP}])
NAMES = "base64 data url image_url source file mimeType mime_type id file_id text source_type"
a_name = st.sampled_from(NAMES.split())
TYPES = "image image_url input_image audio file document media text text-plain"
a_type = st.sampled_from(TYPES.split())
a_block = st.builds(lambda kind, rest: {**rest, "type": kind}, a_type, st.dictionaries(a_name, a_value, max_size=5))


@given(st.lists(a_block, max_size=3))
def test_whatever_a_client_sends_what_comes_of_it_is_text_or_known_and_stays_the_same(content: Any) -> None:
    once = standard(HumanMessage(content))
    for block in [] if isinstance(once.content, str) else once.content:
        assert isinstance(block, dict)
        assert block["type"] in ("text", "image_url") or is_data_content_block(block)
    assert standard(once).content == once.content
