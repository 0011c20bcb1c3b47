"""What a deployment decides: read once, from one mapping, with the variable's name in every error."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from graphs.server.app import look_for_model
from graphs.settings import ClientSettings, EnvFileUnreadable, Settings, database_of, environment

EXAMPLE = (Path(__file__).parents[2] / ".env.example").read_text()
DOCUMENTED = dict(re.findall(r"^#((?:PALIMPSEST|OPENAI)_[A-Z_]+|DATABASE_URI)=(.*)$", EXAMPLE, re.M))
# Set by the server or by `palimpsest dev`, not by hand.
SERVERS_OWN = {
    "LANGSMITH_LANGGRAPH_API_VARIANT",
    "LANGGRAPH_AUTH",
    "LANGGRAPH_RUNTIME_EDITION",
    "PALIMPSEST_LOCAL_BASE_URL",
    "PALIMPSEST_LOCAL_BACKGROUND_URL",
}


class Recording(Mapping[str, str]):
    """An empty environment that remembers, in order, what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getitem__(self, name: str) -> str:
        if name not in self.asked:
            self.asked.append(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def test_the_example_lists_what_is_read() -> None:
    environ = Recording()
    Settings.from_environment(environ)
    ClientSettings.from_environment(environ)
    assert set(environ.asked) - SERVERS_OWN == set(DOCUMENTED)
    assert re.findall(r"\n#\w+=.*\n#(PALIMPSEST_\w+)=", EXAMPLE) == [], "each has a sentence of its own"


def test_the_example_shows_the_defaults() -> None:
    assert Settings.from_environment(DOCUMENTED) == Settings.from_environment({}) == Settings()


URI = "postgresql://ada:hunter2@db/palimpsest"
DEV = {"LANGSMITH_LANGGRAPH_API_VARIANT": "local_dev", "LANGGRAPH_RUNTIME_EDITION": "inmem"}


@pytest.mark.parametrize(
    ("environ", "uri"),
    [
        ({}, ""),
        ({"DATABASE_URI": URI}, URI),
        ({**DEV, "DATABASE_URI": ":memory:"}, ""),  # what `langgraph dev` tells its server
        ({**DEV, "DATABASE_URI": ":memory:", "PALIMPSEST_DATABASE_URI": URI}, URI),
        ({**DEV, **database_of({"DATABASE_URI": URI})}, URI),
        ({"DATABASE_URI": URI, "LANGGRAPH_RUNTIME_EDITION": "postgres"}, URI),  # the server's own
        ({**DEV, "DATABASE_URI": URI, "LANGGRAPH_RUNTIME_EDITION": "postgres"}, URI),  # though it calls itself that
    ],
)
def test_a_database_is_used_where_one_is_named(environ: dict[str, str], uri: str) -> None:
    settings = Settings.from_environment(environ)
    assert settings.database_uri == uri
    assert settings.keeps_its_own is (environ.get("LANGGRAPH_RUNTIME_EDITION") == "postgres")
    assert "hunter2" not in repr(settings)


def test_what_is_no_postgres_is_refused_without_saying_its_password() -> None:
    with pytest.raises(ValueError, match=r"^DATABASE_URI must begin with postgresql://$"):
        Settings.from_environment({"DATABASE_URI": "mysql://ada:hunter2@db/palimpsest"})
    with pytest.raises(ValueError, match=r"^PALIMPSEST_DATABASE_URI .* must begin with postgresql://$"):
        Settings.from_environment({"DATABASE_URI": URI, "PALIMPSEST_DATABASE_URI": "mysql://ada:hunter2@db/palimpsest"})


def test_a_server_may_name_its_own_database_in_a_form_that_ours_do_not_know() -> None:
    settings = Settings.from_environment(
        {"DATABASE_URI": "postgres+other://db", "LANGGRAPH_RUNTIME_EDITION": "postgres"}
    )
    assert settings.database_uri == ""


def test_under_langgraph_dev_the_database_of_the_env_file_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text(f"DATABASE_URI={URI}\n")
    monkeypatch.chdir(tmp_path)
    for name, value in {**DEV, "DATABASE_URI": ":memory:"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PALIMPSEST_DATABASE_URI", raising=False)
    assert Settings.from_environment().database_uri == URI


@pytest.mark.parametrize(
    ("environ", "on"),
    [
        ({}, False),
        ({"LANGSMITH_LANGGRAPH_API_VARIANT": "local_dev"}, True),
        ({"LANGSMITH_LANGGRAPH_API_VARIANT": "licensed"}, False),
        ({"LANGSMITH_LANGGRAPH_API_VARIANT": "local_dev", "PALIMPSEST_SINGLE_USER": "false"}, False),
        ({"LANGSMITH_LANGGRAPH_API_VARIANT": "local_dev", "LANGGRAPH_AUTH": "{}"}, False),
        ({"PALIMPSEST_SINGLE_USER": "True"}, True),
    ],
)
def test_single_user_mode_is_on_under_langgraph_dev_only(environ: dict[str, str], on: bool) -> None:
    assert Settings.from_environment(environ).single_user is on


def test_a_server_where_users_log_in_is_never_in_single_user_mode() -> None:
    with pytest.raises(ValueError, match="PALIMPSEST_SINGLE_USER"):
        Settings.from_environment({"PALIMPSEST_SINGLE_USER": "true", "LANGGRAPH_AUTH": "{}"})


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("PALIMPSEST_MEMORY", "perhaps", "true or false"),
        ("PALIMPSEST_SINGLE_USER", "maybe", "true or false"),
        ("PALIMPSEST_MAX_FACTS", "inf", "a whole number in digits"),
        ("PALIMPSEST_JOURNAL_DAYS", "2.5", "a whole number in digits"),
        ("PALIMPSEST_THREAD_DAYS", "nan", "a whole number in digits"),
        ("PALIMPSEST_DEBOUNCE_SECONDS", "-1", "greater than or equal to 0"),
        ("PALIMPSEST_OPEN_TO_NETWORK", "2", "true or false"),
        ("PALIMPSEST_MAX_FACTS", "1e3", "a whole number in digits"),
        ("PALIMPSEST_THREAD_DAYS", "9" * 5_000, "a whole number in digits"),
        ("PALIMPSEST_DEBOUNCE_SECONDS", "soon", "a number"),
    ],
)
def test_a_value_that_cannot_be_read_is_refused_with_what_is_to_be_set(name: str, value: str, wanted: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be {wanted}, not {value}$"):
        Settings.from_environment({name: value})


def test_empty_variables_count_as_unset() -> None:
    assert Settings.from_environment(dict.fromkeys(DOCUMENTED, " ")) == Settings()


@pytest.mark.parametrize("name", ["LANGGRAPH_AES_KEY", "PALIMPSEST_BUDGET_TOKENS", "PALIMPSEST_RECEIPT_DAYS"])
def test_a_variable_that_means_nothing_any_more_is_refused_with_what_to_do_instead(name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} .*: "):
        Settings.from_environment({**DEV, name: "0123456789abcdef"})


@pytest.mark.parametrize("read", [Settings.from_environment, ClientSettings.from_environment])
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("PALIMPSEST_MODLE", "is PALIMPSEST_MODEL meant?"),
        ("PALIMPSEST_DEBOUNCE_SECOND", "is PALIMPSEST_DEBOUNCE_SECONDS meant?"),
        ("PALIMPSEST_ULR", "is PALIMPSEST_URL meant?"),
        ("PALIMPSEST_QQQQQQ", "unset it"),
    ],
)
def test_an_unknown_variable_is_refused_with_the_nearest_right_name(
    read: Callable[[Mapping[str, str]], object], name: str, hint: str
) -> None:
    with pytest.raises(ValueError, match=f"^{name} is no variable of ours: .*{re.escape(hint)}"):
        read({**DEV, name: "1"})
    read({**DEV, name: " ", "MODLE": "1", "palimpsest_modle": "1", "PALIMPSEST": "1"})


