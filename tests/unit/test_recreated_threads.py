"""A thread made again under its id is given the graph that its state is read with; nothing else is touched."""

import json
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from graphs.chat import graph
from graphs.server.permissions import assistant_of_graph
from graphs.server.thread_doors import RecreatedThreads, with_graph

AGAIN: dict[str, Any] = {"thread_id": "t", "if_exists": "do_nothing"}


@pytest.mark.parametrize("metadata", [None, {}, {"topic": "figs"}])
def test_a_thread_made_again_has_a_graph(metadata: dict[str, Any] | None) -> None:
    made = json.loads(with_graph(json.dumps({**AGAIN, "metadata": metadata}).encode()))
    assert made == {**AGAIN, "metadata": {**(metadata or {}), "graph_id": "chat"}}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"thread_id": "t"},
        {"if_exists": "do_nothing"},
        {**AGAIN, "if_exists": "raise"},
        {**AGAIN, "metadata": {"graph_id": "other"}},
        {**AGAIN, "metadata": 7},
        [],
    ],
)
def test_all_else_stays_as_it_came(body: Any) -> None:
    sent = json.dumps(body).encode()
    assert with_graph(sent) == sent
    assert with_graph(b"{") == b"{"


@pytest.mark.parametrize(
    ("schema", "is_named"), [(graph.get_context_jsonschema(), True), ({"type": "object"}, False), (None, False)]
)
async def test_only_a_server_that_has_our_graph_is_told_its_name(schema: Any, is_named: bool) -> None:
    async def echo(request: Request) -> JSONResponse:
        return JSONResponse(await request.json())

    async def schemas(request: Request) -> JSONResponse:
        is_found = schema and request.path_params["name"] == assistant_of_graph("chat")
        return JSONResponse({"context_schema": schema}, 200 if is_found else 404)

    routes = [Route("/threads", echo, methods=["POST"]), Route("/assistants/{name}/schemas", schemas)]
    app = Starlette(routes=routes, middleware=[Middleware(RecreatedThreads)])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        made = (await client.post("/threads", json=AGAIN)).json()
    assert made == ({**AGAIN, "metadata": {"graph_id": "chat"}} if is_named else AGAIN)
