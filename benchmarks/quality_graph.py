"""What stands in the prompts that the shipped graph sends, and how much of them a provider has in its cache."""

import asyncio
import random
import re
import statistics
from collections.abc import Iterable, Sequence
from itertools import cycle, pairwise
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from pydantic import Field

from benchmarks.quality_data import Talk
from benchmarks.quality_memory import BESIDE, EMBEDDER, NOW, entries_of, facts_of
from benchmarks.quality_report import SEED, Rows, share
from graphs.chat import build_graph
from graphs.process.embedders import NONE, Embedder
from graphs.process.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from memory.config import MemoryConfig
from memory.context.tokens import count_tokens
from memory.door import run
from memory.facts.fact import Fact, to_item
from memory.injection.block import escape
from memory.journal.entry import JournalEntry
from memory.journal.journal import append
from memory.namespaces import Owner
from memory.turn import MemoryMode

QUESTIONS = 50
TURNS = 50
OWNER = Owner.of("local")
MODE: MemoryMode = "read_only"
"""The models answer nothing to learn from: updates would fail, and be tried again beside the parts that follow."""
CACHED = (4096, 8192)
"""Tokens of a whole prompt, for the rows of what is cached."""
PRICES = (0.1, 0.25)
"""What a token that a provider has in its cache costs of a fresh one."""
_SHARES = [each / 20 for each in range(10, 19)]
HUMAN = "\nhuman: "
FENCED = re.compile(r"<memory>.*?</memory>", re.DOTALL)
# So long an answer is usual; a short one would leave a prompt that is nearly all memory.
_ANSWER = " ".join(["The harbour was quiet and we walked along the water talking of boats and bread."] * 4)
_QUERY_SECONDS = 60.0
_READY_SECONDS = 600.0
SMALL_TALK = (
    "Thanks, that helps!",
    "Can you translate 'see you tomorrow' into French?",
    "Ok, sounds good.",
    "Good morning!",
    "What does HTTP 404 mean?",
    "Let me think about it.",
    "Write me a limerick about penguins.",
    "Yes, please.",
)
"""Messages that ask for nothing that is remembered."""


class Recorder(BaseChatModel):
    """A model that answers at once and keeps its prompts."""

    prompts: list[str] = Field(default_factory=list)

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
        self.prompts.append("\n".join(f"{message.type}: {message.text}" for message in messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(_ANSWER))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **more: Any,
    ) -> ChatResult:
        return self._generate(messages)


class Chat:
    """The shipped graph over a store with facts and a journal."""

    def __init__(self, facts: Iterable[Fact], entries: Iterable[JournalEntry], embedder: Embedder | None) -> None:
        self._store = InMemoryStore()
        for fact in facts:
            self._store.put(OWNER.namespace("facts"), fact.id, to_item(fact))
        run(self._store, append(OWNER, [*entries]))
        self._model, others = Recorder(), Recorder()
        settings = Settings(single_user=True, memory=MemoryConfig(debounce_seconds=3600), embedder=NONE)
        self._embedder = embedder
        self._service = MemoryService(
            settings,
            lambda _, purpose: self._model if purpose == "chat" else others,
            clock=lambda: NOW,
            embedder=embedder,
        )
        builder = build_graph(service=self._service)
        self._graph = builder.compile(checkpointer=InMemorySaver(), store=self._store)

    async def ready(self) -> None:
        """Return once all is indexed that there is, with its vectors."""
        if self._embedder:
            await asyncio.wrap_future(self._embedder.start())
        recalling = self._service.recalling
        recalling.behind.ask(self._store, OWNER)
        await asyncio.to_thread(recalling.wait, _READY_SECONDS)  # vectors are made behind the index, and indexed again

    async def sent(self, context: Context, text: str, thread: str) -> str:
        """Return the prompt that a message brings the model."""
        await self._graph.ainvoke(
            {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread}}, context=context
        )
        return self._model.prompts[-1]


def _patient(embeddings: Embeddings | None) -> Embedder | None:
    return Embedder(EMBEDDER, lambda: embeddings, query_seconds=_QUERY_SECONDS) if embeddings else None


