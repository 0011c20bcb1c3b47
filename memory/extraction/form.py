"""The form of an answer: what the memory model is asked for, and what of its answer can be read. Pure.

One class is the schema of the answer, its description in the prompt, and its parser. A field that cannot be read is
empty, so that one bad field is judged as such and costs no other fact.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    OnErrorOmit,
    ValidationError,
)

from memory.config import MEANINGS, Category, MemoryConfig, Topic
from memory.facts.changes import Action
from memory.facts.profile import MAX_SECTION_CHARS, SECTIONS
from memory.message import StoredMessage
from memory.text import one_line

# Holds also where a server takes no schema, and a model that repeats itself goes on to its length limit.
MAX_FACTS_PER_ANSWER: Final = 50
# A short message may hold a handful of facts ("I like figs, plums, tea"), a long one about one in so many characters.
_A_HANDFUL: Final = 5
_CHARS_PER_FACT: Final = 20

_Text = Annotated[str, AfterValidator(one_line)]


class FoundFact(BaseModel):
    """One fact of an answer, as far as it can be read; nothing of it is judged yet."""

    model_config = ConfigDict(allow_inf_nan=False)

    message: int | None = Field(default=None, ge=1, description="the number of the user's message")
    quote: _Text | None = Field(
        default=None,
        description="the words of that message that say it, copied exactly; if the user only agrees or chooses, the "
        "words of the assistant's line before it",
    )
    action: Action | None = Field(
        default="new",
        description='"new"; for a known fact "confirms" (said again), "corrects" (the content is the new truth), or '
        '"ends" (over)',
    )
    known: int | None = Field(default=None, description="the number of the known fact, 0 if it is new")
    content: _Text | None = Field(default=None, description="the sentence, numbers as they were said")
    category: Category | None = Field(
        default=None, description=", ".join(f'"{name}" ({meaning})' for name, meaning in MEANINGS.items())
    )
    confidence: float | None = Field(
        default=None, ge=0, le=1, description="0.9 if the user said it, 0.6 if it only follows"
    )
    topic: Topic | None = Field(
        default=None,
        description='"health", "money", or "people" (anybody but the user) if it tells something private of that; '
        'otherwise "none"',
    )
    valid_from: str | None = Field(
        default=None, description='from when it holds, as "2026-05-08", "2026-05" or "2026"; "" if nobody said'
    )
    valid_until: str | None = Field(default=None, description="until when, in the same form")

    @classmethod
    def of(cls, value: object) -> Self:
        """Return what can be read of a value; of one that is no object, the text that it may be, and no action."""
        if not isinstance(value, Mapping):
            return cls(action=None, content=value if isinstance(value, str) else None)
        said = {name: each for name, each in value.items() if not isinstance(each, bool)}
        try:
            return cls.model_validate(said)
        except ValidationError as error:
            return cls.model_validate({**said, **dict.fromkeys(str(each["loc"][0]) for each in error.errors())})


FACT_LISTS: Final = ("facts", "newFacts", "memories")
"""How models call the list of facts."""


def _found(value: object) -> list[FoundFact]:
    listed = value if isinstance(value, list | tuple) else ()
    return [each if isinstance(each, FoundFact) else FoundFact.of(each) for each in listed]


def _by_name(value: object) -> Any:
    """Return the sections of a profile by their names, as some models tell them, also of a list of objects."""
    if not isinstance(value, list):
        return value
    told = (each for each in value if isinstance(each, Mapping) and isinstance(each.get("text"), str))
    return {str(each.get("section")): each["text"] for each in told}


class Answer(BaseModel, frozen=True):
    """The parts of an answer as they were found; nothing in them is judged yet.

    Attributes:
        facts: Its facts; of a small model's sentences only the content.
        profile: Its sections, by name.
        sensitive: The numbers of the messages that it marks as sensitive; `None` if it marks none as anything.
        secrets: The passwords and codes that it found.
        orders: The numbers of the messages that it marks as orders.
        unread: How many facts more there seem to be.
    """

    facts: Annotated[tuple[FoundFact, ...], BeforeValidator(_found)] = Field(
        default=(), validation_alias=AliasChoices(*FACT_LISTS)
    )
    profile: Annotated[dict[str, OnErrorOmit[str]], BeforeValidator(_by_name)] = {}
    sensitive: tuple[int, ...] | None = None
    secrets: tuple[OnErrorOmit[str], ...] = ()
    orders: tuple[OnErrorOmit[int], ...] = ()
    unread: int = 0


FIELDS: Final = "\n".join(f'"{name}": {field.description};' for name, field in FoundFact.model_fields.items())
"""The fields of a fact as the prompt tells them."""


def answer_schema(new: Sequence[StoredMessage], config: MemoryConfig) -> dict[str, object]:
    """Return the schema of the answer to these new messages of the user.

    A small model may repeat itself without end; the bounds end it. Text one character longer than may be stored is
    allowed, so that one that was ended by its bound is known as too long.
    """
    most = min(MAX_FACTS_PER_ANSWER, _A_HANDFUL + sum(len(message.text) for message in new) // _CHARS_PER_FACT)
    section = object_schema(
        section={"type": "string", "enum": [name.partition(".")[2] for name in SECTIONS]},
        text={"type": "string", "maxLength": MAX_SECTION_CHARS + 1},
    )
    numbers: dict[str, object] = {"type": "array", "maxItems": len(new), "items": {"type": "integer"}}
    told = {name: each["anyOf"][0] for name, each in FoundFact.model_json_schema()["properties"].items()}
    bound = {"maxLength": config.max_fact_chars + 1}
    fact = object_schema(
        **{
            name: {
                **{key: each[key] for key in ("type", "enum") if key in each},
                **(bound if each["type"] == "string" and "enum" not in each else {}),
            }
            for name, each in told.items()
        }
    )
    return {
        "title": "memory_update",
        "description": "What of the messages is worth remembering.",
        **object_schema(
            facts={"type": "array", "maxItems": most, "items": fact},
            profile={"type": "array", "maxItems": len(SECTIONS), "items": section},
            sensitive=numbers,
            secrets={"type": "array", "maxItems": most, "items": {"type": "string", **bound}},
            orders=numbers,
        ),
    }


def object_schema(**properties: dict[str, object]) -> dict[str, object]:
    """Return the schema of an object with these properties and no others."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }
