"""The profile: six short texts about the user."""

from typing import Literal

from pydantic import BaseModel, Field

from graphs.server.api.endpoint import Call, Endpoint, Form, Query
from graphs.server.api.guard import RefusedRequest, from_value_error
from memory.control import read_epoch
from memory.facts.fact import checked_content, timestamp
from memory.facts.profile import MAX_SECTION_CHARS, SECTIONS, edit_section, read_profile, texts_of
from memory.screening.door import admitted

SectionName = Literal[
    "user.work", "user.personal", "user.topOfMind", "history.recent", "history.earlier", "history.background"
]


class Profile(BaseModel):
    """The sections that say something."""

    sections: dict[SectionName, str]


class SectionText(Form):
    """What a section is to say."""

    text: str = Field(min_length=1, max_length=MAX_SECTION_CHARS)


async def get_profile(call: Call, _: Form) -> Profile:
    """Read the profile."""
    epoch = await call.run(read_epoch(call.owner))
    return Profile.model_validate({"sections": texts_of(await call.run(read_profile(call.owner, epoch)))})


async def put_section(call: Call, new: SectionText) -> Profile:
    """Write one section."""
    try:
        text = checked_content(new.text, MAX_SECTION_CHARS)
        if admitted(text, "text") is not None:
            raise ValueError("text must say something about you; it reads as an order to the assistant")
    except ValueError as error:
        raise from_value_error(ValueError(str(error).replace("content", "text", 1)), ("text",)) from None
    await _write(call, text)
    return await get_profile(call, new)


async def delete_section(call: Call, _: Query) -> None:
    """Empty one section."""
    await _write(call, "")


async def _write(call: Call, text: str) -> None:
    name = call.path["section"]
    if name not in SECTIONS:
        raise RefusedRequest(404, f"the sections are {', '.join(SECTIONS)}")
    epoch = await call.run(read_epoch(call.owner))
    now = timestamp(call.service.clock())
    await call.run(edit_section(call.owner, name, text, epoch=epoch, now=now))


ENDPOINTS = (
    Endpoint(
        method="GET", path="/profile", handler=get_profile, takes=Query, answers=Profile, summary="Read the profile",
    ),
    Endpoint(
        method="PUT", path="/profile/{section}", handler=put_section, takes=SectionText, answers=Profile,
        summary="Write a section of the profile", refusals=(404,),
    ),
    Endpoint(
        method="DELETE", path="/profile/{section}", handler=delete_section, takes=Query, status=204,
        summary="Empty a section of the profile", refusals=(404,),
    ),
)  # fmt: skip
