"""One conversation of an export as the provider writes it: ChatGPT's tree, Claude's list. Pure."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memory.backfill.conversation import PASTED, Conversation, said_by, text_id, unique
from memory.message import Role, StoredMessage

Json = Mapping[str, Any]

_NEITHER_SIDE = ("system", "developer", "tool", "function")
_ROLES: Mapping[object, Role] = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}
# What ChatGPT shows as talk; others are tools' output, thoughts, and instructions that the user keeps.
_TALK = frozenset({"text", "multimodal_text"})
_SAID_TO_CLAUDE = frozenset({"text", "voice_note"})
_MEMORIES = ("conversations_memory", "project_memories")
_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])\s+|\n+")  # noqa: RUF001 - full-width punctuation is meant
_MARKS = " \t#*-_•"


def read_conversation(value: Json) -> Conversation:
    """Return the conversation that an entry of an export describes; `ValueError` says what is wrong with it."""
    try:
        if "mapping" in value:
            return read_chatgpt(value)
        if "chat_messages" in value:
            return read_claude(value)
        if is_export(value):
            return Conversation("claude", "", facts=_remembered(value))
    except (TypeError, AttributeError) as error:  # a list for an id, a number for a list: no provider writes that
        raise ValueError("it is not of the form that ChatGPT and Claude write") from error
    raise ValueError("this is no conversation of ChatGPT (it has no `mapping`) nor of Claude (no `chat_messages`)")


def is_export(value: Json) -> bool:
    """Say whether it is an entry of a provider's export: a conversation, or what Claude remembers."""
    return any(name in value for name in ("mapping", "chat_messages", *_MEMORIES))


def _remembered(value: Json) -> tuple[str, ...]:
    """Return the sentences of what Claude remembers, without headings: of each, somebody can say whether it is so."""
    projects = value.get("project_memories")
    texts = [value.get("conversations_memory"), *(projects.values() if isinstance(projects, Mapping) else ())]
    lines = (line for text in texts if isinstance(text, str) for line in _SENTENCE_END.split(text))
    return tuple(bare for line in lines if " " in (bare := line.strip(_MARKS).replace("**", "")))


def read_chatgpt(value: Json) -> Conversation:
    """Return a conversation of ChatGPT's export: of its tree, the branch that ends at `current_node`.

    What the user edited away or had answered again hangs on other branches, and is not read.
    """
    mapping = value["mapping"]
    if not isinstance(mapping, Mapping):
        raise ValueError("`mapping` must be an object of nodes")
    nodes = {key: node for key, node in mapping.items() if isinstance(node, Mapping)}
    messages = {key: node["message"] for key, node in nodes.items() if isinstance(node.get("message"), Mapping)}
    leaf = value.get("current_node")
    if leaf not in nodes:
        leaf = max(messages, key=lambda key: (_said_at(messages[key]), key), default=None)
    time = value.get("create_time")
    said: list[StoredMessage] = []
    on_branch = [key for key in _branch(nodes, leaf, "parent") if key in messages]
    left = Counter({"message of another branch": len(messages) - len(on_branch)})
    for key in on_branch:
        message = messages[key]
        time = message.get("create_time") or time  # some messages have none: then the one before tells
        kind, text, others = _chatgpt_content(message)
        left.update(others)
        if kind not in _TALK:
            left[kind] += 1
        elif not (role := _chatgpt_role(message)):
            left["tool or hidden message"] += bool(text.strip())
        elif one := said_by(role, text, time):
            said.append(_with_id(one, message.get("id") or key))
    talk = _conversation("chatgpt", value.get("conversation_id") or value.get("id"), said)
    return replace(talk, left_out=+left)


def _objects(value: object) -> list[Json]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _said_at(message: Json) -> float:
    time = message.get("create_time")
    return float(time) if isinstance(time, int | float) else 0.0


def _branch(nodes: Mapping[Any, Json], leaf: object, parent: str) -> list[Any]:
    """Return the keys from the root to a leaf; a tree that somebody tied into a ring ends where it comes round."""
    path: dict[Any, None] = {}
    while isinstance(leaf, str) and leaf in nodes and leaf not in path:
        path[leaf] = None
        leaf = nodes[leaf].get(parent)
    return list(reversed(path))


