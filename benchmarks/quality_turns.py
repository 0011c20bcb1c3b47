"""What a turn of the shipped graph shows of a talk between a user and an assistant, and when it shows nothing.

Of two speakers the first is the user, the other one the assistant. Facts stand beside the journal, with the messages
that they were taken from; the embedder has the time that a turn gives it. Only what stands in the prompt that the model
is sent counts. Peers fill as many tokens with the best of the same texts.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from benchmarks import quality_peers
from benchmarks.quality_data import Question, Talk
from benchmarks.quality_graph import FENCED, HUMAN, MODE, SMALL_TALK, Chat
from benchmarks.quality_kept import KeptEmbeddings, LiveQuestions
from benchmarks.quality_measures import fitting
from benchmarks.quality_memory import BESIDE, EMBEDDER, entries_of, evidence_of, facts_of
from benchmarks.quality_report import SEED, Rows, share
from graphs.process.embedders import Embedder
from graphs.turn.context import Context
from memory.config import MemoryConfig
from memory.context.tokens import count_tokens
from memory.facts.fact import Fact
from memory.injection.block import fact_line, line_of
from memory.journal.entry import JournalEntry, outdated
from memory.recall.documents import turn_documents
from memory.recall.vectors import QueryVector

ASKED = 200
"""So many messages that have to do with what is remembered, and as many that have not, over five talks."""
_LONG, _LONGEST = 15, 60  # words; half of the unrelated messages have more than 15
_GREETING = "Good morning!"
_SAID = "2024-01-01T10:00:00"  # BEAM's messages have no times


class _InTime(Embedder):
    """The embedder of a turn, which counts the questions that had no vector in time."""

    asked = late = 0

    async def aqueries(self, texts: Sequence[str]) -> Sequence[QueryVector]:
        vectors = await super().aqueries(texts)
        self.asked, self.late = self.asked + 1, self.late + (not vectors)
        return vectors


class _Held:
    """A talk as memory has it, and what of it stands in a prompt."""

    def __init__(self, talk: Talk, embeddings: KeptEmbeddings | None, *, is_retained: bool = False) -> None:
        self.user = talk.turns[0].who
        self.replies = {turn.id for turn in talk.turns if turn.who != self.user}
        self.told = {source for fact in talk.facts for source in fact.sources}
        facts, entries = facts_of(talk), [*entries_of(talk, self.user)]
        if is_retained:
            entries = _retained(entries)
        self.embedder = _InTime(EMBEDDER, lambda: LiveQuestions(embeddings)) if embeddings else None
        self.chat = Chat(facts, entries, self.embedder)
        self._lines = [*_lines(facts, entries)]

    async def shown(self, text: str, thread: str, context: Context) -> tuple[set[str], set[str], str]:
        """Return the messages whose words a turn's prompt shows, those of which it shows a fact, and the prompt."""
        prompt = await self.chat.sent(context, text, thread)
        lines = set(prompt.splitlines())
        by_words, by_facts = (
            {each for line, is_fact, ids in self._lines if is_fact == wanted and line in lines for each in ids}
            for wanted in (False, True)
        )
        return by_words, by_facts, prompt


def _lines(facts: Iterable[Fact], entries: Iterable[JournalEntry]) -> Iterator[tuple[str, bool, Sequence[str]]]:
    for fact in facts:
        yield fact_line(fact), True, fact.message_ids
    for entry in entries:
        for message, document in zip(entry.messages, turn_documents(entry), strict=True):
            yield line_of(document), False, (message.id,)


def _retained(entries: Sequence[JournalEntry]) -> list[JournalEntry]:
    """Return what the shipped retention leaves of a journal on the day of its last entry."""
    limits, held = MemoryConfig(), {entry.key: entry for entry in entries}
    gone = outdated(held, max(entry.day for entry in entries), limits.journal_days, limits.journal_bytes)
    return [entry for key, entry in held.items() if key not in gone]


async def measure_turns(
    rows: Rows, talk: Talk, who: str, embeddings: KeptEmbeddings | None, budgets: Sequence[int]
) -> None:
    """Add what a first turn's prompt shows of the evidence of each question, and after the shipped retention."""
    for is_retained, sizes in ((False, budgets), (True, budgets[-1:])):
        held = _Held(talk, embeddings, is_retained=is_retained)
        await held.chat.ready()
        for budget in sizes:
            context = Context(memory_tokens=budget + BESIDE, memory_mode=MODE)
            name = f"{budget} tokens{', journal of 90 days' if is_retained else ''}"
            for number, question in enumerate(talk.questions):
                by_words, by_facts, _ = await held.shown(question.text, f"{budget}.{number}", context)
                _add(rows, talk, who, question, name, held.told, held.replies, by_words | by_facts, by_facts)
        if held.embedder:
            late = held.embedder.late / held.embedder.asked
            rows.add("turns with a vector in time", who, talk.name, 1 - late)


