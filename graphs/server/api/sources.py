"""Conversations that were held elsewhere, taken in piece by piece under a name by which they can be taken back."""

import logging
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Path
from pydantic import Field
from starlette.requests import Request

from graphs.process.identity import known_as
from graphs.server.api.guard import RefusedRequest, invalid
from graphs.server.api.routing import LARGEST_BODY, AgentCall, ApiModel, Call, MemoryRouter, StrictModel
from graphs.server.api.updates import updates_of
from memory.backfill.conversation import Conversation, Origin
from memory.backfill.source import ImportSource, SourceGone, TakenIn, open_source, read_source, read_sources, take_in
from memory.message import Role
from memory.namespaces import unit_of

logger = logging.getLogger(__name__)

router = MemoryRouter()

LARGEST_PIECE = 8 * 1024 * 1024
MOST_CONVERSATIONS = 100
MOST_MESSAGES = 2_000

Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="What the import is called.")]


class Source(ApiModel):
    """Conversations that were imported together."""

    name: str
    origin: Origin
    """Where the first of them were held."""
    begun: str
    """When the import began."""
    conversations: int
    messages: int
    """Messages that were written down."""
    learned: int
    """Those of them that were written down to be learned, too."""
    waiting: int
    """Messages that wait to be learned."""
    dead: int
    """Updates that failed for good; `POST /memory/updates/{key}/retry` tries again."""


class ImportLimits(ApiModel):
    """What this deployment keeps, and in what portions it reads."""

    portion_messages: int
    """So many messages one extraction reads."""
    journal_days: int
    """So many days after the import the journal keeps what was said."""
    journal_bytes: int
    """So many bytes of text the journal keeps; the oldest go first."""


class ImportSources(ApiModel):
    """What was imported, oldest first."""

    sources: list[Source]
    limits: ImportLimits


class SourceChoice(StrictModel):
    """What is about to be imported."""

    origin: Origin


class OpenSource(ApiModel):
    """A source that takes conversations in."""

    name: str
    origin: Origin
    token: str
    """To be sent with each piece: another one says that it was erased meanwhile."""
    unit: str
    """What is taken back with it: a fact of an export that names this as its `thread_id` is, too."""
    limits: ImportLimits


class ImportedMessage(StrictModel):
    """One message."""

    id: str = Field(max_length=400)
    """Of a text that the user pasted it begins with `pasted-`."""
    role: Role
    """`other` is another person in the conversation."""
    name: str = Field(default="", max_length=400)
    """What the client called the person."""
    text: str
    time: str | float
    """ISO 8601, or seconds since 1970."""


class ImportedConversation(StrictModel):
    """One conversation, all of it: what of it is known already is left out."""

    origin: Origin
    id: str = Field(min_length=1, max_length=400)
    messages: list[ImportedMessage]
    goes_on: bool = False
    """The first message ended the piece before: it only leads into what follows."""


class Piece(StrictModel):
    """Some conversations of a source."""

    token: str = Field(max_length=64)
    conversations: list[ImportedConversation] = Field(max_length=MOST_CONVERSATIONS)
    learn: bool = True
    """false: they only come into the journal."""


class PieceResult(ApiModel):
    """What taking a piece in did, in messages."""

    journal: int
    """Messages that are new in the journal."""
    queued: int
    """Messages that are to be learned now."""
    updates: int
    """In so many updates."""
    known: int
    """Messages that had been taken in before."""
    elsewhere: int
    """Conversations left alone: another source has them."""
    waiting: int
    """Messages of the source that wait to be learned."""
    dead: int
    """Updates of the source that failed for good."""


@router.answers("GET /sources", shown=ImportSources)
async def list_sources(call: AgentCall) -> dict[str, Any]:
    """List what was imported, and what this deployment keeps of it."""
    found = await call.run(read_sources(call.owner))
    left = await _left(call, [source for source, _ in found])
    views = [{**asdict(source), **counts, **left[source.name]} for source, counts in found]
    return {"sources": views, "limits": call.config}


@router.answers("PUT /sources/{name}", shown=OpenSource)
async def put_source(call: AgentCall, name: Name, choice: SourceChoice) -> dict[str, Any]:
    """Begin an import under a name, or go on with the one that is there."""
    source = await call.run(open_source(call.owner, name, choice.origin, call.now))
    return {**asdict(source), "unit": source.unit(call.owner), "limits": call.config}


@router.answers(
    "POST /sources/{name}/conversations", 404, 409, openapi_extra={LARGEST_BODY: LARGEST_PIECE}, shown=PieceResult
)
async def add_conversations(request: Request, call: AgentCall, name: Name, piece: Piece) -> dict[str, int]:
    """Take conversations in: first into the journal, then to be learned. Twice is the same as once."""
    if sum(len(each.messages) for each in piece.conversations) > MOST_MESSAGES:
        raise invalid("conversations", f"must have at most {MOST_MESSAGES} messages together: send them in pieces")
    config, source = call.config, await call.run(read_source(call.owner, name))
    if source is None or source.token != piece.token:
        raise SourceGone
    if not config.enabled:
        raise RefusedRequest(409, "memory is switched off on this server")
    name_of_user = known_as({"langgraph_auth_user": request.scope.get("user")}) or call.user_id
    done, learned = TakenIn(), dict[str, None]()
    for place, talk in enumerate(piece.conversations):
        try:
            conversation = Conversation.from_json(talk.model_dump(), name_of_user)
        except ValueError as error:
            raise invalid(f"conversations.{place}", str(error)) from None
        taking = take_in(call.owner, source, conversation, now=call.now, learn=piece.learn, approval=config.approval)
        taken = await call.run(taking)
        done = TakenIn(*map(sum, zip(done, taken, strict=True)))
        learned |= dict.fromkeys([source.thread_of(call.owner, conversation)] if taken.updates else [])
    for thread_id in learned:
        call.service.wake(call.owner, thread_id)
    logger.info("took in %d imported conversations", len(piece.conversations))
    return {**done._asdict(), **(await _left(call, [source]))[name]}


async def _left(call: Call, sources: list[ImportSource]) -> dict[str, dict[str, int]]:
    """Return, by its name, how many messages of a source wait, and how many of its updates failed for good."""
    left, entries = {}, await updates_of(call)
    for source in sources:
        own = [entry for entry in entries if unit_of(entry.thread_id) == source.unit(call.owner)]
        waiting = sum(not one.seen for entry in own if entry.state != "dead" for one in entry.messages)
        left[source.name] = {"waiting": waiting, "dead": sum(entry.state == "dead" for entry in own)}
    return left
