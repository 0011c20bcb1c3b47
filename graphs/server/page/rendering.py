"""From templates to answers: always the whole page, of which a script takes what differs from what it shows."""

from collections.abc import Mapping, Sequence
from datetime import date, tzinfo
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from graphs.server.api.guard import RefusedRequest
from graphs.server.page.assets import missing
from graphs.server.threads import may_have_row
from memory.config import APPROVALS, CATEGORIES
from memory.facts.fact import moment

_TEMPLATES = Path(__file__).with_name("templates")
# What stands in a fact must never run, whoever wrote it there: no script but ours is run, wherever it stands.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without a referrer, a browser names no origin with a form either
    "Cache-Control": "no-store",
}
VIEWS = {
    "chat": "Chat",
    "facts": "Facts",
    "profile": "Profile",
    "journal": "Journal",
    "updates": "Waiting",
    "bin": "Bin",
    "preview": "Preview",
    "data": "Your data",
}
WHY = {
    "health": "about health",
    "money": "about money",
    "people": "about other people",
    "secret": "may hold a secret",
    "order": "reads as an order to the assistant",
    "number": "has a number that you may not have said",
}
"""Why something waits for a yes."""
SAID = {
    "added": "Added.",
    "known": "This was known already.",
    "saved": "Saved.",
    "deleted": "{n} deleted.",
    "restored": "{n} restored.",
    "undone": "Taken back: memory is as it was before.",
    "back": "Brought back.",
    "erased": "Erased for good.",
    "everything": "Erased: {n} items of memory, and all conversations.",
    "remembered": "It is remembered.",
    "refused": "It is not remembered.",
    "refused-all": "{n} are not remembered.",
    "asked": "Saved. What is in use already stays so.",
    "again": "It waits again.",
    "yes": "It may be recalled.",
    "no": "It is not recalled.",
    "yes-all": "{n} may be recalled.",
    "no-all": "{n} are not recalled.",
}
"""What a form has done, as the address that it leads to says it."""
UNDO = {"at": "facts-undo", "key": "line-answer"}
"""What takes that back, by what the address says of it."""
NO_PAGE = "There is no such page. Choose a part of it above."
FIELDS = {"content": "The fact", "text": "The text", "erase": "The word"}
_FORMS = {"Input should": "should", "String should": "should", "Field required": "is missing: fill it in"}
_PLAINLY = {
    "no fact ": "This fact is not there any more: it was deleted or erased elsewhere.",
    "content: fact_": "Another fact says this already: keep one of them.",
    "memory is full": "Memory is full, and all in it is pinned or written by hand: delete or unpin a fact first.",
}
"""What the memory API tells programs, for people."""
_UNITS = ((86_400 * 365, "year"), (86_400 * 30, "month"), (86_400, "day"), (3600, "hour"), (60, "minute"))


@cache
def templates() -> Environment:
    """Return the templates, read once a process."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {"ago": ago, "clock": clock, "date": date_in_words, "percent": lambda share: f"{share:.0%}"}
    made.filters["has_row"] = may_have_row
    made.globals |= {"views": VIEWS, "categories": CATEGORIES, "approvals": APPROVALS, "why": WHY}
    made.globals |= {"said_of": SAID, "undo_of": UNDO}
    for name in made.list_templates():  # read and compiled before there is an event loop
        made.get_template(name)
    return made


def ago(text: str, now: float) -> str:
    """Say how long ago a time (ISO 8601) was, or how soon it is, in the largest unit that fits."""
    at = moment(text)
    if at is None:
        return ""
    seconds = now - at.timestamp()
    for size, unit in _UNITS:
        if abs(seconds) >= size:
            count = int(abs(seconds) // size)
            said = f"{count} {unit}{'' if count == 1 else 's'}"
            return f"{said} ago" if seconds > 0 else f"in {said}"
    return "just now" if seconds >= 0 else f"in {int(-seconds)} s"


def clock(text: str, zone: tzinfo) -> str:
    """Say what the clock showed in a zone at a time (ISO 8601)."""
    at = moment(text)
    return f"{at.astimezone(zone):%H:%M}" if at else ""


def date_in_words(day: str) -> str:
    """Write a day (ISO 8601) as people say it."""
    at = date.fromisoformat(day)
    return f"{at:%A}, {at.day} {at:%B %Y}"


def address(request: Request, to: str, **query: object) -> str:
    """Return the address of a part of the page, for the agent that the request is about; what is empty is left out."""
    # Relative, and all of one depth: behind a proxy the page lies below any prefix.
    said = {**query, "agent_name": getattr(request.state, "agent_name", "")}
    found = urlencode({name: value for name, value in said.items() if value}, doseq=True)
    return f"{to}?{found}" if found else to


def render(
    request: Request, template: str, context: Mapping[str, Any], *, view: str, status: int = 200
) -> HTMLResponse:
    """Return the page with a template as its main part; `view` is the current one of `VIEWS`."""
    whole = {
        "said": "", "undo": None, "done": {}, "waiting": 0, "who": "", **context,
        "url": partial(address, request), "view": view, "missing": missing(), "template": template,
    }  # fmt: skip
    return HTMLResponse(templates().get_template("page.html").render(whole), status, HEADERS)


def shell(request: Request) -> HTMLResponse:
    """Return the page without anybody's data, for who has not said yet who they are."""
    return render(request, "login.html", {}, view=request.url.path.rstrip("/").rpartition("/")[2])


def sentence_of(problem: RefusedRequest) -> str:
    """Return why a request is refused, as a sentence for who filled in a form."""
    told = problem.problem.detail
    plain = [text for begins, text in _PLAINLY.items() if told.startswith(begins)]
    wrong = " ".join(f"{FIELDS.get(each.field, each.field)} {each.message}." for each in problem.problem.errors)
    for said, better in _FORMS.items():  # pydantic's words
        wrong = wrong.replace(said, better)
    return " ".join(plain) or wrong or told


def refusal_page(request: Request, problem: RefusedRequest, form: Sequence[tuple[str, str]] = ()) -> Response:
    """Return what a refused request is answered with: its sentence.

    One that is asked whether it is sure (428) is answered with its form, to be sent again.
    """
    context = {
        "detail": sentence_of(problem), "is_question": problem.status_code == 428,
        "to": f"{request.url.path.rpartition('/')[2]}?{request.url.query}",
        "back": request.headers.get("referer", "facts"),
        "form": [(name, value) for name, value in form if name != "sure"],
    }  # fmt: skip
    answer = render(request, "problem.html", context, view="", status=problem.status_code)
    answer.headers.update(problem.headers or {})
    return answer
