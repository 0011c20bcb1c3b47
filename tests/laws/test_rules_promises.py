"""What an update reads and writes down: once, with its day, whoever else writes, erases or fails meanwhile."""

import asyncio
import json
from contextlib import suppress
from itertools import count
from threading import Thread
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage

from palimpsest import ConversationContext, FactStore
from tests.fakes import Refused
from tests.laws.doors import DAY, House, remember
from tests.laws.embedding import indexed
from tests.laws.talk import Talk, in_thread, remembers
from tests.stores import FaultyStore, Killed

LATER = 1_000.0
"""So many seconds after a failure it is tried again."""
SAID: list[BaseMessage] = [
    HumanMessage("I like figs", id="u1"),
    AIMessage("Noted.", id="a1"),
    HumanMessage("I like plums", id="u2"),
    AIMessage("Noted, too.", id="a2"),
]


async def journal(talk: Talk) -> list[tuple[str, str]]:
    """Return day and text of each line that is kept."""
    _, answer = await house_of(talk).ask("GET", "/journal")
    return sorted((entry["day"], said["text"]) for entry in answer["entries"] for said in entry["messages"])


def house_of(talk: Talk) -> House:
    return House(talk.store, talk.saver, {}, talk.clock, talk.settings.data_dir)


def process(talk: Talk, messages: list[BaseMessage], kind: Any = "turn", thread: str = "T") -> None:
    updater = talk.updater()
    updater.process(ConversationContext(thread, "ada", messages=messages, kind=kind))


async def test_B6_what_was_read_is_not_read_again_in_its_thread_and_is_elsewhere() -> None:
    talk = Talk()
    for user, thread in [("ada", "T"), ("ada", "T"), ("ada", "U"), ("bob", "of bob")]:
        await talk.say("I like figs", thread, user=user)
        await talk.learn()
    assert talk.read() == {"I like figs": 3}


async def test_B6_one_word_that_answers_another_question_is_read_again() -> None:
    talk = Talk()
    for reply in ("Do you smoke?", "Do you drive?", "Noted."):
        talk.chat.replies = [reply]
        await talk.say("Yes")
        await talk.learn()
    assert talk.read() == {"Yes": 3}


async def test_B6_what_could_not_be_read_is_read_later() -> None:
    talk = Talk()
    talk.memory.replies = [ConnectionError("later")]
    await talk.say("I like figs")
    assert await talk.learn() == []
    talk.clock.advance(LATER)
    assert await talk.learn() == ["Likes figs"]


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
async def test_a_line_stands_once_with_the_day_on_which_it_was_said_however_it_is_cut_apart(cut: int) -> None:
    talk = Talk()
    process(talk, SAID)
    talk.clock.advance(2 * DAY)
    for part in (SAID[:cut], SAID[cut:]):
        process(talk, part, "cut")
    assert await journal(talk) == [("2025-10-09", message.text) for message in sorted(SAID, key=lambda m: m.text)]


async def test_what_a_deleted_fact_came_from_is_not_written_down_again() -> None:
    talk = Talk()
    house = house_of(talk)
    process(talk, SAID[:2])
    (fact,) = (await house.ask("GET", "/facts"))[1]["facts"]
    await house.ask("DELETE", f"/facts/{fact['id']}")
    process(talk, SAID, "cut")
    assert [text for _, text in await journal(talk)] == ["I like plums", "Noted, too."]


async def recalled(talk: Talk, question: str) -> str:
    """Return what a new conversation of this process shows its model, the question aside."""
    await talk.say(question, f"about {question}")
    return talk.shown().replace(question, "")


async def test_the_first_question_in_a_new_process_is_shown_what_was_said_before() -> None:
    talk = Talk(memory={"confidence_threshold": 1.0})
    await talk.say("My boat lies in the harbour")
    await talk.learn()
    assert "harbour" in await recalled(talk.restarted(), "Where is my boat?")


