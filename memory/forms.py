"""The JSON forms that a store keeps of frozen values, by their annotations alone."""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

T = TypeVar("T")

_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def otherwise(default: object) -> WrapValidator:
    """Return the annotation of a field that has a default where a hand garbled what stands there."""

    def read(value: object, handler: ValidatorFunctionWrapHandler) -> object:
        try:
            return handler(value)
        except ValueError:
            return default

    return WrapValidator(read)


def plain(value: object) -> dict[str, Any]:
    """Return plain JSON of a dataclass: its fields by their names."""
    fields: dict[str, Any] = _adapter(type(value)).dump_python(value, mode="json", warnings=False)
    return fields


def read_as(kind: type[T], value: object) -> T:
    """Return the dataclass of its JSON form; what is missing gets its default.

    Raises:
        ValueError: If it is none. The message names the field, and not what stands there: that may be somebody's text.
    """
    try:
        read: T = _adapter(kind).validate_python(value)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise ValueError(f"{place or 'the value'} must be what a {kind.__name__} has there") from None
    return read
