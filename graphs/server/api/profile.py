"""The profile: six short texts about the user."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from graphs.server.api.guard import RefusedRequest
from graphs.server.api.routing import AgentCall, ApiModel, Call, MemoryRouter, StrictModel
from memory.facts.fact import checked_content
from memory.facts.profile import MAX_SECTION_CHARS, SECTIONS, edit_section, read_profile, texts_of
from memory.message import iso_time
from memory.screening.door import admitted

router = MemoryRouter()

SectionName = Literal[
    "user.work", "user.personal", "user.topOfMind", "history.recent", "history.earlier", "history.background"
]


class Profile(ApiModel):
    """The sections that say something."""

    sections: dict[SectionName, str]


def _checked(text: str) -> str:
    try:
        text = checked_content(text, MAX_SECTION_CHARS)
    except ValueError as error:  # the rule is the one for facts, and speaks of `content`
        raise ValueError(str(error).removeprefix("content ")) from None
    if verdict := admitted(text, "text"):
        why = "may hold a password or a code" if verdict == "suspected" else "reads as an order to the assistant"
        raise ValueError(f"must say something about you; it {why}")
    return text


class SectionText(StrictModel):
    """What a section is to say."""

    text: Annotated[str, Field(min_length=1, max_length=MAX_SECTION_CHARS), AfterValidator(_checked)]


@router.answers("GET /profile")
async def get_profile(call: AgentCall) -> Profile:
    """Read the profile."""
    found = await call.run(read_profile(call.owner))
    return Profile.model_validate({"sections": texts_of(found)})


@router.answers("PUT /profile/{section}", 404)
async def put_section(call: AgentCall, section: str, new: SectionText) -> Profile:
    """Write one section."""
    await _write_section(call, section, new.text)
    return await get_profile(call)


@router.answers("DELETE /profile/{section}", 404)
async def delete_section(call: AgentCall, section: str) -> None:
    """Empty one section."""
    await _write_section(call, section, "")


async def _write_section(call: Call, section: str, text: str) -> None:
    if section not in SECTIONS:
        raise RefusedRequest(404, f"the sections are {', '.join(SECTIONS)}")
    await call.run(edit_section(call.owner, section, text, iso_time(call.now)))
