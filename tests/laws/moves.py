"""What clients put into a thread, and what models answer there: each move is a function, its forms have names."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command

from tests.laws.history import LONG, History
from tests.laws.wire import DOWN, MARK, TOO_LONG, Json

Sent = list[Any] | None
NAMES = {"ada": "ada", "blank": "Zoe Quill", "slash": "Zoe/Quill", "long": "z" * 70, "odd": "Ž<|>"}


# What a client sends. Most send their messages, and some do something to the thread before.


def say(thread: History, more: str = "") -> Sent:
    return [HumanMessage(thread.says(more))]


def say_long(thread: History) -> Sent:
    return say(thread, LONG)


def several(thread: History) -> Sent:
    return [HumanMessage(thread.says()), HumanMessage([{"type": "text", "text": thread.says()}])]


def attachment(thread: History) -> Sent:
    image = {"type": "image_url", "image_url": {"url": "https://pictures.test/a.png", "detail": "low"}}
    return [HumanMessage([{"type": "text", "text": thread.says()}, image])]


def named(thread: History, name: str) -> Sent:
    said = thread.says(learned=(0, 1))
    (mark,) = MARK.findall(said)
    thread.names[mark] = NAMES[name]
    return [HumanMessage(said, name=NAMES[name])]


BLANKS: dict[str, Any] = {
    "nothing": "", "space": " \n", "no blocks": [], "a block": [{"type": "text", "text": ""}], "an empty text": [""],
}  # fmt: skip


def blank(thread: History, of: str) -> Sent:
    return [HumanMessage(BLANKS[of])]


def blank_and_words(thread: History) -> Sent:
    return [HumanMessage(thread.says()), HumanMessage(""), HumanMessage([{"type": "text", "text": " "}])]


def rule(thread: History) -> Sent:
    """Send the same system message as before, with a question."""
    thread.rule = thread.rule or thread.mark()
    thread.holds(thread.rule)
    return [SystemMessage(f"Rule {thread.rule}."), HumanMessage(thread.says())]


def another_rule(thread: History) -> Sent:
    mark = thread.mark()
    thread.holds(mark)
    return [HumanMessage(thread.says()), SystemMessage(f"Rule {mark}."), HumanMessage(thread.says())]


async def again(thread: History) -> Sent:
    """Send the newest message once more, under its own id."""
    newest = next((one for one in reversed(await thread.messages()) if isinstance(one, HumanMessage)), None)
    return [newest] if newest and thread.is_open else say(thread)


def same_id_twice(thread: History) -> Sent:
    first = thread.says()
    thread.loses(*MARK.findall(first))
    identity = f"twice {first}"
    return [HumanMessage(first, id=identity), HumanMessage(thread.says(), id=identity)]


async def go_on(thread: History) -> Sent:
    """Run without input, where a run has failed or was stopped."""
    return None if thread.is_open else say(thread)


async def copied(thread: History) -> Sent:
    """Copy the newest checkpoint, as a server does when it starts after it was killed."""
    if thread.saved or thread.is_open:
        await thread.update(None, "__copy__")
    return await go_on(thread)


async def _of(thread: History, kind: type[BaseMessage], at: int) -> list[BaseMessage]:
    found = [one for one in await thread.messages() if isinstance(one, kind)]
    return found[at : at + 1] if at >= 0 else found[at:][:1]


async def edit(thread: History, at: int) -> Sent:
    for one in await _of(thread, HumanMessage, at):
        thread.loses(*MARK.findall(str(one.content)))
        said = thread.says(learned=(0, 1))
        if set(MARK.findall(str(one.content))) & thread.summarized():
            thread.loses(*MARK.findall(said))
            thread.may |= {*MARK.findall(said)}
        await thread.update([HumanMessage(said, id=one.id)])
    return say(thread)


async def remove(thread: History, kind: type[BaseMessage], at: int) -> Sent:
    for one in await _of(thread, kind, at):
        thread.loses(*MARK.findall(str(one.content)))
        called = {call["id"] for call in getattr(one, "tool_calls", ())}
        orphans = [each for each in await thread.messages() if isinstance(each, ToolMessage)]
        left = {mark for each in orphans if each.tool_call_id in called for mark in MARK.findall(str(each.content))}
        thread.loses(*left)
        thread.may |= left
        if isinstance(one, ToolMessage):  # the next turn puts it back, as one that the run could not store
            thread.is_pruned = True
            thread.may |= {*MARK.findall(str(one.content))}
        await thread.update([RemoveMessage(id=str(one.id))])
    return say(thread)


async def clear(thread: History, how: str) -> Sent:
    messages = await thread.messages()
    thread.clears()
    everything = RemoveMessage(id=REMOVE_ALL_MESSAGES)
    if how == "each" and messages:
        await thread.update([RemoveMessage(id=str(one.id)) for one in messages])
    if how == "update" and messages:
        await thread.update([everything])
    if how == "update with words" and messages:
        await thread.update([everything, HumanMessage(thread.says(learned=(0, 1)))])
    return [everything, *(say(thread) or ())] if how == "input" else say(thread)


async def branch(thread: History, back: int) -> Sent:
    """Go on from where the thread stood some turns ago."""
    if len(thread.saved) < back:
        return say(thread)
    place, held, may = thread.saved[-back]
    thread.loses(*thread.held - held)
    thread.held, thread.may = {*held}, {*may}
    thread.place, thread.is_open = place, False
    return say(thread)


async def learn(thread: History) -> Sent:
    await thread.door.learn()
    return say(thread)


# Histories that a client fills in.


def _filled(thread: History, mark: str = "") -> tuple[str, str]:
    question, answer = thread.says(learned=(0, 1)), mark or thread.mark()
    thread.holds(answer)
    return question, f"Answer {answer}."


def _call(identity: str | None, what: str = "x") -> Any:
    return tool_call(name="act", args={"what": what}, id=identity)


def filled(thread: History, of: str) -> list[Any]:
    # What a call has done that nobody approved is told where the user goes on, not where a client answers itself.
    thread.held -= thread.left
    thread.may |= thread.left
    question, answer = _filled(thread)
    results = [thread.mark() for _ in range(2)]
    first, second = (f"Result {mark}." for mark in results)
    asked, plain = HumanMessage(question), AIMessage(answer)
    text = {"type": "text", "text": answer}
    if of == "much":
        more = [
            HumanMessage(thread.says(LONG, learned=(0, 1))) if at % 2 else AIMessage("Go on." + LONG) for at in range(5)
        ]
        return [asked, *more, plain]
    if of == "an empty answer":
        return [asked, AIMessage(""), HumanMessage(thread.says(learned=(0, 1))), plain]
    calls: dict[str, list[Any]] = {
        "a call": [AIMessage("", tool_calls=[_call("1")]), ToolMessage(first, tool_call_id="1")],
        "an open call": [AIMessage("", tool_calls=[_call("1")])],
        "doubled ids": [AIMessage("", tool_calls=[_call("1"), _call("1", "y")]), ToolMessage(first, tool_call_id="1"),
                        ToolMessage(second, tool_call_id="1")],
        "numbered anew": [AIMessage("", tool_calls=[_call("0")]), ToolMessage(first, tool_call_id="0"),
                          AIMessage("", tool_calls=[_call("0")]), ToolMessage(second, tool_call_id="0")],
        "no ids": [AIMessage("", tool_calls=[_call("")]), ToolMessage(first, tool_call_id="")],
        "an empty result": [AIMessage("", tool_calls=[_call("1")]), ToolMessage("", tool_call_id="1")],
        "a garbled call": [AIMessage("", invalid_tool_calls=[invalid_tool_call(name="act", args='{"x', id="1")])],
    }  # fmt: skip
    forms: dict[str, list[Any]] = {
        "words": [plain],
        "mappings": [{"type": "ai", "content": answer}],
        "no question": [plain],
        "a blank answer": [AIMessage([{"type": "text", "text": " "}]), plain],
        "a name": [AIMessage(answer, name="Research Team")],
        "a thought": [AIMessage(f"<think>t1</think>{answer}")],
        "only a thought": [AIMessage("<think>t2</think>"), plain],
        "Claude's": [AIMessage([{"type": "thinking", "thinking": "t3", "signature": "s"},
                                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, text])],
        "Gemini's": [AIMessage([{"type": "executable_code", "executable_code": "t4", "language": 1}, text])],
        "of Responses": [AIMessage([{"type": "reasoning", "id": "r", "summary": []}, {**text, "annotations": []}])],
        "v1": [AIMessage([{"type": "non_standard", "value": {"said": "t5"}}, {**text, "annotations": []}])],
    }  # fmt: skip
    if of == "an orphan":
        thread.may |= {results[0]}
        return [asked, plain, ToolMessage(first, tool_call_id="9")]
    made = calls.get(of)
    if made is not None:
        thread.holds(*(mark for mark in results if mark in str(made)))
        return [asked, *made, plain]
    if of == "no question":
        thread.loses(*MARK.findall(question))
        return forms[of]
    return [asked, *forms[of]]


FILLED = ("words", "much", "mappings", "no question", "a call", "an open call", "doubled ids", "numbered anew",
          "no ids", "an empty result", "a garbled call", "an empty answer", "a blank answer", "a name", "a thought",
          "only a thought", "Claude's", "Gemini's", "of Responses", "v1", "an orphan")  # fmt: skip


def fill(thread: History, of: str) -> Sent:
    messages = filled(thread, of)
    thread.new.clear()
    return [*messages, *(say(thread) or ())]


async def fill_first(thread: History, of: str) -> Sent:
    await thread.update(filled(thread, of))
    return say(thread)


Client = Callable[[History], Sent | Awaitable[Sent]]


def _forms(move: Callable[..., Any], *forms: Any) -> dict[str, Client]:
    def made(form: Any) -> Client:
        return lambda thread: move(thread, form)

    return {f"{move.__name__} {form}": made(form) for form in forms}


CLIENTS: dict[str, Client] = {
    **{move.__name__: move for move in (say, say_long, several, attachment, blank_and_words, rule, another_rule,
                                        again, same_id_twice, go_on, copied, learn)},
    **_forms(named, *NAMES),
    **_forms(blank, *BLANKS),
    **_forms(edit, 0, -1),
    **_forms(branch, 1, 2, 3),
    **_forms(clear, "input", "update", "each", "update with words"),
    **_forms(fill, *FILLED),
    **_forms(fill_first, "words", "doubled ids", "an open call", "numbered anew"),
    **{f"remove {kind.__name__} {at}": (lambda thread, kind=kind, at=at: remove(thread, kind, at))  # type: ignore[misc]
       for kind in (HumanMessage, AIMessage, ToolMessage) for at in (0, -1)},
}  # fmt: skip


# What a model answers: messages of the protocol, or a failure.


def called(thread: History, *how: str, ids: tuple[str | None, ...] = (), name: str = "act", text: str = "") -> Json:
    """Return an answer with calls of tools."""
    calls = []
    for at, each in enumerate(how):
        mark = thread.mark()
        arguments = {"what": f"c{mark}"} | ({"how": each} if each else {})
        identity = ids[at] if ids else f"call_{mark}"
        calls.append(
            {"id": identity, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        )
    return {"content": text or None, "tool_calls": calls}


def garbled(thread: History, arguments: str) -> Json:
    answer = called(thread, "")
    answer["tool_calls"][0]["function"]["arguments"] = arguments
    return answer


def told(thread: History, more: str = "") -> Json:
    return {"content": f"Answer {thread.mark()}.{more}"}


Answer = Callable[[History], list[Json]]


def _fixed(*answers: Json) -> Answer:
    return lambda _: [{**answer} for answer in answers]


ANSWERS: dict[str, Answer] = {
    "well": lambda it: [told(it)],
    "long": lambda it: [told(it, LONG)],
    "empty": _fixed({"content": ""}),
    "blank": _fixed({"content": "\n\n"}),
    "null": _fixed({"content": None}),
    "filtered": _fixed({"content": "", "finish": "content_filter"}),
    "only reasoning": _fixed({"content": None, "reasoning_content": "t6"}),
    "reasoning": lambda it: [{"content": told(it)["content"], "reasoning_content": "t7"}],
    "thought": lambda it: [{"content": f"<think>t8</think>\n{told(it)['content']}"}],
    "swallowed thought": lambda it: [{"content": f"t9\n</think>\n{told(it)['content']}"}],
    "only a thought": _fixed({"content": "<think>t10</think>"}),
    "refusal": _fixed({"content": None, "refusal": "I will not."}),
    "call": lambda it: [called(it, "", text=f"Look {it.mark()}."), told(it)],
    "two calls": lambda it: [called(it, "", ""), called(it, "long"), told(it)],
    "doubled ids": lambda it: [called(it, "", "", ids=("same", "same")), told(it)],
    "no ids": lambda it: [called(it, "", "", ids=("", None)), told(it)],
    "numbered anew": lambda it: [called(it, "", ids=("0",)), called(it, "", ids=("0",)), told(it)],
    "thinking calls": lambda it: [{**called(it, ""), "reasoning_content": "t11"}, told(it)],
    "failing call": lambda it: [called(it, "", "fails"), told(it)],
    "empty result": lambda it: [called(it, "empty"), told(it)],
    "blocks": lambda it: [called(it, "blocks"), told(it)],
    "clearing call": lambda it: [called(it, "clears")],
    "direct": lambda it: [called(it, "", name="tell")],
    "direct and not": lambda it: [{**called(it, ""), "tool_calls": [
        *called(it, "", name="tell")["tool_calls"], *called(it, "")["tool_calls"]]}, told(it)],
    "unknown tool": lambda it: [called(it, "", name="fly"), told(it)],
    "tool of memory": lambda it: [called(it, "", name="list_memories"), told(it)],
    "cut": lambda it: [garbled(it, '{"what": "x'), called(it, ""), told(it)],
    "no object": lambda it: [garbled(it, "[1]"), told(it)],
    "no arguments": lambda it: [garbled(it, ""), told(it)],
    "handed off": lambda it: [{**called(it, "anna", name="transfer"), "content": f"Ask her about {it.mark()}."}],
    "handed on": lambda it: [called(it, "ben", name="transfer"), told(it)],
    "handed to two": lambda it: [called(it, "anna", "ben", name="transfer"), told(it)],
    "done and handed off": lambda it: [{**called(it, ""), "tool_calls": [
        *called(it, "")["tool_calls"], *called(it, "anna", name="transfer")["tool_calls"]]}],
    "sent": lambda it: [called(it, "sent", name="transfer"), told(it)],
    "down": _fixed(DOWN),
    "down behind a call": lambda it: [called(it, ""), DOWN],
    "always cut": lambda it: [garbled(it, '{"what": "x') for _ in range(3)],
    "too long": lambda it: [TOO_LONG, told(it)],
    "no summary": lambda it: [told(it)],
    "hangs": _fixed({"hangs": True}),
    "call hangs": lambda it: [called(it, "", "hangs"), told(it)],
    "asks": lambda it: [called(it, "", "asks"), told(it)],
    "asks twice": lambda it: [called(it, "asks", "", "asks"), told(it)],
    "asks in vain": lambda it: [called(it, "", "asks"), told(it)],
}  # fmt: skip
EMPTY = ("empty", "blank", "null", "filtered", "refusal", "only reasoning", "only a thought")
FAILS = ("down", "down behind a call", "always cut")
HANDED = ("handed off", "handed on", "handed to two", "done and handed off", "sent")
# What `create_agent` does with calls of tools is its own: some end the run there.
OF_GRAPH = ("cut", "no ids", "doubled ids", "failing call", "thinking calls", "too long", "clearing call", "always cut",
            "no object")  # fmt: skip
NEVER = {"keep": HANDED, "compact": HANDED, "agent": (*HANDED, *OF_GRAPH), "below": ("clearing call",)}
# What breaks seldom, or only in two turns, comes by itself. What is answered to the second one is any; what a door does
# not know is answered "well".
LINKED = (
    (("say", "thinking calls"), "say_long"),
    (("say", "call hangs"), "go_on"),
    (("say", "call hangs"), "copied"),
    (("say", "down behind a call"), "again"),
    (("say", "asks in vain"), "say"),
    (("say", "asks"), "fill a garbled call"),
    (("say", "direct"), "say"),
    (("say", "tool of memory"), "fill Claude's"),
    (("rule", "sent"), "rule"),
    (("another_rule", "done and handed off"), "fill much"),
    (("fill much", "well"), "clear input"),
    (("named blank", "well"), "named slash"),
)


async def turn(thread: History, client: str, answer: str) -> None:
    """Take one turn, and see that it is answered unless the model fails or is stopped."""
    thread.new, thread.results, thread.place = set(), set(), None
    sent = CLIENTS[client](thread)
    messages = sent if isinstance(sent, list) or sent is None else await sent
    thread.left = set[str]()
    thread.wire.answers = ANSWERS[answer](thread)
    thread.wire.writes_summaries = answer != "no summary"
    thread.is_pressed = answer in ("no summary", "too long")
    run = thread.run(None if messages is None else {"messages": messages}, thread.place)
    if answer in ("hangs", "call hangs"):
        await _stopped(thread, run, thread.wire.hangs if answer == "hangs" else thread.acts)
    elif answer in FAILS:
        with suppress(Exception):
            await run
        thread.check()
        thread.is_open = True
        if thread.door.kind == "below":
            thread.forgets()
        return
    else:
        await run
        thread.check()
    if answer in ("asks", "asks twice"):
        for asked in reversed(await thread.waiting()):
            await thread.run(Command(resume={asked: "yes"}))
    if answer in ("hangs", "call hangs", "asks in vain"):
        # `create_agent` begins a call again.
        thread.is_open = answer == "hangs" or (answer == "call hangs" and thread.door.kind != "agent")
        thread.undone |= thread.called - thread.done.keys()
        if answer == "call hangs" or thread.door.kind in ("agent", "below"):
            thread.forgets()
        thread.left = {*thread.results} if answer == "asks in vain" else set()
        thread.check()
        return
    thread.check()
    thread.is_open = False
    if answer not in ("clearing call", "direct"):
        await thread.answered()
        if answer in EMPTY:
            thread.sentences.append((await thread.messages())[-1].text)


async def _stopped(thread: History, run: Any, waits: asyncio.Event) -> None:
    waits.clear()
    under_way = asyncio.ensure_future(run)
    begun = asyncio.ensure_future(waits.wait())
    await asyncio.wait([under_way, begun], return_when=asyncio.FIRST_COMPLETED)
    assert begun.done(), under_way.exception()
    under_way.cancel()
    with suppress(asyncio.CancelledError):
        await under_way
