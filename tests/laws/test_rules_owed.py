"""What memory owes: laws that do not hold yet. Whoever mends one strikes its mark, as the mark is strict."""

import re
from datetime import UTC, datetime

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from tests.laws.talk import DAY, Talk

FILLED = [HumanMessage("I like cows"), AIMessage("Nice."), HumanMessage("I like sows"), AIMessage("Nice, too.")]


@pytest.mark.xfail(reason="only the newest message of an input is written down")
@pytest.mark.parametrize("by", ["input", "state", "supersteps"])
async def test_words_of_a_thread_that_a_client_filled_are_learned_once(by: str) -> None:
    talk = Talk()
    if by == "input":
        await talk.run({"messages": [*FILLED, HumanMessage("I like rams")]}, talk.who())
    else:
        for said in [FILLED] if by == "state" else [FILLED[:2], FILLED[2:]]:
            await talk.graph.aupdate_state(talk.who(), {"messages": said}, as_node="call_model")
        await talk.say("I like rams")
    assert sorted(await talk.learn()) == ["Likes cows", "Likes rams", "Likes sows"]
    await talk.say("I like ewes")
    await talk.learn()
    assert talk.read() == dict.fromkeys(["I like cows", "I like sows", "I like rams", "I like ewes"], 1)


TOLD = "For the garden budget we agreed on 400 euros a year with Pavel."
NO_FACTS = '{"facts": [], "profile": []}'


@pytest.mark.xfail(reason="each line of the journal is one for recall, though it says what others say")
async def test_what_comes_again_and_again_is_recalled_as_one_line_beside_the_answer() -> None:
    talk, days = Talk(), 30
    talk.memory.respond = lambda _: NO_FACTS
    report = "Send  me the REPORT about the garden budget of day"
    for day in range(days):
        await talk.say(f"{report if day % 2 else ' '.join(report.split()).capitalize()} {day}.", f"cron{day}")
        if day == days // 2:
            await talk.say(TOLD, "talk")
        await talk.learn()
        talk.clock.advance(DAY)
    await talk.say("Good morning.", "warm")
    await talk.say("What is the garden budget?", "U")
    shown = talk.shown()
    assert TOLD in shown
    (line,) = [line for line in shown.lower().splitlines() if "send" in line]
    newest = f"{datetime.fromtimestamp(talk.clock() - DAY, UTC):%Y-%m-%d}"
    assert newest in line
    assert re.search(rf"\b{days}\b", line.replace(newest, ""))  # how often
