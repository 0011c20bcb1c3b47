"""The memory API keeps what is whose: export, erasing, and nobody sees another's."""

import json
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi.routing import APIRoute

from graphs.server.api import ROUTERS
from graphs.settings import Settings
from memory.facts.store import FactStore
from tests.archive_lines import JSON_LINES, lines_of
from tests.memory_app import MemoryApp, add, contents, everything_stored, journal, pending, said

ROUTES = [
    (method, route.path.removeprefix("/memory"))
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute)
    for method in route.methods or ()
]
WITH_BODY = {"POST", "PUT", "PATCH"}


async def test_bad_lines_are_refused_by_their_number(ada: httpx.AsyncClient) -> None:
    fact = '{"content": "Lives in Oslo", "category": "knowledge", "confidence": 1'
    lines = [
        *('{"fact": 5}', f'{{"fact": {fact}{"0" * 400}}}}}', f'{{"fact": {fact}}}}}', '{"journal": {"day": "never"}}'),
        *("no JSON", '{"profile": {"user.mood": "good"}}', "[" * 100_000, '{"surprise": 1}', "\xff", '{"fact"'),
    ]
    body = lines_of({}) + "\n" + "\n".join(lines)
    done = (await ada.post("/import", content=body.encode("latin-1"), headers=JSON_LINES)).json()
    refused = {each["line"]: each["reason"] for each in done["refused"]}
    assert refused == {3: "malformed", 4: "bad_confidence", **dict.fromkeys(range(6, 13), "malformed")}
    assert (await contents(ada), done["refused_more"]) == (["Lives in Oslo"], 0)


OF_BEFORE = '{"schema": "palimpsest.memory", "version": 2, "profile": {},\n"facts": [\n{"content": "Lives in Oslo"}]\n}'


@pytest.mark.parametrize(
    "body",
    ["", "[]", "{", "\xff", '{"format": "palimpsest.memory", "schema": 2}', OF_BEFORE, OF_BEFORE.replace("\n", "")],
)
async def test_what_does_not_begin_as_an_export_is_refused_with_what_to_do(ada: httpx.AsyncClient, body: str) -> None:
    answer = await ada.post("/import", content=body.encode("latin-1"), headers=JSON_LINES)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "body")
    assert "export it again" in answer.text
    assert await contents(ada) == []


async def test_a_thread_whose_row_is_gone_can_be_erased_by_the_one_it_fed(
    app: MemoryApp, ada: httpx.AsyncClient
) -> None:
    thread_id = str(uuid4())
    await pending(app, thread_id, "a secret")
    assert (await app.user("bob").post("/erase/thread", json={"thread_id": thread_id})).status_code == 404
    assert "a secret" in await everything_stored(app)
    assert (await ada.post("/erase/thread", json={"thread_id": thread_id})).json()["threads"] == 1
    assert "a secret" not in await everything_stored(app)


@pytest.mark.parametrize(("failures", "left"), [(1, 0), (100, 1)])
async def test_a_thread_that_the_server_fails_to_delete_keeps_no_other_and_is_tried_again(
    app: MemoryApp, ada: httpx.AsyncClient, failures: int, left: int
) -> None:
    await add(ada, "Lives in Oslo")
    first, *_ = [app.threads.add("ada", str(uuid4())) for _ in range(3)]
    app.threads.failures[first] = failures
    erased = (await ada.post("/erase/everything", json={"erase": "everything"})).json()
    assert (erased["threads"], erased["still_in_threads"], bool(erased["note"])) == (
        3 - left,
        [first][:left],
        bool(left),
    )
    assert list(app.threads.rows) == [first][:left]
    assert await contents(ada) == []


