"""Erasing a fact takes what it corrected and what corrected it along, and no undo reaches behind an erase."""

from memory.facts.changes import Change, Extraction
from memory.facts.store import FactStore
from memory.facts.undo import UndoneFacts
from memory.namespaces import Owner
from tests.fakes import Clock
from tests.forgetting import erase_fact
from tests.stores import FaultyStore

ADA = Owner.of("ada")
TOWNS = ("Oslo", "Bergen", "Tromsø", "Bodø")


class Corrected:
    """Somebody who moved from town to town: each fact corrects the one before; each said in a thread of its own."""

    def __init__(self, towns: int = len(TOWNS)) -> None:
        self.store, self.clock = FaultyStore(), Clock()
        self.facts = FactStore(self.store, "ada", clock=self.clock)
        self.ids: list[str] = []
        for number, town in enumerate(TOWNS[:towns]):
            self.learn(f"Lives in {town}", f"T{number}", self.ids[-1] if self.ids else None)

    def learn(self, content: str, thread_id: str, corrects: str | None = None) -> None:
        self.clock.advance(1)
        change = Change(
            action="corrects" if corrects else "new", content=content, target=corrects, sources=(f"m of {content}",)
        )
        now = FactStore(FaultyStore(), "x", clock=self.clock).create("now", "goal", 1.0).created_at
        applied = self.facts.apply(Extraction(changes=(change,)), thread_id=thread_id, epoch="initial", now=now)
        self.ids += applied.created

    def undo(self) -> UndoneFacts | None:
        self.clock.advance(1)
        return self.facts.undo()

    def undo_all(self) -> None:
        for _ in range(3 * len(TOWNS)):
            if self.undo() is None:
                return

    def stored(self) -> str:
        return repr([(item.key, item.value) for item in self.store.items(())])

    def says(self) -> list[str]:
        return sorted(fact.content for fact in self.facts.list())


def nothing_of(corrected: Corrected) -> None:
    for _ in range(2):
        for town in TOWNS:
            assert town not in corrected.stored()
        assert corrected.says() == ["Keeps bees"]
        corrected.undo_all()


def test_an_edited_deleted_and_restored_fact_is_erased_in_all_its_words() -> None:
    corrected = Corrected(1)
    (fact_id,) = corrected.ids
    corrected.facts.update(fact_id, content="Lives in Bergen")
    corrected.facts.retire(fact_id)
    corrected.undo()
    corrected.learn("Keeps bees", "B")
    erase_fact(corrected.store, ADA, fact_id, clock=corrected.clock)
    nothing_of(corrected)


def test_an_earlier_life_of_the_same_words_goes_too() -> None:
    corrected = Corrected(1)
    corrected.facts.retire(corrected.ids[0])
    corrected.clock.advance(1)
    again = corrected.facts.create("lives in  OSLO.", "knowledge", 1.0)
    assert again.id != corrected.ids[0]
    corrected.learn("Keeps bees", "B")
    erase_fact(corrected.store, ADA, again.id, clock=corrected.clock)
    assert "oslo" not in corrected.stored().casefold()


def test_a_change_under_a_clock_that_was_ahead_is_not_undone_behind_an_erase() -> None:
    corrected = Corrected(1)
    corrected.clock.advance(3600)
    corrected.facts.update(corrected.ids[0], content="Lives in Bergen")
    corrected.learn("Keeps bees", "B")
    corrected.clock.advance(-3600)
    erase_fact(corrected.store, ADA, corrected.ids[-1], clock=corrected.clock)
    assert corrected.undo() is None
