"""The pairing rule, checked against what a thread's history says and nothing else."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from palimpsest import StreamEvent
from tests.stream_graphs import Graph

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}


@dataclass(frozen=True)
class StoredCheckpoint:
    """One checkpoint as the history tells it; the history of some subgraphs cannot be asked for their state."""

    namespace: str
    envelope: Any
    values: Any = None
    tasks: frozenset[tuple[str, str]] | None = None


@dataclass(frozen=True)
class History:
    """What a thread remembers of its checkpoints, subgraphs included."""

    nodes: Collection[str]
    known: dict[str, StoredCheckpoint]

    @classmethod
    def of(cls, saver: InMemorySaver, graph: Graph) -> "History":
        """Read what a saver of this process keeps of the thread `t`."""
        known: dict[str, StoredCheckpoint] = {}
        for stored in saver.list({"configurable": {"thread_id": "t"}}):
            envelope = _envelope(stored.config, stored.parent_config, stored.metadata)
            known[envelope["id"]] = StoredCheckpoint(stored.config["configurable"]["checkpoint_ns"], envelope)
        # The history of a subgraph that a node calls by itself cannot be asked for.
        declared = {item.namespace for item in known.values()} if dict(graph.get_subgraphs()) else {""}
        for namespace in declared:
            config: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": namespace}}
            for snapshot in graph.get_state_history(config):
                envelope = _envelope(snapshot.config, snapshot.parent_config, snapshot.metadata)
                tasks = frozenset((task.name, task.id) for task in snapshot.tasks)
                known[envelope["id"]] = StoredCheckpoint(namespace, envelope, snapshot.values, tasks)
        return cls(graph.nodes.keys(), known)

    @property
    def namespaces(self) -> set[str]:
        return {item.namespace for item in self.known.values()}

    def graph_of(self, metadata: dict[str, Any]) -> str:
        """Return the namespace whose checkpoints an event's task runs from: its graph's, or the nearest around."""
        around = metadata["langgraph_checkpoint_ns"].split("|")
        while around := around[:-1]:
            if "|".join(around) in self.namespaces:
                return "|".join(around)
        return ""


def _envelope(config: Any, parent: Any, metadata: Any) -> Any:
    return {
        "id": config["configurable"]["checkpoint_id"],
        "parent_id": parent["configurable"]["checkpoint_id"] if parent else None,
        "step": metadata["step"],
        "source": metadata["source"],
    }


def check(events: Sequence[StreamEvent], history: History) -> None:
    """Assert the pairing rule for every event, from what the history says alone."""
    assert events
    for event in events:
        assert event["type"] == event["event"]
        assert event["checkpoint"] is not None, event
        known = history.known[event["checkpoint"]["id"]]
        assert event["checkpoint"] == known.envelope, event
        if event["type"] == "on_chain_stream" and not event["parent_ids"]:
            namespace, mode, chunk = event["data"]["chunk"]
            check_chunk("|".join(namespace), mode, chunk, known, history)
        elif "langgraph_checkpoint_ns" in event["metadata"]:
            check_task(event, known, history)


def check_task(event: StreamEvent, known: StoredCheckpoint, history: History) -> None:
    """A task's events carry the checkpoint that lists the task, in the task's own graph."""
    graph = history.graph_of(event["metadata"])
    assert known.namespace == graph, event
    if known.tasks is None:
        return
    planned = {f"{name}:{task_id}" for name, task_id in known.tasks}
    task = event["metadata"]["langgraph_checkpoint_ns"].split("|")[len(graph.split("|")) if graph else 0]
    if task.partition(":")[0] in history.nodes or graph:
        assert task in planned, event
    else:  # another graph, run by a node on a thread of its own
        assert any(name.startswith("nested:") for name in planned), event


def check_chunk(namespace: str, mode: str, chunk: Any, known: StoredCheckpoint, history: History) -> None:
    """A chunk carries a checkpoint of its own graph: the one it equals, is, or that planned its task."""
    if namespace not in history.namespaces:
        return
    assert known.namespace == namespace
    if known.tasks is None:
        return
    planned = {name for name, _ in known.tasks}
    # The history lists no task that another task called; in these graphs only `nested` calls one.
    calls = {"called"} if "nested" in planned else set()
    if mode == "values" and "__interrupt__" not in chunk:
        assert canonical(chunk) == canonical(known.values)
    elif mode == "tasks":
        assert (chunk["name"], chunk["id"]) in known.tasks or chunk["name"] in calls
    elif mode == "updates":
        assert set(chunk) - {"__interrupt__", "__metadata__"} <= planned | calls
    elif mode == "messages":
        path = chunk[1]["langgraph_checkpoint_ns"].split("|")
        task = path[len(namespace.split("|")) if namespace else 0].partition(":")[0]
        assert task in planned or path[0].partition(":")[0] not in history.nodes
    elif mode == "checkpoints":
        assert known.envelope["id"] == chunk["config"]["configurable"]["checkpoint_id"]
    elif mode == "debug" and chunk["type"] == "checkpoint":
        assert known.envelope["id"] == chunk["payload"]["config"]["configurable"]["checkpoint_id"]


def canonical(values: Any) -> Any:
    """Return a state with its sets, which JSON has as lists in any order, in one order."""
    if isinstance(values, dict):
        return {
            key: sorted(item) if key == "summarized_message_ids" else canonical(item) for key, item in values.items()
        }
    return values


def chunks(events: Sequence[StreamEvent]) -> list[tuple[str, Any]]:
    """Return the root's chunks as pairs of mode and data."""
    root = [event for event in events if event["type"] == "on_chain_stream" and not event["parent_ids"]]
    return [event["data"]["chunk"][1:] for event in root]


def head(graph: Graph) -> Any:
    """The newest checkpoint of the thread `t`, as `get_state` says it."""
    snapshot = graph.get_state(CONFIG)
    return _envelope(snapshot.config, snapshot.parent_config, snapshot.metadata)
