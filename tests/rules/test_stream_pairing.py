"""The pairing of events with checkpoints, for every order in which the two can arrive."""

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from graphs.streaming.envelopes import Checkpoint, EnvelopePairing, PlainEvent, StreamEvent, StreamMode

MODES: tuple[StreamMode, ...] = ("values", "updates", "checkpoints", "tasks")


@dataclass
class Run:
    """A made-up run: what callbacks say and what the graph streams, each event with the checkpoint it must get."""

    callbacks: list[PlainEvent] = field(default_factory=list)
    streamed: list[PlainEvent] = field(default_factory=list)
    numbers: Any = field(default_factory=count)

    def event(self, kind: str, run_id: str, parents: list[str], expected: Checkpoint | None, **rest: Any) -> Any:
        metadata = {"expected": expected, "number": next(self.numbers), **rest.pop("metadata", {})}
        data = rest.pop("data", {})
        return {
            "event": kind, "name": run_id, "run_id": run_id, "parent_ids": parents,
            "tags": [], "metadata": metadata, "data": data,
        }  # fmt: skip

    def chunk(self, graph: tuple[str, ...], mode: str, chunk: Any, expected: Checkpoint | None) -> None:
        data = {"chunk": (graph, mode, chunk)}
        self.streamed.append(self.event("on_chain_stream", "root", [], expected, data=data))

    def announce(self, graph: tuple[str, ...], checkpoint: Checkpoint) -> None:
        parent = {"configurable": {"checkpoint_id": checkpoint["parent_id"]}} if checkpoint["parent_id"] else None
        payload = {
            "config": {"configurable": {"checkpoint_id": checkpoint["id"]}},
            "parent_config": parent,
            "metadata": {"step": checkpoint["step"], "source": checkpoint["source"]},
        }
        self.chunk(graph, "checkpoints", payload, checkpoint)

    def play(self, graph: tuple[str, ...], parents: list[str], plan: list[Any], saves: bool, around: Any) -> Any:
        """Play a graph whose steps are the plan's items: tokens, a subgraph, or a task (`Called`) that they call."""
        current: Checkpoint | None = around
        for step, item in enumerate([None, *plan, None], start=-1):
            before = current
            if saves:
                parent_id = before["id"] if before is not None and step >= 0 else None
                current = Checkpoint(
                    id=f"{'/'.join(graph)}#{step}",
                    parent_id=parent_id,
                    step=step,
                    source="loop" if step + 1 else "input",
                )
            if step >= 0:
                self.chunk(graph, "values", {}, current)
            if saves and current:
                self.announce(graph, current)
            if item is not None:
                self.task(graph, parents, step + 1, item, current)
        return current

    def task(self, graph: tuple[str, ...], parents: list[str], step: int, item: Any, expected: Any) -> None:
        path = (*graph, f"node:{'.'.join(graph)}{step}")
        metadata = {"langgraph_checkpoint_ns": "|".join(path), "langgraph_step": step}
        run_id = f"run {path}"
        self.chunk(graph, "tasks", {"name": "node", "id": path[-1].removeprefix("node:")}, expected)
        self.callbacks.append(self.event("on_chain_start", run_id, parents, expected, metadata=metadata))
        if isinstance(item, Called):
            self.called(graph, path, [*parents, run_id], metadata, item.tokens, expected)
        elif isinstance(item, int):
            for _ in range(item):
                token = self.event(
                    "on_chat_model_stream", "model" + run_id, [*parents, run_id], expected, metadata=metadata
                )
                self.callbacks.append(token)
        else:
            plan, saves = item
            inner = self.event("on_chain_start", "graph" + run_id, [*parents, run_id], expected, metadata=metadata)
            self.callbacks.append(inner)
            self.play(path, [*parents, run_id, "graph" + run_id], plan, saves, expected)
        self.callbacks.append(self.event("on_chain_end", run_id, parents, expected, metadata=metadata))
        self.chunk(graph, "updates", {"node": {}}, expected)

    def called(
        self,
        graph: tuple[str, ...],
        path: tuple[str, ...],
        parents: list[str],
        metadata: Any,
        tokens: int,
        expected: Any,
    ) -> None:
        """A task's path names its caller, but it is announced by, and belongs to, the caller's graph."""
        inner = {**metadata, "langgraph_checkpoint_ns": "|".join([*path, f"called:{len(self.callbacks)}"])}
        self.chunk(graph, "tasks", {"name": "called", "id": str(len(self.callbacks))}, expected)
        for _ in range(tokens):
            self.callbacks.append(self.event("on_chain_start", f"called {path}", parents, expected, metadata=inner))


