"""What people do with what is known of them, by the API: edit, take back, erase, carry away, keep from others."""

from typing import Any

import httpx
import pytest

from tests.archive_lines import document_of, taking
from tests.e2e.waiting import eventually
from tests.stories.conftest import Meet
from tests.stories.host import Place
from tests.stories.people import REFUSED, SMALL, Person, message

YEARLY = "0 0 1 1 *"
DAY = "It swims all day and sleeps all night. " * 8


def test_21_an_edit_by_hand_wins_over_what_is_said_later(ada: Person) -> None:
    ada.says("I live in Oslo.")
    ada.knows("User lives in Oslo.")
    path = f"/facts/{ada.fact('Oslo')['id']}"
    edited = ada.memory.patch(path, json={"content": "Lives near Oslo", "pinned": True}).json()
    assert (edited["content"], edited["pinned"], edited["revision"]) == ("Lives near Oslo", True, 2)
    assert [each["content"] for each in ada.get(f"{path}/history")["revisions"]] == [
        "User lives in Oslo.",
        "Lives near Oslo",
    ]
    ada.says("I live in Oslo.")
    eventually(lambda: ada.get("/overview")["pending"] == 0)
    assert "Lives near Oslo" in ada.facts()


def test_22_what_was_deleted_does_not_come_back_from_old_messages(ada: Person) -> None:
    thread = ada.thread()
    ada.says("I live in Oslo.", thread)
    ada.knows("User lives in Oslo.")
    assert ada.memory.delete(f"/facts/{ada.fact('Oslo')['id']}").is_success
    ada.says("Good day.", thread)
    ada.knows()
    assert "User lives in Oslo" not in ada.sees("my town")
    ada.post("/undo")
    ada.knows("User lives in Oslo.")


def test_23_the_words_of_an_erased_thread_are_in_no_file(ada: Person) -> None:
    thread = ada.thread()
    for n in range(6):
        ada.says(f"{n}: I keep an axolotl. {DAY}", thread, context=SMALL)
    ada.says("I feed a heron.")
    ada.knows("User keeps an axolotl.", "User feeds a heron.")
    assert ada.place.holding("axolotl")
    assert ada.post("/erase/thread", thread_id=thread)["threads"] == 1
    eventually(lambda: ada.place.holding("axolotl") == [])
    ada.knows("User feeds a heron.")


def test_only_the_one_who_runs_a_server_reads_what_it_keeps(ada: Person) -> None:
    ada.says("I like figs.")
    kept = [ada.place.folder / ".langgraph_api", ada.place.folder / "data", *(ada.place.folder / "data").iterdir()]
    assert [path.name for path in kept if path.stat().st_mode & 0o077] == ["server.json"]


def test_24_all_of_one_user_is_in_no_file_and_a_neighbour_keeps_hers(guarded: Place, meet: Meet) -> None:
    ada, eve = meet(guarded), meet(guarded, " eve")
    for person, animal in (ada, "capybara"), (eve, "tapir"):
        person.says(f"I keep a {animal}.")
        person.knows(f"User keeps a {animal}.")
        person.sdk.crons.create("chat", schedule=YEARLY, input=message(f"Feed the {animal}."))
    ada.writes("The capybara is old")
    assert ada.post("/erase/everything", erase="everything")["threads"] == 1
    assert ada.facts() == []
    assert (ada.sdk.threads.search(), ada.sdk.crons.search(), len(eve.sdk.crons.search())) == ([], [], 1)
    eventually(lambda: guarded.holding("capybara", ".") == [])
    assert guarded.holding("tapir")
    eve.knows("User keeps a tapir.")


def test_25_a_thread_that_is_erased_while_it_is_read_teaches_nothing(ada: Person) -> None:
    thread = ada.thread()
    ada.says("(mumbled) I keep a numbat.", thread)
    ada.post("/erase/thread", thread_id=thread)
    ada.says("I keep an emu.")
    ada.knows("User keeps an emu.")
    eventually(lambda: ada.place.holding("numbat") == [])


def test_26_an_erased_fact_names_the_threads_that_still_have_its_words(ada: Person) -> None:
    thread = ada.thread()
    ada.says("I keep a quoll.", thread)
    ada.knows("User keeps a quoll.")
    cron: Any = ada.sdk.crons.create("chat", schedule=YEARLY, input=message("Feed the quoll."))
    erased = ada.post("/erase/fact", fact_id=ada.fact("quoll")["id"])
    assert (erased["still_in_threads"], erased["still_in_crons"]) == ([thread], [cron["cron_id"]])
    assert "quoll" not in ada.memory.get("/export").text
    assert "quoll" not in ada.sees("animals")


