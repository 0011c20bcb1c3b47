"""Whether a model was asked what a person said: what a guard refused before that is not learned."""

import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextvars import ContextVar
from operator import attrgetter
from typing import Any, Self

from langchain_core.exceptions import ModelError
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import ensure_config
from langchain_core.tracers.context import register_configure_hook
from langgraph.config import get_config
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.graph import START, StateGraph
from langgraph.types import StateSnapshot

from graphs.process.failures import explain, of_kind
from graphs.process.synchronous import finished
from graphs.turn.prompt import Pieces
from graphs.turn.run import TOOL_NODE, Thread, read_saved
from graphs.turn.state import InputState, removes_all
from memory.door import tolerated
from memory.turn import may_learn, mode_of, with_mode

logger = logging.getLogger(__name__)

MODEL = "model"
"""The node in which an agent asks its model."""
STEPS = 50
"""A run has hardly as many before it asks its model."""


class Asking(Pieces):
    """Has something done at the moment when the model is asked, inside of a `with`; another middleware may not ask it.

    What the model fails with is told in the sentences of the chat graph.

    Args:
        work: What is done, once.
        name: The model's.
        is_awaited: Whether the agent is; else this is done on a thread that waits for the model anyway.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]], name: str, *, is_awaited: bool) -> None:
        super().__init__(name)
        self.is_asked, self._work, self._outer, self._is_awaited = False, work, _asking.get(), is_awaited

    def __enter__(self) -> Self:
        self._token, self._is_open = _asking.set(self), True
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        # What was begun inside and goes on behind asks models too, such as one for a summary.
        self._is_open = False
        _asking.reset(self._token)
        if isinstance(error, ModelError):
            raise of_kind(error, explain(error, self._name)) from error

    async def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        """Do it: also what another instance around this one waits to do."""
        if self._outer:
            await self._outer.on_chat_model_start()
        if self._is_open and not self.is_asked:
            self.is_asked = True
            with tolerated(logger, "what the model is asked is not written down before it answers"):
                await self._work() if self._is_awaited else finished(self._work())


_asking: ContextVar[Asking | None] = ContextVar("palimpsest_asking", default=None)
register_configure_hook(_asking, inheritable=True)


def unanswered_questions(messages: Sequence[AnyMessage], asked: object) -> list[AnyMessage]:
    """Return the newest question and those before it, newest first, up to one that a model answered.

    Args:
        messages: The thread's messages.
        asked: Id of the newest question that a model answered.
    """
    questions = list[AnyMessage]()
    for message in reversed(messages):
        if message.id == asked or (questions and isinstance(message, AIMessage)):
            break
        if isinstance(message, HumanMessage):
            questions.append(message)
    return questions


def refused(questions: Iterable[AnyMessage]) -> list[AnyMessage]:
    """Return the questions marked as nothing to learn from; what follows one, as a guard's answer, belongs to it."""
    return [with_mode(question, "read_only") for question in questions if may_learn(mode_of(question))]


async def refused_in_earlier_runs(thread: Thread, asked: object) -> list[AnyMessage]:
    """Return the questions of earlier runs that no model was asked, as `refused` does.

    One that a model was asked and failed at is written down already, or named as unwritten. Without a checkpointer all
    messages are those of this run.

    Args:
        thread: The thread.
        asked: Id of the newest question that a model answered.
    """
    questions = unanswered_questions(thread.messages, asked)
    marked, saver = refused(questions[1:]), get_config().get("configurable", {}).get(CONFIG_KEY_CHECKPOINTER)
    if not marked or not saver:
        return []
    with tolerated(logger, "which questions were refused is not known: none that has no answer is learned"):
        graph = reading_graph(InputState, saver)
        states = await read_saved(graph.get_state_history, graph.aget_state_history, STEPS)
        newest_first = iter(states)
        # Checkpoints that are written at the end of a run, or behind it, are not there yet.
        if states and str(questions[0].id) in _message_ids(states[0]):
            any((state.metadata or {}).get("source") == "input" for state in newest_first)
        before = next(newest_first, None)  # the run that asks this; none before a first one
        if before is None:
            return []
        was_asked = {one.asked for one in thread.unwritten} if MODEL in before.next else set[str]()
        return [question for question in marked if question.id in _message_ids(before).difference(was_asked)]
    return marked


async def is_cleared(thread: Thread) -> bool:
    """Say whether a client has removed all messages since the thread's last run; what nodes remove is trimmed alone.

    Its summary must go then, or it would be told for good. To be asked in the run that follows.
    """
    running, saver = thread.running, ensure_config().get("configurable", {}).get(CONFIG_KEY_CHECKPOINTER)
    # It stands near the end: a long thread is not looked through before each call of a model.
    newest_first = map(attrgetter("id"), reversed(thread.messages))
    if running is None or saver is None or not running.summarized_message_ids.isdisjoint(newest_first):
        return False
    follows = "loop"
    for saved in await read_saved(saver.list, saver.alist, STEPS):
        source = saved.metadata["source"]
        # Beside an input's checkpoint is what it writes; what an edit writes is beside the one that it edits.
        is_of_client = source == "input" or follows == "update"
        written = (value for _, channel, value in saved.pending_writes or () if channel == "messages")
        if is_of_client and any(removes_all(each, running.last_summarized_message_id) for each in written):
            return True
        if source == "loop" != follows:
            break
        follows = source
    return False


def reading_graph(schema: Any, saver: Any) -> Any:
    """Return a graph that only reads what any agent has saved, and whether it is to ask its model next."""
    graph: Any = StateGraph(schema)
    for node in (MODEL, TOOL_NODE):  # LangGraph warns of calls that were sent to a node which a graph does not have
        graph.add_node(node, lambda _: {})
    return graph.add_edge(START, MODEL).compile(checkpointer=saver)


def _message_ids(state: StateSnapshot) -> set[str]:
    return {str(message.id) for message in state.values.get("messages", ())}
