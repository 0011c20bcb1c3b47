"""What a message carries beside its text: in standard form, and left out where a model cannot read it. Pure."""

import mimetypes
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from langchain_core.messages import AIMessage, BaseMessage

from memory.context.tokens import media_kind
from memory.message import TEXT_TYPES, changed

Block = dict[str, Any]
Message = TypeVar("Message", bound=BaseMessage)

SOURCES_KEY: Final = "palimpsest"
"""Where an answer says what of memory its model was shown."""
TOKENS_KEY: Final = "palimpsest_tokens"
"""A key of its own: clients take sources as the sign that a reply drew on memory."""
_NOTED = frozenset({SOURCES_KEY, TOKENS_KEY})

NOTHING_SENT = "[{kind} left out: nothing was sent with it]"

_TEXT_TYPES = frozenset({*TEXT_TYPES, "text-plain"})
_NESTED = ("image_url", "input_audio", "file", "source")
_DATA = ("base64", "data", "file_data", "result")
_URL = ("url", "file_url", "file_uri", "fileUri")
_FILE_ID = ("file_id", "fileId")
_MIME = ("mime_type", "mimeType", "media_type", "mediaType")
_NAME = ("filename", "name", "title")
_DATA_URL = re.compile(
    r"\Adata:(?P<mime>[^;,]{0,200})(?:;(?!base64,)[^;,]{0,200}){0,20};base64,(?P<data>.+)\Z", re.DOTALL
)

_USUAL = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "file": "application/pdf"}
# Providers know a sound by the word after the slash.
_SOUNDS = {"audio/mpeg": "audio/mp3", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/vnd.wave": "audio/wav"}  # fmt: skip  # noqa: E501


def standard(message: Message) -> Message:
    """Return the message with its text as text, and with each image, sound, video and file as a standard block.

    Clients name such blocks as LangChain for JavaScript does, as LangChain did before its version 1, or as a provider
    does. The packages of providers translate the standard form (and OpenAI's `image_url`); what they do not know they
    send as it is, and the provider refuses it. What the model itself said is for `as_sent`.
    """
    if isinstance(message.content, str) or isinstance(message, AIMessage):
        return message
    blocks = [block for block in map(_standard, message.content) if block != _text("")]
    if all(block.keys() == {"type", "text"} for block in blocks):
        # Some servers take no list where there is only text.
        return message.model_copy(update={"content": "\n".join(block["text"] for block in blocks)})
    return message.model_copy(update={"content": blocks})


def as_sent(messages: Iterable[Message], is_own: Callable[[AIMessage], bool]) -> list[Message]:
    """Return messages as a model may be sent them: of another provider's answers only text, media and calls.

    Thoughts, searches and other work of a provider are blocks and fields that no other provider takes. The ids of facts
    that an earlier answer was shown are taken out for every model, as it is sent all that a message holds.

    Args:
        messages: Anything that was said.
        is_own: Says whether an answer is in the model's own form.
    """

    def sent(message: Message) -> Message:
        if not isinstance(message, AIMessage) or is_own(message):
            return message
        blocks = [message.content] if isinstance(message.content, str) else message.content
        said = [block for block in map(_plain_block, blocks) if block]
        texts = [block["text"] for block in said if block["type"] == "text"]
        content = said if len(texts) < len(said) else "".join(texts)
        plain: Block = {"content": content, "additional_kwargs": {}, "response_metadata": {}}
        return message.model_copy(update=plain)

    fit = changed(messages, sent)
    for at, message in enumerate(fit):
        told = message.__dict__["response_metadata"]
        if not _NOTED.isdisjoint(told):
            kept = {key: value for key, value in told.items() if key not in _NOTED}
            fit[at] = message.model_copy(update={"response_metadata": kept})
    return fit


def _plain_block(block: str | Block) -> Block | None:
    """Return a block of an answer as any model may have it; `None` for what is neither text nor media."""
    if isinstance(block, str):
        return _text(block)
    if kind := media_kind(block):
        return _standard_media(block, kind)
    text = block.get("text", block.get("refusal"))
    return _text(text) if isinstance(text, str) else None


def _standard(block: str | Block) -> Block:
    if isinstance(block, str):
        return _text(block)
    if kind := media_kind(block):
        return block if _is_standard(block) else _standard_media(block, kind)
    if block.get("type", "text") not in _TEXT_TYPES:
        return block
    text = block.get("text")
    if not isinstance(text, str):
        return _standard_media(block, "file") if block.get("type") == "text-plain" else _text("")
    return block if block.get("type") == "text" else _text(text)


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _fields(block: Block) -> Block:
    """Return what a block says, on whatever level it says it; the innermost counts."""
    fields: Block = {}
    for name in ("metadata", "extras", None, *_NESTED):
        inner = block.get(name) if name else block
        if isinstance(inner, str) and name in _NESTED:
            inner = {"url": inner}
        fields |= inner if isinstance(inner, Mapping) else {}
    return fields


def _first(fields: Block, *names: str) -> str:
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), "")


