"""Conversations put aside while files are read, so that they can be sent in the order in which they were held."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

from memory.backfill.conversation import Conversation, Origin

_BYTES_PER_TOKEN = 4
# What an extraction is told beside the conversation: what to do, and the facts that are known; and what it answers.
_PROMPT_TOKENS = 2_000
_ANSWER_TOKENS = 200


@dataclass(slots=True)
class ImportPlan:
    """What there is to import: counts, and estimates of what reading it costs.

    Attributes:
        conversations: How many.
        messages: How many.
        bytes: Of text, in UTF-8.
        first: When the first message was said, ISO 8601 in UTC; empty without any.
        last: When the last one was.
    """

    conversations: int = 0
    messages: int = 0
    bytes: int = 0
    first: str = ""
    last: str = ""

    def extractions(self, portion_messages: int) -> int:
        """Return how many extractions read it, at least: short conversations are not read together."""
        return max(self.conversations, -(-self.messages // portion_messages))

    def tokens(self, portion_messages: int) -> tuple[int, int]:
        """Return about how many tokens a model reads and writes."""
        calls = self.extractions(portion_messages)
        return self.bytes // _BYTES_PER_TOKEN + calls * _PROMPT_TOKENS, calls * _ANSWER_TOKENS


@dataclass(slots=True)
class Spool:
    """Conversations in a temporary file that has no name, and is gone with the process, however that ends.

    Parts of one conversation, which may stand far apart in a file, are one again.
    """

    plan: ImportPlan = field(default_factory=ImportPlan)
    _file: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    _places: dict[tuple[Origin, str], list[tuple[int, int]]] = field(default_factory=dict)
    _begun: dict[tuple[Origin, str], str] = field(default_factory=dict)

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, conversation: Conversation) -> None:
        """Put a conversation aside, or a part of one; one without messages is nothing."""
        if not conversation.messages:
            return
        key = (conversation.origin, conversation.id)
        raw = json.dumps(conversation.to_json(), ensure_ascii=False).encode("utf-8", "replace")
        self._places.setdefault(key, []).append((self._file.tell(), len(raw)))
        self._file.write(raw)
        begun, last = conversation.begun, max(one.time for one in conversation.messages)
        self._begun[key] = min(self._begun.get(key, begun), begun)
        self.plan.conversations = len(self._places)
        self.plan.messages += len(conversation.messages)
        self.plan.bytes += sum(len(one.text.encode("utf-8", "replace")) for one in conversation.messages)
        self.plan.first = min(self.plan.first or begun, begun)
        self.plan.last = max(self.plan.last, last)

    def __iter__(self) -> Iterator[Conversation]:
        """Yield the conversations, oldest first: what was said later corrects what was said before."""
        for key in sorted(self._places, key=lambda key: (self._begun[key], key)):
            parts = []
            for offset, length in self._places[key]:
                self._file.seek(offset)
                parts.append(Conversation.from_json(json.loads(self._file.read(length))))
            # The same message may stand in two files; parts of a conversation may stand in any order.
            said = {one.id: one for part in parts for one in part.messages}
            messages = (
                tuple(said.values()) if len(parts) == 1 else tuple(sorted(said.values(), key=lambda one: one.time))
            )
            yield Conversation(*key, messages)
        self._file.seek(0, 2)
