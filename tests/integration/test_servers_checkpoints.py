"""What erasing finds in checkpoints that a server keeps itself, in tables that are not ours."""

import logging
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from graphs.persistence import checkpointed_threads
from graphs.settings import Settings
from tests.postgres import Postgres
from tests.saver_graphs import echo_graph, on


@pytest.fixture
async def stock(database: str) -> AsyncIterator[AsyncPostgresSaver]:
    """The saver of a server that is not ours."""
    async with AsyncPostgresSaver.from_conn_string(database) as saver:
        await saver.setup()
        yield saver


def kept(uri: str) -> Settings:
    """A server that keeps checkpoints itself, in this database."""
    return Settings(keeps_its_own=True, database_uri=uri)


async def test_the_servers_tables_tell_whose_threads_there_are(stock: AsyncPostgresSaver, database: str) -> None:
    graph = echo_graph(stock)
    for thread, user in (("adas", "ada"), ("nobodys", ""), ("shared", "ada"), ("shared", "eve")):
        await graph.ainvoke({"messages": [HumanMessage("hello")]}, on(thread, user=user))
    assert await checkpointed_threads(kept(database), ["ada"]) == ["adas"]
    assert sorted(await checkpointed_threads(kept(database), ["", "ada"])) == ["adas", "nobodys"]
    await stock.adelete_thread("adas")
    assert await checkpointed_threads(kept(database), ["ada"]) == []


async def test_ids_of_threads_may_be_of_another_type(postgres: Postgres, database: str) -> None:
    thread_id = uuid4()
    with postgres.connect(database) as connection:
        connection.execute("CREATE TABLE checkpoints (thread_id uuid, metadata jsonb)")
        connection.execute("CREATE TABLE checkpoint_writes (thread_id uuid)")
        connection.execute('INSERT INTO checkpoints VALUES (%s, \'{"langgraph_auth_user_id": "ada"}\')', (thread_id,))
    assert await checkpointed_threads(kept(database), ["ada"]) == [str(thread_id)]


@pytest.mark.parametrize("table", ["checkpoint_writes", "checkpoints, checkpoint_writes"])
async def test_where_the_tables_are_others_the_log_says_what_is_not_found(
    postgres: Postgres, database: str, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    with postgres.connect(database) as connection:
        for each in table.split(", "):
            connection.execute(f"CREATE TABLE {each} (id uuid)")
    with caplog.at_level(logging.WARNING):
        assert await checkpointed_threads(kept(database), ["ada"]) == []
    assert "checkpoints whose thread has no row any more are not looked for, nor erased" in caplog.text


async def test_without_a_database_to_read_the_log_says_so_too(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert await checkpointed_threads(kept(""), ["ada"]) == []
        assert await checkpointed_threads(kept("postgresql://127.0.0.1:1/name"), ["ada"]) == []
    without, away = caplog.messages
    assert "it takes DATABASE_URI, and palimpsest-memory[postgres] beside the server" in without
    assert "the server's database cannot be read (OperationalError)" in away
