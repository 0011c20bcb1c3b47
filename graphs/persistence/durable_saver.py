"""What our checkpointers do that stock ones lack, once for SQLite and Postgres: statements in one language of both."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.base import id as ids

from graphs.process.identity import SAVED_BY
from memory.context.running_summary import RunningSummary
from memory.text import check_encodable

CHECKPOINTED_TYPES = ((RunningSummary.__module__, RunningSummary.__qualname__),)
"""Our classes that come back from a checkpoint as themselves; with these named, no unknown class is ever built."""

KEPT_SECONDS = 7 * 86_400
"""Longer than any run that was going on when its thread was deleted."""

_SAVE_SECONDS = 10.0  # how long a reader, or what a task wrote, waits for its thread's checkpoint
_FIRST_SECONDS = 0.1  # how long what was written waits for a first one that nobody saves yet
_NEXT_STEPS = 8  # so many of the event loop at most, and LangGraph saves what waited for the end of a save

Execute = Callable[..., Awaitable[list[Any]]]
"""Executes a statement with the values of its `:names`, and returns the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Where SQLite and Postgres differ.

    Attributes:
        writes: The table of what tasks wrote.
        tables: All that hold something of a thread.
        copies: The statements that copy a thread, `:source`, to another, `:target`.
        unwritten: Which threads, `:limit` of them behind `:after`, each with its user, may name unwritten turns.
        saying: The expression for the value under `{name}` of the metadata `{of}`.
        among: The operator and the parameter that compare an expression with a list of values.
        listed: Returns the list as that parameter takes it.
    """

    writes: str
    tables: Sequence[str]
    copies: Sequence[str]
    unwritten: str
    saying: str
    among: str
    listed: Callable[[list[str]], object]

    def said(self, name: str, of: str = "metadata") -> str:
        """Return the expression for what the metadata of a checkpoint say under a name."""
        return self.saying.format(name=name, of=of)

    def user(self, of: str = "metadata") -> str:
        """Return the expression for whose checkpoint it is, as the server says; empty where nobody logs in."""
        return f"COALESCE({self.said(SAVED_BY, of)}, '')"


CREATE = """
    CREATE TABLE IF NOT EXISTS palimpsest_dead_checkpoints (
        thread_id TEXT NOT NULL, checkpoint_id TEXT NOT NULL, at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (thread_id, checkpoint_id))"""
_AGAIN = "ON CONFLICT (thread_id, checkpoint_id) DO UPDATE SET at = excluded.at"
_BURY = f"""
    INSERT INTO palimpsest_dead_checkpoints (thread_id, checkpoint_id, at)
    VALUES (:thread, :checkpoint, CAST(:now AS DOUBLE PRECISION)) {_AGAIN}"""
_BURY_THREAD = f"""
    INSERT INTO palimpsest_dead_checkpoints (thread_id, checkpoint_id, at)
    SELECT DISTINCT thread_id, checkpoint_id, CAST(:now AS DOUBLE PRECISION) FROM checkpoints
    WHERE thread_id = :thread {_AGAIN}"""
_FORGET = "DELETE FROM palimpsest_dead_checkpoints WHERE at < :before"
_KEY = "thread_id, checkpoint_ns, checkpoint_id"


class DurableSaver(BaseCheckpointSaver[str]):
    """What is the same in each saver of ours.

    Every write is one transaction: a run cancelled in the middle of one leaves no lock behind for others. What is
    read back is limited to LangGraph's and LangChain's own types and `CHECKPOINTED_TYPES`, with or without
    `LANGGRAPH_STRICT_MSGPACK`; an object of any other class comes back as plain data. A run that is going on in a
    thread that somebody deletes, in this process or another, saves nothing; it must not fail for that.
    """

    sql: ClassVar[Dialect]
    _beginning: dict[str, asyncio.Event]
    """Threads without a checkpoint, for whose first one something waits."""
    _saving: set[tuple[str, asyncio.Future[None]]]
    """Threads of which something is being saved, each with the end of that."""

    def _transaction(
        self, *, shares: Sequence[str] = (), owns: Sequence[str] = ()
    ) -> AbstractAsyncContextManager[tuple[Self, Execute]]:
        """Begin a transaction; yield this saver in it, and what executes statements.

        Args:
            shares: Threads from which nobody else deletes meanwhile.
            owns: Threads in which nobody else saves meanwhile: a deletion sees all that was saved before it, and what
                is saved later sees the deletion.
        """
        raise NotImplementedError

    async def _reader(self) -> Self:
        """Return this saver on what it reads with."""
        return self

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that a config names, or the newest of its thread, or `None`.

        It waits for what is being saved of the thread: a run that was stopped saves on, and who went on beside that
        would lose what was said in it.
        """
        await self._settled(thread_named(config))
        return before_next(await super(DurableSaver, await self._reader()).aget_tuple(config))

    async def _settled(self, thread_id: str, *, steps: int = _NEXT_STEPS) -> None:
        """Return once nothing of a thread is being saved, nor begun in so many steps, or after a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SAVE_SECONDS):
                while saving := [end for thread, end in self._saving if thread == thread_id]:
                    await asyncio.wait(saving)
                    for _ in range(steps):
                        await asyncio.sleep(0)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 (the name is the base class's)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield the matching checkpoints, newest first.

        They are read before the first is yielded: the stock method holds the saver's lock, or a connection, while it
        is iterated, so that any other use of the saver inside the loop would wait forever.
        """
        if "thread_id" in (config or {}).get("configurable", {}):
            thread_named(config or {})
        reader = await self._reader()
        listed = super(DurableSaver, reader).alist(config, filter=filter, before=before, limit=limit)
        for found in [found async for found in listed]:
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint, unless its thread was deleted meanwhile, and return the config that finds it.

        Whose it is, its configuration says alone: LangGraph believes a run's metadata first, which a client writes.
        """
        said = config.get("metadata", {}).items()
        config = {**config, "metadata": {name: each for name, each in said if name != SAVED_BY}}
        thread_id, checkpoint_id = thread_named(config), checkpoint["id"]
        parents = (metadata.get("parents") or {}).values()
        try:
            async with self._save(thread_id) as (saver, execute):
                if not (await self._fate(execute, config, *parents))[0]:
                    return await super(DurableSaver, saver).aput(config, checkpoint, metadata, new_versions)
                at = {"thread": thread_id, "checkpoint": checkpoint_id}
                await execute(_BURY, now=time.time(), **at)
                written = f"DELETE FROM {self.sql.writes} WHERE thread_id = :thread AND checkpoint_id = :checkpoint"
                await execute(written, **at)
        finally:
            self._wake(thread_id)
        return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint_id}}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what one task wrote, all of it or nothing; nothing if its thread was deleted meanwhile.

        It waits for its thread's first checkpoint, which names the user: an erase finds a user's threads by that alone.
        Where nobody saves that, it waits for what is written here, as behind a `Command` that begins a thread.
        """
        thread_id = thread_named(config)
        for has_waited in (False, True):
            first = self._beginning.setdefault(thread_id, asyncio.Event())
            async with self._save(thread_id) as (saver, execute):
                is_dead, is_begun = await self._fate(execute, config)
                if (is_begun or has_waited) and not is_dead:
                    await super(DurableSaver, saver).aput_writes(config, writes, task_id, task_path)
            if is_begun or is_dead:
                break
            await self._settled(thread_id, steps=0)  # before who reads looks again
            with suppress(TimeoutError):
                async with asyncio.timeout(_FIRST_SECONDS):
                    await first.wait()
        self._wake(thread_id)

    @asynccontextmanager
    async def _save(self, thread_id: str) -> AsyncIterator[tuple[Self, Execute]]:
        saving = thread_id, asyncio.get_running_loop().create_future()
        self._saving.add(saving)
        try:
            async with self._transaction(shares=[thread_id]) as begun:
                yield begun
        finally:
            self._saving.discard(saving)
            saving[1].set_result(None)

    def _wake(self, thread_id: str) -> None:
        if waiting := self._beginning.pop(thread_id, None):
            waiting.set()

    async def _fate(self, execute: Execute, config: RunnableConfig, *parents: str) -> tuple[bool, bool]:
        """Say whether its run, or the checkpoint before it with its thread, was deleted, and if the thread has any."""
        run_id = config.get("metadata", {}).get("run_id")
        before = {str(each) for each in (config["configurable"].get("checkpoint_id"), run_id, *parents) if each}
        ((is_dead, is_begun),) = await execute(
            f"""
            SELECT EXISTS (SELECT 1 FROM palimpsest_dead_checkpoints
                WHERE thread_id = :thread AND checkpoint_id {self.sql.among.format("ids")}),
                EXISTS (SELECT 1 FROM checkpoints WHERE thread_id = :thread)""",
            thread=thread_named(config),
            ids=self.sql.listed(sorted(before)),
        )
        return bool(is_dead), bool(is_begun)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread, also what a run saves that is going on in it; an unknown one is no error.

        A thread that is created anew under the id lives.
        """
        check_encodable("thread_id", thread_id)
        now = time.time()
        async with self._transaction(owns=[thread_id]) as (_, execute):
            await execute(_FORGET, before=now - KEPT_SECONDS)
            await execute(_BURY_THREAD, thread=thread_id, now=now)
            for table in self.sql.tables:
                await execute(f"DELETE FROM {table} WHERE thread_id = :thread", thread=thread_id)

    async def adelete_for_runs(self, run_ids: Collection[str]) -> None:
        """Delete the checkpoints and writes of these runs, but those from which another run's state is replayed.

        A run that is going on saves nothing more.
        """
        of_runs = f"{self.sql.said('run_id')} {self.sql.among.format('runs')}"
        runs = self.sql.listed([str(run_id) for run_id in run_ids])
        going = f"""
            WITH RECURSIVE doomed AS (
                SELECT {_KEY}, parent_checkpoint_id AS parent FROM checkpoints WHERE thread_id = :thread AND {of_runs}),
            needed AS (
                SELECT doomed.* FROM checkpoints AS child JOIN doomed ON child.thread_id = doomed.thread_id
                    AND child.checkpoint_ns = doomed.checkpoint_ns AND child.parent_checkpoint_id = doomed.checkpoint_id
                WHERE child.checkpoint_id NOT IN (SELECT checkpoint_id FROM doomed)
                    AND {self.sql.said("counters_since_delta_snapshot", "child.metadata")} IS NOT NULL
                UNION SELECT doomed.* FROM needed JOIN doomed ON needed.thread_id = doomed.thread_id
                    AND needed.checkpoint_ns = doomed.checkpoint_ns AND needed.parent = doomed.checkpoint_id)
            SELECT {_KEY} FROM doomed EXCEPT SELECT {_KEY} FROM needed"""
        async with self._transaction() as (_, execute):
            found = await execute(f"SELECT DISTINCT thread_id FROM checkpoints WHERE {of_runs}", runs=runs)
        for thread_id in sorted(thread_id for (thread_id,) in found):
            async with self._transaction(owns=[thread_id]) as (_, execute):
                for run_id in run_ids:  # it may be going on: what it saves would be replayed from what is gone
                    await execute(_BURY, thread=thread_id, checkpoint=str(run_id), now=time.time())
                for _, namespace, checkpoint_id in await execute(going, thread=thread_id, runs=runs):
                    for table in ("checkpoints", self.sql.writes):
                        at = {"thread": thread_id, "ns": namespace, "checkpoint": checkpoint_id}
                        key = "thread_id = :thread AND checkpoint_ns = :ns AND checkpoint_id = :checkpoint"
                        await execute(f"DELETE FROM {table} WHERE {key}", **at)
                await self._drop_unused(execute, thread_id)

    async def _drop_unused(self, execute: Execute, thread_id: str) -> None:
        """Delete what no checkpoint of a thread uses any more, where it stands apart."""

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread to another one, under the same checkpoint ids."""
        names = {"source": str(source_thread_id), "target": str(target_thread_id)}
        for name, thread_id in names.items():
            check_encodable(f"{name}_thread_id", thread_id)
        if names["source"] != names["target"]:
            async with self._transaction(shares=sorted(names.values())) as (_, execute):
                for statement in self.sql.copies:
                    await execute(statement, **names)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Refuse: the stock way empties threads whose newest state is replayed from older checkpoints."""
        # One of our own: a server warns at its start of a saver that has none.
        raise NotImplementedError(
            "aprune is refused: a thread's newest state is replayed from older checkpoints; delete threads that are old"
        )


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints as they are kept, whatever a server knows of their threads; where nothing is kept, none.

    Attributes:
        sql: How they are asked for.
        read: Returns the rows of a query with the values of its `:names`.
    """

    sql: Dialect
    read: Callable[[str, dict[str, object]], Awaitable[list[Any]]]

    async def threads_of(self, user_ids: Collection[str]) -> list[str]:
        """Return the ids of the threads in which these users have saved, and no other; no user is the empty id.

        A state that a client writes, and a copy, name no user.
        """
        are_theirs, other = self.sql.among.format("users"), self.sql.user("other.metadata")
        query = f"""
            SELECT thread_id FROM (
                SELECT DISTINCT thread_id FROM checkpoints WHERE {self.sql.user()} {are_theirs}) AS theirs
            WHERE NOT EXISTS (SELECT 1 FROM checkpoints AS other
                WHERE other.thread_id = theirs.thread_id AND {other} <> '' AND NOT {other} {are_theirs})"""
        found = await self.read(query, {"users": self.sql.listed(list(user_ids))})
        return [str(thread_id) for (thread_id,) in found]

    async def unwritten(self, limit: int, after: str = "") -> list[tuple[str, str]]:
        """Return the threads, each with its user, whose newest state may name turns that are not written down yet.

        Args:
            limit: So many at most, in the order of their ids.
            after: Only threads whose ids come behind this one.
        """
        found = await self.read(self.sql.unwritten, {"after": after, "limit": limit})
        return [(str(thread_id), str(user_id)) for thread_id, user_id in found]


def before_next(found: CheckpointTuple | None) -> CheckpointTuple | None:
    """Return a checkpoint that was read, and have the next one of this process come after it.

    The newest checkpoint of a thread is the one with the largest id, which begins with the time. LangGraph's own guard
    knows what this process made alone: a clock may have gone back since the last one, or be behind that of another.
    """
    with suppress(ValueError):  # an id of somebody else's making
        known = ids.UUID(found.checkpoint["id"]) if found else None
        if known and known.version == 6 and known.time >= ids.uuid6().time:
            vars(ids)["_last_v6_timestamp"] = known.time
    return found


def thread_named(config: RunnableConfig) -> str:
    """Return the thread that a config names; `ValueError` if nothing could hold its id."""
    thread_id = str(config["configurable"]["thread_id"])
    check_encodable("thread_id", thread_id)
    return thread_id
