"""G3: both checkpointers pass LangGraph's own tests of one, in all that a server asks of them but pruning.

`aprune` refuses: a thread is replayed from its older checkpoints.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from palimpsest import open_checkpointer, open_postgres_checkpointer

CAPABILITIES = ("put", "put_writes", "get_tuple", "list", "delete_thread", "delete_for_runs", "copy_thread")


async def conforms(capability: str, opened: AbstractAsyncContextManager[Any]) -> None:
    from langgraph.checkpoint.conformance import checkpointer_test, validate

    async def ours() -> AsyncIterator[Any]:
        async with opened as saver:
            yield saver

    result = (await validate(checkpointer_test(name="ours")(ours), capabilities={capability})).results[capability]
    assert not result.failures
    assert result.tests_passed > 3


async def vouches(opened: AbstractAsyncContextManager[Any]) -> None:
    """By the user of checkpoints the house knows whose memory an unwritten turn is for, and whose thread it erases."""
    eve = {"thread_id": "T", "checkpoint_ns": "", "langgraph_auth_user_id": "eve"}
    async with opened as saver:
        said = await saver.aput(
            {"configurable": eve, "metadata": {"langgraph_auth_user_id": "ada"}}, empty_checkpoint(), {}, {}
        )
        assert (await saver.aget_tuple(said)).metadata == {"langgraph_auth_user_id": "eve"}


async def test_our_sqlite_takes_no_clients_word_for_whose_a_checkpoint_is(tmp_path: Path) -> None:
    await vouches(open_checkpointer(tmp_path / "checkpoints.sqlite"))


async def test_our_postgres_takes_no_clients_word_for_whose_a_checkpoint_is(database: str) -> None:
    await vouches(open_postgres_checkpointer(database))


@pytest.mark.parametrize("capability", CAPABILITIES)
async def test_our_sqlite_conforms(capability: str, tmp_path: Path) -> None:
    await conforms(capability, open_checkpointer(tmp_path / "checkpoints.sqlite"))


@pytest.mark.parametrize("capability", CAPABILITIES)
async def test_our_postgres_conforms(capability: str, database: str) -> None:
    await conforms(capability, open_postgres_checkpointer(database))
