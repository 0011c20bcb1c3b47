"""What a process holds in memory to recall from: up to date without being rebuilt, and never with what is gone."""

from dataclasses import replace

from memory.facts.fact import Fact
from memory.journal import JournalEntry, JournalRevision, JournalView
from memory.message import StoredMessage
from memory.recall.user_index import Asked, UserIndex, UserIndexes

TIME = "2026-03-01T10:00:00+00:00"


def fact(number: int, content: str) -> Fact:
    return Fact(
        id=f"fact_{number:08}",
        content=content,
        category="knowledge",
        confidence=0.8,
        created_at=TIME,
        updated_at=TIME,
        thread_id="t",
        message_ids=(f"m{number}",),
    )


def entry(number: int, text: str) -> JournalEntry:
    said = (StoredMessage(f"m{number}", "user", text, TIME), StoredMessage(f"a{number}", "assistant", "I see", TIME))
    return JournalEntry("2026-03-01", "t", said, "e")


def view(revision: JournalRevision, *entries: JournalEntry, is_whole: bool = True, epoch: str = "e") -> JournalView:
    return JournalView(epoch, revision, {each.key: each for each in entries}, is_whole=is_whole)


def follow(index: UserIndex, seen: JournalView) -> None:
    for _ in index.follow_journal(seen):
        pass


def texts(index: UserIndex, query: str, revision: JournalRevision, epoch: str = "e") -> list[str]:
    return [hit.document.text for hit in index.recall(Asked(query), epoch, revision, "").hits]


ONE = JournalRevision("one")


def test_facts_follow_what_was_read() -> None:
    index = UserIndex()
    index.follow_facts([fact(1, "Plays the cello"), fact(2, "Owns a boat")])
    assert texts(index, "cello", ONE)[0] == "Plays the cello"

    index.follow_facts([fact(1, "Plays the oboe")])

    assert texts(index, "cello boat", ONE) == []
    assert texts(index, "oboe", ONE)[0] == "Plays the oboe"


def test_past_turns_are_found_with_the_entries_that_hold_them() -> None:
    index, told = UserIndex(), entry(1, "My cello is old")
    follow(index, view(ONE, told))
    index.follow_facts([fact(1, "Owns an instrument")])

    found = index.recall(Asked("cello"), "e", ONE, "")

    assert [hit.document.text for hit in found.hits][:2] == ["My cello is old", "Owns an instrument"]
    assert set(found.entries.values()) == {told.key}
    assert found.hits[0].document.when == "2026-03-01"


def test_what_changed_since_is_left_out_and_then_followed() -> None:
    index = UserIndex()
    first, second = entry(1, "My cello is old"), entry(2, "The cello was sold")
    follow(index, view(ONE, first, second))
    two = ONE.changed([second.key])

    assert texts(index, "cello", two) == ["My cello is old", "I see"]
    changed = replace(second, messages=(replace(second.messages[0], text="The oboe was sold"),))
    follow(index, view(two, changed, is_whole=False))
    assert texts(index, "cello sold", two)[:2] == ["The oboe was sold", "My cello is old"]


def test_what_is_kept_no_longer_takes_nothing_else_with_it() -> None:
    index = UserIndex()
    first, second = entry(1, "My cello is old"), entry(2, "The cello was sold")
    follow(index, view(ONE, first, second))
    two = ONE.changed([second.key])

    assert texts(index, "cello", two) == ["My cello is old", "I see"]
    follow(index, replace(view(two, is_whole=False), gone=frozenset({second.key})))
    assert texts(index, "cello", two) == ["My cello is old", "I see"]
    assert len(index) == 2


def test_an_erase_leaves_nothing() -> None:
    index = UserIndex()
    follow(index, view(ONE, entry(1, "My cello is old")))

    assert texts(index, "cello", ONE, epoch="erased") == []
    assert texts(index, "cello", JournalRevision("unknown")) == []
    follow(index, view(JournalRevision("new"), epoch="erased"))
    assert texts(index, "cello", JournalRevision("new"), epoch="erased") == []
    assert len(index) == 0


def test_what_a_view_does_not_change_is_not_indexed_again() -> None:
    index, told = UserIndex(), entry(1, "My cello is old")
    follow(index, view(ONE, told))
    steps = list(index.follow_journal(view(JournalRevision("two"), told)))

    assert steps == []
    assert texts(index, "cello", JournalRevision("two"))[0] == "My cello is old"


def test_users_who_were_served_longest_ago_make_room() -> None:
    indexes = UserIndexes(most_bytes=30_000)
    for user in range(10):
        indexes.of(user).follow_facts([fact(user, f"Plays instrument number {user} with great joy")])
    indexes.of(0)
    indexes.trim()

    assert indexes.holds(0)
    assert not indexes.holds(1)
    assert sum(indexes.of(user).size() for user in range(10) if indexes.holds(user)) <= 30_000
