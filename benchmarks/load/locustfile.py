"""What each user of a load test does: so many turns of one conversation, through the SDK. locust reads this file."""

import itertools
import json
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import gevent
import jwt
from langgraph_sdk import get_sync_client
from locust import User, constant, events, task
from locust.exception import StopUser

from benchmarks.conversations import words

_SAID_WORDS = 30
_NUMBERS = itertools.count()
_FINISHED = itertools.count(1)


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator, unused-ignore]
def add_options(parser: ArgumentParser) -> None:
    """Add what the driver says to locust's own options."""
    parser.add_argument("--server", action="append")
    parser.add_argument("--turns", type=int)
    parser.add_argument("--memory", choices=("normal", "incognito"))
    parser.add_argument("--thinking", type=float)
    parser.add_argument("--secret")
    parser.add_argument("--samples", type=Path)


class Talker(User):  # type: ignore[misc, unused-ignore]
    """One user, who logs in and talks in one thread, on one of the servers."""

    wait_time = constant(0)  # thinking is part of the task: locust would wait before it asks whether to stop

    def on_start(self) -> None:
        number, said = next(_NUMBERS), self.environment.parsed_options
        claims = {"sub": f"load-{said.memory}-{number}", "exp": time.time() + 86_400}
        token = jwt.encode(claims, said.secret, "HS256")
        servers = said.server
        self._client = get_sync_client(
            url=servers[number % len(servers)], headers={"Authorization": f"Bearer {token}"}, timeout=120.0
        )
        self._thread = self._client.threads.create()["thread_id"]
        self._number, self._done = number, 0

    @task  # type: ignore[untyped-decorator, unused-ignore]
    def turn(self) -> None:
        """Say one thing and wait for the answer."""
        said, error = self.environment.parsed_options, ""
        text = f"{words(_SAID_WORDS, 1000 * self._number + self._done)}. I like thing {self._number}-{self._done}."
        asked: dict[str, Any] = {"messages": [{"role": "user", "content": text}]}
        began = time.time()
        try:
            self._client.runs.wait(self._thread, "chat", input=asked, context={"memory_mode": said.memory})
        except Exception as failed:  # a load test counts what fails, and goes on
            error = type(failed).__name__
        took = time.time() - began
        with said.samples.open("a", encoding="utf-8") as file:
            file.write(json.dumps([began, took, error]) + "\n")
        self.environment.events.request.fire(
            request_type="turn", name=said.memory, response_time=1000 * took, response_length=0,
            exception=RuntimeError(error) if error else None,
        )  # fmt: skip
        self._done += 1
        if self._done >= said.turns:
            if next(_FINISHED) == said.num_users:
                gevent.spawn_later(0.1, self.environment.runner.quit)  # once this user has stopped
            raise StopUser
        time.sleep(said.thinking)  # locust's: it lets the others go on
