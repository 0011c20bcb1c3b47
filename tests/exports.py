"""Exports of ChatGPT and Claude as their public formats describe them, made of talk that is our own."""

import io
import json
import zipfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

Talk = Sequence[tuple[str, str]]
"""Who says what, `user` or `assistant`, in turn."""

FIGS: Talk = [
    ("user", "I like figs more than any other fruit."),
    ("assistant", "Figs it is."),
    ("user", "My sister Ingrid lives in Tromsø."),
    ("assistant", "Noted: Ingrid, Tromsø."),
]


def times(begun: str, count: int) -> list[datetime]:
    """One minute after another."""
    first = datetime.fromisoformat(begun).replace(tzinfo=UTC)
    return [first + timedelta(minutes=at) for at in range(count)]


def chatgpt(identity: str, begun: str, talk: Talk) -> dict[str, Any]:
    """A conversation of ChatGPT: a tree with one branch, below a root without a message and a hidden system text."""
    hidden = {"is_visually_hidden_from_conversation": True}
    mapping: dict[str, Any] = {
        f"{identity}-root": {"id": f"{identity}-root", "message": None, "parent": None, "children": []},
    }
    parent = f"{identity}-root"
    said = [
        ("system", "You are helpful.", None),
        *((*each, at) for each, at in zip(talk, times(begun, 99), strict=False)),
    ]
    for number, (role, text, at) in enumerate(said):
        key = f"{identity}-{number}"
        mapping[parent]["children"].append(key)
        message: dict[str, Any] = {
            "id": key,
            "author": {"role": role, "name": None, "metadata": {}},
            "create_time": at.timestamp() if at else None,
            "content": {"content_type": "text", "parts": [text]},
            "status": "finished_successfully",
            "metadata": {} if at else hidden,
            "recipient": "all",
        }
        mapping[key] = {"id": key, "message": message, "parent": parent, "children": []}
        parent = key
    return {
        "title": "A talk",
        "create_time": times(begun, 1)[0].timestamp(),
        "mapping": mapping,
        "current_node": parent,
        "conversation_id": identity,
        "id": identity,
    }


def claude(identity: str, begun: str, talk: Talk) -> dict[str, Any]:
    """A conversation of Claude: a list of messages with blocks."""
    messages = []
    for number, ((role, text), at) in enumerate(zip(talk, times(begun, 99), strict=False)):
        time = at.isoformat().replace("+00:00", "Z")
        sender = "human" if role == "user" else "assistant"
        blocks = [{"type": "text", "text": text, "start_timestamp": time, "citations": []}]
        uuid = f"{identity}-{number}"
        messages.append({"uuid": uuid, "text": text, "content": blocks, "sender": sender, "created_at": time})
    return {"uuid": identity, "name": "A talk", "created_at": messages[0]["created_at"], "chat_messages": messages}


def jsonl(identity: str, begun: str, talk: Talk) -> str:
    """Lines of messages."""
    lines = [
        {"conversation": identity, "id": f"{identity}-{number}", "role": role, "content": text, "time": at.isoformat()}
        for number, ((role, text), at) in enumerate(zip(talk, times(begun, 99), strict=False))
    ]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def zipped(conversations: Iterable[Any], name: str = "conversations.json") -> bytes:
    """The ZIP that a provider sends."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("users.json", "[]")
        archive.writestr(name, json.dumps(list(conversations)))
    return packed.getvalue()
