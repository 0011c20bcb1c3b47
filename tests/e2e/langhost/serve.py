"""One server process over Postgres and Redis: `langhost serve`, with what its runtime lacks for this project.

`langgraph-runtime-pg` takes the place of the in-memory runtime in the stock `langgraph-api`. It is made for an older
one; what stands in the way here of its faults is mended in the smallest place.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from functools import partial
from typing import Any

from langgraph.store.base import BaseStore, Op, Result
from langgraph_runtime_pg import database, ops, redis_stream, store
from langgraph_runtime_pg.migrate import upgrade_head
from sqlalchemy.exc import IllegalStateChangeError
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

_SOON_SECONDS = 0.01

_open: Callable[[], BaseStore] = store.Store


class StoreOfTheServer(BaseStore):
    """The server's store by the time it is asked.

    A server with routes of its own (`http.app`) wants the store already when it begins to start, and keeps it. The
    runtime opens its own only later, and raises until then.
    """

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return _open().batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await _open().abatch(ops)


def _store(*args: Any, **kwargs: Any) -> BaseStore:
    return _open() if store._STORE else StoreOfTheServer()


class Session(AsyncSession):  # type: ignore[misc, unused-ignore]  # its package is not in every environment
    """A session that is closed only once nothing is under way in it.

    The server asks for a thread and its run at the same time, in one session. When the one is refused, the session is
    closed, and the other may still be asking: the rollback then fails, and the request with it.
    """

    async def execute(self, *args: Any, **kwargs: Any) -> Any:
        async with self._turn():
            return await super().execute(*args, **kwargs)

    async def get(self, *args: Any, **kwargs: Any) -> Any:
        async with self._turn():
            return await super().get(*args, **kwargs)

    async def scalar(self, *args: Any, **kwargs: Any) -> Any:
        async with self._turn():
            return await super().scalar(*args, **kwargs)

    async def close(self) -> None:
        while True:
            try:
                async with self._turn():
                    await super().close()
                return
            except IllegalStateChangeError:  # what takes no turns is under way
                await asyncio.sleep(_SOON_SECONDS)

    def _turn(self) -> asyncio.Lock:
        turn: asyncio.Lock = self.info.setdefault("turn", asyncio.Lock())
        return turn


def _json(value: object) -> str:
    # The server imports its configuration with this, which is read from the environment that `serve` sets.
    from langgraph_api.serde import json_dumpb

    dumped: bytes = json_dumpb(value)
    return dumped.decode()


def _without(owner: type, method: str, unknown: str) -> None:
    known: Callable[..., Awaitable[object]] = getattr(owner, method)

    async def called(*args: Any, **kwargs: Any) -> object:
        kwargs.pop(unknown, None)
        return await known(*args, **kwargs)

    setattr(owner, method, staticmethod(called))


class _OfCron(dict[str, Any]):
    """A cron's metadata, to be filled in: the runtime takes another where it says that it is empty."""

    def __bool__(self) -> bool:
        return True


def _with_metadata() -> None:
    told, put = ops.Crons.handle_event, ops.Crons.put
    said: ContextVar[_OfCron] = ContextVar("said")

    async def handle_event(ctx: object, action: str, value: dict[str, Any]) -> object:
        if action == "create":
            value["metadata"] = said.get()
        return await told(ctx, action, value)

    async def put_cron(*args: Any, metadata: dict[str, Any] | None = None, **kwargs: Any) -> object:
        said.set(_OfCron(metadata or {}))
        return await put(*args, metadata=said.get(), **kwargs)

    ops.Crons.handle_event, ops.Crons.put = staticmethod(handle_event), staticmethod(put_cron)


def _from_their_beginning() -> None:
    subscribed = ops.Threads.Stream.subscribe

    async def subscribe(
        conn: Any, thread_id: Any, seen_runs: Any, *, after_id: str | None = None, replay: bool = True
    ) -> Any:
        queues = await subscribed(conn, thread_id, seen_runs, after_id=after_id, replay=replay)
        for run_id, queue in queues if replay else ():
            if str(run_id) != str(thread_id):
                kept = await ops.get_stream_manager().arestore_messages(run_id, thread_id, after_id or "-")
                # Nobody reads from it yet, and none of what follows lets anybody in between.
                came = [queue.get_nowait() for _ in range(queue.qsize())]
                for message in sorted({each.id: each for each in (*kept, *came)}.values(), key=_place):
                    queue.put_nowait(message)
        return queues

    ops.Threads.Stream.subscribe = staticmethod(subscribe)


def _place(message: redis_stream.Message) -> tuple[int, int, str]:
    place: tuple[int, int, str] = redis_stream.ms_seq_id_sort_key((message.id or b"").decode())
    return place


def mend() -> None:
    """Change the runtime before a server is made of it."""
    store.Store = _store
    # A run carries who asked for it, an object of the server's own that plain JSON does not know: without this every
    # run of a user who logged in fails, and no cron fires.
    database.create_async_engine = partial(create_async_engine, json_serializer=_json)
    database.async_sessionmaker = partial(async_sessionmaker, class_=Session)
    # Newer servers say more than the runtime takes: why a run is cancelled, which only a log would tell, and that a
    # cron shall have no last day any more.
    _without(ops.Runs, "cancel", "reason")
    _without(ops.Crons, "update", "clear_end_time")
    # Whoever decides about a new cron writes down whose it is: without this no cron belongs to anybody.
    _with_metadata()
    # Whoever streams a thread looks for new runs at intervals. Of one in another process it is handed only what is
    # published from then on, and never what Redis keeps of its beginning.
    _from_their_beginning()


async def _make_tables() -> None:
    from langgraph_runtime_pg import checkpoint

    for setup, teardown in (
        (checkpoint.setup_checkpointer, checkpoint.teardown_checkpointer),
        (store.setup_store, store.teardown_store),
    ):
        await setup()
        await teardown()


def main() -> None:
    """Serve, or with `migrate` make the tables: processes that start at the same time would race for that."""
    if sys.argv[1:] == ["migrate"]:
        upgrade_head()
        asyncio.run(_make_tables())
        return
    from langhost.cli import cli

    mend()
    cli()


if __name__ == "__main__":
    main()
