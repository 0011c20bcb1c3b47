"""Small promises, each of which was broken once."""

import os
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from palimpsest import Settings, load_chat_model, open_checkpointer, open_store
from tests.fakes import Clock
from tests.laws.doors import House
from tests.laws.talk import DOORS, Talk
from tests.stub_model import StubModel


@pytest.mark.parametrize(("identity", "text"), [(42, "42"), (UUID(int=7), str(UUID(int=7)))])
async def test_an_identity_that_is_a_number_is_its_text(identity: object, text: str) -> None:
    talk = Talk()
    who: Any = {"configurable": {"thread_id": "T", "langgraph_auth_user_id": identity}}
    await talk.graph.ainvoke({"messages": [HumanMessage("I like figs")]}, who)
    await talk.learn()
    assert await talk.known(text) == ["Likes figs"]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "identity",
    [" ", "\n\t", "", None, True, 0, 1.5, "langgraph-studio-user", {"identity": "ada", "is_authenticated": False}],
)
async def test_a_blank_identity_is_nobodys(door: str, identity: object) -> None:
    talk = Talk(door)
    name = "langgraph_auth_user" if isinstance(identity, dict) else "langgraph_auth_user_id"
    who: Any = {"configurable": {"thread_id": "T", name: identity}}
    await talk.run({"messages": [HumanMessage("I like figs")]}, who)
    await talk.learn()
    assert "figs" not in talk.stored()


def test_a_stream_of_another_server_tells_the_tokens_used() -> None:
    with StubModel() as stub:
        model = load_chat_model("openai:any", Settings(openai_base_url=stub.url, has_openai_key=False), purpose="chat")
        list(model.stream("Hi"))
        assert stub.requests[-1].body["stream_options"] == {"include_usage": True}


async def test_what_is_kept_in_memory_alone_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_store(":memory:") as store, open_checkpointer(":memory:"):
        await store.aput(("a",), "key", {"said": "figs"})
        assert (await store.asearch(("a",)))[0].value == {"said": "figs"}
    async with open_store(":memory:") as store:
        assert await store.asearch(("a",)) == []
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("PALIMPSET_MODEL", "is PALIMPSEST_MODEL meant?"),
        ("PALIMPSEST_MODELL", "is PALIMPSEST_MODEL meant?"),
        ("PALIMPSEST_DEBOUNCE", "is PALIMPSEST_DEBOUNCE_SECONDS meant?"),
        ("PALIMPSEST_TEMPERATURE", "unset it; .env.example lists all"),
        ("PALIMPSEST_PORT", "unset it; .env.example lists all"),
    ],
)
def test_a_variables_nearest_name_is_told_where_it_is_near(name: str, meant: str) -> None:
    with pytest.raises(ValueError, match=name) as told:
        Settings.from_environment({name: "1"})
    assert str(told.value).endswith(meant)


async def test_what_a_fact_replaces_can_be_read_and_what_was_deleted_cannot() -> None:
    house = House(InMemoryStore(), InMemorySaver(), {}, Clock())
    await house.say("T", "I like coffee")
    await house.learn()
    await house.say("T", "I prefer tea to coffee")
    await house.learn()
    _, listed = await house.ask("GET", "/facts")
    (now,) = listed["facts"]
    status, before = await house.ask("GET", f"/facts/{now['replaces']}")
    assert (status, before["content"], before["replaced_by"]) == (200, "Likes coffee", now["id"])
    await house.ask("PATCH", f"/facts/{now['id']}", {"content": "Prefers green tea"})
    await house.ask("DELETE", f"/facts/{now['id']}")
    assert (await house.ask("GET", f"/facts/{now['id']}"))[0] == 404
    assert (await house.ask("GET", "/facts/fact_00000000"))[0] == 404
