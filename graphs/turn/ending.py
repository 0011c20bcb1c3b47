"""The end of a turn, whichever door it came in by: written down, told, and noted in its thread."""

from dataclasses import asdict

from graphs.events import MemoryQueued, aemit
from graphs.turn.memory import TurnMemory
from graphs.turn.run import Run
from graphs.turn.state import LeftOutMessages, MemoryState, Receipt
from graphs.turn.thread import Thread
from memory.outbox.transcript import ThreadView
from memory.unwritten import Named, named


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
    if closed.queued is not None:
        await aemit(MemoryQueued.name, MemoryQueued.model_validate(asdict(closed.queued)))
    receipt = Receipt(**{**thread.receipt, "queued": closed.queued.entry if closed.queued else None})
    if closed.not_written:
        receipt["not_written"] = closed.not_written
    if (left_out := thread.left_out).messages:
        receipt["left_out"] = LeftOutMessages(messages=left_out.messages, ids=[*left_out.ids])
    if until := memory.waits_until(run):
        receipt["budget_used_up_until"] = until
    memory.count(receipt)
    kept = {key: value for key, value in thread.memory.items() if key not in Named.__annotations__}
    return MemoryState(**{**kept, "receipt": receipt, **named(closed.unwritten)})  # type: ignore[typeddict-item]
