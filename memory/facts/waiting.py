"""The rules of facts that wait for a person: proposed, released, let go. Pure.

Nothing uses such a fact, and no model is shown one: so rules, and no model, tell which proposal is the newer form of
another.
"""

import re
from dataclasses import replace
from typing import Final

from memory.config import MemoryConfig
from memory.facts.fact import Fact, FactNotFound, MemoryFull, Status, checked_content, moment, review_digest
from memory.facts.rules import FactSet, find, is_full, limit, place, remove, retire, same_content
from memory.facts.words import words
from memory.screening.door import admitted
from memory.text import normalize, word_set

# A number, but no year: "in 2023" and "in 2024" tell of two things.
_NUMBER = re.compile(r"(?!(?:19|20)\d\d$)\d+")
_TURNING: Final = word_set("no never long longer doesn didn isn hasn don without more still anymore")
_DAY_SECONDS: Final = 86_400.0
_NAME = re.compile(r"(?<=[^.!?:] )[A-Z][^\W\d_]+")


def release(
    fact_set: FactSet,
    wanted: str,
    config: MemoryConfig,
    *,
    now: str,
    edit: str = "",
    status: Status = "quarantined",
    content: str | None = None,
) -> tuple[FactSet, Fact]:
    """Make a fact of this status an active one, after a person looked at it, in the weakest's place if memory is full.

    Args:
        fact_set: What is there.
        wanted: Which fact.
        config: The limit, and which categories are protected.
        now: ISO 8601.
        edit: The number of this change by hand (`memory.control`).
        status: What it has to be.
        content: What it is to say instead, in the person's words.

    Raises:
        FactNotFound: If no fact of this status has the id.
        MemoryFull: If all that is there is protected: it goes on waiting.
        ValueError: If the content says nothing, is too long, or holds a secret.
    """
    key, fact = find(fact_set, wanted)
    if fact.status != status:
        raise FactNotFound(wanted)
    said = fact.content if content is None else checked_content(content)
    admitted(said, "content")
    if said != fact.content:
        fact = replace(fact, valid_from="", valid_to="")  # what the old words said of its time
    known = same_content(fact_set, said)
    if known is not None:
        freed, free = remove(fact_set, key), known
    else:
        free = replace(fact, content=said, status="active", updated_at=now, edited_at=now, edit=edit)
        # Stored texts are screened again whenever a prompt shows them: this tells that a person has read the text.
        free = replace(free, revision=fact.revision + 1, reviewed=review_digest(said))
        freed = replace(fact_set, rows={**fact_set.rows, key: free})
    wrong = next((each for each in freed.active().values() if each.id == fact.replaces != free.id), None)
    if wrong is not None:
        place_of, _ = find(freed, free.id)
        free = replace(free, pinned=free.pinned or (known is None and wrong.pinned), replaces=wrong.id)
        freed = replace(freed, rows={**freed.rows, place_of: free})
        freed = retire(freed, wrong.id, "superseded", now=now, replaced_by=free.id)
    elif known is None and is_full(fact_set, config):
        raise MemoryFull(config.max_facts)
    return limit(freed, config, freed.rows.keys() - {key}), free


def propose(fact_set: FactSet, draft: Fact) -> tuple[FactSet, Fact, tuple[Fact, ...]]:
    """Let a fact wait for a person's yes; it takes the place of what waits and is an older form of it.

    Args:
        fact_set: What is there.
        draft: The new fact. One that waits already waits on, from now.

    Returns:
        The facts, the one that waits, and those whose place it took.
    """
    known = same_content(fact_set, draft.content, "waiting")
    if known is not None:
        key, _ = find(fact_set, known.id)
        again = replace(known, updated_at=max(known.updated_at, draft.updated_at))
        return replace(fact_set, rows={**fact_set.rows, key: again}), again, ()
    older = {
        key: fact
        for key, fact in fact_set.rows.items()
        if fact.status == "waiting" and is_newer_form(draft.content, fact.content)
    }
    target = draft.replaces or next((fact.replaces for fact in older.values() if fact.replaces), "")
    grown, fact = place(remove(fact_set, *older), replace(draft, status="waiting", replaces=target))
    return grown, fact, tuple(older.values())


def is_newer_form(content: str, older: str) -> bool:
    """Say whether a proposal says again, more exactly or otherwise, what another said of the same people.

    "Earns 70,000" is a newer form of "Earns 60,000", and "Has no diabetes" of "Has type 2 diabetes". In doubt it is
    not: then both wait, and a person sees both.
    """
    mine, its = _telling(content), _telling(older)
    is_same = bool(mine) and bool(its) and (mine <= its or its <= mine)
    # "User's mother has cancer" tells of somebody else than "User has cancer".
    return is_same and content.split()[:2] == older.split()[:2] and _names_in(content) == _names_in(older)


def _telling(content: str) -> frozenset[str]:
    return frozenset(word for word in words(content) - _TURNING if not _NUMBER.fullmatch(word))


def _names_in(content: str) -> frozenset[str]:
    """Return the words with a capital letter within a sentence."""
    return frozenset(normalize(name) for name in _NAME.findall(content) if name != "User")


def lapsed(fact_set: FactSet, now: float, days: int) -> dict[str, Fact]:
    """Return the rows that have waited for a yes as long as they may. What is quarantined waits until a person answers.

    Args:
        fact_set: The facts.
        now: Seconds since 1970.
        days: How long one may wait; 0: without an end.
    """

    def has_lapsed(fact: Fact) -> bool:
        # Not since it was said: an import brings what was said long ago.
        since = moment(fact.updated_at)
        return fact.status == "waiting" and since is not None and now - since.timestamp() >= days * _DAY_SECONDS

    return {key: fact for key, fact in fact_set.rows.items() if has_lapsed(fact)} if days else {}
