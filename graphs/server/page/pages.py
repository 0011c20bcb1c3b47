"""What every part of the page shares: the guard before it, and the question that it answers."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import parse_qsl, unquote

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from graphs.server.api.guard import RefusedRequest, bounded, from_validation, from_value_error, refusing
from graphs.server.api.journal import Known, known_of
from graphs.server.api.routing import PREFIX, AgentQuery, Call, StrictModel, let_in
from graphs.server.page.rendering import FIELDS, HEADERS, NO_PAGE, address, refusal_page, render
from memory.control import Control, read_control
from memory.door import arun
from memory.facts.fact import Fact
from memory.namespaces import Owner
from memory.recall.search import search_facts
from memory.recall.vectors import read_vectors

logger = logging.getLogger(__name__)

Model = TypeVar("Model", bound=StrictModel)

# A form with the ids of all facts that there may be.
_LARGEST_FORM = 512 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest(Call):
    """One request of the page that has passed the guard, with the user's switches as they were then."""

    request: Request
    control: Control
    form: list[tuple[str, str]]
    """What its form says; a name may occur several times."""

    def all(self, name: str) -> list[str]:
        """Return all that the form says under a name, else the address."""
        return [value for key, value in self.form if key == name] or self.request.query_params.getlist(name)

    def one(self, name: str) -> str:
        """Return what the form says, else the address."""
        return (self.all(name) or [""])[-1]

    def fields(self, model: type[Model]) -> Model:
        """Return what the form, or else the address, says of a model, checked; what is empty is not said."""
        said = {name: value for name in model.model_fields if (value := self.one(name).strip())}
        if "content" in model.model_fields and self.all("content") and "content" not in said:
            raise ValueError("content must say something")
        return model.model_validate(said)

    async def show(self, template: str, view: str, known: Known | None = None, **context: object) -> Response:
        """Return the page with a template in it, and with what the form before it did."""
        if "waiting" not in context:  # the number in the menu
            known = known or await known_of(self)
            context["waiting"] = len(known.held) + len(known.asked_about(self))
        told = self.request.query_params if self.request.method == "GET" else {}  # not what an earlier form did
        context = {"now": self.now, "done": told, "who": self.owner.segment, **context}
        return render(self.request, template, context, view=view)

    def lead(self, to: str, done: str = "", **query: object) -> Response:
        """Lead to a part of the page, which says what was done: a reload sends nothing again."""
        return RedirectResponse(address(self.request, to, done=done, **query), 303, HEADERS)

    async def find(self, text: str, facts: Sequence[Fact]) -> list[Fact]:
        """Return those of the facts that a text finds, best first."""
        question = await self.service.recalling.vector_of(text)
        vectors = await self.run(read_vectors(self.owner, question.embedder)) if question else {}
        return search_facts(facts, text, question, vectors, only_asked=True)

    def ask(self, question: str) -> None:
        """Ask before much goes; a form that says yes to these very words goes on."""
        if self.one("sure") != question:
            raise RefusedRequest(428, question)


Answer = TypeVar("Answer", bound=Callable[[PageRequest], Awaitable[Response]])


class PageRoutes:
    """Parts of the page below `/memory/page`."""

    def __init__(self) -> None:
        self.routes: list[Route] = []

    def answers(self, asked: str) -> Callable[[Answer], Answer]:
        """Return what makes a function answer requests such as `GET facts`, or the form of `POST fact-add`."""
        method, _, path = asked.partition(" ")

        def decorate(answer: Answer) -> Answer:
            async def guarded(request: Request) -> Response:
                response = await _answered(request, answer)
                logger.info("%s %s %d", method, path, response.status_code)
                return response

            self.routes.append(Route(f"{PREFIX}/page/{path}", guarded, methods=[method], include_in_schema=False))
            return answer

        return decorate


async def _answered(request: Request, answer: Answer) -> Response:
    form: list[tuple[str, str]] = []
    try:
        with refusing():
            if request.method == "POST":
                _check_own_page(request)
            service, user_id = let_in(request)
            agent = request.query_params.get("agent_name")
            named = AgentQuery.model_validate({"agent_name": agent} if agent else {})
            request.state.agent_name = agent  # which links name
            owner = Owner.of(user_id, named.agent_name)
            body = await bounded(request, _LARGEST_FORM).body()
            form = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
            if words := request.headers.get("find"):  # no part of an address: servers log those
                form.append(("text", unquote(words)))
            control = await arun(service.store, read_control(owner))
            asked = PageRequest(
                user_id=user_id, owner=owner, service=service, request=request, control=control, form=form
            )
            return await answer(asked)
    except RefusedRequest as problem:
        return refusal_page(request, problem, form)
    except ValidationError as wrong:
        # Without a form it is the address that is wrong.
        return refusal_page(request, from_validation(wrong.errors()) if form else RefusedRequest(422, NO_PAGE))
    except ValueError as error:
        return refusal_page(request, from_value_error(error, [*FIELDS]))


def _check_own_page(request: Request) -> None:
    """Refuse a form of another site (403): a browser sends forms across sites, and asks nobody.

    The memory API takes JSON, for which a browser asks first; so it may admit other sites. Forms are of this page only.
    """
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    hosts = {request.headers.get(name, "").lower() for name in ("host", "x-forwarded-host")} - {""}
    is_ours = site in ("same-origin", "none") if site else origin is None or origin.partition("://")[2].lower() in hosts
    if not is_ours:
        raise RefusedRequest(403, "only forms of this page itself are taken")
