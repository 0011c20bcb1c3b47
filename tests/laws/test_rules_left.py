"""A turn whose writing down failed is written down later: once, as it was said, and never behind an erase."""

import ast
import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from palimpsest import Context, FactStore, erase_thread, open_checkpointer
from tests.laws.doors import House
from tests.laws.starting import look_back
from tests.laws.talk import Failing, Talk, erase_everything, failing, in_thread

BOTH = pytest.mark.parametrize("talk", ["graph", "agent"], indirect=True)
CLOSED = ("read_only", "incognito")


@pytest.fixture(params=["graph"])
async def talk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Talk]:
    async with open_checkpointer(tmp_path / "checkpoints.sqlite") as saver:
        yield Talk(request.param, store=Failing(), saver=saver, settings={"data_dir": tmp_path})


@BOTH
@pytest.mark.parametrize("begins", ["before a turn", "while one is answered"])
@pytest.mark.parametrize("then", ["a server looks", "its next turn"])
async def test_what_was_left_is_written_down_once_though_the_state_still_names_it(
    talk: Talk, begins: str, then: str
) -> None:
    await talk.say("I like pears.")

    def away(_: list[BaseMessage]) -> str:
        talk.store.fails = True
        return "Noted."

    if begins == "while one is answered":
        talk.chat.respond = away
    talk.store.fails = begins == "before a turn"
    await talk.say("I like figs.")
    await talk.say("I like plums.")
    talk.store.fails = False
    talk = talk.restarted()
    if then == "a server looks":
        assert await look_back(talk.service, talk.store) == 2
        assert await talk.learn() == ["Likes figs", "Likes pears", "Likes plums"]
        assert await look_back(talk.service, talk.store) == 0
    await talk.say("I like kiwis.")
    assert await talk.learn() == ["Likes figs", "Likes kiwis", "Likes pears", "Likes plums"]
    assert await look_back(talk.service, talk.store) == 0
    await talk.learn()


async def test_the_process_writes_down_what_was_left_once_the_store_is_back_and_asks_it_no_sooner() -> None:
    talk = Talk(store=Failing(), memory={"debounce_seconds": 0.01, "retry_base_seconds": 0.1, "retry_max_seconds": 0.1})
    with failing(talk.store):
        await talk.say("I like figs.")
        await asyncio.sleep(0.3)
        assert "figs" not in talk.stored()  # whoever asks on a thread would be answered
    async with asyncio.timeout(60):
        while "figs" not in talk.stored():  # noqa: ASYNC110 - another thread writes it
            await asyncio.sleep(0.01)
    assert await talk.learn() == ["Likes figs"]


async def test_what_a_tool_remembers_in_its_thread_has_no_turn_written_down_twice(tmp_path: Path) -> None:
    call = {"name": "remember", "args": {"content": "Likes plums", "category": "preference"}, "id": "1"}
    async with open_checkpointer(tmp_path / "checkpoints.sqlite") as saver:
        tools = Context(memory_tools=("remember",))
        limits = {"seen_limit": 1}  # as of a thread in which very much was said since
        talk = Talk(store=Failing(), saver=saver, context=tools, settings={"data_dir": tmp_path}, memory=limits)
        with failing(talk.store):
            await talk.say("I like figs.")
        talk = talk.restarted()
        assert await look_back(talk.service, talk.store) == 1
        await talk.learn()
        talk.chat.replies = [AIMessage("", tool_calls=[call])]
        await talk.say("I like plums.")
        await talk.learn()
        assert talk.read() == {"I like figs.": 1, "I like plums.": 1}


@pytest.mark.parametrize("talk", ["agent"], indirect=True)
async def test_a_turn_of_an_agent_that_never_ended_is_written_down_once(talk: Talk) -> None:
    talk.chat.replies = [ConnectionError("down")]
    with failing(talk.store), pytest.raises(ConnectionError):
        await talk.say("I like figs.")
    talk = talk.restarted()
    assert await look_back(talk.service, talk.store) > 0
    assert await talk.learn() == ["Likes figs"]
    assert await look_back(talk.service, talk.store) == 0
    await talk.say("I like plums.")
    assert await talk.learn() == ["Likes figs", "Likes plums"]


@BOTH
@pytest.mark.parametrize("mode", CLOSED)
async def test_what_was_said_in_a_stricter_mode_is_never_written_down(talk: Talk, mode: str) -> None:
    with failing(talk.store):
        await talk.say("I like figs.", mode=mode)
        await talk.say("I like plums.")
    talk = talk.restarted()
    await look_back(talk.service, talk.store)
    assert await talk.learn() == ["Likes plums"]
    assert "figs" not in talk.stored()


