"""What must not become memory: secrets, and orders that are not about the user. Pure.

The detectors for secrets that exist are made for source code: they need files, and take names for keys. Here a
sentence is judged, so the rules are few and each wants a form that ordinary sentences do not have.
"""

import re
from typing import Final

_KEY_FORMS: Final = (
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"\b(?:gh[pousr]_|github_pat_|glpat-|npm_|hf_|xox[abprs]-|pypi-)[A-Za-z0-9_-]{16,}",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bAIza[0-9A-Za-z_-]{30,}",
    r"\b(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    r"://[^\s/:@]+:[^\s/@]+@",
)
_KEY = re.compile("|".join(_KEY_FORMS))
_SECRET_NAMES: Final = (
    r"pass(?:word|code|phrase|wd)|pwd|passwort|kennwort|mot de passe|contraseña|senha|wachtwoord|пароль|密码|"
    r"api[ _-]?key|secret[ _-]?key|access[ _-]?(?:key|token)|auth[ _-]?token|private[ _-]?key|security code|cvv"
)
_NAMED = re.compile(
    rf"(?:{_SECRET_NAMES})(?:\s+(?:for|to|of|on|pour|für|de)\s+[^.:=]{{1,40}}?)?\s*"
    r"(?:\bis\b|\bwas\b|\bist\b|\best\b|\bes\b|\bé\b|:|=|是|:)\s*[\"'`“]?(?P<value>[^\s\"'`”]+)(?P<rest>.*)",
    re.IGNORECASE,
)
_PIN = re.compile(r"\bpin(?:\s+(?:code|number))?(?:\s+\w+){0,4}?\s*(?:is|:|=)\s*\d{4,8}\b", re.IGNORECASE)
_CARD = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.]*\d)")
_DENSE = re.compile(r"[A-Za-z0-9_+/=-]{24,}")
# What is said about a password without saying it.
_ABOUT_WORDS: Final = """
    a an the not no too very always never now still stored kept saved managed weak strong long short expired wrong
    lost old new safe secret required needed unknown being in on something that what changed different same
    difficult easy hard important broken
"""
_ABOUT: Final = frozenset(_ABOUT_WORDS.split())


def holds_secret(text: str) -> bool:
    """Say whether a text holds a key, a password or a payment card's number."""
    return bool(_KEY.search(text) or _PIN.search(text)) or _names_one(text) or _has_card(text) or _has_dense(text)


def _names_one(text: str) -> bool:
    found = _NAMED.search(text)
    if found is None:
        return False
    value = found["value"].rstrip(".,;!?")
    if any(char.isdigit() or not char.isalnum() for char in value):
        return True
    return value.casefold() not in _ABOUT and not found["rest"].strip(" .!\"'`”")


def _has_card(text: str) -> bool:
    return any(_passes_luhn([int(char) for char in found[0] if char.isdigit()]) for found in _CARD.finditer(text))


def _passes_luhn(digits: list[int]) -> bool:
    """Check the last digit by Luhn's algorithm (ISO/IEC 7812-1, annex B), which every payment card number passes."""
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(doubled) + sum(digits[::-2])) % 10 == 0 and len(set(digits)) > 1


def _has_dense(text: str) -> bool:
    """Find what only a machine writes: long, without spaces, of small and capital letters and digits mixed."""
    return any(
        any(map(str.islower, token)) and any(map(str.isupper, token)) and sum(map(str.isdigit, token)) >= 3
        for token in _DENSE.findall(text)
        if "/" not in token
    )


