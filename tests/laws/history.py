"""One thread by one door, and a book of what was said in it: what each prompt has to tell is known from the book."""

import asyncio
import itertools
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt

from palimpsest import (
    Context,
    MemoryConfig,
    MemoryContext,
    MemoryService,
    PalimpsestMemory,
    PalimpsestState,
    PalimpsestSummary,
    RunningSummary,
    Settings,
    build_graph,
)
from tests.fakes import Clock
from tests.laws.talk import PATIENT, no_server
from tests.laws.wire import MARK, Json, Wire, text_of, tokens_of

LONG = " word" * 250
ROOM = 1500
"""Tokens of a prompt: two or three long messages fit."""
_SUMMARY: dict[str, Any] = {"max_summary_tokens": 400, "trigger": ("tokens", 900), "keep": ("tokens", 300)}


class Door:
    """A deployment, whose threads are of a user each.

    Args:
        kind: `keep` and `compact` are the chat graph with transcripts of that kind, `agent` is one of `create_agent`.
    """

    def __init__(self, kind: str) -> None:
        self.kind, self.wire, self.clock, self.thread = kind, Wire(), Clock(), History.__new__(History)
        self.store = InMemoryStore()
        saver = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=[RunningSummary]))
        models = {purpose: self.wire.of_process(purpose) for purpose in ("chat", "summary", "memory")}
        # What is written behind a turn comes at a time of its own: each thread is to go the same way each time.
        self._settings = Settings(trigger="run", memory=MemoryConfig(prepare_summary_share=1, **PATIENT))
        self._load: Callable[..., Any] = lambda _, purpose: models[purpose]
        service = self._process()
        self.numbers = itertools.count()
        if kind == "agent":
            memory = PalimpsestMemory(service=service, tools=())
            around = [memory, PalimpsestSummary(self.wire.of_agent("summary"), memory=memory, **_SUMMARY)]
            self.graph: Any = create_agent(
                self.wire.of_agent("chat"),
                tools=self._tools(),
                middleware=around,
                state_schema=PalimpsestState,
                context_schema=MemoryContext,
                checkpointer=saver,
                store=self.store,
                system_prompt="Be brief.",
            )
            self.context: Any = None
        else:
            self.graph = build_graph(service=service, tools=self._tools()).compile(checkpointer=saver, store=self.store)
            limits: dict[str, Any] = {"max_tokens": ROOM, "max_summary_tokens": 400, "reply_tokens": 64}
            self.context = Context(system_prompt="Be brief.", transcript=kind, **limits)  # type: ignore[arg-type]

    def _process(self) -> MemoryService:
        return MemoryService(self._settings, self._load, clock=self.clock, client=no_server)

    async def learn(self) -> None:
        """Let another process learn all that waits."""
        await self._process().asweep(self.store)

    def _tools(self) -> list[BaseTool]:
        @tool
        async def act(what: str, how: str = "") -> Any:
            """Do something."""
            return await self.thread.act(what, how)

        @tool(return_direct=True)
        async def tell(what: str) -> str:
            """Tell the user something."""
            return str(await self.thread.act(what, ""))

        return [act, tell]


class History:
    """A thread from its beginning on.

    Attributes:
        held: Marks that the model has to be told, each once.
        may: Marks that it may be told: what a summary had told before it was removed.
        new: Those of `held` that came with this turn.
        learned: How often at least and at most each mark of a user is to be learned.
        done: What tools did, by what they were asked.
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
        self.marks, self.faults = itertools.count(1), list[str]()
        self.saved: list[tuple[RunnableConfig, set[str], set[str]]] = []
        self.is_pressed, self.is_open = False, False
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

    def forgets_results(self) -> None:
        """Note that results of this turn may not have been stored."""
        self.held -= self.results
        self.may |= self.results

    # What is asked of each prompt.

    def _said(self, answer: Json) -> None:
        self.holds(*MARK.findall(str(answer.get("content"))))

    def _asked(self, body: Json) -> None:
        said = text_of(body["messages"])
        told = Counter(MARK.findall(said))
        owed = self.new if self.is_pressed else self.held
        wrong = {
            "not told": owed - told.keys(),
            "told twice": {mark for mark, times in told.items() if times > 1},
            "told though it is gone": told.keys() - self.held - self.may,
            "thoughts": {*re.findall(r"\bt\d+\b", said)},
            "the run's own sentence": {sentence for sentence in self.sentences if sentence in said},
            "names": self._wrong_names(body["messages"]),
            "tokens": {str(n) for n in [tokens_of(body)] if n > ROOM - 64 * (self.door.kind != "agent")},
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
        self.door.clock.advance(1)
        config = {"configurable": {**self.config["configurable"], **(config or {}).get("configurable", {})}}
        if self.door.kind == "compact":
            async for _ in self.door.graph.astream(sent, config, context=self.door.context, stream_mode="messages"):
                pass
        else:
            await self.door.graph.ainvoke(sent, config, context=self.door.context)

    async def update(self, messages: list[Any] | None, as_node: str | None = None) -> None:
        """Edit the thread, as a client does."""
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
        self.saved.append((state.config, {*self.held}, {*self.may}))
        self.is_open = False

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
        assert {*self.done.values()} <= {1}, f"done otherwise than once: {self.done}"

    async def told(self) -> str:
        """Return the thread in a line for each message."""
        return "\n".join(map(_line, await self.messages()))


def _line(one: BaseMessage) -> str:
    calls = [(call["name"], call["id"], *call["args"].values()) for call in getattr(one, "tool_calls", ())]
    of = one.tool_call_id if isinstance(one, ToolMessage) else ""
    text = str(one.content)
    said = text if len(text) < 60 else f"{text[:40]}… ({len(text)})"
    return " ".join(map(str, filter(None, [one.type, one.id, one.name, of, said, calls or ""])))
