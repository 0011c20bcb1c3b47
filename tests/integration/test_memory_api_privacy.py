"""The memory API keeps what is whose: export, erasing, and nobody sees another's."""

from uuid import uuid4

import httpx
import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graphs.settings import Settings
from memory.facts.store import FactStore
from tests.archive_lines import JSON_LINES, lines_of
from tests.laws.server import ThreadServer
from tests.memory_app import MemoryApp, add, contents, everything_stored, pending


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


class Failing(ThreadServer):
    """Fails to delete one thread, so many times."""

    stubborn, failures = "", 0

    async def delete(self, thread_id: str) -> None:
        if thread_id == self.stubborn and self.failures:
            self.failures -= 1
            raise IndexError("pop from empty list")
        await super().delete(thread_id)


@pytest.mark.parametrize(("failures", "left"), [(1, 0), (100, 1)])
async def test_a_thread_that_the_server_fails_to_delete_keeps_no_other_and_is_tried_again(
    failures: int, left: int
) -> None:
    server = Failing({str(uuid4()): {"owner": "ada"} for _ in range(3)}, InMemorySaver())
    server.stubborn, server.failures = next(iter(server.rows)), failures
    ada = MemoryApp(server=server).user("ada")
    await add(ada, "Lives in Oslo")
    erased = (await ada.post("/erase/everything", json={"erase": "everything"})).json()
    assert (erased["threads"], erased["still_in_threads"], bool(erased["note"])) == (
        3 - left,
        [server.stubborn][:left],
        bool(left),
    )
    assert list(server.rows) == [server.stubborn][:left]
    assert await contents(ada) == []


async def test_in_single_user_mode_memory_is_the_local_users() -> None:
    app = MemoryApp(Settings(single_user=True))
    local = app.user(None, host="localhost:2024")
    await add(local, "Lives in Oslo")
    assert await FactStore(app.store, "local").alist() != []
    assert await contents(app.user("ada", host="127.0.0.1:2024")) == []


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
