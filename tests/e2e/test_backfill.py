"""`palimpsest backfill` on a real server: killed half-way it goes on, doubles nothing, and is taken back as a whole."""

import json
import re
import signal
import threading
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.backfilling import ran, started
from tests.e2e.dev_server import DevServer
from tests.e2e.speaking import speak_python
from tests.e2e.waiting import eventually
from tests.exports import chatgpt, claude, zipped
from tests.stub_model import ChatRequest, StubModel

FRUITS = ["figs", "plums", "guavas", "pears", "melons", "quinces", "limes", "mangos", "lychees", "papayas"]


def talks(make: Any) -> list[Any]:
    return [
        make(
            f"{make.__name__}-{number}",
            f"2023-0{number + 1}-01T10:00",
            [("user", f"I like {fruit}."), ("assistant", "So.")],
        )
        for number, fruit in enumerate(FRUITS[:5] if make is chatgpt else FRUITS[5:])
    ]


class Learns:
    """A memory model that learns what somebody likes; on the way it may be told to hang."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.hang_from = 10**9
        self.gate = threading.Event()

    def __call__(self, request: ChatRequest) -> Any:
        if not request.schema:
            return "Noted."
        likes = re.findall(r"^\[(\d+)\] user[^:]*: .*?I like (\w+)", request.last, re.MULTILINE)
        self.asked += [fruit for _, fruit in likes]
        if len(self.asked) >= self.hang_from:
            self.gate.wait(600)
        facts = [
            {
                "message": int(n),
                "action": "new",
                "known": 0,
                "content": f"Likes {what}",
                "category": "preference",
                "confidence": 0.9,
            }
            for n, what in likes
        ]
        return json.dumps({"facts": facts, "profile": []})


def holding(server: DevServer, word: str) -> list[str]:
    files = [path for path in server.data.rglob("*") if path.is_file()]
    return sorted(path.name for path in files if word.encode() in path.read_bytes())


def test_killed_half_way_it_goes_on_and_is_taken_back(tmp_path: Path, model: StubModel) -> None:
    learns = Learns()
    model.respond = learns
    variables = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "stub", "PALIMPSEST_DEBOUNCE_SECONDS": "0.2"}
    with DevServer(tmp_path / "server", environment=variables) as server:
        (server.folder / "chatgpt.zip").write_bytes(zipped(talks(chatgpt)))
        (server.folder / "claude.zip").write_bytes(zipped(talks(claude)))
        speak_python(server, "I like walnuts.")
        with httpx.Client(base_url=f"{server.url}/memory", timeout=60) as memory:

            def likes() -> list[str]:
                return sorted(each["content"] for each in memory.get("/facts").json()["facts"])

            eventually(lambda: likes() == ["Likes walnuts"])
            learns.hang_from = len(learns.asked) + 4
            command = started(server, "backfill", "chatgpt.zip", "claude.zip")
            # Half of it is learned, one is being read, and all of it is evidence already.
            eventually(lambda: len(learns.asked) >= learns.hang_from, timeout=120)
            eventually(lambda: memory.get("/journal").json()["total"] == 11)
            command.send_signal(signal.SIGKILL)
            command.communicate()
            server.kill9()
            learns.hang_from = 10**9
            learns.gate.set()
            server.start()
            everything = sorted(f"Likes {fruit}" for fruit in [*FRUITS, "walnuts"])
            done = ran(server, "backfill", "chatgpt.zip", "claude.zip")
            assert (done["conversations"], done["messages"], done["waiting"], done["dead"]) == (10, 20, 0, 0)
            eventually(lambda: likes() == everything)
            journal = memory.get("/journal").json()
            days = sorted(entry["day"] for entry in journal["entries"])
            assert (journal["total"], days[:2]) == (11, ["2023-01-01", "2023-01-01"])
            counted = {
                each["name"]: (each["conversations"], each["learned"]) for each in ran(server, "sources")["sources"]
            }
            assert counted == {"chatgpt": (5, 10), "claude": (5, 10)}

            asked = len(learns.asked)
            again = ran(server, "backfill", "chatgpt.zip", "claude.zip")
            assert (again["journal"], again["queued"], again["known"]) == (0, 0, 20)
            assert len(learns.asked) == asked

            assert holding(server, "quinces")
            ran(server, "erase", "source", "chatgpt", "--yes")
            ran(server, "erase", "source", "claude", "--yes")
            assert likes() == ["Likes walnuts"]
            assert memory.get("/journal").json()["total"] == 1
            assert {fruit: holding(server, fruit) for fruit in FRUITS} == {fruit: [] for fruit in FRUITS}
