"""Conversations that were held elsewhere, taken in piece by piece under a name by which they can be taken back."""

import logging
from dataclasses import asdict
from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, Field
from starlette.requests import Request

from graphs.identity import known_as
from graphs.server.api.guard import RefusedRequest, invalid
from graphs.server.api.routing import LARGEST_BODY, AgentCall, Call, MemoryRouter, StrictModel, refusals
from memory.backfill.conversation import Conversation, Origin
from memory.backfill.sources import ImportSource, SourceCounts, open_source, read_source, read_sources
from memory.backfill.taking_in import LearningPaused, SourceGone, TakenIn, take_talk_in
from memory.control import read_epoch
from memory.message import Role
from memory.namespaces import unit_of
from memory.updates.outbox import read_entries

logger = logging.getLogger(__name__)

router = MemoryRouter()

LARGEST_PIECE = 8 * 1024 * 1024
MOST_CONVERSATIONS = 100
MOST_MESSAGES = 2_000

Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="What the import is called.")]


class Source(BaseModel):
    """Conversations that were imported together."""

    name: str
    origin: Origin = Field(description="Where the first of them were held.")
    begun: str = Field(description="When the import began.")
    conversations: int
    messages: int = Field(description="Messages that were written down.")
    learned: int = Field(description="Those of them that were written down to be learned, too.")
    waiting: int = Field(description="Messages that wait to be learned.")
    dead: int = Field(description="Updates that failed for good; `POST /memory/updates/{key}/retry` tries again.")


class ImportLimits(BaseModel):
    """What this deployment keeps, and in what portions it reads."""

    portion_messages: int = Field(description="So many messages one extraction reads.")
    journal_days: int = Field(description="So many days after the import the journal keeps what was said.")
    journal_bytes: int = Field(description="So many bytes of text the journal keeps; the oldest go first.")


class ImportSources(BaseModel):
    """What was imported, oldest first."""

    sources: list[Source]
    limits: ImportLimits


class SourceChoice(StrictModel):
    """What is about to be imported."""

    origin: Origin


class OpenSource(BaseModel):
    """A source that takes conversations in."""

    name: str
    origin: Origin
    token: str = Field(description="To be sent with each piece: another one says that it was erased meanwhile.")
    limits: ImportLimits


class ImportedMessage(StrictModel):
    """One message."""

    id: str = Field(max_length=400, description="Of a text that the user pasted it begins with `pasted-`.")
    role: Role = Field(description="`other` is another person in the conversation.")
    name: str = Field("", max_length=400, description="What the client called the person.")
    text: str
    time: str | float = Field(description="ISO 8601, or seconds since 1970.")


class ImportedConversation(StrictModel):
    """One conversation, all of it: what of it is known already is left out."""

    origin: Origin
    id: str = Field(min_length=1, max_length=400)
    messages: list[ImportedMessage]
    goes_on: bool = Field(
        False, description="The first message ended the piece before: it only leads into what follows."
    )


class Piece(StrictModel):
    """Some conversations of a source."""

    token: str = Field(max_length=64)
    conversations: list[ImportedConversation] = Field(max_length=MOST_CONVERSATIONS)
    learn: bool = Field(True, description="false: they only come into the journal.")


class PieceResult(BaseModel):
    """What taking a piece in did, in messages."""

    journal: int = Field(description="Messages that are new in the journal.")
    queued: int = Field(description="Messages that are to be learned now.")
    updates: int = Field(description="In so many updates.")
    known: int = Field(description="Messages that had been taken in before.")
    elsewhere: int = Field(description="Conversations left alone: another source has them.")
    waiting: int = Field(description="Messages of the source that wait to be learned.")
    dead: int = Field(description="Updates of the source that failed for good.")


@router.get("/sources", summary="List what was imported")
async def list_sources(call: AgentCall) -> ImportSources:
    """List what was imported, and what this deployment keeps of it."""
    found = await call.run(read_sources(call.owner))
    return ImportSources(sources=[await _source_view(call, each) for each in found], limits=_limits(call))


@router.put("/sources/{name}", summary="Begin an import, or go on with it")
async def put_source(call: AgentCall, name: Name, choice: SourceChoice) -> OpenSource:
    """Begin an import under a name, or go on with the one that is there."""
    source = await call.run(open_source(call.owner, name, choice.origin, call.service.clock()))
    return OpenSource(name=source.name, origin=source.origin, token=source.token, limits=_limits(call))


@router.post(
    "/sources/{name}/conversations",
    summary="Take conversations in; idempotent",
    responses=refusals(404, 409),
    openapi_extra={LARGEST_BODY: LARGEST_PIECE},
)
async def add_conversations(request: Request, call: AgentCall, name: Name, piece: Piece) -> PieceResult:
    """Take conversations in: first into the journal, then to be learned. Twice is the same as once."""
    if sum(len(each.messages) for each in piece.conversations) > MOST_MESSAGES:
        raise invalid("conversations", f"must have at most {MOST_MESSAGES} messages together: send them in pieces")
    source = await call.run(read_source(call.owner, name))
    if source is None or source.token != piece.token:
        raise _erased(name)
    if not call.service.settings.memory.enabled:
        raise RefusedRequest(409, "memory is switched off on this server")
    name_of_user = known_as({"langgraph_auth_user": request.scope.get("user")}) or call.user_id
    done = []
    for place, talk in enumerate(piece.conversations):
        try:
            conversation = Conversation.from_json(talk.model_dump(), name_of_user)
        except ValueError as error:
            raise invalid(f"conversations.{place}", str(error)) from None
        done.append(await _take_in(call, source, conversation, piece.learn))
    for thread_id in dict.fromkeys(each.thread_id for each in done if each.updates):
        call.service.wake(call.owner, thread_id)
    waiting, dead = await _left(call, source)
    queued, updates = sum(each.queued for each in done), sum(each.updates for each in done)
    logger.info("took in %d imported conversations: messages %d, updates %d", len(done), queued, updates)
    return PieceResult(
        journal=sum(each.told for each in done),
        queued=queued,
        updates=updates,
        known=sum(each.known for each in done if not each.elsewhere),
        elsewhere=sum(bool(each.elsewhere) for each in done),
        waiting=waiting,
        dead=dead,
    )


async def _take_in(call: Call, source: ImportSource, conversation: Conversation, learn: bool) -> TakenIn:
    try:
        return await call.run(
            take_talk_in(
                call.owner,
                source,
                conversation,
                now=call.service.clock(),
                learn=learn,
                portion_messages=call.service.settings.memory.portion_messages,
                approval=call.service.settings.memory.approval,
            )
        )
    except SourceGone:
        raise _erased(source.name) from None
    except LearningPaused:
        raise RefusedRequest(409, "learning is paused: go on with it before you import") from None


def _erased(name: str) -> RefusedRequest:
    return RefusedRequest(409, f"{name} is no import that is under way, or was erased meanwhile: begin it anew")


async def _left(call: Call, source: ImportSource) -> tuple[int, int]:
    """Return how many messages of a source wait to be learned, and how many of its updates failed for good."""
    unit, epoch = source.unit(call.owner), await call.run(read_epoch(call.owner))
    entries = [
        entry
        for entry in await call.run(read_entries(call.owner))
        if unit_of(entry.thread_id) == unit and entry.epoch == epoch
    ]
    dead = [entry for entry in entries if entry.state == "dead"]
    waiting = sum(not one.seen for entry in entries if entry.state != "dead" for one in entry.messages)
    return waiting, len(dead)


async def _source_view(call: Call, counts: SourceCounts) -> Source:
    waiting, dead = await _left(call, counts.source)
    return Source.model_validate({**asdict(counts.source), **asdict(counts), "waiting": waiting, "dead": dead})


def _limits(call: Call) -> ImportLimits:
    return ImportLimits.model_validate(call.service.settings.memory, from_attributes=True)
