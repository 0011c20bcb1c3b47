"""What waits for a yes, who goes at the limit, what is over, and what is erased: as models and people see it."""

import json
import re
from collections.abc import Callable
from typing import Any
from zlib import crc32

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from palimpsest import Context, FactStore, MemoryConfig, aerase_thread, erase_thread
from tests.archive_lines import document_of, taking
from tests.fakes import WordEmbeddings
from tests.laws.doors import DAY, House
from tests.laws.embedding import embedded, embedder
from tests.laws.talk import AGENTS, Failing, Talk, erase_everything, in_thread

NONE, HEALTH, MONEY = "none", "health", "money"
FACTS = {
    "insulin": HEALTH,
    "asthma": HEALTH,
    "rounds": HEALTH,
    "salary": MONEY,
    "figs": NONE,
    "plums": NONE,
    "tea": NONE,
    "kiwis": NONE,
}
"""What a model makes a fact of where somebody says that they have it, and the topic that the model gives it."""
ASKS = pytest.mark.parametrize("approval", ["sensitive", "all"])
ALL = {"erase": "everything"}
WITH_TOOLS = Context(memory_tools=("search_memory", "restore"))


def finds(messages: list[BaseMessage]) -> str:
    """Answer as a memory model that finds a fact in every "I have ...", and accounts for a journal with a secret."""
    text = messages[-1].text
    if "Messages:" not in text:
        return "They talked of insulin." if "insulin" in text else "They talked of a garden."
    said = re.findall(r"^\[(\d+)\] user[^:]*: (.*)$", text, re.MULTILINE)
    facts = [
        {
            "message": int(number), "action": "new", "known": 0, "content": f"Has {what}", "category": "knowledge",
            "confidence": 0.9, "topic": FACTS[what],
        }
        for number, words in said
        for what in re.findall(r"I have (\w+)", words)
    ]  # fmt: skip
    private = [int(number) for number, words in said if re.search(r"insulin|asthma|rounds|salary", words)]
    return json.dumps({"facts": facts, "profile": [], "sensitive": private})


class Busy(Exception):
    """What a provider answers that has no room now: what was said is written down before it is read."""

    status_code = 429


