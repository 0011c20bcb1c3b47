"""Whatever happens while summaries are written, a thread's state is one that asking in the turn could have made."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage

from graphs.turn.prepared import PreparedSummaries
from memory.context.budget import choose_cut
from memory.context.effects import summary_handlers
from memory.context.running_summary import WrittenSummary, divide, rehydrate
from memory.context.summarization import SummarizationNode
from memory.effects import Ask, perform
from memory.text import digest
from tests.fakes import RecordingModel
from tests.threads import Life, Thread, broken_pairs, newest_user, own_ids, word_counter, words

SHARE = 0.7
PROMPTS = ("Summarize.", "Summarize in German.")


def telling(prompt: list[BaseMessage]) -> str:
    """Summarize so that every word of the prompt counts, and nothing else."""
    return f"summary {digest(*(message.text for message in prompt))[:12]}"


@dataclass
class Ahead(Thread):
    """A thread whose summaries are written behind its turns, by a process that may lose them."""

    dice: Random = field(default_factory=Random)
    is_failing: bool = False
    prompt: str = PROMPTS[0]
    epoch: int = 0
    shares: tuple[float, ...] = (0.4, SHARE, 1.0)
    turn: Literal["", "before", "after"] = ""
    held: list[tuple["Future[Any]", Callable[[], Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kept = PreparedSummaries(30.0, limit=2, begin=self._hold)
        self.model = RecordingModel(respond=self._answer)
        self.choose()

    def choose(self, prompt: str | None = None, summarize: Literal["before", "after"] | None = None) -> None:
        self.prompt = prompt or self.prompt
        modes: list[Literal["before", "after"]] = [summarize] if summarize else ["before", "after"]
        self.node = SummarizationNode(
            model=self.model,
            max_tokens=self.max_tokens,
            max_summary_tokens=60,
            token_counter=self.counter,
            initial_summary_prompt=self.prompt,
            existing_summary_prompt=f"{self.prompt} {{existing_summary}}",
            memory_flush_hook=self._hook,
            prepared_summary=self._fetch,
            summarize=self.dice.choice(modes),
            output_messages_key="messages" if self.is_compact else "summarized_messages",
        )

    def _answer(self, prompt: list[BaseMessage]) -> str | Exception:
        assert self.turn != "after", "a turn waits for a summary"
        return TimeoutError("late") if self.is_failing and self.dice.random() < 0.3 else telling(prompt)

    def _hook(self, gone: list[BaseMessage]) -> None:
        if self.is_failing and self.dice.random() < 0.3:
            raise ConnectionError("down")
        self.flushed.extend(str(message.id) for message in gone)

    def _hold(self, write: Callable[[], Any]) -> "Future[Any]":
        self.held.append((Future(), write))
        return self.held[-1][0]

    def _fetch(self) -> WrittenSummary | None:
        waits = self.turn == "before"
        if waits:
            self.finish()
        return asyncio.run(self.kept.get("thread", (self.prompt, self.epoch), waits=waits))

    def finish(self, failing: bool = False) -> None:
        for future, write in self.held:
            try:
                if failing:
                    raise TimeoutError("late")
                future.set_result(write())
            except Exception as error:  # the model's
                future.set_exception(error)
        self.held.clear()

    def prepare(self) -> None:
        state = {"messages": [*self.messages], "context": dict(self.context)}
        node, share = self.node, self.dice.choice(self.shares)
        if leaving := node.leaves_soon(state, share):
            self.kept.start(
                "thread",
                (self.prompt, self.epoch),
                lambda begun, so_far: node.prepare(state, leaving, begun=begun, so_far=so_far),
                still_stands=lambda written: node.still_stands(state, written, leaving),
                of=("thread",),
            )

    def summarize(self) -> list[BaseMessage]:
        before, running = [*self.messages], rehydrate(self.context.get("running_summary"))
        self.turn = self.node.summarize
        view = super().summarize()
        self.turn = ""
        after = rehydrate(self.context.get("running_summary"))
        if after != running:
            conversation = divide(before, running)
            left = {message.id for message in divide(before, after).live}
            places = [at for at, message in enumerate(conversation.live) if message.id not in left]
            gone = [conversation.live[at] for at in places]
            handlers = {**summary_handlers(), Ask: lambda effect: telling(effect.prompt)}
            asked = perform(self.node.summarizer.prepare(gone, running), handlers)
            assert after == conversation.summarized(running, asked["summary"], places)
            if not self.is_failing:
                system = self.counter(conversation.system)
                keep = self.node.summarizer.budget.keep(system)
                due = choose_cut(conversation.live, self.counter.each(conversation.live), keep)
                assert places == due[: len(places)]
        return view

    def check(self, view: list[BaseMessage]) -> None:
        assert self.counter(view) <= self.max_tokens
        assert newest_user(self.messages) in own_ids(view)
        assert not broken_pairs(view, self.messages)
        assert len(self.flushed) == len(set(self.flushed))
        if not self.is_failing:
            assert own_ids(self.messages) - self.removed <= own_ids(view) | set(self.flushed)
        if self.node.summarize == "after" and not self.is_failing:
            running = rehydrate(self.context.get("running_summary"))
            is_all_shown = own_ids([*divide(self.messages, running).live]) <= own_ids(view)
            asked = {newest_user(self.messages)}
            assert is_all_shown or not own_ids(view) & (set(self.flushed) - asked)

    def edit(self) -> None:
        said = [message for message in self.messages if isinstance(message, HumanMessage)]
        old = self.dice.choice(said[-8:])
        self.say(HumanMessage(f"edited {old.text[:40]}", id=old.id))

    def meanwhile(self) -> None:
        """Let something happen between two turns."""
        chosen = self.dice.randrange(12)
        if chosen < 8:
            self.prepare()
        if chosen in (0, 1, 2, 3, 4, 10):
            self.finish()
        elif chosen == 5:
            self.finish(failing=True)
        elif chosen == 6:
            self.kept.drop("thread")
        elif chosen == 7:  # two other threads push this one's out
            for other in ("one", "two"):
                self.kept.start(other, 0, lambda *_: None, still_stands=lambda _: True)
        elif chosen == 8:  # erased, here or in another process
            self.epoch += 1
            if self.dice.random() < 0.5:
                self.kept.drop("thread")
        elif chosen == 11:
            self.edit()
        # A summary that a failing hook held up is used under other settings too, also where each turn waits.
        self.choose(self.dice.choice(PROMPTS) if chosen == 9 and not self.is_failing else None)


def live(seed: int, *, turns: int, compact: bool, failing: bool) -> Ahead:
    key = "messages" if compact else "summarized_messages"
    node = SummarizationNode(
        model=RecordingModel(), max_tokens=600, max_summary_tokens=60, token_counter=word_counter(),
        output_messages_key=key,
    )  # fmt: skip
    thread = Ahead(node, node.summarizer.counter, 600, dice=Random(seed), is_failing=failing)
    life = Life(thread, Random(seed + 1), 600, thread.check)
    for _ in range(turns):
        life.turn()
        thread.meanwhile()
    return thread


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**9), compact=st.booleans(), failing=st.booleans())
def test_each_cut_is_one_that_asking_in_the_turn_could_have_made(seed: int, compact: bool, failing: bool) -> None:
    live(seed, turns=40, compact=compact, failing=failing)


@pytest.mark.parametrize("summarize", ["before", "after"])
@pytest.mark.parametrize("edited", ["", "while it is written", "since"])
def test_a_summary_of_messages_that_were_edited_is_not_used(summarize: Literal["before", "after"], edited: str) -> None:
    """The lives above meet this by chance only."""
    node = SummarizationNode(model=RecordingModel(), max_tokens=600, token_counter=word_counter())
    thread = Ahead(node, node.summarizer.counter, 600, shares=(SHARE,))
    thread.choose(summarize=summarize)
    edit = HumanMessage(words(40, "edited"), id="h0")
    while not thread.held:
        thread.say(HumanMessage(words(40), id=f"h{len(thread.messages)}"))
        thread.summarize()
        thread.prepare()
    if edited == "while it is written":
        thread.say(edit)
    thread.finish()
    if edited == "since":
        thread.say(edit)
    thread.say(HumanMessage(words(300), id="due"))
    thread.check(thread.summarize())
    assert [cut.ready for cut in thread.cuts if cut.ready] == ([] if edited else [True])


def test_summaries_that_were_prepared_are_used_in_these_lives() -> None:
    thread = live(7, turns=150, compact=False, failing=False)
    assert sum(cut.ready for cut in thread.cuts) > 8
    assert sum(not cut.ready for cut in thread.cuts) > 2


@pytest.mark.parametrize("late", [0, 1, 3])
def test_over_a_long_conversation_hardly_a_prepared_summary_is_unused(late: int) -> None:
    """Written at once, or so many turns late: the summaries cost what they cost where each turn waits."""

    def lived(summarize: Literal["before", "after"], *, ahead: bool) -> tuple[int, int]:
        node = SummarizationNode(model=RecordingModel(), max_tokens=600, token_counter=word_counter())
        thread = Ahead(node, node.summarizer.counter, 600, shares=(SHARE,))
        thread.choose(summarize=summarize)
        dice, due = Random(5), 0
        for at in range(300):
            thread.say(HumanMessage(" ".join(["word"] * dice.randrange(5, 60)), id=f"h{at}"))
            thread.summarize()
            if ahead:
                thread.prepare()
                due = due + 1 if thread.held else 0
                if due > late:
                    thread.finish()
        tokens = sum(len(message.text.split()) for prompt in thread.model.prompts for message in prompt)
        return tokens, len(thread.cuts)

    tokens, cuts = lived("after", ahead=True)
    without, cuts_without = lived("before", ahead=False)
    assert cuts_without > 10
    assert tokens <= without * 1.1
    assert cuts <= cuts_without * 1.1
