"""A synchronous store that hangs takes none of the threads that an event loop shares out."""

import asyncio
import threading
from collections.abc import Iterable
from contextlib import suppress

from langchain_core.language_models import FakeListChatModel
from langgraph.store.base import Op, Result
from langgraph.store.memory import InMemoryStore

from graphs.process.synchronous import ThreadedStore
from memory.door import arun, read

PATIENCE = 60.0
MORE_THAN_SHARED = 40
"""A loop shares out 32 threads at most."""


class Stuck(InMemoryStore):
    """Answers no call until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        self.released.wait()
        return super().batch(ops)


async def test_a_synchronous_model_still_answers_and_the_loop_ends() -> None:
    stuck, model = Stuck(), FakeListChatModel(responses=["Fine."])
    store = ThreadedStore(stuck)

    async def ask_in_vain() -> None:
        with suppress(TimeoutError):
            await arun(store, read(("place",), "key"), 0.01)

    try:
        await asyncio.gather(*(ask_in_vain() for _ in range(MORE_THAN_SHARED)))
        async with asyncio.timeout(PATIENCE):
            assert (await model.ainvoke("Hello.")).text == "Fine."
            # The end of `asyncio.run` waits for the shared threads.
            await asyncio.get_running_loop().shutdown_default_executor()
    finally:
        stuck.released.set()
