"""A thread that goes on from another branch: what was learned on the one that it left counts only if it comes back."""

import asyncio
import json
import re
import threading
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from palimpsest import ConversationContext, FactStore
from tests.fakes import learns
from tests.laws.talk import LONG, NARROW, Talk
from tests.laws.test_rules_edited import TRANSCRIPTS, before, begun_with, fork, say

DOORS = pytest.mark.parametrize("door", ["graph", "agent"])


async def chat(door: str = "graph", *learned: str) -> Talk:
    """Return a conversation of these turns, of which memory knows what was said."""
    talk = Talk(door, context=NARROW)
    for text in learned:
        await say(talk, text)
    await talk.learn()
    return talk


@pytest.mark.parametrize("door", ["graph", "agent", "agent sync"])
@pytest.mark.parametrize("turns_before", [0, 1])
@pytest.mark.parametrize("turns_after", [0, 1])
async def test_what_was_learned_and_edited_away_is_no_longer_known(
    door: str, turns_before: int, turns_after: int
) -> None:
    later = ["I like dates."][:turns_after]
    talk = await chat(door, *["I like figs."][:turns_before], "I like plums.", *later)
    await fork(talk, "I like plums.", "I like kiwis.")
    assert await talk.known() == ["Likes figs"][:turns_before]  # at once: no model is asked for it
    assert await talk.learn() == [*["Likes figs"][:turns_before], "Likes kiwis"]


@DOORS
async def test_an_answer_that_is_made_again_leaves_what_its_question_taught(door: str) -> None:
    talk = await chat(door, "Hello.", "I like figs.", "I like plums.")
    model = "call_model" if door == "graph" else "model"
    asked = [state async for state in talk.graph.aget_state_history(talk.who()) if state.next == (model,)]
    await talk.run(None, asked[0].config)
    assert await talk.learn() == ["Likes figs", "Likes plums"]
    await talk.run(None, asked[1].config)
    assert await talk.learn() == ["Likes figs"]


@DOORS
async def test_a_branch_that_is_gone_on_with_counts_again(door: str) -> None:
    talk = await chat(door, "Hello.", "I like figs.")
    tip = (await talk.graph.aget_state(talk.who())).config
    await fork(talk, "I like figs.", "I like plums.")
    assert await talk.learn() == ["Likes plums"]
    await say(talk, "I like kiwis.", tip)
    assert await talk.known() == ["Likes figs"]
    assert await talk.learn() == ["Likes figs", "Likes kiwis"]
    await fork(talk, "I like figs.", "I like dates.")  # on the other branch
    assert await talk.learn() == ["Likes dates", "Likes plums"]


