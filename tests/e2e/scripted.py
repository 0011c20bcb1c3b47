"""A model for the whole agent: tells chat, summary, roll-up and extraction apart by their prompts and answers each."""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from memory import prompts
from tests.stub_model import ChatRequest, Reply, Respond, always

# The last words of each: what stands before them is filled in.
_SUMMARY_PROMPTS = tuple(
    prompt.rpartition("\n")[2] for prompt in (prompts.INITIAL_SUMMARY, prompts.UPDATE_SUMMARY, prompts.SHORTER_SUMMARY)
)
_NEW_MESSAGE = re.compile(r"^\[(\d+)\] user, [^:]*: (.*)$", re.M)


def is_extraction(request: ChatRequest) -> bool:
    return prompts.EXTRACTION.partition("{fields}")[0] in request.text


def is_summary(request: ChatRequest) -> bool:
    return any(prompt in request.text for prompt in _SUMMARY_PROMPTS)


def is_roll_up(request: ChatRequest) -> bool:
    return prompts.ROLL_UP.partition("\n")[0] in request.text


def is_chat(request: ChatRequest) -> bool:
    return not (is_extraction(request) or is_summary(request) or is_roll_up(request))


@dataclass
class Scripted:
    """Answers as a whole: `stub.respond = Scripted(learns={"moved to Bergen": "User lives in Bergen."})`.

    Attributes:
        learns: What extraction makes of a message that contains a phrase.
        corrects: The same, of a message that corrects the strongest fact.
        chat: Answers the user.
        summary: Answers a request for a summary.
        extraction_gate: Extraction hangs until it is set.
    """

    learns: Mapping[str, str] = field(default_factory=dict)
    corrects: Mapping[str, str] = field(default_factory=dict)
    chat: Respond = field(default_factory=lambda: always("Noted."))
    summary: Respond = field(default_factory=lambda: always("They talked about travelling."))
    extraction_gate: threading.Event | None = None

    def __call__(self, request: ChatRequest) -> Reply | str:
        if is_extraction(request):
            return Reply.json({"facts": self._facts(request), "profile": []}, gate=self.extraction_gate)
        if is_summary(request):
            return self.summary(request)
        return "Nothing much." if is_roll_up(request) else self.chat(request)

    def _facts(self, request: ChatRequest) -> list[dict[str, object]]:
        return [
            {
                "message": int(number),
                "action": action,
                "known": known,
                "content": content,
                "category": "knowledge",
                "confidence": 0.9,
            }
            for number, text in _NEW_MESSAGE.findall(request.text)
            for action, known, said in (("new", 0, self.learns), ("corrects", 1, self.corrects))
            for phrase, content in said.items()
            if phrase in text
        ]
