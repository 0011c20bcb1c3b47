"""The summarizing node, and the traps in which earlier ones were caught."""

import logging
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages

from memory.context.running_summary import rehydrate
from memory.context.summarization import SUMMARY_ID, RunningSummary, SummarizationNode, summarize_messages
from tests.fakes import RecordingModel
from tests.summarizing import ai, human, make_node, parallel_calls, saying, summarize, talk
from tests.threads import broken_pairs, newest_user, own_ids, word_counter, words


def test_trap_1_parallel_tool_calls_are_never_split() -> None:
    for limit in range(60, 220, 5):
        result = summarize(parallel_calls(), max_tokens=limit, max_summary_tokens=20)
        assert broken_pairs(result.messages, parallel_calls()) == []


def test_trap_2_a_question_larger_than_the_budget_is_still_there_shortened(caplog: pytest.LogCaptureFixture) -> None:
    messages = [*talk(3)[:-1], human("h9", 5000)]
    result = summarize(messages)
    assert newest_user(result.messages) == "h9"
    assert "left out" in result.messages[-1].text
    assert word_counter()(result.messages) <= 200
    assert len(messages[-1].text.split()) == 5000
    assert any(record.levelno == logging.WARNING for record in caplog.records)


def test_trap_4_a_system_message_larger_than_the_budget_does_not_break_it(caplog: pytest.LogCaptureFixture) -> None:
    result = summarize([SystemMessage(words(900)), *talk(5)])
    assert isinstance(result.messages[0], SystemMessage)
    assert word_counter()(result.messages) <= 200
    assert newest_user(result.messages) == "h5"
    assert "system message" in caplog.text


def test_trap_4_many_small_system_messages_do_not_break_it_either() -> None:
    rules = [SystemMessage(f"rule {number} {words(8)}", id=f"s{number}") for number in range(100)]
    result = summarize([*rules, *talk(3)], max_tokens=300)
    assert word_counter()(result.messages) <= 300
    assert newest_user(result.messages) == "h3"
    assert "s99" in [message.id for message in result.messages]


def test_trap_5_the_existing_summary_counts_before_the_next_cut() -> None:
    running = RunningSummary(words(38), {"h0"}, "h0")
    exact = talk(5, 15)  # nine messages of 19 tokens, which without the summary fit 200
    result = summarize(exact, running_summary=running)
    assert result.cut is not None
    assert word_counter()(result.messages) <= 200


@pytest.mark.parametrize("lost", [1, 3], ids=["the last summarized one", "three of them"])
def test_trap_6_a_summarized_message_that_is_gone_breaks_nothing_and_none_comes_back(lost: int) -> None:
    first = summarize(talk(5)).running_summary
    assert first is not None
    gone = [m.id for m in talk(5) if m.id in first.summarized_message_ids][-lost:]
    assert first.last_summarized_message_id in gone
    calls: list[str] = []
    for turns, max_tokens in ((6, 200), (9, 200), (9, 1000)):
        result = summarize(
            [m for m in talk(turns) if m.id not in gone],
            running_summary=first,
            max_tokens=max_tokens,
            memory_flush_hook=lambda leaving: calls.extend(str(m.id) for m in leaving),
        )
        assert not own_ids(result.messages) & first.summarized_message_ids
        assert newest_user(result.messages) == f"h{turns}"
    assert calls
    assert not set(calls) & first.summarized_message_ids


def test_trap_6_an_edited_message_breaks_nothing() -> None:
    first = summarize(talk(5)).running_summary
    edited = [HumanMessage("edited", id="h1"), *talk(6)[1:]]
    assert summarize(edited, running_summary=first).running_summary is first


def test_trap_7_a_message_without_an_id_is_given_one_that_stays() -> None:
    talk_on = [*talk(2), HumanMessage("no id")]
    first, again = summarize(talk_on).messages[-1], summarize([*talk_on, HumanMessage("no id")]).messages[-2:]
    assert first.id
    assert (first.id == again[0].id, first.id == again[1].id) == (True, False)


