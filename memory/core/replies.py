"""Which words of the assistant a user makes their own, by answering a question or agreeing. Pure."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from memory.core.phrasing import is_thanks_or_greeting
from memory.message import StoredMessage

_SHORT: Final = 4
_AGREEING: Final = """
    yes yeah yep yup sure right exactly correct indeed absolutely definitely agreed true ok okay deal perfect precisely
    ja jawohl genau stimmt richtig klar gerne einverstanden sí si claro exacto vale correcto oui exactement d'accord
    bien sûr certo esatto sim claro exato klopt inderdaad да верно точно конечно はい うん ええ そう そうです
    是 是的 对 對 好 好的 嗯 네 예
"""
_AGREES: Final = frozenset(_AGREEING.split())
# "The second one", "I'll take that", "let's go there": what is meant stands in what was said before.
_POINTS = re.compile(
    r"\b(?:the\s(?:first|second|third|last|former|latter|other)(?:\sone|\soption)?|(?:that|this)\sone|both\sof\s(?:them|those)"
    r"|(?:i['\u2019]ll|i\swill|let['\u2019]s|i['\u2019]d|i\swould|we['\u2019]ll|i['\u2019]m\sgoing\sto)\s(?:\w+\s){1,3}?"
    r"(?:that|there|it|this|them|those|one)"
    r"|da[sn]?\s(?:erste|zweite|dritte|letzte)|die\s(?:erste|zweite|dritte|letzte)|el\ssegundo|la\ssegunda|el\sprimero)\b",
    re.IGNORECASE,
)
_PRAISES = re.compile(r"\bsounds\s(?:good|great|perfect|fine)\b", re.IGNORECASE)
# What the assistant offers to do itself: who agrees to that says nothing about themselves.
_OFFERS = re.compile(
    r"(?:(?:well|so|sure|great|also|then|if\s(?:you\s(?:like|want|wish)|that\shelps)),?\s){0,2}"
    r"(?:(?:shall|should|can|could|may)\si\b|i\s(?:can|could|will|would|may)\b|i['\u2019](?:ll|d)\b|let\sme\b|"
    r"(?:would\syou\slike|do\syou\swant|want)\s(?:me\sto|a|an|some|another)\b|"
    r"(?:soll|kann|darf)\sich\b|ich\s(?:kann|könnte)\b)",
    re.IGNORECASE,
)
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+|\n")
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")


def affirmed(messages: Sequence[StoredMessage], *, just_now: bool = False) -> Iterator[StoredMessage]:
    """Yield the assistant's messages that the user's next one answers, agrees to or points at.

    Args:
        messages: The conversation.
        just_now: Leave out those whose answer was seen before.
    """
    for before, reply in pairwise(messages):
        if before.role != "assistant" or reply.role != "user" or (just_now and reply.seen):
            continue
        if takes_up(reply.text, before.text):
            yield before


def takes_up(reply: str, before: str) -> bool:
    """Say whether a reply means what was said before it: yes, a few words to a question, or "the second one".

    Thanks do not, nor does a question, nor a few words about something that was no question. To agree to what the
    assistant offers to do is no word about oneself either.
    """
    words = _WORD.findall(reply.casefold())
    if not words or is_thanks_or_greeting(reply):
        return False
    if _POINTS.search(reply):
        return True
    if _ends_with_offer(before):
        return False
    if words[0] in _AGREES or _PRAISES.search(reply):
        return True
    return len(reply.split()) <= _SHORT and not _asks(reply) and _asks(before)


def _ends_with_offer(text: str) -> bool:
    sentences = [part for part in _SENTENCE_ENDS.split(text) if part.strip()]
    return bool(sentences) and _OFFERS.match(sentences[-1].strip()) is not None


def _asks(text: str) -> bool:
    return "?" in text or "\uff1f" in text or "か。" in text