async def measure_chat_turns(
    rows: Rows, talk: Talk, who: str, embeddings: KeptEmbeddings | None, budget: int, others: Sequence[str]
) -> None:
    """Add what a first turn's prompt shows of a chat of which nothing was learned, and how often nothing is recalled.

    A message of others recalls nothing if no more stands there than before a greeting: what holds for every answer.
    """
    said = (replace(turn, when=_SAID, who="assistant" if turn.is_reply else "user") for turn in talk.turns)
    held, context = _Held(replace(talk, turns=tuple(said)), embeddings), Context(memory_mode=MODE)
    await held.chat.ready()
    bounded = replace(context, memory_tokens=budget + BESIDE)
    for question in talk.questions:
        by_words, _, _ = await held.shown(question.text, question.text, bounded)
        value = share(question.evidence, by_words)
        rows.add(f"BEAM messages in a prompt, {budget} tokens", who, talk.name, value)
    always, _, _ = await held.shown(_GREETING, _GREETING, context)
    for text in others:
        by_words, _, _ = await held.shown(text, text, context)
        rows.add("others' questions that recall nothing of BEAM", who, talk.name, float(by_words <= always))


def measure_peer_turns(rows: Rows, talk: Talk, who: str, peer: quality_peers.Peer, budgets: Sequence[int]) -> None:
    """Add what a peer fills a prompt with, of the same facts and messages."""
    user, told = talk.turns[0].who, {source for fact in talk.facts for source in fact.sources}
    said = [replace(turn, who="user" if turn.who == user else "assistant") for turn in talk.turns]
    every = {each.id: each for each in (*talk.facts, *said)}
    sources = {each.id: frozenset(each.sources or (each.id,)) for each in every.values()}
    rank, replies = peer([*every.values()]), {turn.id for turn in talk.turns if turn.who != user}
    for question in talk.questions:
        ranked = [every[each] for each in rank(question.text)]
        for budget in budgets:
            chosen = fitting(ranked, budget)
            by_facts = evidence_of([each for each in chosen if every[each].kind == "fact"], sources)
            found = evidence_of(chosen, sources)
            _add(rows, talk, who, question, f"{budget} tokens", told, replies, found, by_facts)


def _add(
    rows: Rows,
    talk: Talk,
    who: str,
    question: Question,
    name: str,
    told: set[str],
    replies: set[str],
    found: set[str],
    by_facts: set[str],
) -> None:
    for what, needed, there in (
        ("all evidence", question.evidence, found),
        ("facts' evidence", question.evidence & told, by_facts),
        ("the user's messages without a fact", question.evidence - told - replies, found),
        ("the assistant's messages without a fact", (question.evidence - told) & replies, found),
    ):
        if needed:
            rows.add(f"{what}, turns, {name}", who, talk.name, share(needed, there))


def unrelated(chats: Sequence[Talk]) -> list[str]:
    """Return messages of other people's chats: half of 15 words at most, half longer; none where there are no chats."""
    said = [turn.text for chat in chats for turn in chat.turns if not turn.is_reply]
    said += [question.text for chat in chats for question in chat.questions]
    lengths = {text: len(text.split()) for text in said}
    short = sorted(text for text, words in lengths.items() if words <= _LONG)
    long = sorted(text for text, words in lengths.items() if _LONG < words <= _LONGEST)
    chance = random.Random(SEED)
    halves = (chance.sample(each, min(ASKED // 2, len(each))) for each in (short, long))
    return [text for pair in zip(*halves, strict=False) for text in pair]


async def measure_silence(
    rows: Rows, talk: Talk, who: str, embeddings: KeptEmbeddings | None, others: Sequence[str]
) -> None:
    """Add how often a message about something else recalls nothing, and one about the talk something that it needs.

    A message about something else is the first of a thread, and comes behind a greeting in another one. Half of the
    questions about the talk stand behind a long one of these, in one message: a gate must not take what is long for
    unrelated. What small talk carries of memory is counted in tokens of the prompt of a thread that begins with it.
    """
    held, context = _Held(talk, embeddings), Context(memory_mode=MODE)
    await held.chat.ready()

    async def later(text: str) -> tuple[set[str], set[str], str]:
        await held.chat.sent(context, _GREETING, f"later.{text}")
        return await held.shown(text, f"later.{text}", context)

    for text in others:
        for name, shown in (("first", await held.shown(text, text, context)), ("later", await later(text))):
            is_silent = not shown[-1].rpartition(HUMAN)[2].startswith("<memory>")
            length = "long" if len(text.split()) > _LONG else "short"
            for row in (f"unrelated messages that recall nothing, {name}", f"of the {length} unrelated ones, {name}"):
                rows.add(row, who, talk.name, float(is_silent))
    long = [text for text in others if len(text.split()) > _LONG]
    asked = random.Random(SEED).sample(talk.questions, min(len(others), len(talk.questions)))
    for question, before in zip(asked, [*long, *[""] * len(others)], strict=False):
        length = "long" if before else "short"
        by_words, by_facts, _ = await later(f"{before} {question.text}".strip())
        value = float(bool(question.evidence & (by_words | by_facts)))
        for row in ("related messages that find something they need, later", f"of the {length} related ones, later"):
            rows.add(row, who, talk.name, value)
    for text in SMALL_TALK:
        _, _, prompt = await held.shown(text, f"talk.{text}", context)
        rows.add(
            "tokens of memory on small talk (goal: at most 600)",
            who,
            talk.name,
            sum(map(count_tokens, FENCED.findall(prompt))),
        )
