"""A message of a topic that waits, of which no fact was made: nothing tells it before the user's yes, by any door."""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from memory.config import TOPICS, MemoryConfig, Topic
from memory.control import write_approval
from memory.effects import run
from memory.facts.answers import Waiting, write_answer
from memory.facts.changes import Change, Extraction
from memory.facts.fact import timestamp
from memory.facts.store import FactStore
from memory.journal.entry import JournalEntry
from memory.message import StoredMessage
from memory.recall.past import exchange_of, read_asked, read_past, read_tellable_view
from memory.screening.topics import held_topics
from memory.tool_calls import ToolCall
from memory.tool_lookups import find, read_around, tell_found
from memory.turn import TurnEpochs
from tests.fakes import RecordingModel
from tests.forgetting import erase_user
from tests.memory_bench import ADA, CONFIG, MemoryBench
from tests.stores import Killed, fail_at

ASKS = replace(CONFIG, approval=frozenset({"health"}))
SAID, ROUTINE = "The doctor says that I have type 2 diabetes.", "I drink my tea from the blue cup."
NO_FACTS = '{"facts": [], "profile": []}'


class Talk(MemoryBench):
    """Somebody who is asked about health talks, and the model makes no fact of it."""

    def __init__(self, config: MemoryConfig = ASKS) -> None:
        super().__init__(config=config)
        self.model = RecordingModel(respond=lambda _: NO_FACTS)
        self.number = 0

    def learns(self, *said: str, reply: str = "I see.", thread: str = "T") -> str:
        self.number += 1
        now = timestamp(self.clock())
        messages = [StoredMessage(f"u{self.number}.{n}", "user", text, now) for n, text in enumerate(said)]
        self.record([*messages, StoredMessage(f"a{self.number}", "assistant", reply, now)], thread=thread)
        self.drain_all()
        return messages[0].id

    def told(self) -> list[str]:
        return [message.text for entry in run(self.store, read_past(ADA, self.epoch())) for message in entry.messages]

    def asked(self) -> list[Waiting]:
        return [each for each in run(self.store, read_asked(ADA, self.epoch(), self.journal())) if each.ids]

    def answers(self, yes: bool | None) -> None:
        held = [entry for entry in self.journal() if entry.held]
        run(self.store, write_answer(ADA, self.epoch(), map(exchange_of, held), yes=yes, now=timestamp(self.clock())))

    def makes(self, content: str, message: str, thread: str = "T") -> str:
        """Have a fact be made of a message, and return the id of the one that waits, if it does."""
        change = Change(action="new", content=content, confidence=0.9, sources=(message,))
        facts = FactStore.of_owner(self.store, ADA, config=ASKS, clock=self.clock)
        done = facts.apply(
            Extraction(changes=(change,)), thread_id=thread, epoch=self.epoch(), now=timestamp(self.clock())
        )
        return next(iter(done.waiting), "")

    def approves(self, fact_id: str) -> None:
        FactStore.of_owner(self.store, ADA, config=ASKS, clock=self.clock).approve(fact_id, source="page")


def test_it_is_told_after_the_yes_and_neither_before_nor_after_a_no() -> None:
    talk = Talk()
    talk.learns(SAID)
    talk.learns(ROUTINE)
    assert talk.told() == [ROUTINE, "I see."]
    (waits,) = talk.asked()
    assert (waits.topics, waits.is_asked, waits.is_refused) == (("health",), True, False)
    talk.answers(False)
    assert talk.told() == [ROUTINE, "I see."]
    assert talk.asked()[0].is_refused
    talk.answers(True)
    assert SAID in talk.told()
    assert talk.asked() == []
    talk.answers(None)
    assert SAID not in talk.told()


def test_who_holds_the_journal_sees_the_yes() -> None:
    talk = Talk()
    talk.learns(SAID)
    view = run(talk.store, read_tellable_view(ADA))
    assert [entry.messages for entry in view.entries.values()] == [()]
    talk.answers(True)
    (entry,) = run(talk.store, read_tellable_view(ADA, view)).entries.values()
    assert entry.messages[0].text == SAID


def test_nobody_is_asked_where_no_topic_waits_and_what_is_in_use_stays_so() -> None:
    talk = Talk(config=CONFIG)
    talk.learns(SAID)
    run(talk.store, write_approval(ADA, ["health"]))
    assert SAID in talk.told()
    talk.learns("My asthma is worse.")
    assert "My asthma is worse." not in talk.told()
    run(talk.store, write_approval(ADA, []))
    assert "My asthma is worse." not in talk.told()


@pytest.mark.parametrize(
    ("content", "is_told"),
    [("User has type 2 diabetes.", True), ("User plays chess.", False)],
    ids=["its topic", "other"],
)
def test_a_yes_to_a_fact_of_its_topic_is_one_to_the_message(content: str, is_told: bool) -> None:
    talk = Talk()
    message = talk.learns(f"{SAID} I play chess, too.", reply="Chess is good for people with diabetes.")
    waiting = talk.makes(content, message)
    assert talk.told() == []
    if waiting:
        # The fact is what is asked about, not the message beside it.
        assert talk.asked() == []
        talk.approves(waiting)
    assert len(talk.told()) == (2 if is_told else 0)
    assert len(talk.asked()) == (0 if is_told else 1)


def test_where_everything_waits_a_fact_of_any_sort_is_enough() -> None:
    talk = Talk(config=replace(CONFIG, approval=frozenset(TOPICS)))
    message = talk.learns(ROUTINE)
    assert talk.told() == []
    talk.makes("User drinks tea.", message)
    assert ROUTINE in talk.told()


