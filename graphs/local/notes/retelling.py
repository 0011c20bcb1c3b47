"""A sentence of the user as it is told of the user: "User likes tea" for "I like tea", in English. Pure.

All words stay as they were said. Only who speaks is named, and the verb behind agrees. What cannot be turned safely is
not turned.
"""

import re
from typing import Final

from memory.text import word_set

WISH: Final = "User prefers: "
"""How a wish begins that the user gave as a command."""

_OPENING = re.compile(
    r"(?:(?:ok|okay|so|well|and|but|also|anyway|by the way|btw|oh|yes|yeah|haha|hi|hello|hey|plus|then|sorry|"
    r"correction|i (?:said|wrote|got) (?:it|that) wrong)\b[,:;!.]?\s)+",
    re.IGNORECASE,
)
_ADVERB: Final = (
    r"(?:really|still|just|also|always|never|often|now|already|both|all|actually|finally|rather|even|only|soon|mostly|"
    r"usually|probably|recently|currently|simply|strongly|definitely|basically|absolutely|ever|once|then|not|"
    r"eventually|originally|initially|almost|hardly|barely|sometimes|honestly|personally|explicitly|deliberately)"
)
_SUBJECT = re.compile(
    rf"(?<![\w'\u2019])(?:I|[Ww]e)(?:['\u2019](?P<short>m|re|ve|ll|d)(?!\w))?(?P<adverbs>(?: {_ADVERB}(?!\w)){{0,4}})"
    r"(?: (?P<verb>[a-z]+(?:['\u2019]t)?)(?![\w'\u2019-]))?"
)
# "What can I do", "nor do we": the verb stands before.
_INVERTED = re.compile(r"\b(?:am|are|was|were|do|did|have|had|can|could|will|would|should|may|must) (?:I|we)\b")
_SHORT: Final = {"m": "is", "re": "is", "ve": "has", "ll": "will"}
_AGREES: Final = {"am": "is", "are": "is", "were": "was", "have": "has", "do": "does", "go": "goes"}
# Without -s behind "User": modal verbs, and pasts that do not end in -ed.
_STAYS: Final = word_set("""
    is was has had does did can cannot could will would shall should may might must ought
    became began bet bent blew bought bound broke brought built burnt came caught chose cost crept cut dealt drank drew
    drove dug dwelt ate fed fell felt flew forgave forgot fought found froze gave got grew held hid hit hung hurt kept
    knew laid lay led left lent let lost made meant met mistook overtook paid put quit ran rang read rebuilt rewrote
    rode rose said sang sank sat saw sent set shook shone shot shut slept slid sold sought spent spoke split spread
    stole stood stuck struck swam swore taught thought threw told took tore understood undid went withdrew woke won wore
    wrote
""")
_ENDS_IN_ED: Final = word_set("need feed breed bleed speed succeed proceed exceed embed shed wed heed weed seed")
# Behind "we" or "I" these are no verbs.
_NO_VERB: Final = word_set("""
    two three four five six seven guys folks as in on at of or and but who that which with for to from by too alone
    ourselves myself the a an if when while because
""")
_NOT = re.compile(r"(?P<verb>[a-z]{2,12})n['\u2019]t")
_OWN: Final = {
    "my": "the user's", "our": "the user's", "mine": "the user's", "ours": "the user's", "me": "the user",
    "us": "the user", "myself": "themselves", "ourselves": "themselves",
}  # fmt: skip
_OWNED = re.compile(r"(?<![\w'\u2019])(?:[Mm]y|[Oo]ur|mine|ours|me|us|myself|ourselves)(?![\w'\u2019-])")
FIRST_PERSON = re.compile(
    r"(?<![\w'\u2019])(?:I|me|my|mine|myself|we|us|our|ours|ourselves)(?![\w-])(?!['\u2019]\w{3,})", re.IGNORECASE
)
_QUOTE = re.compile(r"[\"\u201c\u201d\u201e\u00ab\u00bb`]")
# "Sold the boat": who did it is left out. What follows tells that it is a verb: "used cars are cheap" is no such thing.
_BARE_PAST = re.compile(
    r"(?:(?P<adverb>just|finally|also|already|recently|still) )?(?P<verb>[a-z]{2,20}) (?:the|an?|my|our|it|this|that|"
    r"these|those|him|her|them|from|to|up|down|out|off|in|into|on|onto|with|for|at|all|over|away|back|no|not|\d+|[A-Z]\w*)"
    r"(?![\w'\u2019])"
)
# What is no past there, or also a command: "set the alarm".
_NO_PAST: Final = word_set("""
    based related compared given united is was has had does did can could will would may must shall should might ought
    cannot bet cost cut hit hurt let put quit read set shed shut split spread
""")
_LETS = re.compile(
    r"let['\u2019]s (?P<wish>(?:keep|use|stay|stick|switch|move|drop|go with|postpone|replace)\b)", re.IGNORECASE
)
# "Always put it next to the code", "no mocks in tests, please": what the user wants for good.
_STANDING_WISH = re.compile(
    r"(?:please )?(?:always|never|don['\u2019]?t ever|do not ever)\b|.{0,200}\b(?:ever|please)[.!]?$", re.IGNORECASE
)
_CLAUSE_OF_WISH = re.compile(r"(?:please )?(?:always|never|no|don['\u2019]?t|do not|only)\b", re.IGNORECASE)


