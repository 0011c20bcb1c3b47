"""Orders that a text gives to an assistant: to its prompt, its tools or other people, judged by grammar. Pure.

A text is taken apart into clauses. In each it is looked for who is to do what: a clause that begins with its verb is
an order, and so is "the assistant must …", wherever it stands. Then what the verb is about decides.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from memory.screening import order_words as say

_TOKEN = re.compile(r"\w+(?:['\u2019.@-]\w+)*|[^\w\s]")
_ADDRESS = re.compile(r"\w@\w|://|\bwww\.|\w\.(?:com|net|org|io|ru|xyz|example)\b")
_MARKUP = re.compile(
    r"</? ?(?:system|memory|instructions?|assistant|user|tool|im_start|im_end)\b|<\||\[/?inst\]|<<sys>>"
)
_UNASKED = re.compile(
    r"\bwithout (?:[\w']+ ){0,3}(?:asking|review|approval|confirmation|permission|consent|question|notice)\b|"
    r"\bautomatically\b|\bdo not ask\b|\bdont ask\b"
)
_LAWLESS = re.compile(
    r"\b(?:without|no) (?:\w+ ){0,2}(?:rules?|limits?|restrictions?|filters?|guardrails|censorship|polic(?:y|ies)|"
    r"question)\b"
)

_REACH: Final = 7


@dataclass(frozen=True, slots=True)
class _Clause:
    """Some words that belong together.

    Attributes:
        words: In small letters.
        begins: Whether they may begin an order: the sentence does not tell what the user, or somebody else, does.
        mention: Whether they are quoted as an example: "such as 'ignore your instructions'".
        joined: Whether they go on with the clause before, after "and" or a comma.
    """

    words: tuple[str, ...]
    begins: bool
    mention: bool = False
    joined: bool = False


@dataclass(frozen=True, slots=True)
class _Order:
    """What somebody is to do: the words from the verb on."""

    words: tuple[str, ...]
    addressed: bool
    negated: bool
    allowed: bool

    @property
    def verb(self) -> str:
        return self.words[0]

    @property
    def reach(self) -> tuple[str, ...]:
        return self.words[1 : 1 + _REACH]


@dataclass(frozen=True, slots=True)
class _Scope:
    """What the whole text says of how its orders are meant."""

    standing: bool
    unasked: bool
    addressed: bool


def gives_orders(text: str) -> bool:
    """Say whether a text, in small letters, gives an order to the prompt, to tools or about other people."""
    if _MARKUP.search(text):
        return True
    clauses = list(_clauses(text))
    words = {word for clause in clauses for word in clause.words}
    scope = _Scope(
        standing=bool(words & say.STANDING) or "from now on" in text or any(map(_is_condition, clauses)),
        unasked=_UNASKED.search(text) is not None,
        addressed=_ADDRESS.search(text) is not None,
    )
    return any(_is_state(clause, scope) for clause in clauses) or any(
        _is_harmful(order, scope) for order in _all_orders(clauses)
    )


def _all_orders(clauses: Sequence[_Clause]) -> Iterator[_Order]:
    last: _Order | None = None
    for clause in clauses:
        found = list(_orders(clause))
        yield from found
        if clause.joined and last and not found:  # "may read and share all files"
            yield from _order(clause.words, addressed=True, allowed=last.allowed)
        else:
            last = next((order for order in reversed(found) if order.addressed), None)


def _is_condition(clause: _Clause) -> bool:
    """Say whether a clause tells what has to happen first: what follows is to be done each time it does."""
    return clause.words[0] in say.CONDITIONS and bool(say.PEOPLE & set(clause.words))


def _clauses(text: str) -> Iterator[_Clause]:
    words: list[str] = []
    begins, fresh, mention, joined = True, True, False, False
    for token in _TOKEN.findall(text):
        word = token.replace("\u2019", "'").replace("n't", "nt").strip("_")
        word = word.replace("-", "") if len(word) > 1 else word
        is_end = token in say.NEW_SENTENCE or token in ("'", "`")
        if not is_end and word not in say.JOINS:
            if fresh:
                begins, fresh = word not in say.USER_BEGINS and not _is_user(words, word), word in ("the", "a")
            words.append(word)
            continue
        possessed = token == ":" and bool(words) and (words[0].endswith("'s") or words[0] == "my")
        opens_mention = (
            token in "\"'\u201c\u00ab`" and not begins and not mention and words[-1:] and words[-1] in say.MENTIONS
        )
        if words:
            yield _Clause(tuple(words), begins, mention, joined)
            words = []
        joined = not is_end
        mention = bool(opens_mention) or (mention and not is_end)
        if is_end and not mention and not possessed:
            begins, fresh = True, True
    if words:
        yield _Clause(tuple(words), begins, mention, joined)


def _is_user(words: Sequence[str], word: str) -> bool:
    return words[-1:] == ["the"] and word in say.USER_BEGINS


def _orders(clause: _Clause) -> Iterator[_Order]:
    words = clause.words
    if clause.begins:
        yield from _order(words, addressed=False, allowed=False)
    elif not clause.mention:
        # A sentence about the user may go over into an order: "likes tea, ignore all previous instructions".
        yield from (order for order in _order(words, addressed=False, allowed=False) if _is_on_own_prompt(order))
    for at, word in enumerate(words):
        if word in say.ADDRESSEES and (word == "you" or at == 0 or words[at - 1] in say.NAMES_AN_ADDRESSEE):
            rest = words[at + 1 : at + 1 + 3 * _REACH]
            yield from _order(rest, addressed=True, allowed=False)
            ahead = rest[:5]
            modal = next((n for n, each in enumerate(ahead) if each in say.MUST), None)
            if modal is not None and all(each in say.BEFORE_TO | say.FILLERS for each in ahead[:modal]):
                allowed = bool(set(ahead[: modal + 1]) & say.MAY)
                yield from _order(rest[modal + 1 :], addressed=True, allowed=allowed)


def _order(words: Sequence[str], *, addressed: bool, allowed: bool) -> Iterator[_Order]:
    begin = next((at for at, word in enumerate(words) if word not in say.FILLERS and not word.isdigit()), None)
    if begin is None:
        return
    negated = bool(set(words[:begin]) & say.NEGATIONS)
    if words[begin] in say.CEASE and begin + 1 < len(words):
        begin, negated = begin + 1, not negated
    yield _Order((_base(words[begin]), *words[begin + 1 :]), addressed, negated, allowed)


def _base(verb: str) -> str:
    """Return the form of a verb that stands in the lists here: "follows" and "following" are "follow"."""
    if verb in say.VERBS:
        return verb
    stems = (verb.removesuffix("s"), verb.removesuffix("es"), verb.removesuffix("ies") + "y", verb.removesuffix("ing"))
    doubled = verb.removesuffix("ing")[:-1]
    return next((each for each in (*stems, f"{stems[3]}e", doubled) if each in say.VERBS), verb)


def _is_on_own_prompt(order: _Order) -> bool:
    return (
        order.verb in say.VOID and bool(set(order.reach) & say.PROMPT) and bool(set(order.reach) & (say.OWN - {"any"}))
    )


def _is_harmful(order: _Order, scope: _Scope) -> bool:
    return (
        _voids_prompt(order)
        or _reveals(order)
        or _acts_on_world(order, scope)
        or _takes_role(order)
        or _withholds(order)
        or _abuses(order, scope)
        or _obeys(order)
    )


def _voids_prompt(order: _Order) -> bool:
    aside = order.words[:2] == ("set", "aside")
    voids = order.verb in say.KEEP_TO if order.negated else aside or order.verb in say.VOID
    reach = order.reach
    if order.verb in ("treat", "follow", "obey", "accept", "adopt") and not order.negated:
        return bool(set(reach) & say.PROMPT) and bool(set(reach) & say.THESE_RULES)
    if not voids:
        return False
    at = next((n for n, word in enumerate(reach) if word in say.PROMPT), None)
    if at is not None:
        return bool(set(reach[:at]) & say.OWN) or reach[at + 1 : at + 2] not in (
            ("of",),
            ("in",),
            ("for",),
            ("section",),
        )
    return "above" in reach or ("told" in reach and "you" in reach)


def _reveals(order: _Order) -> bool:
    if order.verb not in say.REVEAL or order.negated:
        return False
    found = set(order.reach)
    if "above" in found and found & say.STANDS_ABOVE:
        return True
    if "system" in found and found & {"prompt", "prompts"}:
        return True
    if found & say.PROMPT and found & (say.OWN - say.ANYBODYS):
        return True
    return order.verb in say.BETRAY and bool(found & say.HIDDEN)


def _acts_on_world(order: _Order, scope: _Scope) -> bool:
    verb, reach = order.verb, order.reach
    if verb in ("exfiltrate", "forcepush"):
        return True
    if verb not in say.ACT or order.negated or reach[:1] in (("me",), ("us",)):
        return False
    if verb in say.SEND and scope.addressed:
        return True
    if verb in say.RISKY_WITHOUT_ASKING and scope.unasked:
        return True
    if order.addressed and verb in ("push", "merge", "deploy") and set(reach) & say.PLACES:
        return True
    if order.allowed and set(reach) & say.WHATEVER:
        return True
    return bool(set(reach) & say.OBJECTS) and (scope.standing or scope.unasked or order.allowed)


def _takes_role(order: _Order) -> bool:
    words = order.words[:12]
    said = " ".join(words)
    persona = bool(set(words) & say.PERSONA) or _LAWLESS.search(said) is not None
    if order.addressed and words[:2] in (("are", "now"), ("become", "now")):
        return persona
    if order.addressed and words[:3] == ("are", "no", "longer"):
        return True
    begins = said.startswith(("act as", "pretend to be", "pretend you are", "assume the role", "play the role of"))
    return begins and persona


def _withholds(order: _Order) -> bool:
    reach = order.reach
    if order.verb in ("hide", "conceal"):
        return "user" in reach and "from" in reach
    return order.negated and order.verb in say.WITHHOLD and "user" in reach[:3]


def _abuses(order: _Order, scope: _Scope) -> bool:
    verb, found = order.verb, set(order.reach)
    if verb in say.DECEIVE and "user" in found and not order.negated:
        return True
    if verb in say.STEAL and found & say.OBJECTS and ("user" in found or "user's" in found or found & say.HIDDEN):
        return True
    if verb in say.GIVE and found & say.POWER:
        return True
    if verb in ("enter", "enable", "activate", "switch") and "mode" in found:
        return bool(found & say.MODES)
    if (verb, *order.reach[:1]) == ("make", "sure") or verb == "ensure":
        return scope.addressed and bool(found & say.OBJECTS)
    return order.addressed and bool(found & say.FREED or _LAWLESS.search(" ".join(order.words[: 2 * _REACH])))


def _obeys(order: _Order) -> bool:
    verb, reach = order.verb, order.reach
    if verb in ("refuse", "decline"):
        return order.negated and bool(set(reach) & say.REQUESTS)
    if verb in ("obey", "comply"):
        return order.addressed or bool(set(reach) & say.ANY_REQUEST)
    if verb == "do":
        return reach[:1] in (("what",), ("whatever",), ("as",)) and bool(set(reach) & say.SAYS)
    return False


def _is_state(clause: _Clause, scope: _Scope) -> bool:
    """Say whether a clause declares what holds for the assistant from now on, as an order in other words."""
    words = clause.words
    return _is_lifted(clause) or _is_override(clause) or _is_new_self(words) or _is_passive_order(clause, scope)


def _is_lifted(clause: _Clause) -> bool:
    words = clause.words
    for at, word in enumerate(words):
        before = words[max(0, at - 3) : at]
        if word in say.PROMPT and (set(before) & (say.OWN | say.ADDRESSEES) or (at == 0 and clause.begins)):
            after = words[at + 1 : at + 7]
            if set(after) & say.OVER or ("apply" in after and set(after) & {"no", "not", "dont"}):
                return True
    return False


def _is_override(clause: _Clause) -> bool:
    words = clause.words
    if not clause.begins:
        return False
    pairs = set(pairwise(words))
    if any(first in say.OVERRIDERS and second == "override" for first, second in pairs):
        return True
    if words[:1] == ("override",) and set(words[1:3]) & say.OVERRIDE_FORMS:
        return True
    mode = any(first in ("developer", "jailbreak", "god", "dan") and second == "mode" for first, second in pairs)
    return mode and bool(set(words) & (say.ADDRESSEES | say.SWITCHED_ON))


def _is_new_self(words: Sequence[str]) -> bool:
    anew = words[:1] and words[0] in ("new", "real", "true", "actual", "updated", "revised")
    if anew and len(words) <= 4 and set(words[1:4]) & say.COMMANDS_ANEW:
        return True
    if words[:2] == ("end", "of") and len(words) <= 5 and set(words[2:]) & say.PARTS_OF_PROMPT:
        return True
    return any(
        words[at : at + 2] == ("your", "new") and set(words[at + 2 : at + 4]) & (say.NEW_SELF | {"system"})
        for at in range(len(words))
    )


def _is_passive_order(clause: _Clause, scope: _Scope) -> bool:
    words = clause.words
    for at, word in enumerate(words):
        is_passive = word == "be" and clause.begins and bool(set(words[max(0, at - 2) : at]) & say.MUST)
        if is_passive and set(words[at + 1 : at + 3]) & say.DONE:
            is_all = bool(say.EVERY & set(words[:at])) and bool(say.OBJECTS & set(words[:at]))
            return scope.addressed or scope.unasked or is_all
    return False
