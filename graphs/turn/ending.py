"""The end of a turn, whichever door it came in by: written down, told, and noted in its thread."""

from dataclasses import asdict

from langchain_core.messages import AIMessage

from graphs.events import MemoryQueued, aemit
from graphs.turn.memory import TurnMemory
from graphs.turn.run import Run
from graphs.turn.state import LeftOutMessages, MemoryState, Receipt
from graphs.turn.thread import Thread
from graphs.turn.writing import name_unwritten
from memory.unwritten import Named, Unwritten, named
from memory.updates.transcript import ThreadView


async def end_turn(memory: TurnMemory, run: Run, thread: Thread, view: ThreadView | None) -> MemoryState:
    """Write a thread's newest turn down, trigger its update, and return what the thread keeps of memory.

    Args:
        memory: Writes it down.
        run: The turn's run.
        thread: The thread.
        view: What the thread holds; `None` if nobody knows.
    """
    # Where the turn was named before it ended, this is the last try to write it down.
    before = tuple(one for one in thread.unwritten if one.asked != run.asked)
    is_read = thread.receipt.get("without_memory") not in ("unreadable", "store_away")
    closed = await memory.writing.close(run, thread.messages, thread.epochs, view, before, is_read=is_read)
    memory.writing.leave(run, thread.messages, thread.epochs, closed.unwritten)
    if closed.queued is not None:
        await aemit(MemoryQueued.name, MemoryQueued.model_validate(asdict(closed.queued)))
    receipt = Receipt(**{**thread.receipt, "queued": closed.queued.entry if closed.queued else None})
    if closed.not_written:
        receipt["not_written"] = closed.not_written
    if (left_out := thread.left_out).messages:
        receipt["left_out"] = LeftOutMessages(messages=left_out.messages, ids=[*left_out.ids])
    memory.count(receipt)
    kept = {key: value for key, value in thread.memory.items() if key not in Named.__annotations__}
    return MemoryState(**{**kept, "receipt": receipt, **named(closed.unwritten)})  # type: ignore[typeddict-item]


def broken_off(run: Run, thread: Thread, now: float) -> tuple[Unwritten, ...]:
    """Return the turn before, where its run ended between the answer and `end_turn`: then nobody wrote it down.

    A run that somebody interrupts there, or that fails as its answer is streamed, is not gone on with. A question that
    has no answer yet is written down with the turn that follows.

    Args:
        run: The run of the turn that begins.
        thread: The thread, as the turn before left it.
        now: Seconds since the epoch.
    """
    asked, at = thread.receipt.get("asked"), thread.memory.get("at")
    if not asked or asked == thread.asked or "queued" in thread.receipt:
        return ()
    # Where memory could not be read, nobody knows whether the turn may be learned.
    if thread.receipt.get("without_memory") not in (None, "not_used") or not _is_answered(thread, asked):
        return ()
    return name_unwritten(run, asked, at if isinstance(at, float) else now, thread.epochs)


def _is_answered(thread: Thread, asked: str) -> bool:
    """Say whether a message of the thread was answered; only the end of the thread is looked at."""
    is_answered = False
    for message in reversed(thread.messages):
        if message.id == asked:
            return is_answered
        is_answered = is_answered or (isinstance(message, AIMessage) and not message.tool_calls)
    return False
