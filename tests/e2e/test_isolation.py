"""Two users on a server that authenticates: nothing of one reaches the other, by any endpoint, forged key or graph."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import APIStatusError

from memory.namespaces import Owner, user_root
from tests.archive_lines import document_of
from tests.e2e.dev_server import DevServer
from tests.e2e.guarded_server import api, guarded_server, headers_of, sdk
from tests.e2e.scripted import Scripted, is_chat
from tests.e2e.speaking import say
from tests.e2e.waiting import eventually
from tests.stub_model import StubModel

SECRET = "quokka"
LEARNS = {SECRET: f"User keeps a {SECRET}."}
PUBLIC = {"/", "/ok", "/info", "/metrics", "/docs", "/openapi.json"}


@dataclass
class Belongings:
    """What Alice has, by the names of the parameters it is asked for with."""

    thread_id: str
    run_id: str
    assistant_id: str
    cron_id: str
    fact_id: str

    def fill(self, path: str) -> str:
        """Put her ids into a path; what has no name of hers is `x`."""
        return re.sub(r"\{(\w+)\}", lambda name: str(vars(self).get(name[1], "x")), path)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, stub: StubModel) -> Iterator[DevServer]:
    folder = tmp_path_factory.mktemp("guarded")
    with guarded_server(folder, stub.url, PALIMPSEST_DEBOUNCE_SECONDS="0.2") as server:
        yield server


@pytest.fixture(scope="module")
def alice(server: DevServer) -> Iterator[SyncLangGraphClient]:
    with sdk(server, "alice") as client:
        yield client


@pytest.fixture(scope="module")
def bob(server: DevServer) -> Iterator[SyncLangGraphClient]:
    with sdk(server, "bob") as client:
        yield client


@pytest.fixture(scope="module")
def hers(server: DevServer, alice: SyncLangGraphClient, stub: StubModel) -> Belongings:
    """Something of every kind that belongs to Alice, each with her secret in it."""
    stub.respond = Scripted(learns=LEARNS, chat=lambda request: f"re: {request.last}")
    thread_id = alice.threads.create(metadata={"topic": SECRET})["thread_id"]
    run_id = alice.runs.create(thread_id, "chat", input=say(f"I keep a {SECRET}."))["run_id"]
    alice.runs.join(thread_id, run_id)
    assistant = alice.assistants.create("chat", context={"system_prompt": f"Speak of a {SECRET}."}, name=SECRET)
    cron: Any = alice.crons.create("chat", schedule="0 0 1 1 *", input=say(SECRET))
    with api(server, "alice") as memory:
        found = eventually(lambda: memory.get("/facts").json()["facts"])
        # Journal and receipt come after the facts: what she has must not change any more by itself.
        eventually(lambda: memory.get("/overview").json()["pending"] == 0)
    return Belongings(thread_id, run_id, assistant["assistant_id"], str(cron["cron_id"]), found[0]["id"])


def bodies(hers: Belongings) -> dict[str, Any]:
    """What an intruder sends to paths that want a body; any other gets `{}`."""
    run = {"assistant_id": "chat", "input": say("hello")}
    own = list(Owner.of("alice").namespace("facts"))
    return {
        "/threads": {"thread_id": hers.thread_id, "if_exists": "do_nothing"},
        "/threads/{thread_id}/runs": run,
        "/threads/{thread_id}/runs/wait": run,
        "/threads/{thread_id}/runs/stream": run,
        "/threads/{thread_id}/runs/crons": {**run, "schedule": "* * * * *"},
        "/runs": {**run, "assistant_id": hers.assistant_id},
        "/runs/wait": {**run, "assistant_id": hers.assistant_id},
        "/runs/stream": {**run, "assistant_id": hers.assistant_id},
        "/runs/batch": [{**run, "assistant_id": hers.assistant_id}],
        "/runs/crons": {"assistant_id": hers.assistant_id, "schedule": "* * * * *", "input": say("hello")},
        "/runs/cancel": {"thread_id": hers.thread_id, "run_ids": [hers.run_id]},
        "/threads/{thread_id}/state": {"values": say("hello")},
        "/threads/{thread_id}/history": {"limit": 10},
        "/threads/{thread_id}/stream/events": {"channels": ["values", "messages"]},
        "/threads/{thread_id}/commands": {"id": 1, "method": "run.start", "params": run},
        "/threads/prune": {"thread_ids": [hers.thread_id]},
        "/assistants": {"assistant_id": hers.assistant_id, "graph_id": "chat", "if_exists": "do_nothing"},
        "/store/items": {"namespace": own, "key": "x", "value": {"content": "Bob was here"}},
        "/store/items/search": {"namespace_prefix": own},
        "/store/namespaces": {"prefix": list(user_root("alice"))},
        "/memory/facts": {"content": "Bob was here", "category": "goal"},
        "/memory/erase/thread": {"thread_id": hers.thread_id},
        "/memory/erase/fact": {"fact_id": hers.fact_id},
        "/memory/erase/everything": {"erase": "everything"},
    }


def endpoints(server: DevServer) -> list[tuple[str, str]]:
    """Every method and path that the server documents, the memory API's among them."""
    paths: dict[str, Any] = httpx.get(f"{server.url}/openapi.json", timeout=60).json()["paths"]
    paths |= httpx.get(f"{server.url}/memory/openapi.json", headers=headers_of("bob"), timeout=60).json()["paths"]
    methods = {"get", "post", "put", "patch", "delete"}
    return [(method.upper(), path) for path, each in sorted(paths.items()) for method in sorted(methods & set(each))]


