"""A thread id that cannot be stored is refused by name, before anything is said or lost."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.persistence.sqlite_saver import DurableSqliteSaver, open_checkpointer
from graphs.settings import Settings
from memory.updates.conversation import ConversationContext
from tests.fakes import RecordingModel
from tests.untriggered import Untriggered

LONE = "thread \ud800"
REFUSED = r"thread_ids? must be text without lone surrogates, but has U\+D800 at position 7: choose another id"


@pytest.fixture
async def saver(tmp_path: Path) -> AsyncIterator[DurableSqliteSaver]:
    async with open_checkpointer(tmp_path / "checkpoints.sqlite") as saver:
        yield saver


@pytest.mark.parametrize("is_ours", [True, False])
async def test_a_turn_of_such_a_thread_is_refused(saver: DurableSqliteSaver, is_ours: bool) -> None:
    model = RecordingModel()
    service = Untriggered(Settings(single_user=True), lambda *_: model)
    checkpointer: BaseCheckpointSaver[str] = saver if is_ours else InMemorySaver()
    graph = build_graph(service=service).compile(checkpointer=checkpointer, store=InMemoryStore())
    with pytest.raises(ValueError, match=REFUSED):
        await graph.ainvoke({"messages": [HumanMessage("Hello")]}, {"configurable": {"thread_id": LONE}})
    assert model.prompts == []


Use = Callable[[DurableSqliteSaver], Awaitable[object]]
USES: list[Use] = [
    lambda saver: saver.aget_tuple({"configurable": {"thread_id": LONE}}),
    lambda saver: saver.aput({"configurable": {"thread_id": LONE, "checkpoint_ns": ""}}, empty_checkpoint(), {}, {}),
    lambda saver: saver.aput_writes({"configurable": {"thread_id": LONE}}, [("said", "hello")], "task"),
    lambda saver: saver.adelete_thread(LONE),
    lambda saver: saver.acopy_thread(LONE, "copy"),
    lambda saver: saver.acopy_thread("original", LONE),
]


@pytest.mark.parametrize("use", USES)
async def test_the_saver_refuses_it_and_goes_on(saver: DurableSqliteSaver, use: Use) -> None:
    with pytest.raises(ValueError, match=REFUSED):
        await use(saver)
    await saver.adelete_thread("another")
    assert await saver.aget_tuple({"configurable": {"thread_id": "another"}}) is None


def test_the_queue_refuses_it() -> None:
    with pytest.raises(ValueError, match=REFUSED):
        ConversationContext(LONE, "ada")
