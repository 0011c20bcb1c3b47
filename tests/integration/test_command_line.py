"""The command line against the real memory API in process: what a person types, sees, and gets as exit code."""

import io
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from graphs.cli.client import MemoryClient, open_memory
from graphs.cli.main import main
from graphs.cli.shell import Refused, Shell
from tests.archive_lines import document_of, lines_of
from tests.command_line import AsAda, Failing, Typed
from tests.memory_app import MemoryApp

HOUSE = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def app() -> MemoryApp:
    return MemoryApp()


@pytest.fixture
def ada(app: MemoryApp) -> Typed:
    return Typed(AsAda(app.app), {"PALIMPSEST_TOKEN": "ada"})


def test_pages_are_named(ada: Typed) -> None:
    for word in ("one", "two", "three"):
        ada("facts", "add", f"Likes {word}")
    done = ada.run("facts", "list", "--limit", "2")
    assert len(done.stdout.splitlines()) == 2
    assert "2 of 3" in done.stderr
    assert len(ada.json("facts", "list", "--offset", "2")["facts"]) == 1


def test_a_fact_that_may_hold_a_secret_is_added_and_said_to_wait(ada: Typed) -> None:
    added = ada.run("facts", "add", "My door code is 4417")
    (fact_id,) = (each["id"] for each in ada.json("facts", "list", "--status", "quarantined")["facts"])
    assert (added.exit_code, "before your yes (secret)" in added.output) == (0, True)
    ada("facts", "release", fact_id)
    assert "4417" in ada("facts", "list")


def test_what_the_api_refuses_is_one_sentence(ada: Typed) -> None:
    assert ada.refused("facts", "delete", "fact_00000000") == "Error: no fact has the id 'fact_00000000'\n"
    assert "no fact of history" in ada.refused("facts", "restore", "fact_00000000")
    assert "nothing to undo" in ada.refused("facts", "undo")
    assert "confidence" in ada.refused("facts", "add", "x", "--confidence", "nan")
    assert "preference" in ada.refused("facts", "list", "--category", "food")


@pytest.mark.parametrize(
    "line",
    [
        ["import", "missing.json"],
        ["pending", "retry"],
        ["pending", "retry", "abc", "--all"],
        ["facts", "list", "--local", "--url", "http://127.0.0.1:1"],
        ["erase"],
        ["facts", "delete", ""],
        ["facts", "show", "../profile"],
        ["backfill", "a.json", "--source", "a/b"],
    ],
)
def test_a_wrong_command_line_asks_nobody(ada: Typed, line: list[str]) -> None:
    done = ada.run(*line)
    assert done.exit_code == 2
    assert isinstance(ada.transport, AsAda)
    assert ada.transport.seen == []


def test_who_has_no_token_is_told_where_to_get_one(app: MemoryApp) -> None:
    nobody = Typed(AsAda(app.app), {})
    assert "PALIMPSEST_TOKEN" in nobody.refused("facts", "list")
    assert nobody("facts", "list", "--token", "ada") == ""


@pytest.mark.parametrize("token", ["ad\na", "ad\u00e4"])
def test_a_token_that_no_header_can_hold_is_refused_without_being_shown(app: MemoryApp, token: str) -> None:
    said = Typed(AsAda(app.app), {"PALIMPSEST_TOKEN": token}).refused("facts", "list")
    assert "PALIMPSEST_TOKEN must be one line of ASCII" in said
    assert token not in said


def test_url_token_and_agent_come_from_the_line_or_the_environment(app: MemoryApp) -> None:
    carried = AsAda(app.app)
    typed = Typed(carried, {"PALIMPSEST_TOKEN": "ada", "PALIMPSEST_URL": "https://memory.example"})
    typed("facts", "list")
    typed("facts", "list", "--url", "http://other.example/", "--agent", "coach")
    assert [str(request.url) for request in carried.seen] == [
        "https://memory.example/memory/facts?agent_name=default&status=active&limit=50&offset=0",
        "http://other.example/memory/facts?agent_name=coach&status=active&limit=50&offset=0",
    ]
    assert "http://" in typed.refused("facts", "list", "--url", "nonsense")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (httpx.ConnectError("refused"), "palimpsest dev"),
        (httpx.ReadTimeout("slow"), "in time"),
        (httpx.RemoteProtocolError("gone"), "does it run?"),
        (httpx.Response(404, text="Not Found"), "another server"),
        (httpx.Response(500, text="Internal Server Error"), "status 500"),
        (httpx.Response(308, headers={"Location": "https://a.example"}), "https://a.example"),
        (httpx.Response(200, text="<html>"), "JSON"),
        (httpx.Response(200, json={"status": "ok"}), "is no Palimpsest server"),
        (httpx.Response(200, json=[]), "is no Palimpsest server"),
        (httpx.Response(403, json={"detail": "single-user mode answers this machine only"}), "this machine only"),
    ],
)
def test_a_server_that_cannot_be_asked_is_named_with_what_to_do(answer: Exception | httpx.Response, said: str) -> None:
    refused = Typed(Failing(answer), {}).refused("facts", "list")
    assert said in refused
    assert "http://127.0.0.1:2024" in refused


