"""A user goes back, edits what they said and goes on: what the thread no longer has is not learned, all else is."""

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from palimpsest import ConversationContext, FactStore, build_graph
from tests.laws.talk import LONG, NARROW, Talk, remembers

TRANSCRIPTS = pytest.mark.parametrize("transcript", ["keep", "compact"])


@pytest.fixture
def talk() -> Talk:
    return Talk(context=NARROW)


async def before(talk: Talk, text: str) -> Any:
    """Return the checkpoint that the turn began from which began with this text."""
    every = [state async for state in talk.graph.aget_state_history(talk.who())]
    return next((one for one in every if text not in [each.text for each in one.values["messages"]]), every[-1])


async def say(talk: Talk, text: str, config: Any = None) -> None:
    await talk.run({"messages": [HumanMessage(text)]}, config)


async def begun_with(talk: Talk, text: str) -> Any:
    """Begin a run that has not yet asked the model; return where it stands."""
    asked = {"messages": [HumanMessage(text)]}
    await talk.graph.ainvoke(asked, talk.who(), context=talk.context, interrupt_before=["call_model"])
    return (await talk.graph.aget_state(talk.who())).config


async def fork(talk: Talk, text: str, new: str) -> None:
    """Say something else in the place of what was said."""
    await say(talk, new, (await before(talk, text)).config)


async def update(talk: Talk, text: str, new: str) -> None:
    """Do the same by an update of the state."""
    config = (await before(talk, text)).config
    forked = await talk.graph.aupdate_state(config, {"messages": [HumanMessage(new)]}, as_node=START)
    await talk.run(None, forked)


@pytest.mark.parametrize("edit", [fork, update])
@pytest.mark.parametrize("turns_before", [0, 1])
async def test_what_was_edited_away_is_not_learned_and_stored_nowhere(talk: Talk, edit: Any, turns_before: int) -> None:
    for _ in range(turns_before):
        await say(talk, "I like figs.")
    await say(talk, "I like plums.")
    await edit(talk, "I like plums.", "I like kiwis.")
    assert await talk.learn() == ["Likes figs", "Likes kiwis"][1 - turns_before :]
    assert "plums" not in talk.stored() + str(talk.memory.prompts)


async def test_a_message_that_is_rewritten_under_its_id_is_read_in_its_newest_words(talk: Talk) -> None:
    for what in ("figs", "plums"):
        await talk.say(f"I like {what}.", id="h1")
    assert await talk.learn() == ["Likes plums"]
    assert "figs" not in str(talk.memory.prompts)


async def test_an_answer_that_is_made_again_keeps_its_question(talk: Talk) -> None:
    talk.chat.replies = ["First.", "Second."]
    await say(talk, "I like figs.")
    asked = [state async for state in talk.graph.aget_state_history(talk.who()) if state.next == ("call_model",)]
    await talk.run(None, asked[0].config)
    assert await talk.learn() == ["Likes figs"]
    assert "Second." in talk.stored()
    assert "First." not in talk.stored()


async def test_what_the_user_comes_back_to_is_learned_and_what_they_left_is_not(talk: Talk) -> None:
    await say(talk, "Hello.")
    await say(talk, "I like figs.")
    tip = (await talk.graph.aget_state(talk.who())).config
    await fork(talk, "I like figs.", "I like plums.")
    await say(talk, "I like kiwis.", tip)
    assert await talk.learn() == ["Likes figs", "Likes kiwis"]


async def test_looking_at_an_old_checkpoint_changes_nothing(talk: Talk) -> None:
    for what in ("figs", "plums"):
        await say(talk, f"I like {what}.")
    stored = talk.stored()
    looked_at = await talk.graph.aget_state((await before(talk, "I like plums.")).config)
    assert len(looked_at.values["messages"]) == 2
    assert talk.stored() == stored
    assert await talk.learn() == ["Likes figs", "Likes plums"]


async def test_what_was_trimmed_is_learned(talk: Talk) -> None:
    await say(talk, "I like figs.")
    await say(talk, "I like dates.")
    messages = (await talk.values())["messages"]
    await talk.graph.aupdate_state(talk.who(), {"messages": [RemoveMessage(id=one.id) for one in messages[:3]]})
    await say(talk, "I like plums.")
    assert await talk.learn() == ["Likes dates", "Likes figs", "Likes plums"]


