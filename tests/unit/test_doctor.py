"""The doctor says of each broken set-up what is wrong and what to do, and of a whole one that it is whole."""

import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from graphs.cli import doctor
from graphs.cli.doctor import ask_model
from tests.command_line import AsAda, Failing, Typed
from tests.memory_app import MemoryApp
from tests.stub_model import Reply, StubModel

PROVIDER = {"OPENAI_API_KEY": "sk-test"}
NOBODY = Failing(httpx.ConnectError("no"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which all is well."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "langgraph.json").write_text(json.dumps({"graphs": {}}))
    (tmp_path / ".palimpsest").mkdir()
    with closing(sqlite3.connect(tmp_path / ".palimpsest" / "store.sqlite")) as connection:
        connection.execute("CREATE TABLE store (x)")
    (tmp_path / ".palimpsest" / "store.sqlite").chmod(0o600)
    return tmp_path


def look(environ: dict[str, str], *words: str, server: httpx.BaseTransport = NOBODY) -> dict[str, dict[str, Any]]:
    """Every finding, by what was looked at."""
    done = Typed(server, environ).run("doctor", "--no-ask", "--json", *words)
    answer = json.loads(done.stdout)
    assert answer["ok"] is (done.exit_code == 0)
    return {each["check"]: each for each in answer["findings"]}


def test_a_sound_set_up_is_sound(folder: Path) -> None:
    found = look({**PROVIDER, "PALIMPSEST_MEMORY_MODEL": "openai:gpt-4.1"})
    states = {check: each["state"] for check, each in found.items()}
    assert states == {"settings": "ok", "model": "ok", "memory model": "ok", "store": "ok", "server": "ok"}
    assert "not asked" in found["memory model"]["said"]
    assert look({**PROVIDER, "PALIMPSEST_DATA_DIR": "new/folder"})["store"]["state"] == "ok"


def test_a_full_disk_is_named(folder: Path) -> None:
    disk = folder / "small"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("this user cannot mount a small disk")
    try:
        found = look({**PROVIDER, "PALIMPSEST_DATA_DIR": str(disk / "data")})["store"]
    finally:
        subprocess.run(["umount", disk], check=True)
    assert (found["state"], found["said"].startswith(f"the disk of {disk} is full: make room")) == ("failed", True)


def broken_file(folder: Path) -> None:
    (folder / "langgraph.json").write_text("{")


def login_without_a_secret(folder: Path) -> None:
    (folder / "langgraph.json").write_text(json.dumps({"auth": {"path": "graphs.auth:auth"}}))


def damaged_store(folder: Path) -> None:
    (folder / ".palimpsest" / "store.sqlite").write_bytes(b"no database" * 1000)


def file_in_the_way(folder: Path) -> None:
    (folder / "data").write_text("")


def nothing(_: Path) -> None:
    """Leave the folder as it is."""


@pytest.mark.parametrize(
    ("breaks", "environ", "check", "state", "told"),
    [
        (nothing, {"PALIMPSEST_MAX_FACTS": "many"}, "settings", "failed", "PALIMPSEST_MAX_FACTS must be"),
        (nothing, {"LANGGRAPH_AES_KEY": "k" * 32}, "settings", "failed", "unset it, and encrypt the disk"),
        (broken_file, {}, "settings", "failed", "langgraph.json is no configuration"),
        (login_without_a_secret, {}, "settings", "failed", "PALIMPSEST_AUTH_SECRET"),
        (nothing, {"PALIMPSEST_MODEL": "local", "PALIMPSEST_LOCAL_MODEL": "qwen99"}, "model", "failed", "qwen99"),
        (nothing, {"PALIMPSEST_MEMORY_MODEL": "local", "PALIMPSEST_LOCAL_MODEL": "qwen99"}, "memory model", "failed",
         "change PALIMPSEST_LOCAL_MODEL"),
        (damaged_store, {}, "store", "failed", "palimpsest import"),
        (file_in_the_way, {"PALIMPSEST_DATA_DIR": "data"}, "store", "failed", "PALIMPSEST_DATA_DIR"),
        (file_in_the_way, {"PALIMPSEST_DATA_DIR": "data/below"}, "store", "failed", "PALIMPSEST_DATA_DIR"),
    ],
)  # fmt: skip
def test_what_is_broken_is_named_with_its_fix(
    folder: Path, breaks: Callable[[Path], None], environ: dict[str, str], check: str, state: str, told: str
) -> None:
    breaks(folder)
    found = look({**PROVIDER, **environ})[check]
    assert found["state"] == state
    assert re.search(told, found["said"]), found


def test_a_database_that_does_not_answer_is_named_without_its_password(folder: Path) -> None:
    pytest.importorskip("psycopg")
    finding = look({**PROVIDER, "DATABASE_URI": "postgresql://ada:hunter2@127.0.0.1:1/palimpsest"})["store"]
    assert finding["state"] == "failed"
    assert finding["said"].startswith("palimpsest on 127.0.0.1:1 does not answer: ")
    assert "hunter2" not in repr(finding)


def served() -> AsAda:
    async def ok(_: Request) -> PlainTextResponse:
        return PlainTextResponse("ok")

    return AsAda(Starlette(routes=[Route("/ok", ok), Mount("/", MemoryApp().app)]))


def test_a_server_is_told_from_one_that_is_locked_down_away_or_another(folder: Path) -> None:
    there = look({**PROVIDER, "PALIMPSEST_TOKEN": "ada"}, server=served())["server"]
    assert (there["state"], "0 facts, 0 updates to be learned" in there["said"]) == ("ok", True)
    locked = look(PROVIDER, server=served())["server"]
    assert (locked["state"], "PALIMPSEST_TOKEN" in locked["said"]) == ("failed", True)
    away = look(PROVIDER, "--url", "https://memory.example")["server"]
    assert (away["state"], "--url" in away["said"]) == ("failed", True)
    other = look(PROVIDER, server=Failing(httpx.Response(404)))["server"]
    assert (other["state"], "another server" in other["said"]) == ("failed", True)
    strange = look(PROVIDER, server=Failing(httpx.Response(200, json={"status": "ok"})))["server"]
    assert (strange["state"], "is no Palimpsest server" in strange["said"]) == ("failed", True)


def test_a_person_reads_a_line_a_check(folder: Path) -> None:
    (folder / ".env").write_text("PALIMPSEST_MAX_FACTS=many\n")
    done = Typed(NOBODY, {}).run("doctor", "--no-ask")
    assert done.exit_code == 1
    assert "failed   settings      PALIMPSEST_MAX_FACTS" in done.stdout
    assert done.stdout.endswith("1 thing to mend.\n")


def asked(url: str, name: str, **further: str) -> str:
    """Ask a model as the doctor does, with the environment and the path of modules as they were afterwards."""
    keep = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}  # noqa: TID251
    with patch.dict(os.environ, keep, clear=True), patch.object(sys, "path", [*sys.path]):  # noqa: TID251
        return ask_model({**keep, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "stub", **further}, name)


def test_a_model_is_asked_for_a_word_and_why_it_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_ASK_SECONDS", 600.0)  # a busy machine is no model that does not answer
    with StubModel() as model:
        assert asked(model.url, "openai:gpt-4.1") == ""
        assert len(model.requests) == 1
    with StubModel(lambda _: Reply(text="bad key", status=401)) as model:
        assert "set that provider's key, for openai OPENAI_API_KEY" in asked(model.url, "")
    with StubModel(lambda _: Reply(beside={"reasoning_content": "ok"})) as model:
        assert "answers without content" in asked(model.url, "openai:thinks")
    nowhere = asked("http://127.0.0.1:1/v1", "", PALIMPSEST_DEPLOYMENT="nowhere:mine")
    assert "PALIMPSEST_DEPLOYMENT must be module:name" in nowhere


def test_what_a_deployments_module_prints_is_no_answer_of_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "_ASK_SECONDS", 600.0)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("from palimpsest import Deployment\nprint('loaded')\nmine = Deployment()\n")
    with StubModel() as model:
        assert asked(model.url, "openai:gpt-4.1", PALIMPSEST_DEPLOYMENT="mine:mine") == ""
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "loaded\n")


def test_a_model_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    may_answer = threading.Event()
    monkeypatch.setattr(doctor, "_ASK_SECONDS", 0.1)
    monkeypatch.setattr(doctor, "answer_for_model", lambda _: str(may_answer.wait(60)))
    assert "did not answer" in asked("http://127.0.0.1:1/v1", "openai:slow")
    may_answer.set()