@DOORS
async def test_what_was_left_stays_so_when_the_thread_no_longer_names_it(
    door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.updates.learned._MOST_MESSAGES", 9)
    talk = await chat(door, "Hello.", "I like figs.")
    await fork(talk, "I like figs.", "I like plums.")
    for what in ("dates", "pears", "kiwis"):
        await say(talk, f"I like {what}.")
        await talk.learn()
    await fork(talk, "I like kiwis.", "I like nuts.")
    assert await talk.learn() == ["Likes dates", "Likes nuts", "Likes pears", "Likes plums"]


@DOORS
@pytest.mark.parametrize("how", ["read_only", "incognito", "filled in", "normal"])
@pytest.mark.parametrize("again", ["behind", "from there"])
@pytest.mark.parametrize("first", [[], ["I like figs."]])
async def test_what_was_learned_after_turns_that_were_not_and_edited_away_is_no_longer_known(
    door: str, how: Any, again: str, first: list[str]
) -> None:
    talk = await chat(door, *first)
    if how == "filled in":
        node = "call_model" if door == "graph" else "model"
        filled = {"messages": [HumanMessage("Hello."), AIMessage("Noted.")]}
        await talk.graph.aupdate_state(talk.who(), filled, as_node=node)
    else:
        talk.chat.replies += [ConnectionError()] if how == "normal" else []
        with suppress(Exception):
            await talk.say("Hello.", mode=how)
    await say(talk, "I like plums.")
    await talk.learn()
    await fork(talk, "I like plums." if again == "behind" else "Hello.", "I like kiwis.")
    assert await talk.learn() == [*["Likes figs"][: len(first)], "Likes kiwis"]


@DOORS
async def test_what_was_edited_away_before_it_was_learned_is_learned_when_it_is_back(door: str) -> None:
    talk = await chat(door, "Hello.")
    await say(talk, "I like figs.")
    tip = (await talk.graph.aget_state(talk.who())).config
    await fork(talk, "I like figs.", "I like plums.")
    assert await talk.learn() == ["Likes plums"]
    await say(talk, "I like kiwis.", tip)
    assert await talk.learn() == ["Likes figs", "Likes kiwis"]
    assert talk.read()["I like figs."] == 1
    assert "I like figs." in talk.stored()


@DOORS
async def test_what_was_said_on_both_branches_or_elsewhere_stays(door: str) -> None:
    talk = await chat(door, "Hello.", "I like figs.", "I like dates.", "I like plums.")
    await talk.say("I like dates.", "another thread")
    await talk.learn()
    await fork(talk, "I like figs.", "Well, I like figs.")
    await say(talk, "I like kiwis.")
    assert await talk.learn() == ["Likes dates", "Likes figs", "Likes kiwis"]


@pytest.mark.parametrize("how", ["pinned", "edited", "brought back"])
async def test_what_a_person_wants_stays(how: str) -> None:
    talk = await chat("graph", "Hello.", "I like figs.")
    facts = FactStore(talk.store, "ada")
    (fact,) = await facts.alist()
    if how == "pinned":
        await facts.aupdate(fact.id, pinned=True)
    if how == "edited":
        await facts.aupdate(fact.id, content="Likes dried figs", source="page")
    await fork(talk, "I like figs.", "I like plums.")
    if how == "brought back":
        assert await talk.known() == []
        await facts.aundo()
        await fork(talk, "I like plums.", "I like kiwis.")
    known = await talk.learn()
    assert ("Likes dried figs" if how == "edited" else "Likes figs") in known


def tents(messages: list[BaseMessage]) -> str:
    """Answer as a memory model that knows one tent."""
    prompt = messages[-1].text
    said = re.findall(r"^\[(\d+)\] user[^:]*: My tent is (\w+)", prompt, re.MULTILINE)
    old = {"action": "corrects", "known": 1} if "Tent is" in prompt else {"action": "new", "known": 0}
    fact = {"category": "knowledge", "confidence": 0.9, **old}
    return json.dumps({"facts": [{**fact, "message": int(n), "content": f"Tent is {what}"} for n, what in said]})


async def test_what_was_corrected_in_words_that_were_edited_away_is_true_again() -> None:
    talk = Talk(context=NARROW)
    talk.memory.respond = tents
    await say(talk, "My tent is blue.")
    assert await talk.learn() == ["Tent is blue"]
    await say(talk, "My tent is red.")
    assert await talk.learn() == ["Tent is red"]
    tip = (await talk.graph.aget_state(talk.who())).config
    await fork(talk, "My tent is red.", "I like figs.")
    assert await talk.known() == ["Tent is blue"]
    await say(talk, "Hello.", tip)
    assert await talk.known() == ["Tent is red"]


@DOORS
async def test_a_learned_message_that_is_rewritten_under_its_id_is_known_in_its_new_words(door: str) -> None:
    talk = Talk(door, context=NARROW)
    for what in ("figs", "plums"):
        await talk.say(f"I like {what}. I have a cat.", id="h1")
        assert await talk.learn() == [f"Likes {what}"]
    assert "figs" not in str(talk.memory.prompts[1:])
    await talk.say("I like figs. I have a cat.", id="h1")
    assert await talk.learn() == ["Likes figs"]


@DOORS
async def test_the_same_words_that_are_sent_again_in_the_place_of_a_message_are_learned_again(door: str) -> None:
    talk = await chat(door, "Hello.", "I like figs.")
    await fork(talk, "I like figs.", "I like figs.")
    assert await talk.learn() == ["Likes figs"]
    await fork(talk, "I like figs.", "I like plums.")
    assert await talk.learn() == ["Likes plums"]
    await say(talk, "I like figs.")
    assert await talk.learn() == ["Likes figs", "Likes plums"]
    assert talk.read() == {"Hello.": 1, "I like figs.": 3, "I like plums.": 1}


async def test_words_that_are_said_again_while_an_update_is_under_way_are_learned_again() -> None:
    talk = await chat("graph", "Hello.", "I like figs.")
    await fork(talk, "I like figs.", "I like plums.")

    def says_them_again(messages: list[BaseMessage]) -> str:
        talk.memory.respond = learns
        turn = threading.Thread(target=asyncio.run, args=(say(talk, "I like figs."),))
        turn.start()
        turn.join()
        return learns(messages)

    talk.memory.respond = says_them_again
    await talk.learn()
    assert await talk.learn() == ["Likes figs", "Likes plums"]


@DOORS
async def test_words_of_another_branch_are_learned_on_the_one_that_is_gone_on_with(door: str) -> None:
    talk = await chat(door, "Hello.")
    await say(talk, "I like figs.")
    tip = (await talk.graph.aget_state(talk.who())).config
    await fork(talk, "I like figs.", "Thank you.")
    await say(talk, "I like figs.")
    assert await talk.learn() == ["Likes figs"]
    await say(talk, "I like plums.", tip)
    assert await talk.learn() == ["Likes figs", "Likes plums"]


async def test_what_waits_after_a_failure_is_read_in_the_words_that_were_said_last() -> None:
    talk = Talk(context=NARROW)
    talk.memory.respond = lambda _: OSError("no model")
    await talk.say("I like figs.", id="h1")
    assert await talk.learn() == []
    talk.memory.respond = learns
    await talk.say("I like plums.", id="h1")
    await talk.learn()
    talk.clock.advance(4000)
    assert await talk.learn() == ["Likes plums"]


@DOORS
async def test_the_prompt_of_another_thread_holds_nothing_of_it(door: str) -> None:
    talk = Talk(door, context=replace(NARROW, memory_tokens=300))
    await say(talk, "Hello.")
    await say(talk, "I like plums.")
    await talk.learn()
    await fork(talk, "I like plums.", "I like kiwis.")
    await talk.learn()
    await talk.say("What fruit do I like?", "another thread")
    assert "kiwis" in talk.shown()
    assert "plums" not in talk.shown()


@TRANSCRIPTS
async def test_what_left_by_a_summary_stays(transcript: Any) -> None:
    talk = Talk(context=replace(NARROW, transcript=transcript))
    said = [f"{number}: I like thing{number}. {LONG}" for number in range(24)]
    for text in said:
        await say(talk, text)
    every = [f"Likes thing{number}" for number in range(24)]
    assert await talk.learn() == sorted(every)
    await say(talk, "I like plums.")
    assert await talk.learn() == sorted(["Likes plums", *every])
    await fork(talk, "I like plums.", "I like kiwis.")
    assert await talk.learn() == sorted(["Likes kiwis", *every])


@DOORS
@pytest.mark.parametrize("kept", [None, 0, 1, 2])
async def test_what_was_trimmed_or_cleared_stays(door: str, kept: int | None) -> None:
    talk = await chat(door, "I like figs.", "I like dates.", "I like pears.")
    messages = (await talk.values())["messages"]
    removed = [RemoveMessage(id=one.id) for one in messages[: len(messages) - (kept or 0)]]
    clear: list[Any] = [RemoveMessage(id=REMOVE_ALL_MESSAGES)] if kept is None else removed
    await talk.graph.aupdate_state(talk.who(), {"messages": clear})
    await say(talk, "I like plums.")
    assert await talk.learn() == ["Likes dates", "Likes figs", "Likes pears", "Likes plums"]


@DOORS
@pytest.mark.parametrize("question", [[], [HumanMessage("I like plums.")]])
async def test_what_was_cleared_by_a_run_stays(door: str, question: list[Any]) -> None:
    talk = await chat(door, "I like figs.", "I like dates.")
    with suppress(ValueError):  # the graph has nothing to answer then
        await talk.run({"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *question]})
    await say(talk, "I like kiwis.")
    assert await talk.learn() == ["Likes dates", "Likes figs", "Likes kiwis", *["Likes plums"][: len(question)]]


@DOORS
async def test_what_a_thread_taught_before_its_checkpoints_were_lost_stays(door: str) -> None:
    talk = await chat(door, "I like figs.", "I like dates.")
    await talk.saver.adelete_thread("T")
    await say(talk, "I like plums.")
    beginning = [state async for state in talk.graph.aget_state_history(talk.who())][-1].config
    for what in ("kiwis", "pears"):
        await talk.learn()
        await say(talk, f"I like {what}.", beginning)
    assert await talk.learn() == ["Likes dates", "Likes figs", "Likes pears"]


def test_a_program_that_gives_only_the_newest_messages_loses_nothing() -> None:
    talk = Talk()
    updater = talk.updater()
    names = ["figs", "dates", "pears", "plums", "kiwis"]
    for at in range(len(names)):
        talk.clock.advance(4000)
        window = [HumanMessage(f"I like {name}", id=name) for name in names[max(0, at - at % 3) : at + 1]]
        updater.process(ConversationContext("T", "ada", messages=window))
    assert sorted(fact.content for fact in FactStore(talk.store, "ada").list()) == sorted(f"Likes {n}" for n in names)


@pytest.mark.parametrize("learned", [[{"created": 9e9, "messages": []}], [{}], "nothing", None])
async def test_a_note_that_a_hand_garbled_keeps_no_turn_from_being_learned(learned: Any) -> None:
    talk = await chat("graph", "I like figs.")
    (note,) = [item for item in talk.store.search((), limit=1000) if "learned" in item.value]
    await talk.store.aput(note.namespace, note.key, {**note.value, "learned": learned})
    await say(talk, "I like plums.")
    assert await talk.learn() == ["Likes figs", "Likes plums"]


async def test_what_was_said_in_a_run_beside_stays() -> None:
    talk = await chat("graph", "Hello.")
    begun = await begun_with(talk, "I like pears.")
    await say(talk, "I like figs.", (await before(talk, "I like pears.")).config)
    await talk.learn()
    await talk.run(None, begun)
    await talk.learn()
    await say(talk, "I like plums.")
    assert await talk.learn() == ["Likes figs", "Likes pears", "Likes plums"]


@DOORS
async def test_what_was_asked_before_the_run_beside_it_began_stays(door: str) -> None:
    talk, model = await chat(door, "Hello."), {"graph": "call_model"}.get(door, "model")
    talk.graph.interrupt_after_nodes = [model]
    begun, tips = (await talk.graph.aget_state(talk.who())).config, []
    for what in ("figs", "pears"):
        await say(talk, f"I like {what}.", begun)
        tips.append((await talk.graph.aget_state(talk.who())).config)
    talk.graph.interrupt_after_nodes = []
    for tip in tips:
        await talk.run(None, tip)
        await talk.learn()
    await say(talk, "I like plums.")
    assert await talk.learn() == ["Likes figs", "Likes pears", "Likes plums"]


@DOORS
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("things", [12, 3])
async def test_wherever_a_thread_goes_on_from_what_is_known_is_what_it_shows(door: str, seed: int, things: int) -> None:
    chance, talk, model = Random(seed), Talk(door, context=NARROW), {"graph": "call_model"}.get(door, "model")
    await say(talk, "Hello.")

    async def states() -> list[Any]:
        return [state async for state in talk.graph.aget_state_history(talk.who())]

    for number in range(12):
        what = chance.choice(["said", "said", "elsewhere", "answered again", "learned"])
        if what == "learned":
            await talk.learn()
        elif what == "answered again":
            asked = [state for state in await states() if state.next == (model,)]
            await talk.run(None, chance.choice(asked).config)
        else:
            at = None
            if what == "elsewhere":
                *later, first = await states()
                at = chance.choice([*(state for state in [*later, first] if not state.next), first]).config
            await say(talk, f"I like thing{number % things}.{LONG}", at)
    said = set(re.findall(r"I like (thing\d+)\.", str((await talk.values())["messages"])))
    assert await talk.learn() == sorted(f"Likes {what}" for what in said)
