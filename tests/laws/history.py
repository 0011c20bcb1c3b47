"""One thread by one door, and a book of what was said in it: what each prompt has to tell is known from the book."""

import asyncio
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command, Send, interrupt

from palimpsest import Context, PalimpsestMemory, PalimpsestSummary, build_graph
from tests.laws.talk import Talk
from tests.laws.wire import MARK, Json, Wire, text_of, tokens_of

LONG = " word" * 250
TOOLS = ("act", "tell", "transfer")
ROOM = 1500
"""Tokens of a prompt: two or three long messages fit."""
_SUMMARY: dict[str, Any] = {"max_summary_tokens": 400, "trigger": ("tokens", 900), "keep": ("tokens", 300)}


@dataclass
class Firm:
    """The context of a graph above ours."""

    department: str


class Door(Talk):
    """A deployment, whose threads are of a user each.

    Args:
        kind: `keep` and `compact` are the chat graph with transcripts of that kind, `agent` is one of `create_agent`,
            and `below` is the chat graph as a node of another one, beside two agents.
    """

    def __init__(self, kind: str) -> None:
        self.kind, self.wire, self.thread = kind, Wire(), History.__new__(History)
        self.numbers = itertools.count()
        self.room = ROOM if kind == "agent" else ROOM - 64
        limits: dict[str, Any] = {"max_tokens": ROOM, "max_summary_tokens": 400, "reply_tokens": 64}
        of_agent = {"chat": self.wire.of_agent("chat")} if kind == "agent" else {}
        super().__init__(
            "agent" if kind == "agent" else "graph",
            tools=self._tools(),
            around=self._around,
            context=Context(system_prompt="Be brief.", transcript="compact" if kind == "compact" else "keep", **limits),
            # What is written behind a turn comes at a time of its own: each thread is to go the same way each time.
            memory={"prepare_summary_share": 1},
            models={purpose: self.wire.of_process(purpose) for purpose in ("chat", "summary", "memory")} | of_agent,
        )
        if kind == "below":
            chat = build_graph(service=self.service, tools=self._tools()).compile()
            above: Any = StateGraph(MessagesState, context_schema=Firm).add_node(
                "chat", chat, destinations=("anna", "ben")
            )
            above.add_node("anna", self._answers).add_node("ben", self._asks, destinations=("chat",))
            self.graph = above.add_edge(START, "chat").compile(checkpointer=self.saver, store=self.store)
            self.context, self.room = Firm("sales"), Context().max_tokens

    def _around(self, memory: PalimpsestMemory) -> list[Any]:
        memory = PalimpsestMemory(service=memory.service, tools=())
        return [memory, PalimpsestSummary(self.wire.of_agent("summary"), memory=memory, **_SUMMARY)]

    def _answers(self, _: Any) -> dict[str, Any]:
        mark = self.thread.mark()
        self.thread.holds(mark)
        return {"messages": [AIMessage(f"It is {mark}.", name="anna")]}

    def _asks(self, _: Any) -> Command[Any]:
        return Command(goto="chat", update={"messages": [self._task()]})

    def _task(self) -> HumanMessage:
        task = HumanMessage(self.thread.says(learned=(0, 0)), name="ben")
        self.thread.of_agents |= {*MARK.findall(task.text)}
        return task

    def _tools(self) -> list[BaseTool]:
        @tool
        async def act(what: str, how: str = "") -> Any:
            """Do something."""
            return await self.thread.act(what, how)

        @tool(return_direct=True)
        async def tell(what: str) -> str:
            """Tell the user something."""
            return str(await self.thread.act(what, ""))

        @tool
        async def transfer(what: str, how: str, runtime: ToolRuntime) -> Any:
            """Hand the turn off."""
            said = ToolMessage(await self.thread.act(what, ""), tool_call_id=runtime.tool_call_id)
            update = {"messages": [*runtime.state["messages"], said]}
            if how != "sent":
                return Command(graph=Command.PARENT, goto=how, update=update)
            task = self._task()
            self.thread.alone = {*MARK.findall(task.text)}
            return Command(graph=Command.PARENT, goto=[Send("chat", {"messages": [task]})], update=update)

        return [act, tell, *([transfer] if self.kind == "below" else [])]


