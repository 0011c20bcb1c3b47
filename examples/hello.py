"""The first conversation with a running server: say something worth remembering."""

import asyncio

from here import server_url
from langgraph_sdk import get_client


async def main() -> None:
    client = get_client(url=server_url())
    thread = await client.threads.create()
    state = await client.runs.wait(
        thread["thread_id"],
        "chat",
        input={"messages": [{"role": "user", "content": "My name is Ada and I am allergic to peanuts."}]},
    )
    print(state["messages"][-1]["content"])


asyncio.run(main())
