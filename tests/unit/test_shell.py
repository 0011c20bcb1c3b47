"""Whatever goes wrong below the command is one sentence on standard error, and an exit code that is written down."""

import errno
import json

import click
import pytest
from click.testing import CliRunner

from graphs.cli.main import main
from graphs.cli.shell import CommandLine, Refused, Shell

PROBLEM = {"detail": "no fact has this id", "errors": []}


def ended_with(error: Exception, *options: str) -> tuple[int, str, str]:
    @click.group(cls=CommandLine)
    @click.option("--debug", is_flag=True)
    @click.option("--json", "as_json", is_flag=True)
    @click.pass_obj
    def app(shell: Shell, debug: bool, as_json: bool) -> None:
        shell.debug, shell.as_json = debug, as_json

    @app.command()
    def fail() -> None:
        raise error

    done = CliRunner().invoke(app, [*options, "fail"])
    return done.exit_code, done.stdout, done.stderr


def test_a_refusal_is_a_sentence() -> None:
    assert ended_with(Refused("no such thing")) == (1, "", "Error: no such thing\n")


def test_what_nobody_expected_is_a_sentence_too() -> None:
    code, out, err = ended_with(KeyError("a\nb"))
    assert (code, out) == (1, "")
    assert err.startswith("Error: this should not have happened: KeyError: ")
    assert "--debug" in err
    assert "Traceback" not in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("more", "what"), [((), ""), (("backup.json",), "backup.json: ")])
def test_a_full_disk_is_named(more: tuple[str, ...], what: str) -> None:
    """As of `palimpsest facts list > list.txt`."""
    full = OSError(errno.ENOSPC, "No space left on device", *more)
    assert ended_with(full) == (1, "", f"Error: {what}the disk is full: make room and try again\n")


def test_who_asked_for_json_is_refused_in_json() -> None:
    code, out, err = ended_with(Refused("no fact has this id", PROBLEM), "--json")
    assert (code, out, json.loads(err)) == (1, "", PROBLEM)


@pytest.mark.parametrize("line", [["dev", "--port", "many"], ["token"], ["nothing"], []])
def test_a_wrong_command_line_is_told_how_it_is_used(line: list[str]) -> None:
    done = CliRunner().invoke(main, line)
    assert done.exit_code == 2
    assert "Usage" in done.output


def test_the_version_is_that_of_the_package() -> None:
    done = CliRunner().invoke(main, ["--version"])
    assert (done.exit_code, done.output.split()[0]) == (0, "palimpsest,")
