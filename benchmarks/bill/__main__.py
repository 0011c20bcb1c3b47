"""Replay a public conversation and count what it costs, beside peers.

    python -m benchmarks.bill DATA [--conversation conv-41] [--turns 300] [--write measured/bill.md]

DATA holds LoCoMo conversations in `locomo/`. No model is asked: fake ones answer at once, in a fixed length, what the
data hold, and note what they are sent. Nothing is timed, so a busy machine changes nothing.
"""

import argparse
import asyncio
import logging
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.bill.contestants import Bare, ByConfidence, Contestant, Langmem, Models, Palimpsest
from benchmarks.bill.figures import Bill
from benchmarks.bill.ledger import Ledger
from benchmarks.bill.replay import ReplayTurn, read_replay
from benchmarks.bill.report import EVERY_TURN, FULL, OURS, Conditions, goals, prompts_plot, report
from benchmarks.measuring import keep, progress, why_not_counted
from memory.context.tokens import Tokenizer, shared_counter

CONDITIONS = (Conditions(120, 20.0), Conditions(120, 60.0), Conditions(40, 20.0))
"""How long answers are and how quickly turns come decides the figures: the first are shown whole, then others."""
CACHE_SECONDS = 300.0
"""So long a provider keeps a prompt: the default of `Context.cache_ttl_seconds`."""


def contestants() -> dict[str, Callable[[Models], Contestant]]:
    """Return who is measured: the shipped graph and the peers at both budgets."""
    found: dict[str, Callable[[Models], Contestant]] = {
        name: lambda models, tokens=tokens: Palimpsest(models, tokens)  # type: ignore[misc]
        for tokens, name in OURS.items()
    }
    for tokens in OURS:
        found[f"langmem, {tokens:,} tokens"] = lambda models, tokens=tokens: Langmem(models, tokens)  # type: ignore[misc]
    for tokens in OURS:
        found[f"facts by confidence, {tokens:,} tokens"] = (
            lambda models, tokens=tokens: ByConfidence(models, tokens)  # type: ignore[misc]
        )
    found[FULL] = Bare
    found[EVERY_TURN] = lambda models: Palimpsest(models, max(OURS), every_turn=True)
    return found


async def measured(name: str, make: Callable[[Models], Contestant], replay: Sequence[ReplayTurn]) -> Bill:
    """Return what one contestant spends on a replay."""
    ledger = Ledger()
    contestant = make(Models(replay, ledger))
    for number, said in enumerate(replay):
        await contestant.calls_until(said.at)
        ledger.turn = number
        ledger.is_warm = number > 0 and said.at - replay[number - 1].at <= CACHE_SECONDS
        await contestant.turn(said)
    await contestant.calls_until(replay[-1].at + 86_400)
    known = await contestant.known()
    await contestant.close()
    return Bill(name, len(replay), ledger.calls, known)


async def bills_of(
    conditions: Conditions, path: Path, turns: int, done: Mapping[Conditions, Mapping[str, Bill]]
) -> dict[str, Bill]:
    """Return what everyone spends under the first conditions, and what is needed for the goals under the others."""
    replay = read_replay(path, turns=turns, answer_words=conditions.answer_words, pace=conditions.pace)
    found: dict[str, Bill] = {}
    for name, make in contestants().items():
        if done and name not in (*OURS.values(), FULL, EVERY_TURN):
            continue
        same = (bills for each, bills in done.items() if each.answer_words == conditions.answer_words)
        # Who asks after every turn, or never, spends the same at any pace.
        if name in (FULL, EVERY_TURN) and (before := next(same, None)):
            found[name] = before[name]
            continue
        progress(f"{name}, {conditions}")
        found[name] = await measured(name, make, replay)
    return found


def main(arguments: Sequence[str] | None = None, tokenizer: Tokenizer | None = None) -> int:
    """Measure and print the tables.

    Args:
        arguments: As on the command line, where they are read by default.
        tokenizer: What counts; by default that of this process.

    Returns:
        The exit code: 1 when a goal is missed, 2 where tokens cannot be counted, 0 also where there are no data.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--conversation", default="conv-41")
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--only-first", action="store_true", help="leave the other lengths and paces out")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args(arguments)
    path = options.data / "locomo" / f"{options.conversation}.json"
    if not path.is_file():
        print(f"Skipped: there is no {path}. DATA=DIR names the folder with the conversations.")
        return 0
    if reason := why_not_counted(tokenizer or shared_counter().tokenizer):
        print(reason, file=sys.stderr)
        return 2
    found: dict[Conditions, dict[str, Bill]] = {}
    text = ""
    for conditions in CONDITIONS[: 1 if options.only_first else None]:
        found[conditions] = asyncio.run(bills_of(conditions, path, options.turns, found))
        text = report(f"LoCoMo's {options.conversation}", found)
        if options.write:  # what is measured so far
            keep(options.write, text)
            options.write.with_suffix(".svg").write_text(prompts_plot(found[CONDITIONS[0]]), "utf-8")
    print(text)
    return 0 if all(goal.holds for each in found.values() for goal in goals(each)) else 1


if __name__ == "__main__":
    # Here and not in `main`: a test that calls it would go on without warnings.
    warnings.simplefilter("ignore")
    logging.getLogger().setLevel(logging.ERROR)
    sys.exit(main())
