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
    r"(?:that|there|it|this|them|those|one)|sounds\s(?:good|great|perfect|fine)"
    r"|da[sn]?\s(?:erste|zweite|dritte|letzte)|die\s(?:erste|zweite|dritte|letzte)|el\ssegundo|la\ssegunda|el\sprimero)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")


def affirmed(messages: Sequence[StoredMessage]) -> Iterator[StoredMessage]:
    """Yield the assistant's messages that the user's next one answers, agrees to or points at."""
    for before, reply in pairwise(messages):
        if before.role == "assistant" and reply.role == "user" and takes_up(reply.text, before.text):
            yield before


def takes_up(reply: str, before: str) -> bool:
    """Say whether a reply means what was said before it: yes, a few words to a question, or "the second one".

    Thanks do not, nor does a question, nor a few words about something that was no question.
    """
    words = _WORD.findall(reply.casefold())
    if not words or is_thanks_or_greeting(reply):
        return False
    if words[0] in _AGREES or _POINTS.search(reply):
        return True
    return len(reply.split()) <= _SHORT and not _asks(reply) and _asks(before)


def _asks(text: str) -> bool:
    return "?" in text or "\uff1f" in text or "か。" in text
