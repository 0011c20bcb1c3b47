"""What an update makes of what was written down: facts, journal lines, receipts, and nothing twice."""

from dataclasses import replace

from langchain_core.messages import AIMessage, HumanMessage

from memory.config import MemoryConfig
from memory.effects import PAGE, run
from memory.facts.store import FactStore
from memory.message import iso_time
from memory.namespaces import Owner
from memory.outbox.receipts import MAX_RECEIPTS, read_receipts, read_seen
from memory.queue.schedule import ConversationContext
from memory.queue.update_queue import MemoryUpdateQueue
from tests.memory_bench import ADA, CONFIG, MemoryBench

BOB = Owner.of("bob")


def test_an_update_makes_facts_and_leaves_nothing_pending() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    assert bench.markers() == [ADA]
    drained = bench.drain()
    assert bench.facts() == ["Likes figs"]
    assert (bench.entries(), bench.markers()) == ([], [])
    assert drained.due is None
    (receipt,) = run(bench.store, read_receipts(ADA, bench.epoch()))
    assert receipt == drained.receipts[0]
    assert receipt.messages == ("u1", "a1")
    assert [fact.id for fact in FactStore.of_owner(bench.store, ADA).list()] == [*receipt.created]


async def test_an_update_on_an_event_loop_does_the_same() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    drained = await bench.updater.adrain(ADA)
    assert (bench.facts(), bench.entries(), len(drained.receipts)) == (["Likes figs"], [], 1)


def test_entries_of_one_conversation_are_merged_into_one_model_call() -> None:
    bench = MemoryBench()
    first, second = bench.messages("I like figs"), bench.messages("I like plums", begin=2)
    bench.record(first)
    bench.record(second)
    bench.record(first, kind="cut")
    bench.drain()
    assert len(bench.model.prompts) == 1
    assert bench.facts() == ["Likes figs", "Likes plums"]
    assert bench.model.prompts[0][-1].text.count("I like figs") == 1


def test_a_long_backlog_is_read_in_portions() -> None:
    bench = MemoryBench()
    for number in range(1, 11):
        bench.say(f"I like figs{number}. " + "x" * 6000, begin=number)
    bench.drain()
    assert len(bench.model.prompts) == 4
    assert len(bench.facts()) == 10


def test_each_assistants_choice_of_a_model_is_kept() -> None:
    bench = MemoryBench()
    bench.record(bench.messages("I like figs"), model="local")
    bench.record(bench.messages("I like plums", begin=2), model="openai:x")
    bench.drain()
    assert sorted(bench.loaded) == ["local", "openai:x"]
    prompts = [prompt[-1].text for prompt in bench.model.prompts]
    assert not any(
        "figs" in prompt.split("Messages:")[1] and "plums" in prompt.split("Messages:")[1] for prompt in prompts
    )


def test_B6_flushed_messages_ask_no_model_again() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    bench.drain()
    bench.record(bench.messages("I like figs"), kind="cut")
    bench.drain()
    assert len(bench.model.prompts) == 1
    assert bench.entries() == []


def test_B6_a_hash_is_remembered_only_after_success() -> None:
    bench = MemoryBench()
    bench.model.replies.append(ConnectionError("later"))
    bench.say("I like figs")
    bench.drain()
    assert run(bench.store, read_seen(ADA, "T", bench.epoch())) == {}
    bench.drain_all()
    assert bench.facts() == ["Likes figs"]
    assert len(run(bench.store, read_seen(ADA, "T", bench.epoch()))) == 2


def test_B6_hashes_are_those_of_one_user_and_thread() -> None:
    bench = MemoryBench()
    for owner, thread in [(ADA, "T"), (BOB, "T"), (ADA, "U")]:
        bench.say("I like figs", owner=owner, thread=thread)
        bench.drain(owner)
    assert len(bench.model.prompts) == 3
    assert bench.facts(BOB) == ["Likes figs"]


def test_B6_so_many_hashes_are_kept_and_no_more() -> None:
    bench = MemoryBench(config=replace(CONFIG, seen_limit=4))
    for number in range(1, 5):
        bench.say(f"I like figs{number}", begin=number)
        bench.drain()
    assert len(run(bench.store, read_seen(ADA, "T", bench.epoch()))) == 4


def test_B7_scheduled_turns_reach_no_model_and_no_journal() -> None:
    bench = MemoryBench()
    bench.record(bench.messages("[SCHEDULED] I like reports", "I like figs"), kind="cut")
    bench.drain()
    assert "reports" not in bench.model.prompts[0][-1].text
    assert bench.facts() == ["Likes figs"]
    assert "reports" not in bench.everything_stored()


