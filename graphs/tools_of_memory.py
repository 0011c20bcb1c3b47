"""Tools with which the chat model uses memory itself: each on or off per assistant, for the run's own user only.

A function's name, its docstring and its annotations are what the model reads of the tool. Whose memory it is, in which
mode, and where it is kept says the run, never an argument. What comes back is quoted data within bounds, screened
again, and never learned from, as no tool's output is; what cannot be done is told in words that the model can act on.
Changes keep the rules of extraction, so that a model that was talked into something by a web page cannot write more
than the user said.
"""

import asyncio
import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from inspect import signature
from typing import Annotated, Any, Final, NamedTuple, get_args, get_type_hints

from langchain.tools import ToolRuntime
from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import Field, create_model

from graphs.process.deployment import service_of_process
from graphs.process.events import MemoryUpdated, aemit, payload_of
from graphs.process.service import MemoryService
from graphs.process.synchronous import finished
from graphs.turn.context import MemoryToolName
from graphs.turn.run import Run
from graphs.turn.stores import tolerated_store
from memory import prompts
from memory.config import Category, MemoryConfig, stricter
from memory.context.running_summary import state_of
from memory.control import Control, read_control
from memory.door import StoreEffects, arun, ask, on_thread, put, read, side_by_side, transaction
from memory.extraction.extraction import judge_fact
from memory.facts.changes import Outcome
from memory.facts.fact import Fact, FactNotFound, MemoryFull, is_protected, may_be_used
from memory.facts.rows import read_snapshot
from memory.facts.store import FactEffects
from memory.forget.threads import erased_between, read_thread_erase
from memory.injection.block import escape, fact_line, line_of, turn_line
from memory.journal.journal import hold_repeats
from memory.message import day_of, iso_time
from memory.namespaces import Owner, thread_namespace
from memory.recall.past import read_past
from memory.recall.search import LEAST_SHARE, relevant
from memory.recall.user_index import Recalled
from memory.text import digest
from memory.turn import TurnEpochs, effective_mode, learnable, may_learn, may_read, mode_of_newest
from memory.updates.receipts import UpdateReceipt, write_receipt
from memory.updates.transcript import to_turn

logger = logging.getLogger(__name__)

NAMES: Final[tuple[MemoryToolName, ...]] = get_args(MemoryToolName)
# For these, memory has to learn; for the others it has to be used.
_LEARNING: Final = frozenset({"remember", "restore"})
_WRITING: Final = _LEARNING | {"forget"}

Runtime = ToolRuntime[Any, Any]
InWhoseName = tuple[Run, Mapping[str, Any]]
"""The run in which a tool is called, and what the thread's state keeps of memory."""

_MOST_HITS: Final = 10
_PAGE_FACTS: Final = 40
_CONVERSATION_CHARS: Final = 4_000
_NEIGHBOURS: Final = 2
# What the user says in so many words; only what they wrote by hand is surer.
_CONFIDENCE: Final = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """In which turn the model asks, as its run says it; nothing of it comes from the model.

    Attributes:
        owner: Whose memory.
        thread_id: The thread.
        messages: The thread's messages, as far as they are at hand.
        epochs: Under which epochs the turn began; empty where nobody read them.
        now: Seconds since the epoch.
        call_id: The call's id in the thread: its receipt is written once.
        config: Limits.
        search: Looks for a query in all that the owner's index should have by now: it is given the facts, the query
            and the time, and may block.
        control: The user's, as it is now.
    """

    owner: Owner
    thread_id: str
    messages: Sequence[BaseMessage]
    epochs: TurnEpochs
    now: float
    call_id: str
    config: MemoryConfig
    search: Callable[[Sequence[Fact], str, str], Recalled]
    control: Control = field(default_factory=Control)

    @property
    def facts(self) -> FactEffects:
        """What can be done to the owner's facts."""
        return FactEffects(self.owner, self.config, lambda: self.now)

    @property
    def zone(self) -> tzinfo:
        """Where the user is."""
        return self.control.zone or UTC


class Told(NamedTuple):
    """What the model is told, and what was done, if anything was."""

    text: str
    receipt: UpdateReceipt | None = None


