"""The doctor says of each broken set-up what is wrong and what to do, and of a whole one that it is whole."""

import json
import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from graphs.cli.checks import Finding, Machine, examine
from graphs.local import weights
from graphs.settings import known_variables
from memory.context.tokenizer import Encoder, Tokenizer

VERSIONS = {"palimpsest-memory": "0.1.0", "langgraph": "1.2.22"}


def counts() -> Encoder:
    return len


def cannot_count() -> Encoder:
    raise ImportError("no tokenizer")


def sound(_: Path) -> int:
    return 50_000_000_000


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine on which all is well."""
    from importlib.metadata import version

    return Machine(
        installed=version,
        has=lambda _: True,
        free=sound,
        ask=lambda _: "",
        load=lambda _: "",
        tokenizer=lambda: Tokenizer([counts]),
        models=lambda: tmp_path / "models",
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which all is well."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    (home / "langgraph.json").write_text(json.dumps({"graphs": {}}))
    (home / ".palimpsest").mkdir()
    for name in ("store.sqlite", "checkpoints.sqlite"):
        with closing(sqlite3.connect(home / ".palimpsest" / name)) as connection:
            connection.execute("CREATE TABLE t (x)")
        (home / ".palimpsest" / name).chmod(0o600)
    return home


PROVIDER = {"OPENAI_API_KEY": "sk-test", "PALIMPSEST_EMBEDDER": "none"}


def look(machine: Machine, environ: Mapping[str, str] = PROVIDER, config: str = "langgraph.json") -> list[Finding]:
    return list(examine(environ, Path(config), machine))


def wrong(found: list[Finding]) -> Finding:
    """The one thing that is wrong."""
    (finding,) = [each for each in found if each.state != "ok"]
    return finding


def test_a_sound_set_up_is_sound(folder: Path, machine: Machine) -> None:
    found = look(machine)
    assert {each.state for each in found} == {"ok"}, found
    looked = [
        "versions",
        "server file",
        "configuration",
        "journal",
        "model",
        "tokenizer",
        "embedder",
        "store",
        "store",
        "disk",
    ]
    assert [each.check for each in found] == looked
    (journal,) = (each for each in found if each.check == "journal")
    assert ("90 days" in journal.said, "PALIMPSEST_JOURNAL_DAYS" in journal.fix) == (True, True)


def test_a_new_folder_is_sound(folder: Path, machine: Machine) -> None:
    assert {each.state for each in look(machine, {**PROVIDER, "PALIMPSEST_DATA_DIR": "new/folder"})} == {"ok"}


# ---- set-ups that are broken: what is wrong, where, how badly, and the word of the fix

Break = Callable[[Path, Machine, dict[str, str]], Machine]


def a_value_that_cannot_be_meant(_: Path, machine: Machine, environ: dict[str, str]) -> Machine:
    environ["PALIMPSEST_MAX_FACTS"] = "many"
    return machine


def a_key_that_the_server_refuses(_: Path, machine: Machine, environ: dict[str, str]) -> Machine:
    environ["LANGGRAPH_AES_KEY"] = "k" * 32
    return machine


def a_misspelt_variable(_: Path, machine: Machine, environ: dict[str, str]) -> Machine:
    environ["PALIMPSEST_MODLE"] = "openai:gpt-4.1"
    return machine


def no_server_file(folder: Path, machine: Machine, _: dict[str, str]) -> Machine:
    (folder / "langgraph.json").unlink()
    return machine


def a_broken_server_file(folder: Path, machine: Machine, _: dict[str, str]) -> Machine:
    (folder / "langgraph.json").write_text("{")
    return machine


def a_login_without_a_secret(folder: Path, machine: Machine, _: dict[str, str]) -> Machine:
    (folder / "langgraph.json").write_text(json.dumps({"auth": {"path": "graphs.auth:auth"}}))
    return machine


def an_old_package(_: Path, machine: Machine, __: dict[str, str]) -> Machine:
    return replace(machine, installed=lambda name: "0.6.0" if name == "langgraph" else machine.installed(name))


def a_missing_package(_: Path, machine: Machine, __: dict[str, str]) -> Machine:
    return replace(machine, installed=lambda name: None if name == "tiktoken" else machine.installed(name))


def no_server_packages(_: Path, machine: Machine, __: dict[str, str]) -> Machine:
    return replace(machine, has=lambda name: name != "langgraph_api")


def no_model_at_all(_: Path, machine: Machine, environ: dict[str, str]) -> Machine:
    del environ["OPENAI_API_KEY"]
    return replace(machine, has=lambda name: name != "xllamacpp")


def no_such_local_model(_: Path, machine: Machine, environ: dict[str, str]) -> Machine:
    environ |= {"PALIMPSEST_MODEL": "local", "PALIMPSEST_LOCAL_MODEL": "qwen99"}
    return machine


def weights_to_come(_: Path, machine: Machine, environ: dict[str, str]) -> Machine:
    environ["PALIMPSEST_MODEL"] = "local"
    return machine


def no_room_for_the_weights(_: Path, machine: Machine, environ: dict[str, str]) -> Machine:
    environ["PALIMPSEST_MODEL"] = "local"
    return replace(machine, free=lambda path: 1_500_000_000 if path.name == "models" else sound(path))


def a_wrong_key(_: Path, machine: Machine, __: dict[str, str]) -> Machine:
    return replace(machine, ask=lambda _: "the key is wrong: set OPENAI_API_KEY.")


def no_tokenizer(_: Path, machine: Machine, __: dict[str, str]) -> Machine:
    return replace(machine, tokenizer=lambda: Tokenizer([cannot_count]))


def an_embedder_that_is_not_installed(_: Path, machine: Machine, environ: dict[str, str]) -> Machine:
    environ["PALIMPSEST_EMBEDDER"] = "local"
    return replace(machine, has=lambda name: name in ("langgraph_api", "xllamacpp"))


def a_damaged_store(folder: Path, machine: Machine, _: dict[str, str]) -> Machine:
    (folder / ".palimpsest" / "store.sqlite").write_bytes(b"no database" * 1000)
    return machine


def a_store_for_all_to_read(folder: Path, machine: Machine, _: dict[str, str]) -> Machine:
    (folder / ".palimpsest" / "store.sqlite").chmod(0o644)
    return machine


def a_file_where_the_folder_belongs(folder: Path, machine: Machine, environ: dict[str, str]) -> Machine:
    (folder / "data").write_text("")
    environ["PALIMPSEST_DATA_DIR"] = "data"
    return machine


def a_folder_below_a_file(folder: Path, machine: Machine, environ: dict[str, str]) -> Machine:
    (folder / "data").write_text("")
    environ["PALIMPSEST_DATA_DIR"] = "data/below"
    return machine


def a_full_disk(_: Path, machine: Machine, __: dict[str, str]) -> Machine:
    return replace(machine, free=lambda _: 1_000_000)


BROKEN: dict[Break, tuple[str, str, str]] = {
    a_value_that_cannot_be_meant: ("configuration", "failed", "PALIMPSEST_MAX_FACTS.*change it in .env"),
    a_misspelt_variable: ("configuration", "warning", "PALIMPSEST_MODLE.*is PALIMPSEST_MODEL meant"),
    no_server_file: ("server file", "failed", "the package's own"),
    a_broken_server_file: ("server file", "failed", "mend it"),
    a_key_that_the_server_refuses: ("configuration", "failed", "unset it, and encrypt the disk"),
    a_login_without_a_secret: ("configuration", "failed", "PALIMPSEST_AUTH_SECRET"),
    an_old_package: ("versions", "failed", "langgraph 0.6.0.*pip install --upgrade"),
    a_missing_package: ("versions", "failed", "tiktoken is missing.*pip install --upgrade"),
    no_server_packages: ("versions", "warning", r"palimpsest-memory\[server\]"),
    no_model_at_all: ("model", "failed", r"OPENAI_API_KEY.*palimpsest-memory\[local\]"),
    no_such_local_model: ("model", "failed", "qwen99.*change PALIMPSEST_LOCAL_MODEL"),
    weights_to_come: ("model", "warning", "1.1 GB, once"),
    no_room_for_the_weights: ("model", "failed", "1.5 GB are free.*make room"),
    a_wrong_key: ("model", "failed", "the key is wrong.*in .env"),
    no_tokenizer: ("tokenizer", "warning", r"palimpsest-memory\[tokens\]"),
    an_embedder_that_is_not_installed: ("embedder", "failed", r"palimpsest-memory\[embedder\]"),
    a_damaged_store: ("store", "failed", "damaged.*palimpsest import"),
    a_store_for_all_to_read: ("store", "warning", "chmod 600"),
    a_file_where_the_folder_belongs: ("store", "failed", "PALIMPSEST_DATA_DIR"),
    a_folder_below_a_file: ("store", "failed", "PALIMPSEST_DATA_DIR"),
    a_full_disk: ("disk", "failed", "make room"),
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda each: each.__name__)
def test_what_is_broken_is_named_with_its_fix(folder: Path, machine: Machine, broken: Break) -> None:
    import re

    environ = dict(PROVIDER)
    found = wrong(look(broken(folder, machine, environ), environ))
    check, state, told = BROKEN[broken]
    assert (found.check, found.state) == (check, state)
    assert re.search(told, f"{found.said} {found.fix}"), found
    assert found.fix


def test_the_model_is_not_asked_against_ones_will(folder: Path, machine: Machine) -> None:
    asked: list[Mapping[str, str]] = []

    def ask(environ: Mapping[str, str]) -> str:
        asked.append(environ)
        return "no"

    careful = replace(machine, ask=ask)
    found = examine(PROVIDER, Path("langgraph.json"), careful, asks=False)
    assert "not asked" in next(each.said for each in found if each.check == "model")
    assert asked == []


def test_a_model_that_cannot_be_asked_is_named_without_asking_it(folder: Path, machine: Machine) -> None:
    environ = {**PROVIDER, "PALIMPSEST_MODEL": "foo:bar"}
    strange = replace(machine, load=lambda given: f"there is no {given['PALIMPSEST_MODEL']}.")
    found = wrong(list(examine(environ, Path("langgraph.json"), strange, asks=False)))
    assert (found.check, found.state, found.said) == ("model", "failed", "foo:bar: there is no foo:bar.")
    assert ".env" in found.fix


def test_a_local_model_that_somebody_serves_needs_no_provider(folder: Path, machine: Machine) -> None:
    served = {"PALIMPSEST_LOCAL_BASE_URL": "http://127.0.0.1:1/v1", "PALIMPSEST_EMBEDDER": "none"}
    strange = replace(machine, load=lambda _: "it cannot be loaded.")
    found = list(examine(served, Path("langgraph.json"), strange, asks=False))
    assert {each.state for each in found} == {"ok"}, found


def test_the_local_model_that_is_there_is_sound(folder: Path, machine: Machine, tmp_path: Path) -> None:
    chosen = weights.choose("qwen2.5-coder-0.5b")
    assert isinstance(chosen, weights.Weights)
    (tmp_path / "models").mkdir()
    with (tmp_path / "models" / chosen.file_name).open("wb") as sparse:
        os.truncate(sparse.fileno(), chosen.size)
    environ = {**PROVIDER, "PALIMPSEST_MODEL": "local", "PALIMPSEST_LOCAL_MODEL": chosen.name}
    assert {each.state for each in look(machine, environ)} == {"ok"}


def test_every_variable_of_the_example_is_known() -> None:
    known = known_variables()
    assert {"PALIMPSEST_URL", "PALIMPSEST_MODEL", "PALIMPSEST_AUTH_SECRET", "PALIMPSEST_JOURNAL_DAYS"} <= known


def test_a_database_that_does_not_answer_is_named_without_its_password(folder: Path, machine: Machine) -> None:
    pytest.importorskip("psycopg")
    environ = {**PROVIDER, "DATABASE_URI": "postgresql://ada:hunter2@127.0.0.1:1/palimpsest"}
    (finding,) = [each for each in look(machine, environ) if each.check == "store"]
    assert finding.state == "failed"
    assert finding.said.startswith("the database palimpsest on 127.0.0.1:1 does not answer: ")
    assert "hunter2" not in repr(finding)
