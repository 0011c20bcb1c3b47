"""Who is answered where nobody logs in."""

from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from graphs.server.asgi import Guarded
from graphs.server.this_machine import this_machine_only, why_not
from graphs.settings import Settings

NOBODY: frozenset[str] = frozenset()
HERE = "127.0.0.1"


def refused(
    peer: str = HERE, *hosts: str, origin: str | None = None, allowed: frozenset[str] = NOBODY, opened: bool = False
) -> str | None:
    return why_not(peer, hosts or ["localhost:2024"], origin, allowed=allowed, open_to_network=opened)


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.0.0.5", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:2024", "127.0.0.1:2024", "[::1]:2024", "0.0.0.0:2024"])
def test_this_machine_is_answered(peer: str, host: str) -> None:
    assert refused(peer, host) is None


@pytest.mark.parametrize("peer", ["192.168.1.5", "172.17.0.1", "fe80::1", "8.8.8.8", "", "localhost.evil.example"])
def test_another_machine_is_not_answered_whatever_name_it_asks_for(peer: str) -> None:
    assert "PALIMPSEST_OPEN_TO_NETWORK" in (refused(peer) or "")
    assert refused(peer, opened=True) is None


@pytest.mark.parametrize(
    "host", ["rebound.example:2024", "127.0.0.1.evil.example", "192.168.1.5:2024", "", "[", "localhost@evil.example:1"]
)
def test_another_name_is_not_answered(host: str) -> None:
    assert "PALIMPSEST_OPEN_TO_NETWORK" in (refused(HERE, host, origin=f"http://{host}") or "")
    assert refused(HERE, "localhost", host) is not None
    assert refused(HERE, host, opened=True) is None


def test_the_host_of_an_allowed_site_is_a_name_of_this_machine() -> None:
    assert refused(HERE, "BOX:2024", allowed=frozenset({"http://box:2024"})) is None


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:3000", "http://127.0.0.1:2024", "http://[::1]:5173", "https://app.localhost",
        "https://smith.langchain.com", "https://eu.smith.langchain.com", "https://beta.smith.langchain.com",
    ],
)  # fmt: skip
def test_pages_of_this_machine_and_studio_may_ask(origin: str) -> None:
    assert refused(origin=origin) is None


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example", "null", "", "http://smith.langchain.com", "https://evilsmith.langchain.com",
        "https://smith.langchain.com.evil.example", "https://localhost.evil.example", "file://localhost", "http://[",
    ],
)  # fmt: skip
@pytest.mark.parametrize("opened", [False, True])
def test_pages_of_other_sites_may_not_ask_unless_they_are_allowed(origin: str, opened: bool) -> None:
    assert "PALIMPSEST_ALLOWED_ORIGINS" in (refused(origin=origin, opened=opened) or "")
    assert refused(origin=origin, allowed=frozenset({origin}), opened=opened) is None


def test_an_open_servers_own_pages_may_ask() -> None:
    assert refused("192.168.1.7", "box:2024", origin="http://box:2024", opened=True) is None
    assert refused("192.168.1.7", "", origin="null", opened=True) is not None


def test_a_refusal_repeats_what_was_sent_on_one_line_and_in_short() -> None:
    why = refused(origin="https://evil\nERROR" + "x" * 5000) or ""
    assert "\n" not in why
    assert len(why) < 600


async def answers(settings: Settings, **scope: Any) -> bool:
    """Whether a request of this scope comes through to the app."""
    reached = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append(scope)

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            assert message["status"] == 403

    request = {"type": "http", "method": "GET", "path": "/store", "headers": [(b"host", b"api")], "client": (HERE, 1)}
    await Guarded(app, guard=this_machine_only(settings))({**request, **scope}, receive, send)
    return bool(reached)


async def test_the_server_may_ask_itself_and_nobody_can_pretend_to_be_it() -> None:
    single = Settings(single_user=True)
    assert await answers(single, root_path="/noauth")
    assert await answers(single, root_path="/noauth/prefix")
    for forged in ({"path": "/noauth/store"}, {"root_path": "/noauthority"}, {"headers": [(b"root_path", b"/noauth")]}):
        assert not await answers(single, **forged)
