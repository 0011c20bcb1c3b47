"""What a refused request is answered with: a sentence, and the names of the fields that are wrong."""

from collections.abc import Sequence

from pydantic import BaseModel, Field, ValidationError
from starlette.responses import JSONResponse


class FieldError(BaseModel):
    """One wrong field."""

    field: str = Field(description="Its name, with dots: facts.3.confidence.")
    message: str


class Problem(BaseModel):
    """Why a request was refused."""

    detail: str
    errors: list[FieldError] = []


class Refused(Exception):
    """A request that is answered with an error status; everything in it may be shown to the caller."""

    def __init__(
        self, status: int, detail: str, errors: Sequence[FieldError] = (), *, retry_after: int | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.problem = Problem(detail=detail, errors=list(errors))
        self.headers = {} if retry_after is None else {"Retry-After": str(retry_after)}

    def response(self) -> JSONResponse:
        """Return the answer that says so."""
        return JSONResponse(self.problem.model_dump(), status_code=self.status, headers=self.headers)


def invalid(field: str, message: str) -> Refused:
    """Return the refusal of one field's value (422)."""
    return Refused(422, f"{field}: {message}", [FieldError(field=field, message=message)])


def from_validation(error: ValidationError) -> Refused:
    """Return the refusal that names every field pydantic found wrong, and repeats no value of them."""
    errors = [
        FieldError(field=".".join(map(str, each["loc"])) or "body", message=each["msg"])
        for each in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    return Refused(422, "; ".join(f"{each.field}: {each.message}" for each in errors[:5]), errors[:100])


def from_value_error(error: ValueError, fields: Sequence[str]) -> Refused:
    """Return the refusal for a rule of memory itself, whose messages begin with the field's name."""
    message = str(error)
    field = next((name for name in fields if message.startswith(name)), "body")
    return invalid(field, message.removeprefix(field).lstrip(": "))
