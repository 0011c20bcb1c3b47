"""What one assistant or run may choose; Studio draws its form from it."""

from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
)
from pydantic.dataclasses import dataclass

from memory import prompts
from memory.config import checked_time_zone
from memory.context.summarization import SummarizeWhen
from memory.turn import MemoryMode

_PROMPT = {"langgraph_nodes": ["call_model"], "langgraph_type": "prompt"}
_MODEL = {"langgraph_nodes": ["call_model"], "langgraph_type": "llm"}
_SUMMARY_PROMPT = {"langgraph_nodes": ["summarize"], "langgraph_type": "prompt"}

MemoryToolName = Literal["search_memory", "read_conversation", "list_memories", "remember", "forget", "restore"]


@dataclass(kw_only=True, frozen=True, config=ConfigDict(extra="ignore"))
class Context:
    """Choices of one assistant or run. Bad values are refused with the field's name before any node runs."""

    model: Annotated[
        str,
        Field(
            description="Chat model as provider:model, for example openai:gpt-4.1-mini. "
            "Empty: the deployment's own (PALIMPSEST_MODEL).",
            pattern=r"^$|^local$|^[a-z0-9_]+:.+$",
            json_schema_extra=_MODEL,
        ),
    ] = ""
    system_prompt: Annotated[str, Field(description="Instructions for the model.", json_schema_extra=_PROMPT)] = (
        prompts.SYSTEM
    )
    agent_name: Annotated[
        str,
        Field(
            description="Whose memory: assistants of one name share what they know about a user. "
            "1 to 64 letters, digits, _ and -.",
            pattern=r"^[A-Za-z0-9_-]{1,64}$",
        ),
    ] = "default"
    max_tokens: Annotated[
        int,
        Field(ge=256, le=2_000_000, description="Tokens the model is sent at most: prompt, memory, tools, messages."),
    ] = 8192
    max_summary_tokens: Annotated[int, Field(ge=32, description="Tokens reserved for the summary.")] = 256
    keep_tokens: Annotated[
        int | None,
        Field(
            ge=1,
            description="A cut goes down to so many tokens of messages; at most half of their budget.",
        ),
    ] = None
    keep_messages: Annotated[int | None, Field(ge=1, description="A cut goes down to so many messages at most.")] = None
    reply_tokens: Annotated[int, Field(ge=0, description="Tokens kept free for the model's reply.")] = 1024
    memory_tokens: Annotated[
        int, Field(ge=0, description="Tokens of the memory block at most, fence included. 0: inject nothing.")
    ] = 2000
    delta_tokens: Annotated[
        int | None,
        Field(
            ge=0,
            description="Tokens of memory before one later message at most, fence included: what is new since the "
            "block, and what the message recalls. Empty: a share of memory_tokens.",
        ),
    ] = None
    time_zone: Annotated[
        str,
        Field(
            max_length=64,
            description="Time zone of a user who has set none, for example Europe/Oslo: it says which day it is. "
            "Empty: UTC.",
        ),
        AfterValidator(lambda name: name and checked_time_zone(name)),
    ] = ""
    memory_mode: Annotated[
        MemoryMode,
        Field(
            description="normal: memory is used and learns. read_only: used, nothing is learned. incognito: neither. "
            "A thread's own mode and a run can only be stricter."
        ),
    ] = "normal"
    memory_tools: Annotated[
        tuple[MemoryToolName, ...],
        Field(
            max_length=6,
            description="With which tools the model uses memory itself, beside what it is shown: search_memory, "
            "read_conversation, list_memories, remember, forget, restore. Empty: none.",
        ),
    ] = ()
    transcript: Annotated[
        Literal["keep", "compact"],
        Field(
            description="keep: the whole transcript stays in `messages`. compact: summarized messages leave the state."
        ),
    ] = "keep"
    summarize: Annotated[
        SummarizeWhen | None,
        Field(
            description="before: a turn that is due for a summary waits for it, unless it is written already. "
            "after: no turn waits. It goes on with the newest messages, and the summary is written behind it. "
            "The turn's receipt says what the model was not shown. Empty: before; with the local model, after.",
            json_schema_extra={"langgraph_nodes": ["summarize"]},
        ),
    ] = None
    cache_ttl_seconds: Annotated[
        float, Field(ge=0, description="How long the provider caches a prompt; older ones may be rearranged.")
    ] = 300.0
    initial_summary_prompt: Annotated[
        str, Field(description="Prompt of a first summary.", json_schema_extra=_SUMMARY_PROMPT)
    ] = prompts.INITIAL_SUMMARY
    update_summary_prompt: Annotated[
        str,
        Field(
            description="Prompt of a further summary; must contain {existing_summary}.",
            pattern=r"\{existing_summary\}",
            json_schema_extra=_SUMMARY_PROMPT,
        ),
    ] = prompts.UPDATE_SUMMARY


def context_of(given: object) -> Context:
    """Return the choices of a run: none where its context is none, as in process, or one of a graph above."""
    return given if isinstance(given, Context) else Context()
