"""Modes and receipts over three processes on one Postgres: who is asked changes nothing."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.dev_server import PROJECT
from tests.postgres import Postgres


class Process:
    """One of the processes: it is told a thing, and answers."""

    def __init__(self, running: "subprocess.Popen[str]") -> None:
        self._running = running

    def ask(self, **what: Any) -> Any:
        assert self._running.stdin
        assert self._running.stdout
        self._running.stdin.write(json.dumps(what) + "\n")
        self._running.stdin.flush()
        line = self._running.stdout.readline()
        assert line, "the process ended"
        return json.loads(line)

    def say(self, text: str, mode: str, thread: str) -> Any:
        return self.ask(say=text, mode=mode, thread=thread)


@pytest.fixture
def database(postgres: Postgres) -> str:
    return postgres.database()


@pytest.fixture
def processes(database: str, tmp_path: Path) -> Iterator[list[Process]]:
    command = [sys.executable, "-m", "tests.e2e.support.asked", database]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": PROJECT}
    with ExitStack() as stack:
        errors = stack.enter_context((tmp_path / "errors.log").open("w"))
        running = [stack.enter_context(subprocess.Popen(command, stderr=errors, **pipes)) for _ in range(3)]
        yield [Process(each) for each in running]
        for each in running:
            assert each.stdin
            each.stdin.close()  # then it ends


def receipts(processes: list[Process]) -> list[Any]:
    """Return the receipts that every process tells alike."""
    told = [process.ask(receipts=True) for process in processes]
    assert told[0] == told[1] == told[2]
    return list(told[0])


def test_receipts_are_the_same_whichever_process_is_asked(processes: list[Process]) -> None:
    one, two, three = processes
    assert one.say("I like figs.", "normal", "T1")["receipt"]["queued"]
    assert not two.say("I like tea.", "read_only", "T2")["receipt"]["queued"]
    assert not three.say("I like plums.", "incognito", "T3")["receipt"]["queued"]
    assert two.say("I like pears.", "normal", "T4")["receipt"]["queued"]
    done = three.ask(drain=True)
    assert one.ask(drain=True) == []
    assert sorted(each["thread_id"] for each in done) == ["T1", "T4"]
    assert sorted(receipts(processes), key=repr) == sorted(done, key=repr)

    # What one process learned, each knows, as far as its mode lets it.
    assert "Likes figs" in one.say("What fruit do I like?", "normal", "T5")["prompt"]
    assert "Likes figs" in two.say("What fruit do I like?", "read_only", "T6")["prompt"]
    assert "Likes figs" not in three.say("What fruit do I like?", "incognito", "T7")["prompt"]
    assert receipts(processes) == receipts(processes[::-1])


def test_a_thread_that_changes_its_mode_from_process_to_process_is_learned_of_as_it_was_said(
    processes: list[Process], database: str, postgres: Postgres
) -> None:
    one, two, three = processes
    for process, text, mode in (
        (one, "I like figs.", "normal"),
        (two, "I like xyzzy.", "incognito"),
        (three, "I like zeppelins.", "read_only"),
        (two, "I like pears.", "normal"),
    ):
        process.say(text, mode, "T")
    three.ask(drain=True)
    assert len(receipts(processes)) >= 1
    kept = postgres.tables(database)["palimpsest.store"]
    assert b"Likes figs" in kept
    assert b"Likes pears" in kept
    assert b"xyzzy" not in kept
    assert b"zeppelins" not in kept


def test_what_was_said_incognito_is_in_no_table_of_memory_and_an_erase_in_between_is_everyones(
    processes: list[Process], database: str, postgres: Postgres
) -> None:
    one, two, three = processes
    one.say("I like figs.", "normal", "T1")
    two.say("My secret is xyzzy.", "incognito", "T2")
    one.ask(drain=True)
    two.say("I like pears.", "normal", "T3")  # pending while another process erases
    three.ask(erase=True)
    assert receipts(processes) == []
    assert two.ask(drain=True) == []
    one.say("I like plums.", "normal", "T4")
    assert len(three.ask(drain=True)) == len(receipts(processes)) == 1
    kept = postgres.tables(database)["palimpsest.store"]
    assert b"Likes plums" in kept
    assert not [word for word in (b"xyzzy", b"figs", b"pears") if word in kept]
    assert "Likes plums" in two.say("What fruit do I like?", "normal", "T5")["prompt"]
