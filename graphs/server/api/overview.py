"""The whole at a glance, and the switch that pauses learning."""

import logging
from collections import Counter
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from graphs.server.api.facts import facts_of
from graphs.server.api.routing import AgentCall, MemoryRouter, StrictModel
from graphs.turn.state import WithoutMemory
from memory.budget import DailyBudget, read_spent
from memory.control import change_control, checked_time_zone, read_control
from memory.facts.fact import timestamp
from memory.updates.outbox import read_entries

logger = logging.getLogger(__name__)

router = MemoryRouter()


class BudgetState(BaseModel):
    """What memory's own model calls used of the user's budget today: summaries, extraction, roll-ups."""

    calls: int
    max_calls: int
    used_up: bool = Field(description="true: what was said waits; nothing is lost.")
    until: str = Field(description="When the next day begins, and what waits goes on.")


class Overview(BaseModel):
    """What there is."""

    agent_name: str
    time_zone: str | None = Field(description="The time zone that the user set; null: none, the assistant's counts.")
    learning: bool = Field(description="false: the user paused learning; memory is still used.")
    use: bool = Field(description="false: the user switched off that memory is used; it still learns.")
    without_memory: WithoutMemory | None = Field(
        description="Why turns go on without memory, or learn nothing for good; null where memory is on."
    )
    facts: int
    quarantined: int = Field(description="Facts that wait for review.")
    waiting: int = Field(description="Facts that wait for your yes.")
    pending: int = Field(description="Updates that are not done yet.")
    dead: int = Field(description="Updates that failed for good.")
    budget: BudgetState | None = Field(description="null: memory's model calls have no budget.")


class TimeZoneChoice(StrictModel):
    """Say where you are, as an IANA name such as `Europe/Oslo`, or take it back with null."""

    time_zone: Annotated[str, Field(max_length=64), AfterValidator(checked_time_zone)] | None


class LearningChoice(StrictModel):
    """Pause learning or go on."""

    learning: bool


class UseChoice(StrictModel):
    """Use memory, or do not."""

    use: bool


@router.get("/overview", summary="See what there is")
async def overview(call: AgentCall) -> Overview:
    """Count what there is."""
    facts, control = facts_of(call), await call.run(read_control(call.owner))
    is_on = call.service.settings.memory.enabled
    states = Counter(entry.state for entry in await call.run(read_entries(call.owner)))
    return Overview(
        agent_name=call.owner.agent_name,
        time_zone=control.time_zone,
        learning=control.learning,
        use=control.use,
        without_memory="switched_off" if not is_on else None if control.use else "not_used",
        facts=len(await facts.alist("active")),
        quarantined=len(await facts.alist("quarantined")),
        waiting=len(await facts.alist("waiting")),
        pending=states["pending"],
        dead=states["dead"],
        budget=await _budget(call),
    )


async def _budget(call: AgentCall) -> BudgetState | None:
    budget, now = DailyBudget.of(call.service.settings.memory), call.service.clock()
    if not budget.calls:
        return None
    spent = await call.run(read_spent(call.owner, budget.day(now)))
    return BudgetState(
        calls=spent,
        max_calls=budget.calls,
        used_up=spent >= budget.calls,
        until=timestamp(budget.next_day(now)),
    )


@router.put("/learning", summary="Pause learning or go on")
async def put_learning(call: AgentCall, choice: LearningChoice) -> LearningChoice:
    """Pause learning or go on, for all agents; what is pending already is still learned."""
    await call.run(change_control(call.owner, learning=choice.learning, learning_at=call.service.clock()))
    logger.info("learning %s", "resumed" if choice.learning else "paused")
    return choice


@router.put("/use", summary="Use memory, or do not")
async def put_use(call: AgentCall, choice: UseChoice) -> UseChoice:
    """Show memory to models or show it to none, for all agents, from the next turn on; learning has its own switch."""
    await call.run(change_control(call.owner, use=choice.use))
    logger.info("memory is %s", "used" if choice.use else "not used")
    return choice


@router.put("/time_zone", summary="Say where you are")
async def put_time_zone(call: AgentCall, choice: TimeZoneChoice) -> TimeZoneChoice:
    """Set your time zone, for all agents: it says which day the journal has, and which "yesterday" means."""
    await call.run(change_control(call.owner, time_zone=choice.time_zone))
    return choice