@pytest.mark.parametrize(
    "context", [None, {}, {"running_summary": None}, {"running_summary": 7}, {"theme": "dark"}, "x"]
)
def test_trap_8_anything_may_stand_under_context(context: Any) -> None:
    node = make_node()
    update = node.invoke({"messages": talk(5), "context": context})
    assert isinstance(update["context"]["running_summary"], RunningSummary)
    assert ("theme" in update["context"]) == (context == {"theme": "dark"})


@pytest.mark.parametrize("share", [200, 256])
def test_trap_9_a_share_as_large_as_the_budget_is_refused(share: int) -> None:
    with pytest.raises(ValueError, match="max_summary_tokens"):
        summarize(talk(1), max_summary_tokens=share)


def test_trap_10_11_same_key_keeps_one_system_message_and_one_summary_of_a_stable_id() -> None:
    node, context = make_node(compact=True), dict[str, Any]()
    messages: Any = [SystemMessage("Be brief.", id="s")]
    for turn in range(1, 30):
        messages = add_messages(messages, human(f"h{turn}"))
        update = node.invoke({"messages": messages, "context": context})
        messages, context = add_messages(messages, update["messages"]), update.get("context", context)
        messages = add_messages(messages, ai(f"a{turn}"))
    assert [m.id for m in messages if isinstance(m, SystemMessage)] == ["s", SUMMARY_ID]


def test_trap_12_a_summary_in_content_blocks_becomes_its_text() -> None:
    blocks = AIMessage([{"type": "text", "text": "Ada lives in Bergen."}])
    result = summarize(talk(5), saying(blocks))
    assert result.running_summary is not None
    assert result.running_summary.summary == "Ada lives in Bergen."


def test_C7_the_node_reads_and_writes_its_keys() -> None:
    update = make_node(input_messages_key="talk").invoke({"talk": talk(5), "context": {}})
    assert update["summarized_messages"][0].id == SUMMARY_ID
    assert update["context"]["running_summary"].summary == "what was said"
    with pytest.raises(ValueError, match="talk"):
        make_node(input_messages_key="talk").invoke({"messages": talk(5)})


def test_C7_the_calls_for_a_summary_are_kept_out_of_the_messages_stream() -> None:
    node = make_node()
    node.invoke({"messages": talk(5)})
    assert isinstance(node.model, RecordingModel)
    assert "nostream" in node.model.tags_seen[0]


def test_C8_with_one_key_all_messages_are_removed_then_the_new_list_follows() -> None:
    update = make_node(compact=True).invoke({"messages": talk(5), "context": {}})
    first, summary, *rest = update["messages"]
    assert isinstance(first, RemoveMessage)
    assert first.id == REMOVE_ALL_MESSAGES
    assert summary.id == SUMMARY_ID
    assert rest == talk(5)[-len(rest) :]


def test_C8_what_is_shortened_for_the_model_stays_whole_in_the_state() -> None:
    messages = [*talk(3)[:-1], human("h9", 5000)]
    update = make_node(compact=True).invoke({"messages": messages, "context": {}})
    assert update["messages"][-1] == messages[-1]


def test_langmems_templates_and_counter_are_taken() -> None:
    model = saying()
    result = summarize_messages(
        talk(5),
        running_summary=None,
        model=model,
        max_tokens=6,
        max_summary_tokens=1,
        token_counter=lambda messages: len(list(messages)),
        initial_summary_prompt=ChatPromptTemplate.from_messages([("placeholder", "{messages}"), ("user", "Sum up:")]),
        final_prompt=ChatPromptTemplate.from_messages(
            [("placeholder", "{system_message}"), ("user", "Earlier: {summary}"), ("placeholder", "{messages}")]
        ),
    )
    assert model.prompts[0][-1].text.endswith("\n\nSum up:")
    assert [m.text.split()[0] for m in model.prompts[0]][:2] == ["h1", "a1"]
    assert result.messages[0].text == "Earlier: what was said"
    assert result.messages[0].id == SUMMARY_ID
    assert len(result.messages) <= 6


STORED = {"summary": "Ada", "summarized_message_ids": ["a", "b"], "last_summarized_message_id": "b"}


