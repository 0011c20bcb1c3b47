"""What stands in the prompts that the shipped graph sends, in the first turn of a thread and in the second."""

import asyncio
import random
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from pydantic import Field

from benchmarks.quality_data import Talk
from benchmarks.quality_report import OURS, SEED, Rows
from graphs.chat import build_graph
from graphs.embedders import NONE
from graphs.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from memory.config import MemoryConfig
from memory.control import INITIAL_EPOCH
from memory.effects import run
from memory.facts.fact import Fact, fact_id, fact_key, to_item
from memory.injection.block import escape
from memory.journal import JournalEntry, append
from memory.message import StoredMessage
from memory.namespaces import Owner

QUESTIONS = 10
OWNER = Owner.of("local")


class Recorder(BaseChatModel):
    """A model that answers at once and keeps the last prompt."""

    last: list[BaseMessage] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "recorder"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **more: Any,
    ) -> ChatResult:
        self.last = messages
        return ChatResult(generations=[ChatGeneration(message=AIMessage("I see."))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **more: Any,
    ) -> ChatResult:
        return self._generate(messages)


def filled(talk: Talk, *, with_turns: bool) -> InMemoryStore:
    """Return a store with a talk's facts, and its messages in the journal, as updates would have left them."""
    store = InMemoryStore()
    for number, document in enumerate(talk.facts):
        fact = Fact(
            id=fact_id(talk.name, document.text, number),
            content=document.text,
            category="knowledge",
            confidence=0.8,
            created_at=f"{document.when}+00:00",
            updated_at=f"{document.when}+00:00",
            source="conversation",
            epoch=INITIAL_EPOCH,
            thread_id=document.session,
            message_ids=document.sources,
        )
        store.put(OWNER.namespace("facts"), fact_key(document.text, number), to_item(fact))
    if with_turns:
        run(store, append(OWNER, list(_entries(talk))))
    return store


def _entries(talk: Talk) -> Iterable[JournalEntry]:
    sessions: dict[str, list[StoredMessage]] = {}
    for turn in talk.turns:
        said = sessions.setdefault(turn.session, [])
        time = (datetime.fromisoformat(turn.when) + timedelta(seconds=len(said))).isoformat()
        said.append(StoredMessage(turn.id, "user", f"{turn.who}: {turn.text}", f"{time}+00:00"))
    for session, said in sessions.items():
        for messages in (tuple(said[at : at + 2]) for at in range(0, len(said), 2)):
            yield JournalEntry(messages[0].time[:10], session, messages, INITIAL_EPOCH)


async def measure_graph(rows: Rows, talk: Talk, budgets: Sequence[int]) -> None:
    """Add what of the evidence stands in the prompts: of the facts alone, and with the journal of everything."""
    chance = random.Random(SEED)
    asked = chance.sample(talk.questions, min(QUESTIONS, len(talk.questions)))
    others = chance.sample(talk.questions, len(asked))
    told = {source for fact in talk.facts for source in fact.sources}
    for with_turns in (False, True):
        model = Recorder()
        memory = MemoryConfig(debounce_seconds=3600)
        settings = Settings(single_user=True, memory=memory, embedder=NONE)
        service = MemoryService(settings, lambda *_, model=model: model)
        store = filled(talk, with_turns=with_turns)
        graph = build_graph(service=service).compile(checkpointer=InMemorySaver(), store=store)
        if following := service.recalling.follow(store, OWNER):
            await asyncio.wrap_future(following)
        for budget in budgets:
            context = Context(memory_tokens=budget, max_tokens=8192)

            for number, (question, other) in enumerate(zip(asked, others, strict=True)):
                needed = question.evidence if with_turns else question.evidence & told
                if not needed:
                    continue
                kind = "all evidence" if with_turns else "facts' evidence"
                name = f"{kind}, prompts of the graph, {budget} tokens"
                first = await sent(graph, model, context, question.text, f"{budget}.{number}.first")
                rows.add(name, OURS, talk.name, _share(talk, needed, first))
                await sent(graph, model, context, other.text, f"{budget}.{number}.second")
                second = await sent(graph, model, context, question.text, f"{budget}.{number}.second")
                rows.add(f"{name}, second turn", OURS, talk.name, _share(talk, needed, second))


async def sent(graph: Any, model: Recorder, context: Context, text: str, thread: str) -> str:
    """Return the prompt that a message brings the model."""
    await graph.ainvoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread}}, context=context)
    return "\n".join(message.text for message in model.last)


def _share(talk: Talk, needed: frozenset[str], prompt: str) -> float:
    found = {source for fact in talk.facts if escape(fact.text) in prompt for source in fact.sources}
    # A line may be cut behind 300 characters.
    found |= {turn.id for turn in talk.turns if escape(f"{turn.who}: {turn.text}")[:280] in prompt}
    return len(needed & found) / len(needed)
