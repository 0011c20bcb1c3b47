"""Of which topics a person wants to be asked before anything that is learned of them is used."""

import logging

from pydantic import BaseModel, Field

from graphs.server.api.facts import facts_of
from graphs.server.api.journal import asked_about
from graphs.server.api.routing import AgentCall, Call, MemoryRouter, StrictModel
from memory.config import TOPICS, Topic
from memory.control import read_approval, read_epoch, write_approval

logger = logging.getLogger(__name__)

router = MemoryRouter()

_MEANS = "health, money, people (others than you), or everything."


class Approval(BaseModel):
    """What waits for your yes before it is used."""

    topics: list[Topic] = Field(description=f"What you chose: {_MEANS}")
    always: list[Topic] = Field(description="What this deployment asks everybody about; nobody can switch it off.")
    days: int = Field(description="What waits so many days ends without a yes; 0: it waits.")
    most: int = Field(description="So many facts wait at most; of more, those that have waited longest go.")
    waiting: int = Field(description="How many facts wait now (`GET /memory/facts?status=waiting`).")
    messages: int = Field(
        description="How many messages wait, of which no fact was made (`GET /memory/journal?waits=true`)."
    )


class ApprovalChoice(StrictModel):
    """Say about which topics you want to be asked; an empty list asks about none."""

    topics: list[Topic] = Field(max_length=len(TOPICS), description=_MEANS)


@router.get("/approval", summary="See what waits for your yes before it is used")
async def get_approval(call: AgentCall) -> Approval:
    """Read what waits for the user's yes: by their own choice, and by the deployment's."""
    return await approval_of(call)


@router.put("/approval", summary="Choose what waits for your yes before it is used")
async def put_approval(call: AgentCall, choice: ApprovalChoice) -> Approval:
    """Choose, for all agents. What is in use stays so; what waits goes on waiting, also when its topic is taken off."""
    await call.run(write_approval(call.owner, choice.topics))
    logger.info("approval is asked for %d topics", len(set(choice.topics)))
    return await approval_of(call)


async def approval_of(call: Call, messages: int | None = None) -> Approval:
    """Return what holds for the user of a call.

    Args:
        call: The request.
        messages: How many messages wait, where the caller knows it; by default it is read.
    """
    config, chosen = call.service.settings.memory, await call.run(read_approval(call.owner))
    epoch = await call.run(read_epoch(call.owner))
    return Approval(
        topics=[topic for topic in TOPICS if topic in chosen],
        always=[topic for topic in TOPICS if topic in config.approval],
        days=config.approval_days,
        most=config.max_waiting,
        waiting=len(await facts_of(call).alist("waiting")),
        messages=len(await asked_about(call, epoch)) if messages is None else messages,
    )
