"""What a user asked for once and for all: "always answer in French", "when I ask about code, name the file". Pure."""

import re
from typing import Final

# Whoever writes more than that in one message is telling something, too.
_MOST_CHARS: Final = 600
_FOR_GOOD: Final = (
    r"always|never|from now on|in (?:the )?future|going forward|henceforth|(?:every|each|any) ?time|whenever"
)
_WHEN: Final = r"when(?:ever)?|if|(?:every|each|any) ?time"
_STANDING = re.compile(
    # "Always …", "Please never …", "When I ask about …, …"
    rf"^[^\w\n]*(?:please\s+)?(?:{_FOR_GOOD}|(?:{_WHEN})\s+i\s+(?:ask|say|write|send|want|need))\b"
    # "Include the version, always, when I ask about libraries"
    rf"|\b(?:{_FOR_GOOD})\b[^.!?\n]{{0,200}}\b(?:{_WHEN})\s+i\s+\w+",
    re.IGNORECASE | re.MULTILINE,
)


def is_standing(text: str) -> bool:
    """Say whether a message of the user reads as an instruction for all later answers."""
    return len(text) <= _MOST_CHARS and _STANDING.search(text) is not None


_ABOUT_ANSWERS = re.compile(
    r"\b(?:answer|repl(?:y|ies)|respon[ds]|explanation|explain|format|bullet|emoji|tone|concise|brief|verbose|jargon"
    r"|step[- ]by[- ]step|address(?:ed)? (?:as|by)|be called|call (?:him|her|them)|translat|summar(?:y|ies|ize)"
    r"|(?:in|speaks?|write) (?:english|french|german|spanish|italian|portuguese|dutch|norwegian|chinese|japanese))",
    re.IGNORECASE,
)


def is_about_answers(content: str) -> bool:
    """Say whether a fact tells how the user wants to be answered."""
    return _ABOUT_ANSWERS.search(content) is not None
