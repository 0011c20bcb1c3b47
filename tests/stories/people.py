"""Who acts in the stories: a person with the Python SDK and the memory API, on one of the shared servers."""

import time
from typing import Any, Self

import httpx
import jwt
from langgraph_sdk import get_sync_client
from langgraph_sdk.errors import APIStatusError
from langgraph_sdk.schema import Json

from tests.e2e.waiting import eventually
from tests.stories.host import Place
from tests.stories.serving import SECRET

SMALL = {"max_tokens": 900, "max_summary_tokens": 120, "memory_tokens": 200, "reply_tokens": 100}
"""A context in which a thread is soon long."""
REFUSED = (APIStatusError, httpx.HTTPStatusError)
"""What the SDK raises, depending on the method."""


def token_of(user: str, **claims: Any) -> str:
    """Return a bearer token of a user."""
    return jwt.encode({"sub": user, "exp": time.time() + 3600, **claims}, SECRET, "HS256")


def message(content: Any) -> Json:
    """Return the input of a run in which the user says something."""
    return {"messages": [{"role": "user", "content": content}]}


class Person:
    """Somebody who talks and looks after what is remembered.

    Where users log in, each is a user; elsewhere all are one, and each talks to an agent of their own.
    """

    def __init__(self, place: Place, name: str, **claims: Any) -> None:
        self.place, self.name = place, name
        self.agent: dict[str, str] = {} if place.guarded else {"agent_name": name}
        self.token = token_of(name, **claims) if place.guarded else ""
        headers = {"Authorization": f"Bearer {self.token}"} if place.guarded else {}
        self.sdk = get_sync_client(url=place.url, headers=headers)
        self.http = httpx.Client(base_url=place.url, headers=headers, timeout=120)
        self.memory = httpx.Client(base_url=f"{place.url}/memory", headers=headers, params=self.agent, timeout=120)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.sdk.close()
        self.http.close()
        self.memory.close()

    def thread(self, **metadata: Any) -> str:
        """Begin a thread."""
        return str(self.sdk.threads.create(metadata=metadata)["thread_id"])

    def says(self, content: Any, thread: str | None = None, assistant: str = "chat", **options: Any) -> str:
        """Say something, in a new thread where none is named, and return the answer."""
        context = {**self.agent, **options.pop("context", {})}
        state: Any = self.sdk.runs.wait(
            thread or self.thread(), assistant, input=message(content), context=context or None, **options
        )
        return str(state["messages"][-1]["content"])

    def sees(self, of: str = "", thread: str | None = None, **options: Any) -> str:
        """Return what the model is shown for a question, in a new thread where none is named."""
        return self.says(f"What do you see of {of or 'me'}?", thread, **options)

    def state(self, thread: str) -> Any:
        """Return the values of a thread."""
        return self.sdk.threads.get_state(thread)["values"]

    def get(self, path: str, **params: Any) -> Any:
        """Return what the memory API answers."""
        return self.memory.get(path, params={**self.agent, **params}).raise_for_status().json()

    def post(self, path: str, **body: Any) -> Any:
        """Return what the memory API answers to a body."""
        return self.memory.post(path, json=body).raise_for_status().json()

    def writes(self, content: str, **fields: Any) -> str:
        """Write a fact by hand, and return its id."""
        return str(self.post("/facts", **{"content": content, "category": "knowledge", **fields})["id"])

    def facts(self, **params: Any) -> list[str]:
        """Return what is known, as the memory API lists it."""
        return [fact["content"] for fact in self.get("/facts", **params)["facts"]]

    def fact(self, content: str, **params: Any) -> Any:
        """Return the one fact of this content."""
        (found,) = (fact for fact in self.get("/facts", **params)["facts"] if content in fact["content"])
        return found

    def knows(self, *contents: str) -> None:
        """Wait until all that was said is learned; then exactly this is known."""
        # A turn's answer is shown before the turn is written down: nothing is pending then, either.
        eventually(lambda: self.get("/overview")["pending"] == 0 and set(contents) <= {*self.facts()})
        assert sorted(self.facts()) == sorted(contents)