@dataclass(frozen=True)
class Called:
    """A task that a node calls."""

    tokens: int


tokens = st.integers(0, 3) | st.builds(Called, st.integers(1, 3))
subgraphs = st.tuples(st.lists(tokens, min_size=1, max_size=3), st.booleans())
nested = st.tuples(st.lists(tokens | subgraphs, min_size=1, max_size=3), st.booleans())
plans = st.lists(tokens | subgraphs | nested, min_size=1, max_size=4)


@st.composite
def runs(draw: st.DrawFn) -> list[PlainEvent]:
    """Draw a run with its callbacks and its chunks interleaved anyhow; each of the two keeps its own order."""
    run = Run()
    first = Checkpoint(id="#-1", parent_id=None, step=-1, source="input")
    last = run.play((), ["root"], draw(plans), True, None)
    start = run.event("on_chain_start", "root", [], first)
    end = run.event("on_chain_end", "root", [], last)
    random = draw(st.randoms(use_true_random=False))
    callbacks, streamed = iter(run.callbacks), iter(run.streamed)
    turns = [callbacks] * len(run.callbacks) + [streamed] * len(run.streamed)
    random.shuffle(turns)
    return [start, *(next(turn) for turn in turns), end]


def stamp(events: list[PlainEvent], modes: tuple[StreamMode, ...] = MODES) -> list[StreamEvent]:
    pairing = EnvelopePairing(modes)
    return [ready for event in events for ready in pairing.feed(event)]


def numbers(events: list[Any]) -> list[int]:
    return [event["metadata"]["number"] for event in events]


@given(runs())
def test_S4_every_event_gets_its_checkpoint_in_whatever_order_they_arrive(events: list[PlainEvent]) -> None:
    for event in stamp(events):
        assert event["checkpoint"] == event["metadata"]["expected"], event


def is_nested(event: Any) -> bool:
    return event["event"] == "on_chain_stream" and bool(event["data"]["chunk"][0])


@given(runs())
def test_S3_every_event_comes_out_once(events: list[PlainEvent]) -> None:
    assert sorted(numbers(stamp(events))) == sorted(numbers(events))
    chunks = [event for event in events if event["event"] == "on_chain_stream"]
    assert len(stamp(events, ())) == len(events) - len(chunks)


@given(runs())
def test_S6_the_events_of_one_run_keep_their_order(events: list[PlainEvent]) -> None:
    out = stamp(events)
    for run_id in {event["run_id"] for event in events if event["run_id"] != "root"}:
        assert numbers([event for event in out if event["run_id"] == run_id]) == numbers(
            [event for event in events if event["run_id"] == run_id]
        )


@given(runs())
def test_S6_nothing_is_held_once_its_checkpoint_is_announced(events: list[PlainEvent]) -> None:
    pairing = EnvelopePairing(MODES)
    announced: set[str] = set()
    held: dict[int, str] = {}
    for event in events:
        expected = event["metadata"]["expected"]["id"]
        # A subgraph without checkpoints is only known for one when it starts its first task.
        if not is_nested(event) and "|" not in event["metadata"].get("langgraph_checkpoint_ns", ""):
            held[event["metadata"]["number"]] = expected
        if event["event"] == "on_chain_stream" and event["data"]["chunk"][1] == "checkpoints":
            announced.add(expected)
        for ready in pairing.feed(event):
            held.pop(ready["metadata"]["number"], None)
        assert not announced.intersection(held.values())
