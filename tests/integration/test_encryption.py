"""With a key, no word of a conversation or of memory can be read in the SQLite files; without it, nothing is lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import SearchOp

from graphs.chat import build_graph
from graphs.persistence import (
    CHECKPOINTS,
    STORE,
    Cipher,
    DurableSqliteSaver,
    DurableSqliteStore,
    WrongKey,
    cipher_of_server,
    open_checkpointer,
    open_store,
)
from graphs.persistence.checkpoint_file import CheckpointFile
from graphs.service import MemoryService
from graphs.settings import Settings
from memory.effects import arun
from memory.facts.store import FactStore
from memory.journal.journal import read_journal
from memory.namespaces import Owner
from tests.fakes import RecordingModel, learns

KEY, OTHER = b"0123456789abcdef0123456789abcdef", b"fedcba9876543210"
ADA = Owner.of("ada")
WHO: RunnableConfig = {"configurable": {"thread_id": "T", "langgraph_auth_user_id": "ada"}}
WORDS = ("zeppelin", "figs", "marmalade")


def respond(messages: list[Any]) -> str:
    return learns(messages) if "[1] user" in messages[-1].text else "Marmalade it is: marmalade."


@dataclass
class House:
    saver: DurableSqliteSaver
    store: DurableSqliteStore

    @property
    def chat(self) -> Any:
        return build_graph(service=self.service).compile(checkpointer=self.saver, store=self.store)

    def __post_init__(self) -> None:
        self.service = MemoryService(Settings(model="fake:model"), lambda *_: RecordingModel(respond=respond))


@asynccontextmanager
async def opened(folder: Path, key: bytes | None) -> AsyncIterator[House]:
    cipher = Cipher(key) if key else None
    async with (
        open_checkpointer(folder / CHECKPOINTS, cipher) as saver,
        open_store(folder / STORE, cipher) as store,
    ):
        house = House(saver, store)
        yield house
        await asyncio.to_thread(house.service.close, 0)  # or its queue would ask a store that is closed


async def talk(house: House) -> None:
    await house.chat.ainvoke({"messages": [HumanMessage("I like figs. My zeppelin is purple.")]}, WHO)
    await house.service.adrain(house.store, ADA)


def found_in(folder: Path) -> set[str]:
    files = [path.read_bytes() for path in folder.iterdir()]
    assert len(files) >= 2
    return {word for word in WORDS for content in files if word.encode() in content}


@pytest.mark.parametrize("key", [KEY, OTHER])
async def test_no_word_is_readable_and_all_comes_back(tmp_path: Path, key: bytes) -> None:
    async with opened(tmp_path, key) as house:
        await talk(house)
        assert found_in(tmp_path) == set(), "not in the log either, while it is open"
    assert found_in(tmp_path) == set()
    async with opened(tmp_path, key) as house:
        state = await house.chat.aget_state(WHO)
        assert state.values["messages"][0].text == "I like figs. My zeppelin is purple."
        assert [fact.content for fact in await FactStore(house.store, "ada").alist()] == ["Likes figs"]
        assert len(await arun(house.store, read_journal(ADA, "initial"))) == 1
        again = await house.chat.ainvoke({"messages": [HumanMessage("And now?")]}, WHO)
        assert len(again["messages"]) == 4


async def test_without_a_key_the_words_are_there(tmp_path: Path) -> None:
    async with opened(tmp_path, None) as house:
        await talk(house)
    assert found_in(tmp_path) == set(WORDS)


async def test_another_key_and_none_are_refused_when_the_files_are_opened(tmp_path: Path) -> None:
    async with opened(tmp_path, KEY) as house:
        await talk(house)
    for key, said in ((OTHER, "LANGGRAPH_AES_KEY does not fit"), (None, "LANGGRAPH_AES_KEY is not set")):
        with pytest.raises(WrongKey, match=said):
            async with opened(tmp_path, key):
                pass
    async with opened(tmp_path, KEY) as house:
        assert len(await FactStore(house.store, "ada").alist()) == 1


async def test_what_was_written_before_is_read_on_and_encrypted_when_it_is_written_again(tmp_path: Path) -> None:
    async with opened(tmp_path, None) as house:
        await talk(house)
    async with opened(tmp_path, KEY) as house:
        facts = FactStore(house.store, "ada")
        (fact,) = await facts.alist()
        state = await house.chat.aget_state(WHO)
        assert len(state.values["messages"]) == 2
        await facts.aupdate(fact.id, content="Likes zucchini")
        assert [fact.content for fact in await facts.alist()] == ["Likes zucchini"]
    assert b"zucchini" not in (tmp_path / STORE).read_bytes()


async def test_searches_that_filter_and_page_find_what_they_find_without_a_key(tmp_path: Path) -> None:
    async def numbers(store: DurableSqliteStore, **asked: Any) -> list[str]:
        items = await store.asearch(("n",), **asked)
        return sorted(item.key for item in items)

    plain, encrypted = tmp_path / "plain", tmp_path / "encrypted"
    async with open_store(plain / STORE) as one, open_store(encrypted / STORE, Cipher(KEY)) as two:
        for store in (one, two):
            for number in range(20):
                await store.aput(("n",), f"{number:02}", {"odd": bool(number % 2), "of": f"thread {number % 3}"})
        for wanted in ({"of": "thread 1"}, {"of": "thread 1", "odd": True}, {"of": "nobody"}, None):
            assert await numbers(one, filter=wanted, limit=100) == await numbers(two, filter=wanted, limit=100)
        assert len(await two.asearch(("n",), limit=7)) == 7
        assert len(await two.asearch(("n",), filter={"of": "thread 1"}, limit=3)) == 3
        first = await two.asearch(("n",), filter={"of": "thread 1"}, limit=4)
        rest = await two.asearch(("n",), filter={"of": "thread 1"}, limit=100, offset=4)
        assert not {item.key for item in first} & {item.key for item in rest}
        with pytest.raises(ValueError, match="equality only"):
            await two.abatch([SearchOp(("n",), {"of": {"$gt": "a"}})])
        with pytest.raises(TypeError):
            await two.aput(("n",), "bad", {"set": {1}})


async def test_threads_are_found_in_the_file_by_what_only_the_key_can_read(tmp_path: Path) -> None:
    async with opened(tmp_path, KEY) as house:
        await talk(house)
        left = {"memory": {"unwritten": [], "has_unwritten": True}}
        await house.chat.aupdate_state(WHO, left, as_node="flush_memory")
    file = CheckpointFile(tmp_path / CHECKPOINTS, Cipher(KEY))
    assert [thread for thread, _ in await file.unwritten(10)] == ["T"]
    assert await file.holding(["T"], lambda _, text: "zeppelin" in text) == ["T"]
    assert await CheckpointFile(tmp_path / CHECKPOINTS).holding(["T"], lambda _, text: "zeppelin" in text) == []


def test_a_server_that_writes_threads_elsewhere_is_refused_with_the_fix(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unset the key, and encrypt the disk"):
        cipher_of_server(Settings(data_dir=tmp_path, encryption_key=KEY, writes_threads=True))
    assert cipher_of_server(Settings(data_dir=tmp_path, encryption_key=KEY)) is not None
    assert cipher_of_server(Settings(data_dir=tmp_path, writes_threads=True)) is None


def test_the_key_is_checked_and_never_shown() -> None:
    with pytest.raises(ValueError, match="LANGGRAPH_AES_KEY must have 16, 24 or 32 bytes, not 5"):
        Settings.from_environment({"LANGGRAPH_AES_KEY": "short"})
    settings = Settings.from_environment({"LANGGRAPH_AES_KEY": KEY.decode()})
    assert settings.encryption_key == KEY
    assert KEY.decode() not in repr(settings)
    dev = {"LANGSMITH_LANGGRAPH_API_VARIANT": "local_dev"}
    assert Settings.from_environment(dev).writes_threads
    assert not Settings.from_environment({}).writes_threads
