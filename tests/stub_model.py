"""A model server for tests: speaks OpenAI's chat completions, records every request, and can misbehave on order."""

import json
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.templates import TemplateRefused, template_refuses

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One recorded request for a chat completion."""

    body: Json
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def stream(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def messages(self) -> list[Json]:
        return list(self.body.get("messages", []))

    @property
    def tools(self) -> list[str]:
        return [str(tool["function"]["name"]) for tool in self.body.get("tools", [])]

    @property
    def schema(self) -> Json:
        """The JSON schema that structured output must have; empty for plain text."""
        return dict(self.body.get("response_format", {}).get("json_schema", {}))

    @property
    def text(self) -> str:
        """All texts of all messages: the prompt as one string."""
        return "\n".join(text_of(message) for message in self.messages)

    @property
    def last(self) -> str:
        """The text of the last message, without what was recalled for it."""
        said = text_of(self.messages[-1]) if self.messages else ""
        return said.rpartition("</memory>\n\n")[2] if said.startswith("<memory>") else said


def text_of(message: Json) -> str:
    """Return a message's text, whether its content is a string or a list of blocks."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(str(block.get("text", "")) for block in content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the stub answers.

    Attributes:
        text: The assistant's text.
        tool_calls: Name and arguments of each tool it calls.
        beside: More fields of the message, such as `reasoning_content`.
        status: Anything but 200 is an error with `text` as its message.
        delay: Seconds before each streamed word (before the answer, when not streaming).
        gate: Nothing is answered before this event is set (or the stub closes): a model that hangs.
        cut_after: The connection is dropped after so many streamed words.
        finish: Why it ended, if not for the usual reason: `length` for an answer that broke off.
    """

    text: str = ""
    tool_calls: tuple[tuple[str, Json], ...] = ()
    beside: Json = field(default_factory=dict)
    status: int = 200
    delay: float = 0.0
    gate: threading.Event | None = None
    cut_after: int | None = None
    finish: str = ""

    @classmethod
    def json(cls, value: object, *, gate: threading.Event | None = None) -> Self:
        """Answer with a JSON text, as structured output does."""
        return cls(text=json.dumps(value), gate=gate)


Respond = Callable[[ChatRequest], Reply | str]


def echo(request: ChatRequest) -> Reply:
    """Answer with the last message."""
    return Reply(text=f"You said: {request.last}")


def always(reply: Reply | str) -> Respond:
    """Answer every request alike."""
    return lambda _: reply


class StubModel:
    """The server: `with StubModel() as model:` listens on loopback; `model.url` is what `OPENAI_BASE_URL` takes.

    It answers 400 to what some server refuses, and the test that owns it fails.
    """

    def __init__(self, respond: Respond = echo, port: int = 0, *, strict: bool = True) -> None:
        self.respond = respond
        self.strict = strict
        self._port = port
        self._requests: list[ChatRequest] = []
        self._failures: list[Exception] = []
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._server: ThreadingHTTPServer | None = None

    def __enter__(self) -> Self:
        self._server = _Server(self, self._port)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._closed.set()
        if self._server:
            self._server.shutdown()
            self._server.server_close()
        if kind is None:
            self.raise_failures()

    @property
    def url(self) -> str:
        if not self._server:
            raise RuntimeError("the stub is not running: use it as `with StubModel() as model:`")
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def requests(self) -> list[ChatRequest]:
        """Everything asked so far, oldest first."""
        with self._changed:
            return list(self._requests)

    def clear(self) -> None:
        """Forget the recorded requests."""
        with self._changed:
            self._requests.clear()

    def wait_for(self, wanted: Callable[[ChatRequest], bool], timeout: float = 120.0) -> ChatRequest:
        """Return the first recorded request that is wanted, waiting for it; `TimeoutError` if none comes."""
        with self._changed:
            self._changed.wait_for(lambda: any(map(wanted, self._requests)), timeout)
            for request in self._requests:
                if wanted(request):
                    return request
        raise TimeoutError(f"no such request among {len(self._requests)} within {timeout} s")

    def answer(self, request: ChatRequest) -> Reply:
        """Record a request and return its reply once its gate is open."""
        with self._changed:
            self._requests.append(request)
            self._changed.notify_all()
        if self.strict and (reason := template_refuses(request.messages)):
            self.failed(TemplateRefused(reason))
            return Reply(status=400, text=reason)
        try:
            made = self.respond(request)
        except Exception as error:  # a mistake in the test: nobody tries again after a 400
            self.failed(error)
            return Reply(status=400, text=f"the test's responder failed: {error!r}")
        reply = Reply(text=made) if isinstance(made, str) else made
        while reply.gate and not reply.gate.wait(0.05) and not self._closed.is_set():
            pass
        return reply

    def failed(self, error: Exception) -> None:
        """Keep a failure of the stub's own for `raise_failures`."""
        with self._changed:
            self._failures.append(error)

    def raise_failures(self) -> None:
        """Raise what the responder raised since this was last called, in the test that owns it."""
        with self._changed:
            failures, self._failures = self._failures, []
        if failures:
            raise ExceptionGroup("the stub model failed", failures)

    def pause(self, seconds: float) -> None:
        """Wait as a slow model does, but never longer than the stub lives."""
        if seconds:
            self._closed.wait(seconds)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: StubModel, port: int) -> None:
        self.model = model
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep what went wrong; that a client hangs up, as a killed server under test does, is no news."""
        error = sys.exception()
        if isinstance(error, Exception) and not isinstance(error, OSError):
            self.model.failed(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name is the base class's)
        """Tests read the recorded requests instead."""

    def do_GET(self) -> None:
        self._send_json(200, {"object": "list", "data": [{"id": "stub", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = ChatRequest(body, dict(self.headers))
        reply = self.server.model.answer(request)
        if reply.status != 200:
            self._send_json(reply.status, {"error": {"message": reply.text, "type": "stub", "code": None}})
        elif request.stream:
            self._stream(request, reply)
        else:
            self.server.model.pause(reply.delay)
            self._send_json(200, _completion(request, reply))

    def _send_json(self, status: int, value: Json) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, request: ChatRequest, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for sent, chunk in enumerate(_chunks(request, reply)):
            if sent == reply.cut_after:
                return
            self.server.model.pause(reply.delay)
            self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            self.wfile.flush()
        self.wfile.write(b"data: [DONE]\n\n")


def _message(reply: Reply) -> Json:
    message: Json = {"role": "assistant", "content": reply.text or None, **reply.beside}
    if reply.tool_calls:
        message["tool_calls"] = [
            {"id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for at, (name, arguments) in enumerate(reply.tool_calls)
        ]
    return message


def _usage(request: ChatRequest, reply: Reply) -> Json:
    prompt, completion = len(request.text.split()), len(reply.text.split())
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _finish(reply: Reply) -> str:
    return reply.finish or ("tool_calls" if reply.tool_calls else "stop")


def _completion(request: ChatRequest, reply: Reply) -> Json:
    choice = {"index": 0, "message": _message(reply), "finish_reason": _finish(reply)}
    return {
        "id": "chatcmpl-stub",
        "object": "chat.completion",
        "created": 0,
        "model": request.model,
        "choices": [choice],
        "usage": _usage(request, reply),
    }


def _chunks(request: ChatRequest, reply: Reply) -> Iterator[Json]:
    """Yield the chunks of a streamed completion: one per word, tool calls whole, then the end and the usage."""
    head = {"id": "chatcmpl-stub", "object": "chat.completion.chunk", "created": 0, "model": request.model}

    def chunk(delta: Json, finish: str | None = None) -> Json:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    if reply.beside:
        yield chunk({"role": "assistant", "content": ""})
    for name, value in reply.beside.items():
        for part in re.findall(r"\S+\s*|\s+", value):
            yield chunk({name: part})
    for word in re.findall(r"\S+\s*|\s+", reply.text):
        yield chunk({"role": "assistant", "content": word})
    for at, call in enumerate(_message(reply).get("tool_calls", [])):
        yield chunk({"role": "assistant", "tool_calls": [{"index": at, **call}]})
    yield chunk({}, _finish(reply))
    yield {**head, "choices": [], "usage": _usage(request, reply)}
