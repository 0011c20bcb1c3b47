"""What `palimpsest backfill` does: reads conversations that were held elsewhere, and sends them to memory."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import typer

from graphs.cli.client import MemoryClient
from graphs.cli.output import Output, counted
from graphs.cli.progress import counting
from graphs.cli.shell import Json, Refused
from memory.archive.entries import FORMAT, SCHEMA
from memory.backfill.conversation import PASTED, Conversation, Flaw, Origin
from memory.backfill.files import Unreadable, read_file
from memory.config import MemoryConfig
from memory.outbox.transcript import exchanges, strip_scheduled

_PIECE_MESSAGES = 200
_PIECE_BYTES = 1_000_000
_LARGEST_CONVERSATIONS = 50
# So few messages are on their way at a time: an update of a turn that is taken meanwhile waits for no more than these,
# and what each turn reads of pending updates stays small.
_ON_THE_WAY = 60
# Without a server nobody reads them; a turn of the next one should not find more than this.
_ON_THE_WAY_IN_FILES = 2_000
_LOOK_AGAIN_SECONDS = 1.0
_PATIENCE_SECONDS = 600.0


@dataclass(slots=True)
class Sum:
    """What an import did so far, in messages: as the API's answers say, added up."""

    journal: int = 0
    queued: int = 0
    updates: int = 0
    known: int = 0
    elsewhere: int = 0
    waiting: int = 0
    dead: int = 0

    def add(self, done: Json) -> None:
        """Add an answer; what waits and what failed is as the newest one says."""
        for name in ("journal", "queued", "updates", "known", "elsewhere"):
            setattr(self, name, getattr(self, name) + done[name])
        self.waiting, self.dead = done["waiting"], done["dead"]


@dataclass(slots=True)
class ImportPlan:
    """What there is to import, and estimates of how often a model is asked.

    Attributes:
        messages: How many.
        bytes: Of text, in UTF-8.
        first: When the first message was said, ISO 8601 in UTC; empty without any.
        last: When the last one was.
        held: The parts of each conversation, which may stand far apart in a file.
        pasted: How many of the messages are texts that were pasted.
        facts: What another memory knew: it waits for a yes.
        left_out: How many things of each kind are not read.
    """

    messages: int = 0
    bytes: int = 0
    first: str = ""
    last: str = ""
    held: dict[tuple[Origin, str], list[Conversation]] = field(default_factory=dict)
    pasted: int = 0
    facts: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def conversations(self) -> int:
        """How many."""
        return len(self.held)

    def add(self, conversation: Conversation) -> None:
        """Take a conversation, or a part of one; one without messages is nothing."""
        self.left_out.update(conversation.left_out)
        self.facts += conversation.facts
        if not conversation.messages:
            return
        self.pasted += sum(one.id.startswith(PASTED) for one in conversation.messages)
        self.held.setdefault((conversation.origin, conversation.id), []).append(conversation)
        self.messages += len(conversation.messages)
        self.bytes += sum(len(one.text.encode("utf-8", "replace")) for one in conversation.messages)
        self.first = min(self.first or conversation.begun, conversation.begun)
        self.last = max(self.last, *(one.time for one in conversation.messages))

    def oldest_first(self) -> Iterator[Conversation]:
        """Yield the conversations, oldest first: what was said later corrects what was said before."""
        for key in sorted(self.held, key=lambda key: (min(part.begun for part in self.held[key]), key)):
            parts = self.held[key]
            # The same message may stand in two files; parts of a conversation may stand in any order.
            said = {one.id: one for part in parts for one in part.messages}.values()
            messages = tuple(said if len(parts) == 1 else sorted(said, key=lambda one: one.time))
            yield Conversation(*key, messages)


def gather(files: Iterable[str], plan: ImportPlan) -> list[Flaw]:
    """Read all files before anything is sent: a broken one is known before half of it is in."""
    flaws: list[Flaw] = []
    try:
        for file in files:
            for found in read_file(Path(file)):
                if isinstance(found, Flaw):
                    flaws.append(found)
                else:
                    plan.add(found)
    except Unreadable as error:
        raise Refused(str(error)) from None
    if flaws and not (plan.conversations or plan.facts):
        raise Refused(f"{flaws[0].place}: {flaws[0].reason}")
    return flaws


