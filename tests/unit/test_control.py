import pytest

from memory.control import (
    INITIAL_EPOCH,
    MAX_FORGOTTEN_THREADS,
    Epochs,
    belongs,
    forget_thread,
    read_epoch,
    read_epochs,
    write_epoch,
    write_time_zone,
)
from memory.effects import run
from memory.namespaces import Owner
from tests.stores import FaultyStore

ADA = Owner.of("ada")


def test_a_new_user_has_the_initial_epoch_and_erased_no_thread() -> None:
    assert run(FaultyStore(), read_epochs(ADA)) == Epochs(INITIAL_EPOCH, {})


def test_an_epoch_ends_for_all_agents_of_a_user_and_nobody_else() -> None:
    store = FaultyStore()
    run(store, write_epoch(ADA, "e1"))
    assert run(store, read_epoch(Owner.of("ada", "tutor"))) == "e1"
    assert run(store, read_epoch(Owner.of("bob"))) == INITIAL_EPOCH


def test_a_forgotten_thread_cancels_what_is_of_another_generation_only() -> None:
    store = FaultyStore()
    run(store, forget_thread(ADA, "T", "g1", 100.0))
    epochs = run(store, read_epochs(ADA))
    assert epochs.cancels(INITIAL_EPOCH, "T", "")
    assert epochs.cancels(INITIAL_EPOCH, "T", "g0")
    assert not epochs.cancels(INITIAL_EPOCH, "T", "g1")
    assert not epochs.cancels(INITIAL_EPOCH, "U", "")
    assert epochs.cancels("another", "U", "")


@pytest.mark.parametrize("now", [9999.0, 0.0])
def test_only_the_newest_forgotten_threads_are_kept_also_under_a_clock_that_is_set_back(now: float) -> None:
    store = FaultyStore()
    for number in range(MAX_FORGOTTEN_THREADS):
        store.put(ADA.control, f"thread.{number}", {"forgotten": 10.0 + number})
    run(store, forget_thread(ADA, "T", "g1", now))
    epochs = run(store, read_epochs(ADA))
    assert len(epochs.threads) == MAX_FORGOTTEN_THREADS
    assert "thread.0" not in epochs.threads
    assert epochs.cancels(INITIAL_EPOCH, "T", "")


@pytest.mark.parametrize("batches", [0, 1])
def test_an_erase_in_the_middle_of_another_controls_writing_is_not_undone(batches: int) -> None:
    store = FaultyStore()
    forgetting = forget_thread(ADA, "T", "g1", 5.0)
    operations = next(forgetting)
    for _ in range(batches):
        operations = forgetting.send(store.batch(operations))
    run(store, write_epoch(ADA, "e1"))
    run(store, write_time_zone(ADA, "Asia/Tokyo"))
    store.batch(operations)
    assert run(store, read_epoch(ADA)) == "e1"


@pytest.mark.parametrize(("value", "counts"), [({}, True), ({"epoch": "e1"}, True), ({"epoch": "old"}, False)])
def test_a_row_belongs_to_its_epoch_and_one_without_to_the_current(value: dict[str, object], counts: bool) -> None:
    assert belongs(value, "e1") is counts


@pytest.mark.parametrize("garbage", [3, "", None, ["x"]])
def test_a_garbled_control_item_is_read_as_initial(garbage: object) -> None:
    store = FaultyStore()
    store.put(ADA.control, "control", {"epoch": garbage})
    assert run(store, read_epoch(ADA)) == INITIAL_EPOCH
