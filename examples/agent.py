"""An agent of LangChain's `create_agent` that remembers whom it talks to.

`python examples/agent.py` tells it something in one conversation and asks about it in another. On a server:
`langgraph dev --config examples/langgraph.json`.
"""

import asyncio
from typing import Any

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from palimpsest import (
    MemoryContext,
    PalimpsestMemory,
    PalimpsestState,
    PalimpsestSummary,
    Settings,
    load_chat_model,
)


def order_status(number: str) -> str:
    """Tell where an order is."""
    return f"Order {number} is on its way."


model = load_chat_model("", Settings.from_environment(), purpose="chat")  # or any model of LangChain's
memory = PalimpsestMemory(agent_name="support")


def build(**options: Any) -> Any:
    """Return the agent; a server brings its own checkpointer and store, a program passes them."""
    return create_agent(
        model,
        tools=[order_status],
        system_prompt="You help the customers of a shop. Answer briefly.",
        state_schema=PalimpsestState,
        context_schema=MemoryContext,
        middleware=[memory, PalimpsestSummary(model, trigger=("tokens", 4000), memory=memory)],
        **options,
    )


agent = build()


async def main() -> None:
    """Tell the agent something in one thread, and ask about it in another."""
    in_process = build(checkpointer=InMemorySaver(), store=InMemoryStore())

    async def say(text: str, thread: str) -> None:
        # The program says who the user is, as a server would.
        who = {"configurable": {"thread_id": thread, "langgraph_auth_user_id": "ada"}}
        state = await in_process.ainvoke({"messages": [{"role": "user", "content": text}]}, who)
        print(f"{thread}> {text}\n{state['messages'][-1].text}\n")

    await say("I am allergic to peanuts.", "monday")
    await asyncio.to_thread(memory.service.flush)  # learn it now, not after half a minute of quiet
    await say("Which snack would you send me?", "tuesday")


if __name__ == "__main__":
    asyncio.run(main())