async def search_memory(
    call: ToolCall,
    query: Annotated[str, Field(description="Words or a question.")],
    limit: Annotated[int, Field(description="How many facts and how many passages, at most 10.")] = 5,
) -> Told:
    """Search what is remembered of the user and of earlier conversations, with dates."""
    snapshot, evicted = await side_by_side(read_snapshot(call.owner), call.facts.search(query, None, status="evicted"))
    snapshot, most = snapshot.at(call.now), min(max(1, limit), _MOST_HITS)
    found = call.search(snapshot.facts, query, datetime.fromtimestamp(call.now, call.zone).isoformat())
    facts = {fact.id: fact for fact in snapshot.facts}
    hits = relevant([hit for hit in found.hits if hit.document.id in facts], LEAST_SHARE)
    exchanges: dict[str, str] = {}
    for hit in relevant([hit for hit in found.hits if hit.document.entry], LEAST_SHARE):
        source = hit.document.entry
        if source not in exchanges and len(exchanges) < most and (line := line_of(hit.document, query)):
            exchanges[source] = f"{line} (source {source})"
    sections = {
        "Facts:": _facts((facts[hit.document.id] for hit in hits), call.zone)[:most],
        # What history holds nobody has screened since it went there.
        "No longer in use, as memory was full (restore brings one back):": _facts(
            filter(may_be_used, evicted), call.zone
        )[:most],
        "Past conversations:": [*exchanges.values()],
    }
    text = "\n\n".join("\n".join([title, *lines]) for title, lines in sections.items() if lines)
    return Told(_quoted(text) if text else "Nothing is remembered about that. Try other words, or ask the user.")


async def read_conversation(
    call: ToolCall, source: Annotated[str, Field(description="As search_memory names it.")]
) -> Told:
    """Read what was said around a passage of an earlier conversation."""
    journal = await read_past(call.owner)
    hit = next((entry for entry in journal if entry.key == source.strip()), None)
    if hit is None:
        return Told("No past conversation has this source: take one that search_memory names.")
    thread = [entry for entry in journal if entry.thread_id == hit.thread_id]
    at, room, kept = thread.index(hit), _CONVERSATION_CHARS, dict[int, str]()
    # The hit first, then what is nearest to it.
    for each in sorted(range(len(thread)), key=lambda each: abs(each - at))[: 2 * _NEIGHBOURS + 1]:
        lines = [turn_line(thread[each].day, one.speaker, one.text, room) for one in thread[each].messages]
        if text := "\n".join(filter(None, lines))[:room]:
            kept[each], room = text, room - len(text)
    text = "\n".join(kept[each] for each in sorted(kept))
    return Told(_quoted(text) if text else "Of this conversation nothing can be shown.")


async def list_memories(
    call: ToolCall, category: Annotated[Category | None, Field(description="Only this one.")] = None, page: int = 1
) -> Told:
    """List the facts that are remembered about the user, with their ids."""
    snapshot = (await read_snapshot(call.owner)).at(call.now)
    facts = [fact for fact in snapshot.facts if category in (None, fact.category)]
    start = (max(1, page) - 1) * _PAGE_FACTS
    lines = _facts(facts[start : start + _PAGE_FACTS], call.zone)
    if not lines:
        return Told("Nothing is remembered yet." if not facts else f"There is no page {page}.")
    left = len(facts) - start - len(lines)
    more = f"\n{left} more: ask for page {max(1, page) + 1}." if left else ""
    return Told(_quoted("\n".join(["Facts:", *lines])) + more)


async def remember(
    call: ToolCall,
    content: Annotated[str, Field(description="One short sentence about the user, in their words.")],
    category: Annotated[
        Category, Field(description="knowledge: who they are. preference: likes, how to answer. context: current work.")
    ],
    corrects: Annotated[str | None, Field(description="Id of the fact that it takes the place of.")] = None,
) -> Told:
    """Remember one fact that the user just told, at once. What they say is learned later anyway."""
    snapshot, erase = await side_by_side(read_snapshot(call.owner), read_thread_erase(call.thread_id))
    wrong = next((fact for fact in snapshot.facts if fact.id == corrects), None)
    if corrects and wrong is None:
        return Told(_unknown(corrects))
    # The newest turn as it will be written down, with the answer that it replies to: no more is learned.
    newest = to_turn(learnable(call.epochs.newest_turn(call.messages)), iso_time(call.now), call.epochs.speaker)
    extraction = judge_fact(
        {"content": content, "category": category, "confidence": _CONFIDENCE},
        tuple(replace(message, edit=call.epochs.edit) for message in newest),
        corrects=wrong,
        existing=snapshot.at(call.now).facts,
        config=call.config,
        time_zone=call.control.zone,
    )
    epoch = call.epochs.epoch or snapshot.control.epoch
    if erased_between(call.epochs.thread_epoch, erase.epoch) or epoch != snapshot.control.epoch:
        return Told(f"Not remembered: {prompts.NOT_REMEMBERED['stale']}")
    outcome = await call.facts.apply(extraction, thread_id=call.thread_id, epoch=epoch, now=iso_time(call.now))
    await hold_repeats(call.owner, call.control)
    sources = tuple(dict.fromkeys(each for change in extraction.changes for each in change.sources))
    return await _note(call, _told_outcome(outcome), outcome, said=sources)


