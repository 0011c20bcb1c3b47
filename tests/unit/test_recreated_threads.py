"""A thread made again under its id is given the graph that its state is read with; nothing else is touched."""

import json
from typing import Any

import pytest

from graphs.web.recreated_threads import with_graph

AGAIN: dict[str, Any] = {"thread_id": "t", "if_exists": "do_nothing"}


@pytest.mark.parametrize("metadata", [None, {}, {"topic": "figs"}])
def test_a_thread_made_again_has_a_graph(metadata: dict[str, Any] | None) -> None:
    made = json.loads(with_graph(json.dumps({**AGAIN, "metadata": metadata}).encode()))
    assert made == {**AGAIN, "metadata": {**(metadata or {}), "graph_id": "chat"}}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"thread_id": "t"},
        {"if_exists": "do_nothing"},
        {**AGAIN, "if_exists": "raise"},
        {**AGAIN, "metadata": {"graph_id": "other"}},
        {**AGAIN, "metadata": 7},
        [],
    ],
)
def test_all_else_stays_as_it_came(body: Any) -> None:
    sent = json.dumps(body).encode()
    assert with_graph(sent) == sent
    assert with_graph(b"{") == b"{"