async def test_a_process_finds_the_lines_of_two_that_wrote_at_once() -> None:
    talk = Talk()
    process(talk, SAID[:2], thread="of figs")
    assert "figs" in await recalled(talk, "What of figs?")

    def meanwhile(messages: list[BaseMessage]) -> str:
        talk.memory.respond = remembers
        process(talk, [HumanMessage("My cello stands in the cellar", id="c1")], thread="of cellos")
        return remembers(messages)

    talk.memory.respond = meanwhile
    process(talk, [HumanMessage("My boat lies in the harbour", id="b1")], thread="of boats")
    await talk.learn()  # of a user, one is read after the other
    assert "cellar" in await recalled(talk, "Where is my cello?")
    assert "harbour" in await recalled(talk, "Where is my boat?")


@pytest.mark.parametrize("first", ["reads", "deletes"])
async def test_who_reads_lines_while_a_fact_of_them_is_deleted_does_not_show_them_afterwards(first: str) -> None:
    for at in count(1):
        store = FaultyStore()
        talk = Talk(store=store)
        process(talk, SAID[:2], thread="of figs")
        (fact,) = await FactStore(store, "ada").alist()

        async def act(what: str, talk: Talk = talk, fact_id: str = fact.id) -> tuple[int, Any]:
            if what == "deletes":
                await FactStore(talk.store, "ada").adelete(fact_id)
            else:
                await indexed(talk.service, talk.store, "ada")
            return 200, None

        def meanwhile(call: int, store: FaultyStore = store, place: int = store.calls + at, act: Any = act) -> None:
            if call == place:
                store.fault = lambda _: None
                in_thread(act("reads" if first == "deletes" else "deletes"))

        store.fault = meanwhile
        await act(first)
        if store.fault is meanwhile:
            break
        assert "figs" not in await recalled(talk, "What of figs?")
    assert at > 2


async def test_what_is_said_anew_under_an_id_takes_the_place_of_its_line() -> None:
    talk = Talk()
    process(talk, SAID[:2])
    process(talk, [HumanMessage("I like plums", id="u1"), AIMessage("Good.", id="again")])
    assert [text for _, text in await journal(talk)] == ["Good.", "I like plums"]


async def test_what_is_said_under_an_id_while_its_update_is_applied_is_learned_too() -> None:
    store = FaultyStore()
    talk = Talk(store=store)

    async def anew() -> tuple[int, Any]:
        return 200, await talk.say("I like plums", id="u1")

    beside: list[Thread] = []

    def meanwhile(_: int) -> None:
        if any(item.namespace[-1] == "facts" for item in store.items(())):
            store.fault = lambda _: None
            beside.append(Thread(target=lambda: asyncio.run(anew())))
            beside[0].start()  # it may have to wait for the update

    talk.chat.respond = lambda _: AIMessage("Noted.", id="a1")
    await talk.say("I like figs", id="u1")
    store.fault = meanwhile
    assert await talk.learn() == ["Likes figs"]
    await asyncio.to_thread(beside[0].join)
    assert await talk.learn() == ["Likes plums"]


@pytest.mark.parametrize("changes", ["said", "taken out", "erased"])
async def test_of_a_backlog_that_was_half_read_nothing_is_skipped_whatever_changes_in_it(changes: str) -> None:
    talk = Talk(memory={"portion_messages": 4})
    await talk.say("I like figs", "another")
    await talk.learn()
    talk.memory.respond = lambda messages: remembers(messages) if "And so on" in messages[-1].text else TimeoutError()
    await talk.say("I like figs. " + "And so on. " * 400, id="u1")
    await talk.say("I like plums", id="u2")
    assert await talk.learn() == ["Likes figs"]
    talk.memory.respond = remembers
    if changes == "said":
        await talk.say("I like kiwis", id="u3")
    elif changes == "taken out":
        gone = [RemoveMessage(str(message.id)) for message in (await talk.values())["messages"][:2]]
        await talk.run({"messages": [*gone, HumanMessage("I like kiwis", id="u3")]}, talk.who())
    else:
        (fact,) = await FactStore(talk.store, "ada").alist()
        assert (await house_of(talk).ask("POST", "/erase/fact", {"fact_id": fact.id}))[0] == 200
    for _ in range(3):
        talk.clock.advance(LATER)
        known = await talk.learn()
    assert "Likes plums" in known
    assert ("Likes kiwis" in known, "Likes figs" in known) == (changes != "erased", changes != "erased")


