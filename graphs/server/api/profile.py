"""The profile: six short texts about the user."""

from typing import Literal

from pydantic import BaseModel, Field

from graphs.server.api.guard import RefusedRequest, from_value_error
from graphs.server.api.routing import NO_CONTENT, AgentCall, Call, MemoryRouter, StrictModel, refusals
from memory.control import read_epoch
from memory.facts.fact import checked_content, timestamp
from memory.facts.profile import MAX_SECTION_CHARS, SECTIONS, edit_section, read_profile, texts_of
from memory.screening.door import admitted

router = MemoryRouter()

SectionName = Literal[
    "user.work", "user.personal", "user.topOfMind", "history.recent", "history.earlier", "history.background"
]


class Profile(BaseModel):
    """The sections that say something."""

    sections: dict[SectionName, str]


class SectionText(StrictModel):
    """What a section is to say."""

    text: str = Field(min_length=1, max_length=MAX_SECTION_CHARS)


@router.get("/profile", summary="Read the profile")
async def get_profile(call: AgentCall) -> Profile:
    """Read the profile."""
    epoch = await call.run(read_epoch(call.owner))
    return Profile.model_validate({"sections": texts_of(await call.run(read_profile(call.owner, epoch)))})


@router.put("/profile/{section}", summary="Write a section of the profile", responses=refusals(404))
async def put_section(call: AgentCall, section: str, new: SectionText) -> Profile:
    """Write one section."""
    try:
        text = checked_content(new.text, MAX_SECTION_CHARS)
        if verdict := admitted(text, "text"):
            why = "may hold a password or a code" if verdict == "suspected" else "reads as an order to the assistant"
            raise ValueError(f"text must say something about you; it {why}")
    except ValueError as error:
        # The rule is the one for facts, and speaks of `content`.
        raise from_value_error(ValueError(str(error).replace("content", "text", 1)), ("text",)) from None
    await _write_section(call, section, text)
    return await get_profile(call)


@router.delete(
    "/profile/{section}",
    **NO_CONTENT,
    summary="Empty a section of the profile",
    responses=refusals(404),
)
async def delete_section(call: AgentCall, section: str) -> None:
    """Empty one section."""
    await _write_section(call, section, "")


async def _write_section(call: Call, section: str, text: str) -> None:
    if section not in SECTIONS:
        raise RefusedRequest(404, f"the sections are {', '.join(SECTIONS)}")
    epoch = await call.run(read_epoch(call.owner))
    now = timestamp(call.service.clock())
    await call.run(edit_section(call.owner, section, text, epoch=epoch, now=now))
