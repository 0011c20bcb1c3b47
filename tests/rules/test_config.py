from typing import Any, get_args

import pytest

from graphs.process.identity import LOCAL_USER, owner_of_run
from graphs.settings import Settings
from memory.config import CATEGORIES, MEANINGS, Category, MemoryConfig
from memory.extraction.form import FIELDS
from memory.namespaces import Owner


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("enabled", "yes"),
        ("max_facts", 0),
        ("max_facts", True),
        ("max_facts", 2.5),
        ("confidence_threshold", 1.5),
        ("confidence_threshold", float("nan")),
        ("debounce_seconds", -1),
        ("sweep_seconds", 0),  # without a pause between two looks, a server does nothing else
        ("max_wait_seconds", float("inf")),
        ("protected_categories", frozenset({"hobby"})),
        ("extraction_prompt", None),
        ("extraction_form", "short"),
        ("max_fact", 100),
    ],
)
def test_a_bad_limit_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=field):
        MemoryConfig(**{field: value})


def test_the_memory_model_is_told_of_every_category_what_belongs_into_it() -> None:
    assert get_args(Category) == CATEGORIES == tuple(MEANINGS)
    for name, meaning in MEANINGS.items():
        assert f'"{name}" ({meaning})' in FIELDS


def test_the_local_model_is_asked_in_the_form_that_a_small_model_can_bear() -> None:
    assert Settings.from_environment({"PALIMPSEST_MEMORY_MODEL": "local"}).memory.extraction_form == "brief"
    assert Settings.from_environment({"PALIMPSEST_MODEL": "openai:x"}).memory.extraction_form == "full"


def test_what_was_said_is_read_sooner_where_the_local_model_reads_each_message_alone() -> None:
    local = {"PALIMPSEST_MODEL": "local"}
    assert Settings.from_environment(local).memory.debounce_seconds == 10.0
    assert Settings.from_environment({"PALIMPSEST_MODEL": "openai:x"}).memory.debounce_seconds == 30.0
    assert Settings.from_environment({**local, "PALIMPSEST_DEBOUNCE_SECONDS": "20"}).memory.debounce_seconds == 20.0


def test_a_key_chooses_openai_and_an_explicit_model_wins() -> None:
    assert Settings.from_environment({"OPENAI_API_KEY": "k"}).model.startswith("openai:")
    assert Settings.from_environment({"OPENAI_API_KEY": "k", "PALIMPSEST_MODEL": "local"}).model == "local"


BOTH = {"langgraph_auth_user_id": "ada", "user_id": "bob"}


def test_the_servers_word_comes_before_the_clients() -> None:
    assert owner_of_run(BOTH, "default", single_user=True) == Owner.of("ada")
    assert owner_of_run(BOTH, "default", single_user=False) == Owner.of("ada")


def test_a_client_names_a_user_only_in_single_user_mode() -> None:
    named = {**BOTH, "langgraph_auth_user_id": ""}
    assert owner_of_run(named, "default", single_user=False) is None
    assert owner_of_run(named, "default", single_user=True) == Owner.of("bob")
    assert owner_of_run({"user_id": ""}, "default", single_user=True) == Owner.of(LOCAL_USER)


def test_without_identity_there_is_no_owner() -> None:
    assert owner_of_run({}, "default", single_user=False) is None
    assert owner_of_run({}, "default", single_user=True) == Owner.of(LOCAL_USER)
