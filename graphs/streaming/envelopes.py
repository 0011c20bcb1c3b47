"""Which checkpoint an event belongs to: a pure pairing of one run's events with the checkpoints it makes.

The rule, for a run that has a checkpointer:

- a node's events, and those of everything below it, carry the checkpoint that its step runs from;
- a chunk of `values` carries the checkpoint that it equals;
- `updates`, `tasks`, `custom` and `messages` chunks carry the checkpoint that the step they come from runs from;
- the root's start carries the run's first checkpoint (its input; the one resumed or forked from), its end the last;
- in a subgraph all this holds for the subgraph's own checkpoints; one without a checkpointer of its own
  carries those of the graph around it.

Without a checkpointer there are no checkpoints, and `checkpoint` is `None` everywhere.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from typing_extensions import TypedDict

Namespace = tuple[str, ...]
StreamMode = Literal["values", "updates", "messages", "custom", "debug", "tasks", "checkpoints"]

REQUIRED_MODES: Final[tuple[StreamMode, ...]] = ("checkpoints", "tasks", "custom")
"""What the pairing itself must hear: checkpoints, that a graph runs tasks without making any, and what nodes write."""

CUSTOM_EVENT: Final = "custom"
"""The name of the event that a node's `get_stream_writer()` makes; what it wrote is the event's data."""


class Checkpoint(TypedDict):
    """A light envelope: enough to fetch, resume or fork from the checkpoint.

    Attributes:
        id: Its id in its namespace, as in the thread's history.
        parent_id: Id of the checkpoint before it, or `None` for the first.
        step: Its superstep: -1 for the first input, then 0, 1, ...
        source: Why it was made: `input`, `loop`, `update` or `fork`.
    """

    id: str
    parent_id: str | None
    step: int
    source: str


class PlainEvent(TypedDict):
    """One event in LangChain's v2 shape.

    The root's `on_chain_stream` events have `data["chunk"] = (namespace, mode, chunk)`; the namespace is empty for
    the graph itself and names the tasks on the way to a subgraph.
    """

    event: str
    name: str
    run_id: str
    parent_ids: Sequence[str]
    tags: list[str]
    metadata: dict[str, Any]
    data: Any


class StreamEvent(PlainEvent):
    """One event in LangChain's v2 shape, plus `type` (equal to `event`) and `checkpoint`."""

    type: str
    checkpoint: Checkpoint | None


class _Slot(NamedTuple):
    """Where an envelope is to be looked up: the checkpoint of a step, or the next one, of a graph."""

    graph: Namespace
    step: int | None


class _Run(NamedTuple):
    """A runnable that has started: the path of the task it belongs to, and the slot that this path and step say."""

    task: Namespace
    slot: _Slot
    parent: "_Run | None"


class _Held(NamedTuple):
    """An event whose checkpoint is not known yet."""

    event: StreamEvent
    run: _Run


