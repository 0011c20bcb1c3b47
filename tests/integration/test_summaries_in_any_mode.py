"""A chat's state is one that asking for each summary in the turn could have made, whatever happens between turns.

Summaries are written ahead of time while turns are edited, forked, said in other memory modes, and erased.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from random import Random
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from memory.context.budget import choose_cut
from memory.context.effects import summary_handlers
from memory.context.running_summary import divide, rehydrate
from memory.context.summarization import SummarizationNode
from memory.context.tokens import TokenCounter, shared_counter
from memory.effects import Ask, in_daemon_thread, perform
from memory.erase import aerase_thread
from memory.namespaces import user_segment
from memory.text import digest
from memory.turn import MemoryMode, effective_mode, mode_of_newest, with_mode
from tests.forgetting import aerase_user
from tests.summary_chat import CONTEXT, Chat
from tests.threads import varied

MODES: list[MemoryMode] = ["normal", "read_only", "incognito"]
UNLEARNED = "unlearned"


class Marked(Chat):
    """A chat whose summaries tell what they were made of: which prompt, in which mode, and after how many erases."""

    def __init__(self, dice: Random, transcript: Literal["keep", "compact"]) -> None:
        self.dice, self.transcript = dice, transcript
        self.erased, self.known, self.said, self.number, self.ready, self.asked = 0, 0, 0, 0, 0, 0
        self.run_mode: MemoryMode = "normal"
        self.mark = self.preparing = ""
        self.held: list[tuple[Future[Any], Callable[[], Any], str]] = []
        super().__init__(begin=self._hold)
        self.answers.respond = self._reply
        self.summaries.respond = lambda prompt: self.told(prompt, self.mark)
        self.place = super().config()

    def told(self, prompt: Any, mark: str) -> str:
        return f"summary {digest(*(message.text for message in prompt))[:12]} {mark}"

    def _reply(self, prompt: list[BaseMessage]) -> str:
        return f"{self.word} {varied(25, 'answer')}"

    def config(self) -> RunnableConfig:
        return self.place

    def _hold(self, write: Callable[[], Any]) -> "Future[Any]":
        self.held.append((Future(), write, self.preparing))
        return self.held[-1][0]

    async def finish(self, *, failing: bool = False) -> None:
        for future, write, mark in self.held:
            self.mark = mark
            try:
                if failing:
                    raise TimeoutError("late")
                future.set_result(await asyncio.wrap_future(in_daemon_thread(write)))
            except Exception as error:  # the model's
                future.set_exception(error)
        self.held.clear()

    async def say(self, number: int, summarize: Literal["before", "after"], *, is_edit: bool) -> None:
        """Let one turn pass, in some mode of its run and of its message, and see what it did to the state."""
        before = await self.state()
        run_mode, of_message = self.run_mode, self.dice.choice([*MODES[:1] * 6, *MODES])
        if is_edit:  # in its place: what is answered then is the thread's newest question, in the mode of that one
            run_mode, of_message = "normal", mode_of_newest(before["messages"])
        mode = effective_mode(run_mode, of_message)
        self.mark = self.preparing = f"{self.erased}{'i' if mode == 'incognito' else ''}"
        self.word = f"era{self.erased}" if mode == "normal" else UNLEARNED
        question = with_mode(HumanMessage(f"{self.word} {number} {varied(25)}", id=f"h{number}"), of_message)
        if summarize == "before":  # such a turn waits for what is still written
            await self.finish()
            self.mark = self.preparing
        context = replace(CONTEXT, memory_mode=run_mode, summarize=summarize, transcript=self.transcript)
        ready = False
        streamed: Any = {"context": context, "stream_mode": ["custom", "values"]}
        async for kind, part in self.graph.astream({"messages": [question]}, self.config(), **streamed):
            event: Any = part
            ready = ready or (kind == "custom" and event["name"] == "memory.summarized" and event["payload"]["ready"])
        self.said = self.erased
        self.place = super().config()  # the newest state, also after a fork
        self.check(before, await self.state(), question, is_incognito=mode == "incognito", is_ready=ready)

    def check(
        self, state: dict[str, Any], after: dict[str, Any], question: BaseMessage, *, is_incognito: bool, is_ready: bool
    ) -> None:
        kept = state.get("messages", [])
        at = next((at for at, message in enumerate(kept) if message.id == question.id), len(kept))
        messages = [*kept[:at], question, *kept[at + 1 :]]
        before = rehydrate(state.get("context", {}).get("running_summary"))
        now = rehydrate(after.get("context", {}).get("running_summary"))
        if now != before and now is not None:
            self.ready, self.asked = self.ready + is_ready, self.asked + (not is_ready)
            conversation = divide(messages, before)
            left = {message.id for message in divide(messages, now).live}
            places = [at for at, message in enumerate(conversation.live) if message.id not in left]
            node = self._synchronous(after["memory"]["receipt"]["messages_budget"])
            # What an incognito turn prepared may be in no other turn's summary, what was said before an erase in none.
            # A run that does not learn reads no epochs: it knows of this process's erases, not of another's.
            erases = range(self.erased if self.run_mode == "normal" else self.known, self.erased + 1)
            marks = [f"{erased}{mark}" for erased in erases for mark in ("", "i")[: 1 + is_incognito]]
            gone = [conversation.live[at] for at in places]
            could = [conversation.summarized(before, self._asked(node, gone, before, mark), places) for mark in marks]
            assert now in could
            keep = node.summarizer.budget.keep(node.summarizer.counter(conversation.system))
            due = choose_cut(conversation.live, node.summarizer.counter.each(conversation.live), keep)
            assert places == due[: len(places)]
        # The store: nothing that may not be learned, nothing from before an erase.
        stored = str([item.value for item in self.store.search((), limit=10_000)])
        assert UNLEARNED not in stored
        assert not [era for era in range(self.erased) if f"era{era} " in stored]
        assert shared_counter()(self.answers.prompts[-1]) <= CONTEXT.max_tokens

    def _synchronous(self, budget: int) -> SummarizationNode:
        return SummarizationNode(
            model=self.summaries,
            max_tokens=budget,
            max_summary_tokens=min(CONTEXT.max_summary_tokens, budget // 2),
            token_counter=TokenCounter.of(None),
            initial_summary_prompt=CONTEXT.initial_summary_prompt,
            existing_summary_prompt=CONTEXT.update_summary_prompt,
            output_messages_key="messages" if self.transcript == "compact" else "summarized_messages",
        )

    def _asked(self, node: SummarizationNode, gone: list[BaseMessage], before: Any, mark: str) -> Any:
        handlers = {**summary_handlers(), Ask: lambda effect: self.told(effect.prompt, mark)}
        return perform(node.summarizer.prepare(gone, before), handlers)["summary"]

    async def meanwhile(self) -> None:
        """Let something happen between two turns."""
        happens = [*["finish"] * 5, "fail", "drop", *["erase"] * 3, *["mode"] * 2, "fork", "", ""]
        chosen = self.dice.choice(happens)
        if chosen == "finish":
            await self.finish()
        elif chosen == "fail":
            await self.finish(failing=True)
        elif chosen == "drop":
            self.service.summaries.drop("t")
        elif chosen == "erase":
            await self.erase()
        elif chosen == "mode":
            self.run_mode = self.dice.choice(MODES)
        elif chosen == "fork":
            states = [state async for state in self.graph.aget_state_history(super().config(), limit=20)]
            ends = [state.config for state in states if not state.next and state.values.get("messages")]
            fork = self.dice.choice(ends)["configurable"]["checkpoint_id"]
            self.place = {"configurable": {**super().config()["configurable"], "checkpoint_id": fork}}

    async def erase(self) -> None:
        """Erase the user or the thread, here or in another process."""
        whole = self.dice.random() < 0.5
        await (aerase_user(self.store, "ada") if whole else aerase_thread(self.store, "t"))
        self.erased += 1
        if self.dice.random() < 0.3:
            self.service.forget(user_segment("ada") if whole else "t")
            self.known = self.erased

    async def live(self, turns: int) -> None:
        for _ in range(turns):
            said = [message.id for message in (await self.state()).get("messages", []) if message.type == "human"]
            # In its place: what follows it stays. Where that was said before an erase, it would be answered again.
            is_newest = self.said == self.erased and self.place == super().config()
            is_edit = len(said) > 2 and is_newest and self.dice.random() < 0.2
            number = int(str(self.dice.choice(said[-4:]))[1:]) if is_edit else self.number
            self.number += not is_edit
            await self.say(number, self.dice.choice(["before", "after"]), is_edit=is_edit)
            await self.meanwhile()
        self.service.close(0.0)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**9), transcript=st.sampled_from(["keep", "compact"]))
def test_each_state_is_one_that_asking_in_the_turn_could_have_made(seed: int, transcript: Any) -> None:
    asyncio.run(Marked(Random(seed), transcript).live(25))


@pytest.mark.parametrize("transcript", ["keep", "compact"])
async def test_in_these_lives_summaries_are_used_that_were_ready_and_others_asked_for(transcript: Any) -> None:
    chat = Marked(Random(3), transcript)
    await chat.live(60)
    assert chat.erased >= 2
    assert min(chat.ready, chat.asked) >= 2