def estimate(plan: ImportPlan) -> Json:
    """Return what there is to import, and what learning it takes."""
    names = ("conversations", "messages", "bytes", "first", "last", "pasted", "left_out")
    told = {name: getattr(plan, name) for name in names}
    # At least so many: short conversations are not read together.
    extractions = max(plan.conversations, -(-plan.messages // MemoryConfig().portion_messages))
    return told | {"facts": len(plan.facts), "extractions": extractions}


def tell(out: Output, plan: ImportPlan) -> None:
    """Say what there is to import, and what learning it takes."""
    found = estimate(plan)
    when = f", from {plan.first[:10]} to {plan.last[:10]}" if plan.messages else ""
    out.say(f"{counted(plan.conversations, 'conversation')} with {counted(plan.messages, 'message')}{when}")
    out.say(f"to learn it, a model is asked about {counted(found['extractions'], 'time')}")
    out.say(_besides(plan))


async def send_all(memory: MemoryClient, out: Output, plan: ImportPlan, name: str | None, *, learn: bool) -> None:
    """Write all of it into the journal, and have it learned."""
    tokens: dict[str, str] = {}
    limits: Json = {}
    for origin in dict.fromkeys(conversation.origin for conversation in plan.oldest_first()):
        opened = await memory.ask("PUT", f"/sources/{name or origin}", body={"origin": origin})
        tokens[opened["name"]], limits = opened["token"], opened["limits"]
    if plan.bytes > limits.get("journal_bytes", plan.bytes):
        out.note(
            f"the journal keeps {limits['journal_bytes'] / 1e6:.0f} MB, and this is {plan.bytes / 1e6:.0f} MB: of the "
            "oldest conversations only facts will stay"
        )
    sending = _Sending(memory, out, name, tokens, plan, limits.get("portion_messages", 20))
    done = await sending.send(learn=False)
    if learn and plan.messages:
        learned = await sending.send(learn=True)
        learned.journal, done = done.journal, learned
    if plan.facts:
        # An export may hold what waits, and is the same twice.
        waiting = {"category": "knowledge", "confidence": 1, "status": "waiting"}
        lines = [{"format": FORMAT, "schema": SCHEMA}, *({"fact": {"content": each, **waiting}} for each in plan.facts)]
        content = "\n".join(map(json.dumps, lines)).encode()
        await memory.ask("POST", "/import", content=content, patience=_PATIENCE_SECONDS)
    names = sorted(tokens)
    answer = {"sources": names, **estimate(plan), **asdict(done)}
    out.answer(answer, lambda: _report(out, memory, plan, names, done, learn=learn))
    if done.dead:
        raise typer.Exit(1)


def _besides(plan: ImportPlan) -> str:
    left = ", ".join(f"{number} {kind}" for kind, number in plan.left_out.items())
    pasted, facts = counted(plan.pasted, "pasted text"), counted(len(plan.facts), "remembered sentence")
    return f"{pasted} to be found and not learned, {facts} to wait for your yes, left out: {left or 'nothing'}"


def _report(out: Output, memory: MemoryClient, plan: ImportPlan, names: list[str], done: Sum, *, learn: bool) -> None:
    new = counted(done.journal, "message")
    out.say(f"{new} new in the journal, {done.queued} to be learned, {done.known} known already")
    if done.elsewhere:
        out.say(f"{counted(done.elsewhere, 'conversation')} left alone: memory has them from elsewhere")
    if done.waiting:
        rest = "; then run this again for the rest" if learn and memory.is_local else ""
        out.say(f"{counted(done.waiting, 'message')} wait: a server that runs on these files learns them{rest}")
    if done.dead:
        out.say(f"{counted(done.dead, 'update')} failed for good: `palimpsest pending retry --all` tries again")
    if names:
        out.note(f"to take it back: palimpsest erase source {names[0]}")
    out.say(_besides(plan))


@dataclass(slots=True)
class _Sending:
    """Sends conversations in pieces, and waits where more are on their way than should be."""

    memory: MemoryClient
    out: Output
    name: str | None
    tokens: dict[str, str]
    plan: ImportPlan
    portion: int

    async def send(self, *, learn: bool) -> Sum:
        """Send all of it once; while it is learned, no faster than that."""
        done, sent = Sum(), 0
        what = "learning" if learn else "writing down"
        show = counting(what, self.plan.messages, self.out.note)
        for source, piece in _pieces(self.plan, self.name, self.portion if learn else _PIECE_MESSAGES):
            while learn and not self.memory.is_local and done.waiting >= _ON_THE_WAY:
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
                done.add(await self._post(source, [], learn=True))
                show(sent - done.waiting)
            if learn and done.waiting >= _ON_THE_WAY_IN_FILES:
                break
            done.add(await self._post(source, piece, learn=learn))
            sent += sum(len(each.messages) - each.goes_on for each in piece)
            show(sent - done.waiting)
        while learn and done.waiting and not self.memory.is_local:
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
            for source in self.tokens:
                done.add(await self._post(source, [], learn=True))
                if done.waiting:
                    break
            show(sent - done.waiting)
        return done

    async def _post(self, source: str, piece: list[Conversation], *, learn: bool) -> Json:
        body = {
            "token": self.tokens[source],
            "conversations": [each.to_json() for each in piece],
            "learn": learn,
        }
        return await self.memory.ask(
            "POST", f"/sources/{source}/conversations", body=body, patience=_PATIENCE_SECONDS, waits=True
        )


def _pieces(plan: ImportPlan, name: str | None, most: int) -> Iterator[tuple[str, list[Conversation]]]:
    """Yield conversations in pieces of so many messages, each after its source; a long one is cut between exchanges."""
    piece: list[Conversation] = []
    source, messages, size = "", 0, 0
    for conversation in plan.oldest_first():
        for part in _parts(conversation, most):
            more = len(json.dumps(part.to_json()))
            is_full = messages + len(part.messages) > most or size + more > _PIECE_BYTES
            if piece and (is_full or len(piece) >= _LARGEST_CONVERSATIONS or source != (name or part.origin)):
                yield source, piece
                piece, messages, size = [], 0, 0
            source = name or part.origin
            piece.append(part)
            messages, size = messages + len(part.messages), size + more
    if piece:
        yield source, piece


def _parts(conversation: Conversation, most: int) -> Iterator[Conversation]:
    said: list[Any] = []
    size = 0
    goes_on = False
    # The server strips scheduled turns too, but a reply that was cut from its question is no longer known as one.
    for exchange in exchanges(strip_scheduled(conversation.messages)):
        more = sum(len(one.text) for one in exchange)
        if said and (len(said) + len(exchange) > most or size + more > _PIECE_BYTES // 4):
            # The reply before goes along: what comes may answer it. It is known by then, and learned once.
            yield replace(conversation, messages=tuple(said), goes_on=goes_on)
            goes_on = said[-1].role == "assistant"
            said, size = said[-1:] if goes_on else [], 0
        said.extend(exchange)
        size += more
    if said:
        yield replace(conversation, messages=tuple(said), goes_on=goes_on)
