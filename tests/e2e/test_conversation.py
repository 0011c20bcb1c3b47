"""A conversation that is remembered, over crashes, through both SDKs."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from memory.context.tokens import count_tokens
from memory.namespaces import Owner
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.javascript import run_javascript
from tests.e2e.scripted import Scripted, is_chat, is_extraction
from tests.e2e.speaking import Choices, Speak, say, speak_javascript, speak_python
from tests.e2e.waiting import eventually
from tests.stub_model import ChatRequest, StubModel, always

SMALL = {"max_tokens": 900, "max_summary_tokens": 120, "memory_tokens": 200, "reply_tokens": 100}
PLANS = "They plan a trip to Lofoten in July, by ferry, with Ada's green tent."

both_sdks = pytest.mark.parametrize(
    ("speak", "sdk"),
    [pytest.param(speak_python, "python", id="python"), pytest.param(speak_javascript, "javascript", id="javascript")],
)


@pytest.fixture(scope="module")
def shared_server(serve: Serve) -> DevServer:
    """The shipped server, as a newcomer starts it, in the strictest mode of reading checkpoints."""
    return serve(LANGGRAPH_STRICT_MSGPACK="true", PALIMPSEST_DEBOUNCE_SECONDS="1.5")


@pytest.fixture
def server(shared_server: DevServer) -> DevServer:
    """The shared server, up again if the test before crashed it and failed."""
    if not shared_server.running:
        shared_server.start()
    return shared_server


@pytest.fixture
def client(server: DevServer, model: StubModel) -> Iterator[SyncLangGraphClient]:
    model.respond = Scripted()
    with get_sync_client(url=server.url) as client:
        yield client


def facts(client: SyncLangGraphClient, user_id: str, agent_name: str = "default") -> list[str]:
    """What the user's memory holds, as the store's API shows it."""
    found = client.store.search_items(Owner.of(user_id, agent_name).namespace("facts"), limit=100)
    return [item["value"]["content"] for item in found["items"]]


def prompts(model: StubModel) -> list[ChatRequest]:
    return [request for request in model.requests if is_chat(request)]


def summarized(client: SyncLangGraphClient, thread_id: str) -> set[str]:
    """Ids of the messages that the thread's summary stands for, as a client sees them in the state."""
    values: Any = client.threads.get_state(thread_id)["values"]
    summary = values.get("context", {}).get("running_summary")
    if summary is None:
        return set()
    assert summary["summary"] == PLANS
    return set(summary["summarized_message_ids"])


@both_sdks
def test_C1_G2_a_long_thread_goes_on_with_its_summary_after_kill_9(
    server: DevServer, client: SyncLangGraphClient, model: StubModel, speak: Speak, sdk: str, kills: int
) -> None:
    small = {**SMALL, "user_id": f"traveller-{sdk}"}
    model.respond = Scripted(summary=always(PLANS))
    thread, before = None, set[str]()
    for n in range(20):
        thread, _ = speak(
            server, f"Message {n}: " + "the ferry leaves at seven, the tent is green. " * 8, thread, small
        )
        # A summary is asked for before it is due: the state says when it is.
        if before := summarized(client, thread):
            break
    assert thread
    assert before

    for crash in range(kills):
        server.kill9()
        server.start()
        assert speak(server, f"Where to? ({crash})", thread, small).answer == "Noted."
        # The development server carries a run out again that had ended less than 10 s before the crash.
        (prompt,) = [prompt for prompt in prompts(model) if prompt.last == f"Where to? ({crash})"]
        assert PLANS in prompt.text
        assert "Message 0:" not in prompt.text
        assert count_tokens(prompt.text) <= SMALL["max_tokens"]
        assert summarized(client, thread) >= before


@both_sdks
def test_F1_a_fact_told_before_kill_9_is_in_the_prompt_of_a_new_thread(
    server: DevServer, client: SyncLangGraphClient, model: StubModel, speak: Speak, sdk: str
) -> None:
    user = f"stored-{sdk}"
    model.respond = Scripted(learns={"moved to Bergen": "User lives in Bergen."})
    speak(server, "I moved to Bergen.", None, {"user_id": user})
    eventually(lambda: facts(client, user))

    server.kill9()
    server.start()
    model.clear()
    speak(server, "Will it rain?", None, {"user_id": user})

    (prompt,) = (one for one in prompts(model) if "Will it rain?" in one.last)  # a killed run may be repeated beside it
    assert "- [knowledge | 0.90] User lives in Bergen." in prompt.text


@both_sdks
def test_B4_a_turn_whose_extraction_was_killed_is_extracted_after_the_restart(
    server: DevServer, client: SyncLangGraphClient, model: StubModel, speak: Speak, sdk: str
) -> None:
    user = f"pending-{sdk}"
    gate = threading.Event()
    model.respond = Scripted(learns={"allergic to nuts": "User is allergic to nuts."}, extraction_gate=gate)
    speak(server, "I am allergic to nuts.", None, {"user_id": user})
    model.wait_for(lambda request: is_extraction(request) and "allergic to nuts" in request.text)
    server.kill9()
    gate.set()

    server.start()
    eventually(lambda: facts(client, user))
    model.clear()
    speak(server, "What may I eat?", None, {"user_id": user})

    (prompt,) = (one for one in prompts(model) if "What may I eat?" in one.last)  # as above
    assert "- [knowledge | 0.90] User is allergic to nuts." in prompt.text


