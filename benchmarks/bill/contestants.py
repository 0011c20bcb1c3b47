"""Who is compared: the shipped graph, langmem, facts by confidence, and a bare graph with the full history.

All have the same fake models and the same budget. Each is an object with `turn` (one message and its answer) and
`calls_until` (what is due in the background before a moment).
"""

import asyncio
import json
import re
import uuid
from collections.abc import Sequence
from typing import Any, Protocol

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, SummarizationMiddleware, dynamic_prompt
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from benchmarks.bill.ledger import CountingModel, Ledger, Purpose
from benchmarks.bill.replay import ReplayTurn
from benchmarks.conversations import words
from benchmarks.langmem_graph import langmem_graph
from graphs.chat import build_graph
from graphs.process.embedders import NONE
from graphs.process.service import MemoryService
from graphs.settings import Settings
from memory import prompts
from memory.config import MemoryConfig
from memory.context.tokens import shared_counter
from memory.namespaces import Owner
from palimpsest import FactStore, MemoryData, aextract_facts, format_memory_for_injection
from tests.fakes import WordEmbeddings

USER = "replay"
SUMMARY_TOKENS, REPLY_TOKENS, MEMORY_TOKENS = 256, 1024, 2000
"""The shipped defaults, for everyone."""
_SUMMARY_WORDS = 150
_NEVER = 10 * 365 * 24 * 3600.0
_LINE = re.compile(r"^\[(\d+)\] user, [^:]*: (.*)$", re.MULTILINE)
_DAYS = re.compile(r"\s*\(\d{4}-\d\d[^)]*\)")
_CONFIDENCE = (0.95, 0.7, 0.85, 0.6, 0.9)
"""As models name it: mostly high."""


class Contestant(Protocol):
    """What is measured."""

    async def calls_until(self, moment: float) -> None:
        """Carry out what is due in the background before a moment."""

    async def turn(self, said: ReplayTurn) -> None:
        """Carry out one turn."""

    async def known(self) -> int:
        """Return how many facts it knows."""

    async def close(self) -> None:
        """Leave nothing running."""


class Models:
    """The fake models of one contestant, which answer from the replay and note what they were sent."""

    def __init__(self, replay: Sequence[ReplayTurn], ledger: Ledger) -> None:
        self._replay, self.ledger = replay, ledger
        self._facts = {_key(turn.text): turn.facts for turn in replay}
        self.chat = self._model(lambda _: "chat", lambda _: AIMessage(self._now().answer))
        self.summary = self._model(lambda _: "summary", lambda _: AIMessage(words(_SUMMARY_WORDS, ledger.turn)))
        # Where a summary is written with every turn, those that the graph writes beside it are no part of the bill.
        self.unlisted_summary = CountingModel(
            ledger=Ledger(), purpose=lambda _: "summary", reply=lambda _: AIMessage(words(_SUMMARY_WORDS, 0))
        )
        self.memory = self._model(_purpose_of_memory, self._update)
        self.tools = self._model(lambda _: "extraction", lambda _: self._tool_calls())

    def _model(self, purpose: Any, reply: Any) -> CountingModel:
        return CountingModel(ledger=self.ledger, purpose=purpose, reply=reply)

    def _now(self) -> ReplayTurn:
        return self._replay[self.ledger.turn]

    def _update(self, prompt: Sequence[BaseMessage]) -> AIMessage:
        """Answer as Palimpsest's memory model: what each numbered message tells, or an account for a roll-up."""
        if _purpose_of_memory(prompt) == "roll-up":
            return AIMessage(words(60, self.ledger.turn))
        found = [
            {
                "message": int(number),
                "action": "new",
                "known": 0,
                "content": fact,
                "category": "context",
                "confidence": _CONFIDENCE[len(fact) % len(_CONFIDENCE)],
            }
            for number, text in _LINE.findall(prompt[-1].text)
            for fact in self._facts.get(_key(text), ())
        ]
        # Who tells much says what occupies them now: models then rewrite that section of the profile.
        profile = [{"section": "topOfMind", "text": found[-1]["content"]}] if len(found) > 2 else []
        return AIMessage(json.dumps({"facts": found, "profile": profile}))

    def _tool_calls(self) -> AIMessage:
        """Answer as langmem's memory model: a call of the tool `Memory` for each fact."""
        calls = [
            {"name": "Memory", "args": {"content": fact}, "id": str(uuid.UUID(int=at + 1))}
            for at, fact in enumerate(self._now().facts)
        ]
        return AIMessage("", tool_calls=calls)