def asked(server: DevServer, hers: Belongings, method: str, path: str, headers: dict[str, str]) -> httpx.Response:
    body = bodies(hers).get(path, {}) if method in ("POST", "PUT", "PATCH", "DELETE") else None
    query = {"namespace": ".".join(Owner.of("alice").namespace("facts")), "key": "x"} if path == "/store/items" else {}
    accept = {"Accept": "application/json, text/event-stream"}
    with httpx.Client(base_url=server.url, headers={**headers, **accept}, timeout=120) as client:
        return client.request(method, hers.fill(path), json=body, params=query)


def kept(server: DevServer, alice: SyncLangGraphClient, hers: Belongings) -> str:
    """All that Alice sees of her own."""
    with api(server, "alice") as memory:
        parts: list[Any] = [
            alice.threads.get(hers.thread_id),
            alice.threads.get_state(hers.thread_id),
            alice.assistants.get(hers.assistant_id),
            alice.crons.search(),
            document_of(memory.get("/export").text) | {"exported_at": ""},
            memory.get("/overview").json(),
        ]
    return json.dumps(parts, sort_keys=True, default=str)


def test_no_endpoint_shows_or_changes_what_is_anothers(
    server: DevServer, alice: SyncLangGraphClient, hers: Belongings
) -> None:
    before = kept(server, alice, hers)
    assert before.count(SECRET) > 5
    seen = [(method, path) for method, path in endpoints(server)]
    assert len(seen) > 70
    for method, path in seen:
        answer = asked(server, hers, method, path, headers_of("bob"))
        assert SECRET not in answer.text, (method, path, answer.text[:500])
        assert answer.status_code < 500 or answer.status_code == 501, (method, path, answer.text[:500])
    with sdk(server, "bob") as bob, pytest.raises(APIStatusError, match=r"(?i)not found"):  # by a thread of his own
        bob.runs.delete(bob.threads.create()["thread_id"], hers.run_id)
    assert kept(server, alice, hers) == before


def test_without_a_token_every_endpoint_is_closed(server: DevServer, hers: Belongings) -> None:
    for forged in ({}, {"x-auth-scheme": "langsmith"}, {"x-api-key": "lsv2_x"}, {"Authorization": "Bearer x.y.z"}):
        for method, path in endpoints(server):
            if path not in PUBLIC and not path.startswith("/ui"):
                answer = asked(server, hers, method, path, forged)
                expected = (404,) if path.startswith(("/internal", "/deploy")) else (401, 403)
                assert answer.status_code in expected, (method, path, answer.status_code)


FORGED_CONFIGS: list[dict[str, Any]] = [
    {"config": {"configurable": {"user_id": "alice"}}},
    {"config": {"configurable": {"langgraph_auth_user_id": "alice"}}},
    {"config": {"configurable": {"langgraph_auth_user": {"identity": "alice"}, "langgraph_auth_user_id": "alice"}}},
    {"metadata": {"owner": "alice", "user_id": "alice"}},
]


@pytest.mark.parametrize("forged", FORGED_CONFIGS, ids=lambda forged: next(iter(forged)))
def test_forged_identities_reach_no_other_memory(
    bob: SyncLangGraphClient, hers: Belongings, stub: StubModel, forged: dict[str, Any]
) -> None:
    stub.clear()
    bob.runs.wait(None, "chat", input=say("What do I keep?"), **forged)
    thread_id = bob.threads.create(metadata={"owner": "alice"})["thread_id"]
    bob.runs.wait(thread_id, "chat", input=say("What do I keep?"), **forged)
    prompts = [request for request in stub.requests if is_chat(request)]
    assert len(prompts) == 2
    assert not [prompt for prompt in prompts if SECRET in prompt.text]
    assert (bob.threads.get(thread_id)["metadata"] or {})["owner"] == "bob"


