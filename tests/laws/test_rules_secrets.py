"""A secret that was told once is told by nothing later, in whatever form and by whomever it is repeated."""

import re

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from palimpsest import Context, FactStore
from tests.archive_lines import taking
from tests.laws.doors import House
from tests.laws.talk import DAY, Talk, erase_everything


@pytest.mark.parametrize(
    ("told", "echo", "is_told"),
    [
        ("My house has the number 7731", "It is 7731.", True),
        ("My password is plover-7731", "It is plover-7731.", False),
        ("My password is plover-7731", "p l o v e r - 7 7 3 1", False),
        ("My password is plover-7731", "plover, then 77 31", False),
        ("My PIN is 7731", '{"type": 7731}', False),
        ("My PIN is 7731", "```\n77-31\n```", False),
        ("The code of my door is 7731B", "7, 7, 3, 1, and then B", False),
    ],
)
async def test_a_secret_does_not_come_back_by_an_echo_in_a_later_turn(told: str, echo: str, is_told: bool) -> None:
    talk = Talk(context=Context(memory_tools=("search_memory", "read_conversation")))
    await talk.say(told)
    await talk.learn()
    talk.chat.respond = lambda _: echo
    await talk.say("I stand there now, in Bergen.")
    await talk.learn()
    talk.clock.advance(DAY)

    def reads_around(messages: list[BaseMessage]) -> AIMessage | str:
        """Search, and read around what is found first."""
        found = re.findall(r"in Bergen\. \(source (\w+)\)", messages[-1].text)
        if isinstance(messages[-1], HumanMessage):
            return call("search_memory", query="Bergen")
        return call("read_conversation", source=found[0]) if found else "I see."

    talk.chat.respond = reads_around
    told_later = (await talk.say("What did I do in Bergen?", "U"))["messages"]
    shown = re.sub(r"\W", "", "".join(message.text for message in [*told_later, *talk.chat.prompts[-1]]))
    assert ("7731" in shown) is is_told


def call(name: str, **args: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": name}])


async def test_one_digit_of_a_secret_holds_nothing_beside_it() -> None:
    talk = Talk(context=Context(memory_tools=("search_memory",)))
    await talk.say("My password is hunter2moon")
    await talk.say("The bar is 2 streets away")
    await talk.learn()
    talk.clock.advance(DAY)

    def searches(messages: list[BaseMessage]) -> AIMessage | str:
        return call("search_memory", query="bar streets") if isinstance(messages[-1], HumanMessage) else "I see."

    talk.chat.respond = searches
    await talk.say("Where is the bar?", "U")
    assert "2 streets away" in "".join(message.text for message in talk.chat.prompts[-1])


async def test_what_repeats_a_secret_is_told_no_longer_once_it_is_told_whoever_said_it_and_wherever() -> None:
    talk = Talk(context=Context(memory_tools=("search_memory",)))
    house = House(talk.store, talk.saver, {}, talk.clock)
    await talk.say("I like tram 7731", "before")
    assert await talk.learn() == ["Likes tram 7731"]
    facts = FactStore(talk.store, "ada")
    mine = await facts.acreate("Rides tram 7731 on Mondays", "context", 0.9, source="page")
    assert "7731" in await asked_about_the_tram(talk, "now", "Noted.")
    await talk.say("My PIN is 7731", "told")
    assert await talk.learn() == []
    assert {fact.held for fact in await facts.alist("quarantined")} == {"secret"}
    assert "7731" not in await asked_about_the_tram(talk, "now", "Noted.")
    assert "7731" not in await asked_about_the_tram(talk, "later", call("search_memory", query="tram"))
    await facts.arelease(mine.id)
    await talk.say("My PIN is 7731, still", "told")
    assert await talk.learn() == [mine.content]
    assert (await facts.acreate("Lives at Elm Street 7731", "context", 0.9, source="api")).held == "secret"
    waits = {"content": "Takes the tram 7731 home", "category": "context", "confidence": 0.9}
    said = {"id": "m", "role": "user", "text": "Tram 7731 goes to the sea", "time": "2025-05-08T10:00:00+00:00"}
    line = {"day": "2025-05-08", "thread_id": "elsewhere", "messages": [said]}
    await house.ask("POST", "/import", None, **taking({"facts": [waits], "journal": [line]}))
    assert await talk.known() == [mine.content]
    assert "the sea" not in await asked_about_the_tram(talk, "imported", call("search_memory", query="tram sea"))
    erase_everything(talk)
    assert (await facts.acreate("Lives at Elm Street 7731", "context", 0.9, source="api")).status == "active"


@pytest.mark.parametrize("told", ["in an earlier portion", "to a tool"])
async def test_a_line_waits_whichever_way_the_secret_that_it_repeats_became_known(told: str) -> None:
    tools = Context(memory_tools=("search_memory", "remember"))
    talk = Talk(context=tools, memory={"portion_messages": 4})
    await talk.say("The tram 7731 is mine, ever", "before")
    await talk.learn()
    assert "7731" in await asked_about_the_tram(talk, "now", call("search_memory", query="tram"))
    is_long = told == "in an earlier portion"
    if not is_long:
        talk.chat.replies = [call("remember", content="Likes figs", category="preference"), "Done."]
    await talk.say("My PIN is 7731. I like figs." + " The barley grew." * 600 * is_long, "told")
    await talk.learn()
    assert (sum("barley" in prompt[-1].text for prompt in talk.memory.prompts) > 1) is is_long
    assert "7731" not in await asked_about_the_tram(talk, "later", call("search_memory", query="tram"))


async def asked_about_the_tram(talk: Talk, thread: str, reply: AIMessage | str) -> str:
    """Return what the model is sent when its user asks for the tram, and it replies so at first."""
    talk.clock.advance(DAY)
    talk.chat.replies = [reply]
    await talk.say("Which tram do I like?", thread)
    talk.chat.replies = []
    return talk.shown()


async def test_what_repeats_a_secret_is_no_fact_until_everything_is_erased() -> None:
    talk = Talk()
    await talk.say("My password is plover-7731")
    await talk.learn()
    await talk.say("I like tram 7731", "another")
    assert await talk.learn() == []
    erase_everything(talk)
    talk.clock.advance(DAY)
    await talk.say("I like tram 7731", "new")
    assert await talk.learn() == ["Likes tram 7731"]