def _chatgpt_role(message: Json) -> Role | None:
    author, metadata = message.get("author"), message.get("metadata")
    role = _ROLES.get(author.get("role")) if isinstance(author, Mapping) else None
    is_hidden = isinstance(metadata, Mapping) and metadata.get("is_visually_hidden_from_conversation")
    # What the model says to a tool is said to nobody.
    return None if is_hidden or message.get("recipient", "all") != "all" else role


def _chatgpt_content(message: Json) -> tuple[str, str, list[str]]:
    """Return of which kind a message is, what it says, and the kinds of what it holds beside texts."""
    content = message.get("content")
    if not isinstance(content, Mapping):
        return "text", "", []
    texts, others = [], []
    for part in content.get("parts") or ():
        # Images and sound are objects; the transcript of a sound is what was said.
        text = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(text, str):
            texts.append(text)
        elif isinstance(part, Mapping):
            others.append(str(part.get("content_type")))
    return str(content.get("content_type", "text")), "\n".join(texts), others


def read_claude(value: Json) -> Conversation:
    """Return a conversation of Claude's export; where its messages name their parents, the branch of the newest."""
    listed = value["chat_messages"]
    if not isinstance(listed, list):
        raise ValueError("`chat_messages` must be a list")
    messages = _objects(listed)
    by_id = {each["uuid"]: each for each in messages if each.get("uuid")}
    left = Counter[str]()
    if any(each.get("parent_message_uuid") in by_id for each in messages):
        leaf = value.get("current_leaf_message_uuid")
        leaf = leaf if leaf in by_id else messages[-1].get("uuid")
        on_branch = _branch(by_id, leaf, "parent_message_uuid")
        left["message of another branch"] = len(messages) - len(on_branch)
        messages = [by_id[key] for key in on_branch]
    said: list[StoredMessage] = []
    for each in messages:
        role = _ROLES.get(each.get("sender"))
        time = each.get("created_at") or value.get("created_at")
        blocks = _objects(each.get("content"))
        left.update(str(block.get("type")) for block in blocks if block.get("type") not in _SAID_TO_CLAUDE)
        left["file"] += len(_objects(each.get("files")))
        for file in _objects(each.get("attachments")):
            text = file.get("extracted_content")
            named = f"[{file.get('file_name') or 'pasted'}] {text}" if isinstance(text, str) and text.strip() else ""
            if role and (one := said_by(role, named, time)):
                said.append(replace(one, id=PASTED + one.id))
            else:
                left["attachment"] += 1
        if role and (one := said_by(role, _claude_text(each, blocks), time)):
            said.append(_with_id(one, each.get("uuid")))
    return replace(_conversation("claude", value.get("uuid"), said), left_out=+left)


def _claude_text(message: Json, blocks: Sequence[Json]) -> str:
    texts = [each.get("text") for each in blocks if each.get("type") in _SAID_TO_CLAUDE]
    said = "\n\n".join(each for each in texts if isinstance(each, str) and each.strip())
    return said or (message["text"] if isinstance(message.get("text"), str) else "")


def read_line(value: Json, conversation: str) -> tuple[str, StoredMessage] | None:
    """Return the conversation's id and the message of a line of JSONL; `None` for what neither side said.

    Args:
        value: `role`, `content`, `time`, and, where they are known, `conversation`, `id` and `name`.
        conversation: The conversation of a line that names none.
    """
    if "role" not in value:
        raise ValueError('a line must have role, content and time, as {"role": "user", "content": "Hello.", …}')
    if not isinstance(value.get("content"), str):
        raise ValueError("content must be text")
    if (role := _ROLES.get(said_as := str(value["role"]))) is None:
        if said_as in _NEITHER_SIDE:
            return None
        raise ValueError(f"role must be user or assistant, not {said_as[:80]!r}")
    message = said_by(role, value["content"], value.get("time"), str(value.get("name") or ""))
    named = text_id(value.get("conversation")) or conversation
    return (named, _with_id(message, value.get("id"))) if message else None


def _with_id(message: StoredMessage, identity: object) -> StoredMessage:
    return replace(message, id=text_id(identity) or message.id)


def _conversation(origin: Any, identity: object, said: Sequence[StoredMessage]) -> Conversation:
    # In an export without ids its first message names it, as long as nobody edits that.
    named = text_id(identity) or (said[0].id if said else "")
    return Conversation(origin, named, unique(said))
