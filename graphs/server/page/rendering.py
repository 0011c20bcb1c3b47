"""From templates to answers: a fragment for htmx, a whole document for a browser that goes to an address."""

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
    "Vary": "HX-Request",
}
VIEWS = {
    "facts": "Facts",
    "profile": "Profile",
    "journal": "Journal",
    "updates": "Waiting",
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
_UNITS = ((86_400 * 365, "year"), (86_400 * 30, "month"), (86_400, "day"), (3600, "hour"), (60, "minute"))


@cache
def templates() -> Environment:
    """Return the templates, read once a process."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {"ago": ago, "clock": clock, "date": date_in_words, "percent": lambda share: f"{share:.0%}"}
    made.globals |= {
        "views": VIEWS,
        "categories": CATEGORIES,
        "approvals": APPROVALS,
        "why": WHY,
    }
    for name in made.list_templates():  # read and compiled once: the event loop must not wait for a disk
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


def is_fragment(request: Request) -> bool:
    """Say whether htmx asks for a part of the page that stands already."""
    return request.headers.get("hx-request") == "true" and request.headers.get("hx-history-restore-request") != "true"


def address(request: Request, to: str, **query: object) -> str:
    """Return the address of a part of the page, for the agent that the request is about."""
    # Relative, and all of one depth: behind a proxy the page lies below any prefix.
    said = {**query, "agent_name": request.query_params.get("agent_name", "")}
    found = urlencode({name: value for name, value in said.items() if value not in ("", None)})
    return f"{to}?{found}" if found else to


def render(
    request: Request, template: str, context: Mapping[str, Any], *, view: str, status: int = 200
) -> HTMLResponse:
    """Return a template as an answer.

    Args:
        request: Who asks, and for which agent.
        template: Its name; it is the main part of a whole document.
        context: What it shows.
        view: Which of `VIEWS` is current.
        status: Of the answer.
    """
    whole = {
        **context, "url": partial(address, request), "view": view, "missing": missing(), "template": template,
    }  # fmt: skip
    text = templates().get_template(template if is_fragment(request) else "page.html").render(whole)
    return HTMLResponse(text, status, HEADERS)


def shell(request: Request) -> HTMLResponse:
    """Return the page without anybody's data, for who has not said yet who they are."""
    view = request.url.path.rstrip("/").rpartition("/")[2]
    context = {"now": 0.0}
    return render(request, "login.html", context, view=view if view in VIEWS else "facts")


def refusal_page(request: Request, problem: RefusedRequest, form: Sequence[tuple[str, str]] = ()) -> Response:
    """Return what a refused request is answered with: its sentence, in a place that htmx shows.

    One that is asked whether it is sure (428) is answered with its form, to be sent again.
    """
    said = problem.problem.detail
    context = {
        "detail": said.replace(": ", " ", 1) if problem.problem.errors else said,
        "form": [(name, value) for name, value in form if name != "sure"], "is_question": problem.status_code == 428,
        "to": request.url.path.rpartition("/")[2], "target": request.headers.get("hx-target", ""),
    }  # fmt: skip
    answer = render(request, "problem.html", context, view="", status=problem.status_code)
    if is_fragment(request):
        # What is on the page stays: only the sentence is added.
        answer.headers.update({"HX-Retarget": "#said", "HX-Reswap": "innerHTML", "HX-Reselect": ".problem"})
    answer.headers.update(problem.headers or {})
    return answer
