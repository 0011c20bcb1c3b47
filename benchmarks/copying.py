"""Whether the chat model tells names, numbers and dates as memory holds them, whatever keeps it from repeating itself.

    python -m benchmarks.copying [--plain] [--talks 2]

Each talk asks 16 questions about 12 facts in the memory block, the later ones a second time. An answer is right when it
holds what was asked for to the letter. The model is the one of `benchmarks.repetition`.
"""

import argparse
import os

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from benchmarks.repetition import chat_model
from memory import prompts
from memory.config import Category
from memory.context.tokens import count_tokens
from memory.facts.fact import Fact
from memory.injection.block import render_memory_block

FACTS: tuple[tuple[Category, str], ...] = (
    ("goal", "User is looking for a flat with two rooms, at most 15,000 kroner a month."),
    ("knowledge", "User's boss is Ingrid, who leads the jellyfish project."),
    ("knowledge", "User's partner Tom found a job in Bergen and comes in April."),
    ("goal", "User signed the contract for the flat in Nordnes and will move on the first of May."),
    ("knowledge", "User is allergic to shellfish."),
    ("goal", "User's mother will visit from the 12th to the 16th of March."),
    ("knowledge", "User has a cat named Biscuit, who hates the ferry."),
    ("goal", "User plans to run the half marathon in Stavanger on 2027-06-19."),
    ("knowledge", "User's employee number at the aquarium is 4471-B."),
    ("knowledge", "User's dentist is Dr. Karoline Abrahamsen-Lunde, phone 55 31 72 09."),
    ("knowledge", "User pays three months' rent as deposit, 43,500 kroner."),
    ("context", "User counts the moon jellies every morning at six."),
)
# What each answer must hold: one of the spellings of each part.
QUESTIONS: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = (
    ("How much may the flat cost a month?", (("15,000", "15 000", "15000"),)),
    ("Who is my boss?", (("Ingrid",),)),
    ("When does Tom come?", (("April",),)),
    ("When do we move, and where?", (("May",), ("Nordnes",))),
    ("What food must I avoid?", (("hellfish",),)),
    ("When does my mother visit?", (("12",), ("16",))),
    ("What does my cat hate?", (("ferry",),)),
    ("When and where is my half marathon?", (("Stavanger",), ("2027-06-19", "June 19", "19 June"))),
    ("What is my employee number?", (("4471-B",),)),
    ("What is my dentist's full name and phone number?", (("Karoline Abrahamsen-Lunde",), ("55 31 72 09",))),
    ("How large is our deposit?", (("43,500", "43 500", "43500"),)),
    ("What do I do every morning, and at what time?", (("jell",), ("six", "6"))),
    ("Please repeat the phone number of my dentist.", (("55 31 72 09",),)),
    ("And my employee number again?", (("4471-B",),)),
    ("What is the most the flat may cost?", (("15,000", "15 000", "15000"),)),
    ("Repeat all you know about my mother's visit.", (("12",), ("16",), ("March",))),
)


def wrong_answers(model: BaseChatModel) -> list[tuple[str, str]]:
    """Hold one talk and return the questions whose answers lack something, with these answers."""
    facts = [Fact(content=text, category=category, confidence=0.9) for category, text in FACTS]
    block = render_memory_block({}, facts, 2000, count_tokens)
    said: list[BaseMessage] = [SystemMessage(f"{prompts.SYSTEM}\n\n{block}")]
    wrong: list[tuple[str, str]] = []
    for question, parts in QUESTIONS:
        said.append(HumanMessage(question))
        answer = model.invoke(said).text
        said.append(AIMessage(answer))
        if not all(any(spelling in answer for spelling in part) for part in parts):
            wrong.append((question, answer))
    return wrong


def main() -> None:
    """Hold the talks and print what was told wrongly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plain", action="store_true", help="without the sampling that avoids repetition")
    parser.add_argument("--talks", type=int, default=2)
    chosen = parser.parse_args()
    with chat_model(plain=chosen.plain, reply=160) as model:
        wrong = [each for _ in range(chosen.talks) for each in wrong_answers(model)]
    for question, answer in wrong:
        print(f"{question}\n    {answer}")
    asked = chosen.talks * len(QUESTIONS)
    print(f"{asked - len(wrong)} of {asked} answers are right, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
