"""Exports of other services: what somebody pasted is no word of theirs, and what is left out is counted."""

import asyncio
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from palimpsest import MemoryService
from tests.command_line import AsAda, Typed
from tests.fakes import Clock, learns
from tests.laws.doors import House

LETTER = "I like landlords. " + "The rent is due. " * 20_000


def claude(number: int, text: str, sender: str = "human", **more: Any) -> dict[str, Any]:
    return {"uuid": f"u{number}", "sender": sender, "text": text, "created_at": "2026-05-01T10:00:00Z", **more}


def pasted(text: str, name: str = "") -> dict[str, str]:
    return {"file_name": name, "extracted_content": text}


def chatgpt(number: int, kind: str, *parts: Any, role: str = "user") -> dict[str, Any]:
    message = {"author": {"role": role}, "create_time": 1.7e9, "content": {"content_type": kind, "parts": parts}}
    return {"parent": f"n{number - 1}", "message": message}


TALKS = [
    claude(1, "", attachments=[pasted(LETTER)]),
    claude(2, "I see.", "assistant"),
    claude(3, "I like law. Read it.", attachments=[pasted("I like suits.", "letter.txt"), {"file_name": "a.bin"}]),
    claude(4, "Read.", "assistant", content=[{"type": "tool_use"}], files=[{"file_name": "b.png"}]),
    claude(5, "", content=[{"type": "voice_note", "text": "I like aunts."}]),
]
TREE = {
    "n1": chatgpt(1, "multimodal_text", "I like figs.", {"content_type": "image_asset_pointer"}),
    "n2": chatgpt(2, "thoughts", role="assistant"),
    "n3": chatgpt(3, "text", "It is 3.", role="tool"),
    "n4": chatgpt(4, "text", "Nice.", role="assistant"),
    "edited": chatgpt(1, "text", "I like dates."),
}
MEMORIES = {
    "conversations_memory": "**Work**\n\n- Ada likes nursing. She likes nights.",
    "project_memories": {"p": "Ada likes boats. My door code is 4417."},
}


@pytest.fixture
def ada() -> Typed:
    """A person whose server learns at once."""
    house = House(InMemoryStore(), InMemorySaver(), {}, Clock(), kind=MemoryService)
    house.memory.respond = learns
    asyncio.run(house.sweep())  # a process works on the stores that it has swept
    return Typed(AsAda(house.app), {"PALIMPSEST_TOKEN": "ada"})


def test_an_export_is_learned_kept_left_waiting_or_counted(ada: Typed, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "claude.zip", "w") as archive:
        archive.writestr("x/conversations.json", json.dumps([{"uuid": "k", "chat_messages": TALKS}]))
        archive.writestr("x/memories.json", json.dumps([MEMORIES]))
        archive.writestr("x/projects.json", "[]")
    (tmp_path / "chatgpt.json").write_text(json.dumps([{"id": "c", "mapping": TREE, "current_node": "n4"}]))
    files = [str(tmp_path / name) for name in ("claude.zip", "chatgpt.json")]
    done = ada.json("backfill", *files)
    assert (done["messages"], done["pasted"], done["facts"]) == (8, 2, 4)
    assert done["left_out"] == {
        "projects.json": 1,
        "attachment": 1,
        "tool_use": 1,
        "file": 1,
        "image_asset_pointer": 1,
        "thoughts": 1,
        "tool or hidden message": 1,
        "message of another branch": 1,
    }
    assert "1 tool_use" in ada("backfill", *files)
    facts = ada.json("facts", "list")["facts"]
    assert sorted(fact["content"] for fact in facts) == ["Likes aunts", "Likes figs", "Likes law"]
    waiting = ada.json("facts", "list", "--status", "waiting")["facts"]
    known = ["Ada likes boats.", "Ada likes nursing.", "She likes nights."]
    assert sorted(fact["content"] for fact in waiting) == known
    journal = ada("export")
    assert "[letter.txt] I like suits." in journal
    assert len(journal) < len(LETTER) / 2


def test_what_a_person_said_no_to_does_not_wait_again(ada: Typed, tmp_path: Path) -> None:
    (tmp_path / "memories.json").write_text(json.dumps([MEMORIES]))
    ada("backfill", str(tmp_path / "memories.json"))
    refused, *others = ada.json("facts", "list", "--status", "waiting")["facts"]
    for each in refused, *ada.json("facts", "list", "--status", "quarantined")["facts"]:
        ada("facts", "delete", each["id"])
    ada("backfill", str(tmp_path / "memories.json"))
    assert ada.json("facts", "list", "--status", "waiting")["facts"] == others
    assert ada("facts", "list", "--status", "quarantined") == ""
    ada("erase", "source", "claude", "--yes")
    assert ada("facts", "list", "--status", "waiting") == ""