@pytest.mark.parametrize("ids", [["a", "b"], ("a", "b"), {"a", "b"}])
def test_a_running_summary_comes_back_from_whatever_a_saver_made_of_it(ids: Any) -> None:
    assert rehydrate({**STORED, "summarized_message_ids": ids}) == RunningSummary("Ada", {"a", "b"}, "b")


@pytest.mark.parametrize(
    "value", [None, 7, "Ada", [], {}, {"summary": ""}, {"summary": 3}, {"theme": "dark"}, object()]
)
def test_what_is_no_running_summary_is_none(value: object) -> None:
    assert rehydrate(value) is None


def turn_of_tools(node: SummarizationNode, question: str, state: dict[str, Any], steps: int) -> None:
    """Go through a turn over the budget in which the node runs before each of several calls of a tool."""
    state["messages"] = add_messages(state["messages"], human(question))
    for step in range(steps):
        state |= {key: value for key, value in node.invoke(state).items() if key != "messages"}
        assert word_counter()(state["summarized_messages"]) <= 200
        assert newest_user(state["summarized_messages"]) == question
        call = {"name": "look", "args": {}, "id": f"{question}-{step}"}
        asked = AIMessage("", tool_calls=[call], id=f"a-{question}-{step}")
        found = ToolMessage(words(10), tool_call_id=call["id"], id=f"t-{question}-{step}")
        state["messages"] = [*state["messages"], asked, found]


def test_a_summary_that_failed_is_not_asked_for_again_before_the_next_turn() -> None:
    model = saying(ConnectionError("down"))
    node = SummarizationNode(model=model, max_tokens=200, max_summary_tokens=40, token_counter=word_counter())
    state: dict[str, Any] = {"messages": talk(8), "context": {"theirs": 1}}
    turn_of_tools(node, "q1", state, steps=4)
    assert len(model.prompts) == 1
    turn_of_tools(node, "q2", state, steps=4)
    assert len(model.prompts) == 2
    model.respond = lambda _: "what was said"
    turn_of_tools(node, "q3", state, steps=1)
    assert state["context"]["running_summary"].summary == "what was said"
    assert set(state["context"]) == {"theirs", "running_summary"}


def test_a_hook_that_failed_is_asked_in_the_next_turn_with_the_summary_that_exists() -> None:
    works, flushed = False, list[str]()

    def hook(gone: list[BaseMessage]) -> None:
        if not works:
            raise ConnectionError("down")
        flushed.extend(str(message.id) for message in gone)

    model = saying()
    node = SummarizationNode(
        model=model, max_tokens=200, max_summary_tokens=40, token_counter=word_counter(), memory_flush_hook=hook
    )
    state: dict[str, Any] = {"messages": talk(8), "context": {}}
    turn_of_tools(node, "q1", state, steps=1)
    asked = len(model.prompts)
    assert asked > 0
    for turn in range(20):
        turn_of_tools(node, f"q{turn + 2}", state, steps=3)
    assert len(model.prompts) == asked
    works = True
    turn_of_tools(node, "late", state, steps=1)
    assert len(model.prompts) == asked
    assert flushed[:2] == ["h1", "a1"]
    # What was said meanwhile does not fit beside it: the next summary takes it in.
    assert set(state["context"]) == {"running_summary", "left_out"}
    turn_of_tools(node, "later", state, steps=1)
    assert len(model.prompts) > asked
    assert len(flushed) == len(set(flushed))


def test_a_summary_that_waits_for_the_hook_is_not_used_once_its_messages_were_edited() -> None:
    def hook(gone: list[BaseMessage]) -> None:
        raise ConnectionError("down")

    model = saying()
    node = SummarizationNode(
        model=model, max_tokens=200, max_summary_tokens=40, token_counter=word_counter(), memory_flush_hook=hook
    )
    state: dict[str, Any] = {"messages": talk(8), "context": {}}
    turn_of_tools(node, "q1", state, steps=1)
    asked = len(model.prompts)
    state["messages"] = add_messages(state["messages"], human("h1", 30))
    turn_of_tools(node, "q2", state, steps=1)
    assert len(model.prompts) > asked
