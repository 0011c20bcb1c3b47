"""A backfill of two conversations of hundreds of turns, on a real server: killed half-way, as if it had not been."""

import json
import re
import signal
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.backfilling import ran, started
from tests.e2e.dev_server import DevServer
from tests.e2e.waiting import eventually
from tests.locomo import as_jsonl, locomo_shaped
from tests.stub_model import ChatRequest, StubModel

pytestmark = pytest.mark.timeout(1200)  # three times forty extractions, and a start after a kill

_OWN = [
    locomo_shaped(("Ines", "Tore"), datetime(2022, 3, 4, 9, 30), sessions=20, turns=20, seed=1),
    locomo_shaped(("Ravi", "Lena"), datetime(2022, 9, 1, 16, 5), sessions=25, turns=16, seed=2),
]
# What people tell of themselves, taken as it stands.
_TELLS = re.compile(
    r"\bI(?: like|(?: have|'ve| just|'m| am|'d)? (?:got|been|started|went|took|made|love|want)\w*) [^.,!?]{4,80}"
)


class Learns:
    """A memory model that takes what each message tells first as a fact; on the way it may be told to hang."""

    def __init__(self) -> None:
        self.asked = 0
        self.hang_from = 10**9
        self.gate = threading.Event()

    def __call__(self, request: ChatRequest) -> Any:
        if not request.schema:
            return "Noted."
        self.asked += 1
        if self.asked >= self.hang_from:
            self.gate.wait(600)
        said = re.findall(r"^\[(\d+)\] user[^:]*: (.*)$", request.last, re.MULTILINE)
        found = [(int(number), told[0]) for number, text in said if (told := _TELLS.search(text))]
        known = {"action": "new", "known": 0, "category": "preference", "confidence": 0.9}
        return json.dumps({"facts": [{"message": at, "content": told, **known} for at, told in found], "profile": []})


@pytest.fixture(params=["own", "public"])
def conversations(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """Two conversations: of our own, and the first two public ones of the folder that `--data` names."""
    if request.param == "own":
        return _OWN
    folder = request.config.getoption("--data")
    files = sorted(Path(folder).glob("locomo/*.json"))[:2] if folder else []
    if len(files) < 2:
        pytest.skip("needs two conversations of LoCoMo: --data=DIR names a folder with locomo/*.json")
    return [json.loads(file.read_text("utf-8")) for file in files]


def pages(memory: httpx.Client, path: str, name: str) -> Iterator[dict[str, Any]]:
    """Yield all of a list, page by page."""
    offset = 0
    while True:
        page = memory.get(path, params={"limit": 1000, "offset": offset}).json()
        yield from page[name]
        offset += len(page[name])
        if offset >= page["total"]:
            return


def learned(memory: httpx.Client) -> tuple[list[str], list[tuple[str, list[tuple[str, str, str]]]]]:
    """Return what memory holds: the facts, and the lines of the journal with who said what on which day."""
    facts = sorted(each["content"] for each in pages(memory, "/facts", "facts"))
    lines = [
        (each["day"], [(one["role"], one["time"], one["text"]) for one in each["messages"]])
        for each in pages(memory, "/journal", "entries")
    ]
    return facts, sorted(lines)


def words_of(messages: list[dict[str, str]], stored: dict[str, bytes]) -> set[bytes]:
    """Return the long words of messages that no file has yet; a server writes many shorter ones of its own."""
    there = b"\n".join(stored.values())
    words = {word for one in messages for word in re.findall(r"[A-Za-z]{9,}", one["content"])}
    return {word.encode() for word in words if word.encode() not in there}


def holding(words: set[bytes], stored: dict[str, bytes]) -> dict[bytes, list[str]]:
    """Return which files hold which of the words."""
    found = {word: [name for name, content in stored.items() if word in content] for word in words}
    return {word: names for word, names in found.items() if names}


def test_two_long_conversations_killed_half_way_are_as_if_they_had_not_been(
    tmp_path: Path, model: StubModel, conversations: list[dict[str, Any]]
) -> None:
    learns = Learns()
    model.respond = learns
    files = [as_jsonl(f"talk-{number}", each) for number, each in enumerate(conversations)]
    messages = [json.loads(line) for file in files for line in file.splitlines()]
    variables = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "stub", "PALIMPSEST_DEBOUNCE_SECONDS": "0.2"}
    # Years ago, and imported today: retention counts from the import.
    with DevServer(tmp_path / "server", environment=variables) as server:
        words = words_of(messages, server.stored())
        for number, file in enumerate(files):
            (server.folder / f"talk-{number}.jsonl").write_text(file)
        command = ("backfill", *(f"talk-{number}.jsonl" for number in range(len(files))), "--source", "years")
        with httpx.Client(base_url=f"{server.url}/memory", timeout=120) as memory:
            done = ran(server, *command)
            assert (done["conversations"], done["messages"], done["waiting"], done["dead"]) == (2, len(messages), 0, 0)
            whole = learned(memory)
            asked = learns.asked
            facts, lines = whole
            assert len(facts) == len(set(facts)) >= 50
            assert sorted((one["time"], one["content"].strip()) for one in messages) == sorted(
                (time, text) for _, said in lines for _, time, text in said
            )
            ran(server, "erase", "source", "years", "--yes")
            assert learned(memory) == ([], [])

            learns.hang_from = asked + asked // 2
            broken = started(server, *command)
            # Half of it is learned, the next is being read, and all of it is evidence already.
            eventually(lambda: learns.asked >= learns.hang_from, timeout=400)
            half, there = learned(memory)
            assert 0 < len(half) < len(facts)
            assert there == lines
            broken.send_signal(signal.SIGKILL)
            broken.communicate()
            server.kill9()
            learns.hang_from = 10**9
            learns.gate.set()
            server.start()
            done = ran(server, *command)
            assert (done["waiting"], done["dead"]) == (0, 0)
            assert learned(memory) == whole

            asked = learns.asked
            again = ran(server, *command)
            assert (again["journal"], again["queued"], again["known"]) == (0, 0, len(messages))
            assert learns.asked == asked
            assert learned(memory) == whole

            # What was typed in is not the server's.
            for number in range(len(files)):
                (server.folder / f"talk-{number}.jsonl").unlink()
            assert set(holding(words, server.stored())) == words
            ran(server, "erase", "source", "years", "--yes")
            assert learned(memory) == ([], [])
            assert ran(server, "sources")["sources"] == []
            assert holding(words, server.stored()) == {}
