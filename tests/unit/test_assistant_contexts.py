"""An assistant with a context that no run could use is refused where it is written, with the name of the field."""

import json
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from graphs.web.assistant_contexts import AssistantContexts, refusal


async def ask(method: str, path: str, body: Any) -> httpx.Response:
    async def echo(request: Request) -> JSONResponse:
        return JSONResponse(json.loads(await request.body()))

    routes = [Route("/{rest:path}", echo, methods=["POST", "PATCH"])]
    app = Starlette(routes=routes, middleware=[Middleware(AssistantContexts)])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        return await client.request(method, path, json=body)


@pytest.mark.parametrize(("method", "path"), [("POST", "/assistants"), ("PATCH", "/prefix/assistants/some-id")])
@pytest.mark.parametrize(
    ("context", "field"),
    [
        ({"max_tokens": "seven"}, "context.max_tokens"),
        ({"model": "gpt"}, "context.model"),
        ({"transcript": "short"}, "context.transcript"),
        ({"update_summary_prompt": "no place for it"}, "context.update_summary_prompt"),
    ],
)
async def test_a_bad_context_is_refused_by_the_name_of_its_field(
    method: str, path: str, context: dict[str, Any], field: str
) -> None:
    answer = await ask(method, path, {"graph_id": "chat", "context": context})
    assert answer.status_code == 422
    assert [each["field"] for each in answer.json()["errors"]] == [field]
    assert answer.json()["detail"].startswith(f"{field}: ")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/assistants", {"graph_id": "chat", "context": {"max_tokens": 900, "a client's own": 1}}),
        ("/assistants", {"graph_id": "chat"}),
        ("/assistants", {"graph_id": "memory", "context": {"max_tokens": "seven"}}),
        ("/assistants/search", {"graph_id": "chat"}),
        ("/threads", {"context": {"max_tokens": "seven"}}),
    ],
)
async def test_all_else_passes_as_it_came(path: str, body: Any) -> None:
    answer = await ask("POST", path, body)
    assert (answer.status_code, answer.json()) == (200, body)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"context": 7}'])
def test_what_is_no_request_is_left_to_the_server(body: bytes) -> None:
    assert refusal(body) is None
