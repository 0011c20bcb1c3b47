"""One conversation of an export as the provider writes it: ChatGPT's tree, Claude's list. Pure."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from memory.backfill.conversation import PASTED, Conversation, Origin, said_by, text_id, unique
from memory.message import Role, StoredMessage

Json = Mapping[str, Any]

_NEITHER_SIDE = ("system", "developer", "tool", "function")
_ROLES: Mapping[object, Role] = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}
# What the two show as talk; others are tools' output, thoughts, and instructions that the user keeps.
_TALK = frozenset({"text", "multimodal_text", "voice_note"})
_MEMORIES = ("conversations_memory", "project_memories")
_OTHER_BRANCH: Final = "message of another branch"
_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])\s+|\n+")  # noqa: RUF001 - full-width punctuation is meant
_MARKS = " \t#*-_•"


class _Node(NamedTuple):
    """A message of an export, whichever provider wrote it.

    Attributes:
        id: Its id there.
        role: Who said it; `None` for neither side.
        time: When; where it does not tell, the one before does.
        text: What was said.
        pasted: Texts that came with it.
        others: The kinds of what it holds besides.
    """

    id: object
    role: Role | None
    time: object
    text: str
    pasted: Sequence[str]
    others: Sequence[str]


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
    raise ValueError(
        "this is no conversation of ChatGPT (it has no `mapping`) nor of Claude (no `chat_messages`), and no message: "
        'a line must have role, content and time, as {"role": "user", "content": "Hello.", …}'
    )


def is_export(value: Json) -> bool:
    """Say whether it is an entry of a provider's export: a conversation, or what Claude remembers."""
    return any(name in value for name in ("mapping", "chat_messages", *_MEMORIES))


def _remembered(value: Json) -> tuple[str, ...]:
    """Return the sentences of what Claude remembers, without headings: of each, somebody can say whether it is so."""
    texts = [_at(value, "conversations_memory"), *dict(_at(value, "project_memories") or {}).values()]
    lines = (line for text in texts if isinstance(text, str) for line in _SENTENCE_END.split(text))
    return tuple(bare for line in lines if " " in (bare := line.strip(_MARKS).replace("**", "")))


def read_chatgpt(value: Json) -> Conversation:
    """Return a conversation of ChatGPT's export: of its tree, the branch that ends at `current_node`.

    What the user edited away or had answered again hangs on other branches, and is not read.
    """
    if not isinstance(value["mapping"], Mapping):
        raise ValueError("`mapping` must be an object of nodes")
    parents = {key: _at(node, "parent") for key, node in value["mapping"].items() if isinstance(node, Mapping)}
    messages = {key: _at(value, "mapping", key, "message") for key in parents}
    nodes = {key: _of_chatgpt(key, message) for key, message in messages.items() if isinstance(message, Mapping)}
    leaf = value.get("current_node")
    if leaf not in parents:
        leaf = max(nodes, key=lambda key: (_seconds(nodes[key].time), key), default=None)
    branch = [nodes[key] for key in _branch(parents, leaf) if key in nodes]
    identity = value.get("conversation_id") or value.get("id")
    return _conversation("chatgpt", identity, branch, len(nodes), value.get("create_time"))


def _of_chatgpt(key: str, message: Json) -> _Node:
    kind = str(_at(message, "content", "content_type") or "text")
    parts = list(_at(message, "content", "parts") or ())
    # Images and sound are objects; the transcript of a sound is what was said.
    told = [(part, _at(part, "text") if isinstance(part, Mapping) else part) for part in parts]
    text = "\n".join(text for _, text in told if isinstance(text, str))
    others = [str(_at(part, "content_type")) for part, text in told if part and not isinstance(text, str)]
    role = _ROLES.get(_at(message, "author", "role"))
    is_hidden = _at(message, "metadata", "is_visually_hidden_from_conversation")
    if kind not in _TALK:
        role, others = None, [*others, kind]
    # What the model says to a tool is said to nobody.
    elif not role or is_hidden or message.get("recipient", "all") != "all":
        role, others = None, [*others, "tool or hidden message"] if text.strip() else others
    return _Node(message.get("id") or key, role, message.get("create_time"), text, (), others)


def read_claude(value: Json) -> Conversation:
    """Return a conversation of Claude's export; where its messages name their parents, the branch of the newest."""
    listed = value["chat_messages"]
    if not isinstance(listed, list):
        raise ValueError("`chat_messages` must be a list")
    messages = _objects(listed)
    parents = {each["uuid"]: each.get("parent_message_uuid") for each in messages if each.get("uuid")}
    branch = messages
    if any(each.get("parent_message_uuid") in parents for each in messages):
        leaf = value.get("current_leaf_message_uuid")
        path = _branch(parents, leaf if leaf in parents else messages[-1].get("uuid"))
        by_id = {each.get("uuid"): each for each in messages}
        branch = [by_id[key] for key in path]
    begun = value.get("created_at")
    return _conversation("claude", value.get("uuid"), [_of_claude(each) for each in branch], len(messages), begun)


def _of_claude(message: Json) -> _Node:
    blocks, attachments = _objects(message.get("content")), _objects(message.get("attachments"))
    texts = [each.get("text") for each in blocks if each.get("type") in _TALK]
    said = "\n\n".join(each for each in texts if isinstance(each, str) and each.strip())
    extracted = [(each.get("file_name") or "pasted", each.get("extracted_content")) for each in attachments]
    pasted = [f"[{name}] {text}" for name, text in extracted if isinstance(text, str) and text.strip()]
    others = [str(each.get("type")) for each in blocks if each.get("type") not in _TALK]
    others += ["file"] * len(_objects(message.get("files"))) + ["attachment"] * (len(attachments) - len(pasted))
    said = said or (message["text"] if isinstance(message.get("text"), str) else "")
    role = _ROLES.get(message.get("sender"))
    return _Node(message.get("uuid"), role, message.get("created_at"), said, pasted, others)


def _conversation(
    origin: Origin, identity: object, branch: Sequence[_Node], messages: int, begun: object
) -> Conversation:
    """Return the conversation of these messages, oldest first, of so many that there are with other branches."""
    said: list[StoredMessage] = []
    left, time = Counter({_OTHER_BRANCH: messages - len(branch)}), begun
    for node in branch:
        time = node.time or time
        left.update(node.others)
        if node.role is None:
            continue
        for text in node.pasted:
            if one := said_by(node.role, text, time):
                said.append(replace(one, id=PASTED + one.id))
        if one := said_by(node.role, node.text, time, id=node.id):
            said.append(one)
    # In an export without ids its first message names it, as long as nobody edits that.
    named = text_id(identity) or (said[0].id if said else "")
    return Conversation(origin, named, unique(said), left_out=+left)


def _branch(parents: Mapping[Any, object], leaf: object) -> list[Any]:
    """Return the keys from the root to a leaf; a tree that somebody tied into a ring ends where it comes round."""
    path: dict[Any, None] = {}
    while isinstance(leaf, str) and leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return list(reversed(path))


def _at(value: object, *path: str) -> Any:
    """Return what stands at a path of an object; `None` where the path leads nowhere."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _objects(value: object) -> list[Json]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _seconds(time: object) -> float:
    return time if isinstance(time, int | float) else 0.0  # as it is: no float holds a very large whole number


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
