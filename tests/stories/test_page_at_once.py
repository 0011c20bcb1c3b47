"""What people do on the page faster than it answers, and what it says of it at once, in a browser."""

import re
from typing import Any

import pytest

from tests.archive_lines import taking
from tests.e2e.browsing import NEEDED, SECONDS, break_off, expect, fact, go, say
from tests.e2e.waiting import eventually
from tests.stories.looking import look, send
from tests.stories.people import Person

pytestmark = NEEDED


def words(page: Any) -> Any:
    """Return the box in which one types."""
    return page.locator("#chat-words")


def answers(page: Any) -> Any:
    """Return the answers."""
    return page.locator(".message.assistant .words")


def said(ada: Person) -> list[str]:
    """Return what was said in all conversations."""
    threads: list[Any] = list(ada.sdk.threads.search())
    return [each["content"] for one in threads for each in (one["values"] or {}).get("messages", [])]


def slow(page: Any, milliseconds: int) -> None:
    """Let each answer take its time."""
    line = page.context.new_cdp_session(page)
    how = {"offline": False, "latency": milliseconds, "downloadThroughput": -1, "uploadThroughput": -1}
    line.send("Network.emulateNetworkConditions", how)


def test_93_a_card_says_at_once_and_after_a_reload_what_became_of_what_was_learned(page: Any, ada: Person) -> None:
    ada.memory.put("/approval", json={"approval": "sensitive"}).raise_for_status()
    say(page, "I keep bees.")
    taken_back = page.locator(".learned li", has_text="bees")
    page.locator(".learned").get_by_role("button", name="Undo").click()
    expect(taken_back).to_contain_text("new, gone since")
    say(page, "I suffer from asthma. I run slowly. I ban asthma.")
    card = page.locator(".learned").last.locator("li")
    card.filter(has_text="suffers").get_by_role("button", name="Yes, remember").click()
    card.filter(has_text="bans").get_by_role("button", name="No").click()
    fact(page, "runs slowly").get_by_role("button", name="Pin").click()
    expect(fact(page, "runs slowly").locator(".pin")).to_be_visible()
    for _ in "at once", "after a reload":
        expect(card).to_have_text([
            "new User runs slowly.",
            "remembered by your yes User suffers from asthma.",
            "not remembered a fact that is gone",
        ])  # fmt: skip
        expect(taken_back).to_contain_text("new, gone since")
        expect(page.locator(".learned").get_by_role("button", name="Undo")).to_have_count(0)
        page.reload()
    # What is deleted in the list is gone on its card, too.
    fact(page, "runs slowly").get_by_role("button", name="Delete").click()
    expect(card.first).to_have_text("new, gone since User runs slowly.")


def test_94_an_edit_that_is_begun_stays_though_a_fact_is_added(page: Any, ada: Person) -> None:
    for content in "Likes figs", "Likes pears":
        ada.writes(content)
    look(page)
    fact(page, "figs").get_by_role("link", name="Edit").click()
    page.get_by_label("What it says").fill("Likes figs, dried")
    page.get_by_text("Add a fact", exact=True).click()
    page.get_by_label("What should be known about you?").fill("Keeps bees")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(fact(page, "Keeps bees")).to_be_visible()
    expect(page.get_by_label("What it says")).to_have_value("Likes figs, dried")
    page.get_by_role("button", name="Save").click()
    ada.knows("Likes figs, dried", "Likes pears", "Keeps bees")


def test_95_who_sends_and_begins_a_new_chat_at_once_finds_its_box_empty_and_keeps_what_they_type_then(
    page: Any, ada: Person
) -> None:
    slow(page, 700)
    send(page, "I keep bees.")
    page.get_by_role("button", name="New chat").click()
    expect(words(page)).to_have_value("")
    words(page).press_sequentially("And hens")
    eventually(lambda: "I keep bees." in said(ada))
    page.wait_for_timeout(2000)  # by then the answer to what was sent is here
    page.reload()
    expect(words(page)).to_have_value("And hens")
    page.get_by_text("Conversations").click()
    page.locator("#chat-threads a", has_text="I keep bees.").click()
    expect(page.locator(".message.user .words")).to_have_text(["I keep bees."])
    expect(words(page)).to_have_value("")