async def test_what_is_removed_is_not_learned(talk: Talk) -> None:
    await say(talk, "I like figs.")
    await talk.graph.aupdate_state(talk.who(), {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]})
    await say(talk, "I like plums.")
    assert await talk.learn() == ["Likes plums"]


async def test_a_question_that_is_edited_while_its_summary_is_written_begins_its_turn_anew() -> None:
    """The run is stopped then: `inject_memory` has ended, and what it chose was for the words of before."""
    talk = Talk(context=NARROW, memory={"prepare_summary_share": 1.0})
    is_asked, released = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def hangs(_: list[BaseMessage]) -> str:
        loop.call_soon_threadsafe(is_asked.set)
        released.wait()
        return "They talked."

    await say(talk, "I like figs.")
    talk.summaries.respond = hangs
    sent = [*(HumanMessage(f"{number}.{LONG}") for number in range(16)), HumanMessage("I like plums.", id="h2")]
    turn = asyncio.create_task(talk.run({"messages": sent}))
    try:
        await asyncio.wait_for(is_asked.wait(), 30)
        turn.cancel()
        await asyncio.wait([turn])
    finally:
        released.set()
    talk.summaries.respond = remembers
    assert (await talk.graph.aget_state(talk.who())).next == ("summarize",)
    await talk.graph.aupdate_state(talk.who(), {"messages": [HumanMessage("I like kiwis.", id="h2")]})
    assert (await talk.run(None))["memory"]["receipt"]["asked"] == "h2"
    assert await talk.learn() == ["Likes figs", "Likes kiwis"]
    assert "plums" not in str(talk.memory.prompts)


@pytest.mark.parametrize("window", [1, 3])
async def test_without_a_checkpointer_what_is_not_in_a_call_is_learned(talk: Talk, window: int) -> None:
    graph: Any = build_graph(service=talk.service).compile(store=talk.store)
    said: list[BaseMessage] = []
    for number in range(4):
        said = [*said, HumanMessage(f"I like thing{number}.")][-window:]
        said.append((await graph.ainvoke({"messages": [*said]}, talk.who()))["messages"][-1])
    assert await talk.learn() == [f"Likes thing{number}" for number in range(4)]


@pytest.mark.parametrize("with_memory_of_its_own", [False, True])
async def test_of_two_chats_below_one_thread_each_is_learned(talk: Talk, with_memory_of_its_own: bool) -> None:
    chat: Any = build_graph(service=talk.service).compile(checkpointer=with_memory_of_its_own or None)
    parent: Any = StateGraph(dict)

    async def cook(_: dict[str, Any]) -> dict[str, object]:
        await chat.ainvoke({"messages": [HumanMessage("I like figs.")]})
        return {}

    async def travel(_: dict[str, Any]) -> dict[str, object]:
        await chat.ainvoke({"messages": [HumanMessage("I like trains.")]})
        return {}

    parent.add_node("cook", cook).add_node("travel", travel).add_edge(START, "cook").add_edge("cook", "travel")
    await parent.compile(checkpointer=talk.saver, store=talk.store).ainvoke({}, talk.who())
    assert await talk.learn() == ["Likes figs", "Likes trains"]


@TRANSCRIPTS
async def test_after_a_summary_only_what_was_edited_away_is_not_learned(transcript: Any) -> None:
    talk = Talk(context=replace(NARROW, transcript=transcript))
    for number in range(24):
        await say(talk, f"{number}: I like thing{number}. {LONG}")
    assert "'cut'" in talk.stored()
    await say(talk, "24: I like plums.")
    await fork(talk, "24: I like plums.", "24: I like kiwis.")
    assert await talk.learn() == sorted(["Likes kiwis", *(f"Likes thing{number}" for number in range(24))])


