"""What the tokens of Palimpsest's calls are for, and where a prompt differs first from the one before. Pure."""

from collections.abc import Sequence
from typing import Literal

from memory import prompts
from memory.context.tokens import MESSAGE_TOKENS, count_tokens

Part = tuple[str, str]
"""Role and text of one message of a prompt."""
Difference = Literal["end", "recalled", "summary", "block"]
"""Where: at its end only, at what was recalled for a message, at the summary, or at the block of memory."""

EXTRACTION = ("instructions", "schema", "known facts", "profile", "user's messages", "assistant's messages", "answer")
SUMMARY = ("instructions", "existing summary", "messages", "answer")
DIFFERENCES: dict[Difference, str] = {
    "end": "nothing but the end",
    "recalled": "what was recalled gives way",
    "summary": "a summary",
    "block": "a new block",
}
_BEFORE_FACTS, _BEFORE_PROFILE, _BEFORE_MESSAGES = ("Known facts:\n", "\n\nKnown profile:\n", "\n\nMessages:\n")
_CONVERSATION_END = "</conversation>"
_RECALLED = "<memory>"
_BEFORE_SUMMARY, _, _BEHIND_SUMMARY = prompts.UPDATE_SUMMARY.partition("{existing_summary}")
_BEHIND_SUMMARY = _BEHIND_SUMMARY.partition("{max_words}")[0]


def tokens_of(part: Part) -> int:
    """Return the tokens of one message."""
    return MESSAGE_TOKENS + count_tokens(part[1])


def of_extraction(prompt: Sequence[Part], schema: str, answer: str) -> dict[str, int]:
    """Return what an extraction call is made of, in tokens; empty for a prompt of another form."""
    material = prompt[-1][1]
    if not (material.startswith(_BEFORE_FACTS) and _BEFORE_PROFILE in material and _BEFORE_MESSAGES in material):
        return {}
    facts, rest = material.removeprefix(_BEFORE_FACTS).split(_BEFORE_PROFILE, 1)
    profile, messages = rest.split(_BEFORE_MESSAGES, 1)
    lines = messages.splitlines(keepends=True)
    user = "".join(line for line in lines if not line.startswith("- assistant"))
    assistant = "".join(line for line in lines if line.startswith("- assistant"))
    texts = (schema, facts, profile, user, assistant, answer)
    return _shares(EXTRACTION, prompt, texts)


def of_summary(prompt: Sequence[Part], answer: str) -> dict[str, int]:
    """Return what a summary call is made of, in tokens."""
    said, _, wish = prompt[-1][1].rpartition(_CONVERSATION_END)
    said += "".join(text for _, text in prompt[:-1])
    existing = ""
    if _BEFORE_SUMMARY in wish and _BEHIND_SUMMARY in wish:
        existing = wish.partition(_BEFORE_SUMMARY)[2].rpartition(_BEHIND_SUMMARY)[0]
    return _shares(SUMMARY, prompt, (existing, said, answer))


def _shares(names: Sequence[str], prompt: Sequence[Part], texts: Sequence[str]) -> dict[str, int]:
    """Return the tokens of each text; what else stands in the prompt is instructions."""
    found = dict(zip(names[1:], map(count_tokens, texts), strict=True))
    within = sum(tokens for name, tokens in found.items() if name not in ("schema", "answer"))
    return {names[0]: max(0, sum(map(tokens_of, prompt)) - within), **found}


def first_difference(before: Sequence[Part], after: Sequence[Part]) -> Difference:
    """Return where a prompt differs first from the one before."""
    for one, other in zip(before, after, strict=False):
        if one == other:
            continue
        if one[0] == "system":
            blocks = (each[1].partition(prompts.SUMMARY_NOTE)[0].rstrip() for each in (one, other))
            return "summary" if len({*blocks}) == 1 else "block"
        return "recalled" if _RECALLED in one[1] + other[1] else "summary"
    return "end"