class History:
    """A thread from its beginning on.

    Attributes:
        held: Marks that the model has to be told, each once.
        may: Marks that it may be told: what a summary had told before it was removed.
        new: Those of `held` that came with this turn.
        learned: How often at least and at most each mark of a user is to be learned.
        called: What the model asked tools for: each is to be done, and nothing else.
        undone: Of that, what need not be.
        done: What they did, by what they were asked.
        alone: Marks of a task that is sent to the graph without the thread.
        of_agents: Marks of what an agent said in the user's place: they are not to be read to be learned.
    """

    def __init__(self, door: Door) -> None:
        self.door, self.wire, self.number = door, door.wire, next(door.numbers)
        door.thread = self
        self.wire.begin()
        self.wire.asked, self.wire.said = self._asked, self._said
        self.held, self.may, self.new, self.results = set[str](), set[str](), set[str](), set[str]()
        self.learned: dict[str, tuple[int, int]] = {}
        self.names: dict[str, str] = {}
        self.done: Counter[str] = Counter()
        self.called, self.undone, self.alone, self.of_agents = set[str](), set[str](), set[str](), set[str]()
        self.marks, self.faults = itertools.count(1), list[str]()
        self.saved: list[tuple[RunnableConfig, set[str], set[str]]] = []
        self.is_pressed = self.is_open = self.is_pruned = False
        self.acts = asyncio.Event()
        self.sentences: list[str] = []
        self.rule, self.left = "", set[str]()
        self.place: RunnableConfig | None = None

    # What was said.

    def mark(self) -> str:
        """Return a word that nobody has said."""
        return f"w{next(self.marks)}"

    def says(self, more: str = "", *, learned: tuple[int, int] = (1, 1)) -> str:
        """Return what a user says."""
        mark = self.mark()
        self.holds(mark)
        self.learned[mark] = learned
        return f"I like {mark}.{more}"

    def holds(self, *marks: str) -> None:
        """Note that the thread holds them."""
        self.held |= {*marks}
        self.new |= {*marks}

    def loses(self, *marks: str) -> None:
        """Note that a client removed them: what stands for them in a summary goes on telling them."""
        summarized = self.summarized()
        self.held -= {*marks}
        self.new -= {*marks}
        self.may |= {*marks} & summarized
        for mark in {*marks} & self.learned.keys():
            self.learned[mark] = (0, 1)

    def summarized(self) -> set[str]:
        """Return the marks that the newest prompt told in its system message."""
        return {*MARK.findall(text_of(self.wire.prompts[-1]["messages"][:1]))} if self.wire.prompts else set()

    async def act(self, what: str, how: str) -> Any:
        """Do what the model asks for."""
        if how == "asks":
            interrupt(what)
        self.done[what] += 1
        if how == "hangs" and self.done[what] == 1:
            self.acts.set()
            await asyncio.Event().wait()
        if how == "empty":
            return ""
        mark = self.mark()
        self.holds(mark)
        self.results.add(mark)
        if how == "fails":
            raise ValueError(f"no {mark}")
        if how == "clears":
            self.clears()
            return Command(update={"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]})
        said = f"Result {mark}." + LONG * (how == "long")
        return [{"type": "text", "text": said}] if how == "blocks" else said

    def clears(self) -> None:
        """Note that the thread was cleared."""
        self.loses(*self.held)
        self.may.clear()

    def forgets(self) -> None:
        """Note that what came of this turn may not be stored: results, and below another graph what the model said."""
        lost = self.new - self.learned.keys() if self.door.kind == "below" else self.results
        if self.door.kind == "below":  # nobody names the turn: where a client puts answers behind it, it is not learned
            self.learned |= dict.fromkeys(self.new & self.learned.keys(), (0, 1))
        self.held -= lost
        self.may |= lost

    # What is asked of each prompt.

    def _said(self, answer: Json) -> None:
        self.holds(*MARK.findall(str(answer.get("content"))))
        self.called |= {
            str(what) for name, what in map(_asked_of, answer.get("tool_calls") or ()) if what and name in TOOLS
        }

    def _asked(self, body: Json) -> None:
        said = text_of(body["messages"])
        told = Counter(MARK.findall(said))
        owed = self.alone or (self.new if self.is_pressed else self.held)
        self.alone = set()
        wrong = {
            "not told": owed - told.keys(),
            "told twice": {mark for mark, times in told.items() if times > 1},
            "told though it is gone": told.keys() - self.held - self.may,
            "thoughts": {*re.findall(r"\bt\d+\b", said)},
            "the run's own sentence": {sentence for sentence in self.sentences if sentence in said},
            "names": self._wrong_names(body["messages"]),
            "results": set() if self.is_pruned else {*_wrong_results(body["messages"])},
            "tokens": {str(n) for n in [tokens_of(body)] if n > self.door.room},
        }
        self.faults += [f"{what}: {sorted(which)}" for what, which in wrong.items() if which]

    def _wrong_names(self, messages: list[Json]) -> set[str]:
        shown = {
            (self.names[m], one["name"])
            for one in messages
            if "name" in one
            for m in MARK.findall(text_of([one]))
            if m in self.names
        }
        fit = Counter(name for _, name in shown)
        return {name for name, times in fit.items() if times > 1}

    # Runs.

    @property
    def config(self) -> RunnableConfig:
        return {"configurable": {"thread_id": f"T{self.number}", "langgraph_auth_user_id": f"u{self.number}"}}

    async def run(self, sent: Any, config: RunnableConfig | None = None) -> None:
        """Run the graph or the agent."""
        config = {"configurable": {**self.config["configurable"], **(config or {}).get("configurable", {})}}
        if self.door.kind == "compact":
            self.door.clock.advance(1)
            async for _ in self.door.graph.astream(sent, config, context=self.door.context, stream_mode="messages"):
                pass
        else:
            await self.door.run(sent, config)

    async def update(self, messages: list[Any] | None, as_node: str | None = None) -> None:
        """Edit the thread, as a client does."""
        as_node = as_node or ("chat" if self.door.kind == "below" else None)
        await self.door.graph.aupdate_state(self.config, messages and {"messages": messages}, as_node=as_node)

    async def messages(self) -> list[BaseMessage]:
        """Return what the thread holds."""
        state = await self.door.graph.aget_state(self.config)
        return list(state.values.get("messages", ()))

    async def waiting(self) -> list[str]:
        """Return the ids of what waits for a person's yes."""
        state = await self.door.graph.aget_state(self.config)
        return [one.id for task in state.tasks for one in task.interrupts]

    def check(self) -> None:
        """See that nothing went wrong since this was last asked."""
        assert not self.wire.refused, self.wire.refused
        assert not self.faults, self.faults

    async def answered(self) -> None:
        """See that the turn was answered, and keep the place for branches."""
        newest = (await self.messages())[-1]
        assert isinstance(newest, AIMessage), newest.type
        assert newest.text.strip(), "no answer"
        state = await self.door.graph.aget_state(self.config)
        assert not state.next, state.next
        assert not (left := self.called - self.undone - self.done.keys()), f"not done: {left}"
        self.saved.append((state.config, {*self.held}, {*self.may}))

    async def once(self) -> None:
        """See that what users said was learned once, and that each call was carried out once."""
        await self.door.learn()
        read = Counter(
            mark
            for text in self.wire.told
            for line in re.findall(r"(?m)^\[\d+\] user.*", text)
            for mark in MARK.findall(line)
        )
        wrong = {mark: read[mark] for mark, (least, most) in self.learned.items() if not least <= read[mark] <= most}
        assert not wrong, f"learned otherwise than once: {wrong}"
        assert not (heard := self.of_agents & {*MARK.findall("".join(self.wire.told))}), f"of an agent above: {heard}"
        assert {*self.done.values()} <= {1}, f"done otherwise than once: {self.done}"
        assert self.done.keys() <= self.called, f"done unasked: {self.done.keys() - self.called}"

    async def told(self) -> str:
        """Return the thread in a line for each message."""
        return "\n".join(map(_line, await self.messages()))


def _asked_of(call: Json) -> tuple[str, object]:
    """Return which tool a call is for, and what is asked of it: nothing if that cannot be read."""
    try:
        given = json.loads(call["function"]["arguments"])
    except ValueError:
        given = None
    return call["function"]["name"], given.get("what") if isinstance(given, dict) else None


def _wrong_results(messages: list[Json]) -> Iterator[str]:
    """Yield what a prompt says of calls that could not be carried out, where it does not say why."""
    for call in (call for one in messages for call in one.get("tool_calls") or ()):
        said = next(text_of([one]) for one in messages if one.get("tool_call_id") == call["id"])
        (name, what), words = _asked_of(call), {*re.findall(r"\w+", said)}
        if name not in TOOLS:
            if "act" not in words or words & {"remember", "list_memories"} - {name}:
                yield f"{name}: {said}"
        elif not what and ("Field required" if call["function"]["arguments"] == "{}" else "are no JSON") not in said:
            yield f"{call['function']['arguments']}: {said}"


def _line(one: BaseMessage) -> str:
    calls = [(call["name"], call["id"], *call["args"].values()) for call in getattr(one, "tool_calls", ())]
    of = one.tool_call_id if isinstance(one, ToolMessage) else ""
    text = str(one.content)
    said = text if len(text) < 60 else f"{text[:40]}… ({len(text)})"
    return " ".join(map(str, filter(None, [one.type, one.id, one.name, of, said, calls or ""])))