async def test_a_worker_that_is_killed_once_its_model_has_answered_costs_no_second_call() -> None:
    store = FaultyStore()
    talk = Talk(store=store)
    await talk.say("I like figs")
    store.fault = lambda _: Killed() if "Likes figs" in str(store.items(())) else None
    with suppress(Killed):  # there may be nothing left to do
        await talk.process().asweep(store)
    store.fault = lambda _: None
    assert await talk.learn() == ["Likes figs"]
    assert talk.read() == {"I like figs": 1}


async def test_what_fails_for_good_is_listed_and_journaled_and_is_learned_once_it_is_tried_again() -> None:
    talk = Talk()
    house = house_of(talk)
    talk.memory.replies = [Refused(401)]
    await talk.say("I like figs")
    assert await talk.learn() == []
    (dead,) = (await house.ask("GET", "/updates"))[1]["updates"]
    assert dead["state"] == "dead"
    lines = await journal(talk)
    assert [text for _, text in lines] == ["I like figs", "Noted."]
    await house.ask("POST", f"/updates/{dead['key']}/retry", {})
    assert await talk.learn() == ["Likes figs"]
    assert await journal(talk) == lines


async def test_once_all_is_learned_nothing_is_left_to_look_at() -> None:
    talk = Talk()
    for number in range(3):
        await talk.say(f"I like thing{number}", f"T{number}")
    await talk.learn()
    assert not [
        item for item in talk.store.search((), limit=10_000) if {"outbox", "palimpsest-due"} & {*item.namespace}
    ]


async def test_all_is_there_where_it_is_more_than_a_store_gives_at_once() -> None:
    house = house_of(Talk())
    _, begun = await house.ask("PUT", "/sources/diary", {"origin": "jsonl"})
    for piece in range(11):
        said = {"id": "m", "role": "user", "text": "I like figs.", "time": house.clock()}
        talks = [{"origin": "jsonl", "id": f"{piece} {each}", "messages": [said]} for each in range(100)]
        body = {"token": begun["token"], "conversations": talks}
        _, answer = await house.ask("POST", "/sources/diary/conversations", body)
    assert answer["waiting"] == 1_100
    assert (await house.ask("GET", "/export"))[1].count('{"update":') == 1_100


@pytest.mark.parametrize("skew", [0, 3_600, -3_600])
@pytest.mark.parametrize("when", ["before it is read", "while it is read", "while a cut is read"])
async def test_a_hand_wins_over_what_was_said_before_it_whatever_the_clocks_say(when: str, skew: float) -> None:
    talk = Talk()
    talk.memory.respond = remember
    await talk.say("I like figs")
    await talk.learn()
    (fact,) = await FactStore(talk.store, "ada").alist()

    async def edit() -> tuple[int, Any]:
        talk.clock.advance(skew)
        answer = await house_of(talk).ask("PATCH", f"/facts/{fact.id}", {"content": "Loves figs"})
        talk.clock.advance(-skew)
        return answer

    def meanwhile(messages: list[BaseMessage]) -> str:
        in_thread(edit())
        return remember(messages)

    if when == "while a cut is read":
        talk.memory.respond = meanwhile
        process(talk, [HumanMessage("I prefer plums to figs", id="u2")], "cut")
    else:
        await talk.say("I prefer plums to figs")
        if when == "before it is read":
            await edit()
        else:
            talk.memory.respond = meanwhile
    assert await talk.learn() == ["Loves figs"]
    talk.memory.respond = remember
    await talk.say("I prefer kiwis to figs")
    assert await talk.learn() == ["Prefers kiwis"]


