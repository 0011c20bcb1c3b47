"""An exception and what it came from."""

from collections.abc import Iterator


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what it came from, each once; of a group the first."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        inner = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else None
        error = inner or error.__cause__ or error.__context__  # in which httpx leaves what TLS said
