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

import sys
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


class _Run(NamedTuple):
    """A runnable that has started, or what a chunk comes from, and the checkpoint that is its.

    Attributes:
        task: The path of the task that it belongs to.
        graph: The graph whose checkpoint it is.
        step: That checkpoint's step; `None` for the next one that is made.
        made: How many the graph had made by then.
        parent: What called it.
    """

    task: Namespace
    graph: Namespace
    step: int | None
    made: int = 0
    parent: "_Run | None" = None


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
        # The checkpoints of each graph, oldest first; of one that makes none, an empty list.
        self._made: dict[Namespace, list[Checkpoint]] = {}
        self._announced: dict[str, Namespace] = {}
        self._held: list[tuple[PlainEvent, _Run]] = []

    def feed(self, event: PlainEvent) -> list[StreamEvent]:
        """Take the next event of the run and return those that are ready, oldest first."""
        if self._root_id is None:
            self._root_id, self._root = event["run_id"], _namespace(event["metadata"])
            self._runs[self._root_id] = _Run(self._root, self._root, None)
        elif event["run_id"] == self._root_id and event["event"] == "on_chain_stream":
            return self._chunk(event, *event["data"]["chunk"])
        elif event["run_id"] == self._root_id and event["event"] == "on_chain_end":
            last = _Run((), self._root, None, sys.maxsize)
            return self._ready((event, last), is_over=True)
        return self._ready((event, self._run_of(event)))

    def finish(self) -> list[StreamEvent]:
        """Return what is still held: nothing more is coming, so the newest checkpoint there is counts.

        That is right for the `values` of an interrupted step: they are that checkpoint with the finished
        tasks' writes applied, as `get_state` shows it.
        """
        return self._ready(is_over=True)

    def _ready(self, *new: tuple[PlainEvent, _Run], is_over: bool = False) -> list[StreamEvent]:
        """Return those whose checkpoint is known now, of what is held and what is new; the others are held."""
        ready: list[StreamEvent] = []
        held, self._held = [*self._held, *new], []
        for event, run in held:
            if is_over or self._own(run) or self._made.get(self._graph_of(run)) == []:
                ready.append({**event, "type": event["event"], "checkpoint": self._nearest(run)})
            else:
                self._held.append((event, run))
        return ready

    def _chunk(self, event: PlainEvent, namespace: Sequence[str], mode: StreamMode, chunk: Any) -> list[StreamEvent]:
        graph = tuple(namespace)
        if mode == "checkpoints":
            self._made.setdefault(graph, []).append(envelope(chunk))
        elif mode == "tasks":
            # A step's tasks are announced after the checkpoint it runs from: a graph without one makes none.
            self._made.setdefault(graph, [])
            self._announced[f"{chunk['name']}:{chunk['id']}"] = graph
        made = self._made.get(graph, [])
        # An interrupt repeats the values that its step runs from; no checkpoint follows.
        repeats = isinstance(chunk, Mapping) and "__interrupt__" in chunk
        is_announced_next = mode == "values" and not repeats
        run = _Run((), graph, None if is_announced_next or not made else made[-1]["step"], len(made))
        new: list[tuple[PlainEvent, _Run]] = []
        # What `graphs.emit` writes has come as an event already.
        if mode == "custom" and not (isinstance(chunk, Mapping) and chunk.keys() == {"name", "payload"}):
            new.append(({**event, "event": "on_custom_event", "name": CUSTOM_EVENT, "data": chunk}, run))
        if mode in self._modes:
            new.append((event, run))
        return self._ready(*new)

    def _graph_of(self, run: _Run) -> Namespace:
        """Return the run's graph; a task that another task calls is one of the same graph, whatever its path says."""
        return self._announced.get(run.task[-1], run.graph) if run.task else run.graph

    def _own(self, run: _Run) -> Checkpoint | None:
        """Return the run's checkpoint, once it is made."""
        made = self._made.get(self._graph_of(run), [])
        if run.step is None:
            return made[run.made] if len(made) > run.made else None
        return next((one for one in reversed(made) if one["step"] == run.step), None)

    def _nearest(self, run: _Run) -> Checkpoint | None:
        """Return the run's checkpoint, or else the newest of its graph, or else that of the graph around it."""
        graph = self._graph_of(run)
        if made := self._made.get(graph):
            return self._own(run) or made[-1]
        if run.parent is not None:
            return self._nearest(run.parent)
        around = (self._made.get(graph[:depth]) for depth in range(len(graph) - 1, -1, -1))
        return next((made[-1] for made in around if made), None)

    def _run_of(self, event: PlainEvent) -> _Run:
        if run := self._runs.get(event["run_id"]):
            return run
        parent = self._runs.get(next(reversed(event["parent_ids"]), ""))
        task = _namespace(event["metadata"])
        # What a node starts belongs to the node, and so does another graph that it runs on its own, under a
        # namespace or thread of its own. Only a task below it, in a subgraph, has a step of its own.
        # A subgraph that keeps its state is named without its task's id.
        above = parent.task if parent is not None else ()
        is_below = (
            task != above
            and len(task) >= len(above)
            and all(part in (whole, whole.partition(":")[0]) for part, whole in zip(task, above, strict=False))
        )
        if parent is not None and not is_below:
            run = parent
        else:
            # A task of step n runs from the checkpoint of step n - 1.
            step, graph = event["metadata"].get("langgraph_step"), task[:-1]
            before = step - 1 if task and isinstance(step, int) else None
            run = _Run(task, graph, before, len(self._made.get(graph, [])), parent)
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
