"""Where LangGraph keeps the state of a chat graph tells whether its next turn finds it."""

import logging

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.constants import CONFIG_KEY_CHECKPOINTER

from graphs.turn.state import summary_lost, warn_summary_lost


@pytest.mark.parametrize(
    ("checkpoint_ns", "is_lost"),
    [
        ("inject_memory:780a34e1", False),
        ("chat|inject_memory:780a34e1", False),
        ("chat|1|inject_memory:780a34e1", False),
        ("middle|chat|inject_memory:780a34e1", False),
        ("chat:470874c4|inject_memory:780a34e1", True),
        ("chat:470874c4|1|inject_memory:780a34e1", True),
        ("middle|chat:470874c4|inject_memory:780a34e1", True),
        ("middle:470874c4|chat:470874c4|inject_memory:780a34e1", True),
    ],
)
def test_under_the_ids_of_tasks_a_summary_is_lost(checkpoint_ns: str, is_lost: bool) -> None:
    saver = {CONFIG_KEY_CHECKPOINTER: InMemorySaver(), "checkpoint_ns": checkpoint_ns}
    assert summary_lost({"configurable": saver}) == ("below_another_graph" if is_lost else None)
    assert summary_lost({"configurable": {"checkpoint_ns": checkpoint_ns}}) is None
    assert summary_lost({}) is None


def test_the_warning_is_given_once_and_names_the_fix(caplog: pytest.LogCaptureFixture) -> None:
    warn_summary_lost.cache_clear()
    for _ in range(3):
        warn_summary_lost()
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "compile(checkpointer=True)" in record.getMessage()
