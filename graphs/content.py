"""What a message carries beside its text, in LangChain's standard form, whatever a client calls it. Pure."""

import mimetypes
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, BaseMessage

from memory.context.tokens import media_kind

Block = dict[str, Any]
Message = TypeVar("Message", bound=BaseMessage)

NOTHING_SENT = "[{kind} left out: nothing was sent with it]"

_TEXT_TYPES = frozenset({"text", "input_text", "output_text", "text-plain"})
_NESTED = ("image_url", "input_audio", "file", "source")
_DATA = ("base64", "data", "file_data")
_URL = ("url", "file_url", "file_uri", "fileUri")
_FILE_ID = ("file_id", "fileId")
_MIME = ("mime_type", "mimeType", "media_type", "mediaType")
_NAME = ("filename", "name", "title")
_DATA_URL = re.compile(
    r"\Adata:(?P<mime>[^;,]{0,200})(?:;(?!base64,)[^;,]{0,200}){0,20};base64,(?P<data>.+)\Z", re.DOTALL
)

# How a file begins, in base64: what a client does not name is told by its first bytes.
_BEGINNINGS = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi0": "application/pdf",
}
_USUAL = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "file": "application/pdf"}
# Providers know a sound by the word after the slash.
_SOUNDS = {"audio/mpeg": "audio/mp3", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/vnd.wave": "audio/wav"}  # fmt: skip  # noqa: E501


def standard(message: Message) -> Message:
    """Return the message with its text as text, and with each image, sound, video and file as a standard block.

    Clients name such blocks as LangChain for JavaScript does, as LangChain did before its version 1, or as a provider
    does. The packages of providers translate the standard form (and OpenAI's `image_url`); what they do not know they
    send as it is, and the provider refuses it. What the model itself said stays as it is.
    """
    if isinstance(message.content, str) or isinstance(message, AIMessage):
        return message
    blocks = [block for block in map(_standard, message.content) if block != _text("")]
    if all(block.keys() == {"type", "text"} for block in blocks):
        # Some servers take no list where there is only text.
        return message.model_copy(update={"content": "\n".join(block["text"] for block in blocks)})
    return message.model_copy(update={"content": blocks})


def _standard(block: str | Block) -> Block:
    if isinstance(block, str):
        return _text(block)
    kind = media_kind(block)
    if kind is not None:
        return block if _is_standard(block) else _media(block, kind)
    if block.get("type", "text") not in _TEXT_TYPES:
        return block
    text = block.get("text")
    if not isinstance(text, str):
        return _media(block, "file") if block.get("type") == "text-plain" else _text("")
    return block if block.get("type") == "text" else _text(text)


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _is_standard(block: Block) -> bool:
    if block["type"] not in _USUAL or "source_type" in block:
        return False
    if isinstance(block.get("base64"), str):
        return isinstance(block.get("mime_type"), str)
    url = block.get("url")
    return isinstance(block.get("file_id"), str) or (isinstance(url, str) and not url.startswith("data:"))


def _media(block: Block, kind: str) -> Block:
    """Return a standard block for one in another form; a text in its place if it is a text, or if nothing is in it."""
    said = _fields(block)
    if said.get("source_type") == "text" or (said.get("type") == "text" and "source" in block):
        return _text(_first(said, ("text", "url", *_DATA)))
    data, url, name = _first(said, _DATA), _first(said, _URL), _first(said, _NAME)
    mime = _first(said, _MIME) or (f"audio/{said['format']}" if isinstance(said.get("format"), str) else "")
    if found := _DATA_URL.fullmatch(data or url):
        data, url, mime = found["data"], "", found["mime"] or mime
    mime = mime or mimetypes.guess_type(name)[0] or _beginning(data)
    kind = _kind(mime) if mime else kind
    if data:
        return _of_data(kind, data, _SOUNDS.get(mime, mime) or _USUAL[kind], name)
    if url and kind == "image":
        detail = {"detail": said["detail"]} if "detail" in said else {}
        return {"type": "image_url", "image_url": {"url": url, **detail}}
    if url:
        return {"type": kind, "url": url, **({"mime_type": mime} if mime else {})}
    if file_id := _first(said, _FILE_ID) or (str(said.get("id", "")) if said.get("source_type") == "id" else ""):
        return {"type": kind, "file_id": file_id}
    return _text(NOTHING_SENT.format(kind=kind))


def _fields(block: Block) -> dict[str, Any]:
    """Return what a block says, on whatever level it says it; the innermost counts."""
    fields: dict[str, Any] = {}
    for extra in ("metadata", "extras"):
        if isinstance(block.get(extra), Mapping):
            fields |= block[extra]
    fields |= block
    for name in _NESTED:
        inner = block.get(name)
        fields |= inner if isinstance(inner, Mapping) else {"url": inner} if isinstance(inner, str) else {}
    return fields


def _of_data(kind: str, data: str, mime: str, name: str) -> Block:
    # OpenAI wants a name for a file.
    named = {"extras": {"filename": name or f"file{mimetypes.guess_extension(mime) or ''}"}} if kind == "file" else {}
    return {"type": kind, "base64": data, "mime_type": mime, **named}


def _kind(mime: str) -> str:
    family = mime.partition("/")[0]
    return family if family in _USUAL else "file"


def _beginning(data: str) -> str:
    return next((mime for beginning, mime in _BEGINNINGS.items() if data.startswith(beginning)), "")


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), "")