_ADDRESSEE: Final = r"(?:you|the (?:assistant|ai|agent|bot|model|chatbot|system)|assistants?|agents?)"
_WANTING: Final = (
    r"(?:wants?|asks?|asked|tells?|told|instructs?|instructed|requires?|required|requests?|requested|orders?|ordered|"
    r"expects?|authori[sz]es?|authori[sz]ed|allows?|allowed|permits?|permitted|needs?)"
)
_MUST: Final = r"(?:must|should|shall|has to|have to|needs? to|is to|are to|may|can|will|is allowed to|are allowed to)"
_ADVERBS: Final = (
    r"(?:(?:please|always|never|now|just|first|then|also|immediately|silently|secretly|from now on|"
    r"in (?:the )?future|henceforth|whenever [^,]{1,60},|when [^,]{1,60},|if [^,]{1,60},|every time [^,]{1,60},|"
    r"do not|don't|not)[,: ]*)*"
)
# Where an order stands: a sentence that begins with its verb, or one that says what the assistant has to do.
_ORDER = re.compile(
    rf"(?:^|[.!?:;\n\"“]\s*|\band\s+|\bthen\s+)(?:(?:{_ADDRESSEE}\s+{_MUST}\s+)|"
    rf"(?:(?:the )?user\s+{_WANTING}\s+{_ADDRESSEE}\s+(?:to\s+)?))?{_ADVERBS}"
    r"(?P<order>[^.!?;\n]+)",
    re.IGNORECASE,
)
_ON_PROMPT = re.compile(
    r"(?:ignore|disregard|forget|override|bypass|drop|skip|reveal|print|repeat|show|leak|disclose|output|change|"
    r"replace|break|violate|disobey)\w*\s+(?:\w+\s+){0,4}?"
    r"(?:instructions?|rules?|system prompts?|prompts?|guidelines?|polic(?:y|ies)|safety|restrictions?|guardrails?|"
    r"safeguards?)\b",
    re.IGNORECASE,
)
_OBJECTS: Final = (
    r"(?:e-?mails?|mails?|messages?|files?|documents?|data|conversations?|transcripts?|chats?|credentials?|passwords?|"
    r"secrets?|keys?|tokens?|money|funds|payments?|invoices?|commands?|shell|tools?|functions?|scripts?|code|"
    r"requests?|contacts?|memor(?:y|ies)|facts|records|databases?|tables?|repositor(?:y|ies)|branch(?:es)?|history)"
)
_ON_WORLD = re.compile(
    r"(?:send|forward|e-?mail|mail|post|share|upload|transfer|pay|delete|erase|remove|wipe|execute|run|call|invoke|"
    r"push|force-?push|deploy|publish|approve|grant|install|download|exfiltrate|copy|move|submit|book|buy|order|bcc|cc)"
    rf"\s+(?!(?:me|us)\b)(?:[\w'-]+\s+){{0,5}}?{_OBJECTS}\b",
    re.IGNORECASE,
)
_FORCE = re.compile(r"^(?:force-?push|merge without review|skip (?:the )?(?:tests|review|approval))", re.IGNORECASE)
# An order is meant for more than its moment, or sends something somewhere.
_STANDING = re.compile(
    r"\b(?:every|each|all|any|always|whenever|from now on|never|automatically|without (?:asking|review|approval|"
    r"confirmation))\b|\b(?:to|at|on|with)\s+(?:\S+@\S+|https?://|\w+\.(?:com|net|org|io|ru|xyz)\b)",
    re.IGNORECASE,
)
_PRETEND = re.compile(
    r"\b(?:you are now|act as|pretend to be|your new (?:role|instructions|system prompt)|new system prompt|"
    r"developer mode|jailbreak mode)\b",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?\s*(?:system|memory|instructions?|assistant|user|tool|im_start|im_end)\b|<\|", re.IGNORECASE)


def is_instruction_like(text: str) -> bool:
    """Say whether a text is aimed at tools, at other people or at the prompt, not a statement about the user.

    No word decides alone: it must stand as an order (a sentence that begins with its verb, or "the assistant
    must …"), and be about the prompt, or be a standing order about mails, files, tools and the like. How the user
    wants to be answered is a wish, not such an order. Only English is recognized.
    """
    if _TAG.search(text):
        return True
    return any(_is_order(found["order"], text) for found in _ORDER.finditer(text))


def _is_order(order: str, text: str) -> bool:
    stripped = order.strip()
    if _ON_PROMPT.match(stripped) or _FORCE.match(stripped) or _PRETEND.match(stripped):
        return True
    return bool(_ON_WORLD.match(stripped) and _STANDING.search(text))
