"""Exports are read as what was said: the branch that counts, in its own times, whatever else a file holds."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.cli.importing import gather
from memory.backfill.conversation import Conversation, Flaw, said_by
from memory.backfill.exports import read_exported
from memory.backfill.files import Unreadable, read_file
from tests.exports import FIGS, chatgpt, claude, jsonl, zipped

BEGUN = "2023-04-05T10:00:00"
TEXTS = [text for _, text in FIGS]


def texts(found: Conversation | Flaw) -> list[str]:
    assert isinstance(found, Conversation), found
    return [one.text for one in found.messages]


def written(tmp_path: Path, content: bytes | str) -> Path:
    path = tmp_path / "given.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(tmp_path: Path, content: bytes | str) -> list[Conversation | Flaw]:
    found = list(read_file(written(tmp_path, content)))
    return [one for one in found if isinstance(one, Flaw) or one.messages]


@pytest.mark.parametrize("make", [chatgpt, claude])
def test_an_export_is_read_from_its_zip_its_list_and_one_conversation(make: Any, tmp_path: Path) -> None:
    value = make("c1", BEGUN, FIGS)
    read_as = [
        read(tmp_path, zipped([value])),
        read(tmp_path, zipped([value], "export/conversations-000.json")),
        read(tmp_path, json.dumps([value])),
        read(tmp_path, json.dumps([value], indent=2)),
        read(tmp_path, b"\xef\xbb\xbf\n " + json.dumps([value]).encode()),
        read(tmp_path, json.dumps(value, indent=1)),
        read(tmp_path, json.dumps(value) + "\n"),
    ]
    for each in read_as:
        assert [texts(one) for one in each] == [TEXTS]
        assert each == read_as[0]
    (found,) = read_as[0]
    assert isinstance(found, Conversation)
    assert (found.id, found.messages[0].time) == ("c1", "2023-04-05T10:00:00+00:00")
    assert [one.role for one in found.messages] == ["user", "assistant", "user", "assistant"]


def test_of_a_tree_the_branch_is_read_that_the_user_saw_last() -> None:
    value = chatgpt("c1", BEGUN, FIGS)
    edited = json.loads(json.dumps(value["mapping"]["c1-3"]))
    edited |= {"id": "edited", "parent": "c1-2"}
    edited["message"] |= {"id": "edited", "content": {"content_type": "text", "parts": ["My sister lives in Bodø."]}}
    value["mapping"]["edited"] = edited
    value["current_node"] = "edited"
    assert texts(read_exported(value)) == [*TEXTS[:2], "My sister lives in Bodø."]
    del value["current_node"]
    value["mapping"]["root"] = value["mapping"].pop("root", {"message": None})  # nodes stand in any order
    assert texts(read_exported(value)) == [*TEXTS[:2], "My sister lives in Bodø."]


def test_only_talk_is_read() -> None:
    value = chatgpt("c1", BEGUN, FIGS)
    for key, change in {
        "c1-1": {"content": {"content_type": "user_editable_context", "user_profile": "secret"}},
        "c1-2": {"recipient": "python"},
        "c1-3": {"content": {"content_type": "multimodal_text", "parts": [{"asset_pointer": "x"}, "A cat.", None]}},
        "c1-4": {"author": {"role": "tool"}},
    }.items():
        value["mapping"][key]["message"] |= change
    assert texts(read_exported(value)) == ["A cat."]


def test_claudes_branches_end_at_the_newest_message() -> None:
    value = claude("c1", BEGUN, FIGS)
    for before, message in zip([None, *value["chat_messages"]], value["chat_messages"], strict=False):
        message["parent_message_uuid"] = before["uuid"] if before else "00000000-0000-4000-8000-000000000000"
    again = {**value["chat_messages"][-1], "uuid": "again", "text": "Hm.", "content": []}
    value["chat_messages"].append(again)
    assert texts(read_exported(value)) == [*TEXTS[:3], "Hm."]


def test_lines_are_read_and_bad_ones_named(tmp_path: Path) -> None:
    lines = jsonl("a", BEGUN, FIGS[:2]) + "\n" + jsonl("b", BEGUN, FIGS[2:])
    lines += '{"role": "user", "content": "No time."}\nno json\n[]\n{"content": "x"}\n'
    lines += '{"role": "system", "content": "You are helpful."}\n'
    lines += '{"role": "User ", "content": "Hello.", "time": 1700000000}\n'
    lines += '{"role": "user", "content": "Last.", "time": 1700000000}\n'
    first, second, *flaws, last = read(tmp_path, lines)
    assert [texts(first), texts(second), texts(last)] == [TEXTS[:2], TEXTS[2:], ["Last."]]
    assert isinstance(last, Conversation)
    assert (last.id, last.messages[0].time) == ("given", "2023-11-14T22:13:20+00:00")
    assert [flaw.place.rpartition(" ")[2] for flaw in flaws if isinstance(flaw, Flaw)] == ["6", "7", "8", "9", "11"]
    reasons = [flaw.reason for flaw in flaws if isinstance(flaw, Flaw)]
    assert reasons[0].startswith("time must be ISO 8601")
    assert reasons[1] == "it is no object of JSON in UTF-8"
    assert "a line must have role, content and time" in reasons[3]
    assert reasons[4] == "role must be user or assistant, not 'User '"


def test_what_a_tool_says_between_two_people_makes_neither_of_them_the_user(tmp_path: Path) -> None:
    said = [("user", "Ann"), ("tool", ""), ("user", "Bob"), ("system", ""), ("assistant", "")]
    lines = [
        {"conversation": "trip", "role": role, "name": name, "content": f"{role} {name}", "time": 1_700_000_000 + at}
        for at, (role, name) in enumerate(said)
    ]
    (found,) = gather([str(written(tmp_path, "\n".join(map(json.dumps, lines))))]).conversations
    assert [(one.role, one.name) for one in found.messages] == [("other", "Ann"), ("other", "Bob"), ("assistant", "")]


@pytest.mark.parametrize("time", ["20231114", "20231114T000000Z", "2023-11-14T00", 1_699_920_000])
def test_a_time_in_any_form_of_iso_8601_is_that_time(time: object) -> None:
    said = said_by("user", "I moved to Bergen.", time)
    assert said
    assert said.time == "2023-11-14T00:00:00+00:00"


@pytest.mark.parametrize("time", ["1699920000", "yesterday", "", None, True])
def test_what_is_no_time_is_refused(time: object) -> None:
    with pytest.raises(ValueError, match="time must be ISO 8601"):
        said_by("user", "I moved to Bergen.", time)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is no JSON"),
        (b"hello", "is no JSON"),
        (b'[{"mapping": {', "or was cut off"),
        (b'[{"mapping": {}}, ', "or was cut off"),
        (b"[{} {}]", "(char 4)): give"),
        (b"PK\x03\x04 broken", "is a broken ZIP"),
        (b'{"format": "palimpsest.memory", "schema": 1}\n', "`palimpsest import` takes it in"),
    ],
)
def test_a_broken_file_is_named_with_the_place_and_the_fix(content: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(Unreadable) as error:
        read(tmp_path, content)
    assert str(error.value).startswith(str(tmp_path / "given.json"))
    assert said in str(error.value)


def test_one_bad_conversation_costs_no_other(tmp_path: Path) -> None:
    bad = chatgpt("bad", BEGUN, FIGS) | {"mapping": 7}
    timeless = claude("timeless", BEGUN, FIGS)
    timeless["created_at"] = None
    timeless["chat_messages"][1]["created_at"] = "yesterday"
    found = read(tmp_path, json.dumps([bad, chatgpt("good", BEGUN, FIGS), 7, {}, timeless]))
    assert [type(each) for each in found] == [Flaw, Conversation, Flaw, Flaw, Flaw]
    assert [each.place.rpartition(" ")[2] for each in found if isinstance(each, Flaw)] == ["1", "3", "4", "5"]


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=6),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "mapping",
                        "chat_messages",
                        "current_node",
                        "message",
                        "author",
                        "role",
                        "content",
                        "parts",
                        "text",
                        "parent",
                        "create_time",
                        "uuid",
                        "sender",
                        "created_at",
                        "a",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=20,
    )
)
def test_whatever_an_entry_holds_it_is_read_or_refused(value: Any) -> None:
    if isinstance(value, dict):
        with contextlib.suppress(ValueError):
            read_exported(value)
