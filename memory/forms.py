"""The JSON forms that a store keeps of frozen values, by their annotations alone."""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from langgraph.store.base import Item
from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")

_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def plain(value: object) -> dict[str, Any]:
    """Return plain JSON of a dataclass: its fields by their names."""
    fields: dict[str, Any] = _adapter(type(value)).dump_python(value, mode="json", by_alias=True, warnings=False)
    return fields


def read_as(kind: type[T], value: object, needed: Collection[str] | None = None) -> T:
    """Return the dataclass of its JSON form; what is missing gets its default.

    Args:
        kind: Which one.
        value: What a store keeps, perhaps edited by hand.
        needed: The fields that have to be right; what is garbled in others gets its default, too. `None`: all.

    Raises:
        ValueError: If it is none. The message names the field, and not what stands there: that may be somebody's text.
    """
    try:
        read: T = _adapter(kind).validate_python(value)
    except ValidationError as error:
        places = [each["loc"] for each in error.errors(include_context=False, include_input=False, include_url=False)]
        garbled = {str(place[0]) for place in places if place}
        wrong = next((place for place in places if needed is None or not place or place[0] in needed), None)
        if wrong is None and isinstance(value, Mapping) and garbled & value.keys():
            return read_as(kind, {name: each for name, each in value.items() if name not in garbled}, needed)
        place = ".".join(map(str, wrong or places[0]))
        raise ValueError(f"{place or 'the value'} must be what a {kind.__name__} has there") from None
    return read


def of_item(kind: type[T], item: Item | None) -> T:
    """Return the value of an item; what is missing or garbled in it, or all where there is none, is the default."""
    return read_as(kind, item.value if item else {}, ())


def of_items(kind: type[T], items: Iterable[Item], needed: Collection[str] | None = None) -> dict[str, T]:
    """Return the values that items hold, by their keys; those that a hand garbled are passed over.

    Args:
        kind: Which values.
        items: As a store returns them.
        needed: As for `read_as`.
    """
    found = dict[str, T]()
    for item in items:
        with suppress(ValueError):
            found[item.key] = read_as(kind, item.value, needed)
    return found
