"""G1: a thread goes on whatever clients, models and middleware put there, and each prompt tells what the thread holds.

One law instead of many examples: a thread is a list of turns, each of what a client sends and what a model answers.
What is counted is words. Each that the thread holds reaches the model, once, in a message or in the summary; none does
that was removed. Every turn is answered, in as many calls of the model as it takes, each prompt fits its budget and is
one that any server takes, each call of a tool is carried out once or told why not, and what the user said is learned
once.
"""

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, note, settings
from hypothesis import strategies as st

from tests.laws.history import Door, History
from tests.laws.moves import ANSWERS, CLIENTS, LINKED, NEVER, turn

Turns = list[tuple[str, str]]

EXAMPLES = 12
FOUND = {
    "keep": [("fill doubled ids", "well"), ("fill no ids", "well"), ("say", "clearing call")],
    "compact": [*[("another_rule", "well"), ("fill much", "well")] * 2, ("another_rule", "well")],
    "agent": [("fill much", "well"), ("clear each", "well")],
    "below": [("say", "call hangs"), ("fill words", "well")],
}


def threads(kind: str) -> st.SearchStrategy[Turns]:
    """Return threads of one to four turns, of which two belong together.

    Each is drawn as one value, where Hypothesis changes nothing but all of it: of turns drawn one by one it keeps most
    in the next examples, and a third of the moves would not come.
    """
    answers = ["well", "long", *(one for one in ANSWERS if one not in NEVER[kind])]

    def thread(drawn: bytes) -> Turns:
        def one_of(options: Sequence[Any]) -> Any:
            return options[next(numbers) % len(options)]

        numbers = iter(drawn)
        (client, answer), then = one_of(LINKED)
        linked = [(client, answer if answer in answers else "well"), (then, one_of(answers))]
        others = range(one_of((0, 1, 0, 2)))
        alone, before = [(one_of([*CLIENTS]), one_of(answers)) for _ in others], one_of(range(3))
        return [*alone[:before], *linked, *alone[before:]]

    return st.binary(min_size=8, max_size=8).map(thread)


def fresh(kind: str) -> Iterator[Door]:
    """Yield a door for each thread, a new one for every ten.

    LangGraph's InMemoryStore goes on listing each user who ever had something to be learned, and a process that starts,
    as one does with each `learn`, looks at all of them: threads at one door would each take longer than the one before.
    """
    while True:
        yield from itertools.repeat(Door(kind), 10)


async def live(door: Door, turns: Turns) -> None:
    """Live a thread, and end it with a plain turn."""
    thread = History(door)
    try:
        for client, answer in [*turns, ("say", "well")]:
            await turn(thread, client, answer)
        await thread.once()
    except BaseException:
        note(f"{turns}\n{await thread.told()}")
        for one in thread.wire.prompts[-1:]:
            note("\n".join(f"> {str(message)[:150]}" for message in one["messages"]))
        raise


@pytest.mark.timeout(3600)  # many times as many with --whole, beside other tests
@pytest.mark.parametrize("kind", [*FOUND])
def test_a_thread_goes_on_whatever_stands_in_it(kind: str, request: pytest.FixtureRequest) -> None:
    is_whole = request.config.getoption("--whole")
    many = settings(
        max_examples=EXAMPLES * 40 if is_whole else EXAMPLES,
        derandomize=not is_whole,
        database=None,
        phases=[Phase.explicit, Phase.generate],  # a thread is short as it comes
        suppress_health_check=[*HealthCheck],
    )
    with asyncio.Runner() as runner:
        doors = fresh(kind)

        @many
        @given(turns=threads(kind))
        @example(turns=FOUND[kind])
        @example(turns=[("say", "two calls" if kind == "agent" else "cut")])
        def lived(turns: Turns) -> None:
            nonlocal doors
            try:
                runner.run(live(next(doors), turns))
            except BaseException:
                doors = fresh(kind)  # the next thread is not to find what is left of this one
                raise

        lived()
