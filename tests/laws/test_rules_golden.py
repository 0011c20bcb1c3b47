"""What an earlier version stored is read for ever: the golden store, by the API and by turns, against a hand's words.

`tests/golden/make.py` says what was done, and `shown.json` what has to be seen of it.
"""

import asyncio
import json
import lzma
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from palimpsest import open_checkpointer, open_postgres_checkpointer, open_postgres_store, open_store
from tests.fakes import Clock
from tests.golden.make import FILES, FOLDER, MADE_UP_TO, NARROW, ROWS, STATUSES, Life
from tests.laws.talk import LONG

SHOWN: dict[str, Any] = json.loads((FOLDER / "shown.json").read_text("utf-8"))
OF_FACTS = ("category", "confidence", "source", "pinned", "revision", "valid_to", "topic", "held", "confirmations")
OF_RECEIPTS = ("created", "confirmed", "superseded", "waiting")
COUNTED = ("facts", "quarantined", "waiting", "pending", "dead")
GONE = ("axolotls", "newts", "plums")
"""What was erased, with all that told of it."""


@asynccontextmanager
async def on_sqlite(request: pytest.FixtureRequest) -> AsyncIterator[Life]:
    folder: Path = request.getfixturevalue("tmp_path")
    for name in FILES:
        await asyncio.to_thread((folder / name).write_bytes, unpacked(name))
    async with open_store(folder / FILES[0]) as store, open_checkpointer(folder / FILES[1]) as saver:
        yield Life(store, saver, Clock(MADE_UP_TO))


@asynccontextmanager
async def on_postgres(request: pytest.FixtureRequest) -> AsyncIterator[Life]:
    postgres = request.getfixturevalue("postgres")
    database = postgres.database()
    with postgres.connect(database) as connection:
        connection.execute(unpacked(ROWS).decode())
    async with open_postgres_store(database, 4) as store, open_postgres_checkpointer(database, 4) as saver:
        yield Life(store, saver, Clock(MADE_UP_TO))


def unpacked(name: str) -> bytes:
    return lzma.decompress((FOLDER / f"{name}.xz").read_bytes())


async def shown_of(life: Life, user: str, agent: str) -> dict[str, Any]:
    """Return what the API shows of a user and an agent: facts by their words, and of the rest what is no id."""

    async def read(path: str, **query: object) -> Any:
        asked = "&".join(f"{name}={value}" for name, value in {"agent_name": agent, **query}.items())
        return await life.done("GET", f"{path}?{asked}", user=user)

    counted = await read("/overview")
    shown: dict[str, Any] = {
        "overview": {name: each for name, each in counted.items() if name not in COUNTED and each is not None},
        "counted": [counted[name] for name in COUNTED],
        "approval": (await read("/approval"))["approval"],
        "profile": (await read("/profile"))["sections"],
        "sources": [each["name"] for each in (await read("/sources"))["sources"]],
    }
    words: dict[str, str] = {}
    for status in STATUSES:
        for fact in (await read("/facts", status=status))["facts"]:
            words[fact["id"]] = fact["content"]
            if status == "active":
                fact |= await read(f"/facts/{fact['id']}")
            told = {name: fact[name] for name in OF_FACTS if fact.get(name)}
            if status == "active":
                before = (await read(f"/facts/{fact['id']}/history"))["revisions"][:-1]
                told |= {"before": [each["content"] for each in before]} if before else {}
            shown.setdefault(status, {})[fact["content"]] = told
    journal, updates = (await read("/journal"))["entries"], (await read("/updates"))["updates"]
    shown["journal"] = [
        [each["day"], each["source"], *each["waits"], each["messages"][0]["text"].replace(LONG, "")] for each in journal
    ]
    shown["updates"] = [[each["kind"], each["state"], each["attempts"], each["error"]] for each in updates]
    receipts = [
        {name: [words.get(fact, "gone") for fact in each[name]] for name in OF_RECEIPTS if each[name]}
        for each in (await read("/receipts"))["receipts"]
    ]
    shown["receipts"] = sorted(receipts, key=json.dumps)  # updates that ran side by side end in any order
    return shown


@pytest.mark.parametrize("opened", [on_sqlite, on_postgres])
async def test_what_was_stored_once_is_shown_and_goes_on(opened: Any, request: pytest.FixtureRequest) -> None:
    async with opened(request) as life:
        for who, wanted in SHOWN["api"].items():
            user, _, agent = who.partition(" ")
            wanted["receipts"].sort(key=json.dumps)
            assert await shown_of(life, user, agent or "default") == wanted, who
        kept = await life.done("GET", "/export", user="ada") + await life.done("GET", "/export", user="bob")
        assert [word for word in GONE if word in kept] == []
        await _turns(life, SHOWN["turn"])
        await _goes_on(life, SHOWN["then"])
        await asyncio.to_thread(life.service.close, 0)


async def _turns(life: Life, wanted: Mapping[str, Any]) -> None:
    """Threads go on with their messages and summary, and see what is known."""
    await life.turn("home", "What do you know of me?")
    system, *messages = life.chat.prompts[-1]
    assert [each.text for each in messages if each.type == "human"] == wanted["messages"]
    assert [each for each in wanted["sees"] if each not in system.text] == []
    assert [each for each in wanted["sees nothing of"] if each in system.text] == []
    await life.turn("long", "And now?", NARROW)
    assert wanted["summary"] in life.chat.prompts[-1][0].text


async def _goes_on(life: Life, wanted: Mapping[str, Any]) -> None:
    """A hand undoes, says yes, and tries again; what waits is learned, but for what was deleted since it was said."""
    await life.done("POST", "/undo", {})
    insulin = await life.named("Takes insulin")
    assert (await life.done("PATCH", f"/facts/{insulin}", {"status": "active"}))["topic"] == "health"
    assert sorted(fact.content for fact in await life.facts.alist()) == wanted["by hand"]
    await life.sweep()
    assert sorted(fact.content for fact in await life.facts.alist()) == wanted["learned"]
    (dead,) = (await life.done("GET", "/updates?state=dead"))["updates"]
    assert (await life.done("POST", f"/updates/{dead['key']}/retry", {}))["state"] == "pending"
