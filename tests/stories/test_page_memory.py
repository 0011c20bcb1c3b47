"""What people do with their memory on the page, in a browser: what the address says, the bin, erasing."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.archive_lines import lines_of
from tests.e2e.browsing import NEEDED, expect, fact, go, look_again, say, window
from tests.e2e.waiting import eventually
from tests.stories.looking import look
from tests.stories.people import Person

pytestmark = NEEDED


def test_64_what_was_deleted_or_replaced_is_in_the_bin_after_a_reload_and_comes_back(page: Any, ada: Person) -> None:
    ada.writes("Likes pears")
    ada.says("I like figs.")
    ada.says("Now I like plums.")
    ada.knows("Likes pears", "User likes plums.")
    look(page)
    fact(page, "pears").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("button", name="Undo")).to_be_focused()
    go(page, "Bin")
    page.reload()
    expect(fact(page, "Likes pears")).to_contain_text("deleted")
    expect(fact(page, "User likes figs.")).to_contain_text("now: User likes plums.")
    page.get_by_role("button", name="Bring back: Likes pears").click()
    expect(page.get_by_text("Brought back.")).to_be_visible()
    # What was replaced takes its place again.
    page.get_by_role("button", name="Bring back: User likes figs.").click()
    expect(page.get_by_role("button", name="Bring back: User likes plums.")).to_be_visible()
    ada.knows("Likes pears", "User likes figs.")
    # So do the words before an edit.
    ada.memory.patch(f"/facts/{ada.fact('pears')['id']}", json={"content": "Likes nuts"}).raise_for_status()
    go(page, "Facts")
    fact(page, "nuts").get_by_role("link", name="History").click()
    page.get_by_role("button", name="Bring back: Likes pears").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    ada.knows("Likes pears", "User likes figs.")


def test_65_a_fact_is_erased_for_good_after_a_question_that_says_what_goes(page: Any, ada: Person) -> None:
    say(page, "I like quinces.")
    ada.knows("User likes quinces.")
    ada.memory.patch(f"/facts/{ada.fact('quinces')['id']}", json={"content": "User grows quinces"}).raise_for_status()
    look(page)
    fact(page, "quinces").get_by_role("link", name="History").click()
    page.get_by_role("button", name="Erase for good …").click()
    asked = page.locator("#said")
    expect(asked).to_contain_text("“User likes quinces.”, “User grows quinces”")
    expect(asked).to_contain_text("Conversations that keep the words: “I like quinces.” of ")
    page.get_by_role("link", name="No", exact=True).click()
    ada.knows("User grows quinces")
    page.get_by_role("button", name="Erase for good …").click()
    page.get_by_role("button", name="Yes", exact=True).click()
    expect(page.get_by_text("Erased for good.")).to_be_visible()
    expect(page.get_by_text("Nothing is known about you yet.")).to_be_visible()
    ada.knows()
    go(page, "Bin")
    expect(page.get_by_text("Nothing is in the bin.")).to_be_visible()
    assert "quinces" not in str(ada.get("/journal"))


def test_66_one_conversation_is_erased_with_what_was_learned_and_is_told_by_its_first_words(
    page: Any, ada: Person
) -> None:
    ada.writes("Likes pears")
    for words in "I keep bees.", "I rent a boat.":
        ada.says(words)
    eventually(lambda: len(ada.facts()) == 3)
    go(page, "Journal")
    page.locator("article", has_text="I keep bees.").get_by_role("button", name="Erase this conversation").click()
    asked = page.locator("#said")
    expect(asked).to_contain_text("“I keep bees.” of ")
    expect(asked).to_contain_text("“User keeps bees.”")
    for thread in ada.sdk.threads.search():
        assert thread["thread_id"][:8] not in page.locator("body").inner_text()
    page.get_by_role("button", name="Yes", exact=True).click()
    expect(page.locator("article")).to_have_count(1)
    ada.knows("Likes pears", "User rents a boat.")
    assert len(ada.sdk.threads.search()) == 1


def test_67_the_address_says_what_is_seen(page: Any, ada: Person) -> None:
    for content, category in ("Likes pears", "preference"), ("Likes plums", "preference"), ("Keeps bees", "knowledge"):
        ada.writes(content, category=category)
    look(page)
    page.locator("#find").get_by_label("Category").select_option("preference")
    page.get_by_role("searchbox").press_sequentially("likes")
    expect(page.locator(".count")).to_have_text("2 of 3 facts")
    fact(page, "pears").get_by_role("link", name="Edit").click()
    page.get_by_label("What it says").fill("Likes ripe pears")
    # What others do is seen here, and nothing of what is written goes.
    ada.writes("Likes sloes", category="preference")
    page.evaluate("document.body.dispatchEvent(new Event('facts-changed'))")
    expect(page.locator(".count")).to_have_text("3 of 4 facts")
    expect(page.get_by_label("What it says")).to_have_value("Likes ripe pears")
    expect(page.get_by_label("What it says")).to_be_focused()

    def is_seen(where: Any) -> None:
        expect(where.locator(".count")).to_have_text("3 of 4 facts")
        expect(where.get_by_role("searchbox")).to_have_value("likes")
        expect(where.locator("#find").get_by_label("Category")).to_have_value("preference")
        expect(where.get_by_label("What it says")).to_have_count(1)

    page.reload()
    is_seen(page)
    go(page, "Journal")
    page.go_back()
    is_seen(page)
    with window(page.context.browser, ada.place.url) as other:  # a bookmark, elsewhere
        other.goto(page.url)
        other.get_by_label("Token").fill(ada.token)
        other.get_by_role("button", name="Show my memory").click()
        is_seen(other)
    # Servers log addresses, but not what stands behind the "#".
    assert "likes" in page.url.partition("#")[2]
    assert "likes" not in page.url.partition("#")[0]


def test_68_waiting_carries_its_number_and_nothing_is_behind_an_edge_or_the_header(page: Any, ada: Person) -> None:
    ada.memory.put("/approval", json={"approval": "sensitive"}).raise_for_status()
    ada.says("I suffer from asthma.")
    eventually(lambda: ada.get("/overview")["waiting"] == 1)
    look(page)
    parts = page.get_by_label("Parts of the page")
    expect(parts.get_by_role("link", name="Waiting 1")).to_be_visible()
    page.set_viewport_size({"width": 360, "height": 740})
    for link in parts.get_by_role("link").all():
        box = link.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
    for part in "Facts", "Waiting":
        go(page, part)
        for tick in page.locator("input:is([type=checkbox], [type=radio]):visible").all():
            box = tick.bounding_box()
            assert min(box["width"], box["height"]) >= 24
    page.set_viewport_size({"width": 1360, "height": 400})
    go(page, "Profile")
    page.mouse.wheel(0, 2000)
    expect(page.locator("h1")).not_to_be_in_viewport()  # else it may scroll after what follows
    page.keyboard.press("Shift+Tab")
    page.get_by_role("link", name="Skip to what is known").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#view")).to_be_focused()
    header, heading = (page.locator(each).bounding_box() for each in ("header", "h1"))
    assert heading["y"] >= header["y"] + header["height"]
    expect(page.locator("#view")).to_contain_text("What you are busy with these weeks")
    page.get_by_label("Parts of the page").get_by_role("link", name="Waiting").click()
    page.get_by_role("button", name="Yes, remember").click()
    expect(parts.get_by_role("link", name="Waiting", exact=True)).to_be_visible()


def test_69_a_note_goes_with_the_next_change_and_a_file_is_taken_in_when_that_is_pressed(
    page: Any, ada: Person, tmp_path: Path
) -> None:
    ada.writes("Likes pears")
    look(page)
    page.get_by_text("Add a fact", exact=True).click()
    for content, said in ("Likes pears", "This was known already."), ("Likes figs", "Added."):
        page.get_by_label("What should be known about you?").fill(content)
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.locator("#said")).to_have_text(said)
        expect(page.get_by_label("What should be known about you?")).to_have_value("")
    # What is pressed before the last is answered is done, too, and twice is once.
    fact(page, "figs").get_by_role("button", name="Pin").click()
    fact(page, "figs").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("1 deleted.")).to_be_visible()
    page.get_by_role("button", name="Undo").dblclick()
    expect(fact(page, "Likes figs")).to_be_visible()
    assert ada.fact("figs")["pinned"]
    file = tmp_path / "memory.jsonl"
    file.write_text(lines_of({"facts": [{"content": "Likes plums", "category": "goal", "confidence": 0.9}]}))
    go(page, "Your data")
    page.get_by_text("Bring one back").click()
    page.get_by_label("A file").set_input_files(file)
    assert len(ada.facts()) == 2
    page.get_by_role("button", name="Take it in").click()
    expect(page.locator("#said")).to_have_text("Taken in: 1 new facts; 0 were known already.")
    ada.knows("Likes pears", "Likes figs", "Likes plums")


def test_82_an_edit_of_what_was_changed_elsewhere_is_told_so_though_something_else_was_done_meanwhile(
    page: Any, ada: Person
) -> None:
    for content in "Likes pears", "Keeps bees":
        ada.writes(content)
    look(page)
    fact(page, "pears").get_by_role("link", name="Edit").click()
    page.get_by_label("What it says").fill("Likes ripe pears")
    ada.memory.patch(f"/facts/{ada.fact('pears')['id']}", json={"content": "Likes plums"}).raise_for_status()
    fact(page, "bees").get_by_role("button", name="Pin").click()
    expect(fact(page, "bees").locator(".pin")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".fact.editing")).to_contain_text("This was changed meanwhile. It says now: “Likes plums”")
    page.get_by_role("button", name="Save").click()
    ada.knows("Likes ripe pears", "Keeps bees")


def test_83_a_server_that_is_away_for_long_is_asked_no_more_often_than_in_the_beginning(page: Any, ada: Person) -> None:
    page.clock.install()
    page.reload()
    page.locator("#chat-words").wait_for()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.route("**/*", lambda route: route.abort())
    # Each of the chat's questions fails, too.
    for seconds in 120, 30:
        asked.clear()
        for _ in range(2 * seconds):
            page.clock.run_for(500)
            page.wait_for_timeout(10)
    assert len(asked) <= 40


def test_106_what_is_searched_for_while_the_server_is_away_is_found_once_it_is_back(page: Any, ada: Person) -> None:
    for content in ("Keeps bees", "Likes pears"):
        ada.writes(content)
    look(page)
    page.context.set_offline(True)
    page.get_by_role("searchbox").fill("pears")
    expect(page.get_by_text("The page tries again by itself.")).to_be_visible()
    page.context.set_offline(False)
    expect(page).to_have_url(re.compile("#text=pears"))
    expect(fact(page, "bees")).to_be_hidden()
    expect(page.get_by_text("The page tries again by itself.")).to_be_hidden()


def test_88_what_is_opened_in_a_row_stays_whatever_is_searched_for(page: Any, ada: Person) -> None:
    for content in ("Keeps bees", "Likes pears"):
        ada.writes(content)
    look(page)
    # Pressed at once after the last letter, before it is searched for.
    page.evaluate("""() => {
        const box = document.getElementById("find-text");
        box.value = "pears";
        box.dispatchEvent(new Event("input", {bubbles: true}));
        [...document.querySelectorAll(".facts > li")].find((row) => row.textContent.includes("bees"))
            .querySelector("a[href*=history]").click();
    }""")
    expect(page).to_have_url(re.compile("history=.*#text=pears"))
    expect(fact(page, "bees").get_by_text("Its history")).to_be_visible()


def test_89_a_message_is_edited_with_the_keyboard_as_it_was_written_and_never_to_blanks(page: Any, ada: Person) -> None:
    say(page, "Bees are loud.")
    say(page, "Hens are not.")
    mine, words = page.locator(".message.user"), page.get_by_label("Your message, in other words")
    mine.first.get_by_role("button", name="Edit").click()
    page.keyboard.press("Escape")
    expect(words).to_have_count(0)
    expect(page.locator("#chat-words")).to_be_focused()
    mine.first.get_by_role("button", name="Edit").click()
    words.fill("   ")
    words.press("Enter")
    expect(page.locator("#said")).to_contain_text("must say something")
    expect(mine).to_have_count(2)
    words.fill("Geese are loud.")
    words.press("Enter")
    expect(mine).to_have_count(1)
    expect(mine).to_contain_text("Geese are loud.")


def test_90_a_card_offers_no_undo_of_what_came_later(page: Any, ada: Person) -> None:
    say(page, "I keep bees.")
    card = page.locator(".learned", has_text="bees")
    card.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Taken back")).to_be_visible()
    say(page, "I grow figs.")
    ada.knows("User grows figs.")
    changed = {"content": "User grows dates."}
    ada.memory.patch(f"/facts/{ada.fact('figs')['id']}", json=changed).raise_for_status()
    page.reload()
    expect(card).to_contain_text("new, gone since")
    expect(page.locator(".learned", has_text="dates")).to_contain_text("new, edited since")
    expect(page.locator(".learned").get_by_role("button", name="Undo")).to_have_count(0)
    ada.knows("User grows dates.")


def test_91_of_many_refused_lines_the_note_says_that_there_are_more(page: Any, ada: Person, tmp_path: Path) -> None:
    go(page, "Your data")
    page.get_by_text("Bring one back").click()
    file = tmp_path / "memory.jsonl"
    file.write_text(lines_of({"facts": [{"content": f"No {n}", "category": "?", "confidence": 1} for n in range(6)]}))
    page.get_by_label("A file").set_input_files(file)
    page.get_by_role("button", name="Take it in").click()
    expect(page.locator("#said")).to_contain_text(re.compile(r"6 refused \(line 2: .*; …\)"))


@pytest.mark.parametrize("others", [("Keeps bees",), ()])
def test_92_an_edit_of_what_is_deleted_elsewhere_stays_and_who_saves_it_is_told(
    page: Any, ada: Person, others: tuple[str, ...]
) -> None:
    for content in (*others, "Likes pears"):
        ada.writes(content)
    look(page)
    fact(page, "pears").get_by_role("link", name="Edit").click()
    words = page.get_by_label("What it says")
    words.fill("Likes ripe pears")
    ada.memory.delete(f"/facts/{ada.fact('pears')['id']}").raise_for_status()
    look_again(page)
    expect(words).to_have_value("Likes ripe pears")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#said .problem")).to_be_visible()
    expect(words).to_have_value("Likes ripe pears")