def test_B7_a_scheduled_turn_alone_asks_no_model() -> None:
    bench = MemoryBench()
    bench.say("[SCHEDULED] I like reports")
    bench.drain()
    assert (bench.model.prompts, bench.entries()) == ([], [])


def test_B8_disabled_memory_processes_nothing() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    off = MemoryBench(config=MemoryConfig(enabled=False), store=bench.store, model=bench.model)
    off.drain()
    assert (bench.model.prompts, len(bench.entries())) == ([], 1)


def test_what_a_summary_cut_after_it_was_read_takes_no_model_call_from_the_turns_beside_it() -> None:
    bench = MemoryBench()
    for number in range(1, 9):
        bench.say(f"I like thing{number}", begin=number)
    bench.drain()
    asked = len(bench.model.prompts)
    bench.record(bench.messages(*(f"I like thing{number}" for number in range(1, 9))), kind="cut")
    for number in range(9, 15):
        bench.say(f"I like thing{number}", begin=number)
    bench.drain()
    assert len(bench.model.prompts) == asked + 1
    assert len(bench.facts()) == 14
    assert bench.entries() == []


def test_C5_what_was_cut_makes_facts_and_journal_lines() -> None:
    bench = MemoryBench()
    bench.record(bench.messages("I like figs"), kind="cut")
    bench.drain()
    assert bench.facts() == ["Likes figs"]
    (line,) = bench.store.values(ADA.namespace("journal"))
    assert (line["thread_id"], line["message_ids"]) == ("T", ["u1", "a1"])
    assert line["messages"][0]["text"] == "I like figs"


def test_C5_a_journal_line_has_the_time_at_which_it_was_said() -> None:
    bench = MemoryBench()
    said = iso_time(bench.clock())
    bench.say("I like figs")
    bench.drain()
    bench.clock.advance(86_400)
    bench.record(bench.messages("I like figs"), kind="cut")
    bench.drain()
    (line,) = bench.store.values(ADA.namespace("journal"))
    assert line["from"] == said


def test_the_cap_holds_after_a_drain() -> None:
    bench = MemoryBench(config=replace(CONFIG, max_facts=3))
    bench.say(*(f"I like figs{number}" for number in range(8)))
    bench.drain()
    assert len(bench.facts()) == 3


def test_receipts_are_bounded() -> None:
    bench = MemoryBench()
    for number in range(MAX_RECEIPTS):
        bench.store.put(ADA.namespace("receipts"), f"{number}", {"time": f"2000-01-01T00:{number:04}"})
    bench.say("I like figs")
    bench.drain()
    kept = bench.store.values(ADA.namespace("receipts"))
    assert len(kept) == MAX_RECEIPTS
    assert "2000-01-01T00:0000" not in [receipt["time"] for receipt in kept]
    assert kept[-1]["created"]


def test_a_backlog_of_more_than_one_page_is_drained_whole() -> None:
    bench = MemoryBench()
    for number in range(PAGE + 50):
        bench.record(bench.messages("[SCHEDULED] report", begin=number)[:1])
    bench.drain()
    assert bench.entries() == []


def test_however_much_was_said_no_fact_is_too_many() -> None:
    bench = MemoryBench()
    for number in range(60):
        bench.say(f"I like figs{number}", begin=number)
    bench.drain()
    assert len(bench.facts()) == 60


def test_a_program_of_ones_own_gives_the_updater_to_the_queue() -> None:
    bench = MemoryBench()
    queue = MemoryUpdateQueue(
        bench.updater.process,
        memory_config=bench.config,
        clock=bench.clock,
        start_thread=lambda name, target: target() if name == "palimpsest-update" else None,
    )
    queue.add(ConversationContext("T", "ada", messages=[HumanMessage("I like figs", id="1")], kind="cut"))
    queue.add(ConversationContext("T", "ada", messages=[HumanMessage("I like plums", id="2"), AIMessage("ok", id="3")]))
    bench.clock.advance(bench.config.debounce_seconds)
    queue.tick()
    assert bench.facts() == ["Likes figs", "Likes plums"]
    assert bench.entries() == []
    lines = bench.store.values(ADA.namespace("journal"))
    assert sorted((line["message_ids"], line["source"]) for line in lines) == [(["1"], "cut"), (["2", "3"], "turn")]
