"""What scripts rely on, for every command there is: `--json` on the right stream, and the exit code."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from graphs.cli.main import main
from tests.archive_lines import lines_of
from tests.command_line import AsAda, Failing, Typed
from tests.exports import FIGS, jsonl
from tests.memory_app import MemoryApp

NOBODY = "fact_00000000"
# How each is typed in a memory that has one fact, and what it ends with there: nothing waits, and no thread is known.
LINES: dict[str, tuple[list[str], int]] = {
    "facts add": (["Likes figs"], 0),
    "facts list": ([], 0),
    "facts search": (["figs"], 0),
    "facts show": (["FACT"], 0),
    "facts edit": (["FACT", "--confidence", "0.8"], 0),
    "facts pin": (["FACT"], 0),
    "facts unpin": (["FACT"], 0),
    "facts history": (["FACT"], 0),
    "facts delete": (["FACT"], 0),
    "facts undo": ([], 0),
    "facts release": ([NOBODY], 1),
    "facts restore": ([NOBODY], 1),
    "pending list": ([], 0),
    "pending retry": (["--all"], 0),
    "pending discard": (["--all", "--yes"], 0),
    "export": (["backup.json"], 0),
    "import": (["backup.json"], 0),
    "backfill": (["notes.jsonl", "--no-learn"], 0),
    "sources": ([], 0),
    "erase source": (["jsonl", "--yes"], 0),
    "erase fact": (["FACT", "--yes"], 0),
    "erase thread": (["00000000-0000-0000-0000-000000000000", "--yes"], 1),
    "erase everything": (["--yes"], 0),
}
# They are about a set-up or a conversation; each has tests of its own.
OTHERS = {"chat", "doctor", "dev", "token"}


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield " ".join(path), command
        return
    for name, below in command.commands.items():
        yield from commands(below, (*path, name))


ALL = dict(commands(main))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.jsonl").write_text(jsonl("n1", "2022-01-01T10:00", FIGS))
    (tmp_path / "backup.json").write_text(lines_of({}))
    return tmp_path


def test_every_command_is_typed_here_or_has_tests_of_its_own() -> None:
    assert set(ALL) == {*LINES, *OTHERS}


@pytest.mark.parametrize("name", LINES)
def test_a_command_about_memory_says_which_memory_and_prints_json(name: str) -> None:
    options = {option for each in ALL[name].params for option in each.opts}
    assert {"--url", "--token", "--agent", "--json"} <= options
    assert ("--local" in options) != name.startswith("erase ")


def test_each_prints_one_json_value_and_ends_with_its_code(folder: Path) -> None:
    ada = Typed(AsAda(MemoryApp().app), {"PALIMPSEST_TOKEN": "ada"})
    fact = ada.json("facts", "add", "Lives in Oslo")["id"]
    for name, (line, code) in LINES.items():
        if name == "export":
            (folder / "backup.json").unlink()
        done = ada.run(*name.split(), *(fact if word == "FACT" else word for word in line), "--json")
        assert done.exit_code == code, (name, done.output)
        if code:
            refusal(name, done.stdout, done.stderr)
        else:
            json.loads(done.stdout)


@pytest.mark.parametrize("name", LINES)
def test_a_server_that_is_down_is_refused_in_json_and_ends_with_1(name: str) -> None:
    down = Typed(Failing(httpx.ConnectError("refused")), {})
    line = [NOBODY if word == "FACT" else word for word in LINES[name][0] if word != "backup.json" or name == "import"]
    done = down.run(*name.split(), *line, "--json")
    assert done.exit_code == 1, done.output
    assert "no server answers" in refusal(name, done.stdout, done.stderr)["detail"]


@pytest.mark.parametrize("name", [*LINES, *sorted(OTHERS - {"dev"})])
def test_an_option_that_is_not_there_ends_with_2_and_asks_nobody(name: str) -> None:
    asked = AsAda(MemoryApp().app)
    done = Typed(asked, {}).run(*name.split(), "--no-such-option")
    assert (done.exit_code, done.stdout, asked.seen) == (2, "", []), done.output
    assert "No such option" in done.stderr


def test_a_deleted_fact_is_erased_and_said_in_its_words() -> None:
    ada = Typed(AsAda(MemoryApp().app), {"PALIMPSEST_TOKEN": "ada"})
    fact = ada.json("facts", "add", "Lives in Oslo")["id"]
    ada.run("facts", "delete", fact)
    assert "“Lives in Oslo” goes for good" in ada.run("erase", "fact", fact).stderr
    assert ada.run("erase", "fact", fact, "--yes").exit_code == 0
    assert ada.run("erase", "fact", fact, "--yes").exit_code == 1


def refusal(name: str, stdout: str, stderr: str) -> Any:
    assert stdout == "", name
    told = json.loads(stderr)
    assert set(told) == {"detail", "errors"}, name
    return told
