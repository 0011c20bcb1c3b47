"""`palimpsest backfill` against the real memory API in process, with an updater that learns what it is woken for."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph.store.memory import InMemoryStore

from graphs.cli import importing
from memory.namespaces import Owner
from memory.updates.updater import MemoryUpdater
from tests.command_line import AsAda, Typed
from tests.exports import FIGS, chatgpt, claude, jsonl, zipped
from tests.fakes import RecordingModel, learns
from tests.memory_app import MemoryApp, everything_stored

PLUMS = [("user", "I like plums."), ("assistant", "Plums.")]


class Learning(MemoryApp):
    """An app whose server learns at once what it is woken for."""

    def __init__(self, **options: Any) -> None:
        super().__init__(store=InMemoryStore(), **options)
        self.model = RecordingModel(respond=learns)
        self.updater = MemoryUpdater(self.store, lambda _: self.model, clock=self.clock)
        object.__setattr__(self.service, "wake", self.learn)

    def learn(self, owner: Owner, thread_id: str) -> None:
        self.clock.advance(1)
        self.updater.drain(owner, thread_id)


@pytest.fixture
def app() -> Learning:
    return Learning()


@pytest.fixture
def ada(app: Learning) -> Typed:
    return Typed(AsAda(app.app), {"PALIMPSEST_TOKEN": "ada"})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chatgpt.zip").write_bytes(
        zipped([chatgpt("c2", "2024-01-01T10:00", PLUMS), chatgpt("c1", "2023-01-01T10:00", FIGS)])
    )
    (tmp_path / "claude.json").write_text(json.dumps([claude("k1", "2024-05-01T10:00", [("user", "I like dates.")])]))
    (tmp_path / "notes.jsonl").write_text(jsonl("n1", "2022-01-01T10:00", [("user", "I like nuts.")]))
    return tmp_path


def contents(ada: Typed) -> list[str]:
    return sorted(fact["content"] for fact in ada.json("facts", "list")["facts"])


def test_exports_are_learned_listed_and_taken_back(ada: Typed, app: Learning) -> None:
    done = ada.json("backfill", "chatgpt.zip", "claude.json", "notes.jsonl")
    assert (done["sources"], done["conversations"], done["messages"]) == (["chatgpt", "claude", "jsonl"], 4, 8)
    assert (done["journal"], done["queued"], done["known"], done["waiting"], done["dead"]) == (8, 8, 0, 0, 0)
    likes = ["Likes dates", "Likes figs more than any other fruit", "Likes nuts", "Likes plums"]
    assert contents(ada) == likes
    # Oldest first, whatever the order of the files.
    order = [re.findall(r"I like (\w+)", prompt[-1].text)[-1] for prompt in app.model.prompts]
    assert order == ["nuts", "figs", "plums", "dates"]

    assert "chatgpt\tchatgpt" in ada("sources")
    asked = ada.run("erase", "source", "chatgpt")
    assert (asked.exit_code, "2 conversations with 6 messages of chatgpt go" in asked.stderr) == (1, True)
    assert "items\t" in ada("erase", "source", "chatgpt", "--yes")
    assert contents(ada) == ["Likes dates", "Likes nuts"]
    assert "palimpsest sources" in ada.refused("erase", "source", "chatgpt", "--yes")


def test_a_conversation_that_is_sent_in_pieces_counts_each_message_once(
    ada: Typed, app: Learning, folder: Path
) -> None:
    said = [turn for n in range(30) for turn in (("user", f"I like fruit{n}."), ("assistant", f"Fruit {n}."))]
    # The twentieth message ends a piece: what leads into the next one is no answer to a scheduler.
    said[18:20] = [("user", "[SCHEDULED] Say the weather."), ("assistant", "It rains frogs.")]
    (folder / "long.jsonl").write_text(jsonl("long", "2022-01-01T10:00", said))
    done = ada.json("backfill", "long.jsonl")
    assert (done["messages"], done["journal"], done["queued"], done["known"]) == (58, 58, 58, 0)
    again = ada.json("backfill", "long.jsonl")
    assert (again["journal"], again["queued"], again["known"]) == (0, 0, 58)
    assert "frogs" not in asyncio.run(everything_stored(app))


def test_a_dry_run_asks_nobody(ada: Typed) -> None:
    nobody = Typed(None, {"PALIMPSEST_URL": "http://127.0.0.1:1"})
    found = nobody.json("backfill", "chatgpt.zip", "--dry-run")
    assert (found["conversations"], found["messages"], found["extractions"]) == (2, 6, 2)
    assert (found["first"][:10], found["last"][:10]) == ("2023-01-01", "2024-01-01")
    Path("b").mkdir()
    for name, town in ("one.jsonl", "Bergen"), ("b/one.jsonl", "Oslo"):  # what differs is not one message for its id
        said = {"id": "1", "role": "user", "content": f"I moved to {town}.", "time": 1715169600}
        Path(name).write_text(json.dumps(said))
    found = nobody.json("backfill", "one.jsonl", "b/one.jsonl", "--dry-run")
    assert (found["messages"], found["extractions"]) == (2, 1)
    assert ada.json("sources")["sources"] == []


def test_without_learning_it_can_be_searched_and_is_learned_later(ada: Typed, app: Learning) -> None:
    assert ada.json("backfill", "chatgpt.zip", "--no-learn", "--source", "old")["journal"] == 6
    assert app.model.prompts == []
    assert ada.json("sources")["sources"][0]["learned"] == 0
    assert ada.json("backfill", "chatgpt.zip", "--source", "old")["queued"] == 6
    assert "Likes plums" in contents(ada)


def test_what_cannot_be_read_is_named_and_costs_nothing_else(ada: Typed, folder: Path) -> None:
    (folder / "mixed.jsonl").write_text(jsonl("n2", "2022-01-01T10:00", PLUMS) + '{"role": "user"}\n')
    done = ada.run("backfill", "mixed.jsonl")
    assert done.exit_code == 1
    assert "left out: mixed.jsonl, line 3: content must be text" in done.stderr
    assert contents(ada) == ["Likes plums"]
    (folder / "cut.json").write_text('[{"mapping": {')
    assert "cut.json is no JSON, or was cut off" in ada.refused("backfill", "cut.json")
    assert "cannot be read" in ada.refused("backfill", "nowhere.zip")


def test_no_more_is_on_its_way_than_is_read(
    ada: Typed, app: Learning, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []
    woken: list[tuple[Owner, str]] = []
    object.__setattr__(app.service, "wake", lambda owner, thread: woken.append((owner, thread)))

    def learn_one(_: float) -> None:
        waits.append(len(woken))
        app.learn(*woken.pop(0))

    monkeypatch.setattr(importing, "_ON_THE_WAY", 4)
    monkeypatch.setattr("graphs.cli.importing.time.sleep", learn_one)
    talks = [chatgpt(f"c{n}", f"2023-01-{n:02}T10:00", PLUMS) for n in range(1, 13)]
    (folder / "many.zip").write_bytes(zipped(talks))
    monkeypatch.setattr(importing, "_MOST_CONVERSATIONS", 1)
    assert ada.json("backfill", "many.zip")["waiting"] == 0
    assert max(waits) <= 3


def test_too_many_requests_are_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = Learning(per_minute=6)
    ada = Typed(AsAda(app.app), {"PALIMPSEST_TOKEN": "ada"})

    def pass_time(seconds: float) -> None:
        app.clock.advance(seconds)

    monkeypatch.setattr("graphs.cli.client.time.sleep", pass_time)
    monkeypatch.setattr(importing, "_MOST_CONVERSATIONS", 1)
    talks = [chatgpt(f"c{n}", f"2023-01-{n:02}T10:00", PLUMS) for n in range(1, 10)]
    (folder / "many.zip").write_bytes(zipped(talks))
    assert ada.json("backfill", "many.zip")["queued"] == 18


async def test_the_api_refuses_what_is_no_piece(app: Learning) -> None:
    good = {"id": "1", "role": "user", "text": "I like figs.", "time": "2023-01-01T10:00:00"}
    async with app.user("ada") as ada, app.user("bob") as bob:
        opened = (await ada.put("/sources/mine", json={"origin": "jsonl"})).json()

        async def sent(*messages: dict[str, str], token: str = opened["token"], times: int = 1) -> httpx.Response:
            talks = [{"origin": "jsonl", "id": "a", "messages": messages}] * times
            return await ada.post("/sources/mine/conversations", json={"token": token, "conversations": talks})

        for answer, status, said in (
            (await sent(token="no"), 409, "begin it anew"),
            (await sent({**good, "time": "soon"}), 422, "time must be"),
            (await sent({**good, "role": "tool"}), 422, "role"),
            (await sent(*[good] * 2001), 422, "at most 2000"),
            (await sent(times=101), 422, "conversations"),
        ):
            assert (answer.status_code, said in answer.text) == (status, True), answer.text
        await ada.put("/learning", json={"learning": False})
        answer = await sent(good)
        assert (answer.status_code, "learning is paused" in answer.text) == (409, True)
        await ada.put("/learning", json={"learning": True})
        assert (await sent({**good, "text": "x" * 70_000})).json()["journal"] == 1
        assert (await bob.get("/sources")).json()["sources"] == []
        assert (await bob.post("/erase/source", json={"source": "mine"})).status_code == 404
