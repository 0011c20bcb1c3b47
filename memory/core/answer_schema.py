"""The JSON schema of an extraction's answer, bounded by what it may hold. Pure."""

from collections.abc import Sequence
from typing import Final

from memory.config import CATEGORIES, MemoryConfig
from memory.core.changes import ACTIONS
from memory.core.profile import MAX_SECTION_CHARS, SECTIONS
from memory.message import StoredMessage

MAX_FACTS_PER_ANSWER: Final = 50
# A short message may hold a handful of facts ("I like figs, plums, tea"), a long one about one in so many characters.
_A_HANDFUL: Final = 5
_CHARS_PER_FACT: Final = 20


def answer_schema(new: Sequence[StoredMessage], config: MemoryConfig) -> dict[str, object]:
    """Return the schema of the answer to these new messages of the user.

    A small model may repeat itself without end; the bounds end it. Text one character longer than may be stored is
    allowed, so that one that was ended by its bound is known as too long.
    """
    most = min(MAX_FACTS_PER_ANSWER, _A_HANDFUL + sum(len(message.text) for message in new) // _CHARS_PER_FACT)
    fact = _object(
        message={"type": "integer"},
        action={"type": "string", "enum": list(ACTIONS)},
        known={"type": "integer"},
        content={"type": "string", "maxLength": config.max_fact_chars + 1},
        category={"type": "string", "enum": list(CATEGORIES)},
        confidence={"type": "number"},
    )
    section = _object(
        section={"type": "string", "enum": [name.partition(".")[2] for name in SECTIONS]},
        text={"type": "string", "maxLength": MAX_SECTION_CHARS + 1},
    )
    return {
        "title": "memory_update",
        "description": "What of the messages is worth remembering.",
        **_object(
            facts={"type": "array", "maxItems": most, "items": fact},
            profile={"type": "array", "maxItems": len(SECTIONS), "items": section},
        ),
    }


def _object(**properties: dict[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }
