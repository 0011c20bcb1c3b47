"""What people tell with digits in it is learned, and secrets are not: by writers who have not seen the rules."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.store.memory import InMemoryStore

from memory.door import arun
from memory.namespaces import Owner
from memory.recall.past import read_past
from palimpsest import Context, FactStore
from tests.laws.talk import Talk

DATA = Path(__file__).parents[1] / "data"
SEARCHING = Context(memory_tools=("search_memory",))


def texts(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text("utf-8").splitlines()]


class Chat(Talk):
    """A chat of one user in several threads; the model that extracts makes a fact of each line of the user."""

    def __init__(self) -> None:
        super().__init__(context=SEARCHING)
        self.memory.respond = self._learn
        self.told, self.marked = list[str](), list[str]()

    def _learn(self, _: object) -> str:
        facts = [{"content": each, "category": "context", "confidence": 0.9, "message": 1} for each in self.told[-1:]]
        return json.dumps({"facts": facts, "secrets": self.marked})

    async def sent(self, thread: str, text: str, *replies: AIMessage | str) -> Sequence[BaseMessage]:
        """Say something, and return all that the model was sent for it, but for the user's own words."""
        self.chat.replies, before = list(replies), len(self.chat.prompts)
        await self.say(text, thread)
        return [each for prompt in self.chat.prompts[before:] for each in prompt if each.text != text]

    async def tell(self, text: str, reply: str, thread: str = "told") -> None:
        """Say something in a thread, and let this process learn it."""
        self.told.append(text)
        await self.sent(thread, text, reply)
        await self.service.adrain(self.store, Owner.of("ada"))

    async def is_recalled(self, text: str, secret: str) -> bool:
        """Say whether a later thread is shown a secret, unasked, or by a search for it or for what was said of it."""
        about = text.replace(secret, "").strip()
        searches = [
            AIMessage("", tool_calls=[{"name": "search_memory", "args": {"query": query}, "id": query}])
            for query in (about, secret)
        ]
        shown = await self.sent("later", f"{about} What was it again?", *searches, "I do not know.")
        return any(secret in each.text for each in shown if not isinstance(each, AIMessage))


def facts_of(store: InMemoryStore) -> FactStore:
    return FactStore(store, "ada")


async def recalled(exchanges: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return the secrets of those exchanges of which a fact in use, a later prompt or a search tells."""
    found = []
    for text, reply, secret in exchanges:
        chat = Chat()
        await chat.tell(text, reply)
        in_use = [fact.content for fact in facts_of(chat.store).list()]
        if any(secret in each for each in in_use) or await chat.is_recalled(text, secret):
            found.append(text)
    return found


async def test_of_200_everyday_statements_with_digits_none_is_refused_and_hardly_any_waits() -> None:
    facts = facts_of(InMemoryStore())
    made = [facts.create(each["text"], "context", 1.0, source="api") for each in texts("harmless_digits")]
    assert len(made) == 200
    # The goal is 1; one of the 3 waits as an order.
    assert len([fact.content for fact in made if fact.status != "active"]) <= 3


async def test_of_40_secrets_in_four_languages_hardly_any_is_told() -> None:
    told = texts("told_secrets")
    assert len(told) == 40
    assert len(await recalled((each["text"], "Noted.", each["secret"]) for each in told)) <= 5  # the goal is 4


async def test_what_the_reply_repeats_of_a_secret_is_told_by_nothing() -> None:
    told = texts("told_echoes")
    assert len(told) == 24
    assert await recalled((each["user"], each["assistant"], each["secret"]) for each in told) == []


async def test_what_the_model_finds_to_be_a_secret_is_one_whatever_its_form() -> None:
    chat, said = Chat(), "The word that opens our cellar is Wintergreen lantern."
    await chat.tell("The cellar is cold.", "I see.")
    chat.marked = ["Wintergreen Lantern", "nobody said this"]
    await chat.tell(said, "Noted.")
    chat.marked = []
    await chat.tell("Ruth asked for the wintergreen lantern.", "She did.", "another")
    assert [fact.content for fact in facts_of(chat.store).list()] == ["The cellar is cold."]
    assert not await chat.is_recalled(said, "Wintergreen lantern")
    assert not await chat.is_recalled("Ruth asked for the wintergreen lantern.", "wintergreen lantern")


async def test_what_is_told_together_with_a_harmless_number_is_told_later() -> None:
    chat = Chat()
    await chat.tell("My zip code is 8010, and I moved in 2024.", "Noted.")
    await chat.tell("In 2024 the bike cost me 8010 kroner.", "That much!", "another")
    assert await chat.is_recalled("In 2024 the bike cost me 8010 kroner.", "8010")


async def test_what_is_said_in_one_update_with_secrets_is_learned_and_recalled() -> None:
    chat, said = Chat(), "I lock my bike in 2024, after 500 km in 3 days."
    await chat.sent("told", "We paid 500 kroner for the door that I lock, and its code is winter-2024.", "And the PIN?")
    await chat.sent("told", "It's 7305 for all 3.", "Noted.")
    found = [{"content": each, "category": "context", "confidence": 0.9} for each in (said, "User paid 7305 kroner.")]
    chat.memory.replies = [json.dumps({"facts": found})]
    await chat.tell(said, "Good.")
    assert [fact.content for fact in facts_of(chat.store).list()] == [said]
    assert [entry.messages[0].text for entry in await arun(chat.store, read_past(Owner.of("ada")))] == [said]


PLAN = """Happy to help! Here is a plan for your week.

- **Log in to Google Analytics**: open the dashboard of the site.
- **April 3-4**: revise the cover letter, with the $85,000 in mind.
- Numbers less than 4: 1, 2, 3
- Add `uses: actions/checkout@v3` to the workflow.
- **Verification**: log in to the portal and check the status.
"""


async def test_what_an_assistant_explains_makes_no_secret_of_what_the_user_said() -> None:
    chat, said = Chat(), "My cover letter asks for $85,000, and is revised in April."
    await chat.tell(said, PLAN)
    assert [fact.content for fact in facts_of(chat.store).list()] == [said]
    assert await chat.is_recalled(said, "$85,000")


async def test_a_code_in_the_middle_of_an_explanation_is_told_by_nothing() -> None:
    chat = Chat()
    await chat.tell("The cabin has internet.", f"{PLAN}- Your Wi-Fi password there is plover-7731.")
    await chat.tell("Ruth says plover-7731 works.", "Good.", "another")
    assert not await chat.is_recalled("The cabin has internet.", "plover-7731")
    assert not await chat.is_recalled("Ruth says plover-7731 works.", "plover-7731")