def retold(sentence: str) -> str:
    """Return what the user says as it is told of the user; empty where that is not safe.

    Args:
        sentence: One sentence of the user, in English.
    """
    bare = sentence.strip()
    bare = bare[opening.end() :] if (opening := _OPENING.match(bare)) else bare
    if not bare or bare.endswith("?") or _INVERTED.search(bare):
        return ""
    if _QUOTE.search(bare):
        return bare if not FIRST_PERSON.search(bare) else ""
    if wish := _LETS.match(bare):
        bare = f"User wants to {wish['wish']}{bare[wish.end() :]}"
    elif (past := _BARE_PAST.match(bare[0].lower() + bare[1:])) and _is_past(past["verb"]):
        bare = f"User {bare[0].lower()}{bare[1:]}"
    elif _CLAUSE_OF_WISH.match(bare) and _STANDING_WISH.match(bare):
        bare = f"{WISH}{bare[0].lower()}{bare[1:]}"
    told = _OWNED.sub(lambda found: _OWN[found[0].lower()], _SUBJECT.sub(_named, bare))
    if FIRST_PERSON.search(told):
        return ""
    if told.startswith("the user"):
        told = f"User{told.removeprefix('the user')}"
    return in_third_person(told[0].upper() + told[1:])


def _is_past(verb: str) -> bool:
    if verb in _NO_PAST:
        return False
    return verb in _STAYS or (verb.endswith("ed") and verb not in _ENDS_IN_ED and len(verb) > len("shed"))


def _named(found: re.Match[str]) -> str:
    """Return "User works" for "I work"; what was found, where the word behind is no verb."""
    short, adverbs, verb = found["short"], found["adverbs"] or "", found["verb"] or ""
    if short == "d":
        has = "had" if verb == "better" or verb.endswith("ed") or verb == "been" else "would"
        return f"User {has}{adverbs} {verb}".rstrip()
    if short:
        return f"User {_SHORT[short]}{adverbs} {verb}".rstrip()
    agreeing = _agreeing(verb)
    # "Tom and I": two of them.
    is_two = found.string[: found.start()].endswith(" and ")
    return f"User{adverbs} {verb if is_two else agreeing}" if agreeing else found[0]


def _agreeing(verb: str) -> str:
    """Return a verb as it stands behind "User"; empty if it is none."""
    if denied := _NOT.fullmatch(verb):
        base = denied["verb"]
        return f"{_AGREES.get(base, base)}n't"
    if not verb or verb in _NO_VERB:
        return ""
    if verb in _AGREES:
        return _AGREES[verb]
    if verb in _STAYS or (verb.endswith("ed") and verb not in _ENDS_IN_ED):
        return verb
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if verb.endswith("y") and verb[-2:-1] not in tuple("aeiou") else f"{verb}s"


_QUOTED = re.compile(
    r"\"[^\"]{0,200}\"|\u201c[^\u201d]{0,200}\u201d|\u201e[^\u201c]{0,200}\u201c|\u00ab[^\u00bb]{0,200}\u00bb|`[^`]{0,200}`"
)
_TURNED = re.compile(
    r"(?<![\w'\u2019])(?:(?P<be>I am|I['\u2019]m)|(?P<was>I was)|(?P<have>I have|I['\u2019]ve)"
    r"|(?P<will>I will|I['\u2019]ll)|(?P<my>[Mm]y|our)(?=\s(?!god\b|goodness\b|bad\b|oh\b)[a-z])"
    r"|(?P<me>me)|(?P<self>myself))(?![\w'\u2019-])"
)
_THIRD_PERSON: Final = {
    "be": "the user is", "was": "the user was", "have": "the user has", "will": "the user will",
    "my": "the user's", "me": "the user", "self": "themselves",
}  # fmt: skip
_SELF = re.compile(r"(?<![\w'\u2019])I(?![\w-])")
# "My" and "me" are words of other languages too; these are English ones that they stand beside.
_ENGLISH = re.compile(
    r"\b(?:is|are|was|has|have|had|the|and|with|user|user's|lives|likes|wants|to|of|in)\b", re.IGNORECASE
)


def in_third_person(text: str) -> str:
    """Return a fact with "the user's sister" for "my sister"; quoted words stay, and what cannot be turned safely."""
    if not _ENGLISH.search(text):
        return text

    def turned(found: re.Match[str]) -> str:
        before = found.string[: found.start()].split()[-1:]
        # "World War I", "Queen Me": behind a word with a capital letter it is a title's.
        is_title = bool(before) and found[0][0] in "IM" and before[0][0].isupper()
        return found[0] if is_title else _THIRD_PERSON[str(found.lastgroup)]

    quoted = [*_QUOTED.findall(text), ""]
    parts = [_TURNED.sub(turned, part) for part in _QUOTED.split(text)]
    if any(_SELF.search(part) for part in parts):  # "I went …, she came with me": half of it would be worse
        return text
    whole = "".join(part + quote for part, quote in zip(parts, quoted, strict=True))
    return f"User{whole.removeprefix('the user')}" if whole.startswith("the user") and whole != text else whole