async def measure_prompts(
    rows: Rows, talk: Talk, who: str, embeddings: Embeddings | None, budgets: Sequence[int], *, with_turns: bool
) -> None:
    """Add what of the evidence stands in the prompts of a first turn, and of a second after another question."""
    chance = random.Random(SEED)
    asked = chance.sample(talk.questions, min(QUESTIONS, len(talk.questions)))
    others = chance.sample(talk.questions, len(asked))
    told = {source for fact in talk.facts for source in fact.sources}
    kind = "all" if with_turns else "facts'"
    chat = Chat(facts_of(talk), entries_of(talk) if with_turns else (), _patient(embeddings))
    await chat.ready()
    for budget in budgets:
        context = Context(memory_tokens=budget + BESIDE, max_tokens=9000, memory_mode=MODE)
        name = f"{kind} evidence, prompts of the graph, {budget} tokens"
        for number, (question, other) in enumerate(zip(asked, others, strict=True)):
            needed = question.evidence if with_turns else question.evidence & told
            if not needed:
                continue
            first = await chat.sent(context, question.text, f"{budget}.{number}.first")
            rows.add(name, who, talk.name, share(needed, _told_in(talk, first)))
            await chat.sent(context, other.text, f"{budget}.{number}.second")
            second = await chat.sent(context, question.text, f"{budget}.{number}.second")
            rows.add(f"{name}, second turn", who, talk.name, share(needed, _told_in(talk, second)))


async def measure_cached(rows: Rows, talk: Talk, who: str, embeddings: Embeddings | None) -> None:
    """Add how much of each prompt of a long thread, from the second on, is the beginning of the one before.

    One thread only asks, each time for something else; in the other, two messages of small talk follow each question.
    Of both, add what of the evidence stands in these prompts, too, and what they cost, beside a thread that keeps what
    was recalled where it stood.
    """
    questions = random.Random(SEED).sample(talk.questions, min(TURNS, len(talk.questions)))
    asked, evidence = [each.text for each in questions], {each.text: each.evidence for each in questions}
    talked = cycle(SMALL_TALK)
    mixed = [text for question in asked for text in (question, next(talked), next(talked))][:TURNS]
    chat = Chat(facts_of(talk), entries_of(talk), _patient(embeddings))
    await chat.ready()
    for tokens in CACHED:
        context = Context(max_tokens=tokens, memory_mode=MODE)
        for name, texts in (("", asked), (", with small talk", mixed)):
            prompts = [await chat.sent(context, text, f"long.{tokens}{name}") for text in texts]
            for before, after in pairwise(prompts):
                share_of = _common(before, after) / len(after)
                rows.add(f"cached share of a prompt, {tokens} tokens{name}", who, talk.name, share_of)
            kept = append_only(prompts)
            for price in PRICES:
                dearer = _bill(prompts, price) / _bill(kept, price)
                rows.add(f"bill over append-only, cached at {price:g}, {tokens} tokens{name}", who, talk.name, dearer)
            for text, prompt in list(zip(texts, prompts, strict=True))[1:]:
                if text in evidence:
                    value = share(evidence[text], _told_in(talk, prompt))
                    rows.add(f"all evidence, later turns, {tokens} tokens{name}", who, talk.name, value)


def append_only(prompts: Sequence[str]) -> list[str]:
    """Return what the prompts of a thread were, had nothing that was recalled left them before its message did.

    Where no more fits, the oldest exchanges leave. Their share is chosen so that both lives are as long in the mean.
    """
    most, mean = (of([*map(count_tokens, prompts)]) for of in (max, statistics.fmean))
    lives = [_appended(prompts, most, share * most) for share in _SHARES]
    return min(lives, key=lambda each: abs(statistics.fmean(map(count_tokens, each)) - mean))


def _appended(prompts: Sequence[str], most: float, after_a_cut: float) -> list[str]:
    head, said, appended = prompts[0].partition(HUMAN)[0], list[str](), list[str]()

    def tokens() -> int:
        return count_tokens("\n".join([head, *said]))

    for prompt in prompts:
        asked = prompt.rpartition(HUMAN)[2]
        there = {line for each in (head, *said) for line in each.splitlines()}
        recalled = "".join(FENCED.findall(asked)[:1]).splitlines()[1:-1]
        new = "\n".join(line for line in recalled if line not in there)
        said.append(f"human: {new}\n{FENCED.sub('', asked).lstrip()}")
        if tokens() > most:
            while len(said) > 1 and tokens() > after_a_cut:
                said = said[2:]
        appended.append("\n".join([head, *said]))
        said.append(f"ai: {_ANSWER}")
    return appended


def _bill(prompts: Sequence[str], price: float) -> float:
    """Return what prompts cost, each behind the one before, in fresh tokens."""
    cached = [count_tokens(after[: _common(before, after)]) for before, after in pairwise(prompts)]
    return sum(map(count_tokens, prompts)) - (1 - price) * sum(cached)


def _told_in(talk: Talk, prompt: str) -> set[str]:
    found = {source for fact in talk.facts if escape(fact.text) in prompt for source in fact.sources}
    # A line may be cut behind 300 characters.
    return found | {turn.id for turn in talk.turns if escape(f"{turn.who}: {turn.text}")[:280] in prompt}


def _common(before: str, after: str) -> int:
    """Return how many characters two texts begin with alike."""
    differing = (at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other)
    return next(differing, min(len(before), len(after)))