async def test_two_users_see_nothing_of_each_other_at_any_endpoint(app: MemoryApp, ada: httpx.AsyncClient) -> None:
    thread_id = app.threads.add("ada", str(uuid4()))
    fact = await add(ada, "A secret of Ada")
    dead = await pending(app, thread_id, "A secret of Ada", state="dead")
    await journal(app, thread_id, said(1, "A secret of Ada"))
    await ada.put("/profile/user.work", json={"text": "A secret of Ada"})
    opened = (await ada.put("/sources/mine", json={"origin": "jsonl"})).json()
    message = {"id": "1", "role": "user", "text": "A secret of Ada", "time": "2023-01-01T10:00:00"}
    talk = {"origin": "jsonl", "id": "a", "messages": [message]}
    piece = {"token": opened["token"], "conversations": [talk]}
    assert (await ada.post("/sources/mine/conversations", json=piece)).json()["queued"] == 1
    before = await everything_stored(app)
    known = {"fact_id": fact["id"], "key": dead.key, "thread_id": thread_id, "section": "user.work", "name": "mine"}
    bodies: dict[str, Any] = {
        "/facts": {"content": "Bob was here", "category": "goal"},
        "/facts/{fact_id}": {"content": "Bob was here"},
        "/erase/fact": {"fact_id": fact["id"]},
        "/erase/thread": {"thread_id": thread_id},
        "/erase/everything": {"erase": "everything"},
        "/profile/{section}": {"text": "Bob was here"},
        "/learning": {"learning": False},
        "/import": {"format": "palimpsest.memory", "schema": 1},
        "/sources/{name}": {"origin": "jsonl"},
        "/sources/{name}/conversations": piece,
        "/erase/source": {"source": "mine"},
    }
    for name in ("bob", "ad", "ADA", "ada ", "Ada", "ad%", "ada.x", "local"):
        intruder = app.user(name, **{"x-user-id": "ada", "x-auth-scheme": "langsmith"})
        for method, route in ROUTES:
            path = route.format(**known)
            body = bodies.get(route, {}) if method in WITH_BODY else None
            answer = await intruder.request(method, path, json=body)
            assert "A secret of Ada" not in answer.text, (name, method, path)
            assert answer.status_code < 500
    after = json.loads(await everything_stored(app))
    assert [item for item in after if item in json.loads(before)] == json.loads(before)


async def test_without_an_identity_nothing_is_answered(app: MemoryApp) -> None:
    for name in (None, "", "langgraph-studio-user"):
        for method, route in ROUTES:
            path = route.replace("{", "").replace("}", "")
            body: dict[str, str] | None = {} if method in WITH_BODY else None
            assert (await app.user(name).request(method, path, json=body)).status_code == 401


async def test_in_single_user_mode_memory_is_the_local_users() -> None:
    app = MemoryApp(Settings(single_user=True))
    local = app.user(None, host="localhost:2024")
    await add(local, "Lives in Oslo")
    assert await FactStore(app.store, "local").alist() != []
    assert await contents(app.user("ada", host="127.0.0.1:2024")) == []


async def test_the_document_describes_what_is_served(app: MemoryApp, ada: httpx.AsyncClient) -> None:
    document = (await ada.get("/openapi.json")).json()
    served = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert served == {(method, f"/memory{path}") for method, path in ROUTES}
    references = set(json.dumps(document).split('"#/components/schemas/')[1:])
    names = {reference.split('"')[0] for reference in references}
    assert names <= set(document["components"]["schemas"])
    assert all(
        operation["summary"] and operation["description"]
        for path in document["paths"].values()
        for operation in path.values()
    )


async def test_no_text_of_a_user_is_logged(
    app: MemoryApp, ada: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    fact = await add(ada, "Fears zebras")
    await ada.patch(f"/facts/{fact['id']}", json={"content": "Fears zebras and gnus"})
    await ada.post("/facts/search", json={"text": "zebras"})
    await ada.delete(f"/facts/{fact['id']}")
    await ada.post("/undo", json={})
    await ada.post("/erase/fact", json={"fact_id": fact["id"]})
    await ada.post("/facts", json={"content": "zebras", "category": "zebras"})
    ours = [record.getMessage() for record in caplog.records if record.name.startswith(("graphs", "memory"))]
    assert sum(message.startswith("POST /memory") for message in ours) == 5
    assert "PATCH /memory/facts/{fact_id} 200" in ours
    assert not [message for message in ours if "zebra" in message or "ada" in message.split()]
