"""What was said, what a model finds in it, and the facts it makes."""

import json
from typing import Any

from memory.config import MemoryConfig
from memory.extraction.extraction import extract_facts
from memory.facts.changes import Extraction
from memory.facts.fact import Fact
from memory.message import Role, StoredMessage
from tests.fakes import RecordingModel

FRIDAY = "2026-05-08T10:00:00+00:00"


def said(text: str, *, role: Role = "user", seen: bool = False, name: str = "") -> StoredMessage:
    return StoredMessage(name or f"id of {text[:10]}", role, text, FRIDAY, seen)


def known(content: str, number: int = 1) -> Fact:
    return Fact(
        id=f"fact_{number:08}", content=content, category="knowledge", confidence=0.9, created_at="", updated_at=""
    )


def found(content: str = "User lives in Bergen", **fields: Any) -> dict[str, Any]:
    return {"content": content, "category": "knowledge", "confidence": 0.9, **fields}


def extract(*facts: Any, text: str = "I live in Bergen", existing: tuple[Fact, ...] = (), **config: Any) -> Extraction:
    model = RecordingModel(replies=[json.dumps({"facts": list(facts)})])
    return extract_facts(model, [said(text, name="m1")], existing=existing, config=MemoryConfig(**config))


def reasons(extraction: Extraction) -> list[str]:
    return [refusal.reason for refusal in extraction.refused]
