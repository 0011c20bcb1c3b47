"""`palimpsest chat` against a server in process: what is said, shown, learned, and how it ends."""

import json
from pathlib import Path
from typing import Any

import click
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from graphs.cli.chat import chat
from memory.door import arun
from memory.turn import MODES
from memory.updates.receipts import UpdateReceipt, write_receipt
from tests.command_line import AsAda, Typed, now
from tests.memory_app import ADA, MemoryApp, pending

Parts = list[tuple[str, Any]]
TIME = "2026-01-01T10:00:00+00:00"
THREAD = "0b8e2f6a-4c1d-4f2e-9a57-2f6f0c3b7d11"
TOKENS = {"system": 10, "memory": 20, "recalled": 0, "summary": 0, "messages": 30, "budget": 8192}


def token(text: str) -> tuple[str, Any]:
    return "messages", [{"type": "AIMessageChunk", "id": "a1", "content": text}, {"langgraph_node": "call_model"}]


def custom(name: str, **payload: Any) -> tuple[str, Any]:
    return "custom", {"name": name, "payload": payload}


class Server:
    """The few routes of a LangGraph server that a conversation needs, beside the real memory API."""

    def __init__(self) -> None:
        self.memory = MemoryApp()
        self.runs: list[dict[str, Any]] = []
        self.threads: list[dict[str, Any]] = []
        self.parts: Parts = []
        self.learns = ""
        routes = [
            Route("/threads", self._create, methods=["POST"]),
            Route("/threads/{thread_id}", self._get),
            Route("/threads/{thread_id}/runs/stream", self._stream, methods=["POST"]),
            Mount("/", self.memory.app),
        ]
        self.typed = Typed(AsAda(Starlette(routes=routes)), {"PALIMPSEST_TOKEN": "ada"})

    async def _create(self, request: Request) -> Response:
        self.threads.append(await request.json())
        return JSONResponse({"thread_id": THREAD})

    async def _get(self, request: Request) -> Response:
        if request.path_params["thread_id"] != THREAD:
            return JSONResponse({"detail": "Thread not found"}, status_code=404)
        return JSONResponse({"thread_id": THREAD})

    async def _stream(self, request: Request) -> Response:
        run = await request.json()
        self.runs.append(run)
        said = run["input"]["messages"][0]["content"]
        parts = self.parts or [token("You said: "), token(said)]
        if self.learns:
            done = UpdateReceipt(time=TIME, thread_id=THREAD, created=(self.learns,))
            await arun(self.memory.store, write_receipt(ADA, "r1", done))
        body = "".join(f"event: {event}\r\ndata: {json.dumps(data)}\r\n\r\n" for event, data in parts)
        return Response(body, media_type="text/event-stream")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.chdir(tmp_path)
    return Server()


def test_the_modes_are_those_of_memory() -> None:
    (mode,) = (each for each in chat.params if each.name == "mode")
    assert isinstance(mode.type, click.Choice)
    assert tuple(mode.type.choices) == MODES


def test_what_is_on_the_line_is_said_turn_by_turn(server: Server) -> None:
    done = server.typed.run("chat", "Hello.", "I like figs.")
    assert done.stdout == "You said: Hello.\nYou said: I like figs.\n"
    assert done.stderr == f"thread {THREAD}\n"
    assert [run["input"]["messages"][0]["content"] for run in server.runs] == ["Hello.", "I like figs."]
    assert {run["on_disconnect"] for run in server.runs} == {"cancel"}
    assert all("context" not in run for run in server.runs)


def test_a_pipe_says_a_line_a_turn(server: Server) -> None:
    done = server.typed.run("chat", typed="Hello.\n\n/undo\n")
    assert done.stdout == "You said: Hello.\nYou said: /undo\n"


def test_bytes_that_are_no_text_cost_no_conversation(server: Server) -> None:
    assert (
        server.typed.run("chat", "I like \udcff figs.", "Bye.").stdout == "You said: I like ? figs.\nYou said: Bye.\n"
    )
    said = server.typed.refused("facts", "add", "Likes \udcff figs", "--category", "preference")
    assert said == "Error: what was typed has bytes that are no UTF-8\n"


