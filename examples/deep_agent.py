"""An agent of deepagents that remembers, with one subagent that shares its memory and one that does not.

Agents share what they know about a user if they have the same `agent_name`. What a subagent is told was written by a
model, so it learns nothing from that; it only reads. It needs `pip install deepagents`. On a server:
`langgraph dev --config examples/deep_agent.json`.
"""

from typing import Any

from deepagents import SubAgent, create_deep_agent

from palimpsest import MemoryContext, PalimpsestMemory, PalimpsestSummary, Settings, load_chat_model

model = load_chat_model("", Settings.from_environment(), purpose="chat")  # or any model of LangChain's
memory = PalimpsestMemory(agent_name="assistant")

cook: SubAgent = {
    "name": "cook",
    "description": "Plans meals for the user, whose tastes and allergies it knows.",
    "system_prompt": "You plan meals. Answer with one dish.",
    "middleware": [PalimpsestMemory(agent_name="assistant", tools=())],  # the same name: the same memory
}
critic: SubAgent = {
    "name": "critic",
    "description": "Judges a text by itself, whoever asks.",
    "system_prompt": "You judge texts. Answer in one sentence.",
    "middleware": [PalimpsestMemory(agent_name="critic", tools=())],  # a memory of its own
}


def build(**options: Any) -> Any:
    """Return the agent; a server brings its own checkpointer and store, a program passes them."""
    return create_deep_agent(
        model,
        system_prompt="You help one person with their day. Answer briefly.",
        middleware=[memory, PalimpsestSummary(model, trigger=("tokens", 4000), memory=memory)],
        subagents=[cook, critic],
        context_schema=MemoryContext,
        **options,
    )


agent = build()
