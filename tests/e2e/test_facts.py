"""What one thread tells another, through the SDK: a fact is learnt, corrected, and deleted for good."""

import asyncio

import pytest

from memory.effects import arun
from memory.facts.fact import Fact
from memory.facts.store import FactStore
from memory.namespaces import Owner
from memory.outbox.entry import Entry
from memory.outbox.outbox import read_entries
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted, is_chat, is_extraction
from tests.e2e.speaking import speak_python
from tests.e2e.waiting import eventually
from tests.stub_model import ChatRequest, Reply, StubModel

NAME, ALLERGY, OVER = "User's name is Ada.", "User is allergic to peanuts.", "User is no longer allergic to peanuts."


class Doctor(Scripted):
    """Learns a name and an allergy; when that is over, corrects the known fact by its number in the prompt."""

    def __call__(self, request: ChatRequest) -> Reply | str:
        if not is_extraction(request):
            return super().__call__(request)
        material = request.messages[-1]["content"]
        new = "\n".join(line for line in material.splitlines() if line.startswith("["))
        known = next((line for line in material.splitlines() if line.endswith(f". {ALLERGY}")), "0.")
        number = int(known.partition(".")[0])
        facts = []
        if "My name is Ada" in new:
            facts += [self.found(NAME), self.found(ALLERGY)]
        if "not allergic any more" in new:
            facts += [{**self.found(OVER), "action": "corrects", "known": number}]
        return Reply.json({"facts": facts, "profile": []})

    @staticmethod
    def found(content: str) -> dict[str, object]:
        return {
            "message": 1,
            "action": "new",
            "known": 0,
            "content": content,
            "category": "knowledge",
            "confidence": 0.9,
        }


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="0.5")


def stored(server: DevServer) -> list[Fact]:
    async def read() -> list[Fact]:
        async with server.store() as store:
            return await FactStore(store, "local").alist()

    return asyncio.run(read())


def delete(server: DevServer, fact_id: str) -> None:
    async def forget() -> None:
        async with server.store() as store:
            await FactStore(store, "local").adelete(fact_id)

    asyncio.run(forget())


def settle(server: DevServer) -> None:
    """Wait until nothing is pending: what was said has its facts and its line in the journal."""

    async def pending() -> list[Entry]:
        async with server.store() as store:
            return await arun(store, read_entries(Owner.of("local")))

    eventually(lambda: not asyncio.run(pending()))


def asked(model: StubModel) -> str:
    return [request.text for request in model.requests if is_chat(request)][-1]


def test_F1_F5_a_fact_is_learnt_corrected_and_deleted_for_good(server: DevServer, model: StubModel) -> None:
    model.respond = Doctor()
    first, _ = speak_python(server, "My name is Ada. I'm allergic to peanuts.")
    eventually(lambda: len(stored(server)) == 2)
    settle(server)

    speak_python(server, "What may I eat?")
    assert f"- [knowledge | 0.90] {ALLERGY}" in asked(model)
    assert f"- [knowledge | 0.90] {NAME}" in asked(model)

    speak_python(server, "Actually I'm not allergic any more.")
    eventually(lambda: OVER in {fact.content for fact in stored(server)})
    speak_python(server, "And now?")
    assert f"- [knowledge | 0.90] {OVER}" in asked(model)
    assert ALLERGY not in asked(model)

    settle(server)
    (over,) = (fact for fact in stored(server) if fact.content == OVER)
    delete(server, over.id)
    speak_python(server, "What do you know about me?")
    assert "peanuts" not in asked(model)
    assert NAME in asked(model)

    extractions = sum(map(is_extraction, model.requests))
    speak_python(server, "Thank you for everything.", first)
    eventually(lambda: sum(map(is_extraction, model.requests)) > extractions)
    settle(server)
    assert [fact.content for fact in stored(server)] == [NAME]