@TRANSCRIPTS
async def test_what_a_summary_took_is_learned_though_its_own_update_is_done(transcript: Any) -> None:
    """Only the turns' entries are left then: what they hold is still the user's."""
    talk = Talk(context=replace(NARROW, transcript=transcript))
    for number in range(40):
        await say(talk, f"{number}: I like thing{number}. {LONG}")
        for item in talk.store.search((), limit=1000):
            if item.value.get("kind") == "cut":
                await talk.store.adelete(item.namespace, item.key)
    assert await talk.learn() == sorted(f"Likes thing{number}" for number in range(40))


@pytest.mark.parametrize("first", [None, "Hello."], ids=["at its beginning", "later"])
@pytest.mark.parametrize("then", [None, "I like plums."], ids=["at once", "after a further turn"])
@pytest.mark.parametrize("drains", ["now", "after two more turns"])
async def test_what_was_said_in_a_run_beside_this_one_was_not_edited_away(
    talk: Talk, first: str | None, then: str | None, drains: str
) -> None:
    """Two runs of a thread begin from the same checkpoint, as under a server that lets them overlap.

    The thread goes on from the one that ended last, and so does a third.
    """
    if first:
        await say(talk, first)
    begun = await begun_with(talk, "I like pears.")
    await say(talk, "I like figs.", (await before(talk, "I like pears.")).config)
    await talk.run(None, begun)
    if then:
        await say(talk, then)
        assert "I like figs." not in [message.text for message in (await talk.values())["messages"]]
    for _ in range(2 if drains == "after two more turns" else 0):
        await say(talk, "Hello.")
    assert await talk.learn() == ["Likes figs", "Likes pears", *(["Likes plums"] if then else [])]


async def test_what_was_said_after_a_turn_began_was_not_edited_away_by_it(talk: Talk) -> None:
    """The other run of the two began a little later, and so saw what the first was asked."""
    begun = await begun_with(talk, "I like figs.")
    await say(talk, "I like pears.")
    await talk.run(None, begun)
    assert await talk.learn() == ["Likes figs", "Likes pears"]


def said(*names: str) -> list[BaseMessage]:
    return [HumanMessage(f"I like {name}", id=name) for name in names]


@pytest.mark.parametrize(
    ("contexts", "learned"),
    [
        ([said("figs", "plums"), said("figs", "kiwis")], ["figs", "kiwis"]),  # edited
        ([said("figs", "plums"), said("plums", "kiwis")], ["figs", "kiwis", "plums"]),  # it left by a summary
        ([said("figs"), said("kiwis")], ["figs", "kiwis"]),  # and so did all of it
        ([said("figs", "plums"), said("figs", "kiwis"), said("figs", "plums", "dates")], ["dates", "figs", "plums"]),
        ([said("figs"), said("figs", "plums"), said("plums", "kiwis")], ["figs", "kiwis", "plums"]),  # trimmed
    ],
)
def test_in_a_program_of_ones_own_the_newest_contexts_words_count(
    contexts: list[list[BaseMessage]], learned: list[str]
) -> None:
    """All but the last update fail: the model is away."""
    talk = Talk()
    updater = talk.updater()
    for messages in contexts:
        talk.memory.respond = remembers if messages is contexts[-1] else lambda _: TimeoutError()
        talk.clock.advance(4000)
        updater.process(ConversationContext("T", "ada", messages=messages))
    known = {content.removeprefix("Likes ") for content in in_order(talk)}
    assert known >= set(learned)
    assert len(contexts) == 3 or known == set(learned)


def in_order(talk: Talk) -> list[str]:
    return sorted(fact.content for fact in FactStore(talk.store, "ada").list())


@pytest.mark.parametrize("first", ["turn", "cut"])
def test_of_a_turn_and_a_cut_the_words_that_were_written_down_last_are_read(first: Any) -> None:
    talk = Talk()
    updater = talk.updater()
    kinds: tuple[Any, ...] = ("turn", "cut") if first == "turn" else ("cut", "turn")
    for what, kind in zip(("figs", "plums"), kinds, strict=True):
        talk.memory.respond = remembers if what == "plums" else lambda _: TimeoutError()
        talk.clock.advance(4000)
        message = HumanMessage(f"I like {what}", id="h1")
        updater.process(ConversationContext("T", "ada", messages=[message], kind=kind))
    assert in_order(talk) == ["Likes plums"]
    assert "figs" not in str(talk.memory.prompts[-1])
