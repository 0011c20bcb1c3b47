"""One conversation of an export as its provider writes it, or one message as a line of JSON. Pure."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from memory.backfill.conversation import PASTED, Conversation, Origin, said_by, text_id, unique
from memory.message import Role, StoredMessage

Json = Mapping[str, Any]

_NEITHER_SIDE = ("system", "developer", "tool", "function")
_ROLES: Mapping[object, Role] = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}
# What the two show as talk; others are tools' output, thoughts, and instructions that the user keeps.
_TALK = frozenset({"text", "multimodal_text", "voice_note", "audio_transcription"})
_MEMORIES = ("conversations_memory", "project_memories")
_OTHER_BRANCH: Final = "message of another branch"
_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])\s+|\n+")  # noqa: RUF001 - full-width punctuation is meant
_MARKS = " \t#*-_•"


class _Said(NamedTuple):
    """What a message of an export says.

    Attributes:
        role: Who said it; `None` for neither side.
        text: What was said.
        pasted: Texts that came with it.
        others: The kinds of what it holds besides.
    """

    role: Role | None
    text: object
    pasted: list[str]
    others: list[str]


def read_exported(value: Json) -> Conversation:
    """Return the conversation that an entry of an export describes; `ValueError` says what is wrong with it."""
    try:
        if "mapping" in value:
            tree = {key: (_at(node, "parent"), _at(node, "message")) for key, node in value["mapping"].items()}
            identity = value.get("conversation_id") or value.get("id")
            return _branch("chatgpt", identity, tree, value.get("current_node"), value.get("create_time"))
        if "chat_messages" in value:
            # Older exports tell neither ids nor what answers what.
            listed = {
                each.get("uuid") or at: (each.get("parent_message_uuid"), each)
                for at, each in enumerate(value["chat_messages"])
            }
            leaf = value.get("current_leaf_message_uuid")
            return _branch("claude", value.get("uuid"), listed, leaf, value.get("created_at"))
        if any(name in value for name in _MEMORIES):
            return Conversation("claude", "", facts=_remembered(value))
    except (TypeError, AttributeError) as error:  # a list for an id, a number for a list: no provider writes that
        raise ValueError("it is not of the form that ChatGPT and Claude write") from error
    raise ValueError(
        "this is no conversation of ChatGPT (it has no `mapping`) nor of Claude (no `chat_messages`), and no message: "
        'a line must have role, content and time, as {"role": "user", "content": "Hello.", …}'
    )


def _remembered(value: Json) -> tuple[str, ...]:
    """Return the sentences of what Claude remembers, without headings: of each, somebody can say whether it is so."""
    texts = [_at(value, "conversations_memory"), *dict(_at(value, "project_memories") or {}).values()]
    lines = (line for text in texts if isinstance(text, str) for line in _SENTENCE_END.split(text))
    return tuple(bare for line in lines if " " in (bare := line.strip(_MARKS).replace("**", "")))


def _branch(
    origin: Origin, identity: object, messages: Mapping[Any, tuple[Any, Any]], leaf: object, time: object
) -> Conversation:
    """Return the conversation whose newest message is the leaf.

    What the user edited away or had answered again hangs on other branches, and is not read.

    Args:
        origin: Where it was held.
        identity: Its id there.
        messages: Under its key each message, after the key of the one that it answers.
        leaf: The key of the newest message that the user saw; otherwise the last one is that.
        time: When it was begun: so old is what does not tell when it was said, nor does the message before.
    """
    path = dict[Any, None]()
    said_last = (key for key in reversed([*messages]) if isinstance(messages[key][1], Mapping))
    at = leaf if leaf in messages else next(said_last, None)
    while at in messages and at not in path:  # a tree that somebody tied into a ring ends where it comes round
        path[at] = None
        at = messages[at][0]
    is_tree = any(parent in messages for parent, _ in messages.values())
    branch = [*reversed(path)] if is_tree else [*messages]
    said, left = list[StoredMessage](), Counter[str]()
    left[_OTHER_BRANCH] = sum(isinstance(messages[key][1], Mapping) for key in messages.keys() - {*branch})
    for key in branch:
        message = messages[key][1]
        if not isinstance(message, Mapping):
            continue
        time = message.get("create_time") or message.get("created_at") or time
        told = _read_message(message)
        left.update(told.others)
        for mark, name, text in (
            *((PASTED, None, each) for each in told.pasted),
            ("", message.get("id") or key, told.text),
        ):
            if told.role and (one := said_by(told.role, text, time, id=name)):
                said.append(replace(one, id=mark + one.id))
    # In an export without ids its first message names it, as long as nobody edits that.
    named = text_id(identity) or (said[0].id if said else "")
    return Conversation(origin, named, unique(said), left_out=+left)


def _read_message(message: Json) -> _Said:
    """Return what a message says: parts of one kind at ChatGPT, blocks with a kind each at Claude."""
    content, kind = message.get("content"), str(_at(message, "content", "content_type") or "text")
    texts, pasted, others = list[str](), list[str](), list[str]()
    for part in _as_list(_at(content, "parts") or content):
        text = part if isinstance(part, str) else _at(part, "text")
        sort = "text" if isinstance(part, str) else str(_at(part, "type") or _at(part, "content_type"))
        if isinstance(text, str) and sort in _TALK:
            texts.append(text)
        elif part:
            others.append(sort)
    for each in _as_list(message.get("attachments")):
        text = _at(each, "extracted_content")
        if isinstance(text, str) and text.strip():
            pasted.append(f"[{each.get('file_name') or 'pasted'}] {text}")
        else:
            others.append("attachment")
    others += ["file"] * len(_as_list(message.get("files")))
    said = "\n".join(filter(str.strip, texts)) or message.get("text")
    role = _ROLES.get(_at(message, "author", "role") or message.get("sender"))
    is_hidden = _at(message, "metadata", "is_visually_hidden_from_conversation")
    if kind not in _TALK:
        role, others = None, [*others, kind]
    # What the model says to a tool is said to nobody.
    elif not role or is_hidden or message.get("recipient", "all") != "all":
        role, others = None, [*others, *(["tool or hidden message"] if said else [])]
    return _Said(role, said, pasted, others)


def _at(value: object, *path: str) -> Any:
    """Return what stands at a path of an object; `None` where the path leads nowhere."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def read_line(value: Json, conversation: str) -> tuple[str, StoredMessage] | None:
    """Return the conversation's id and the message of a line of JSONL; `None` for what neither side said.

    Args:
        value: `role`, `content`, `time`, and, where they are known, `conversation`, `id` and `name`.
        conversation: The conversation of a line that names none.
    """
    if not isinstance(value.get("content"), str):
        raise ValueError("content must be text")
    if (role := _ROLES.get(said_as := str(value["role"]))) is None:
        if said_as in _NEITHER_SIDE:
            return None
        raise ValueError(f"role must be user or assistant, not {said_as[:80]!r}")
    message = said_by(role, value["content"], value.get("time"), str(value.get("name") or ""), value.get("id"))
    return (text_id(value.get("conversation")) or conversation, message) if message else None
