"""A process that is killed inside a tool."""

import asyncio
import sys
from pathlib import Path

from langgraph.types import Command

from palimpsest import open_checkpointer
from tests.laws.shop import Shop, calls
from tests.laws.talk import Talk


async def die(folder: Path, name: str) -> None:
    """Be killed inside a tool, approved if it asks."""
    async with open_checkpointer(folder / "checkpoints.sqlite") as saver:
        talk = Talk(saver=saver, tools=Shop(folder, dies=True).tools())
        talk.chat.replies = [calls((name, {"amount": 1} if name == "pay" else {"to": "x"}))]
        await talk.say("Do it.")
        await talk.run(Command(resume="ok"))


if __name__ == "__main__":
    asyncio.run(die(Path(sys.argv[1]), sys.argv[2]))
