"""The shipped tool and the user's time zone, on a real server with the configuration that is shipped."""

import re

import httpx
import pytest

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted
from tests.e2e.speaking import say
from tests.stub_model import ChatRequest, Reply, StubModel


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="0.2")


def ask_the_time(request: ChatRequest) -> Reply | str:
    if request.tools == ["current_time"] and request.last == "What day is it?":
        return Reply(tool_calls=(("current_time", {}),))
    return f"It is {request.last}"


def test_the_model_is_told_the_time_where_the_user_is(server: DevServer, model: StubModel) -> None:
    model.respond = Scripted(chat=ask_the_time)
    asked = {"assistant_id": "chat", "input": say("What day is it?")}
    told = r"It is \w+day, \d{4}-\d\d-\d\d \d\d:\d\d \(%s\)"
    with httpx.Client(base_url=server.url, timeout=60) as client:

        def answer(**context: str) -> str:
            done = client.post("/runs/wait", json={**asked, "context": context}).json()
            return str(done["messages"][-1]["content"])

        assert re.fullmatch(told % "UTC", answer())
        assert re.fullmatch(told % "Europe/Oslo", answer(time_zone="Europe/Oslo"))
        client.put("/memory/time_zone", json={"time_zone": "Pacific/Auckland"}).raise_for_status()
        assert re.fullmatch(told % "Pacific/Auckland", answer(time_zone="Europe/Oslo"))
        assert client.get("/memory/overview").json()["time_zone"] == "Pacific/Auckland"


def test_a_time_zone_that_there_is_not_is_refused_at_every_door(server: DevServer) -> None:
    wrong = {"time_zone": "Middle/Earth"}
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for answer in (
            client.put("/memory/time_zone", json=wrong),
            client.post("/assistants", json={"graph_id": "chat", "context": wrong}),
        ):
            assert answer.status_code == 422
            assert "must be an IANA time zone such as Europe/Oslo" in answer.text
            assert "time_zone" in answer.text
