"""The preview on the page: what a new thread would see of memory, word for word."""

from starlette.responses import Response

from graphs.server.api.preview import NewThread, preview_of
from graphs.server.page.pages import PageRequest, PageRoutes

pages = PageRoutes()


@pages.get("preview")
@pages.post("preview")
async def show_preview(asked: PageRequest) -> Response:
    """Show what a new thread that begins with the form's message, else with a greeting, would see."""
    message = asked.fields(NewThread).message
    return asked.show("preview.html", "preview", preview=await preview_of(asked.call, message), message=message)