async def forget(
    call: ToolCall, fact_id: Annotated[str, Field(description="As list_memories or search_memory name it.")]
) -> Told:
    """Forget a fact because the user asks for it; they can undo it."""
    try:
        fact = await call.facts.get(fact_id.strip())
    except FactNotFound:
        return Told(_unknown(fact_id))
    if fact.status != "active":
        return Told("Not forgotten: this fact waits for the user's review, and nothing uses it.")
    if is_protected(fact, call.config.protected_categories):
        return Told("Not forgotten: the user wrote or pinned this, so only they can remove it, in their memory.")
    await call.facts.retire(fact.id)
    return await _note(call, "Forgotten. The user can undo it.", Outcome(superseded=(fact.id,)))


async def restore(call: ToolCall, fact_id: Annotated[str, Field(description="As search_memory names it.")]) -> Told:
    """Bring back a fact that is no longer in use, because the user asks about it."""
    gone = next((each for each in await call.facts.list("evicted") if each.id == fact_id.strip()), None)
    if gone is None:
        return Told(_unknown(fact_id))
    # It was used before the user asked to be asked; a model must not take that for a yes.
    if stricter(call.config.approval, call.control.approval) != "off":
        return Told("Not restored: only the user can bring this back, as they want to be asked first.")
    try:
        fact = await call.facts.restore(gone.id)
    except MemoryFull:
        return Told(f"Not restored: {prompts.NOT_REMEMBERED['full']}")
    if fact.status != "active":
        return Told(f"Not restored: {prompts.NOT_REMEMBERED['instruction_like']}")
    text = f"Restored as {fact.id}. The user can undo it."
    return await _note(call, text, Outcome(created=(fact.id,)))


_TOOLS: Final[Mapping[str, Callable[..., StoreEffects[Told]]]] = {
    tool.__name__: tool for tool in (search_memory, read_conversation, list_memories, remember, forget, restore)
}


def carried_out(name: str, call: ToolCall, arguments: Mapping[str, Any]) -> StoreEffects[Told]:
    """Carry out a call of a tool, unless the user has switched off what it needs."""

    async def effects(call: ToolCall) -> Told:
        control = await read_control(call.owner)
        if name in _LEARNING and not (call.config.enabled and control.learning):
            return Told("Not remembered: the user has paused learning.")
        if name not in _LEARNING and not control.use:
            return Told("The user has switched off that memory is used: answer without it.")
        return await _TOOLS[name](replace(call, control=control), **arguments)

    return (transaction(effects) if name in _WRITING else effects)(call)


def memory_tools(
    names: Sequence[MemoryToolName] = NAMES,
    *,
    service: Callable[[], MemoryService] = service_of_process,
    asked_by: Callable[[Runtime], InWhoseName] | None = None,
) -> tuple[BaseTool, ...]:
    """Return tools for a chat graph, or for any agent whose tools are given a `ToolRuntime`, such as `create_agent`.

    Args:
        names: Which ones.
        service: Returns the service whose settings and clock they use; called when a tool is.
        asked_by: Returns in whose name a tool is called; by default as the chat graph sees its own run.

    Raises:
        ValueError: If there is no tool of a name.
    """
    if unknown := sorted(set(names) - set(NAMES)):
        raise ValueError(f"tools: there is no {', '.join(map(repr, unknown))}; there are {', '.join(NAMES)}")

    def asked_by_graph(runtime: Runtime) -> InWhoseName:
        run = Run.of(runtime.config, runtime, service().settings)
        return run, state_of(state_of(runtime.state).get("memory"))

    return tuple(_tool(name, service, asked_by or asked_by_graph) for name in names)


