"""Erasing on the page, each behind a question that says what goes: a fact, a conversation, everything."""

from collections.abc import Collection, Iterable, Sequence

from starlette.responses import Response

from graphs.server.api.erase import Erasure, FactErasure, ThreadErasure, erase_everything, erase_fact, erase_thread
from graphs.server.api.guard import invalid
from graphs.server.api.journal import known_of
from graphs.server.page.facts import seen_of
from graphs.server.page.pages import PageRequest, PageRoutes
from graphs.server.page.parts import show_data
from graphs.server.page.rendering import date_in_words
from memory.forget.erase import threads_telling
from memory.journal.entry import JournalEntry

pages = PageRoutes()

_TOLD = 10


def _begun(journal: Sequence[JournalEntry], thread_ids: Collection[str]) -> str:
    """Name conversations by their first words, and their day."""
    first = {entry.thread_id: entry for entry in reversed(journal) if entry.thread_id in thread_ids}
    return _enumerated(f"“{each.messages[0].text:.60}” of {date_in_words(each.day)}" for each in first.values())


def _enumerated(said: Iterable[str]) -> str:
    found = [*dict.fromkeys(said)]
    more = [f"{len(found) - _TOLD} more"] if len(found) > _TOLD else []
    return ", ".join(found[:_TOLD] + more) or "none"


@pages.answers("POST fact-erase")
async def erase_one_fact(asked: PageRequest) -> Response:
    """Erase a fact, after a question."""
    fact_id = asked.one("id")
    known = await known_of(asked)
    chain = known.facts.chain_with(fact_id)
    telling = await asked.run(threads_telling(asked.owner, chain))
    stay = _begun(known.journal, telling & {*await asked.service.threads.all_of(asked.user_id)})
    words = _enumerated(f"“{fact.content:.200}”" for fact in chain.revisions)
    asked.ask(f"Erase for good {words}, and what tells of it? Conversations that keep the words: {stay}.")
    await erase_fact(asked, FactErasure(fact_id=fact_id))
    return asked.lead("bin" if asked.one("view") else "facts", "erased", **seen_of(asked, fact_id))


@pages.answers("POST thread-erase")
async def erase_one_thread(asked: PageRequest) -> Response:
    """Erase a conversation, with what was learned from it, after a question."""
    thread_id = asked.one("id")
    known = await known_of(asked)
    words = _enumerated(f"“{fact.content:.200}”" for fact in known.facts.first_said_in(thread_id).revisions)
    begun = _begun(known.journal, [thread_id])
    asked.ask(f"Erase for good the conversation {begun}, and what was learned in it: {words}?")
    await erase_thread(asked, ThreadErasure.model_validate({"thread_id": thread_id}))
    return asked.lead("journal", "erased")


@pages.answers("POST erase-everything")
async def erase_all(asked: PageRequest) -> Response:
    """Erase everything, if the word was typed."""
    if asked.one("erase").strip().casefold() != "everything":
        raise invalid("erase", "must be everything")
    gone = await erase_everything(asked, Erasure(erase="everything"))
    return await show_data(asked, said=gone.note) if gone.note else asked.lead("data", "everything", n=gone.items)
