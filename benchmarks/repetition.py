"""How often the chat model says again what it said before, in one long conversation.

    python -m benchmarks.repetition examples/conversation.json [--plain] [--turns 30]

An answer counts as repeated when more than half of its runs of five words stand in earlier answers. The model is the
deployment's own. Without one it is the local model, which is started unless PALIMPSEST_LOCAL_BASE_URL says where it
listens. Its server keeps the beginning of a prompt, so the oldest half of the messages goes at once, as with a summary.
"""

import argparse
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI

from graphs.cli.dev import server_environment, wants_local
from graphs.cli.local import start_local_model
from graphs.process.models import load_chat_model
from graphs.settings import Settings, environment
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
    shown: list[BaseMessage] = []
    answers: list[str] = []
    for number, text in enumerate(turns, 1):
        shown.append(HumanMessage(text))
        if sum(count_tokens(message.text) for message in shown) > tokens:
            shown = newest(shown, tokens // 2)
        answers.append(model.invoke([SystemMessage(prompts.SYSTEM), *shown]).text)
        shown.append(AIMessage(answers[-1]))
        print(f"[{number}] {text}\n    {answers[-1]}", flush=True)
    return answers


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--tokens", type=int, default=1200, help="tokens of messages in one prompt")
    parser.add_argument("--reply", type=int, default=160, help="tokens of the longest answer")
    parser.add_argument("--plain", action="store_true", help="without the sampling that avoids repetition")
    return parser.parse_args()


@contextmanager
def started_settings() -> Iterator[Settings]:
    """Give the settings of the deployment; where no model is configured, the local one is started, and stopped."""
    environ = environment(Path(".env"))
    settings, local = Settings.from_environment(environ), None
    if wants_local(settings):
        local = start_local_model(settings.local_model)
        settings = Settings.from_environment(server_environment(environ, local))
    try:
        yield settings
    finally:
        if local:
            local.process.terminate()


@contextmanager
def chat_model(*, plain: bool, reply: int) -> Iterator[BaseChatModel]:
    """Give the deployment's chat model, or the local one where none is configured; it is started and stopped.

    Args:
        plain: Without the sampling that avoids repetition.
        reply: Tokens of the longest answer.
    """
    with started_settings() as settings:
        model = load_chat_model(settings.model or "local", settings, purpose="chat")
        if isinstance(model, ChatOpenAI):
            body = model.extra_body or {}
            if plain:
                body = {name: value for name, value in body.items() if not name.startswith("dry_")}
            model = model.model_copy(update={"extra_body": body, "max_tokens": reply})
        yield model


def main() -> None:
    """Hold the conversation and print which answers repeat an earlier one."""
    chosen = options()
    begun = time.monotonic()
    with chat_model(plain=chosen.plain, reply=chosen.reply) as model:
        answers = talk(model, json.loads(chosen.path.read_text())["turns"][: chosen.turns], chosen.tokens)
    found = shares(answers)
    again = [at for at, share in enumerate(found, 1) if share > REPEATED]
    print(f"{len(again)} of {len(answers)} answers repeat earlier ones: {again}")
    print(f"{sum(found) / len(found):.3f} of an answer's runs were said before, {max(found):.2f} at most")
    print(f"{time.monotonic() - begun:.0f} s, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