def test_a_variable_of_langgraph_is_left_to_a_platform_and_to_a_program() -> None:
    key = {"LANGGRAPH_AES_KEY": "0123456789abcdef"}
    assert Settings.from_environment(key) == Settings()
    assert Settings.from_environment({**DEV, **key, "LANGGRAPH_RUNTIME_EDITION": "postgres"}).keeps_its_own


def test_the_local_model_is_given_little_at_a_time_and_long() -> None:
    local = Settings.from_environment({"PALIMPSEST_MODEL": "local"}).memory
    assert local.portion_messages < Settings().memory.portion_messages
    assert local.model_timeout_seconds < local.lease_seconds
    assert Settings.from_environment({"PALIMPSEST_MODEL": "openai:x"}).memory == Settings().memory


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_file_of_variables_is_read_in_the_encodings_that_editors_and_shells_write(
    encoding: str, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_bytes("OPENAI_API_KEY=sk\r\nPALIMPSEST_DATA_DIR=grün\r\n".encode(encoding))
    assert environment(tmp_path / ".env", {}) == {"OPENAI_API_KEY": "sk", "PALIMPSEST_DATA_DIR": "grün"}


def test_another_encoding_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes("A=b\nPALIMPSEST_DATA_DIR=grün\n".encode("latin-1"))
    with pytest.raises(EnvFileUnreadable, match=r"line 2 of .*\.env is not UTF-8"):
        environment(tmp_path / ".env", {})


@pytest.mark.parametrize(("model", "why"), [("", "No model is configured"), ("gpt", "'gpt' cannot be used")])
def test_a_server_without_a_model_says_so_as_it_starts(model: str, why: str, caplog: pytest.LogCaptureFixture) -> None:
    look_for_model(Settings(model=model))
    assert why in caplog.text
