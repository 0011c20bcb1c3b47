"""What `benchmarks.approval` counts: messages that wait, and how much of what answers questions is among them."""

from benchmarks.approval import Cost, cost, table
from benchmarks.quality_data import Question, Talk
from memory.recall import Document


def talk(name: str = "one") -> Talk:
    said = (
        ("a", "I have asthma.", False),
        ("b", "Since when?", True),
        ("c", "The boat is red.", False),
        ("d", "Noted.", True),
    )
    turns = (
        Document(id=each, text=text, session="chat", place=place, kind="turn", is_reply=is_reply)
        for place, (each, text, is_reply) in enumerate(said)
    )
    questions = (
        Question("What is wrong?", frozenset({"a"}), "one"),
        Question("What is known?", frozenset({"b", "c"}), "several"),
        Question("Which colour?", frozenset({"c"}), "one"),
    )
    return Talk(name, tuple(turns), (), questions)


def test_a_message_of_a_topic_and_the_reply_to_it_wait() -> None:
    assert cost([talk()], ["health"]) == Cost(messages=0.5, evidence=0.5, touched=2 / 3, lost=1 / 3)
    assert cost([talk()], ["money"]) == Cost(messages=0, evidence=0, touched=0, lost=0)


def test_messages_of_two_conversations_may_have_the_same_ids() -> None:
    assert cost([talk("one"), talk("two")], ["health"]) == cost([talk()], ["health"])


def test_the_table_has_a_row_for_each_topic_and_one_for_all() -> None:
    assert "| made up | health | 50% | 50% | 67% | 33% |" in table([("made up", [talk()])])
    assert table([("made up", [talk()])]).count("made up") == 4