def test_a_fact_is_learnt_once_however_often_the_server_crashes(
    server: DevServer, client: SyncLangGraphClient, model: StubModel, kills: int
) -> None:
    model.respond = Scripted(learns={"collect stamps": "User collects stamps."})
    for _ in range(kills):
        speak_python(server, "I collect stamps.", None, {"user_id": "crashes"})
        model.wait_for(lambda request: is_extraction(request) and "collect stamps" in request.text)
        server.kill9()
        model.clear()
        server.start()

    eventually(lambda: facts(client, "crashes"), timeout=240)
    assert facts(client, "crashes") == ["User collects stamps."]


def test_G1_assistants_have_contexts_of_their_own_python(client: SyncLangGraphClient, model: StubModel) -> None:
    answers = []
    model.respond = Scripted(chat=lambda request: request.messages[0]["content"].split(".")[0])
    for context in ({"system_prompt": "You are a pirate."}, {"system_prompt": "You are a poet."}):
        assistant = client.assistants.create("chat", context=context)
        thread = client.threads.create()
        state: Any = client.runs.wait(thread["thread_id"], assistant["assistant_id"], input=say("Who?"))
        answers.append(state["messages"][-1]["content"])

    assert answers == ["You are a pirate", "You are a poet"]


def test_G1_assistants_have_contexts_of_their_own_javascript(
    server: DevServer, client: SyncLangGraphClient, model: StubModel
) -> None:
    model.respond = Scripted(chat=lambda request: request.messages[0]["content"].split(".")[0])

    answers = run_javascript(
        "assistants.mjs",
        url=server.url,
        text="Who?",
        contexts=[{"system_prompt": "You are a pirate."}, {"system_prompt": "You are a poet."}],
    )

    assert answers == ["You are a pirate", "You are a poet"]


def test_agents_of_one_user_have_memories_of_their_own(
    server: DevServer, client: SyncLangGraphClient, model: StubModel
) -> None:
    model.respond = Scripted(learns={"like jazz": "User likes jazz."})
    speak_python(server, "I like jazz.", None, {"user_id": "listener", "agent_name": "music"})
    eventually(lambda: facts(client, "listener", "music"))

    for agent in ("music", "cooking"):
        speak_python(server, "What do I like?", None, {"user_id": "listener", "agent_name": agent})

    asked = [prompt for prompt in prompts(model) if "What do I like?" in prompt.last]
    assert ["User likes jazz." in prompt.text for prompt in asked] == [True, False]


BAD_CONTEXTS = [
    pytest.param({"max_tokens": "seven"}, "max_tokens", id="no number"),
    pytest.param({"max_tokens": -1}, "max_tokens", id="too small"),
    pytest.param({"agent_name": "../eve"}, "agent_name", id="agent name"),
    pytest.param({"transcript": "burn"}, "transcript", id="transcript"),
    pytest.param({"update_summary_prompt": "Go on."}, "update_summary_prompt", id="prompt without summary"),
]


@pytest.mark.parametrize(("context", "field"), BAD_CONTEXTS)
def test_a_bad_context_value_is_refused_with_the_fields_name_python(
    client: SyncLangGraphClient, model: StubModel, context: Choices, field: str
) -> None:
    thread = client.threads.create()
    with pytest.raises(Exception, match=field):
        client.runs.wait(thread["thread_id"], "chat", input=say("hi"), context=context)
    assert prompts(model) == []


@pytest.mark.parametrize(("context", "field"), BAD_CONTEXTS[:2])
def test_a_bad_context_value_is_refused_with_the_fields_name_javascript(
    server: DevServer, client: SyncLangGraphClient, model: StubModel, context: Choices, field: str
) -> None:
    assert field in run_javascript("refused.mjs", url=server.url, context=context)["message"]
    assert prompts(model) == []


@pytest.mark.parametrize("node", [None, "call_model"])
def test_messages_that_a_client_removes_are_nowhere_in_the_thread(
    client: SyncLangGraphClient, model: StubModel, node: str | None
) -> None:
    model.respond = Scripted(chat=always("Noted."))
    thread_id = client.threads.create()["thread_id"]
    client.runs.wait(thread_id, "chat", input=say("I grow quinces behind the house."))
    messages: Any = client.threads.get_state(thread_id)["values"]
    removed = [{"type": "remove", "id": each["id"], "content": ""} for each in messages["messages"]]
    client.threads.update_state(thread_id, {"messages": removed}, as_node=node)
    state: Any = client.threads.get_state(thread_id)
    assert state["values"]["messages"] == []
    assert "quinces" not in str([state, client.threads.get(thread_id)])
    again: Any = client.runs.wait(thread_id, "chat", input=say("Hello."))
    assert [each["content"] for each in again["messages"]] == ["Hello.", "Noted."]
    assert "quinces" not in str(again)