def _is_standard(block: Block) -> bool:
    """Say whether a block is sent as it is, with what only some providers take, such as `cache_control`."""
    if block["type"] not in _USUAL or "source_type" in block:
        return False
    data, mime, url, file_id = (_first(block, name) for name in ("base64", "mime_type", "url", "file_id"))
    if data:
        is_told = mime not in ("", *_SOUNDS) and block["type"] == _kind_of(mime)
        return is_told and not data.startswith("data:")
    return bool(url or file_id) and not url.startswith("data:")


def _standard_media(block: Block, kind: str) -> Block:
    """Return a standard block for one in another form; a text in its place if it is a text, or if nothing is in it."""
    said = _fields(block)
    if said.get("source_type") == "text" or (said.get("type") == "text" and "source" in block):
        return _text(_first(said, "text", "url", *_DATA))
    data, url, name, file_id = (_first(said, *names) for names in (_DATA, _URL, _NAME, _FILE_ID))
    mime = _first(said, *_MIME) or (f"audio/{said['format']}" if isinstance(said.get("format"), str) else "")
    if found := _DATA_URL.fullmatch(data or url):
        data, url, mime = found["data"], "", found["mime"] or mime
    mime = mime or mimetypes.guess_type(name)[0] or ""
    if mime:  # it knows better than the block's type: agent-chat-ui calls every attachment a file
        kind = _kind_of(mime)
    if data:
        made: Block = {"type": kind, "base64": data, "mime_type": _SOUNDS.get(mime, mime) or _USUAL[kind]}
        if kind == "file":  # OpenAI wants a name for it
            made["extras"] = {"filename": name or f"file{mimetypes.guess_extension(made['mime_type']) or ''}"}
        return made
    if url and kind == "image":
        detail = {"detail": said["detail"]} if "detail" in said else {}
        return {"type": "image_url", "image_url": {"url": url, **detail}}
    if url:
        return {"type": kind, "url": url, **({"mime_type": mime} if mime else {})}
    if file_id := file_id or (str(said.get("id", "")) if said.get("source_type") == "id" else ""):
        return {"type": kind, "file_id": file_id}
    return _text(NOTHING_SENT.format(kind=kind))


def _kind_of(mime: str) -> str:
    family = mime.partition("/")[0]
    return family if family in _USUAL else "file"


REFUSED_KEY = "refused_content"
"""Where an answer names the messages of which its model could read the text alone: `{model: [message id, …]}`."""

NOTE = "[{kind} left out: the model cannot read it]"
ATTACHMENT = "attachment"
"""The kind of what is neither text nor anything that has a name here."""

Refused = frozenset[str]
"""The ids of messages of which a model is sent the text alone."""

NOTHING: Refused = frozenset()


def without_refused(message: BaseMessage, refused: Refused) -> BaseMessage:
    """Return the message with a note in the place of what was refused."""
    if isinstance(message.content, str) or message.id not in refused:
        return message
    blocks = [_text(NOTE.format(kind=kind)) if (kind := _kind_in(each, message)) else each for each in message.content]
    return message.model_copy(update={"content": blocks})


def refused_more(messages: Sequence[BaseMessage], refused: Refused) -> Refused | None:
    """Return of which messages to send the text alone after a provider refused these; `None` if there are no more.

    First of those that are new since the last answer; then of all.

    Args:
        messages: What the provider was sent.
        refused: Of which it was sent the text alone.
    """
    carrying = [
        (at, one.id or "") for at, one in enumerate(messages) if any(_kind_in(each, one) for each in one.content)
    ]
    answered = max((at for at, message in enumerate(messages) if isinstance(message, AIMessage)), default=-1)
    new = frozenset(identity for at, identity in carrying if at > answered)
    return next((ids for ids in (new, frozenset(dict(carrying).values())) if not refused.issuperset(ids)), None)


def refused_before(messages: Iterable[BaseMessage], model: str) -> Refused:
    """Return what a model could not read in earlier turns; a client may have written anything there."""
    found = NOTHING
    for message in messages:
        note = message.additional_kwargs.get(REFUSED_KEY)
        if isinstance(note, Mapping) and isinstance(ids := note.get(model), list):
            found |= {*map(str, ids)}
    return found


def _kind_in(block: object, message: BaseMessage) -> str:
    """Return the kind of a content block, or nothing for text, and for what the model says beside it."""
    if not isinstance(block, Mapping):
        return ""
    kind = media_kind(block)
    if kind is not None or isinstance(message, AIMessage):
        return kind or ""
    return "" if block.get("type") == "text" else ATTACHMENT