def test_96_words_that_were_sent_as_the_page_was_left_are_in_their_conversation_alone(page: Any, ada: Person) -> None:
    def leave(route: Any) -> None:
        # The page that is left goes on until the next one is there.
        eventually(lambda: "I keep bees." in said(ada))
        route.continue_()

    page.route("**/memory/page/facts", leave)
    send(page, "I keep bees.")
    page.reload()
    expect(page.locator(".message.user .words")).to_have_text(["I keep bees."])
    expect(words(page)).to_have_value("")
    expect(answers(page)).to_have_text(["Noted."])
    eventually(lambda: said(ada) == ["I keep bees.", "Noted."])


@pytest.mark.parametrize("asked", ["**/threads", "**/runs/stream"])
def test_105_words_that_nobody_got_as_the_page_was_left_are_in_the_box(page: Any, ada: Person, asked: str) -> None:
    begun = len(said(ada))
    held: list[Any] = []
    page.route(asked, lambda route: held.append(route))  # Playwright takes no method of a list
    send(page, "I keep bees.")
    eventually(lambda: page.wait_for_timeout(20) or held)
    page.reload()
    expect(words(page)).to_have_value("I keep bees.")
    expect(page.locator(".message.user")).to_have_count(0)
    page.unroute(asked)
    words(page).press("Enter")
    expect(page.locator(".message.user .words")).to_have_text(["I keep bees."])
    expect(answers(page)).to_have_text(["Noted."])
    expect(words(page)).to_have_value("")
    eventually(lambda: len(said(ada)) == begun + 2)


def test_97_the_question_before_everything_is_erased_has_the_keyboard_and_is_in_sight(page: Any, ada: Person) -> None:
    page.set_viewport_size({"width": 360, "height": 640})
    look(page, "Your data")
    page.get_by_role("link", name="Erase everything …").click()
    box = page.get_by_label("Type everything to confirm")
    expect(box).to_be_focused()
    expect(box).to_be_in_viewport()


def test_98_back_leads_to_the_same_place_of_a_long_list(page: Any, ada: Person) -> None:
    facts = [{"content": f"Knows the number {n}", "category": "goal", "confidence": 0.5} for n in range(60)]
    ada.memory.post("/import", **taking({"facts": facts})).raise_for_status()
    look(page)
    expect(page.locator(".facts > li")).to_have_count(60)
    page.evaluate("scrollTo(0, 1500)")
    go(page, "Bin")
    page.go_back()
    expect(page.locator(".facts > li")).to_have_count(60)
    eventually(lambda: abs(page.evaluate("scrollY") - 1500) < 60)


def test_99_what_the_chat_says_of_one_thing_goes_with_it(page: Any, ada: Person) -> None:
    send(page, "Count.")
    expect(answers(page)).to_contain_text("0 1")
    send(page, "And then?")
    note = page.locator("#said")
    expect(note).to_contain_text("An answer is still coming")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    expect(note).to_be_empty()
    page.locator(".message.user").get_by_role("button", name="Edit").click()
    page.get_by_label("Your message, in other words").fill("  ")
    page.get_by_role("button", name="Send anew").click()
    expect(note).to_contain_text("must say something")
    page.get_by_role("button", name="Cancel").click()
    expect(note).to_be_empty()


def test_100_an_answer_that_is_stopped_in_another_tab_keeps_its_words(page: Any, ada: Person) -> None:
    say(page, "I keep bees.")
    other = page.context.new_page()
    other.set_default_timeout(SECONDS)
    other.goto(page.url)
    other.get_by_label("Token").fill(ada.token)
    other.get_by_role("button", name="Show my memory").click()
    send(page, "Count.")
    expect(answers(other).last).to_contain_text("0 1 2")
    held: list[Any] = []
    other.route("**/state", lambda route: held.append(route) if route.request.method == "POST" else route.continue_())
    other.get_by_role("button", name="Stop").click()
    eventually(lambda: other.wait_for_timeout(20) or held)
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    expect(answers(page).last).to_contain_text("0 1 2")
    expect(page.locator(".message .problem")).to_have_count(0)
    held.pop().continue_()
    expect(answers(other).last).to_contain_text("0 1 2")
    expect(other.get_by_role("button", name="Send")).to_be_visible()
    expect(page.locator(".message .problem")).to_have_count(0)


