"""The page and the memory API in process, for one user: its addresses and its forms."""

import html
import re
from typing import Any

import httpx

from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.facts.store import FactStore
from tests.memory_app import MemoryApp


class Page:
    """One user's page; `client` asks the memory API beside it, and `facts` are what both work on."""

    def __init__(self, memory: MemoryConfig | None = None) -> None:
        config = memory or MemoryConfig()
        self.app = MemoryApp(Settings(single_user=True, memory=config))
        self.facts = FactStore(self.app.store, "local", config=config, clock=self.app.clock)
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app.app), base_url="http://testserver/memory", follow_redirects=True
        )

    async def get(self, path: str, **query: Any) -> str:
        """Return a part of the page as its HTML."""
        answer = await self.client.get(f"/page/{path}", params=query or None)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def post(self, path: str, *, status: int = 200, **form: Any) -> str:
        """Send a form, and return what is shown then."""
        answer = await self.client.post(f"/page/{path}", data=form)
        assert answer.status_code == status, answer.text
        return answer.text

    async def insists(self, path: str, **form: Any) -> str:
        """Send a form, say yes to the question that it is answered with, and return what is shown then."""
        return await self.post(path, **form, sure=field(await self.post(path, status=428, **form), "sure"))

    def learns(self, *contents: str) -> list[str]:
        """Create facts, a minute after one another, and return their ids."""
        ids = []
        for content in contents:
            ids.append(self.facts.create(content, "knowledge", 0.9).id)
            self.app.clock.advance(60)
        return ids

    def says(self) -> list[str]:
        """Return the facts as they are listed."""
        return [fact.content for fact in self.facts.list()]

    def waits(self) -> list[str]:
        """Return what waits for the user's yes."""
        return [fact.content for fact in self.facts.list("waiting")]

    def used(self) -> list[str]:
        """Return what a turn may use."""
        return [fact.content for fact in self.facts.snapshot().facts]


def field(text: str, name: str) -> str:
    """Return what a form's hidden field holds."""
    found = re.search(rf'name="{name}" value="([^"]*)"', text)
    assert found, text
    return html.unescape(found[1])
