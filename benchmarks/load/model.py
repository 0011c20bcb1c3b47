"""A fake model of fixed latency that counts what it is asked, and by what purpose."""

import json
import re
import threading
import time
from collections import Counter

from benchmarks.conversations import words
from memory.context.tokens import count_tokens
from tests.stub_model import ChatRequest, Reply, StubModel

_ANSWER_WORDS, _SUMMARY_WORDS = 60, 110
_LIKES = re.compile(r"^\[(\d+)\] user[^:]*: .*?I like ([^.\n]+)", re.MULTILINE)


class LoadModel(StubModel):
    """Answers every request after the same time, as many at once as come.

    Attributes:
        calls: How often it was asked, by purpose.
        tokens: What it read and wrote, by purpose.
    """

    def __init__(self, latency: float, port: int = 0) -> None:
        super().__init__(self._after, port)
        self._latency = latency
        self._lock = threading.Lock()
        self.calls: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()

    def reset(self) -> None:
        """Count from 0 again."""
        with self._lock:
            self.calls.clear()
            self.tokens.clear()

    def _after(self, request: ChatRequest) -> Reply:
        began = time.monotonic()
        purpose = purpose_of(request)
        text = _extracted(request.last) if purpose == "extraction" else words(_SIZES[purpose], len(request.text))
        with self._lock:
            self.calls[purpose] += 1
            self.tokens[purpose] += count_tokens(request.text) + count_tokens(text)
        self.clear()  # a long run would keep every prompt
        # Counting is part of the time: the latency is the same for long prompts.
        self.pause(max(0.0, self._latency - (time.monotonic() - began)))
        return Reply(text=text)


_SIZES = {"chat": _ANSWER_WORDS, "summary": _SUMMARY_WORDS}


def purpose_of(request: ChatRequest) -> str:
    """Return what a request is for: only extraction asks for a schema, and only summaries for a summary."""
    if request.schema:
        return "extraction"
    return "summary" if "Begin at once with the summary" in request.last else "chat"


def _extracted(text: str) -> str:
    facts = [
        {"message": int(number), "action": "new", "known": 0, "content": f"User likes {what}"}
        | {"category": "preference", "confidence": 0.9}
        for number, what in _LIKES.findall(text)
    ]
    return json.dumps({"facts": facts, "profile": []})
