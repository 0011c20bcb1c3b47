"""A user's budget of a day: what is used up waits for the next day, counted in the store, and nothing is lost."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from palimpsest import Context, MemoryConfig, PalimpsestMemory, PalimpsestSummary, Settings
from tests.laws.talk import DAY, LONG, Talk, remembers

OVERDUE = 1000.0
"""So many seconds later a sweep takes what waits."""


def calls(talk: Talk) -> int:
    return len(talk.memory.prompts)


steps = st.lists(st.sampled_from(["say", "sweep", "start", "day", "other"]), max_size=25)


@settings(max_examples=12)
@given(steps=steps, budget=st.integers(1, 3))
@example(steps=["say", "sweep", "say", "other", "say", "sweep"], budget=2)
@example(steps=["say", "sweep", "day", "say", "sweep", "say", "other"], budget=1)
async def test_no_day_uses_more_than_its_budget_whatever_restarts_and_all_is_learned_in_the_end(
    steps: list[str], budget: int
) -> None:
    talk = Talk("agent", memory={"budget_calls": budget})
    talk.clock.seconds = DAY * 20_000 + 1
    services, said, used, today = [talk.service, talk.process()], 0, 0, 20_000
    for step in [*steps, *["day", "sweep"] * (len(steps) + 1)]:
        if step == "say":
            said += 1
            await talk.say(f"I like thing{said}", f"T{said}")
        elif step == "start":
            services[0] = talk.process()
        elif step == "day":
            talk.clock.advance(DAY)
        else:
            talk.clock.advance(OVERDUE)
            await services[step == "other"].asweep(talk.store)
        now = int(talk.clock() // DAY)
        used, today = (used, today) if now == today else (calls(talk), now)
        assert calls(talk) - used <= budget
    assert await talk.known() == sorted(f"Likes thing{number}" for number in range(1, said + 1))
    assert calls(talk) == said


async def test_each_user_has_a_budget() -> None:
    talk = Talk(memory={"budget_calls": 1})
    for user in ("ada", "bob"):
        await talk.say("I like figs", f"of {user}", user=user)
    await talk.learn()
    assert await talk.known("ada") == await talk.known("bob") == ["Likes figs"]


async def test_a_call_that_fails_counts() -> None:
    talk = Talk(memory={"budget_calls": 1})
    talk.memory.respond = lambda _: TimeoutError()
    for number in range(2):
        await talk.say("I like figs", f"T{number}")
        await talk.learn()
        talk.clock.advance(OVERDUE)
    assert calls(talk) == 1
    talk.memory.respond = remembers
    talk.clock.advance(DAY)
    assert await talk.learn() == ["Likes figs"]


async def test_what_is_told_of_days_that_are_over_goes() -> None:
    talk = Talk(memory={"budget_calls": 5})
    for number in range(3):
        await talk.say(f"I like thing{number}")
        await talk.learn()
        talk.clock.advance(DAY)
    assert talk.stored().count("'spent'") == 1
    without = Talk()
    await without.say("I like figs")
    await without.learn()
    assert "'spent'" not in without.stored()


@pytest.mark.parametrize("door", ["graph", "agent", "agent sync"])
async def test_a_turn_whose_summary_is_due_goes_on_without(door: str) -> None:
    def around(memory: PalimpsestMemory) -> list[Any]:
        writer = memory.service.load_model("", "summary")
        return [memory, PalimpsestSummary(writer, trigger=("tokens", 600), max_summary_tokens=60, memory=memory)]

    small = Context(max_tokens=1200, max_summary_tokens=100, reply_tokens=100, memory_tokens=100)
    limits = {"budget_calls": 1, "prepare_summary_share": 1}
    talk = Talk(door, memory=limits, context=small, around=around)
    await talk.say("I like figs", "another")
    await talk.service.asweep(talk.store)
    assert calls(talk) == 1
    for number in range(12):
        await talk.say(f"Turn {number}:" + LONG * 2)
    assert talk.summaries.prompts == []
    assert f"Turn 11:{LONG}" in talk.stored(), "what was said is written down all the same"
    talk.clock.advance(DAY)
    await talk.say("And tomorrow?")
    assert talk.summaries.prompts


@pytest.mark.parametrize("value", [-1, 2.5, True, "7"])
def test_a_budget_that_cannot_be_meant_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="budget_calls"):
        MemoryConfig(budget_calls=value)


def test_what_is_wrong_in_the_environment_is_refused_with_the_variables_name() -> None:
    with pytest.raises(ValueError, match="PALIMPSEST_TIME_ZONE must be an IANA time zone"):
        Settings.from_environment({"PALIMPSEST_TIME_ZONE": "Mars/Olympus"})
    with pytest.raises(ValueError, match="PALIMPSEST_BUDGET_CALLS must be greater than or equal to 0, not -1"):
        Settings.from_environment({"PALIMPSEST_BUDGET_CALLS": "-1"})