def _key(text: str) -> str:
    """Return what tells a message from others, whatever dates were added to it."""
    return re.sub(r"\W+", "", _DAYS.sub("", text).lower())[:60]


def _purpose_of_memory(prompt: Sequence[BaseMessage]) -> Purpose:
    return "roll-up" if prompt[0].text.startswith(prompts.ROLL_UP[:40]) else "extraction"


class Palimpsest:
    """The shipped chat graph. Its updates run when the shipped times say, by the replay's clock.

    Args:
        models: The fake models.
        max_tokens: The budget of a prompt.
        every_turn: Instead, extract after every turn, and rewrite the summary with every turn.
    """

    def __init__(self, models: Models, max_tokens: int, *, every_turn: bool = False) -> None:
        self._models, self._every_turn = models, every_turn
        self._shipped = MemoryConfig()
        # The queue of the process never starts one: the replay's clock does.
        quiet = MemoryConfig(
            debounce_seconds=_NEVER, max_wait_seconds=_NEVER, update_spacing_seconds=0.0, prepare_summary_share=1.0,
            read_timeout_seconds=600.0, write_timeout_seconds=600.0,  # a busy machine changes no figure
        )  # fmt: skip
        self._now = 0.0
        summary = models.unlisted_summary if every_turn else models.summary
        of_purpose = {"chat": models.chat, "summary": summary, "memory": models.memory}
        self._service = MemoryService(
            Settings(model="fake:model", memory=quiet, embedder=NONE),
            lambda _, purpose: of_purpose[purpose],
            clock=lambda: self._now,
        )
        self.store = InMemoryStore()
        self._owner = Owner.of(USER)
        self._graph = build_graph(service=self._service, tools=()).compile(
            checkpointer=InMemorySaver(), store=self.store
        )
        self._context: Any = {"max_tokens": max_tokens}
        self._first = self._due = 0.0  # of what waits: since when, until when
        self._day = 0
        self._summary = ""

    async def calls_until(self, moment: float) -> None:
        if self._due and self._due <= moment:
            self._now, self._due = max(self._now, self._due), 0.0
            await self._service.adrain(self.store, self._owner)
            await self._follow()
        if int(moment // 86_400) > self._day:
            self._now, self._day = max(self._now, moment), int(moment // 86_400)
            await self._service.work(self.store, lambda updater: updater.roll_up(self._owner))

    async def turn(self, said: ReplayTurn) -> None:
        self._now = max(self._now, said.at)
        who: RunnableConfig = {"configurable": {"thread_id": USER, "langgraph_auth_user_id": USER}}
        await self._graph.ainvoke({"messages": [HumanMessage(said.text)]}, who, context=self._context)
        await self._follow()
        if self._every_turn:
            await self._service.adrain(self.store, self._owner)
            await self._follow()
            await self._rewrite_summary(said)
        else:
            self._first = self._first if self._due else self._now
            self._due = min(self._now + self._shipped.debounce_seconds, self._first + self._shipped.max_wait_seconds)

    async def _follow(self) -> None:
        """Wait until what is recalled from is up to date: a user's next words come later than that."""
        await asyncio.wrap_future(self._service.recalling.behind.ask(self.store, self._owner))

    async def _rewrite_summary(self, said: ReplayTurn) -> None:
        wish = prompts.INITIAL_SUMMARY if not self._summary else prompts.UPDATE_SUMMARY
        asked = HumanMessage(wish.format(existing_summary=self._summary, max_words=_SUMMARY_WORDS))
        answer = await self._models.summary.ainvoke([HumanMessage(said.text), AIMessage(said.answer), asked])
        self._summary = answer.text

    async def known(self) -> int:
        return len(await FactStore(self.store, self._owner).alist())

    async def close(self) -> None:
        await asyncio.to_thread(self._service.close, 0.0)


class Bare:
    """A graph of one node that sends the model everything."""

    def __init__(self, models: Models) -> None:
        async def call(state: MessagesState) -> dict[str, Any]:
            return {"messages": [await models.chat.ainvoke([SystemMessage(prompts.SYSTEM), *state["messages"]])]}

        builder = StateGraph(MessagesState)
        builder.add_node("call_model", call)
        builder.add_edge(START, "call_model")
        self._graph: Any = builder.compile(checkpointer=InMemorySaver())

    async def calls_until(self, moment: float) -> None:
        """Nothing is ever due."""

    async def turn(self, said: ReplayTurn) -> None:
        await _say(self._graph, said)

    async def known(self) -> int:
        return 0

    async def close(self) -> None:
        """Nothing runs."""


async def _say(graph: Any, said: ReplayTurn) -> None:
    asked = HumanMessage(said.text, id=str(uuid.uuid4()))
    await graph.ainvoke({"messages": [asked]}, {"configurable": {"thread_id": USER}})


class Langmem:
    """langmem as its documentation shows it: its node before the model, what it finds for the message in the system
    prompt, its store manager after every turn.
    """

    def __init__(self, models: Models, max_tokens: int) -> None:
        from langmem import create_memory_store_manager

        # Words stand in for an embedder: what is found by meaning changes as often.
        self.store = InMemoryStore(index={"dims": 32, "embed": WordEmbeddings()})
        self._manager = create_memory_store_manager(models.tools, namespace=("memories", USER), store=self.store)

        async def answer(view: Sequence[AnyMessage]) -> BaseMessage:
            found = await self.store.asearch(("memories", USER), query=view[-1].text)
            known = "\n".join(str(item.value["content"]) for item in found)
            system = f"{prompts.SYSTEM}\n\n<memories>\n{known}\n</memories>"
            return await models.chat.ainvoke([SystemMessage(system), *view])

        self._graph = langmem_graph(models.summary, max_tokens - REPLY_TOKENS, SUMMARY_TOKENS, answer)

    async def calls_until(self, moment: float) -> None:
        """All was done with the turn."""

    async def turn(self, said: ReplayTurn) -> None:
        await _say(self._graph, said)
        await self._manager.ainvoke({"messages": [HumanMessage(said.text), AIMessage(said.answer)]})

    async def known(self) -> int:
        return len(await self.store.asearch(("memories", USER), limit=10_000))

    async def close(self) -> None:
        """Nothing runs."""


class ByConfidence:
    """An agent with the strongest facts in its system prompt, and langchain's summaries; it extracts every turn."""

    def __init__(self, models: Models, max_tokens: int) -> None:
        self.store, self._models = InMemoryStore(), models
        self._facts = FactStore(self.store, USER)

        @dynamic_prompt
        async def with_facts(_: ModelRequest[Any]) -> str:
            known = format_memory_for_injection(
                MemoryData(facts=await self._facts.alist()), min(MEMORY_TOKENS, max_tokens // 4)
            )
            return f"{prompts.SYSTEM}\n\n{prompts.MEMORY_BLOCK.format(memory=known)}"

        count: Any = shared_counter()
        limit = max_tokens - REPLY_TOKENS - min(MEMORY_TOKENS, max_tokens // 4)
        summarize = SummarizationMiddleware(
            model=models.summary, trigger=("tokens", limit), keep=("tokens", limit // 2), token_counter=count
        )
        self._graph = create_agent(
            models.chat, tools=[], middleware=[summarize, with_facts], checkpointer=InMemorySaver()
        )

    async def calls_until(self, moment: float) -> None:
        """All was done with the turn."""

    async def turn(self, said: ReplayTurn) -> None:
        await _say(self._graph, said)
        heard = [HumanMessage(said.text, id="asked"), AIMessage(said.answer, id="answered")]
        found = await aextract_facts(self._models.memory, heard, existing=await self._facts.alist())
        for change in found.changes:
            if change.action == "new":
                await self._facts.acreate(change.content, change.category, change.confidence)

    async def known(self) -> int:
        return len(await self._facts.alist())

    async def close(self) -> None:
        """Nothing runs."""