class TooMuchOnce(AsAda):
    """Reads the first request, as a server does, and asks for it later."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if not self.seen:
            self.seen.append(request)
            request.read()
            return httpx.Response(429, headers={"Retry-After": "0.01"}, json={"detail": "too much", "errors": []})
        return super().handle_request(request)


class Piped(io.BytesIO):
    def seekable(self) -> bool:
        return False

    def seek(self, *_: object) -> int:
        raise io.UnsupportedOperation


def test_an_import_that_came_too_soon_is_sent_again_from_its_beginning(app: MemoryApp) -> None:
    lines = lines_of({"facts": [{"content": "Likes figs", "category": "preference", "confidence": 1.0}]}).encode()
    with httpx.Client(
        base_url="http://ada", transport=TooMuchOnce(app.app), headers={"authorization": "Bearer ada"}
    ) as http:
        done = MemoryClient(http, "default", "ada").ask("POST", "/import", content=io.BytesIO(lines))
    assert len(done["created"]) == 1


def test_an_import_from_a_pipe_that_came_too_soon_is_refused_as_it_cannot_be_sent_again(app: MemoryApp) -> None:
    with (
        httpx.Client(base_url="http://ada", transport=TooMuchOnce(app.app)) as http,
        pytest.raises(Refused, match=r"^too much$"),
    ):
        MemoryClient(http, "default", "ada").ask("POST", "/import", content=Piped(b"a line"))


def test_an_import_that_refuses_entries_says_which_and_fails(ada: Typed, folder: Path) -> None:
    ada("facts", "add", "Likes figs")
    document = document_of(ada("export"))
    document["facts"].append({"content": "", "category": "food"})
    (folder / "bad.json").write_text(lines_of(document))
    done = ada.run("import", "bad.json")
    assert done.exit_code == 1
    assert "refused line 3: " in done.stdout
    (folder / "no.json").write_text("{")
    assert ada.refused("import", "no.json")


def test_an_export_that_breaks_off_leaves_no_file(folder: Path) -> None:
    class BreaksOff(httpx.SyncByteStream):
        def __iter__(self) -> Any:
            yield b'{"schema"'
            raise httpx.RemoteProtocolError("peer closed connection")

    broken = Typed(Failing(httpx.Response(200, stream=BreaksOff())), {})
    assert "lost" in broken.refused("export", "backup.json")
    assert list(folder.iterdir()) == []


def test_erasing_says_what_goes_and_asks(ada: Typed, app: MemoryApp) -> None:
    fact = ada.json("facts", "add", "Likes figs")["id"]
    asked = ada.run("erase", "fact", fact)
    assert (asked.exit_code, asked.stdout) == (1, "")
    assert "“Likes figs” goes for good" in asked.stderr
    assert "--yes" in asked.stderr
    assert ada.json("facts", "list")["total"] == 1

    assert ada.json("erase", "fact", fact, "--yes")["items"] > 0
    assert ada.json("facts", "list")["total"] == 0
    assert "no fact" in ada.refused("erase", "fact", fact, "--yes")


def test_the_local_files_are_the_same_memory(app: MemoryApp, ada: Typed, folder: Path) -> None:
    ada("facts", "add", "Likes figs", "--pin")
    ada("export", "backup.json")
    alone = Typed(Failing(httpx.ConnectError("no server")), {})
    assert ".palimpsest/store.sqlite" in alone.refused("facts", "list", "--local")
    assert not (folder / ".palimpsest").exists()

    assert len(alone.json("import", "backup.json", "--local")["created"]) == 1
    (figs,) = alone.json("facts", "list", "--local")["facts"]
    assert figs["pinned"]
    alone("facts", "edit", figs["id"], "--content", "Likes dates", "--local")
    assert "Likes dates" in alone("export", "--local")
    alone("facts", "undo", "--local")
    assert alone.json("pending", "list", "--local") == {"updates": []}
    # Without a server it is named to what can do without one.
    assert "--local" in alone.refused("facts", "list")
    for command in (["chat", "Hello."], ["erase", "fact", figs["id"], "--yes"]):
        assert "--local" not in alone.refused(*command)
        assert "--local" not in alone(*command[:-1], "--help")


def test_files_of_users_who_log_in_are_not_opened(folder: Path) -> None:
    typed = Typed(Failing(httpx.ConnectError("no server")), {"PALIMPSEST_SINGLE_USER": "false"})
    assert "--token" in typed.refused("facts", "list", "--local")
    wrong = Typed(Failing(httpx.ConnectError("no server")), {"PALIMPSEST_MAX_FACTS": "many"})
    assert "PALIMPSEST_MAX_FACTS" in wrong.refused("facts", "list", "--local")


def test_every_command_teaches_by_examples() -> None:
    groups = {"facts": None, "pending": None, "erase": None}
    for group in groups:
        listed = CliRunner().invoke(main, [group, "--help"])
        assert "Examples:" in listed.output
    for line in (["facts", "list"], ["pending", "retry"], ["export"], ["import"]):
        assert "Examples:" in CliRunner().invoke(main, [*line, "--help"]).output


def test_the_page_names_every_command() -> None:
    listed = (HOUSE / "docs" / "use" / "commands.md").read_text().partition("```sh")[0]
    named = set(re.findall(r"[a-z]+", " ".join(re.findall(r"`([^`]+)`", listed))))
    there = {name for each in [main, *main.commands.values()] for name in getattr(each, "commands", {})}
    assert len(there) > 20
    assert there <= named


def test_a_mistake_of_ours_is_not_said_to_be_the_servers() -> None:
    with pytest.raises(KeyError, match="ours"), open_memory(Shell(environ={}), "http://t"):
        raise KeyError("ours")
