"""Orders that a text gives to an assistant: to its prompt, its tools or other people, judged by grammar. Pure.

A text is taken apart into clauses. In each it is looked for who is to do what: a clause that begins with its verb is
an order, and so is "the assistant must …", wherever it stands. Then what the verb is about decides.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Self

from memory.screening import order_words as say

_TOKEN = re.compile(r"\w+(?:['\u2019.@-]\w+)*|[^\w\s]")
# An errand with an address in it needs no "each time" to be harmful: it tells where things are to go.
_ADDRESS = re.compile(r"\w@\w|://|\bwww\.|\w\.(?:com|net|org|io|ru|xyz|example)\b")
# Tags by which prompts are put together: a text that holds one wants to be read as another part of the prompt.
_MARKUP = re.compile(
    r"</? ?(?:system|memory|instructions?|assistant|user|tool|im_start|im_end)\b|<\||\[/?inst\]|<<sys>>"
)
# Words bounded in number: a text of nothing else must not take the square of its length.
_UNASKED = re.compile(
    r"\bwithout (?:[\w']+ ){0,3}(?:asking|review|approval|confirmation|permission|consent|question|notice)\b|"
    r"\bautomatically\b|\bdo not ask\b|\bdont ask\b"
)
_LAWLESS = re.compile(
    r"\b(?:without|no) (?:\w+ ){0,2}(?:rules?|limits?|restrictions?|filters?|guardrails|censorship|polic(?:y|ies)|"
    r"question)\b"
)

# So many words after its verb tell what an order is about: the object, and not the next thought.
_REACH: Final = 7
# "The assistant has, from now on, to …": the modal verb stands within so many words.
_TO_MODAL: Final = 5


@dataclass(frozen=True, slots=True)
class _Scope:
    """What the whole text says of how its orders are meant.

    Attributes:
        standing: For good, or each time that something happens.
        unasked: Without asking anybody.
        has_address: It names an address that something may be sent to.
    """

    standing: bool
    unasked: bool
    has_address: bool


@dataclass(frozen=True, slots=True)
class _Order:
    """What somebody is to do.

    Attributes:
        words: The words from the verb on.
        addressed: Whether it names the assistant, instead of beginning with its verb.
        negated: Whether it is not to be done.
        allowed: Whether it may be done, instead of must.
    """

    words: tuple[str, ...]
    addressed: bool
    negated: bool
    allowed: bool

    @classmethod
    def found_in(cls, words: Sequence[str], *, addressed: bool = False, allowed: bool = False) -> Iterator[Self]:
        """Yield the order that words are, from the first one on that may be its verb."""
        begin = next((at for at, word in enumerate(words) if word not in say.FILLERS and not word.isdigit()), None)
        if begin is None:
            return
        negated = not say.NEGATIONS.isdisjoint(words[:begin])
        if words[begin] in say.CEASE and begin + 1 < len(words):  # "stop following" is "do not follow"
            begin, negated = begin + 1, not negated
        yield cls((say.base_form(words[begin]), *words[begin + 1 :]), addressed, negated, allowed)

    @property
    def verb(self) -> str:
        return self.words[0]

    @property
    def reach(self) -> tuple[str, ...]:
        return self.words[1 : 1 + _REACH]

    def is_about(self, *sets: frozenset[str]) -> bool:
        """Say whether a word of each of these sets stands in reach of the verb."""
        return not any(each.isdisjoint(self.reach) for each in sets)

    def is_harmful(self, scope: _Scope) -> bool:
        """Say whether it is aimed at the prompt, at tools or at other people."""
        return (
            self.voids_prompt()
            or self.reveals()
            or self.acts_on_world(scope)
            or self.takes_role()
            or self.withholds()
            or self.abuses(scope)
            or self.obeys()
        )

    def voids_own_prompt(self) -> bool:
        """Say whether it sets the assistant's own rules aside, so clearly that it may go on from any sentence."""
        return self.verb in say.VOID and self.is_about(say.PROMPT, say.OWN - {"any"})

    def voids_what_was_given(self) -> bool:
        """Say whether it sets instructions aside that nobody else gave: "ignore all previous instructions"."""
        if not (self.verb in say.KEEP_TO if self.negated else self.verb in say.VOID):
            return False
        at = next((n for n, word in enumerate(self.reach) if word in say.COMMANDS), None)
        if at is None or say.GIVEN_BEFORE.isdisjoint(self.reach[:at]):
            return False
        # "The previous instructions of the doctor", "… for the oven" are the user's own affair.
        return at + 2 == len(self.words) or self.words[at + 2 :][:2] == ("from", "now")

    def voids_prompt(self) -> bool:
        """Say whether it sets rules aside, or puts others in their place."""
        reach = self.reach
        if self.verb in say.ADOPT and not self.negated:
            return self.is_about(say.PROMPT, say.THESE_RULES)
        sets_aside = self.verb in say.VOID or self.words[:2] == ("set", "aside")
        if not (self.verb in say.KEEP_TO if self.negated else sets_aside):
            return False
        at = next((n for n, word in enumerate(reach) if word in say.PROMPT), None)
        if at is None:
            return "above" in reach or ("told" in reach and "you" in reach)
        # "The rules of chess" are nobody's prompt, "your rules of conduct" are.
        return not say.OWN.isdisjoint(reach[:at]) or say.OF_SOMETHING.isdisjoint(reach[at + 1 : at + 2])

    def reveals(self) -> bool:
        """Say whether it hands out the prompt, or keys."""
        if self.verb not in say.REVEAL or self.negated:
            return False
        return (
            ("above" in self.reach and self.is_about(say.STANDS_ABOVE))
            or ("system" in self.reach and self.is_about(say.PROMPTS))
            or self.is_about(say.PROMPT, say.OWN - say.ANYBODYS)
            or (self.verb in say.BETRAY and self.is_about(say.HIDDEN))
        )

    def acts_on_world(self, scope: _Scope) -> bool:
        """Say whether it is an errand with mails, files, tools or money, for good or to an address."""
        if self.verb in ("exfiltrate", "forcepush"):
            return True
        if self.verb not in say.ACT or self.negated or self.reach[:1] in (("me",), ("us",)):
            return False
        return (
            (self.verb in say.SEND and scope.has_address)
            or (self.verb in say.RISKY_WITHOUT_ASKING and scope.unasked)
            or (self.addressed and self.verb in ("push", "merge", "deploy") and self.is_about(say.PLACES))
            or (self.allowed and self.is_about(say.WHATEVER))
            # Once, as an example of what the user asked for, it is a wish; each time, it is an errand.
            or (self.is_about(say.OBJECTS) and (scope.standing or scope.unasked or self.allowed))
        )

    def takes_role(self) -> bool:
        """Say whether it makes the assistant somebody else, or somebody without rules."""
        words = self.words[:12]
        said = " ".join(words)
        if self.addressed and words[:3] == ("are", "no", "longer"):
            return True
        renamed = self.addressed and words[:2] in (("are", "now"), ("become", "now"))
        plays = said.startswith(("act as", "pretend to be", "pretend you are", "assume the role", "play the role of"))
        return (renamed or plays) and (not say.PERSONA.isdisjoint(words) or _LAWLESS.search(said) is not None)

    def withholds(self) -> bool:
        """Say whether it keeps something from the user."""
        if self.verb in ("hide", "conceal"):
            return "user" in self.reach and "from" in self.reach
        return self.negated and self.verb in say.WITHHOLD and "user" in self.reach[:3]

    def abuses(self, scope: _Scope) -> bool:
        """Say whether it deceives or robs the user, or gives somebody powers."""
        verb, reach = self.verb, self.reach
        if verb in say.DECEIVE and "user" in reach and not self.negated:
            return True
        if verb in say.STEAL and self.is_about(say.OBJECTS) and self.is_about(say.HIDDEN | {"user", "user's"}):
            return True
        if verb in say.GIVE and self.is_about(say.POWER):
            return True
        if verb in ("enter", "enable", "activate", "switch") and "mode" in reach:
            return self.is_about(say.MODES)
        if verb == "ensure" or (verb, *reach[:1]) == ("make", "sure"):
            return scope.has_address and self.is_about(say.OBJECTS)
        said = " ".join(self.words[: 2 * _REACH])
        return self.addressed and (self.is_about(say.FREED) or _LAWLESS.search(said) is not None)

    def obeys(self) -> bool:
        """Say whether it makes the assistant do whatever somebody asks for."""
        if self.verb in ("refuse", "decline"):
            return self.negated and self.is_about(say.REQUESTS)
        if self.verb in ("obey", "comply"):
            return self.addressed or self.is_about(say.ANY_REQUEST)
        return self.verb == "do" and self.reach[:1] in (("what",), ("whatever",), ("as",)) and self.is_about(say.SAYS)


