"""What stays where: a word said in many ways, then edited, deleted or erased, looked for in all places and bytes.

The table in docs/your-memory.md is what these tests find.
"""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.erasing import WORD, World

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "your-memory.md"
SAID = f"I keep an {WORD}."

Threads = list[str]


async def once(world: World) -> Threads:
    thread = world.thread()
    await world.say(thread, SAID)
    await world.talk_on(thread)
    return [thread]


async def twice(world: World) -> Threads:
    thread = world.thread()
    await world.say(thread, SAID)
    await world.say(thread, f"Really: {SAID}")
    await world.talk_on(thread)
    return [thread]


async def in_two_threads(world: World) -> Threads:
    return [*await once(world), *await once(world)]


async def corrected(world: World) -> Threads:
    thread, another = world.thread(), world.thread()
    await world.say(thread, SAID)
    await world.talk_on(thread)
    await world.say(another, "Now I keep a numbat.")
    return [thread]


async def confirmed(world: World) -> Threads:
    threads = await once(world)
    another = world.thread()
    await world.say(another, "Guess what animal is mine.", f"Is it an {WORD}?")
    await world.say(another, "Yes, I still have it.", "I thought so.")
    return [*threads, another]


async def echoed(world: World) -> Threads:
    thread = world.thread()
    await world.say(thread, SAID, f"An {WORD.upper()}, how nice!")
    await world.say(thread, "What does it eat?", f"Your {WORD}s eat worms.")
    return [thread]


async def summarized(world: World) -> Threads:
    threads = await once(world)
    assert "They talk of" in await world.say(threads[0], "Go on.")
    return threads


async def in_a_cron(world: World) -> Threads:
    threads = await once(world)
    world.crons.rows["c1"] = ("ada", {"payload": {"input": {"messages": [{"content": f"Feed the {WORD}"}]}}})
    return threads


async def edit(world: World, _: Threads) -> None:
    body = {"content": "Keeps a gecko"}
    assert (await world.ask("PATCH", f"/facts/{await world.fact_id()}", body)).status_code == 200


async def delete(world: World, _: Threads) -> None:
    assert (await world.ask("DELETE", f"/facts/{await world.fact_id()}")).status_code == 204


async def delete_and_undo(world: World, threads: Threads) -> None:
    await delete(world, threads)
    assert (await world.ask("POST", "/undo", {})).status_code == 200


async def erase_fact(world: World, threads: Threads) -> None:
    answer = (await world.ask("POST", "/erase/fact", {"fact_id": await world.fact_id()})).json()
    assert set(answer["still_in_threads"]) >= set(threads)
    assert answer["still_in_crons"] == list(world.crons.rows)
    assert (await world.ask("POST", "/undo", {})).status_code == 409


async def erase_thread(world: World, threads: Threads) -> None:
    assert (await world.ask("POST", "/erase/thread", {"thread_id": threads[0]})).status_code == 200
    assert (await world.ask("POST", "/undo", {})).status_code == 409


async def erase_everything(world: World, _: Threads) -> None:
    answer = (await world.ask("POST", "/erase/everything", {"erase": "everything"})).json()
    assert (answer["still_in_threads"], world.crons.rows) == ([], {})
    assert (await world.ask("POST", "/undo", {})).status_code == 409


WAYS = (once, twice, in_two_threads, corrected, confirmed, echoed, summarized, in_a_cron)
IN_OTHER_THREADS = (in_two_threads, confirmed)
ACTIONS: dict[str, Callable[[World, Threads], Awaitable[None]]] = {
    "edit (`PATCH`)": edit,
    "`DELETE`": delete,
    "`DELETE`, then undo": delete_and_undo,
    "erase the fact": erase_fact,
    "erase the thread": erase_thread,
    "erase everything": erase_everything,
}
PLACES = {
    "facts": {"facts"},
    "history of facts": {"history"},
    "pending updates": {"outbox"},
    "journal": {"journal"},
    "profile, told history": {"profile"},
    "next prompt": {"prompt"},
    "`store.sqlite`": {"store.sqlite", "store.sqlite-wal", "store.sqlite-shm"},
    "conversations": {"conversations", "checkpoints.sqlite", "checkpoints.sqlite-wal", "checkpoints.sqlite-shm"},
    "crons": {"crons"},
}


def promised(action: str) -> dict[str, str]:
    """What the document says of an action, by place."""
    lines = [re.split(r" *\| *", line.strip("| \n")) for line in DOCUMENT.read_text().splitlines() if "|" in line]
    (head,) = [line for line in lines if line[1:] == list(PLACES)]
    (row,) = [line for line in lines if line[0] == action]
    return dict(zip(head[1:], row[1:], strict=True))


@pytest.mark.parametrize("action", ACTIONS)
async def test_the_table_of_what_stays_where_is_true(action: str, tmp_path: Path) -> None:
    held: dict[str, set[str]] = {}
    for way in WAYS:
        async with World(tmp_path / way.__name__) as world:
            threads = await way(world)
            await world.next_day()
            await ACTIONS[action](world, threads)
            await world.restart()
            for thread in threads:
                if thread in world.threads.rows:
                    await world.talk_on(thread)  # what was not summarized before is now
            await world.next_day()
            for place in await world.places():
                held.setdefault(place, set()).add(way.__name__)
    others = {way.__name__ for way in IN_OTHER_THREADS}
    known = set().union(*PLACES.values())
    assert set(held) <= known, {place: ways for place, ways in held.items() if place not in known}
    found = {}
    for place, names in PLACES.items():
        ways = set().union(*(held.get(name, set()) for name in names))
        found[place] = "gone" if not ways else "of other threads" if ways <= others else "stays"
    assert found == promised(action), held


@pytest.mark.parametrize("is_cut_before", [False, True])
async def test_an_echo_of_an_erased_thread_is_named_and_not_told_a_day_later(
    tmp_path: Path, is_cut_before: bool
) -> None:
    async with World(tmp_path) as world:
        erased, other, unrelated = world.thread(), world.thread(), world.thread()
        await world.say(erased, f"I keep an {WORD}.")
        await world.say(other, "Which pet is mine?", reply=f"You told me that you keep an {WORD}.")
        await world.say(unrelated, "What is the time?")
        if is_cut_before:
            await world.talk_on(other)
            await world.next_day()
        answer = (await world.ask("POST", "/erase/thread", {"thread_id": erased})).json()
        assert (answer["still_in_threads"], bool(answer["note"])) == ([other], True)
        await world.restart()
        await world.talk_on(other)
        await world.next_day()
        assert await world.places() <= PLACES["conversations"]


async def test_what_a_person_said_in_another_thread_stays(tmp_path: Path) -> None:
    async with World(tmp_path) as world:
        erased, other = world.thread(), world.thread()
        await world.say(erased, f"I keep an {WORD}.")
        await world.say(other, f"How often does an {WORD} eat?", reply=f"An {WORD} eats daily.")
        answer = (await world.ask("POST", "/erase/thread", {"thread_id": erased})).json()
        assert answer["still_in_threads"] == [other]
        await world.talk_on(other)
        assert {"journal"} <= await world.places()
