"""An assistant with a context that no run could use is refused where it is written, with the name of the field."""

import json
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from graphs.chat import graph as chat_graph
from graphs.server.assistants import AssistantContexts
from graphs.server.permissions import assistant_of_graph

HERS = "0b5f4c52-0000-4000-8000-000000000001"
"""An assistant of the chat graph; that one more does not exist for who asks."""
NOT_MINE = "0b5f4c52-0000-4000-8000-000000000002"
OTHERS = "0b5f4c52-0000-4000-8000-000000000003"
OURS = chat_graph.get_context_jsonschema() or {}
SCHEMAS: dict[str, Any] = {
    assistant_of_graph("chat"): OURS,
    assistant_of_graph("my_own_name"): OURS,
    HERS: OURS,
    OTHERS: {"type": "object"},
}


async def ask(method: str, path: str, body: Any) -> httpx.Response:
    async def echo(request: Request) -> Response:
        return Response(await request.body())

    async def schemas(request: Request) -> JSONResponse:
        if await request.body() or request.headers["authorization"] != "Bearer mine":
            return JSONResponse({}, 500)
        found = request.path_params["name"] in SCHEMAS
        return JSONResponse({"context_schema": SCHEMAS.get(request.path_params["name"])}, 200 if found else 404)

    asked = [Route(f"{prefix}/assistants/{{name}}/schemas", schemas, methods=["GET"]) for prefix in ("", "/prefix")]
    routes = [*asked, Route("/{rest:path}", echo, methods=["POST", "PATCH"])]
    app = Starlette(routes=routes, middleware=[Middleware(AssistantContexts)])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        return await client.request(method, path, content=json.dumps(body), headers={"Authorization": "Bearer mine"})


AT_EACH_DOOR = pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/assistants", {"graph_id": "chat"}),
        ("POST", "/prefix/assistants/", {"graph_id": "my_own_name"}),
        ("PATCH", f"/assistants/{HERS}", {}),
        ("POST", "/runs", {"assistant_id": "chat"}),
        ("POST", "/runs/crons", {"assistant_id": "my_own_name"}),
        ("POST", "/prefix/runs/stream", {"assistant_id": HERS}),
        ("POST", f"/threads/{HERS}/runs/wait", {"assistant_id": "chat"}),
        ("POST", "/runs/batch", {"assistant_id": "chat"}),
    ],
)


@AT_EACH_DOOR
@pytest.mark.parametrize("place", ["context", "config.configurable"])
async def test_a_bad_value_is_refused_wherever_it_stands(method: str, path: str, body: Any, place: str) -> None:
    bad = {"max_tokens": "seven"}
    given = {"context": bad} if place == "context" else {"config": {"configurable": {**bad, "a client's own": 1}}}
    answer = await ask(method, path, [{**body, **given}] if path.endswith("batch") else {**body, **given})
    sentence = f"Input should be a valid integer, unable to parse string as an integer. {description('max_tokens')}"
    assert answer.status_code == 422
    assert answer.json() == {
        "detail": f"{place}.max_tokens: {sentence}",
        "errors": [{"field": f"{place}.max_tokens", "message": sentence}],
    }


def description(field: str) -> str:
    """What Studio shows of a field."""
    return str(OURS["properties"][field]["description"])


@pytest.mark.parametrize(
    ("field", "value", "wrong"),
    [
        ("max_tokens", 255, "Input should be greater than or equal to 256"),
        ("keep_tokens", 0, "Input should be greater than or equal to 1"),
        ("system_prompt", 7, "Input should be a valid string"),
        ("model", "gpt", "String should match pattern '^$|^local$|^[a-z0-9_]+:.+$'"),
        ("transcript", "short", "Input should be 'keep' or 'compact'"),
        ("time_zone", "Oslo", "time_zone must be an IANA time zone such as Europe/Oslo, not 'Oslo'"),
    ],
)
async def test_the_sentence_says_what_a_field_takes(field: str, value: Any, wrong: str) -> None:
    answer = await ask("POST", "/runs/wait", {"assistant_id": "chat", "context": {field: value}})
    assert answer.status_code == 422
    assert answer.json()["detail"] == f"context.{field}: {wrong}. {description(field)}"


