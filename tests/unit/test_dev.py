"""What `palimpsest dev` decides before it starts anything."""

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import graphs
from graphs.cli.dev import (
    choose_port,
    chosen_embedder,
    learning,
    reach,
    read_set_up,
    serve,
    server_environment,
    wants_local,
)
from graphs.cli.local import LocalModel
from graphs.cli.main import main
from graphs.cli.shell import Refused
from graphs.process.address import address_of, leave, take_away
from graphs.settings import Settings, environment

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def served() -> LocalModel:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return LocalModel("tiny", "http://127.0.0.1:9/v1", "http://127.0.0.1:8/v1", ended)


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, True),
        ({"PALIMPSEST_MODEL": "local", "OPENAI_API_KEY": "k"}, True),
        ({"OPENAI_API_KEY": "k", "PALIMPSEST_MEMORY_MODEL": "local"}, True),
        ({"OPENAI_API_KEY": "k"}, False),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, False),
        ({"PALIMPSEST_MODEL": "anthropic:claude"}, False),
        ({"PALIMPSEST_LOCAL_BASE_URL": "http://127.0.0.1:9/v1"}, False),
    ],
)
def test_the_local_model_is_for_those_without_a_provider(variables: dict[str, str], wanted: bool) -> None:
    assert wants_local(Settings.from_environment(variables)) is wanted


def test_variables_are_those_the_server_will_see(tmp_path: Path) -> None:
    """`langgraph dev` lets .env override the environment, empty lines too."""
    file = tmp_path / ".env"
    file.write_text("# a comment\nPALIMPSEST_MODEL=\nexport OPENAI_API_KEY='k'\n")
    assert environment(file, {"PALIMPSEST_MODEL": "local", "HOME": "/h"}) == {
        "PALIMPSEST_MODEL": "",
        "OPENAI_API_KEY": "k",
        "HOME": "/h",
    }
    assert environment(tmp_path / "missing", {"HOME": "/h"}) == {"HOME": "/h"}


def test_the_server_knows_where_the_local_model_is(served: LocalModel) -> None:
    variables = server_environment({"NO_PROXY": "example.org"}, served)
    settings = Settings.from_environment(variables)
    assert (settings.local_base_url, settings.local_background_url) == (served.base_url, served.background_url)
    assert Settings.from_environment(variables).model == "local"


@pytest.mark.parametrize("given", [{"NO_PROXY": "example.org"}, {"no_proxy": "example.org", "NO_PROXY": "other.org"}])
def test_this_machine_is_asked_through_no_proxy_whatever_the_others_are(given: dict[str, str]) -> None:
    assert "no_proxy" not in server_environment({}, None)
    variables = server_environment({"all_proxy": "http://proxy:3128", **given}, None)
    assert variables["NO_PROXY"] == variables["no_proxy"] == "example.org,127.0.0.1,localhost,::1"


def test_a_second_server_of_a_folder_says_where_the_first_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PALIMPSEST_DATA_DIR", "data")
    with socket.create_server(("127.0.0.1", 0)) as first:
        url = f"http://127.0.0.1:{first.getsockname()[1]}"
        leave(Path("data"), url)
        leave(Path("data"), "http://127.0.0.1:1")  # one that was started without our command
        assert address_of(Path("data")) == url
        assert url in CliRunner().invoke(main, ["dev"]).stderr
        mine = Path("data/server.json").read_text()
        killed = subprocess.Popen(["true"])
        killed.wait()
        Path("data/server.json").write_text(json.dumps({"url": url, "pid": killed.pid}))
        assert not address_of(Path("data"))  # another program has its port now
        take_away(Path("data"), url)
        assert Path("data/server.json").exists()  # it may be a server of this folder that begins where this one ends
        Path("data/server.json").write_text(mine)
    assert not address_of(Path("data"))  # the first is gone, whoever has its process's number
    leave(Path("data"), "http://127.0.0.1:1")
    take_away(Path("data"), url)
    assert "http://127.0.0.1:1" in Path("data/server.json").read_text()