def test_107_an_answer_that_was_whole_before_it_was_stopped_is_kept_as_far_as_it_came(page: Any, ada: Person) -> None:
    def whole(route: Any) -> None:  # its task has ended, and no checkpoint follows
        answer = route.fetch()
        ended = {**answer.json(), "next": []} if route.request.method == "GET" else answer.json()
        route.fulfill(response=answer, json=ended)

    send(page, "Count.")
    expect(answers(page)).to_contain_text("0 1 2")
    page.route("**/state", whole)
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    page.unroute_all(behavior="wait")
    say(page, "And now?")
    expect(answers(page).first).to_contain_text("0 1 2")
    assert any(each.startswith("0 1 2") for each in said(ada))


def test_101_an_address_that_is_broken_says_what_to_do(page: Any, ada: Person) -> None:
    for address in "facts?since=nonsense", "facts?offset=many", "facts?agent_name=a%20b", "bin?offset=-", "nonsense":
        page.goto(f"{ada.place.url}/memory/page/{address}")
        expect(page.get_by_text(re.compile(r"There is no such page\. Choose a part of it above\."))).to_be_visible()
        expect(page.get_by_text("Who are you?")).to_have_count(0)
        page.get_by_label("Parts of the page").get_by_role("link", name="Journal").click()
        expect(page.get_by_role("heading", name="Journal")).to_be_visible()


def test_102_all_right_after_the_last_letter_is_all_that_is_found(page: Any, ada: Person) -> None:
    for content in "Likes pears", "Likes ripe pears", "Keeps bees", "Keeps hens":
        ada.writes(content)
    look(page)
    slow(page, 300)
    page.get_by_role("searchbox").press_sequentially("pears")
    page.locator("#choose-all").check()
    page.locator("#choose").get_by_role("button", name="Delete").click()
    expect(page.locator("#said")).to_contain_text("Delete 2 facts?")
    expect(page.locator(".count")).to_have_text("2 of 4 facts")
    expect(page.locator("#choose-all")).to_be_checked()
    page.get_by_role("button", name="Yes", exact=True).click()
    expect(page.get_by_text("2 deleted.")).to_be_visible()
    ada.knows("Keeps bees", "Keeps hens")


def test_103_words_that_were_typed_last_are_in_the_address_when_one_goes_on(page: Any, ada: Person) -> None:
    ada.writes("Likes pears")
    look(page)
    page.get_by_role("searchbox").press_sequentially("pears")
    go(page, "Journal")
    page.go_back()
    expect(page.get_by_role("searchbox")).to_have_value("pears")


def test_104_a_list_closes_by_keyboard_text_has_its_direction_and_a_banner_covers_no_heading(
    page: Any, ada: Person
) -> None:
    page.get_by_text("Conversations").click()
    expect(page.locator("#chat-threads li")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#chat-threads li")).to_be_hidden()
    expect(page.locator("#chat-threads summary")).to_be_focused()
    for box in page.get_by_role("searchbox"), page.get_by_label("What should be known about you?"):
        box.fill("مرحبا")
        assert box.evaluate("box => getComputedStyle(box).direction") == "rtl"
    mend = break_off(page, "**/memory/**")
    for width in 1360, 360:
        page.set_viewport_size({"width": width, "height": 740})
        page.get_by_label("Parts of the page").get_by_role("link", name="Bin").click()
        expect(page.locator("#away")).to_be_in_viewport(ratio=1)
        banner, heading = page.locator("#away").bounding_box(), page.locator("h1").bounding_box()
        assert banner["y"] >= heading["y"] + heading["height"]
    mend()
    expect(page.locator("#away")).to_be_hidden()
