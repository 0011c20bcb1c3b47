"""Tools that note in a file outside what they have done."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.messages.tool import tool_call
from langchain_core.tools import BaseTool, tool
from langgraph.types import interrupt


def calls(*named: tuple[str, dict[str, Any]]) -> AIMessage:
    """Return an answer that calls tools; the ids of its calls are 1, 2, …"""
    return AIMessage(
        "", tool_calls=[tool_call(name=name, args=args, id=str(at)) for at, (name, args) in enumerate(named, 1)]
    )


class Shop:
    """A shop's tools.

    Args:
        folder: Where the notes are.
        dies: Whether the process is killed when something is done.

    Attributes:
        waits: Set when a tool is under way that never ends.
    """

    def __init__(self, folder: Path, *, dies: bool = False) -> None:
        self._notes, self._dies, self.waits = folder / "done.txt", dies, asyncio.Event()

    def done(self) -> list[str]:
        """Return what was done, by whichever process, in its order."""
        return self._notes.read_text().splitlines() if self._notes.exists() else []

    def forget(self) -> None:
        """Throw the notes away."""
        self._notes.unlink(missing_ok=True)

    def note(self, what: str) -> None:
        """Note that something is done."""
        with self._notes.open("a") as notes:
            notes.write(what + "\n")
        if self._dies:
            os.kill(os.getpid(), signal.SIGKILL)

    def tools(self) -> list[BaseTool]:
        """Return the tools: `pay` asks a person first, `mail` does not, `slow` never ends, `fail` raises."""

        @tool
        def pay(amount: int) -> str:
            """Pay, once a person has said yes."""
            said = interrupt({"pay": amount})
            self.note(f"pay {amount}")
            return f"paid {amount}, {said}"

        @tool
        async def mail(to: str) -> str:
            """Send a mail."""
            self.note(f"mail {to}")
            return f"sent to {to}"

        @tool
        async def slow() -> str:
            """Do something that takes for ever."""
            self.note("slow")
            self.waits.set()
            await asyncio.Event().wait()
            return "done"

        @tool
        async def slow_pay() -> str:
            """Pay, once a person has said yes, and take for ever."""
            interrupt("slow pay")
            return str(await slow.ainvoke({}))

        @tool
        async def fail() -> str:
            """Fail."""
            self.note("fail")
            raise ValueError("the till is empty")

        return [pay, mail, slow, slow_pay, fail]
