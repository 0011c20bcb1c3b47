"""On the server as it is shipped, a tool call is carried out once: killed, stopped, approved, gone on without."""

from collections.abc import Iterator
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted, is_chat
from tests.e2e.speaking import say
from tests.e2e.waiting import eventually
from tests.laws.shop import Shop
from tests.stub_model import ChatRequest, Reply, StubModel, text_of

UNKNOWN = "No result is known. The call may have been carried out."
BOUGHT = (("pay", {"amount": 1}), ("mail", {"to": "x"}), ("pay", {"amount": 2}), ("pay", {"amount": 3}))


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEPLOYMENT="tests.e2e.support.paying:deployment", PALIMPSEST_DEBOUNCE_SECONDS="120")


@pytest.fixture
def shop(server: DevServer) -> Shop:
    shop = Shop(server.folder)
    shop.forget()
    return shop


@pytest.fixture
def sdk(server: DevServer) -> Iterator[SyncLangGraphClient]:
    with get_sync_client(url=server.url) as client:
        yield client


@pytest.fixture
def thread(sdk: SyncLangGraphClient) -> str:
    return str(sdk.threads.create(graph_id="chat")["thread_id"])


def calls_first(model: StubModel, *calls: tuple[str, dict[str, Any]]) -> None:
    """Have the model call tools, and answer when it has their results."""

    def answer(request: ChatRequest) -> Reply | str:
        return "Noted." if told(request) else Reply(tool_calls=calls)

    model.respond = Scripted(chat=answer)


def told(request: ChatRequest) -> list[str]:
    return [text_of(message) for message in request.messages if message["role"] == "tool"]


def told_last(model: StubModel) -> list[str]:
    return told([request for request in model.requests if is_chat(request)][-1])


def asked(sdk: SyncLangGraphClient, thread: str) -> dict[int, str]:
    """Return the ids of the interrupts that wait, by the amount they ask for."""
    found: Any = sdk.threads.get_state(thread)
    return {one["value"]["pay"]: one["id"] for task in found["tasks"] for one in task["interrupts"]}


@pytest.mark.parametrize("name", ["slow", "slow_pay"])
def test_a_call_in_which_the_server_was_killed_is_not_made_again(
    server: DevServer, sdk: SyncLangGraphClient, model: StubModel, shop: Shop, thread: str, name: str
) -> None:
    calls_first(model, (name, {}))
    if name == "slow":
        sdk.runs.create(thread, "chat", input=say("Do it."))
    else:
        sdk.runs.wait(thread, "chat", input=say("Do it."))
        sdk.runs.create(thread, "chat", command={"resume": "yes"})
    eventually(shop.done)
    server.kill9()
    server.start()
    sdk.threads.create(thread_id=thread, graph_id="chat", if_exists="do_nothing")
    state: Any = sdk.runs.wait(thread, "chat", input=None)
    assert state["messages"][-1]["content"] == "Noted."
    assert shop.done() == ["slow"]
    assert told_last(model) == [UNKNOWN]


def test_a_call_that_was_stopped_is_not_made_again(
    sdk: SyncLangGraphClient, model: StubModel, shop: Shop, thread: str
) -> None:
    calls_first(model, ("slow", {}), ("mail", {"to": "x"}))
    run = sdk.runs.create(thread, "chat", input=say("Do it."))["run_id"]
    eventually(lambda: len(shop.done()) == 2)
    sdk.runs.cancel(thread, run, wait=True, action="interrupt")
    sdk.runs.wait(thread, "chat", input=None)
    assert sorted(shop.done()) == ["mail x", "slow"]
    assert told_last(model) == [UNKNOWN, "sent to x"]


def test_approved_calls_run_once_and_each_gets_the_answer_to_its_own_question(
    sdk: SyncLangGraphClient, model: StubModel, shop: Shop, thread: str
) -> None:
    calls_first(model, *BOUGHT)
    sdk.runs.wait(thread, "chat", input=say("Do it."))
    ids = asked(sdk, thread)
    for amount in (3, 1, 2):
        sdk.runs.wait(thread, "chat", command={"resume": {ids[amount]: f"yes {amount}"}})
    assert shop.done() == ["mail x", "pay 3", "pay 1", "pay 2"]
    assert told_last(model) == ["paid 1, yes 1", "sent to x", "paid 2, yes 2", "paid 3, yes 3"]


def test_who_goes_on_instead_of_approving_is_told_what_was_done(
    sdk: SyncLangGraphClient, model: StubModel, shop: Shop, thread: str
) -> None:
    calls_first(model, ("pay", {"amount": 1}), ("mail", {"to": "x"}))
    sdk.runs.wait(thread, "chat", input=say("Do it."))
    sdk.runs.wait(thread, "chat", input=say("Never mind."))
    assert shop.done() == ["mail x"]
    refused, sent = told_last(model)
    assert "without approving" in refused
    assert sent == "sent to x"


def test_a_message_sent_again_under_its_own_id_repeats_no_call(
    sdk: SyncLangGraphClient, model: StubModel, shop: Shop, thread: str
) -> None:
    def fails_behind_tools(request: ChatRequest) -> Reply | str:
        return Reply(status=400, text="The model is down.") if told(request) else Reply(tool_calls=BOUGHT[1:2])

    model.respond = Scripted(chat=fails_behind_tools)
    said: Any = {"messages": [{"role": "user", "content": "Do it.", "id": "asked"}]}
    failed: Any = sdk.runs.wait(thread, "chat", input=said, raise_error=False)
    assert "The model is down." in failed["__error__"]["message"]
    calls_first(model)
    state: Any = sdk.runs.wait(thread, "chat", input=said)
    assert [message["type"] for message in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert shop.done() == ["mail x"]
