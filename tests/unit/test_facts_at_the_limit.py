"""Who goes at the limit of facts, and how it comes back."""

import json
from dataclasses import replace
from typing import Any

import pytest

from memory.control import INITIAL_EPOCH
from memory.effects import run
from memory.erase import forget_rows
from memory.facts.changes import Change, Extraction
from memory.facts.fact import FactNotFound
from memory.facts.store import FactStore
from memory.message import iso_time
from tests.fakes import Clock
from tests.forgetting import erase_fact
from tests.memory_bench import ADA, CONFIG, MemoryBench
from tests.stores import FaultyStore


class Memory:
    """One user's facts, three at most; every update comes a minute after the one before."""

    def __init__(self, store: FaultyStore | None = None) -> None:
        self.store, self.clock, self.said = store or FaultyStore(), Clock(), 0
        self.facts = FactStore.of_owner(self.store, ADA, config=replace(CONFIG, max_facts=3), clock=self.clock)

    def learn(self, *contents: str, confidence: float = 0.9, **fields: Any) -> None:
        self.clock.advance(60)
        self.said += 1
        changes = tuple(
            Change(
                action="new", content=content, confidence=confidence, sources=(f"m{self.said}",),
                said_at=iso_time(self.clock()), **fields,
            )
            for content in contents
        )  # fmt: skip
        extraction = Extraction(changes=changes)
        self.facts.apply(extraction, thread_id=f"t{self.said}", epoch=INITIAL_EPOCH, now=iso_time(self.clock()))

    def active(self) -> list[str]:
        return sorted(fact.content for fact in self.facts.list())

    def evicted(self) -> list[str]:
        return sorted(fact.content for fact in self.facts.list("evicted"))


def test_confidence_counts_before_repeats() -> None:
    memory = Memory()
    memory.learn("Likes figs", confidence=0.6)
    for _ in range(3):
        memory.learn("Likes figs", confidence=0.6)
    memory.learn("Likes plums", "Likes tea")
    memory.learn("Likes kiwis")
    assert "Likes figs" not in memory.active()


def test_what_a_person_deleted_after_it_came_back_is_not_found_as_what_went_at_the_limit() -> None:
    memory = Memory()
    memory.learn("Likes figs")
    (figs,) = memory.facts.list()
    memory.learn("Likes plums", "Likes tea")
    memory.learn("Likes kiwis")
    memory.clock.advance(60)
    memory.facts.undo()
    memory.clock.advance(60)
    memory.facts.retire(figs.id)
    assert memory.evicted() == []
    assert memory.facts.search("figs", status="evicted") == []
    with pytest.raises(FactNotFound):
        memory.facts.restore(figs.id)


def test_undoing_what_evicted_a_fact_brings_it_back() -> None:
    memory = Memory()
    memory.learn("Likes figs")
    memory.learn("Likes plums", "Likes tea")
    memory.learn("Likes kiwis")
    memory.clock.advance(60)
    memory.facts.undo()
    assert memory.active() == ["Likes figs", "Likes plums", "Likes tea"]
    assert memory.evicted() == []


def test_what_never_found_room_is_no_history() -> None:
    memory = Memory()
    for content in ("Likes figs", "Likes plums", "Likes tea"):
        memory.facts.create(content, "preference", 0.9, source="api")
    memory.learn("Likes kiwis")
    assert memory.evicted() == []


def test_erasing_a_fact_or_a_thread_reaches_what_went_at_the_limit() -> None:
    for is_thread in (False, True):
        memory = Memory()
        memory.learn("Likes figs")
        (figs,) = memory.facts.list()
        memory.learn("Likes plums", "Likes tea")
        memory.learn("Likes kiwis")
        if is_thread:
            run(memory.store, forget_rows(ADA, "t1", INITIAL_EPOCH))
        else:
            erase_fact(memory.store, ADA, figs.id, clock=memory.clock)
        assert memory.evicted() == []
        assert "figs" not in str([item.value for item in memory.store.items(())])


def test_what_is_erased_while_it_goes_at_the_limit_does_not_stay_in_history() -> None:
    for n in range(1, 40):
        memory = Memory()
        memory.learn("Likes figs")
        (figs,) = memory.facts.list()
        memory.learn("Likes plums", "Likes tea")
        start, erased = memory.store.calls, list[bool]()

        def fault(call: int, n: int = n, start: int = start, erased: list[bool] = erased, of: str = figs.id) -> None:
            if call - start == n:
                erased.append(True)
                erase_fact(FaultyStore(memory.store.inner), ADA, of)  # noqa: B023 - called before the next one

        memory.store.fault = fault
        memory.facts.create("Likes kiwis", "preference", 0.9)
        memory.store.fault = lambda _: None
        if not erased:
            assert n > 3
            return
        assert "figs" not in str([item.value for item in memory.store.items(())]), n
    raise AssertionError("the update takes too many batches")


def test_an_update_at_the_limit_keeps_the_profile_that_tells_of_what_went() -> None:
    bench = MemoryBench(config=replace(CONFIG, max_facts=1))
    bench.say("I like figs")
    told = {"facts": [], "profile": [{"section": "personal", "text": "Likes figs."}]}
    bench.model.replies.append(json.dumps({**told, "facts": [LIKES_FIGS]}))
    bench.drain()
    bench.clock.advance(60)
    bench.say("I like plums", begin=2)
    bench.drain()
    assert bench.facts() == ["Likes plums"]
    assert [value["text"] for value in bench.store.values(ADA.namespace("profile"))] == ["Likes figs."]


LIKES_FIGS = {
    "message": 1, "action": "new", "known": 0, "content": "Likes figs", "category": "preference", "confidence": 0.9,
}  # fmt: skip