async def test_an_edit_at_any_moment_of_an_update_stays_or_is_refused() -> None:
    for at in count(1):
        store = FaultyStore()
        talk = Talk(store=store)
        talk.memory.respond = remember
        await talk.say("I like figs")
        await talk.learn()
        (fact,) = await FactStore(store, "ada").alist()
        await talk.say("I prefer plums to figs")
        statuses: list[int] = []
        beside: list[Thread] = []

        async def edit(talk: Talk = talk, path: str = f"/facts/{fact.id}", statuses: Any = statuses) -> tuple[int, Any]:
            statuses.append((await house_of(talk).ask("PATCH", path, {"content": "Loves figs"}))[0])
            return 200, None

        def meanwhile(
            call: int, store: FaultyStore = store, place: int = store.calls + at, edit: Any = edit, beside: Any = beside
        ) -> None:
            if call == place:
                store.fault = lambda _: None
                beside.append(Thread(target=lambda: asyncio.run(edit())))
                beside[0].start()  # it may have to wait for the update

        store.fault = meanwhile
        await talk.process().asweep(store)
        if not beside:
            break
        await asyncio.to_thread(beside[0].join)
        store.fault = lambda _: None
        assert await talk.learn() == (["Prefers plums"] if statuses == [404] else ["Loves figs"]), at
    assert at > 5


async def test_F8_what_a_hand_edited_outlives_what_nobody_did_at_the_limit() -> None:
    talk = Talk(memory={"max_facts": 3})
    await talk.say("I like figs")
    await talk.learn()
    (fact,) = await FactStore(talk.store, "ada").alist()
    await house_of(talk).ask("PATCH", f"/facts/{fact.id}", {"content": "Loves figs", "confidence": 0.1})
    for number in range(5):
        await talk.say(f"I like thing{number}")
    known = await talk.learn()
    assert (len(known), "Loves figs" in known) == (3, True)


@pytest.mark.parametrize("error", [Refused(400), TimeoutError()])
async def test_a_message_that_no_model_takes_holds_up_nobody_but_itself(error: Exception) -> None:
    talk = Talk(memory={"max_attempts": 2})
    talk.memory.respond = lambda messages: error if "poison" in messages[-1].text else remembers(messages)
    for what in ("figs", "poison", "plums"):
        await talk.say(f"I like {what}")
    for _ in range(4):
        await talk.learn()
        talk.clock.advance(LATER)
    assert await talk.learn() == ["Likes figs", "Likes plums"]
    (dead,) = (await house_of(talk).ask("GET", "/updates"))[1]["updates"]
    assert dead["state"] == "dead"


async def test_lines_go_by_age_and_by_size_the_oldest_first() -> None:
    talk = Talk(memory={"journal_days": 30, "journal_bytes": 60})
    for number in range(4):
        process(talk, [HumanMessage(f"I like figs{number}", id=f"u{number}"), AIMessage("Noted.", id=f"a{number}")])
        talk.clock.advance(DAY)
    await talk.service.aclean(talk.store)
    assert {text for _, text in await journal(talk)} == {"I like figs1", "I like figs2", "I like figs3", "Noted."}
    talk.clock.advance(40 * DAY)
    await talk.service.aclean(talk.store)
    assert await journal(talk) == []


@pytest.mark.parametrize("action", ["corrects", "ends"])
async def test_what_an_import_put_an_end_to_comes_back_when_it_is_taken_back(action: str) -> None:
    talk = Talk()
    house = house_of(talk)
    await talk.say("I like figs")
    await talk.learn()
    fact = {
        "message": 1,
        "action": action,
        "known": 1,
        "content": "Likes plums",
        "category": "preference",
        "confidence": 0.9,
    }
    house.memory.respond = lambda _: json.dumps({"facts": [fact], "profile": []})
    said = {"id": "m1", "role": "user", "text": "I like plums now.", "time": talk.clock() + DAY}
    _, begun = await house.ask("PUT", "/sources/diary", {"origin": "jsonl"})
    piece = {"token": begun["token"], "conversations": [{"origin": "jsonl", "id": "d", "messages": [said]}]}
    assert (await house.ask("POST", "/sources/diary/conversations", piece))[0] == 200
    await house.learn()
    assert await talk.known() == (["Likes plums"] if action == "corrects" else [])
    talk.clock.advance(1)
    assert (await house.ask("POST", "/erase/source", {"source": "diary"}))[0] == 200
    assert (await house.ask("POST", "/sources/diary/conversations", piece))[0] == 409
    assert await talk.known() == ["Likes figs"]


