"""A thread is erased while a turn of it is under way: what was said before is not learned after, the rest is."""

from langgraph.store.memory import InMemoryStore

from memory.door import run
from memory.forget.threads import NEVER_ERASED, erased_between, read_thread_erase, write_thread_epoch


def test_an_erased_threads_mark_goes_after_a_year_and_that_is_no_erase() -> None:
    store = InMemoryStore()
    run(store, write_thread_epoch("T", "first", 0.0))
    assert run(store, read_thread_erase("T")).epoch == "first"
    run(store, write_thread_epoch("T", "second", 10.0))
    assert erased_between("first", run(store, read_thread_erase("T")).epoch)
    others = [f"thread {number}" for number in range(600)]  # more than there are shards
    for other in others:
        run(store, write_thread_epoch(other, "other", 366 * 86_400.0))
    assert run(store, read_thread_erase("T")).epoch == NEVER_ERASED
    assert not erased_between("second", NEVER_ERASED)
    assert {run(store, read_thread_erase(other)).epoch for other in others} == {"other"}