def test_what_memory_reports_is_told(server: Server) -> None:
    server.parts = [
        custom("memory.injected", v=1, facts=["fact_1"], tokens=TOKENS),
        custom(
            "memory.summarized", v=1, messages=8, tokens_before=900, tokens_after=300, summary_tokens=40, ready=True
        ),
        token("Yes."),
        custom("memory.queued", v=1, entry="e", due="2026-01-01T10:00:00+00:00"),
    ]
    done = server.typed.run("chat", "Hello.")
    assert done.stdout == "Yes.\n"
    assert "shown 1 fact; 60 of 8192 tokens" in done.stderr
    assert "summarized 8 messages: 900 tokens are 300 now" in done.stderr
    assert "written down; read once it is quiet" in done.stderr


def test_json_is_a_line_a_turn(server: Server) -> None:
    server.parts = [custom("memory.injected", v=1, facts=[], tokens=TOKENS), token("Yes.")]
    done = server.typed.run("chat", "Hello.", "And you?", "--json")
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert (first["thread_id"], first["said"], first["answer"]) == (THREAD, "Hello.", "Yes.")
    assert first["events"]["memory.injected"]["tokens"] == TOKENS
    assert second["said"] == "And you?"
    assert done.stderr == ""


@pytest.mark.parametrize("mode", ["read_only", "incognito"])
def test_a_new_thread_keeps_its_mode(server: Server, mode: str) -> None:
    server.typed("chat", "Hello.", "--mode", mode)
    assert server.threads[0]["metadata"] == {"memory_mode": mode}


def test_a_thread_is_gone_on_with_in_a_mode_of_these_turns(server: Server) -> None:
    server.typed("chat", "Hello.", "--thread", THREAD, "--mode", "incognito", "--agent", "coach", "--assistant", "mine")
    assert server.threads == []
    assert server.runs[0]["context"] == {"memory_mode": "incognito", "agent_name": "coach"}
    assert server.runs[0]["assistant_id"] == "mine"
    assert "404" in server.typed.refused("chat", "Hello.", "--thread", "another")
    assert server.typed.run("chat", "x", "--mode", "secret").exit_code == 2


def test_a_turn_without_memory_says_why(server: Server) -> None:
    state = {"messages": [{"type": "ai", "content": "Yes."}], "memory": {"receipt": {"without_memory": "incognito"}}}
    server.parts = [("values", state)]
    done = server.typed.run("chat", "Hello.")
    assert done.stdout == "Yes.\n"  # of a model that streams nothing
    assert "without memory: incognito" in done.stderr


def test_a_turn_that_fails_ends_a_pipe(server: Server) -> None:
    server.parts = [("error", {"error": "ModelUnavailable", "message": "the key is wrong"})]
    done = server.typed.run("chat", "Hello.", "And you?")
    assert done.exit_code == 1
    assert "Error: the turn failed: the key is wrong" in done.stderr
    assert len(server.runs) == 1


def test_what_was_learned_is_told_with_the_way_back(server: Server) -> None:
    server.learns = server.typed.json("facts", "add", "Likes figs")["id"]
    done = server.typed.run("chat", "I like figs.", "--wait", "5")
    told = f"learned: Likes figs ({server.learns}; `palimpsest facts undo` takes the last change back)"
    assert told in done.stderr
    server.learns = ""
    assert told not in server.typed.run("chat", "Hello.", "--thread", THREAD).stderr


def test_waiting_says_what_failed_for_good(server: Server) -> None:
    now(pending(server.memory, THREAD, "I like figs.", state="dead", attempts=8, error="AuthenticationError"))
    done = server.typed.run("chat", "Hello.", "--wait", "60")
    assert done.exit_code == 1
    assert "AuthenticationError" in done.stderr


def test_an_answer_cannot_steer_the_terminal(server: Server) -> None:
    server.parts = [token("a\x1b"), token("[2Jb")]
    assert server.typed("chat", "Hello.") == "a[2Jb\n"
