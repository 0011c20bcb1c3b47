"""The memory API as an app: what it promises to programs, in which order it refuses, what it leaves to its server."""

import json

import httpx
import pytest
from starlette.exceptions import HTTPException

from tests.api_shape import SNAPSHOT, shape_of
from tests.memory_app import MemoryApp, add

JSON = {"content-type": "application/json"}


async def test_paths_parameters_answers_and_schemas_are_the_ones_that_programs_know(ada: httpx.AsyncClient) -> None:
    """Who changes the API on purpose writes the new shape with `python -m tests.api_shape`."""
    document = (await ada.get("/openapi.json")).json()
    assert shape_of(document) == json.loads(SNAPSHOT.read_text())
    assert (document["openapi"], document["info"]["title"]) == ("3.1.0", "Palimpsest memory API")
    assert document["security"] == [{"bearer": []}, {}]
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"


@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
@pytest.mark.parametrize("body", [b"{", b"x" * 100_000])
async def test_who_a_stranger_is_matters_before_what_he_sends(app: MemoryApp, kind: str, body: bytes) -> None:
    headers = {"content-type": kind}
    assert (await app.user(None).post("/facts", content=body, headers=headers)).status_code == 401
    from_elsewhere = {**headers, "origin": "https://evil.example"}
    assert (await app.user(None).post("/facts", content=body, headers=from_elsewhere)).status_code == 403


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "body: Field required"),
        (b"[" * 50_000, "body: There was an error parsing the body"),
        (b"\xff", "body: There was an error parsing the body"),
        (b"{", "body.1: JSON decode error"),
        (b'{"content": "\\ud800", "category": "goal"}', "content: Input should be a valid string"),
        (b'{"content": "a", "category": "goal", "\\ud800": 1}', "body: Input should be a valid string"),
        (b"[]", "body: Input should be a valid dictionary"),
        (b'{"content": "Lives in Oslo"}', "category: Field required"),
    ],
)
async def test_what_is_wrong_with_a_body_is_said_in_one_sentence(
    ada: httpx.AsyncClient, body: bytes, detail: str
) -> None:
    answer = await ada.post("/facts", content=body, headers=JSON)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(detail)


async def test_all_that_is_wrong_is_named_at_once(ada: httpx.AsyncClient) -> None:
    answer = await ada.post("/facts", params={"agent_name": "a.b"}, json={"content": "Lives in Oslo", "mood": "good"})
    assert [each["field"] for each in answer.json()["errors"]] == ["agent_name", "category", "mood"]


async def test_an_empty_answer_has_no_content_type(ada: httpx.AsyncClient) -> None:
    fact = await add(ada, "Lives in Oslo")
    answer = await ada.delete(f"/facts/{fact['id']}")
    assert (answer.status_code, answer.content, dict(answer.headers)) == (204, b"", {})


async def test_the_app_leaves_errors_pages_and_titles_to_its_server(app: MemoryApp) -> None:
    assert HTTPException not in app.app.exception_handlers
    for path in ("/docs", "/redoc", "/openapi.json"):
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app.app), base_url="http://testserver")
        assert (await client.get(path)).status_code == 404
    merged = app.app.openapi()
    assert (merged["info"], merged.get("security")) == ({}, None)
    assert set(merged["paths"]) == {name.partition(" ")[2] for name in shape_of(merged)["operations"]}


def test_each_route_can_be_put_behind_the_servers_login(app: MemoryApp) -> None:
    """With `enable_custom_route_auth` the server wraps the `app` of each route, and refuses one that has none."""
    assert all(hasattr(route, "app") for route in app.app.routes)
