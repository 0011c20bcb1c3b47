"""The pairing rule, checked against what a thread's history says and nothing else."""

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import StateSnapshot

from graphs.streaming import Checkpoint, StreamEvent
from tests.stream_graphs import Graph

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}


class History:
    """What a thread remembers of its checkpoints, subgraphs included."""

    def __init__(self, saver: InMemorySaver, graph: Graph) -> None:
        self.checkpoints: dict[str, Checkpoint] = {}
        self.namespaces: dict[str, str] = {}
        for stored in saver.list({"configurable": {"thread_id": "t"}}):
            parent = stored.parent_config
            checkpoint_id = stored.checkpoint["id"]
            self.namespaces[checkpoint_id] = stored.config["configurable"]["checkpoint_ns"]
            self.checkpoints[checkpoint_id] = Checkpoint(
                id=checkpoint_id,
                parent_id=parent["configurable"]["checkpoint_id"] if parent else None,
                step=stored.metadata["step"],
                source=stored.metadata["source"],
            )
        self.nodes = graph.nodes.keys()
        self.snapshots: dict[str, StateSnapshot] = {}
        # The history of a subgraph that a node calls by itself cannot be asked for.
        declared = [name for name in self.namespaces.values() if dict(graph.get_subgraphs()) and name]
        for namespace in {"", *declared}:
            config: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": namespace}}
            for snapshot in graph.get_state_history(config):
                self.snapshots[snapshot.config["configurable"]["checkpoint_id"]] = snapshot

    def graph_of(self, metadata: dict[str, Any]) -> str:
        """Return the namespace whose checkpoints an event's task runs from: its graph's, or the nearest around."""
        around = metadata["langgraph_checkpoint_ns"].split("|")
        while around := around[:-1]:
            if "|".join(around) in self.namespaces.values():
                return "|".join(around)
        return ""


def check(events: list[StreamEvent], history: History) -> None:
    """Assert the pairing rule for every event, from what the history says alone."""
    assert events
    for event in events:
        checkpoint = event["checkpoint"]
        assert event["type"] == event["event"]
        assert checkpoint is not None, event
        assert checkpoint == history.checkpoints[checkpoint["id"]], event
        if event["data"] and event["type"] == "on_chain_stream" and not event["parent_ids"]:
            namespace, mode, chunk = event["data"]["chunk"]
            check_chunk(namespace, mode, chunk, checkpoint, history)
        elif "langgraph_checkpoint_ns" in event["metadata"]:
            check_task(event, checkpoint, history)


def check_task(event: StreamEvent, checkpoint: Checkpoint, history: History) -> None:
    """A task's events carry the checkpoint that lists the task, in the task's own graph."""
    metadata = event["metadata"]
    graph = history.graph_of(metadata)
    assert history.namespaces[checkpoint["id"]] == graph, event
    if checkpoint["id"] not in history.snapshots:
        return
    planned = {f"{task.name}:{task.id}" for task in history.snapshots[checkpoint["id"]].tasks}
    tasks = metadata["langgraph_checkpoint_ns"].split("|")
    task = tasks[len(graph.split("|")) if graph else 0]
    if task.partition(":")[0] in history.nodes or graph:
        assert task in planned, event
    else:  # another graph, run by a node on a thread of its own
        assert any(name.startswith("nested:") for name in planned), event


def check_chunk(namespace: tuple[str, ...], mode: str, chunk: Any, checkpoint: Checkpoint, history: History) -> None:
    """A chunk carries a checkpoint of its own graph: the one it equals, is, or that planned its task."""
    if "|".join(namespace) in history.namespaces.values():
        assert history.namespaces[checkpoint["id"]] == "|".join(namespace)
    snapshot = history.snapshots.get(checkpoint["id"])
    if snapshot is None or "|".join(namespace) not in history.namespaces.values():
        return
    planned = {task.name for task in snapshot.tasks}
    if mode == "values" and "__interrupt__" not in chunk:
        assert chunk == snapshot.values
    elif mode == "tasks":
        assert (chunk["name"], chunk["id"]) in {(task.name, task.id) for task in snapshot.tasks}
    elif mode == "updates":
        assert set(chunk) - {"__interrupt__", "__metadata__"} <= planned
    elif mode == "messages":
        path = chunk[1]["langgraph_checkpoint_ns"].split("|")
        assert path[len(namespace)].partition(":")[0] in planned or path[0].partition(":")[0] not in history.nodes
    elif mode == "checkpoints":
        assert checkpoint["id"] == chunk["config"]["configurable"]["checkpoint_id"]
    elif mode == "debug" and chunk["type"] == "checkpoint":
        assert checkpoint["id"] == chunk["payload"]["config"]["configurable"]["checkpoint_id"]


def chunks(events: list[StreamEvent]) -> list[tuple[str, Any]]:
    root = [event for event in events if event["type"] == "on_chain_stream" and not event["parent_ids"]]
    return [event["data"]["chunk"][1:] for event in root]


def head(graph: Graph) -> Checkpoint:
    """The newest checkpoint, as `get_state` says it."""
    snapshot = graph.get_state(CONFIG)
    assert snapshot.metadata is not None
    return Checkpoint(
        id=snapshot.config["configurable"]["checkpoint_id"],
        parent_id=snapshot.parent_config["configurable"]["checkpoint_id"] if snapshot.parent_config else None,
        step=snapshot.metadata["step"],
        source=snapshot.metadata["source"],
    )
