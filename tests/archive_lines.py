"""What exports say, as lists by the names of their parts, and such lists as an export."""

import json
from collections.abc import Mapping
from typing import Any

PARTS = {"facts": "fact", "history": "history", "journal": "journal", "updates": "update"}
JSON_LINES = {"Content-Type": "application/jsonl"}


def lines_of(document: Mapping[str, Any]) -> str:
    """An export with the profile and the lists of a document."""
    lines: list[Any] = [{"format": "palimpsest.memory", "schema": 1}]
    lines += [{part: each} for name, part in PARTS.items() for each in document.get(name, ())]
    lines += [{"profile": document["profile"]}] if "profile" in document else []
    return "".join(json.dumps(line) + "\n" for line in lines)


def document_of(text: str) -> dict[str, Any]:
    """What an export says, each part as a list under its plural."""
    head, *lines = (json.loads(line) for line in text.split("\n") if line)
    document: dict[str, Any] = {**head, "profile": {}, **{name: [] for name in PARTS}}
    plural = {part: name for name, part in PARTS.items()}
    for line in lines:
        ((part, entry),) = line.items()
        if part == "profile":
            document["profile"] = entry
        else:
            document[plural[part]].append(entry)
    return document


def taking(document: Mapping[str, Any]) -> dict[str, Any]:
    """What a request says that takes it in."""
    return {"content": lines_of(document), "headers": JSON_LINES}