@BOTH
@pytest.mark.parametrize("erases", ["the thread", "everything"])
@pytest.mark.parametrize("then", ["a server looks", "its next turn", "the turn after that"])
@pytest.mark.parametrize("known", [True, False], ids=["known before", "read by nobody"])
async def test_an_erase_after_it_cancels_it(talk: Talk, erases: str, known: bool, then: str) -> None:
    if known:
        await talk.say("Hello.")
    with failing(talk.store):
        await talk.say("I like figs.")
    if erases == "the thread":
        erase_thread(talk.store, "T")
    else:
        erase_everything(talk)
    if then == "the turn after that":
        with failing(talk.store):
            await talk.say("I like plums.")
    talk = talk.restarted()
    if then == "a server looks":
        await look_back(talk.service, talk.store)
    await talk.say("I like kiwis.")
    learned = await talk.learn()
    assert "Likes kiwis" in learned
    assert "Likes figs" not in learned
    await look_back(talk.service, talk.store)
    assert "Likes figs" not in await talk.learn()
    assert "figs" not in talk.stored()


async def test_what_a_client_sent_that_is_no_message_keeps_no_turn_of_anybody_from_being_found(talk: Talk) -> None:
    users = ("ada", "bob", "cleo")
    with failing(talk.store):
        for user in users:
            await talk.say("I like figs.", f"of {user}", user=user)
    with pytest.raises(ValueError, match="Unexpected message type"):
        await talk.run({"messages": [{"role": "nobody", "content": "x"}]}, talk.who("of bob", "bob"))
    talk = talk.restarted()
    assert await look_back(talk.service, talk.store) == len(users)
    await talk.learn()
    assert [await talk.known(user) for user in users] == [["Likes figs"]] * len(users)
    await talk.graph.aupdate_state(talk.who("of bob", "bob"), {"messages": [HumanMessage("I like plums.")]})
    assert len((await talk.values("of bob"))["messages"]) > 1


@BOTH
async def test_what_a_client_wrote_into_a_state_gets_nothing_into_anothers_memory(talk: Talk) -> None:
    await talk.say("Hello.", "of bob", user="bob")
    with failing(talk.store):
        await talk.say("I like figs.")
        await talk.say("I like dates.", "of bob", user="bob")
    key, node = ("memory", "flush_memory") if talk.door == "graph" else ("palimpsest_memory", "model")
    mine, theirs = [str((await talk.values(thread))[key]) for thread in ("T", "of bob")]
    assert mine != theirs
    # As a client may write it that has read the other's state.
    forged = ast.literal_eval(mine.replace(*(re.findall(r"'owner': '(.*?)'", each)[0] for each in (mine, theirs))))
    await talk.graph.aupdate_state(talk.who(), {key: forged}, as_node=node)
    talk = talk.restarted()
    await look_back(talk.service, talk.store)
    await talk.say("Hello.")
    await talk.learn()
    assert "Likes figs" not in await talk.known("bob")


@pytest.mark.parametrize("erase", [lambda talk: erase_thread(talk.store, "T"), erase_everything])
async def test_an_erase_cancels_it_though_the_clock_is_ahead_and_nobody_read_its_epochs(talk: Talk, erase: Any) -> None:
    talk.clock.seconds = 4e9
    with failing(talk.store):
        await talk.say("I like figs.")
    talk = talk.restarted()

    def away(_: list[BaseMessage]) -> str:
        talk.store.fails = True
        return "Noted."

    talk.chat.respond = away
    await talk.say("I like dates.")
    talk.store.fails = False
    erase(talk)
    talk = talk.restarted()
    await talk.say("I like kiwis.")
    await look_back(talk.service, talk.store)
    assert await talk.learn() == ["Likes kiwis"]


@BOTH
@pytest.mark.parametrize("deleted", ["long ago", "since"])
async def test_what_was_deleted_is_learned_of_a_later_turn_only_though_that_could_not_read_memory(
    talk: Talk, deleted: str
) -> None:
    await talk.say("I like figs.")
    await talk.learn()
    (fact,) = await FactStore(talk.store, "ada").alist()

    def delete() -> None:
        talk.clock.advance(1000)
        in_thread(House(talk.store, InMemorySaver(), {}, talk.clock).ask("DELETE", f"/facts/{fact.id}"))
        talk.clock.advance(1000)

    if deleted == "long ago":
        delete()
    with failing(talk.store):
        await talk.say("I like figs.", "another")
    if deleted == "since":
        delete()
    await talk.restarted().say("Hello.", "another")
    assert await talk.learn() == (["Likes figs"] if deleted == "long ago" else [])
