"""What is sensitive waits for a person's yes: nothing uses it before, no model can say it, and it ends by itself."""

from dataclasses import replace

import pytest
from langgraph.store.memory import InMemoryStore

from memory.config import MemoryConfig
from memory.door import run
from memory.facts.changes import Change, Extraction, Outcome, Section
from memory.facts.fact import Fact, MemoryFull
from memory.facts.profile import read_profile, texts_of
from memory.facts.rows import forgotten_messages
from memory.facts.store import FactStore
from memory.forget.retention import clean
from memory.journal.entry import JournalEntry
from memory.journal.journal import append
from memory.message import StoredMessage, iso_time
from memory.namespaces import Owner
from memory.recall.past import read_past
from tests.fakes import Clock

ADA = Owner.of("ada")
DIABETES = "User has type 2 diabetes."
FIGS = "User likes figs."
DAY = 86_400


class Person:
    """One user who wants to be asked about what is sensitive, and what is said to their memory."""

    def __init__(self, **options: object) -> None:
        self.store, self.clock = InMemoryStore(), Clock()
        self.config = replace(MemoryConfig(approval="sensitive", approval_days=30), **options)  # type: ignore[arg-type]  # any of its fields
        self.facts = FactStore(self.store, "ada", config=self.config, clock=self.clock)

    def says(self, *contents: str, thread: str = "t", message: str = "m1", **more: object) -> Outcome:
        self.clock.advance(1)
        changes = tuple(
            Change(
                action="new",
                content=each,
                confidence=0.9,
                sources=(message,),
                said_at=self.now(),
                topic="none" if each == FIGS else "health",
            )
            for each in contents
        )
        return self.learns(Extraction(changes=changes, **more), thread)  # type: ignore[arg-type]  # profile

    def learns(self, extraction: Extraction, thread: str = "t") -> Outcome:
        return self.facts.apply(extraction, thread_id=thread, epoch="initial", now=self.now())

    def now(self) -> str:
        return iso_time(self.clock())

    def used(self) -> list[str]:
        return [fact.content for fact in self.facts.snapshot().facts]

    def waits(self) -> list[str]:
        return sorted(fact.content for fact in self.facts.list("waiting"))

    def the_one(self) -> Fact:
        (fact,) = self.facts.list("waiting")
        return fact

    def journals(self, text: str) -> None:
        said = (StoredMessage("m1", "user", text, self.now()), StoredMessage("m1a", "assistant", "I see.", self.now()))
        run(self.store, append(ADA, [JournalEntry(self.now()[:10], "t", said)]))

    def told(self) -> list[str]:
        return [message.text for entry in run(self.store, read_past(ADA)) for message in entry.messages]


@pytest.fixture
def person() -> Person:
    return Person()


def test_a_correction_of_a_fact_in_use_waits_and_replaces_it_with_the_yes(person: Person) -> None:
    old = person.facts.create("User weighs 80 kg", "knowledge", 0.9)
    change = Change(action="corrects", target=old.id, content="User weighs 70 kg.", confidence=0.9, sources=("m2",))
    person.clock.advance(1)
    person.learns(Extraction(changes=(replace(change, said_at=person.now()),)))
    assert person.used() == ["User weighs 80 kg"]
    new = person.facts.approve(person.the_one().id, source="page")
    assert person.used() == ["User weighs 70 kg."]
    assert person.facts.list("superseded")[0].replaced_by == new.id
    assert (new.replaces, len(person.facts.history(new.id))) == (old.id, len(person.facts.history(old.id)))


def test_a_yes_keeps_which_messages_said_the_fact_again(person: Person) -> None:
    person.says(DIABETES)
    for _ in "twice":  # the same messages count once
        person.says(DIABETES, thread="other", message="m5")
    waiting = person.the_one()
    said = person.facts.confirmations(waiting.id)
    assert said.count == 1
    person.facts.approve(waiting.id, source="page")
    assert person.facts.confirmations(waiting.id) == said


def test_a_yes_in_other_words_lets_no_message_tell_the_first_ones(person: Person) -> None:
    person.says(DIABETES)
    person.says(DIABETES, thread="other", message="m5")
    person.facts.approve(person.the_one().id, source="page", content="User watches their sugar.")
    assert run(person.store, forgotten_messages(ADA, "t", ["m1"])) == {"m1"}
    assert run(person.store, forgotten_messages(ADA, "other", ["m5"])) == {"m5"}


def test_what_nobody_decides_ends_with_the_next_update_also_where_nothing_sweeps(person: Person) -> None:
    person.says(DIABETES)
    person.clock.advance(30 * DAY)
    person.says(FIGS, message="m2")
    assert (person.waits(), person.used()) == ([], [FIGS])


@pytest.mark.parametrize("ends", ["no", "sweep", "full"])
def test_what_was_never_in_use_takes_no_section_along_that_tells_of_what_is(ends: str) -> None:
    person = Person(max_waiting=1)
    oslo = person.facts.create("User lives in Oslo", "knowledge", 0.9)
    person.learns(Extraction(profile=(Section(name="user.personal", text="User lives in Oslo"),)))
    person.clock.advance(1)
    bergen = Change(action="corrects", target=oslo.id, content="User lives in Bergen", sources=("m1",))
    person.learns(Extraction(changes=(replace(bergen, said_at=person.now()),)))
    if ends == "no":
        person.facts.retire(person.the_one().id)
    elif ends == "full":
        person.says(DIABETES, message="m2")
    else:
        person.clock.advance(30 * DAY)
        run(person.store, clean(ADA, person.config, person.clock()))
    assert "User lives in Bergen" not in person.waits()
    assert texts_of(run(person.store, read_profile(ADA))) == {"user.personal": "User lives in Oslo"}


def test_a_full_queue_lets_the_oldest_go_and_learning_goes_on() -> None:
    person = Person(max_waiting=3)
    ills = ["asthma", "gout disease", "migraine", "anxiety", "insomnia"]
    for number, ill in enumerate(ills):
        person.says(f"User has {ill}.", FIGS, message=f"m{number}", thread=f"t{number}")
    assert person.waits() == sorted(f"User has {ill}." for ill in ills[2:])
    assert person.used() == [FIGS]


def test_where_all_is_protected_it_goes_on_waiting() -> None:
    person = Person(max_facts=1)
    person.facts.create("User lives in Oslo", "knowledge", 0.9, source="page")
    person.says(DIABETES)
    with pytest.raises(MemoryFull):
        person.facts.approve(person.the_one().id, source="page")
    assert person.waits() == [DIABETES]


def test_what_finds_no_room_among_what_waits_is_not_told_either() -> None:
    person = Person(max_waiting=1)
    person.journals("My injections keep me busy.")
    person.says(DIABETES)
    person.clock.advance(DAY)
    again = Fact(
        content="User owes money", category="knowledge", confidence=0.9, status="waiting", updated_at=person.now()
    )
    run(person.store, person.facts._facts.insert([again]))
    assert (person.waits(), person.told()) == (["User owes money"], [])
