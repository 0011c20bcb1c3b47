"""The stories' stage: two servers for all of them, and somebody who is nobody else for each."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Protocol

import pytest

from tests.e2e.browsing import chromium, window
from tests.stories.host import Place, places
from tests.stories.people import Person


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[dict[str, Place]]:
    """The servers of this run, which all its workers share."""
    own = tmp_path_factory.getbasetemp()
    is_worker = hasattr(request.config, "workerinput")
    with places((own.parent if is_worker else own) / "stories") as known:
        yield known


@pytest.fixture
def guarded(shared: dict[str, Place]) -> Place:
    """The server where users log in."""
    return shared["guarded"]


@pytest.fixture
def opened(shared: dict[str, Place]) -> Place:
    """The shipped server as `langgraph dev` starts it: without a login, for one user."""
    return shared["open"]


class Meet(Protocol):
    """Brings somebody in."""

    def __call__(self, place: Place, role: str = "", **claims: Any) -> Person:
        """Return a person whom no other story knows."""


@pytest.fixture
def meet(request: pytest.FixtureRequest) -> Iterator[Meet]:
    with ExitStack() as people:

        def come(place: Place, role: str = "", **claims: Any) -> Person:
            return people.enter_context(
                Person(place, f"{request.node.name.removeprefix('test_')[:40]}{role}", **claims)
            )

        yield come


@pytest.fixture
def ada(guarded: Place, meet: Meet) -> Person:
    """A user who logs in."""
    return meet(guarded)


@pytest.fixture(scope="module")
def browser(shared: dict[str, Place]) -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Any, ada: Person) -> Iterator[Any]:
    """The page, in which Ada has logged in."""
    with window(browser, ada.place.url) as page:
        page.get_by_label("Token").fill(ada.token)
        page.get_by_role("button", name="Show my memory").click()
        page.locator("#chat-words").wait_for()
        yield page
