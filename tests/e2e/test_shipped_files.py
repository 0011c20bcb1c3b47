"""Both shipped configurations, unmodified: a thread of 45 turns can be read, forked, copied and gone back in."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.guarded_server import headers_of
from tests.e2e.scripted import Scripted
from tests.e2e.speaking import say
from tests.stories.serving import SECRET
from tests.stub_model import StubModel

pytestmark = pytest.mark.timeout(900)  # whichever test is first waits for all turns

CONFIGS = ("langgraph.json", "langgraph.prod.json")
TURNS = 45
SMALL = {"max_tokens": 700, "max_summary_tokens": 64, "memory_tokens": 100, "reply_tokens": 50}
CHOICES: dict[str, dict[str, Any]] = {
    "keep": {},
    "keep, small budget": SMALL,
    "compact, small budget": {**SMALL, "transcript": "compact"},
}


@dataclass
class Told:
    """A thread, what was said in it, and its history once somebody asked for it, newest first."""

    thread_id: str
    choice: str
    said: list[str] = field(default_factory=list)
    history: list[Any] = field(default_factory=list)

    @property
    def is_cut(self) -> bool:
        """Whether summarized messages have left its state."""
        return self.choice == "compact, small budget"


@dataclass(frozen=True)
class User:
    """Somebody who talks to one of the servers."""

    server: DevServer
    headers: dict[str, str]
    threads: dict[str, Told]

    @property
    def sdk(self) -> SyncLangGraphClient:
        return get_sync_client(url=self.server.url, headers=self.headers)

    def tells(self, told: Told, text: str, **options: Any) -> Any:
        with self.sdk as client:
            state = client.runs.wait(told.thread_id, "chat", input=say(text), context=CHOICES[told.choice], **options)
        told.said += [text, f"re: {text}"]
        return state

    def tells_all(self, choice: str) -> Told:
        with self.sdk as client:
            told = Told(client.threads.create()["thread_id"], choice)
        for number in range(TURNS):
            self.tells(told, f"turn {number}: " + "it was a long day. " * 4)
        return told


@pytest.fixture(scope="module")
def users(serve: Serve, stub: StubModel) -> dict[str, User]:
    """A user of each server, with a thread for each choice; all threads are talked in at once."""
    stub.respond = Scripted(chat=lambda asked: f"re: {asked.last}")
    users = {config: User(serve(config, PALIMPSEST_AUTH_SECRET=SECRET), headers_of("ada"), {}) for config in CONFIGS}
    pairs = [(user, choice) for user in users.values() for choice in CHOICES]
    with ThreadPoolExecutor(len(pairs)) as pool:
        for (user, choice), told in zip(pairs, pool.map(lambda pair: pair[0].tells_all(pair[1]), pairs), strict=True):
            user.threads[choice] = told
    return users


@pytest.fixture(params=CONFIGS)
def user(request: pytest.FixtureRequest, users: dict[str, User]) -> User:
    return users[request.param]


@pytest.fixture
def client(user: User) -> Iterator[SyncLangGraphClient]:
    with user.sdk as client:
        yield client


@pytest.fixture(params=list(CHOICES))
def told(request: pytest.FixtureRequest, user: User, client: SyncLangGraphClient) -> Told:
    told = user.threads[request.param]
    told.history = told.history or client.threads.get_history(told.thread_id, limit=1000)
    return told


def texts(values: Any) -> list[str]:
    """What was said, without the message that stands for a summary."""
    assert all(isinstance(message["id"], str) for message in values.get("messages", []))
    return [message["content"] for message in values.get("messages", []) if message["type"] != "system"]


def is_right(told: Told, found: list[str], said: list[str]) -> bool:
    """Whether a state holds what was said; with summarized messages gone, the newest of it."""
    return found == (said[len(said) - len(found) :] if told.is_cut and found else said)


def test_state_and_history_are_what_was_said(client: SyncLangGraphClient, told: Told) -> None:
    state: Any = client.threads.get_state(told.thread_id)
    assert is_right(told, texts(state["values"]), told.said)
    assert ("running_summary" in state["values"].get("context", {})) == ("small" in told.choice)

    assert len(told.history) >= 4 * TURNS
    for snapshot in told.history:
        found = texts(snapshot["values"])
        assert is_right(told, found, told.said[: told.said.index(found[-1]) + 1] if found else [])


def test_a_copy_and_a_fork_go_on(client: SyncLangGraphClient, user: User, told: Told) -> None:
    copied: Any = client.http.post(f"/threads/{told.thread_id}/copy", json=None)
    copy = Told(copied["thread_id"], told.choice, list(told.said))
    whole = texts(told.history[0]["values"])
    assert texts(client.threads.get_state(copy.thread_id)["values"]) == whole
    user.tells(copy, "and then?")
    assert is_right(copy, texts(client.threads.get_state(copy.thread_id)["values"]), copy.said)

    # Forty messages ago, and from there another way: by a new state, and by a run from the old checkpoint.
    back = copy.said[:-40]
    then = next(each for each in told.history if texts(each["values"])[-1:] == back[-1:] and not each["next"])
    then_id = then["checkpoint"]["checkpoint_id"]
    forked: Any = client.threads.update_state(copy.thread_id, say("edited"), checkpoint_id=then_id)
    state = client.threads.get_state(copy.thread_id, checkpoint=forked["checkpoint"])
    assert is_right(copy, texts(state["values"]), [*back, "edited"])
    copy.said = back
    user.tells(copy, "another way", checkpoint_id=then_id)
    for number in range(3):
        user.tells(copy, f"further {number}")
    assert is_right(copy, texts(client.threads.get_state(copy.thread_id)["values"]), copy.said)
    newest = client.threads.get_history(copy.thread_id, limit=10)
    assert texts(newest[0]["values"]) == texts(client.threads.get_state(copy.thread_id)["values"])
    assert [texts(each["values"]) for each in client.threads.get_history(told.thread_id, limit=1)] == [whole]
