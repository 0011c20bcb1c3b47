"""Which part of a thread an unwritten turn is: never behind an erase, in another mode, or another turn's."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.store.memory import InMemoryStore

from memory.control import forget_thread, write_epoch, write_learning
from memory.effects import StoreEffects, run
from memory.namespaces import Owner
from memory.outbox.outbox import read_entries, remove
from memory.turn import Closing, MemoryMode, TurnEpochs, close_turn, with_mode
from memory.unwritten import MOST, MOST_TRIES, Unwritten, named, tried_again, unwritten_of

ADA = Owner.of("ada")
modes = st.sampled_from(["normal", "normal", "read_only", "incognito"])
NOW = 1_800_000_000.0


def unwritten(asked: str, **more: Any) -> Unwritten:
    given = {"asked": asked, "at": NOW, "owner": ADA.due_key, "epochs": TurnEpochs(), "is_read": True, **more}
    return Unwritten(**given)


def thread(turn_modes: list[MemoryMode]) -> list[BaseMessage]:
    messages: list[BaseMessage] = []
    for number, mode in enumerate(turn_modes):
        messages += [with_mode(HumanMessage(f"said {number}", id=f"q{number}"), mode)]
        messages += [with_mode(AIMessage(f"answer {number}", id=f"a{number}"), mode)]
    return messages


def new_of(closing: Closing | None) -> list[str]:
    """The ids of what the closing writes down for the first time, in a store where all may be learned."""
    store = InMemoryStore()
    if closing is None or run(store, close_turn(closing, NOW, 0.0)) is None:
        return []
    (entry,) = run(store, read_entries(ADA))
    return [message.id for message in entry.messages if not message.seen]


@given(st.lists(modes, min_size=1, max_size=6), st.data())
def test_it_is_its_own_turn_alone_or_nothing(turn_modes: list[MemoryMode], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(turn_modes) - 1))
    learn_from = data.draw(st.sampled_from(["", "gone", *(f"q{number}" for number in range(len(turn_modes)))]))
    closing = unwritten(f"q{at}").closing("T", ADA, thread(turn_modes), learn_from)
    is_erased = learn_from.startswith("q") and int(learn_from[1:]) > at
    learned = [f"q{at}", f"a{at}"] if turn_modes[at] == "normal" and not is_erased else []
    assert new_of(closing) == learned


def test_what_was_edited_away_or_is_another_users_is_not_written() -> None:
    said = thread(["normal"])
    assert new_of(unwritten("q1").closing("T", ADA, said, "")) == []
    assert unwritten("q0", owner=Owner.of("bob").due_key).closing("T", ADA, said, "") is None
    assert unwritten("q0", owner="nobody").closing("T", ADA, said, "") is None


class _Late:
    """One unwritten turn, and what happens in the store before it is written down."""

    def __init__(self, **more: Any) -> None:
        self.store = InMemoryStore()
        self.turn = unwritten("q0", at=4e9, **more)  # long after what the store says of its own writes

    def happens(self, effects: StoreEffects[Any], *, after: bool = True) -> "_Late":
        run(self.store, effects)
        if after:
            self.turn = unwritten("q0", at=NOW / 2, epochs=self.turn.epochs, is_read=self.turn.is_read)
        return self

    def is_written(self) -> bool:
        closing = self.turn.closing("T", ADA, thread(["normal"]), "")
        return closing is not None and run(self.store, close_turn(closing, NOW, 0.0)) is not None


KNOWN = {"epochs": TurnEpochs("initial", "initial", "0."), "is_read": True}
UNKNOWN = {"epochs": TurnEpochs(), "is_read": False}


def test_an_erase_after_it_cancels_it_also_where_nobody_read_its_epochs() -> None:
    for circumstances in (KNOWN, UNKNOWN):
        assert _Late(**circumstances).is_written()
        assert not _Late(**circumstances).happens(write_epoch(ADA, "new")).is_written()
        assert not _Late(**circumstances).happens(forget_thread(ADA, "T", "new", NOW)).is_written()


def test_an_erase_long_before_it_cancels_nothing_that_nobody_read() -> None:
    assert _Late(**UNKNOWN).happens(write_epoch(ADA, "new"), after=False).is_written()


def test_a_pause_that_may_have_held_then_cancels_it_even_if_it_is_over() -> None:
    late = _Late(**UNKNOWN).happens(write_learning(ADA, False)).happens(write_learning(ADA, True))
    assert not late.is_written()
    assert _Late(**KNOWN).happens(write_learning(ADA, False)).happens(write_learning(ADA, True)).is_written()
    assert not _Late(**KNOWN).happens(write_learning(ADA, False)).is_written()


def test_it_is_written_down_once_whatever_became_of_it() -> None:
    late = _Late(**KNOWN)
    assert late.is_written()
    run(late.store, remove(run(late.store, read_entries(ADA))))  # applied, or discarded by hand
    assert not late.is_written()
    assert run(late.store, read_entries(ADA)) == []


def test_it_is_said_when_it_was_said() -> None:
    late = _Late(**KNOWN)
    assert late.is_written()
    (entry,) = run(late.store, read_entries(ADA))
    assert (entry.created, entry.messages[0].time[:4]) == (4e9, "2096")


def test_edits_by_hand_come_after_what_nobody_read_the_number_of() -> None:
    closing = unwritten("q0", is_read=False).closing("T", ADA, thread(["normal"]), "")
    assert closing is not None
    assert closing.epochs.edit == "0."


@given(st.booleans(), st.floats(0, 1e10), st.text("abc", max_size=3))
def test_what_a_state_keeps_of_it_is_read_back(is_read: bool, at: float, model: str) -> None:
    turn = unwritten("q", at=at, is_read=is_read, model=model, epochs=TurnEpochs("e", "t", "3.ab"), tries=1)
    assert unwritten_of(named([turn])["unwritten"]) == (turn,)


@given(st.recursive(st.none() | st.text(max_size=3) | st.floats(), lambda inner: st.lists(inner, max_size=3)))
def test_what_a_client_wrote_there_is_left_out(kept: object) -> None:
    assert unwritten_of(kept) == ()
    assert unwritten_of([{"asked": "q", "at": "soon", "owner": 1, "x": kept}, kept]) == ()


def test_a_state_without_such_turns_says_nothing_of_them() -> None:
    assert named([]) == {}


def test_each_turn_is_named_once_and_the_oldest_go_where_there_are_too_many() -> None:
    turns = unwritten_of(named([unwritten(f"q{number % 250}") for number in range(500)])["unwritten"])
    assert [one.asked for one in turns] == [f"q{number}" for number in range(50, 250)]
    assert len(turns) == MOST


def test_a_turn_that_alone_fails_is_dropped_after_some_tries() -> None:
    left, tries = [unwritten("q")], 0
    while left:
        left, tries = tried_again(left[0]), tries + 1
    assert tries == MOST_TRIES