def test_what_is_erased_while_it_goes_at_the_limit_stays_nowhere() -> None:
    for at in count(1):
        store = FaultyStore()
        talk = Talk(store=store, memory={"max_facts": 3})
        facts = FactStore(store, "ada", config=talk.settings.memory, clock=talk.clock)
        for content in ("Likes figs", "Likes plums", "Likes tea"):
            facts.create(content, "preference", 0.9)
            talk.clock.advance(1)
        figs = next(fact.id for fact in facts.list() if "figs" in fact.content)
        asked = house_of(talk).ask("POST", "/erase/fact", {"fact_id": figs})
        # It waits where the write has begun.
        erase, place = Thread(target=in_thread, args=(asked,)), store.calls + at

        def meanwhile(call: int, place: int = place, erase: Thread = erase) -> None:
            if call == place:
                erase.start()

        store.fault = meanwhile
        facts.create("Likes kiwis", "preference", 0.9)
        if erase.ident is None:
            asked.close()
            break
        erase.join()
        assert "figs" not in talk.stored(), at
    assert at > 2


def test_no_undo_reaches_behind_an_erase() -> None:
    talk = Talk()
    facts = FactStore(talk.store, "ada", clock=talk.clock)
    oslo, bees = (facts.create(content, "knowledge", 0.9) for content in ("Lives in Oslo", "Keeps bees"))
    talk.clock.advance(1)
    facts.update(oslo.id, content="Lives in Bergen")
    talk.clock.advance(1)
    in_thread(house_of(talk).ask("POST", "/erase/fact", {"fact_id": bees.id}))
    talk.clock.advance(1)
    assert facts.undo() is None
    assert [fact.content for fact in facts.list()] == ["Lives in Bergen"]


@pytest.mark.parametrize("erased", [0, 1, 2])
async def test_an_erased_fact_takes_along_all_that_it_ever_said(erased: int) -> None:
    talk, ids = Talk(), list[str]()
    talk.memory.respond = remember
    for number, said in enumerate(["I like figs", "I prefer plums to figs", "I prefer kiwis to plums"]):
        await talk.say(said, f"T{number}")
        await talk.learn()
        ids += [fact.id for fact in await FactStore(talk.store, "ada").alist()]
    await house_of(talk).ask("POST", "/erase/fact", {"fact_id": ids[erased]})
    assert not [word for word in ("figs", "plums", "kiwis") if word in talk.stored()]


def test_an_erased_fact_takes_along_an_earlier_one_of_its_words() -> None:
    talk = Talk()
    facts = FactStore(talk.store, "ada", clock=talk.clock)
    facts.retire(facts.create("Lives in Oslo", "knowledge", 1.0).id)
    talk.clock.advance(1)
    again = facts.create("lives in  OSLO.", "knowledge", 1.0)
    in_thread(house_of(talk).ask("POST", "/erase/fact", {"fact_id": again.id}))
    assert "oslo" not in talk.stored().casefold()


async def test_what_a_model_wrote_of_a_fact_that_is_erased_meanwhile_is_asked_for_again() -> None:
    talk = Talk()
    await talk.say("I like figs")
    await talk.learn()
    (fact,) = await FactStore(talk.store, "ada").alist()

    def meanwhile(messages: list[BaseMessage]) -> str:
        if "Likes figs" in messages[-1].text:
            in_thread(house_of(talk).ask("POST", "/erase/fact", {"fact_id": fact.id}))
            return json.dumps({"facts": [], "profile": [{"section": "personal", "text": "Likes figs and plums"}]})
        return remembers(messages)

    talk.memory.respond = meanwhile
    await talk.say("I like plums", "another")
    for _ in range(3):
        known = await talk.learn()
        talk.clock.advance(LATER)
    assert known == ["Likes plums"]
    assert "figs" not in talk.stored()
