"""What people do in the chat of the page, in a browser; they wait for nothing that they do not look at."""

import re
from typing import Any

from tests.e2e.browsing import NEEDED, SECONDS, break_off, expect, go, say, serious
from tests.e2e.waiting import eventually
from tests.stories.conftest import Meet
from tests.stories.looking import send
from tests.stories.people import Person

pytestmark = NEEDED


def words(page: Any) -> Any:
    """Return the box in which one types."""
    return page.locator("#chat-words")


def mode(page: Any) -> Any:
    """Return what says what memory may do."""
    return page.get_by_label("What memory may do")


def user(page: Any) -> Any:
    """Return what was said by the user."""
    return page.locator(".message.user .words")


def answers(page: Any) -> Any:
    """Return the answers."""
    return page.locator(".message.assistant .words")


def in_thread(ada: Person) -> list[str]:
    """Return what stands in the one conversation that there is."""
    (thread,) = ada.sdk.threads.search()
    return [message["content"] for message in ada.state(thread["thread_id"])["messages"]]


def counting(ada: Person) -> tuple[str, str]:
    """Begin a run elsewhere that counts for long; return its thread and itself."""
    (thread,) = ada.sdk.threads.search()
    told: dict[str, Any] = {"messages": [{"role": "user", "content": "Count."}]}
    run = ada.sdk.runs.create(thread["thread_id"], "chat", input=told, stream_mode=["messages", "values"])
    return thread["thread_id"], run["run_id"]


def another_tab(page: Any, ada: Person, address: str = "") -> Any:
    """Open the same address in another tab, and log in there."""
    other = page.context.new_page()
    other.set_default_timeout(SECONDS)
    other.goto(address or page.url)
    other.get_by_label("Token").fill(ada.token)
    other.get_by_role("button", name="Show my memory").click()
    return other


def test_70_the_address_keeps_a_conversation_and_the_browser_what_is_not_sent(page: Any, ada: Person) -> None:
    say(page, "I keep bees.")
    words(page).fill("And then")
    page.reload()
    expect(user(page)).to_have_text(["I keep bees."])
    expect(words(page)).to_have_value("And then")
    page.get_by_role("link", name="Palimpsest").click()
    go(page, "Journal")
    expect(user(page)).to_have_text(["I keep bees."])
    page.get_by_role("button", name="New chat").click()
    expect(user(page)).to_have_count(0)
    expect(words(page)).to_have_value("")
    page.go_back()
    expect(user(page)).to_have_text(["I keep bees."])
    expect(words(page)).to_have_value("And then")
    other = another_tab(page, ada)
    expect(user(other)).to_have_text(["I keep bees."])
    # What is said in one tab is seen in the other.
    send(other, "Are they well?")
    expect(user(page)).to_have_text(["I keep bees.", "Are they well?"])
    expect(answers(page)).to_have_text(["Noted.", "Noted."])


def test_71_conversations_are_listed_by_their_first_words_and_opened(page: Any, ada: Person, meet: Meet) -> None:
    ada.says("Nobody reads this.", ada.thread(memory_mode="incognito"))
    page.get_by_text("Conversations").click()
    expect(page.locator("#chat-threads li")).to_have_text("Nothing was said yet.")
    page.get_by_text("Conversations").click()
    first, second = ada.thread(), ada.thread()
    ada.says("I keep bees.", first)
    ada.says("שלום, I keep hens.", second)
    rows = page.locator("#chat-threads a")
    page.get_by_text("Conversations").click()
    expect(rows).to_have_text(["שלום, I keep hens.", "I keep bees."])
    assert rows.first.evaluate("row => getComputedStyle(row).direction") == "rtl"
    rows.last.click()
    expect(user(page)).to_have_text(["I keep bees."])
    ada.post("/erase/thread", thread_id=second)
    page.get_by_text("Conversations").click()
    expect(rows).to_have_text(["I keep bees."])
    page.goto(f"{page.url.partition('#')[0]}#chat=nonsense")
    expect(page.get_by_text("This conversation is not there any more")).to_be_visible()
    page.go_back()
    expect(user(page)).to_have_text(["I keep bees."])
    # An id in the address opens what its reader may read.
    stranger = meet(ada.place, "_stranger")
    other = another_tab(page, stranger, page.url)
    expect(other.get_by_text("This conversation is not there any more")).to_be_visible()
    assert "bees" not in other.content()


