"""What one message passes on its way: functions, files, and store batches one after another.

    python -m benchmarks.path

A turn goes through the compiled chat graph, its update through the service, and the next turn of a new thread
shows the fact that was learned. Every function of `graphs` and `memory` that runs meanwhile is counted once, with the
file it stands in; a store in between counts its batches. The CPU time is the median of several turns.
"""

import asyncio
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from graphs.chat import build_graph
from graphs.process.service import MemoryService
from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.context.tokens import count_tokens
from memory.door import in_daemon_thread
from memory.namespaces import Owner
from memory.updates.conversation import ConversationContext
from tests.fakes import RecordingModel, learns
from tests.stores import CountingStore

HOUSE = Path(__file__).parents[1]
ROOMS = tuple(str(HOUSE / room) for room in ("graphs", "memory"))
TURNS = 31
HOUR = 3600.0


class Passed:
    """The functions that ran, each as its file and first line."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, int]] = set()

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.functions}

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOMS) and not code.co_name.startswith("<"):
            self.functions.add((code.co_filename, code.co_firstlineno))


@contextmanager
def watched() -> Iterator[Passed]:
    """Note what runs in this thread, and in those that begin meanwhile."""
    passed = Passed()
    threading.setprofile(passed.note)
    sys.setprofile(passed.note)
    try:
        yield passed
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


class House:
    """One process of ours, with models that answer at once."""

    def __init__(self) -> None:
        self.store = CountingStore()
        waits = MemoryConfig(debounce_seconds=HOUR, max_wait_seconds=HOUR)  # updates run when they are asked for
        self.talks, self.learns = RecordingModel(), RecordingModel(respond=learns)
        self.service = MemoryService(Settings(model="fake:model", memory=waits), self._model)
        self.chat = build_graph(service=self.service).compile(checkpointer=InMemorySaver(), store=self.store)

    def _model(self, _: str, purpose: str) -> BaseChatModel:
        return self.learns if purpose == "memory" else self.talks

    @property
    def model_calls(self) -> int:
        return len(self.talks.prompts) + len(self.learns.prompts)

    async def turn(self, text: str, thread_id: str) -> None:
        who: RunnableConfig = {"configurable": {"thread_id": thread_id, "langgraph_auth_user_id": "ada"}}
        await self.chat.ainvoke({"messages": [HumanMessage(text)]}, who)
        await work_behind_ends()

    async def update(self, thread_id: str) -> None:
        """Have a thread's turn read, as the queue does once it is quiet there."""
        context = ConversationContext.of(Owner.of("ada"), thread_id, self.store)
        reads = in_daemon_thread(partial(self.service._process, replace(context, at_once=True)))
        if await asyncio.wrap_future(reads) is not None:
            raise RuntimeError("one update was expected to leave nothing")
        await work_behind_ends()


async def work_behind_ends() -> None:
    """Return when what a turn or an update left to threads of memory is done: it is part of what they cost."""
    for thread in threading.enumerate():
        if thread.name.startswith("palimpsest-recall"):
            await asyncio.to_thread(thread.join)


@dataclass(frozen=True, slots=True)
class Passage:
    """What one message passed: functions, files, store batches of its turn and of its update, model calls."""

    functions: int
    files: int
    turn: int
    update: int
    model_calls: int


async def path_of_a_message(house: House) -> Passage:
    """Return what a message passes until the next turn of a new thread shows what was learned of it."""
    await house.turn("Hello.", "warm-up")  # what is loaded once is no part of a turn
    await house.update("warm-up")
    before, asked = house.store.batches, house.model_calls
    with watched() as passed:
        await house.turn("I like figs.", "first")
        turn = house.store.batches - before
        await house.update("first")
        update, calls = house.store.batches - before - turn, house.model_calls - asked
        await house.turn("What do I like?", "second")
    return Passage(len(passed.functions), len(passed.files), turn, update, calls)


async def main_async() -> None:
    house = House()
    path = await path_of_a_message(house)
    print(f"functions {path.functions}, files {path.files}")
    print(f"store batches: a turn {path.turn}, an update {path.update}; model calls {path.model_calls}")
    await house.update("second")
    turns, updates = [], []
    for number in range(TURNS):
        turns.append(await _cpu(house.turn(f"I like number {number}.", f"t{number}")))
        updates.append(await _cpu(house.update(f"t{number}")))
    print(f"median CPU of a turn {statistics.median(turns):.1f} ms, of an update {statistics.median(updates):.1f} ms")


async def _cpu(work: Any) -> float:
    started = time.process_time()
    await work
    return 1000 * (time.process_time() - started)


def main() -> None:
    count_tokens("load the tokenizer")
    asyncio.run(main_async())


if __name__ == "__main__":
    main()