def test_64_an_erased_thread_names_the_threads_that_still_have_its_words(ada: Person) -> None:
    thread, other = ada.thread(), ada.thread()
    ada.says("I keep a dodo.", thread)
    ada.knows("User keeps a dodo.")
    ada.says("What does a dodo eat?", other)
    assert ada.post("/erase/thread", thread_id=thread)["still_in_threads"] == [other]


def test_27_an_export_goes_into_another_users_memory(guarded: Place, meet: Meet) -> None:
    ada, eve = meet(guarded), meet(guarded, " eve")
    ada.says("I live in Oslo.")
    ada.knows("User lives in Oslo.")
    ada.writes("Likes pears", pinned=True)
    document = document_of(ada.memory.get("/export").text)
    assert len(eve.memory.post("/import", **taking(document)).json()["created"]) == 2
    eve.knows("Likes pears", "User lives in Oslo.")
    assert eve.fact("pears")["pinned"]
    assert "User lives in Oslo." in eve.sees("my town")
    again = eve.memory.post("/import", **taking(document)).json()
    assert again["created"] == []


def test_28_at_the_limit_the_weakest_goes_and_can_be_restored(ada: Person) -> None:
    ada.says("I live in Oslo.")
    ada.knows("User lives in Oslo.")
    facts = [{"content": f"Knows number {n}", "category": "goal", "confidence": 0.6} for n in range(499)]
    document = {"facts": facts}
    assert len(ada.memory.post("/import", **taking(document)).json()["created"]) == 499
    likes = ada.writes("Likes pears")
    assert ada.get("/facts", limit=1)["total"] == 500
    assert ada.facts(status="evicted") == ["User lives in Oslo."]
    ada.memory.delete(f"/facts/{likes}")
    ada.post(f"/facts/{ada.fact('Oslo', status='evicted')['id']}/restore")
    assert "User lives in Oslo." in ada.facts(limit=500)


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("/facts", {"content": "", "category": "goal"}, "content"),
        ("/facts", {"content": "Likes figs", "category": "fruit"}, "category"),
        ("/facts", {"content": "Likes figs", "category": "goal", "confidence": 7.5}, "confidence"),
        ("/import", {"format": "somebody.else"}, "export it again"),
        ("/erase/everything", {"erase": "yes"}, "erase"),
    ],
)
def test_29_what_is_wrong_is_refused_with_the_name_of_the_field(
    ada: Person, path: str, body: dict[str, Any], named: str
) -> None:
    refused = ada.memory.post(path, json=body)
    assert refused.status_code == 422
    assert named in refused.text
    ada.knows()


def test_30_two_users_see_nothing_of_each_other(guarded: Place, meet: Meet) -> None:
    ada, eve = meet(guarded), meet(guarded, " eve")
    thread = ada.thread(topic="quokka")
    ada.says("I keep a quokka.", thread)
    ada.knows("User keeps a quokka.")
    mine = ada.sdk.assistants.create("chat", context={"system_prompt": "Speak of a quokka."})["assistant_id"]
    fact = ada.fact("quokka")["id"]
    assert eve.sdk.threads.search() == []
    assert eve.sdk.store.search_items([])["items"] == []
    assert mine not in str(eve.sdk.assistants.search(limit=100))
    assert "quokka" not in eve.memory.get("/export").text
    assert "quokka" not in eve.sees("animals", config={"configurable": {"langgraph_auth_user_id": ada.name}})
    for path in f"/memory/facts/{fact}", f"/threads/{thread}/state":
        assert eve.http.get(path).status_code == 404, path
        assert httpx.get(f"{guarded.url}{path}", timeout=60).status_code in (401, 403)
    for erased in {"thread_id": thread}, {"fact_id": fact}:
        eve.memory.post(f"/erase/{next(iter(erased))[:-3]}", json=erased)
    with pytest.raises(REFUSED):
        eve.says("I was here.", thread)
    ada.knows("User keeps a quokka.")


def test_31_a_shared_assistant_is_used_by_all_and_changed_by_none(guarded: Place, meet: Meet) -> None:
    olga, ada = meet(guarded, " olga", permissions=["palimpsest:operator"]), meet(guarded)
    pirate = olga.sdk.assistants.create(
        "chat", context={"system_prompt": "You are a pirate."}, metadata={"published": "true"}
    )["assistant_id"]
    assert "You are a pirate." in ada.sees(assistant=pirate)
    with pytest.raises(REFUSED):
        ada.sdk.assistants.update(pirate, context={"system_prompt": "You are a poet."})
