"""How often the chat model says again what it said before, in one long conversation.

    PALIMPSEST_MODEL=local PALIMPSEST_LOCAL_BASE_URL=http://127.0.0.1:8080/v1 \\
        python -m benchmarks.repetition examples/conversation.json [--plain]

An answer counts as repeated when more than half of its runs of five words stand in earlier answers.
"""

import argparse
import re
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI

from graphs.cli.demo import read_conversation
from graphs.models import load_chat_model
from graphs.settings import Settings
from memory import prompts
from memory.context.tokens import count_tokens

RUN = 5
REPEATED = 0.5
_WORD = re.compile(r"\w+")


def runs(text: str) -> frozenset[tuple[str, ...]]:
    """Return the runs of five words in a text."""
    words = _WORD.findall(text.casefold())
    return frozenset(tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1))


def shares(answers: Sequence[str]) -> list[float]:
    """Return for each answer the share of its runs that stand in earlier answers; 0 for one without a run."""
    said: set[tuple[str, ...]] = set()
    found = []
    for own in map(runs, answers):
        found.append(len(own & said) / len(own) if own else 0.0)
        said |= own
    return found


def newest(said: Sequence[BaseMessage], tokens: int) -> list[BaseMessage]:
    """Return the newest messages that have so many tokens together, the first a user's."""
    sums = accumulate(count_tokens(message.text) for message in reversed(said))
    kept = said[len(said) - sum(1 for each in sums if each <= tokens) :]
    return list(kept[1:] if isinstance(kept[0], AIMessage) else kept)


def talk(model: BaseChatModel, turns: Sequence[str], tokens: int) -> list[str]:
    """Say the turns one after another and return the answers; each prompt holds the newest messages."""
    said: list[BaseMessage] = []
    for number, text in enumerate(turns, 1):
        said.append(HumanMessage(text))
        answer = model.invoke([SystemMessage(prompts.SYSTEM), *newest(said, tokens)]).text
        said.append(AIMessage(answer))
        print(f"[{number}] {text}\n    {answer}", flush=True)
    return [message.text for message in said if isinstance(message, AIMessage)]


def main() -> None:
    """Hold the conversation and print which answers repeat an earlier one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--tokens", type=int, default=1200, help="tokens of messages in one prompt")
    parser.add_argument("--plain", action="store_true", help="without the sampling that avoids repetition")
    chosen = parser.parse_args()
    settings = Settings.from_environment()
    model = load_chat_model("", settings, purpose="chat")
    if chosen.plain and isinstance(model, ChatOpenAI):
        body = {name: value for name, value in (model.extra_body or {}).items() if not name.startswith("dry_")}
        model = model.model_copy(update={"extra_body": body})
    answers = talk(model, read_conversation(chosen.path, chosen.turns).turns, chosen.tokens)
    found = shares(answers)
    again = [at for at, share in enumerate(found, 1) if share > REPEATED]
    print(f"{len(again)} of {len(answers)} answers repeat earlier ones: {again}")
    print(f"{sum(found) / len(found):.3f} of an answer's runs were said before, {max(found):.2f} at most")


if __name__ == "__main__":
    main()