class EnvelopePairing:
    """Stamps the events of one run, in the order they come.

    An event is given back as soon as its checkpoint is known, which is at once but for two cases: `values` wait
    for the checkpoint that is announced right behind them, and the first events of a subgraph's step for the
    announcement of that step. Both are on their way already; nothing waits for a step to end.

    Args:
        modes: The chunks to give back; others are used and dropped.
    """

    def __init__(self, modes: Iterable[StreamMode]) -> None:
        self._modes = frozenset(modes)
        self._root_id: str | None = None
        self._root: Namespace = ()
        self._runs: dict[str, _Run] = {}
        self._latest: dict[Namespace, Checkpoint | None] = {}
        self._steps: dict[_Slot, Checkpoint] = {}
        self._announced: dict[str, Namespace] = {}
        self._held: defaultdict[Namespace, list[_Held]] = defaultdict(list)

    def feed(self, event: PlainEvent) -> list[StreamEvent]:
        """Take the next event of the run and return those that are ready, oldest first."""
        if self._root_id is None:
            self._root_id, self._root = event["run_id"], _namespace(event["metadata"])
            return self._stamp_or_hold(event, self._remember(event, _Run(self._root, _Slot(self._root, None), None)))
        if event["run_id"] == self._root_id:
            if event["event"] == "on_chain_stream":
                return self._chunk(event, *event["data"]["chunk"])
            if event["event"] == "on_chain_end":
                return [*self.finish(), _stamped(event, self._latest.get(self._root))]
        return self._stamp_or_hold(event, self._run_of(event))

    def finish(self) -> list[StreamEvent]:
        """Return what is still held: nothing more is coming, so the newest checkpoint there is counts.

        That is right for the `values` of an interrupted step: they are that checkpoint with the finished
        tasks' writes applied, as `get_state` shows it.
        """
        ready = [_stamped(held.event, self._nearest(held.run)) for waiting in self._held.values() for held in waiting]
        self._held.clear()
        return ready

    def _chunk(self, event: PlainEvent, namespace: Sequence[str], mode: StreamMode, chunk: Any) -> list[StreamEvent]:
        graph = tuple(namespace)
        ready: list[StreamEvent] = []
        if mode == "checkpoints":
            ready += self._learn(graph, envelope(chunk))
        elif mode == "tasks":
            ready += self._announce(graph, f"{chunk['name']}:{chunk['id']}")
        latest = self._latest.get(graph)
        # An interrupt repeats the values that its step runs from; no checkpoint follows.
        repeats = isinstance(chunk, Mapping) and "__interrupt__" in chunk
        is_announced_next = mode == "values" and not repeats
        run = _Run((), _Slot(graph, None if latest is None or is_announced_next else latest["step"]), None)
        # What `graphs.emit` writes has come as an event already.
        is_emitted = isinstance(chunk, Mapping) and chunk.keys() == {"name", "payload"}
        if mode == "custom" and not is_emitted:
            told: PlainEvent = {**event, "event": "on_custom_event", "name": CUSTOM_EVENT, "data": chunk}
            ready += self._stamp_or_hold(told, run)
        return ready + (self._stamp_or_hold(event, run) if mode in self._modes else [])

    def _learn(self, graph: Namespace, checkpoint: Checkpoint | None) -> list[StreamEvent]:
        self._latest[graph] = checkpoint
        if checkpoint is not None:
            self._steps[_Slot(graph, checkpoint["step"])] = checkpoint
        ready: list[StreamEvent] = []
        for held in self._held.pop(graph, []):
            if held.run.slot.step is None:
                ready.append(_stamped(held.event, self._nearest(held.run)))
            else:
                ready += self._stamp_or_hold(held.event, held.run)
        return ready

    def _announce(self, graph: Namespace, task: str) -> list[StreamEvent]:
        ready: list[StreamEvent] = []
        if graph not in self._latest:
            # A step's tasks are announced after the checkpoint it runs from: this graph makes none.
            ready += self._learn(graph, None)
        self._announced[task] = graph
        for waiting in [path for path in self._held if path != graph]:
            for held in self._held.pop(waiting):
                ready += self._stamp_or_hold(held.event, held.run)
        return ready

    def _stamp_or_hold(self, event: PlainEvent, run: _Run) -> list[StreamEvent]:
        slot = self._slot_of(run)
        checkpoint = self._steps.get(slot)
        if checkpoint is not None:
            return [_stamped(event, checkpoint)]
        if slot.graph in self._latest and self._latest[slot.graph] is None:
            return [_stamped(event, self._nearest(run))]
        self._held[slot.graph].append(_Held(_stamped(event, None), run))
        return []

    def _slot_of(self, run: _Run) -> _Slot:
        """Return the run's slot; a task that another task calls is a task of the same graph, whatever its path says."""
        graph = self._announced.get(run.task[-1]) if run.task else None
        return run.slot if graph is None else _Slot(graph, run.slot.step)

    def _nearest(self, run: _Run) -> Checkpoint | None:
        """Return the run's checkpoint, or else the newest of its graph, or else that of the graph around it."""
        slot = self._slot_of(run)
        if found := self._steps.get(slot) or self._latest.get(slot.graph):
            return found
        if run.parent is not None:
            return self._nearest(run.parent)
        around = slot.graph
        while around:
            around = around[:-1]
            if found := self._latest.get(around):
                return found
        return None

    def _run_of(self, event: PlainEvent) -> _Run:
        if run := self._runs.get(event["run_id"]):
            return run
        parent = self._runs.get(event["parent_ids"][-1]) if event["parent_ids"] else None
        task = _namespace(event["metadata"])
        # What a node starts belongs to the node, and so does another graph that it runs on its own, under a
        # namespace or thread of its own. Only a task below it, in a subgraph, has a step of its own.
        if parent is not None and (task == parent.task or not _below(task, parent.task)):
            return self._remember(event, parent)
        # A task of step n runs from the checkpoint of step n - 1.
        step = event["metadata"].get("langgraph_step")
        slot = _Slot(task[:-1], step - 1 if task and isinstance(step, int) else None)
        return self._remember(event, _Run(task, slot, parent))

    def _remember(self, event: PlainEvent, run: _Run) -> _Run:
        self._runs[event["run_id"]] = run
        return run


def envelope(payload: Mapping[str, Any]) -> Checkpoint:
    """Return the light envelope of a `checkpoints` chunk, as LangGraph or a server sends it."""
    parent = payload["parent_config"]
    return Checkpoint(
        id=payload["config"]["configurable"]["checkpoint_id"],
        parent_id=parent["configurable"].get("checkpoint_id") if parent else None,
        step=payload["metadata"]["step"],
        source=payload["metadata"]["source"],
    )


def _namespace(metadata: Mapping[str, object]) -> Namespace:
    path = metadata.get("langgraph_checkpoint_ns")
    return tuple(path.split("|")) if isinstance(path, str) and path else ()


def _below(task: Namespace, ancestor: Namespace) -> bool:
    """Say whether a task runs below another; a subgraph that keeps its state is named without its task's id."""
    return len(task) >= len(ancestor) and all(
        part in (whole, whole.partition(":")[0]) for part, whole in zip(task, ancestor, strict=False)
    )


def _stamped(event: PlainEvent, checkpoint: Checkpoint | None) -> StreamEvent:
    return {**event, "type": event["event"], "checkpoint": checkpoint}
