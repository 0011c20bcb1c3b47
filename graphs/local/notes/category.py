"""To which category a sentence about a user belongs, told by its words, in English. Pure.

A model of one or two billion parameters takes the category that its examples name most often. Words tell it better: a
promise has its verb, an opinion its adjective, a decision what was taken and what was left.
"""

import re
from collections.abc import Mapping

from memory.config import Category
from memory.facts.words import words
from memory.text import sentences

# Whoever says one of these tells of a decision, whatever they like or plan beside it.
_DECIDES = re.compile(
    r"\b(?:decided|decides|decision|chose|chosen|opted|voted|settled (?:on|for)|agreed (?:on|that)|ruled out|"
    r"turned down)\b",
    re.IGNORECASE,
)
# Words that say of what kind a sentence is, whatever else stands in it. Of several, the first counts: "prefers what
# will last".
_TELLING: Mapping[Category, re.Pattern[str]] = {
    "preference": re.compile(
        r"\b(?:prefer|(?<!would )(?<!['\u2019]d )(?<!something )(?<!looks )(?<!feels )like[sd]?\b|love[sd]?\b|"
        r"hate[sd]?\b|dislike|enjoy|favou?rite|fond of|rather\b(?! than)|"
        r"(?:can['\u2019]?t|cannot|won['\u2019]t) (?:stand|bear)\b|"
        r"(?:user|i|we|honestly) (?:really |still |just |always )?(?:think|believe|feel|reckon|find|consider)s?\b"
        r"(?! out)|opinion|(?:my|user['\u2019]s|hot|honest|unpopular) (?:take|view)\b|take on|honestly|frankly|imo\b|"
        r"convinced|unconvinced|s[kc]eptical|wary of|a (?:big )?fan of|tired of|sick of|overrate|underrate|over-?hyped|"
        r"over-?engineer|over-?kill|worth (?:it|the|a)\b|(?:a|the) (?:waste|mistake|joke|trap)\b|"
        r"(?:should|ought to) (?:just |never |always |not |simply |really |only )?be\b|shouldn['\u2019]t|"
        r"please[.!]?$|tires? \w+ out|answers?\b.*\b(?:sentences?|words|short|brief))",
        re.IGNORECASE,
    ),
    "context": re.compile(
        r"\b(?:deciding|picked\b(?! up)|settled|(?<!is )(?:went|go|goes|going|gone|stick|sticks|sticking) with\b|"
        r"new rule|plan (?:for [\w ]{1,30} )?is\b|wants? to (?:keep|use|stick|switch)\b|"
        r"go(?:es|ing)? ahead|signed off|locked in|finali[sz]ed|made the call|ended up|in the end we|"
        r"said (?:yes|no) to|hold(?:ing)? off|(?:replac|switch|migrat|dropp|ditch|scrapp|abandon|reject|adopt|cancel|"
        r"cancell|postpon|shelv|retir|consolidat|standardi[sz])(?:ed|ing)\b|(?:is|are|['\u2019]re|was|were) moving\b|"
        r"moved\b|no more\b|no longer\b|from now on|instead of\b|"
        r"(?:will|['\u2019]ll|going to) (?:not|no longer|stop|skip|drop|keep|stay|use|switch|move to|replace)\b)",
        re.IGNORECASE,
    ),
    "goal": re.compile(
        r"\b(?:promise[sd]?\b|commit(?:s|ted|ting)? (?:to|myself|ourselves|themselves)\b|"
        r"commitment\b|agreed to\b|pledge[ds]?\b|vow(?:s|ed)\b|signed up|"
        r"signed (?:a|the) contract|volunteered|count me in|told .{2,30}(?:['\u2019]d| would)\b|plan(?:s|ned|ning)?\b|"
        r"intend|wants? to\b|would like to\b|hopes?\b|aims?\b|goal|saving for|deadline for me|by end of)",
        re.IGNORECASE,
    ),
    "behavior": re.compile(
        r"^user (?=\w).{0,200}?\b(every (?:day|morning|evening|night|week|month|year|"
        r"(?:mon|tues|wednes|thurs|fri|satur|sun)day)|usually|always|gets up|wakes up|daily|habit|"
        r"each (?:day|morning|week)|on (?:mon|tues|wednes|thurs|fri|satur|sun)days)\b",
        re.IGNORECASE,
    ),
}
# Words that often say it, and often stand beside something else: they count where none of the others does.
_HINTING: Mapping[Category, re.Pattern[str]] = {
    "preference": re.compile(r"\b(?:far more|better|worse|best|worst|kills?|should)\b", re.IGNORECASE),
    "goal": re.compile(
        r"\b(?:will\b|['\u2019]ll\b|going to\b|(?:ha(?:s|ve)|needs?) to .{2,60}\b(?:by|before)\b)", re.IGNORECASE
    ),
}


def category_of(sentence: str, source: str) -> Category:
    """Return the category of a fact by its words, or by those of the sentence that it was taken from.

    Args:
        sentence: The fact.
        source: The message that it was taken from.
    """
    wanted = words(sentence)
    nearest = max(sentences(source), key=lambda part: len(words(part) & wanted), default="")
    texts = (sentence, nearest)
    found = (_first_cue(cues, text) for cues in (_TELLING, _HINTING) for text in texts)
    if _DECIDES.search(sentence):
        return "context"
    return next((category for category in found if category), "knowledge")


def _first_cue(cues: Mapping[Category, re.Pattern[str]], text: str) -> Category | None:
    # A group marks the telling word where a pattern begins before it.
    found = [
        (match.start(match.lastindex or 0), category) for category, cue in cues.items() if (match := cue.search(text))
    ]
    return min(found)[1] if found else None