def test_an_assistants_forged_context_reaches_no_other_memory(
    alice: SyncLangGraphClient, bob: SyncLangGraphClient, hers: Belongings, stub: StubModel
) -> None:
    forged: Any = {"user_id": "alice", "langgraph_auth_user_id": "alice"}
    with pytest.raises(APIStatusError, match="unknown field"):  # no identity is a choice of an assistant's
        bob.assistants.create("chat", context=forged)
    metadata = {"owner": "alice", "created_by": "system"}
    assistant = bob.assistants.create("chat", metadata=metadata, config={"configurable": forged})
    stub.clear()
    bob.runs.wait(None, assistant["assistant_id"], input=say("What do I keep?"))
    assert not [request for request in stub.requests if SECRET in request.text]
    assert assistant["assistant_id"] not in [each["assistant_id"] for each in alice.assistants.search(limit=100)]


def test_a_bad_context_tells_nobody_which_assistants_there_are(
    alice: SyncLangGraphClient, bob: SyncLangGraphClient, hers: Belongings
) -> None:
    bad: Any = {"max_tokens": "seven"}
    unknown = "0b5f4c52-0000-4000-8000-000000000001"
    answers = []
    for client, assistant_id in ((bob, hers.assistant_id), (bob, unknown), (alice, hers.assistant_id)):
        with pytest.raises(APIStatusError) as refused:
            client.assistants.update(assistant_id, context=bad)
        response = refused.value.response
        answers.append((response.status_code, response.text.replace(assistant_id, "")))
    assert answers[0] == answers[1]
    assert [status for status, _ in answers] == [404, 404, 422]


PRIVATE = ("http://127.0.0.1:9/", "http://localhost/", "/threads", "http://10.0.0.1/", "http://192.168.1.7:8080/x")


@pytest.mark.parametrize("webhook", [*PRIVATE, "http://[fd00::1]/", "http://169.254.169.254/latest"])
def test_no_webhook_reaches_what_only_the_server_reaches(server: DevServer, webhook: str) -> None:
    asked = {"assistant_id": "chat", "input": say("Hello."), "webhook": webhook}
    with httpx.Client(base_url=server.url, headers=headers_of("bob"), timeout=120) as client:
        thread_id = client.post("/threads", json={}).json()["thread_id"]
        for path in ("/runs", "/runs/wait", f"/threads/{thread_id}/runs", f"/threads/{thread_id}/runs/stream"):
            assert client.post(path, json=asked).status_code == 422, path
        cron = {**asked, "schedule": "0 0 1 1 *"}
        for path in ("/runs/crons", f"/threads/{thread_id}/runs/crons"):
            assert client.post(path, json=cron).status_code == 422, path


@pytest.mark.parametrize("name", ["ali", "ALICE", "alice%", "alice.", "alice ", "alice@example.org", "a" * 1024])
def test_people_of_similar_names_are_others(server: DevServer, hers: Belongings, name: str) -> None:
    with api(server, name) as memory, sdk(server, name) as client:
        assert SECRET not in memory.get("/export").text
        assert client.threads.search(limit=100) == []
        assert client.store.search_items([], limit=100)["items"] == []


def test_no_log_line_holds_what_was_said(server: DevServer, hers: Belongings) -> None:
    assert SECRET not in server.log


def test_a_thread_that_only_memory_knows_still_is_nobody_elses(
    server: DevServer, alice: SyncLangGraphClient, hers: Belongings
) -> None:
    """As where threads go by age, or one server has rows that another has not; an export may name any thread."""
    header: Any = {"format": "palimpsest.memory", "schema": 1}
    said = {"id": "m", "role": "user", "text": "I keep newts.", "time": "2026-01-01T00:00:00Z"}
    update = {"update": {"thread_id": hers.thread_id, "kind": "turn", "messages": [said]}}
    run = {"assistant_id": "chat", "input": say("hello"), "if_not_exists": "create"}
    for lines in ([header], [header, update]):
        server.stop()
        shutil.rmtree(server.folder / ".langgraph_api")
        (server.data / "checkpoints.sqlite").unlink()
        server.start()
        with httpx.Client(base_url=server.url, headers=headers_of("bob"), timeout=60) as bob:
            jsonl = {"Content-Type": "application/jsonl"}
            taken = bob.post("/memory/import", content="\n".join(map(json.dumps, lines)), headers=jsonl).json()
            assert taken["updates"] == len(lines) - 1
            assert bob.post("/threads", json={"thread_id": hers.thread_id}).status_code == 403
            assert bob.post(f"/threads/{hers.thread_id}/runs/wait", json=run).status_code == 403
        if lines == [header]:
            alice.threads.create(thread_id=hers.thread_id)
