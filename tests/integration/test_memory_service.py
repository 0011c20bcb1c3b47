"""The service of one process on SQLite and on Postgres: any text is written down."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.store.base import BaseStore

from graphs.persistence.sqlite_store import open_store
from graphs.process.service import MemoryService
from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.facts.store import FactStore
from memory.turn import Closing
from tests.fakes import Clock, RecordingModel, learns
from tests.memory_bench import ADA
from tests.postgres import open_async

PATIENCE = 60.0


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BaseStore]:
    if request.param == "sqlite":
        async with open_store(tmp_path / "store.sqlite") as opened:
            yield opened
    else:
        async with open_async(request.getfixturevalue("postgres").database()) as opened:
            yield opened


async def test_a_turn_whose_ids_and_text_no_database_takes_is_learnt_too(store: BaseStore) -> None:
    memory = MemoryConfig(debounce_seconds=0, update_spacing_seconds=0)
    service = MemoryService(Settings(memory=memory), lambda *_: RecordingModel(respond=learns), clock=Clock())
    said = [HumanMessage("I like \x00figs\ud800", id="u\x001"), AIMessage("Noted.", id="a\ud800")]
    await service.aremember(store, Closing(owner=ADA, thread_id="T", kind="turn", messages=said))
    assert await asyncio.to_thread(service.close, PATIENCE)
    assert [fact.content for fact in await FactStore(store, ADA).alist()] == ["Likes figs"]
