"""A thread is erased while a turn of it is under way: what was said before is not learned after, the rest is."""

from collections.abc import Callable, Iterable

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import Op, PutOp, Result
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from memory.config import MemoryConfig
from memory.effects import run
from memory.erase import erase_thread, erase_user
from memory.facts.store import FactStore
from memory.namespaces import Owner
from memory.threads import NEVER_ERASED, erased_between, read_thread_epoch, write_thread_epoch
from memory.turn import TurnEpochs
from tests.fakes import RecordingModel, learns

LOCAL = Owner.of("local")
NARROW = Context(max_tokens=900, max_summary_tokens=64, reply_tokens=64, memory_tokens=0)


def remember(messages: list[BaseMessage]) -> str:
    return learns(messages) if "Messages:" in messages[-1].text else "They talked."


class Talk:
    """One thread of the chat graph; `meanwhile` is called while the model answers."""

    def __init__(self) -> None:
        self.store = InMemoryStore()
        self.meanwhile: Callable[[], object] = lambda: None
        chat, memory = RecordingModel(respond=self._answer), RecordingModel(respond=remember)
        settings = Settings(single_user=True, trigger="run", memory=MemoryConfig(update_spacing_seconds=0))
        self.service = MemoryService(settings, lambda _, purpose: chat if purpose == "chat" else memory)
        self.graph = build_graph(service=self.service).compile(checkpointer=InMemorySaver(), store=self.store)

    def _answer(self, _: list[BaseMessage]) -> str:
        self.meanwhile()
        self.meanwhile = lambda: None
        return "Noted."

    async def say(self, text: str, context: Context | None = None) -> None:
        await self.graph.ainvoke(
            {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": "T"}}, context=context
        )

    async def learned(self) -> list[str]:
        await self.service.adrain(self.store, LOCAL)
        return [fact.content for fact in FactStore(self.store, "local").list()]


@pytest.fixture
def talk() -> Talk:
    return Talk()


@pytest.mark.parametrize("turns_before", [0, 1])
async def test_a_turn_whose_thread_is_erased_while_it_is_answered_is_not_learned(talk: Talk, turns_before: int) -> None:
    for _ in range(turns_before):
        await talk.say("Hello")
    talk.meanwhile = lambda: erase_thread(talk.store, "T")
    await talk.say("I like figs")
    assert await talk.learned() == []
    assert "figs" not in str([item.value for item in talk.store.search(("palimpsest",), limit=1000)])
    await talk.say("I like plums")
    assert await talk.learned() == ["Likes plums"]


async def test_an_erased_users_turn_is_not_learned_though_no_memory_is_shown(talk: Talk) -> None:
    talk.meanwhile = lambda: erase_user(talk.store, "local")
    await talk.say("I like figs", NARROW)
    assert await talk.learned() == []


async def test_an_erase_of_another_thread_costs_no_turn(talk: Talk) -> None:
    talk.meanwhile = lambda: erase_thread(talk.store, "another")
    await talk.say("I like figs")
    assert await talk.learned() == ["Likes figs"]


async def test_a_turn_that_is_being_written_down_while_its_thread_is_erased_is_taken_back(talk: Talk) -> None:
    class ErasesLate(InMemoryStore):
        """Erases the thread just before the turn's entry is written, after the turn looked for an erase."""

        async def abatch(self, ops: Iterable[Op]) -> list[Result]:
            listed = list(ops)
            writes = [op for op in listed if isinstance(op, PutOp) and op.value]
            if not done and any(op.namespace[-1] == "outbox" for op in writes):
                done.append(run(self, write_thread_epoch("T", "erased", 1.0)))
            return await super().abatch(listed)

    done: list[None] = []
    talk.store = ErasesLate()
    talk.graph = build_graph(service=talk.service).compile(checkpointer=InMemorySaver(), store=talk.store)
    await talk.say("I like figs")
    assert done == [None]
    assert await talk.learned() == []


@pytest.mark.parametrize("erase", [lambda store: erase_thread(store, "T"), lambda store: erase_user(store, "local")])
async def test_a_summary_after_an_erase_writes_nothing_down_that_was_said_before(
    talk: Talk, erase: Callable[[InMemoryStore], int]
) -> None:
    await talk.say("I like figs" + " word" * 60, NARROW)
    await talk.say("Hello" + " word" * 60, NARROW)
    erase(talk.store)
    for number in range(12):
        await talk.say(f"I like plum number{number}" + " word" * 60, NARROW)
    learned = await talk.learned()
    assert any("plum" in content for content in learned)
    assert not any("figs" in content for content in learned)


def test_what_could_not_be_read_stays_what_it_was() -> None:
    before = TurnEpochs("e", "t", learn_from="h1")
    assert before.followed_by(None, "h2") == before
    assert before.followed_by(TurnEpochs("e", "t"), "h2") == before
    assert before.followed_by(TurnEpochs("e", "later"), "h2") == TurnEpochs("e", "later", learn_from="h2")
    assert before.followed_by(TurnEpochs("later", "t"), "h2") == TurnEpochs("later", "t", learn_from="h2")
    assert before.followed_by(TurnEpochs("e", NEVER_ERASED), "h2") == TurnEpochs("e", NEVER_ERASED, learn_from="h1")
    assert TurnEpochs("e", "t", "3").followed_by(TurnEpochs("e", "t"), "h2").edit == "3"


def test_a_thread_keeps_its_epochs_under_the_names_that_stored_checkpoints_have() -> None:
    kept = {"epoch": "e", "thread_epoch": "t", "edit": "2.x", "learn_from": "h1"}
    assert TurnEpochs.from_state(kept) == TurnEpochs("e", "t", "2.x", "h1")
    assert TurnEpochs.from_state(kept).to_state() == kept
    assert TurnEpochs().to_state() == {}
    assert TurnEpochs.from_state({"epoch": 1, "edit": None, "basis": []}) == TurnEpochs()


def test_an_erased_threads_mark_goes_after_a_day_and_that_is_no_erase() -> None:
    store = InMemoryStore()
    run(store, write_thread_epoch("T", "first", 0.0))
    assert run(store, read_thread_epoch("T")) == "first"
    run(store, write_thread_epoch("T", "second", 10.0))
    assert erased_between("first", run(store, read_thread_epoch("T")))
    others = [f"thread {number}" for number in range(600)]  # more than there are shards
    for other in others:
        run(store, write_thread_epoch(other, "other", 90_000.0))
    assert run(store, read_thread_epoch("T")) == NEVER_ERASED
    assert not erased_between("second", NEVER_ERASED)
    assert {run(store, read_thread_epoch(other)) for other in others} == {"other"}
