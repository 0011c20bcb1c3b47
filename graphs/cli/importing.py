"""What `palimpsest backfill` does: reads conversations that were held elsewhere, and sends them to memory."""

import io
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from graphs.cli.client import MemoryClient
from graphs.cli.shell import Json, Refused, Shell
from memory.archive.entries import FORMAT, SCHEMA
from memory.backfill.conversation import PASTED, Conversation, Flaw, Origin, unique
from memory.backfill.files import Unreadable, read_file
from memory.config import MemoryConfig
from memory.message import StoredMessage, speaker_of
from memory.updates.transcript import exchanges, strip_scheduled

_PIECE_MESSAGES = 200
_PIECE_CHARS = 1_000_000
_MOST_CONVERSATIONS = 50
# So few messages are on their way at a time: an update of a turn that is taken meanwhile waits for no more than these,
# and what each turn reads of pending updates stays small.
_ON_THE_WAY = 60
# Without a server nobody reads them; a turn of the next one should not find more than this.
_ON_THE_WAY_IN_FILES = 2_000
_LOOK_AGAIN_SECONDS = 1.0
_SAY_EVERY_SECONDS = 15.0
_REMEMBERS: Origin = "claude"  # its exports alone tell what it knew of the user
_COUNTS = ("journal", "queued", "updates", "known", "elsewhere")


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What there is to import.

    Attributes:
        conversations: Oldest first, as what was said later corrects what was said before; without scheduled turns.
        facts: What another memory knew: it waits for a yes.
        left_out: How many things of each kind are not read.
        flaws: What cannot be read, and costs nothing else.
    """

    conversations: list[Conversation] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    flaws: list[Flaw] = field(default_factory=list)

    def estimate(self) -> dict[str, Json]:
        """Return what there is to import, and how often a model is asked to learn it, at least."""
        said = [one for conversation in self.conversations for one in conversation.messages]
        return {
            "conversations": len(self.conversations),
            "messages": len(said),
            "first": min((one.time for one in said), default=""),
            "last": max((one.time for one in said), default=""),
            "pasted": sum(one.id.startswith(PASTED) for one in said),
            "left_out": dict(self.left_out),
            "facts": len(self.facts),
            "extractions": max(len(self.conversations), -(-len(said) // MemoryConfig().portion_messages)),
        }


def gather(files: Iterable[str]) -> ImportPlan:
    """Read all files before anything is sent: a broken one is known before half of it is in."""
    parts: defaultdict[tuple[Origin, str], list[StoredMessage]] = defaultdict(list)
    plan = ImportPlan()
    try:
        for found in (each for file in files for each in read_file(Path(file))):
            if isinstance(found, Flaw):
                plan.flaws.append(found)
                continue
            plan.left_out.update(found.left_out)
            plan.facts.extend(found.facts)
            # The same message may stand in two files; parts of a conversation may stand in any order.
            parts[found.origin, found.id] += found.messages
    except Unreadable as error:
        raise Refused(str(error)) from None
    for key, said in parts.items():
        speaker = speaker_of({one.name for one in said if one.role == "user"})
        heard = [one.heard(speaker) for one in sorted(said, key=lambda one: one.time)]
        if messages := strip_scheduled(unique(heard)):
            plan.conversations.append(Conversation(*key, messages))
    if plan.flaws and not (plan.conversations or plan.facts):
        raise Refused(f"{plan.flaws[0].place}: {plan.flaws[0].reason}")
    plan.conversations.sort(key=lambda each: (each.messages[0].time, each.origin, each.id))
    return plan


def send(memory: MemoryClient, shell: Shell, plan: ImportPlan, name: str | None, *, learn: bool) -> dict[str, Json]:
    """Write all of a plan into the journal, and have it learned; return what that did, in messages.

    Args:
        memory: Takes it.
        shell: Where it is told how much is done.
        plan: What there is.
        name: What the import is called; by default as where each conversation was held.
        learn: Whether it is to be learned, too.
    """
    origins = dict.fromkeys([*(each.origin for each in plan.conversations), *[_REMEMBERS] * bool(plan.facts)])
    asked = (memory.ask("PUT", f"/sources/{name or origin}", {"origin": origin}) for origin in origins)
    opened = {each["name"]: each for each in asked}

    def left(count: str) -> int:
        """Return how many messages of the sources wait, or how many of their updates are dead."""
        return sum(each[count] for each in memory.get("/sources")["sources"] if each["name"] in opened)

    def wait_until_fewer_wait(most: int) -> None:
        while not memory.is_local and left("waiting") >= most:
            time.sleep(_LOOK_AGAIN_SECONDS)

    def send_once(most: int, *, learned: bool) -> dict[str, int]:
        """Send all of it, so many messages together; what is to be learned, no faster than that is done."""
        done, told = dict.fromkeys(_COUNTS, 0), time.monotonic()
        for source, piece in _requests(plan.conversations, name, most):
            held, path = [each.to_json() for each in piece], f"/sources/{source}/conversations"
            answer = memory.post(path, token=opened[source]["token"], conversations=held, learn=learned)
            done = {each: done[each] + answer[each] for each in _COUNTS}
            if learned and memory.is_local and answer["waiting"] >= _ON_THE_WAY_IN_FILES:
                break
            if learned and answer["waiting"] >= _ON_THE_WAY:
                wait_until_fewer_wait(_ON_THE_WAY)
            if time.monotonic() - told > _SAY_EVERY_SECONDS:
                told = time.monotonic()
                shell.note(f"so far: {', '.join(f'{number} {each}' for each, number in done.items())}")
        return done

    done = send_once(_PIECE_MESSAGES, learned=False)
    if learn and opened:
        portion = next(iter(opened.values()))["limits"]["portion_messages"]
        done |= {**send_once(portion, learned=True), "journal": done["journal"]}
        wait_until_fewer_wait(1)
    _send_facts(memory, plan.facts, opened.get(name or _REMEMBERS))
    return {"sources": sorted(opened), **done, "waiting": left("waiting"), "dead": left("dead")}


def _send_facts(memory: MemoryClient, facts: Sequence[str], source: Json) -> None:
    """Let facts wait for a yes: as an export, which may hold what waits, and is the same twice."""
    if not facts:
        return
    held = {"category": "knowledge", "confidence": 1, "status": "waiting", "thread_id": source["unit"]}
    lines: list[Json] = [{"format": FORMAT, "schema": SCHEMA}]
    lines += [{"fact": {"content": each, **held}} for each in facts]
    memory.ask("POST", "/import", content=io.BytesIO("\n".join(map(json.dumps, lines)).encode()))


def _requests(
    conversations: Iterable[Conversation], name: str | None, most: int
) -> Iterator[tuple[str, list[Conversation]]]:
    """Yield conversations in pieces of so many messages, each after its source; a long one in parts."""
    piece: list[Conversation] = []
    for part in (part for conversation in conversations for part in _cut_long(conversation, most)):
        said = [one for each in (*piece, part) for one in each.messages]
        is_full = len(piece) == _MOST_CONVERSATIONS or _is_too_large(said, most)
        if piece and (is_full or (not name and piece[0].origin != part.origin)):
            yield name or piece[0].origin, piece
            piece = []
        piece.append(part)
    if piece:
        yield name or piece[0].origin, piece


def _cut_long(conversation: Conversation, most: int) -> Iterator[Conversation]:
    """Cut a conversation between exchanges, so that each part has so many messages at most."""
    part = replace(conversation, messages=())
    for exchange in exchanges(conversation.messages):
        if part.messages and _is_too_large((*part.messages, *exchange), most):
            yield part
            # The reply before goes along: what comes may answer it. It is known by then, and learned once.
            before = tuple(one for one in part.messages[-1:] if one.role == "assistant")
            part = replace(part, messages=before, goes_on=bool(before))
        part = replace(part, messages=(*part.messages, *exchange))
    yield part


def _is_too_large(said: Sequence[StoredMessage], most: int) -> bool:
    return len(said) > most or sum(len(one.text) for one in said) > _PIECE_CHARS
