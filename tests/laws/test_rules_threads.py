"""G1: a thread goes on whatever clients, models and middleware put there, and each prompt tells what the thread holds.

One law instead of many examples: a thread is a list of turns, each of what a client sends and what a model answers.
What is counted is words. Each that the thread holds reaches the model, once, in a message or in the summary; none does
that was removed. Every turn is answered, each prompt fits its budget and is one that any server takes, each call of a
tool is carried out once, and what the user said is learned once.
"""

import asyncio

import pytest
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from tests.laws.history import Door, History
from tests.laws.moves import ANSWERS, CLIENTS, OF_GRAPH, turn

Turns = list[tuple[str, str]]

EXAMPLES = 50
# Odd turns come between plain ones, and long ones make summaries come.
CLIENT = st.sampled_from(["say"] * 14 + ["say_long"] * 12 + [*CLIENTS])
ANSWER = st.sampled_from(["well"] * 9 + ["long"] * 9 + [*ANSWERS])


def threads(kind: str) -> st.SearchStrategy[Turns]:
    # LangChain raises for arguments that are no object, but where it reads a stream.
    never = {"keep": ("no object",), "agent": ("no object", *OF_GRAPH)}.get(kind, ())
    return st.lists(st.tuples(CLIENT, ANSWER.filter(lambda one: one not in never)), min_size=1, max_size=7)


async def live(door: Door, turns: Turns) -> None:
    """Live a thread, and end it with a plain turn."""
    thread = History(door)
    try:
        for client, answer in [*turns, ("say", "well")]:
            await turn(thread, client, answer)
        await thread.once()
    except BaseException:
        note(await thread.told())
        for one in thread.wire.prompts[-1:]:
            note("\n".join(f"> {str(message)[:150]}" for message in one["messages"]))
        raise


@pytest.mark.parametrize("kind", ["keep", "compact", "agent"])
def test_a_thread_goes_on_whatever_stands_in_it(kind: str, request: pytest.FixtureRequest) -> None:
    is_whole = request.config.getoption("--whole")
    many = settings(
        max_examples=EXAMPLES * 10 if is_whole else EXAMPLES,
        derandomize=not is_whole,
        database=None,
        suppress_health_check=[*HealthCheck],
    )
    with asyncio.Runner() as runner:
        door = Door(kind)

        @many
        @given(turns=threads(kind))
        @example(turns=[("fill doubled ids", "well"), ("fill no ids", "well")])
        @example(turns=[*[("say_long", "long")] * 3, ("clear input", "well")])
        @example(turns=[("say", "two calls" if kind == "agent" else "cut")])
        def lived(turns: Turns) -> None:
            nonlocal door
            try:
                runner.run(live(door, turns))
            except BaseException:
                door = Door(kind)  # the next thread is not to find what is left of this one
                raise

        lived()