def _tool(
    name: MemoryToolName, service: Callable[[], MemoryService], asked_by: Callable[[Runtime], InWhoseName]
) -> BaseTool:
    async def told(runtime: Runtime, **arguments: Any) -> str:
        """Carry out a call in the time for which a turn waits for memory."""
        with tolerated_store(logger, f"the tool {name} failed"):
            process, said = service(), state_of(runtime.state).get("messages", ())
            messages = [message for message in said if isinstance(message, BaseMessage)]
            run, kept = asked_by(runtime)
            if run.place is None:
                return "There is no memory in this conversation: nobody is logged in, or nothing is stored."
            store, owner = run.place
            declared = await run.mode(process.stores.seconds["read"])
            mode = effective_mode(declared, kept.get("mode"), mode_of_newest(messages))
            if not may_read(mode):
                return "This conversation is incognito: memory is neither used nor changed in it."
            if name in _LEARNING and not may_learn(mode):
                return "Not remembered: nothing is learned in this conversation (read-only mode)."
            loop = asyncio.get_running_loop()

            def search(*wanted: Any) -> Recalled:
                return asyncio.run_coroutine_threadsafe(process.recalling.search(store, owner, *wanted), loop).result()

            call = ToolCall(
                owner=owner,
                thread_id=run.thread_id,
                messages=messages,
                epochs=TurnEpochs.from_state(kept),
                now=process.clock(),
                call_id=str(runtime.tool_call_id),
                config=process.settings.memory,
                search=search,
            )
            done = await process.stores.ask(
                store,
                "write" if name in _WRITING else "read",
                lambda: arun(store, carried_out(name, call, arguments), aside=on_thread),
            )
            if done.receipt is not None:
                await aemit(MemoryUpdated.name, payload_of(done.receipt), config=runtime.config)
            return done.text
        return f"{name} does not work at the moment. Go on without it."

    def told_in_thread(runtime: Runtime, **arguments: Any) -> str:
        # An agent that is invoked synchronously runs its tools on threads without an event loop.
        return finished(told(runtime, **arguments))

    schema = _arguments(name)
    return StructuredTool.from_function(told_in_thread, told, name, _TOOLS[name].__doc__, args_schema=schema)


@functools.cache
def _arguments(name: MemoryToolName) -> Any:
    """Return the schema of a tool's arguments, which takes most of the time in which a graph is made."""
    hints, (_, *wanted) = get_type_hints(_TOOLS[name], include_extras=True), signature(_TOOLS[name]).parameters.values()
    fields: dict[str, Any] = {
        each.name: (hints[each.name], ... if each.default is each.empty else each.default) for each in wanted
    }
    return create_model(name, **fields)


async def _note(call: ToolCall, text: str, outcome: Outcome, said: tuple[str, ...] = ()) -> Told:
    """Write down what a call did, and tell the model."""
    receipt = UpdateReceipt.of(outcome, time=iso_time(call.now), thread_id=call.thread_id, messages=said)
    await write_receipt(call.owner, digest("tool", call.thread_id, call.call_id)[:32], receipt)
    # Erasing the thread finds whose memory it fed by this note, also if the turn is never written down. One that is
    # there stays: it may list turns that were written down late.
    notes = thread_namespace(call.thread_id)
    if not await read(notes, call.owner.due_key):
        await ask(put(notes, call.owner.due_key, {}))
    return Told(text, receipt)


def _told_outcome(outcome: Outcome) -> str:
    if outcome.created:
        return f"Remembered as {outcome.created[0]}."
    if outcome.waiting:
        return (
            "Noted, and not used before the user says yes, which only they can, on the page of their memory: tell them "
            "so."
        )
    if outcome.confirmed:
        return f"That is known already, as {outcome.confirmed[0]}."
    reason = outcome.refused[0].reason if outcome.refused else "empty"
    return f"Not remembered: {prompts.NOT_REMEMBERED.get(reason, 'it is no fact about the user.')}"


def _unknown(fact_id: str) -> str:
    return f"No fact has the id {escape(fact_id)[:40]!r}: search_memory and list_memories tell the ids."


def _facts(facts: Iterable[Fact], zone: tzinfo) -> list[str]:
    return [f"{fact_line(fact)} (id {fact.id}, since {day_of(fact.created_at, zone)})" for fact in facts]


def _quoted(text: str) -> str:
    return prompts.TOOL_RESULT.format(memory=text)