def test_a_reply_that_says_it_waits_too_and_nobody_is_asked_about_it_alone() -> None:
    talk = Talk()
    talk.learns("Thanks!", reply="All the best for your diabetes.")
    assert talk.told() == ["Thanks!"]
    assert not talk.asked()[0].is_asked
    message = talk.learns("What is for dinner?", reply="With your diabetes, some fish.", thread="U")
    talk.approves(talk.makes("User has type 2 diabetes.", message, "U"))
    assert "With your diabetes, some fish." in talk.told()


def test_no_tool_of_the_model_finds_it() -> None:
    talk = Talk()
    talk.learns(SAID)
    call = ToolCall(
        owner=ADA, thread_id="t", messages=(), epochs=TurnEpochs("", "", "", ""), now=talk.clock(), key="k", config=ASKS
    )
    assert SAID not in tell_found(run(talk.store, find(call, "type 2 diabetes", 5)), "type 2 diabetes", 5)
    (entry,) = talk.journal()
    assert SAID not in run(talk.store, read_around(call, entry.key)).text
    talk.answers(True)
    assert SAID in tell_found(run(talk.store, find(call, "type 2 diabetes", 5)), "type 2 diabetes", 5)
    assert SAID in run(talk.store, read_around(call, entry.key)).text


def test_what_a_model_could_never_read_waits_too() -> None:
    def fails(_: list[BaseMessage]) -> str:
        raise ValueError("no answer")

    talk = Talk(config=replace(ASKS, max_attempts=1))
    talk.model.respond = fails
    talk.learns(SAID)
    assert len(talk.journal()) == 1
    assert talk.told() == []


def test_only_other_words_are_judged_anew() -> None:
    at = "2026-03-01T10:00:00+00:00"

    def entry(text: str, approval: tuple[Topic, ...]) -> JournalEntry:
        said = (StoredMessage("1", "user", text, at), StoredMessage("2", "assistant", "I see.", at))
        return JournalEntry("2026-03-01", "T", said, "initial", source="turn").judged(approval)

    free, held = entry(SAID, ()), entry(SAID, ("health",))
    assert free.joined(held).held == {}
    assert held.joined(free).held == {"1": ("health",)}
    assert entry(ROUTINE, ("health",)).joined(held).held == {"1": ("health",)}
    assert held.joined(entry(ROUTINE, ("health",))).held == {}
    assert JournalEntry.from_json(held.to_json()) == held
    assert "held" not in free.to_json()
    assert held.without({"1"}).held == {}  # type: ignore[union-attr]  # the reply is left
    wrong: list[object] = [{"1": "health"}, {"1": []}, {"9": ["health"]}, ["1"], 7]
    for garbled in wrong:
        assert JournalEntry.from_json({**free.to_json(), "held": garbled}).held == {}
    assert JournalEntry.from_json({**free.to_json(), "held": {"1": ["weather"]}}).held["1"]


def test_prompts_that_show_a_message_choose_anew_when_it_says_what_waits() -> None:
    talk = Talk()
    now = timestamp(talk.clock())
    edits = []
    for text in (ROUTINE, SAID, SAID):
        talk.record([StoredMessage("u", "user", text, now), StoredMessage("a", "assistant", "I see.", now)])
        talk.drain_all()
        edits.append(run(talk.store, read_tellable_view(ADA)).edit)
        talk.clock.advance(60)
        now = timestamp(talk.clock())
    assert talk.told() == []
    assert edits[0] != edits[1]


@pytest.mark.parametrize("applies_first", [False, True])
def test_killed_at_any_write_it_is_never_told(applies_first: bool) -> None:
    for n in range(1, 20):
        talk = Talk()
        talk.record([StoredMessage("u", "user", SAID, timestamp(talk.clock()))])
        talk.store.applies_first = applies_first
        talk.store.fault = fail_at(n, error=Killed)
        with suppress(Killed):
            talk.drain()
        talk.store.fault = lambda _: None
        assert talk.told() == [], n
        talk.restart()
        talk.drain_all()
        assert talk.told() == [], n
        assert len(talk.asked()) == 1, n


def test_erasing_everything_takes_the_answers_along() -> None:
    talk = Talk()
    talk.learns(SAID)
    talk.answers(True)
    history = [item.value for item in talk.store.search(ADA.namespace("history"), limit=100)]
    assert [each["yes"] for each in history if "yes" in each] == [True]
    assert "diabetes" not in repr(history)
    # What a later life of the same ids says is asked about again.
    erase_user(talk.store, "ada")
    talk.number = 0
    talk.learns(SAID)
    assert talk.told() == []


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from([SAID, ROUTINE, "I owe 300 euros.", "My sister is ill."]), st.booleans()), max_size=6
    ),
    st.frozensets(st.sampled_from(TOPICS)),
)
def test_nothing_of_a_topic_that_waits_is_told_but_what_was_said_yes_to(
    said: list[tuple[str, bool]], approval: frozenset[Topic]
) -> None:
    talk = Talk(config=replace(CONFIG, approval=approval))
    for text, yes in said:
        before = {entry.key for entry in talk.journal()}
        talk.learns(text, thread=f"T{talk.number}")
        if yes:
            new = [entry for entry in talk.journal() if entry.key not in before]
            run(
                talk.store,
                write_answer(ADA, talk.epoch(), map(exchange_of, new), yes=True, now=timestamp(talk.clock())),
            )
    allowed = [text for text, yes in said if yes or not held_topics(text, approval)]
    assert sorted(text for text in talk.told() if text != "I see.") == sorted(allowed)
