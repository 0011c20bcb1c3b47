"""`FlushingSummarization`: LangChain's own summaries, which take nothing away before memory has it."""

import logging
from functools import partial
from typing import Any

from langchain.agents.middleware import AgentState, SummarizationMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.runtime import Runtime

from graphs.middleware.memory import PalimpsestMemory
from graphs.process.synchronous import is_awaited, without_await
from graphs.turn.stores import tolerated_store
from memory.door import on_thread
from memory.message import without_made

logger = logging.getLogger(__name__)


class FlushingSummarization(SummarizationMiddleware[Any, Any]):
    """LangChain's `SummarizationMiddleware`, by its own arguments, for an agent that has a `PalimpsestMemory`.

    What its summary is about to take the place of is written to the outbox of `memory` before, for facts and the daily
    journal; what was learned already is not learned again. Where that fails the thread keeps its messages, and the next
    call of the model tries again. The newest question stays. `PalimpsestSummary` keeps all messages, and lets hardly
    any turn wait.

    Args:
        model: Writes the summaries.
        memory: Whose outbox it is.
        options: What `SummarizationMiddleware` takes.
    """

    name = "SummarizationMiddleware"
    """As the one whose place it takes: its nodes have the names that streams and other middleware know."""

    def __init__(self, model: str | BaseChatModel, *, memory: PalimpsestMemory, **options: Any) -> None:
        super().__init__(model, **options)
        self._memory = memory

    async def abefore_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Summarize what LangChain would, once it is written down."""
        awaited, called = super().abefore_model, super().before_model
        # On a thread for the reason that `ainvoke` has.
        update = await (awaited(state, runtime) if is_awaited() else on_thread(lambda: called(state, runtime)))
        if update is not None:
            said, stay = state["messages"], {message.id for message in update["messages"]}
            # The turn in progress is written down as it ends, by its question.
            stay.add(next((one.id for one in without_made(said[::-1]) if isinstance(one, HumanMessage)), None))
            leaving: list[BaseMessage] = [message for message in said if message.id not in stay]
            with tolerated_store(logger, "a summary waits until what it takes away is written down"):
                await self._memory.cut_hook(state, partial(self._memory.run, runtime))(leaving)
                summary = [message for message in update["messages"] if message not in said]
                return {"messages": [*summary, *(message for message in said if message.id in stay)]}
        return None

    before_model = without_await(abefore_model)