class Person(Talk):
    """Ada, who may be asked first; her API is another process of the deployment."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.memory.respond = finds

    def house(self) -> House:
        return House(self.store, self.saver, {}, self.clock)

    async def api(self, method: str, path: str, body: object = None, status: int = 200) -> Any:
        answer = await self.house().ask(method, path, body)
        assert answer[0] == status, answer
        return answer[1]

    async def asks_about(self, approval: str) -> None:
        await self.api("PUT", "/approval", {"approval": approval})

    async def learns(self, *said: str, thread: str = "T") -> None:
        for text in said:
            await self.say(text, thread)
            await self.learn()

    async def waiting(self) -> list[dict[str, Any]]:
        return list((await self.api("GET", "/facts?status=waiting"))["facts"])

    async def recalled(self, question: str) -> str:
        """Return what a new conversation shows its model, the question aside."""
        await self.say(question, f"about {question}")
        return self.shown().replace(question, "")

    def vectors(self) -> list[str]:
        """Return the keys of all vectors that are kept."""
        return [item.key for item in self.store.search((), limit=10_000) if item.namespace[-1] == "vectors"]

    async def calls(self, name: str, **arguments: Any) -> str:
        """Have the model call a tool, and return what it is told."""
        self.chat.replies = [AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "call"}]), "Done."]
        await self.say("Please look.", "of tools")
        return self.chat.prompts[-1][-1].text


@ASKS
@pytest.mark.parametrize("what", ["insulin", "rounds"])
async def test_what_waits_is_shown_and_found_and_used_by_nothing_before_the_yes(what: str, approval: str) -> None:
    person = Person(context=WITH_TOOLS)
    await person.asks_about(approval)
    await person.learns(f"I have {what} on Mondays", "I have figs")
    (waits,) = [fact for fact in await person.waiting() if what in fact["content"]]
    assert waits["topic"] == HEALTH
    assert f"Has {what}" not in await person.known()
    assert what not in await person.recalled("What do I have on Mondays?")
    assert f"Has {what}" not in await person.calls("search_memory", query="What do I have on Mondays")
    await person.api("PATCH", f"/facts/{waits['id']}", {"status": "active"})
    assert f"Has {what}" in await person.recalled("So what do I have on Mondays?")


async def test_what_nobody_decides_ends_with_a_sweep_and_said_again_it_waits_again() -> None:
    person = Person(memory={"approval_days": 30})
    await person.asks_about("sensitive")
    await person.learns("I have insulin")
    person.clock.advance(30 * DAY)
    await person.service.aclean(person.store)
    assert await person.waiting() == []
    await person.learns("I have insulin", thread="later")
    assert len(await person.waiting()) == 1


async def test_no_line_tells_what_waits_though_it_was_said_before_anybody_was_asked() -> None:
    person = Person()
    await person.learns("My insulin lies beside the butter")
    assert "butter" in await person.recalled("Where is my insulin?")
    await person.asks_about("sensitive")
    await person.learns("I have insulin", thread="later")
    (waits,) = await person.waiting()
    assert "butter" not in await person.recalled("Where may my insulin be?")
    await person.api("PATCH", f"/facts/{waits['id']}", {"status": "active"})
    assert "butter" in await person.recalled("So where is my insulin?")


@pytest.mark.parametrize("words", ["{0}", "My insulin is cold. {0}", "{0} My insulin is cold.", "{0} My insulin. {0}"])
async def test_a_message_of_several_portions_waits_wherever_a_model_finds_what_the_user_is_asked_about(
    words: str,
) -> None:
    person = Person(memory={"portion_messages": 4})
    await person.asks_about("sensitive")
    await person.learns(words.format("The boat lies in the harbour. " * 300))
    assert ("boat" in await person.recalled("What lies in the harbour?")) == ("insulin" not in words)


@pytest.mark.parametrize("moves", [False, True])
async def test_what_a_deleted_fact_came_from_is_not_told_when_the_facts_own_history_is_gone(moves: bool) -> None:
    person = Person(context=WITH_TOOLS, memory={"history_days": 30, "journal_days": 365})
    await person.learns("I have tea, with honey on Mondays")
    assert "honey" in await person.calls("search_memory", query="Mondays")
    (fact,) = (await person.api("GET", "/facts"))["facts"]
    await person.api("DELETE", f"/facts/{fact['id']}", status=204)
    person.clock.advance(40 * DAY)
    await person.service.aclean(person.store)
    assert (await person.api("GET", "/facts?status=ended"))["facts"] == []
    if moves:  # to another server
        told, person = document_of(await person.api("GET", "/export")), Person(context=WITH_TOOLS)
        await person.house().ask("POST", "/import", **taking(told))
    assert "honey" not in await person.calls("search_memory", query="Mondays")
    assert "honey" not in await person.recalled("What of Mondays?")


async def test_what_a_deployment_asks_everybody_about_waits_whatever_they_chose() -> None:
    person = Person(memory={"approval": "sensitive"})
    await person.asks_about("off")
    await person.learns("I have insulin", "I have figs")
    assert await person.known() == ["Has figs"]


@pytest.mark.parametrize("source", ["conversation", "tool"])
async def test_only_a_person_says_yes(source: Any) -> None:
    house = Person().house()
    waits = await house.propose("Has insulin")
    with pytest.raises(ValueError, match="source"):
        await house.facts.aapprove(waits, source=source)
    assert await house.facts.alist() == []


async def test_a_model_brings_nothing_back_that_its_user_wants_to_be_asked_about() -> None:
    person = Person(memory={"max_facts": 1}, context=WITH_TOOLS)
    await person.learns("I have insulin", "I have figs")
    facts = FactStore(person.store, "ada", config=MemoryConfig(max_facts=1))
    (gone,) = await facts.alist("evicted")
    await person.asks_about("sensitive")
    assert "Restored" not in await person.calls("restore", fact_id=gone.id)
    await person.asks_about("off")
    assert "Restored" in await person.calls("restore", fact_id=gone.id)


@pytest.mark.parametrize("door", ["graph", AGENTS[0]])
async def test_a_message_of_which_no_fact_was_made_waits_too(door: str) -> None:
    person = Person(door=door)
    await person.asks_about("sensitive")
    await person.learns("My insulin is in the fridge door")
    assert await person.waiting() == []
    assert "fridge" not in await person.recalled("Where is my insulin?")
    (line,) = (await person.api("GET", "/journal?waits=true"))["entries"]
    await person.api("PUT", f"/journal/{line['key']}/recall", {"recall": True})
    assert "fridge" in await person.recalled("Now where is my insulin?")


async def test_a_yes_to_a_fact_is_none_to_what_else_its_message_tells() -> None:
    person = Person()
    await person.asks_about("sensitive")
    await person.learns("I have salary of 900 euros and take insulin from the fridge")
    (waits,) = await person.waiting()
    await person.api("PATCH", f"/facts/{waits['id']}", {"status": "active"})
    (line,) = (await person.api("GET", "/journal"))["entries"]
    assert line["waits"] == ["approval"]


async def test_what_facts_in_use_say_whole_waits_no_longer() -> None:
    person = Person()
    await person.asks_about("sensitive")
    await person.learns("I have insulin")
    (waits,) = await person.waiting()
    await person.api("PATCH", f"/facts/{waits['id']}", {"status": "active"})
    (line,) = (await person.api("GET", "/journal"))["entries"]
    assert line["waits"] == []


@pytest.mark.parametrize(("form", "waiting"), [("full", []), ("brief", ["User likes figs."])])
async def test_what_no_model_marks_waits_as_what_is_sensitive_does(form: Any, waiting: list[str]) -> None:
    person = Person(memory={"extraction_form": form, "approval": "sensitive"})
    if form == "brief":
        person.memory.respond = lambda _: '{"facts": ["User likes figs."]}'
    await person.learns("I like figs")
    assert [fact["content"] for fact in await person.waiting()] == waiting
    assert ("I like figs" in await person.recalled("Who spoke of figs?")) is (form == "full")


async def test_what_the_model_marks_after_an_outage_waits_no_longer() -> None:
    person = Person(memory={"approval": "sensitive"})
    person.memory.replies = [Busy()]
    await person.learns("The tea is in the cupboard")
    assert "cupboard" not in await person.recalled("Where is the tea?")
    person.clock.advance(60)
    await person.learn()
    assert "cupboard" in await person.recalled("Now where is the tea?")


@pytest.mark.parametrize(
    ("question", "yes", "answer", "is_held"),
    [
        ("Can I tell you my card PIN?", "Yes.", "It's 7305", True),
        ("Bereit?", "Wie lautet Ihre PIN?", "Die 7305", True),
        ("Can I tell you my flat's number?", "Yes.", "It's 7305", False),
    ],
)
async def test_an_answer_is_held_as_what_its_question_asks_for(
    question: str, yes: str, answer: str, is_held: bool
) -> None:
    person = Person()
    person.memory.respond = lambda _: json.dumps(
        {"facts": [{"content": "User said 7305", "category": "context", "confidence": 0.9, "message": 2}]}
    )
    person.chat.replies = [yes, "Noted: 7305."]
    await person.say(question, "T")
    await person.say(answer, "T")
    assert await person.learn() == ([] if is_held else ["User said 7305"])
    assert ("7305" in await person.recalled("Noted?")) is not is_held


async def test_what_is_written_down_again_waits_on() -> None:
    person, words = Person(), "My insulin is in the fridge door"
    await person.asks_about("sensitive")
    await person.say(words, id=f"m{crc32(words.encode())}")  # as `cut` names it
    await person.learn()
    await person.asks_about("off")
    await person.learns("My insulin lies beside the butter", thread="later")
    await person.house().cut("T", words)
    shown = await person.recalled("Where is my insulin?")
    assert "butter" in shown
    assert "fridge" not in shown


async def test_what_waits_takes_no_place_at_the_limit_and_what_a_person_lets_in_is_not_what_goes() -> None:
    person = Person()
    await person.asks_about("sensitive")
    await person.learns("I have asthma")
    (weak,) = await person.waiting()
    facts = FactStore(person.store, "ada", config=MemoryConfig(max_facts=2))
    for content in ("Lives in Oslo", "Likes tea"):
        await facts.acreate(content, "knowledge", 1.0)
    assert await facts.alist("evicted") == []
    await facts.aapprove(weak["id"], source="page")
    assert {fact.content for fact in await facts.alist()} == {"Has asthma", "Likes tea"}
    assert [fact.content for fact in await facts.alist("evicted")] == ["Lives in Oslo"]


async def test_an_embedder_is_given_what_is_told_alone_and_its_vectors_go_with_their_texts() -> None:
    words = WordEmbeddings()
    person = Person(embedder=embedder(words))
    await person.asks_about("sensitive")
    await person.learns("My insulin is in the fridge", "I have figs")
    await embedded(person.service, person.store, "ada")
    assert any("figs" in text for text in words.asked)
    assert not any("insulin" in text for text in words.asked)
    assert len(person.vectors()) == 2  # of the fact, and of the line in the journal
    for fact in (await person.api("GET", "/facts"))["facts"]:
        await person.api("DELETE", f"/facts/{fact['id']}", status=204)
    await aerase_thread(person.store, "T")
    assert person.vectors() == []


async def test_a_vector_that_is_made_while_its_text_is_erased_does_not_stay() -> None:
    class Erasing(WordEmbeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            in_thread(person.house().ask("POST", "/erase/everything", ALL))
            return super().embed_documents(texts)

    person = Person(embedder=embedder(Erasing()))
    await person.learns("I have figs")
    await embedded(person.service, person.store, "ada")
    assert person.vectors() == []


async def test_what_was_just_said_again_outlives_its_equals_and_who_goes_comes_back_by_itself() -> None:
    person = Person(memory={"max_facts": 3})
    await person.learns("I have figs", "I have plums", "I have tea")
    await person.learns("I have figs", thread="T2")
    await person.learns("I have kiwis", thread="T3")
    assert await person.known() == ["Has figs", "Has kiwis", "Has tea"]
    (gone,) = (await person.api("GET", "/facts?status=evicted"))["facts"]
    await person.learns("I have plums", thread="T4")
    (back,) = [fact for fact in await FactStore(person.store, "ada").alist() if fact.content == "Has plums"]
    assert back.id == gone["id"]


@pytest.mark.parametrize("how", ["by hand", "said"])
async def test_what_holds_no_longer_is_shown_to_no_model_and_told_anew_it_stays(how: str) -> None:
    person, figs = Person(), {"content": "Has figs", "category": "context"}
    await person.api("POST", "/facts", {**figs, "expires_at": "2025-10-12"}, 201)
    assert "Has figs" in await person.recalled("What fruit have I?")
    person.clock.advance(6 * DAY)
    assert "Has figs" not in await person.recalled("What fruit have I now?")
    if how == "said":
        await person.learns("I have figs")
    else:
        await person.api("POST", "/facts", figs, 201)
    await person.service.aclean(person.store)
    for status in "active", "ended":
        assert [fact["content"] for fact in (await person.api("GET", f"/facts?status={status}"))["facts"]] == [
            "Has figs"
        ]


async def test_a_process_that_knows_old_lines_shows_none_that_went_meanwhile() -> None:
    person = Person(store=Failing())
    await person.learns("My cello stands in the cellar", thread="old")
    assert "cellar" in await person.recalled("Where does my cello stand?")
    await aerase_thread(person.store, "old")
    person.store.batch = None  # behind a turn, nothing can be read
    await person.say("And where does my cello stand?", "new")
    assert "cellar" not in person.shown()


@pytest.mark.parametrize("said", ["I have insulin", "My insulin is cold", "I have figs"])
async def test_a_roll_up_is_shown_and_tells_nothing_that_was_deleted_or_waits(said: str) -> None:
    person = Person()
    house = person.house()
    house.memory.respond = finds
    await person.asks_about("sensitive")
    await house.cut("old", said, "The garden is large")
    for fact in (await person.api("GET", "/facts?status=active"))["facts"]:
        await person.api("DELETE", f"/facts/{fact['id']}", status=204)
    person.clock.advance(2 * DAY)
    house.memory.prompts.clear()
    await house.roll_up()
    (asked,) = house.memory.prompts
    assert "garden" in asked[-1].text
    assert said not in asked[-1].text
    assert "insulin" not in json.dumps(await person.api("GET", "/profile"))


@pytest.mark.parametrize("erase", [lambda person: erase_thread(person.store, "old"), erase_everything])
async def test_what_is_erased_while_a_roll_up_is_written_is_not_told(erase: Callable[[Talk], object]) -> None:
    person = Person()
    house = person.house()
    house.memory.respond = finds
    await house.cut("old", "The garden is large", "It has a pond")
    person.clock.advance(2 * DAY)
    house.memory.prompts.clear()

    def erases(messages: list[BaseMessage]) -> str:
        erase(person)
        return finds(messages)

    house.memory.respond = erases
    await house.roll_up()
    (asked,) = house.memory.prompts
    assert "garden" in asked[-1].text
    assert "garden" not in person.stored()


async def test_a_pinned_fact_is_shown_first_whatever_is_asked() -> None:
    talk = Talk(context=Context(memory_tokens=200))
    facts = FactStore(talk.store, "ada")
    for number in range(30):
        await facts.acreate(f"Owns thing number {number} of shop {number * 7}", "context", 1.0, source="api")
    await facts.acreate("Is allergic to peanuts", "knowledge", 1.0, source="api", pinned=True)
    for text in ("Good morning!", "What do I own?", "Suggest a snack.", "Which thing of which shop?"):
        await talk.say(text, thread=text)
        assert re.findall(r"^- \[.*", talk.shown(), re.MULTILINE)[0] == "- [knowledge | 1.00] Is allergic to peanuts"


async def test_a_fact_that_is_added_again_takes_over_a_pin_and_an_end() -> None:
    person, fact = Person(), {"content": "Is in Oslo", "category": "context"}
    asked: list[dict[str, object]] = [{}, {"pinned": True}, {"expires_at": "2999-12-31"}, {}]
    added = [await person.api("POST", "/facts", {**fact, **more}, 201) for more in asked]
    assert len({each["id"] for each in added}) == 1
    ended = (True, "2999-12-31")
    assert [(each["pinned"], each["valid_to"]) for each in added] == [(False, ""), (True, ""), ended, ended]


async def test_a_day_is_the_users_or_of_the_assistant_that_they_talked_to_last_until_all_is_erased() -> None:
    person = Person(context=Context(time_zone="Pacific/Pago_Pago"))

    async def day(text: str) -> str:
        await person.learns(text)
        entries = (await person.api("GET", "/journal"))["entries"]
        return next(str(entry["day"]) for entry in entries if text in str(entry))

    assert await day("I have figs") == "2025-10-08"
    await person.api("PUT", "/time_zone", {"time_zone": "Pacific/Kiritimati"})
    assert await day("I have plums") == "2025-10-09"
    seen = await person.api("GET", "/overview?agent_name=other")
    assert (seen["time_zone"], seen["budget"]) == ("Pacific/Kiritimati", None)
    await person.api("PUT", "/time_zone", {"time_zone": None})
    person.context = Context()
    assert await day("I have tea") == "2025-10-08"
    erase_everything(person)
    assert await day("I have kiwis") == "2025-10-09"


async def test_facts_are_listed_by_their_category_and_the_thread_they_are_from() -> None:
    person = Person()
    await person.learns("I have figs")
    await person.learns("I have plums", thread="U")
    await person.api("POST", "/facts", {"content": "Likes tea", "category": "preference", "confidence": 0.9}, 201)
    for asked, content in ("thread=U", "Has plums"), ("category=preference", "Likes tea"):
        assert [fact["content"] for fact in (await person.api("GET", f"/facts?{asked}"))["facts"]] == [content]
