from hypothesis import given
from hypothesis import strategies as st

from memory.message import Role, StoredMessage
from memory.text import flush_hash
from memory.updates.transcript import hashes_of, unseen

NOW = "2026-11-22T10:00:00+00:00"


def said(name: str, role: Role, text: str) -> StoredMessage:
    return StoredMessage(name, role, text, NOW)


def user(name: str, text: str) -> StoredMessage:
    return said(name, "user", text)


def reply(name: str, text: str) -> StoredMessage:
    return said(name, "assistant", text)


def hashes(*messages: StoredMessage) -> set[str]:
    return {flush_hash(message.role, message.text) for message in messages}


def ids(messages: tuple[StoredMessage, ...]) -> list[str]:
    return [message.id for message in messages]


def test_B6_a_new_question_keeps_its_yes_and_a_new_yes_its_question_though_that_was_read_before() -> None:
    talk = (user("1", "hm"), reply("2", "Do you smoke?"), user("3", "yes"), reply("4", "ok"))
    first, _, *later = (known[-1] for known in hashes_of(talk))
    asked = [(one.id, one.seen) for one in unseen(talk, {first, *later})]
    assert {("3", True), ("2", False)} <= {*asked}
    left = unseen(talk, hashes(*talk[:2]))
    assert [(one.id, one.seen) for one in left] == [("2", True), ("3", False), ("4", False)]


messages_strategy = st.lists(
    st.builds(said, st.integers(0, 30).map(str), st.sampled_from(["user", "assistant"]), st.sampled_from("abcdef")),
    max_size=20,
    unique_by=lambda message: message.id,
).map(tuple)


@given(messages_strategy, st.sets(st.sampled_from("abcdef")))
def test_B6_every_new_message_is_kept_and_nothing_stays_without_a_new_one(
    talk: tuple[StoredMessage, ...], flushed: set[str]
) -> None:
    known = {flush_hash(role, text) for role in ("user", "assistant") for text in flushed}
    left = unseen(talk, known)
    new = [one.id for one in talk if flush_hash(one.role, one.text) not in known]
    assert [one.id for one in left if not one.seen] == new
    assert ids(left) == [one.id for one in talk if one.id in ids(left)]
    assert bool(left) == bool(new)
