"""About what a person wants to be asked before anything that is learned of it is used."""

from typing import Annotated

from pydantic import Field

from graphs.server.api.journal import Known, known_of
from graphs.server.api.routing import AgentCall, ApiModel, Call, MemoryRouter, StrictModel
from memory.config import Approval as Choice
from memory.control import change_control

router = MemoryRouter()

Chosen = Annotated[Choice, Field(description="`off`, `sensitive` (health, money, people other than you), or `all`.")]


class Approval(ApiModel):
    """What waits for your yes before it is used."""

    approval: Chosen
    always: Choice
    """What this deployment asks everybody about; nobody can switch it off."""
    marks: bool
    """Whether the memory model marks what is sensitive. The local one cannot: then `sensitive` asks about all that is
    learned, as `all` does."""
    days: int
    """What waits so many days ends without a yes; 0: it waits."""
    most: int
    """So many facts wait at most; of more, those that have waited longest go."""
    waiting: int
    """How many facts wait now (`GET /memory/facts?status=waiting`)."""
    messages: int
    """How many messages wait, of which no fact was made (`GET /memory/journal?waits=true`)."""


class ApprovalChoice(StrictModel):
    """Say about what you want to be asked."""

    approval: Chosen


@router.answers("GET /approval")
async def get_approval(call: AgentCall) -> Approval:
    """Read what waits for the user's yes: by their own choice, and by the deployment's."""
    known = await known_of(call)
    return approval_of(call, known, len(known.asked_about(call)))


@router.answers("PUT /approval")
async def put_approval(call: AgentCall, choice: ApprovalChoice) -> Approval:
    """Choose, for all agents. What is in use stays so, and what waits goes on waiting."""
    await call.run(change_control(call.owner, approval=choice.approval))
    return await get_approval(call)


def approval_of(call: Call, known: Known, messages: int) -> Approval:
    """Return what holds for the user of a call, of whom so many messages wait."""
    config = call.config
    return Approval(
        approval=known.facts.control.approval,
        always=config.approval,
        marks=config.extraction_form == "full",
        days=config.approval_days,
        most=config.max_waiting,
        waiting=len(known.facts.listed("waiting")),
        messages=messages,
    )
