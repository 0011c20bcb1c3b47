"""What `palimpsest backfill` does: reads conversations that were held elsewhere, and sends them to memory."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import typer

from graphs.cli.client import MemoryClient
from graphs.cli.shell import Json, Output, Refused, counted
from memory.archive.entries import FORMAT, SCHEMA
from memory.backfill.conversation import PASTED, Conversation, Flaw, Origin
from memory.backfill.files import Unreadable, read_file
from memory.config import MemoryConfig
from memory.message import StoredMessage
from memory.updates.transcript import exchanges, strip_scheduled

_PIECE_MESSAGES = 200
_PIECE_BYTES = 1_000_000
_LARGEST_CONVERSATIONS = 50
# So few messages are on their way at a time: an update of a turn that is taken meanwhile waits for no more than these,
# and what each turn reads of pending updates stays small.
_ON_THE_WAY = 60
# Without a server nobody reads them; a turn of the next one should not find more than this.
_ON_THE_WAY_IN_FILES = 2_000
_LOOK_AGAIN_SECONDS = 1.0
_SAY_EVERY_SECONDS = 15.0
_PATIENCE_SECONDS = 600.0


@dataclass(slots=True)
class ImportPlan:
    """What there is to import.

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

    def estimate(self) -> dict[str, Json]:
        """Return what there is to import, and how often a model is asked to learn it."""
        names = ("messages", "bytes", "first", "last", "pasted", "left_out")
        # At least so many: short conversations are not read together.
        extractions = max(len(self.held), -(-self.messages // MemoryConfig().portion_messages))
        told = {name: getattr(self, name) for name in names}
        return {"conversations": len(self.held), **told, "facts": len(self.facts), "extractions": extractions}


def gather(files: Iterable[str]) -> tuple[ImportPlan, list[Flaw]]:
    """Read all files before anything is sent: a broken one is known before half of it is in."""
    plan, flaws = ImportPlan(), list[Flaw]()
    try:
        for file in files:
            for found in read_file(Path(file)):
                if isinstance(found, Flaw):
                    flaws.append(found)
                else:
                    plan.add(found)
    except Unreadable as error:
        raise Refused(str(error)) from None
    if flaws and not (plan.held or plan.facts):
        raise Refused(f"{flaws[0].place}: {flaws[0].reason}")
    return plan, flaws


def tell(out: Output, plan: ImportPlan) -> None:
    """Say what there is to import, and what learning it takes."""
    found = plan.estimate()
    out.answer(found)
    when = f", from {plan.first[:10]} to {plan.last[:10]}" if plan.messages else ""
    out.say(f"{counted(len(plan.held), 'conversation')} with {counted(plan.messages, 'message')}{when}")
    out.say(f"to learn it, a model is asked about {counted(found['extractions'], 'time')}")
    _tell_of_the_rest(out, plan)


def _tell_of_the_rest(out: Output, plan: ImportPlan) -> None:
    left = ", ".join(f"{number} {kind}" for kind, number in plan.left_out.items())
    pasted, facts = counted(plan.pasted, "pasted text"), counted(len(plan.facts), "remembered sentence")
    out.say(f"{pasted} to be found and not learned, {facts} to wait for your yes, left out: {left or 'nothing'}")


async def send_all(memory: MemoryClient, out: Output, plan: ImportPlan, name: str | None, *, learn: bool) -> None:
    """Write all of it into the journal, and have it learned."""
    tokens: dict[str, str] = {}
    limits: Json = {"portion_messages": _PIECE_MESSAGES, "journal_bytes": plan.bytes}
    for origin in dict.fromkeys(conversation.origin for conversation in plan.oldest_first()):
        opened = await memory.ask("PUT", f"/sources/{name or origin}", body={"origin": origin})
        tokens[opened["name"]], limits = opened["token"], opened["limits"]
    if plan.bytes > limits["journal_bytes"]:
        out.note(
            f"the journal keeps {limits['journal_bytes'] / 1e6:.0f} MB, and this is {plan.bytes / 1e6:.0f} MB: of the "
            "oldest conversations only facts will stay"
        )
    done = await _send(memory, out, plan, name, tokens)
    if learn and plan.messages:
        done = await _send(memory, out, plan, name, tokens, limits["portion_messages"]) | {"journal": done["journal"]}
    if plan.facts:
        # An export may hold what waits, and is the same twice.
        waiting = {"category": "knowledge", "confidence": 1, "status": "waiting"}
        lines = [{"format": FORMAT, "schema": SCHEMA}, *({"fact": {"content": each, **waiting}} for each in plan.facts)]
        content = "\n".join(map(json.dumps, lines)).encode()
        await memory.ask("POST", "/import", content=content, patience=_PATIENCE_SECONDS)
    names = sorted(tokens)
    out.answer({"sources": names, **plan.estimate(), **done})
    new = counted(done["journal"], "message")
    out.say(f"{new} new in the journal, {done['queued']} to be learned, {done['known']} known already")
    if done["elsewhere"]:
        out.say(f"{counted(done['elsewhere'], 'conversation')} left alone: memory has them from elsewhere")
    if done["waiting"]:
        rest = "; then run this again for the rest" if learn and memory.is_local else ""
        out.say(f"{counted(done['waiting'], 'message')} wait: a server that runs on these files learns them{rest}")
    if done["dead"]:
        out.say(f"{counted(done['dead'], 'update')} failed for good: `palimpsest pending retry --all` tries again")
    if names:
        out.note(f"to take it back: palimpsest erase source {names[0]}")
    _tell_of_the_rest(out, plan)
    if done["dead"]:
        raise typer.Exit(1)


async def _send(
    memory: MemoryClient, out: Output, plan: ImportPlan, name: str | None, tokens: dict[str, str], portion: int = 0
) -> dict[str, int]:
    """Send all of it once, and return what that did, in messages, as the answers say.

    Args:
        memory: Takes it.
        out: Where it is told how much is done.
        plan: What there is.
        name: What the import is called; by default as where each conversation was held.
        tokens: What is sent with a piece of each source.
        portion: So many messages go together to be learned, no faster than that is done; 0 only writes them down.
    """
    done = dict.fromkeys(("journal", "queued", "updates", "known", "elsewhere"), 0)
    waiting, dead = dict.fromkeys(tokens, 0), dict.fromkeys(tokens, 0)
    sent, told = 0, time.monotonic()

    async def post(source: str, piece: list[Conversation]) -> None:
        nonlocal sent, told
        held = [each.to_json() for each in piece]
        body = {"token": tokens[source], "conversations": held, "learn": bool(portion)}
        path = f"/sources/{source}/conversations"
        answer = await memory.ask("POST", path, body=body, patience=_PATIENCE_SECONDS, waits=True)
        for each in done:
            done[each] += answer[each]
        waiting[source], dead[source] = answer["waiting"], answer["dead"]
        sent += sum(len(each.messages) - each.goes_on for each in piece)
        if time.monotonic() - told > _SAY_EVERY_SECONDS:
            told = time.monotonic()
            what = "learning" if portion else "writing down"
            out.note(f"{what}: {max(0, sent - sum(waiting.values()))} of {plan.messages} messages")

    async def until_fewer_wait_than(most: int) -> None:
        while portion and not memory.is_local and sum(waiting.values()) >= most:
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
            for source in tokens:
                await post(source, [])

    for source, piece in _pieces(plan, name, portion or _PIECE_MESSAGES):
        await until_fewer_wait_than(_ON_THE_WAY)
        if portion and sum(waiting.values()) >= _ON_THE_WAY_IN_FILES:
            break
        await post(source, piece)
    await until_fewer_wait_than(1)
    return done | {"waiting": sum(waiting.values()), "dead": sum(dead.values())}


def _pieces(plan: ImportPlan, name: str | None, most: int) -> Iterator[tuple[str, list[Conversation]]]:
    """Yield conversations in pieces of so many messages, each after its source; a long one is cut between exchanges."""
    piece: list[Conversation] = []
    source, messages, size = "", 0, 0
    for conversation in plan.oldest_first():
        for part in _cut_up(conversation, most):
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


def _cut_up(conversation: Conversation, most: int) -> Iterator[Conversation]:
    said: list[StoredMessage] = []
    goes_on = False
    # The server strips scheduled turns too, but a reply that was cut from its question is no longer known as one.
    for exchange in exchanges(strip_scheduled(conversation.messages)):
        size = sum(len(one.text) for one in (*said, *exchange))
        if said and (len(said) + len(exchange) > most or size > _PIECE_BYTES // 4):
            # The reply before goes along: what comes may answer it. It is known by then, and learned once.
            yield replace(conversation, messages=tuple(said), goes_on=goes_on)
            goes_on = said[-1].role == "assistant"
            said = said[-1:] if goes_on else []
        said.extend(exchange)
    if said:
        yield replace(conversation, messages=tuple(said), goes_on=goes_on)