@pytest.mark.parametrize("host", ["127.0.0.1", *(["::1", "::"] if socket.has_ipv6 else [])])
def test_a_taken_port_is_one_sentence_instead_of_another_port(host: str) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as taken:
        taken.bind((host, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Refused, match=f"Port {port} .* --port"):
            choose_port(host, [port])
    choose_port(host, [port])


def test_without_a_wish_the_next_free_port_is_taken_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = taken.getsockname()[1]
        port = choose_port("127.0.0.1", range(busy, busy + 10))
        assert busy < port < busy + 10
        assert f"Port {busy} is taken: using {port}" in capsys.readouterr().out
    assert choose_port("127.0.0.1", range(port, port + 10)) == port
    assert capsys.readouterr().out == ""


def test_an_address_that_is_not_ours_is_refused() -> None:
    with pytest.raises(Refused, match="choose another --port or --host"):
        choose_port("203.0.113.1", [2024])


@pytest.mark.parametrize("text", [None, "{", "[]"])
def test_without_a_configuration_nothing_starts(tmp_path: Path, text: str | None) -> None:
    config = tmp_path / "langgraph.json"
    if text is not None:
        config.write_text(text)
    with pytest.raises(Refused, match=r"langgraph\.json"):
        read_set_up(config, {})


def test_the_package_brings_a_configuration_and_one_in_the_folder_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever installed the wheel has no clone, and `palimpsest dev` serves the same all the same."""
    monkeypatch.chdir(tmp_path)
    shipped, _ = read_set_up(None, {})
    assert shipped.is_relative_to(Path(graphs.__file__).parent)
    assert shipped.read_text() == (PROJECT / "langgraph.json").read_text()
    for name in ("langgraph.json", "other.json"):
        Path(name).write_text("{}")
    assert read_set_up(None, {})[0] == Path("langgraph.json")
    assert read_set_up(Path("other.json"), {})[0] == Path("other.json")


def test_a_server_with_a_login_does_not_start_without_its_key() -> None:
    login = PROJECT / "langgraph.prod.json"
    for environ, named in [
        ({}, "PALIMPSEST_AUTH_SECRET"),
        ({"PALIMPSEST_AUTH_SECRET": "short"}, "token_urlsafe"),
        ({"PALIMPSEST_AUTH_SECRET": "x" * 32, "PALIMPSEST_SINGLE_USER": "true"}, "PALIMPSEST_SINGLE_USER"),
    ]:
        with pytest.raises(Refused, match=named):
            read_set_up(login, environ)
    assert not read_set_up(login, {"PALIMPSEST_AUTH_SECRET": "x" * 32})[1].single_user
    assert read_set_up(PROJECT / "langgraph.json", {})[1].single_user


@pytest.mark.parametrize("missing", ["langgraph_api", "langgraph_runtime_inmem"])
def test_without_the_server_the_extra_that_brings_it_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphs.cli.dev.find_spec", lambda name: name != missing)
    with pytest.raises(Refused, match=re.escape('pip install "palimpsest-memory[server]"')):
        serve("127.0.0.1", None, None, ())


@pytest.mark.parametrize(
    ("variables", "has_local", "says", "is_slow"),
    [
        ({}, True, "quiet for 10 s", True),
        ({}, False, "quiet for 30 s", False),
        ({"PALIMPSEST_DEBOUNCE_SECONDS": "2.5"}, True, "quiet for 2.5 s", True),
        ({"OPENAI_API_KEY": "k"}, False, "quiet for 30 s", False),
        ({"OPENAI_API_KEY": "k", "PALIMPSEST_MEMORY_MODEL": "local"}, True, "quiet for 10 s", True),
        ({"PALIMPSEST_MODEL": "local", "PALIMPSEST_MEMORY_MODEL": "openai:m"}, True, "quiet for 30 s", False),
        ({"PALIMPSEST_MEMORY": "false"}, True, "off", False),
    ],
)
def test_it_says_when_memory_reads_what_was_said(
    variables: dict[str, str], has_local: bool, says: str, is_slow: bool, served: LocalModel
) -> None:
    said = learning(server_environment(variables, served if has_local else None))
    assert says in said
    assert ("local model" in said) is is_slow


@pytest.mark.parametrize(
    ("settings", "host", "options", "says"),
    [
        (Settings(single_user=True), "127.0.0.1", (), ""),
        (Settings(single_user=True), "0.0.0.0", (), "this machine only"),
        (Settings(single_user=True), "127.0.0.1", ("--tunnel",), "this machine only"),
        (Settings(single_user=True, open_to_network=True), "127.0.0.1", (), "EVERYONE"),
        (Settings(open_to_network=True), "0.0.0.0", (), ""),
    ],
)
def test_it_says_who_may_ask(settings: Settings, host: str, options: tuple[str, ...], says: str) -> None:
    assert reach(settings, host, options).startswith(says)
    assert bool(reach(settings, host, options)) is bool(says)


@pytest.mark.parametrize(
    ("named", "installed", "chosen"),
    [("", True, {"PALIMPSEST_EMBEDDER": "local"}), ("", False, {}), ("none", True, {}), ("openai:x", True, {})],
)
def test_the_embedded_embedder_is_on_where_it_is_installed_and_nothing_else_is_named(
    named: str,
    installed: bool,
    chosen: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("graphs.local.embedder.is_installed", lambda: installed)
    assert chosen_embedder(Settings(embedder=named)) == chosen
    assert ("weights (72 MB) are fetched once" in capsys.readouterr().err) == bool(chosen)