async def test_unknown_fields_are_named_as_they_were_sent() -> None:
    names = ["zeta", "eta", "theta", "iota", "kappa", "beta"]
    answer = await ask("POST", "/runs/wait", {"assistant_id": "chat", "context": dict.fromkeys(names, 1)})
    assert [each["field"] for each in answer.json()["errors"]] == [f"context.{name}" for name in names]


@pytest.mark.parametrize("context", [{"\ud800": 1}, {"model": "\ud800"}])
async def test_characters_that_are_no_text_are_left_to_the_server_to_refuse(context: dict[str, Any]) -> None:
    answer = await ask("POST", "/runs/wait", {"assistant_id": "chat", "context": context})
    assert answer.status_code == 200


async def test_of_a_list_the_wrong_place_is_named() -> None:
    tools = {"memory_tools": ["remember", "recall"]}
    answer = await ask("POST", "/runs/wait", {"assistant_id": "chat", "context": tools})
    assert answer.json()["errors"][0]["field"] == "context.memory_tools.1"


@AT_EACH_DOOR
@pytest.mark.parametrize(
    ("name", "hint"), [("max_token", "is max_tokens meant?"), ("a client's own", "there are model, system_prompt, ")]
)
async def test_an_unknown_field_is_refused_with_the_nearest(
    method: str, path: str, body: Any, name: str, hint: str
) -> None:
    asked = {**body, "context": {name: 900}}
    answer = await ask(method, path, [asked] if path.endswith("batch") else asked)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(f"context.{name}: unknown field: {hint}")
    assert [each["field"] for each in answer.json()["errors"]] == [f"context.{name}"]


BAD = {"context": {"max_tokens": "seven"}, "config": {"configurable": {"max_tokens": "seven"}}}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/assistants", {"graph_id": "chat", "context": {"max_tokens": 900}}),
        ("POST", "/assistants", {"graph_id": "chat", "config": {"configurable": {"max_tokens": 900, "own": 1}}}),
        ("POST", "/assistants", {"graph_id": "chat"}),
        ("POST", "/assistants", {"graph_id": "memory", **BAD}),
        ("POST", "/assistants", {"graph_id": "not there", **BAD}),
        ("POST", "/assistants", {"graph_id": ["chat"], **BAD}),
        ("POST", "/assistants", BAD),
        ("PATCH", f"/prefix/assistants/{OTHERS}", BAD),
        ("PATCH", f"/assistants/{HERS}", {"graph_id": "memory", **BAD}),
        ("PATCH", f"/assistants/{NOT_MINE}", BAD),
        ("POST", "/assistants/search", {"graph_id": "chat", **BAD}),
        ("POST", "/threads", BAD),
        ("POST", "/assistants", {"graph_id": "chat", "context": 7, "config": []}),
        ("POST", "/assistants", []),
        ("POST", "/runs", {"assistant_id": "chat", "context": {"max_tokens": 900}}),
        ("POST", "/runs", {"assistant_id": "chat", "input": {"context": {"own": 1}}}),
        ("POST", "/runs", {"assistant_id": "chat", "config": {"configurable": {"own": 1}}}),
        ("POST", "/runs", {"assistant_id": "memory", "context": {"own": 1}}),
        ("POST", "/runs", {"assistant_id": NOT_MINE, "context": {"own": 1}}),
        ("POST", "/runs", {"assistant_id": OTHERS, **BAD}),
        ("POST", "/runs/batch", [{"assistant_id": OTHERS, "context": {"own": 1}}, 7]),
        ("POST", "/runs/cancel", {"assistant_id": "chat", "context": {"own": 1}}),
    ],
)
async def test_all_else_passes_as_it_came(method: str, path: str, body: Any) -> None:
    answer = await ask(method, path, body)
    assert (answer.status_code, answer.json()) == (200, body)
