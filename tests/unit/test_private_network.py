"""A preflight for a private network is answered where its origin is allowed, and only there."""

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from graphs.server.this_machine import PrivateNetworkPreflight, ThisMachineOnly
from graphs.settings import Settings

STUDIO = "https://smith.langchain.com"


def app() -> Starlette:
    """The layers as the server stacks them: ours around its own for other origins."""
    guards = [
        Middleware(ThisMachineOnly, settings=Settings(single_user=True)),
        Middleware(PrivateNetworkPreflight),
        Middleware(CORSMiddleware, allow_origins=["*"], allow_methods=["*"], allow_headers=["*"]),
    ]
    return Starlette(middleware=guards)


async def preflight(origin: str, **headers: str) -> httpx.Response:
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST", **headers}
    transport = httpx.ASGITransport(app(), client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:2024") as client:
        return await client.options("/threads", headers=asked)


async def test_studio_may_ask_this_machine() -> None:
    answer = await preflight(STUDIO, **{"Access-Control-Request-Private-Network": "true"})
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-private-network"] == "true"


async def test_another_site_may_not() -> None:
    answer = await preflight("https://evil.example", **{"Access-Control-Request-Private-Network": "true"})
    assert answer.status_code == 403
    assert "access-control-allow-private-network" not in answer.headers


@pytest.mark.parametrize("headers", [{}, {"Access-Control-Request-Private-Network": "false"}])
async def test_what_was_not_asked_is_not_answered(headers: dict[str, str]) -> None:
    assert "access-control-allow-private-network" not in (await preflight(STUDIO, **headers)).headers
