"""How much of what people said a summary keeps, beside langmem's with the same model.

    python -m benchmarks.summaries DATA [--sessions 1]

DATA holds `locomo/*.json`. Each session is summarized at once, in 256 tokens at most, by `summarize_messages` of ours
and of langmem. What counts is the share of the stems of the session's gold summary, written by people, that the first
256 tokens of a summary hold. The model is the deployment's own for summaries; without one it is the local model, which
reads so many tokens in a call as its profile says.
"""

import argparse
import json
import os
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from benchmarks.repetition import started_settings
from graphs.process.models import load_chat_model, profile
from memory.context.budget import shorten_text
from memory.context.summarization import summarize_messages
from memory.context.tokens import shared_counter
from memory.recall.words import terms

TOKENS = 256
SEED = 7
DRAWS = 2000


@dataclass(frozen=True, slots=True)
class Session:
    """What two people said in one session, and the summary that people wrote of it."""

    name: str
    messages: tuple[BaseMessage, ...]
    gold: str


def sessions(folder: Path, most: int) -> Iterator[Session]:
    """Yield so many sessions of each conversation, chosen by the seed."""
    for path in sorted(folder.glob("locomo/*.json")):
        data = json.loads(path.read_text("utf-8"))
        said = data["conversation"]
        names = sorted(
            name for name in said if isinstance(said[name], list) and f"{name}_summary" in data["session_summary"]
        )
        for name in random.Random(SEED).sample(names, min(most, len(names))):
            messages = [
                (HumanMessage if turn["speaker"] == said["speaker_a"] else AIMessage)(
                    f"{turn['speaker']}: {turn['text']}", id=turn["dia_id"]
                )
                for turn in said[name]
            ]
            yield Session(f"{path.stem} {name}", tuple(messages), data["session_summary"][f"{name}_summary"])


def ours(model: BaseChatModel, session: Session, portion: int | None) -> str:
    """Return the summary that Palimpsest writes."""
    result = summarize_messages(
        [*session.messages, HumanMessage("Goodbye!", id="end")],
        running_summary=None,
        model=model,
        max_tokens=8192,
        max_tokens_before_summary=_tokens(session),
        max_summary_tokens=TOKENS,
        keep_messages=1,
        portion_tokens=portion,
    )
    return result.running_summary.summary if result.running_summary else ""


def theirs(model: BaseChatModel, session: Session) -> str:
    """Return the summary that langmem writes; it has to be installed."""
    from langmem.short_term import summarize_messages as langmem_summarize

    result: Any = langmem_summarize(
        [*session.messages, HumanMessage("Goodbye!", id="end")],
        running_summary=None,
        model=model,
        max_tokens=8192,
        max_tokens_before_summary=_tokens(session),
        max_summary_tokens=TOKENS,
        token_counter=shared_counter(),
    )
    return str(result.running_summary.summary) if result.running_summary else ""


def _tokens(session: Session) -> int:
    counter = shared_counter()
    return sum(counter([message]) for message in session.messages)


def kept(summary: str, gold: str) -> float:
    """Return the share of the gold summary's stems that the first tokens of a summary hold."""
    wanted = set(terms(gold))
    return len(wanted & set(terms(shorten_text(summary, TOKENS, shared_counter())))) / len(wanted)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the bootstrap 95 % interval of the mean."""
    chance = random.Random(SEED)
    means = sorted(statistics.mean(chance.choices(values, k=len(values))) for _ in range(DRAWS))
    return means[int(DRAWS * 0.025)], means[int(DRAWS * 0.975)]


def main() -> None:
    """Summarize each session by both and print what they kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sessions", type=int, default=1, help="of each conversation")
    chosen = parser.parse_args()
    found: dict[str, list[float]] = {"Palimpsest": [], "langmem": []}
    with started_settings() as settings:
        name = settings.model or "local"
        model = load_chat_model(name, settings, purpose="summary")
        limits = profile(name, settings)
        for session in sessions(chosen.data, chosen.sessions):
            for who, values in found.items():
                begun = time.monotonic()
                portion = limits.summary_portion_tokens if limits else None
                text = ours(model, session, portion) if who == "Palimpsest" else theirs(model, session)
                values.append(kept(text, session.gold))
                print(f"{session.name}  {who:10}  {values[-1]:.2f}  {time.monotonic() - begun:.0f} s", flush=True)
    for who, values in found.items():
        low, high = interval(values)
        print(f"{who:10}  {statistics.mean(values):.3f} [{low:.3f}, {high:.3f}]  n={len(values)}, seed {SEED}")
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