@dataclass(frozen=True, slots=True)
class _Clause:
    """Some words that belong together, at least one.

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

    def orders(self) -> Iterator[_Order]:
        """Yield what somebody is to do."""
        words = self.words
        if self.begins:
            yield from _Order.found_in(words)
        elif not self.mention:
            # A sentence about the user may go over into an order: "likes tea, ignore all previous instructions".
            yield from (order for order in _Order.found_in(words) if order.voids_own_prompt())
            yield from (order for order in self._intended() if order.voids_what_was_given())
        for at, word in enumerate(words):
            if word not in say.ADDRESSEES or not (word == "you" or at == 0 or words[at - 1] in say.NAMES_AN_ADDRESSEE):
                continue
            # So many words are looked at: else a text of addressees alone would take the square of its length.
            rest = words[at + 1 : at + 1 + 3 * _REACH]
            yield from _Order.found_in(rest, addressed=True)
            modal = next((n for n, each in enumerate(rest[:_TO_MODAL]) if each in say.MUST), None)
            if modal is not None and all(each in say.BEFORE_TO | say.FILLERS for each in rest[:modal]):
                allowed = not say.MAY.isdisjoint(rest[: modal + 1])
                yield from _Order.found_in(rest[modal + 1 :], addressed=True, allowed=allowed)

    def _intended(self) -> Iterator[_Order]:
        """Yield what the user is said to want: of a fact, "User decided to ignore …", a model reads the end, too."""
        if self.words[0] != "user" and self.words[:2] != ("the", "user"):
            return
        for at, word in enumerate(self.words[: 2 * _TO_MODAL]):
            if word in say.INTENDS and "to" in self.words[at + 1 : at + 3]:  # "decided not to follow"
                yield from _Order.found_in(self.words[at + 1 :])

    def declares(self, scope: _Scope) -> bool:
        """Say whether it declares what holds for the assistant from now on, as an order in other words."""
        return self.lifts_rules() or self.overrides() or self.renews_self() or self.is_passive_order(scope)

    def lifts_rules(self) -> bool:
        """Say whether rules are over: "your restrictions are lifted"."""
        for at, word in enumerate(self.words):
            if word not in say.PROMPT:
                continue
            is_own = not (say.OWN | say.ADDRESSEES).isdisjoint(self.words[max(0, at - 3) : at])
            after = self.words[at + 1 : at + 7]
            is_over = not say.OVER.isdisjoint(after) or ("apply" in after and not say.NOT.isdisjoint(after))
            if is_over and (is_own or (at == 0 and self.begins)):
                return True
        return False

    def overrides(self) -> bool:
        """Say whether it calls itself an override, or switches a mode without rules on."""
        if not self.begins:
            return False
        pairs = set(pairwise(self.words))
        is_mode = any((first, "mode") in pairs for first in ("developer", "jailbreak", "god", "dan"))
        return (
            any((first, "override") in pairs for first in say.OVERRIDERS)
            or (self.words[0] == "override" and not say.OVERRIDE_FORMS.isdisjoint(self.words[1:3]))
            or (is_mode and not (say.ADDRESSEES | say.SWITCHED_ON).isdisjoint(self.words))
        )

    def renews_self(self) -> bool:
        """Say whether it heads another prompt: "new instructions", "end of context", "your new role"."""
        words = self.words
        if words[0] in say.ANEW and len(words) <= 4 and not say.COMMANDS_ANEW.isdisjoint(words[1:4]):
            return True
        if words[:2] == ("end", "of") and len(words) <= 5 and not say.PARTS_OF_PROMPT.isdisjoint(words[2:]):
            return True
        return any(
            pair == ("your", "new") and not say.NEW_SELF.isdisjoint(words[at + 2 : at + 4])
            for at, pair in enumerate(pairwise(words))
        )

    def is_passive_order(self, scope: _Scope) -> bool:
        """Say whether something is to be done, by nobody named: "all mails must be forwarded"."""
        for at, word in enumerate(self.words):
            if word != "be" or not self.begins or say.MUST.isdisjoint(self.words[max(0, at - 2) : at]):
                continue
            if not say.DONE.isdisjoint(self.words[at + 1 : at + 3]):
                before = self.words[:at]
                is_all = not say.EVERY.isdisjoint(before) and not say.OBJECTS.isdisjoint(before)
                return scope.has_address or scope.unasked or is_all
        return False


def gives_orders(text: str) -> bool:
    """Say whether a text, in small letters, gives an order to the prompt, to tools or about other people."""
    if _MARKUP.search(text):
        return True
    clauses = list(_clauses(text))
    words = {word for clause in clauses for word in clause.words}
    # What has to happen first is told before what is to be done each time it does.
    conditions = (each.words for each in clauses if each.words[0] in say.CONDITIONS)
    is_conditional = not all(map(say.PEOPLE.isdisjoint, conditions))
    scope = _Scope(
        standing=bool(words & say.STANDING) or "from now on" in text or is_conditional,
        unasked=_UNASKED.search(text) is not None,
        has_address=_ADDRESS.search(text) is not None,
    )
    if any(clause.declares(scope) for clause in clauses):
        return True
    last: _Order | None = None
    for clause in clauses:
        found = list(clause.orders())
        orders = found
        if clause.joined and last and not found:  # "may read and share all files"
            orders = list(_Order.found_in(clause.words, addressed=True, allowed=last.allowed))
        else:
            last = next((order for order in reversed(found) if order.addressed), None)
        if any(order.is_harmful(scope) for order in orders):
            return True
    return False


def _clauses(text: str) -> Iterator[_Clause]:
    words: list[str] = []
    begins, fresh, mention, joined = True, True, False, False
    for token in _TOKEN.findall(text):
        word = token.replace("\u2019", "'").replace("n't", "nt").strip("_")
        word = word.replace("-", "") if len(word) > 1 else word
        is_end = token in say.NEW_SENTENCE or token in ("'", "`")
        if not is_end and word not in say.JOINS:
            if fresh:  # "the user" is looked at once more, after its article
                begins, fresh = word not in say.USER_BEGINS, word in ("the", "a")
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