def test_72_a_reload_joins_an_answer_which_is_stopped_and_stays_and_is_learned_once(page: Any, ada: Person) -> None:
    send(page, "I keep bees. Count.")
    expect(answers(page)).to_contain_text("0 1")
    send(page, "And hens")
    expect(page.get_by_text("An answer is still coming")).to_be_visible()
    page.reload()
    expect(words(page)).to_have_value("And hens")
    expect(answers(page)).to_contain_text("0 1 2 3")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    ada.knows("User keeps bees.")
    _, came = in_thread(ada)
    assert came.startswith("0 1 2 3")
    expect(answers(page)).to_have_text(came)
    expect(page.locator(".learned")).to_have_count(1)
    send(page, "Go on.")
    expect(answers(page).last).to_have_text("Noted.")


def test_73_answers_are_markdown_in_which_nothing_is_alive(page: Any, ada: Person) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ada.writes("Likes pears")
    reply = say(page, "Write Markdown.")
    expect(reply.locator("strong")).to_have_text("mild")
    expect(reply.locator("td")).to_have_text(["rice", "300"])
    expect(reply.locator("a[target=_blank][rel~=noopener]")).to_have_text(["the recipe", "another", "Write", "map"])
    assert [link.get_attribute("href") for link in reply.get_by_role("link").all()] == [
        "https://example.com/curry", "mailto:cook@example.com", "https://example.com/map.png"
    ]  # fmt: skip
    expect(reply.locator("ol")).to_have_attribute("start", "7")
    reply.get_by_role("link", name="Write").click()  # in no window of this one: nothing goes wrong
    expect(reply.locator("img, script, [data-thread], .words [onerror]")).to_have_count(0)
    expect(reply).to_contain_text("<script>alert(1)</script>")
    reply.locator(".words").get_by_role("button", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()").strip() == 'print("<b>hot</b>")'
    reply.locator("footer").get_by_role("button", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()").startswith("## A curry")
    assert serious(page) == []


def test_74_a_message_is_edited_and_an_answer_made_again_in_a_fork(page: Any, ada: Person) -> None:
    say(page, "I keep bees.")
    say(page, "Which ones?")
    page.get_by_role("button", name="Answer again").click()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    page.locator(".message.user").first.get_by_role("button", name="Edit").click()
    page.get_by_label("Your message, in other words").fill("I keep hens.")
    page.get_by_role("button", name="Send anew").click()
    expect(user(page)).to_have_text(["I keep hens."])
    expect(answers(page)).to_have_text(["Noted."])
    eventually(lambda: in_thread(ada) == ["I keep hens.", "Noted."])
    page.reload()
    expect(user(page)).to_have_text(["I keep hens."])


def test_75_the_mode_never_changes_by_itself_and_a_reload_ends_what_is_incognito(page: Any, ada: Person) -> None:
    mode(page).select_option("read_only")
    say(page, "I keep bees.")
    page.reload()
    expect(user(page)).to_have_count(1)
    expect(mode(page)).to_have_value("read_only")
    mode(page).select_option("normal")
    say(page, "I keep hens.")
    ada.knows("User keeps hens.")
    mode(page).select_option("incognito")
    say(page, "I hide in Zanzibar.")
    words(page).fill("Where else?")
    assert "chat=" not in page.url
    page.reload()
    expect(page.get_by_text("The incognito chat ended")).to_be_visible()
    expect(mode(page)).to_have_value("incognito")
    expect(words(page)).to_have_value("")
    eventually(lambda: len(ada.sdk.threads.search()) == 1 or None)
    # What is opened then is not incognito, and stays.
    page.get_by_text("Conversations").click()
    page.locator("#chat-threads a").click()
    send(page, "Are they well?")
    expect(mode(page)).to_have_value("normal")
    page.get_by_role("button", name="New chat").click()
    expect(user(page)).to_have_count(0)
    assert len(ada.sdk.threads.search()) == 1


def test_76_where_learning_is_off_the_chat_says_so(page: Any, ada: Person) -> None:
    expect(mode(page)).to_contain_text("Learns")
    go(page, "Your data")
    page.get_by_role("switch", name="Learn from conversations").click()
    expect(mode(page).locator("option").first).to_have_text("Learning is off")


def test_77_what_waits_is_decided_in_the_chat(page: Any, ada: Person) -> None:
    ada.memory.put("/approval", json={"approval": "sensitive"}).raise_for_status()
    say(page, "I suffer from asthma. I run slowly. I ban asthma.")
    card = page.locator(".learned")
    card.locator("li", has_text="suffers").get_by_role("button", name="Yes, remember").click()
    card.locator("li", has_text="bans").get_by_role("button", name="No").click()
    expect(card.get_by_role("button", name="Yes, remember")).to_have_count(0)
    expect(card).not_to_contain_text("waits for your yes")
    ada.knows("User runs slowly.", "User suffers from asthma.")


def test_78_a_reply_names_what_it_needed_and_counts_the_rest(page: Any, ada: Person) -> None:
    for number in range(14):
        ada.writes(f"Owns boat number {number}")
    ada.writes("Is allergic to peanuts")
    reply = say(page, "Do I tolerate peanuts?")
    reply.locator(".drew summary").click()
    expect(reply.locator(".sources li")).to_have_text([
        re.compile("Is allergic to peanuts"), "14 more that are shown with every message"
    ])  # fmt: skip


def test_79_what_fails_is_said_in_words_that_help_and_nothing_typed_is_lost(page: Any, ada: Person) -> None:
    send(page, "Refuse my key.")
    problem = page.locator(".message .problem")
    expect(problem).to_contain_text("key")
    expect(problem).to_contain_text("was refused: set that provider's key")
    expect(problem).not_to_contain_text("invalid_api_key")
    page.context.set_offline(True)
    send(page, "I keep bees.")
    expect(problem).to_have_text("This device has no network. Try again once it has.")
    expect(words(page)).to_have_value("I keep bees.")
    page.context.set_offline(False)
    break_off(page, "**/runs/stream", times=1)
    words(page).press("Enter")
    expect(problem).to_have_text("The server does not answer. Try again once it runs.")
    words(page).press("Enter")
    expect(answers(page)).to_have_text(["Noted."])
    expect(user(page)).to_have_text(["Refuse my key.", "I keep bees."])


def test_80_on_a_phone_the_chat_is_the_first_part_and_what_is_sent_is_seen(page: Any, ada: Person) -> None:
    thread = ada.thread()
    for number in range(8):
        ada.says(f"I row to island number {number}.", thread)
    page.set_viewport_size({"width": 360, "height": 740})
    parts = page.get_by_label("Parts of the page").get_by_role("link")
    expect(parts.first).to_have_text("Chat")
    boxes = [part.bounding_box() for part in parts.all()]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 360 for box in boxes)
    expect(words(page)).to_be_hidden()
    parts.first.click()
    page.get_by_text("Conversations").click()
    page.locator("#chat-threads a").click()
    expect(user(page).last).to_be_in_viewport()
    user(page).first.scroll_into_view_if_needed()
    send(page, "Where am I now?")
    expect(user(page).last).to_be_in_viewport()
    page.reload()
    expect(user(page)).to_have_count(9)
    for scheme in "dark", "light":
        page.emulate_media(color_scheme=scheme)
        assert serious(page) == [], scheme


def test_81_once_a_token_is_not_accepted_the_chat_goes_and_who_logs_in_next_reads_nothing_of_it(
    page: Any, ada: Person, meet: Meet
) -> None:
    def enter(whose: Person) -> None:
        page.get_by_label("Token").fill(whose.token)
        page.get_by_role("button", name="Show my memory").click()
        words(page).wait_for()

    say(page, "I keep bees.")
    words(page).fill("And hens")
    stranger = meet(ada.place, "_stranger")
    for whose in stranger, ada:
        page.evaluate("sessionStorage.setItem('palimpsest-token', 'over')")
        page.evaluate("document.body.dispatchEvent(new Event('facts-changed'))")
        expect(page.get_by_text("This token is not accepted.")).to_be_visible()
        expect(page.locator("#chat")).to_be_hidden()
        expect(words(page)).to_have_value("")
        assert "bees" not in page.content()
        enter(whose)
        if whose is stranger:
            expect(page.get_by_text("This conversation is not there any more")).to_be_visible()
            expect(words(page)).to_have_value("")
            page.get_by_text("Conversations").click()
            expect(page.locator("#chat-threads li")).to_have_text("Nothing was said yet.")
    page.get_by_text("Conversations").click()
    page.locator("#chat-threads a").click()
    expect(words(page)).to_have_value("And hens")


def test_84_an_edit_that_is_begun_stays_while_an_answer_comes_in_another_tab(page: Any, ada: Person) -> None:
    say(page, "I keep bees.")
    page.locator(".message.user").get_by_role("button", name="Edit").click()
    edited = page.get_by_label("Your message, in other words")
    edited.fill("I keep hens.")
    run = counting(ada)
    expect(answers(page).last).to_contain_text("0 1")
    expect(edited).to_have_value("I keep hens.")
    page.get_by_role("button", name="Send anew").click()
    expect(page.get_by_text("An answer is still coming")).to_be_visible()
    expect(edited).to_have_value("I keep hens.")
    ada.sdk.runs.cancel(*run)


def test_85_an_incognito_chat_that_ends_elsewhere_leaves_its_words_in_no_other(page: Any, ada: Person) -> None:
    thread = ada.thread(memory_mode="incognito")
    ada.says("I hide in Zanzibar.", thread)
    page.goto(f"{page.url.partition('#')[0]}#chat={thread}")
    expect(mode(page)).to_have_value("incognito")
    words(page).fill("Where else?")
    ada.sdk.threads.delete(thread)
    expect(page.get_by_text("This conversation is not there any more")).to_be_visible()
    expect(mode(page)).to_have_value("incognito")
    expect(words(page)).to_have_value("Where else?")
    page.reload()
    words(page).wait_for()
    expect(words(page)).to_have_value("")
    assert "Where else?" not in page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    # What is deleted in another tab is deleted, and nothing is said of a server that is away.
    say(page, "I hide in Zanzibar.")
    (hidden,) = ada.sdk.threads.search()
    ada.sdk.threads.delete(hidden["thread_id"])
    expect(page.get_by_text("This conversation is not there any more")).to_be_visible()
    expect(page.locator("#said")).to_be_empty()
    assert hidden["thread_id"] not in page.evaluate("JSON.stringify({...sessionStorage})")


def test_86_a_first_answer_that_is_coming_is_found_in_the_list_and_another_tab_shows_a_card_at_its_place(
    page: Any, ada: Person
) -> None:
    with page.expect_response("**/runs/stream"):  # the list says what there is as it is opened
        send(page, "Take your time.")
    page.get_by_role("button", name="New chat").click()
    page.get_by_text("Conversations").click()
    page.locator("#chat-threads a", has_text="Its first answer is coming").click()
    expect(answers(page)).to_have_text("One word after the other.")
    other = another_tab(page, ada, page.url)
    expect(user(other)).to_have_count(1)
    # What was learned is told there before what was said.
    mend = break_off(other, "**/threads/search")
    say(page, "I keep bees.")
    expect(other.locator(".learned")).to_be_visible()
    mend()
    say(page, "Good day.")
    expect(other.locator(".learned + .message")).to_be_visible()


def test_87_an_answer_that_begins_elsewhere_as_ones_own_ends_is_shown_while_it_comes(page: Any, ada: Person) -> None:
    begun: list[tuple[str, str]] = []

    def begin(route: Any) -> None:
        # The page looks at its conversation because its own answer has ended.
        if not begun:
            begun.append(counting(ada))
        route.continue_()

    page.route("**/threads/search", begin)
    say(page, "I keep bees.")
    expect(answers(page).last).to_contain_text("0 1")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    ada.sdk.runs.cancel(*begun.pop())
