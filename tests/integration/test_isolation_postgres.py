"""Users beside each other in one Postgres: nobody is shown another's words, and what one erases is in no table."""

from itertools import permutations
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from graphs.chat import build_graph
from graphs.persistence.postgres_saver import open_postgres_checkpointer
from graphs.persistence.postgres_store import open_postgres_store
from graphs.service import MemoryService
from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.facts.store import FactStore
from memory.namespaces import Owner
from tests.fakes import RecordingModel, learns
from tests.forgetting import aerase_user
from tests.postgres import Postgres

WORDS = {"ada": "figs", "eve": "plums", "ada@example.org": "pears", "ада": "kumquats"}


def on(user: str, thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": f"{thread} of {user}", "langgraph_auth_user_id": user}}


async def test_users_see_and_erase_their_own_only(postgres: Postgres) -> None:
    database = postgres.database()
    model, reader = RecordingModel(respond=lambda _: "Noted."), RecordingModel(respond=learns)
    service = MemoryService(
        Settings(memory=MemoryConfig(debounce_seconds=3600, max_wait_seconds=3600)),
        lambda _, purpose: model if purpose == "chat" else reader,
    )
    async with open_postgres_store(database) as store, open_postgres_checkpointer(database) as saver:
        graph: Any = build_graph(service=service).compile(store=store, checkpointer=saver)
        for user, word in WORDS.items():
            await graph.ainvoke({"messages": [HumanMessage(f"I like {word}.")]}, on(user, "first"))
            await service.adrain(store, Owner.of(user))
        for user, word in WORDS.items():
            facts = [fact.content for fact in await FactStore.of_owner(store, Owner.of(user)).alist()]
            assert len(facts) == 1
            assert word in facts[0]
            await graph.ainvoke({"messages": [HumanMessage("What do I like?")]}, on(user, "second"))
            prompt = " ".join(message.text for message in model.prompts[-1])
            assert word in prompt
            assert [other for other in WORDS.values() if other != word and other in prompt] == []

        dumped = postgres.everything(database)
        assert [word for word in WORDS.values() if word.encode() not in dumped] == []
        for user, word in WORDS.items():
            await aerase_user(store, user)
            for thread in ("first", "second"):
                await saver.adelete_thread(f"{thread} of {user}")
                assert await saver.aget_tuple(on(user, thread)) is None
            assert word.encode() not in postgres.everything(database)
            others = list(WORDS.values())[list(WORDS).index(user) + 1 :]
            left = postgres.everything(database)
            assert [other for other in others if other.encode() not in left] == []


@pytest.mark.parametrize(("reads", "writes"), list(permutations(WORDS, 2)))
def test_no_user_s_namespaces_lie_below_another_s(reads: str, writes: str) -> None:
    """Postgres compares a namespace by its text, with wildcards in mind."""
    mine, other = (".".join(Owner.of(user).namespace("facts")) for user in (reads, writes))
    assert not other.startswith(mine)
    assert "%" not in mine
