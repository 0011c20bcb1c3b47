"""A look at checkpoints finds turns that were not written down and writes each down once, for whom the server names."""

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import Op, Result
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.middleware import PalimpsestMemory, PalimpsestState
from graphs.persistence.sqlite_saver import open_checkpointer
from graphs.process.data_folder import CHECKPOINTS
from graphs.server.unwritten import vouched_owner, write_down_left
from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.door import arun
from memory.namespaces import Owner, user_segment
from memory.updates.outbox import read_entries
from tests.fakes import RecordingModel
from tests.patience import all_have_answered
from tests.untriggered import Untriggered

ADA, BOB = Owner.of("ada"), Owner.of("bob")


class FailingStore(InMemoryStore):
    fails = False

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        if self.fails:
            raise OSError("the disk is gone")
        return await super().abatch(ops)


class House:
    """The chat graph or an agent with our SQLite saver, as a server has it, and a store that may fail."""

    def __init__(self, folder: Path, saver: Any, door: str = "graph") -> None:
        self.now = 1_800_000_000.0
        self.store = FailingStore()
        patient = MemoryConfig(read_timeout_seconds=60, write_timeout_seconds=60)  # what fails here fails at once
        settings = Settings(data_dir=folder, memory=patient)
        self.chat = RecordingModel()
        self.service = Untriggered(settings, lambda *_: self.chat, clock=lambda: self.now)
        self.service.bind(saver)
        self.graph: Any = self._compiled(door, {"checkpointer": saver, "store": self.store})

    def _compiled(self, door: str, kept: dict[str, Any]) -> Any:
        if door == "graph":
            return build_graph(service=self.service).compile(**kept)
        around = [
            PalimpsestMemory(service=self.service, name="Memory"),
            PalimpsestMemory(user="team", name="Team", tools=(), service=self.service),
        ]
        if door == "deep agent":
            return pytest.importorskip("deepagents").create_deep_agent(self.chat, middleware=around, **kept)
        state: Any = {} if "whole" in door else {"state_schema": PalimpsestState}
        return create_agent(self.chat, middleware=around, **state, **kept)

    def who(self, user_id: str = "ada") -> RunnableConfig:
        return {"configurable": {"thread_id": f"of {user_id}", "langgraph_auth_user_id": user_id}}

    async def say(self, text: str, user_id: str = "ada") -> None:
        self.now += 1
        await self.graph.ainvoke({"messages": [HumanMessage(text)]}, self.who(user_id))

    async def heal(self) -> None:
        self.store.fails = False
        await all_have_answered(self.service)

    async def pending(self, owner: Owner = ADA) -> list[str]:
        entries = await arun(self.store, read_entries(owner))
        said = (message.text for entry in entries for message in entry.messages if message.role == "user")
        return list(dict.fromkeys(said))  # an agent writes down what was asked, and the turn when it ends


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with AsyncExitStack() as stack:
        yield House(tmp_path, await stack.enter_async_context(open_checkpointer(tmp_path / CHECKPOINTS)))


async def test_threads_that_are_written_down_keep_no_later_one_from_being_found(tmp_path: Path) -> None:
    async with open_checkpointer(tmp_path / CHECKPOINTS) as saver:
        house = House(tmp_path, saver)
        house.store.fails = True
        users = ["ada", "bob", "cleo", "dan", "eve"]
        for user_id in users:
            await house.say("I like figs.", user_id)
        await house.heal()
        assert await write_down_left(house.service, house.store, page=2) == len(users)
        assert [await house.pending(Owner.of(user_id)) for user_id in users] == [["I like figs."]] * len(users)
        assert await write_down_left(house.service, house.store, page=2) == 0


@pytest.mark.parametrize(
    ("user_id", "single_user", "is_vouched"),
    [
        ("ada", False, True),
        ("bob", False, False),
        ("ada", True, True),
        ("bob", True, False),
        ("", True, True),
        ("", False, False),
    ],
)
def test_a_server_vouches_for_its_user_alone(user_id: str, single_user: bool, is_vouched: bool) -> None:
    owner = Owner(user_segment("ada"), "work")
    assert vouched_owner(owner.due_key, user_id, single_user=single_user) == (owner if is_vouched else None)
