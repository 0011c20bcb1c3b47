import asyncio
import contextvars
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from graphs.process.identity import LOCAL_USER, STUDIO_USER, as_server, identity_of

NOBODY: list[object] = [None, "", 0, False, ["ada"], {"identity": "ada"}, STUDIO_USER]


def user(identity: str, *, logged_in: bool = True) -> list[object]:
    """As servers have a user: a mapping, or an object."""
    said = {"identity": identity, "is_authenticated": logged_in}
    return [said, SimpleNamespace(**said)]


@pytest.mark.parametrize("single_user", [True, False])
@pytest.mark.parametrize("authenticated", user("ada"))
def test_the_user_whom_the_server_authenticated_comes_before_an_id_that_a_client_may_have_sent(
    authenticated: object, single_user: bool
) -> None:
    forged = {"langgraph_auth_user": authenticated, "langgraph_auth_user_id": "bob", "user_id": "bob"}
    assert identity_of(forged, single_user=single_user) == "ada"


@pytest.mark.parametrize("nobody", [*user("anonymous", logged_in=False), *user(STUDIO_USER)])
def test_a_user_who_did_not_log_in_is_nobody_whatever_id_a_client_sent(nobody: object) -> None:
    configurable = {"langgraph_auth_user": nobody, "langgraph_auth_user_id": "bob", "user_id": "anonymous"}
    assert identity_of(configurable, single_user=False) is None


@pytest.mark.parametrize("nobody", user("anonymous", logged_in=False))
def test_in_single_user_development_nobody_of_a_server_is_the_local_user(nobody: object) -> None:
    assert identity_of({"langgraph_auth_user": nobody, "user_id": "anonymous"}, single_user=True) == LOCAL_USER
    assert identity_of({"langgraph_auth_user": nobody, "user_id": "bob"}, single_user=True) == "bob"


@pytest.mark.parametrize("nobody", NOBODY)
def test_single_user_development_believes_the_client_and_says_so(
    nobody: object, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert identity_of({"langgraph_auth_user_id": nobody, "user_id": "bob"}, single_user=True) == "bob"
    assert "single-user mode" in caplog.text
    assert "bob" not in caplog.text


@pytest.mark.parametrize("claimed", [*NOBODY, LOCAL_USER])
def test_single_user_development_has_a_local_user(claimed: object) -> None:
    assert identity_of({"langgraph_auth_user_id": "", "user_id": claimed}, single_user=True) == LOCAL_USER
    assert identity_of({}, single_user=True) == LOCAL_USER


async def test_the_server_acts_without_its_callers_authority() -> None:
    caller: contextvars.ContextVar[Any] = contextvars.ContextVar("caller", default=None)
    caller.set("ada")

    async def who() -> tuple[Any, bool]:
        return caller.get(), asyncio.current_task() is not None

    assert await who() == ("ada", True)
    assert await as_server(who()) == (None, True)
    assert caller.get() == "ada"
