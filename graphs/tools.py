"""What the chat model may call: one list, for `langgraph dev`, a server, and programs that call `build_graph()`.

Add a tool here, or leave this file alone and name tools in a `Deployment`: those take the place of this list. A tool is
LangChain's, or a function with a docstring. What it returns is never learned as a fact. A parameter of the type
`ToolRuntime` is filled in by LangGraph and not shown to the model.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, tool

from graphs.settings import Settings
from graphs.turn.context import Context
from graphs.turn.run import Run
from graphs.turn.state import State
from memory.config import zone_named
from memory.control import read_control
from memory.door import arun, tolerated

logger = logging.getLogger(__name__)


def time_tool(clock: Callable[[], float] = time.time) -> BaseTool:
    """Return the tool that tells the time where the user is: their own time zone, else the assistant's, else UTC.

    Args:
        clock: Returns seconds since the epoch.
    """

    @tool
    async def current_time(runtime: ToolRuntime[Context | None, State]) -> str:
        """Tell the current date, weekday and time where the user is."""
        settings = Settings.from_environment()
        run = Run.of(runtime.config, runtime, settings)
        zone = zone_named(run.context.time_zone) or UTC
        if run.place is not None:
            with tolerated(logger, "the user's time zone cannot be read"):
                store, owner = run.place
                async with asyncio.timeout(settings.memory.read_timeout_seconds):
                    zone = (await arun(store, read_control(owner))).zone or zone
        return f"{datetime.fromtimestamp(clock(), zone):%A, %Y-%m-%d %H:%M} ({zone})"

    return current_time


TOOLS: tuple[BaseTool, ...] = (time_tool(),)
