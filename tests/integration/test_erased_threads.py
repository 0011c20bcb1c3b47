"""A thread is erased while a turn of it is under way: what was said before is not learned after, the rest is."""

from langgraph.store.memory import InMemoryStore

from memory.door import run
from memory.forget.threads import NEVER_ERASED, erased_between, read_thread_epoch, write_thread_epoch
from memory.turn import TurnEpochs


def test_what_could_not_be_read_stays_what_it_was() -> None:
    before = TurnEpochs("e", "t", learn_from="h1")
    assert before.followed_by(None, "h2") == before
    assert before.followed_by(TurnEpochs("e", "t"), "h2") == before
    assert before.followed_by(TurnEpochs("e", "later"), "h2") == TurnEpochs("e", "later", learn_from="h2")
    assert before.followed_by(TurnEpochs("later", "t"), "h2") == TurnEpochs("later", "t", learn_from="h2")
    assert before.followed_by(TurnEpochs("e", NEVER_ERASED), "h2") == TurnEpochs("e", NEVER_ERASED, learn_from="h1")
    assert TurnEpochs("e", "t", 3).followed_by(TurnEpochs("e", "t"), "h2").edit == 3


def test_a_thread_keeps_its_epochs_under_the_names_that_stored_checkpoints_have() -> None:
    kept = {"epoch": "e", "thread_epoch": "t", "edit": 2, "learn_from": "h1"}
    assert TurnEpochs.from_state(kept) == TurnEpochs("e", "t", 2, "h1")
    assert TurnEpochs.from_state(kept).to_state() == kept
    assert TurnEpochs().to_state() == {}
    assert TurnEpochs.from_state({"epoch": 1, "edit": None, "basis": []}) == TurnEpochs()


def test_an_erased_threads_mark_goes_after_a_year_and_that_is_no_erase() -> None:
    store = InMemoryStore()
    run(store, write_thread_epoch("T", "first", 0.0))
    assert run(store, read_thread_epoch("T")) == "first"
    run(store, write_thread_epoch("T", "second", 10.0))
    assert erased_between("first", run(store, read_thread_epoch("T")))
    others = [f"thread {number}" for number in range(600)]  # more than there are shards
    for other in others:
        run(store, write_thread_epoch(other, "other", 366 * 86_400.0))
    assert run(store, read_thread_epoch("T")) == NEVER_ERASED
    assert not erased_between("second", NEVER_ERASED)
    assert {run(store, read_thread_epoch(other)) for other in others} == {"other"}
