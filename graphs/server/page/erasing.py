"""Erasing on the page, each behind a question that says what goes: a fact, a conversation, everything."""

from collections.abc import Collection

from starlette.responses import Response

from graphs.server.api import overview
from graphs.server.api.erase import (
    Erasure,
    FactErasure,
    ThreadErasure,
    erase_everything,
    erase_fact,
    erase_thread,
)
from graphs.server.api.guard import invalid
from graphs.server.page.pages import PageRequest, PageRoutes
from graphs.server.page.parts import show_data
from memory.facts.chain import Chain
from memory.facts.rows import read_fact_set
from memory.forget.erase import threads_telling
from memory.journal.journal import read_journal

pages = PageRoutes()


async def _ask(asked: PageRequest, chain: Chain, thread_ids: Collection[str], **what: str) -> Response:
    """Say what goes, before it goes, and of conversations how people tell them apart: by first words and day."""
    journal = await asked.run(read_journal(asked.owner, asked.control.epoch))
    words = dict.fromkeys(fact.content for fact in reversed(chain.revisions))
    told = [entry for entry in journal if entry.thread_id in thread_ids]
    return await asked.show("erase_one.html", "facts", words=words, told=told, id=asked.one("id"), **what)


@pages.answers("GET fact-erase")
async def ask_fact(asked: PageRequest) -> Response:
    """Say what goes with a fact, and which conversations keep its words."""
    chain = (await asked.run(read_fact_set(asked.owner, whole=True))).chain_with(asked.one("id"))
    telling = await asked.run(threads_telling(asked.owner, chain))
    return await _ask(asked, chain, telling & {*await asked.service.threads.all_of(asked.user_id)}, kind="fact")


@pages.answers("POST fact-erase")
async def erase_one_fact(asked: PageRequest) -> Response:
    """Erase a fact."""
    await erase_fact(asked, FactErasure(fact_id=asked.one("id")))
    return asked.lead("facts", "erased")


@pages.answers("GET thread-erase")
async def ask_thread(asked: PageRequest) -> Response:
    """Say what goes with a conversation."""
    thread_id = asked.one("id")
    said = (await asked.run(read_fact_set(asked.owner, whole=True))).first_said_in(thread_id)
    return await _ask(asked, said, [thread_id], kind="thread")


@pages.answers("POST thread-erase")
async def erase_one_thread(asked: PageRequest) -> Response:
    """Erase a conversation, with what was learned from it."""
    await erase_thread(asked, ThreadErasure.model_validate({"thread_id": asked.one("id")}))
    return asked.lead("journal", "erased")


@pages.answers("GET erase")
async def ask_everything(asked: PageRequest) -> Response:
    """Say what an erase of everything takes along."""
    server = asked.service.threads
    threads, crons = await server.all_of(asked.user_id), await server.crons_of(asked.user_id)
    seen = await overview.overview(asked)
    return await asked.show("erase.html", "data", seen=seen, threads=len(threads), crons=len(crons))


@pages.answers("POST erase-everything")
async def erase_all(asked: PageRequest) -> Response:
    """Erase everything, if the word was typed."""
    if asked.one("erase").strip().casefold() != "everything":
        raise invalid("erase", "must be everything")
    gone = await erase_everything(asked, Erasure(erase="everything"))
    said = f"Erased: {gone.items} items of memory and {gone.threads} conversations. {gone.note}"
    return await show_data(asked, said=said.strip())
