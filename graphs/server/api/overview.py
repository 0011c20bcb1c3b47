"""The whole at a glance, and the switch that pauses learning."""

from collections import Counter
from typing import Annotated

from pydantic import AfterValidator, Field

from graphs.server.api.routing import AgentCall, ApiModel, Call, MemoryRouter, StrictModel
from graphs.turn.state import WithoutMemory
from memory.config import checked_time_zone
from memory.control import change_control
from memory.facts.fact_set import FactSet
from memory.facts.rows import read_fact_set
from memory.message import iso_time
from memory.updates.budget import day_at, read_spent
from memory.updates.outbox import read_entries

router = MemoryRouter()


class BudgetState(ApiModel):
    """What memory's own model calls used of the user's budget today: summaries, extraction, roll-ups."""

    calls: int
    max_calls: int
    used_up: bool
    """true: what was said waits; nothing is lost."""
    until: str
    """When the next day begins, and what waits goes on."""


class Overview(ApiModel):
    """What there is."""

    agent_name: str
    time_zone: str | None
    """The time zone that the user set; null: none, the assistant's counts."""
    learning: bool
    """false: the user paused learning; memory is still used."""
    use: bool
    """false: the user switched off that memory is used; it still learns."""
    without_memory: WithoutMemory | None
    """Why turns go on without memory, or learn nothing for good; null where memory is on."""
    facts: int
    quarantined: int
    """Facts that wait for review."""
    waiting: int
    """Facts that wait for your yes."""
    pending: int
    """Updates that are not done yet."""
    dead: int
    """Updates that failed for good."""
    budget: BudgetState | None
    """null: memory's model calls have no budget."""


class TimeZoneChoice(StrictModel):
    """Say where you are, as an IANA name such as `Europe/Oslo`, or take it back with null."""

    time_zone: Annotated[str, Field(max_length=64), AfterValidator(checked_time_zone)] | None


class LearningChoice(StrictModel):
    """Pause learning or go on."""

    learning: bool


class UseChoice(StrictModel):
    """Use memory, or do not."""

    use: bool


@router.answers("GET /overview")
async def overview(call: AgentCall) -> Overview:
    """Count what there is."""
    return await overview_of(call, await call.run(read_fact_set(call.owner, is_light=True)))


async def overview_of(call: Call, there: FactSet) -> Overview:
    """Count what there is, beside facts that were read already."""
    config, control = call.config, there.control
    entries = await call.run(read_entries(call.owner))
    facts = Counter(fact.status for fact in there.rows.values())
    states = Counter(entry.state for entry in entries)
    budget, limit = None, config.budget_calls
    if limit:
        day, ends = day_at(call.now, config)
        spent = await call.run(read_spent(call.owner, day))
        budget = BudgetState(calls=spent, max_calls=limit, used_up=spent >= limit, until=iso_time(ends))
    return Overview(
        agent_name=call.owner.agent_name,
        time_zone=control.time_zone,
        learning=control.learning,
        use=control.use,
        without_memory="switched_off" if not config.enabled else None if control.use else "not_used",
        facts=facts["active"],
        quarantined=facts["quarantined"],
        waiting=facts["waiting"],
        pending=states["pending"],
        dead=states["dead"],
        budget=budget,
    )


@router.answers("PUT /learning")
async def put_learning(call: AgentCall, choice: LearningChoice) -> LearningChoice:
    """Pause learning or go on, for all agents; what is pending already is still learned."""
    await call.run(change_control(call.owner, learning=choice.learning, learning_at=call.now))
    return choice


@router.answers("PUT /use")
async def put_use(call: AgentCall, choice: UseChoice) -> UseChoice:
    """Show memory to models or show it to none, for all agents, from the next turn on; learning has its own switch."""
    await call.run(change_control(call.owner, use=choice.use))
    return choice


@router.answers("PUT /time_zone")
async def put_time_zone(call: AgentCall, choice: TimeZoneChoice) -> TimeZoneChoice:
    """Set your time zone, for all agents: it says which day the journal has, and which "yesterday" means."""
    await call.run(change_control(call.owner, time_zone=choice.time_zone))
    return choice
