"""Names, numbers and dates of a fact are the user's: what nobody said is refused, and honest paraphrases are not."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memory.extraction.extraction import extract_facts
from memory.extraction.grounding import is_thanks_or_greeting
from memory.extraction.names import _NO_NAMES
from memory.facts.changes import Extraction
from memory.message import StoredMessage
from memory.text import fold
from tests.extracting import extract, found, known, reasons, said
from tests.fakes import RecordingModel

# The judge of secrets learned English alone: it takes these for texts that may hold a password; they wait for a person.
AS_SECRET = pytest.mark.xfail(strict=True, reason="a German sentence is taken for one that may hold a secret")

# What a user said (on Friday, 2026-05-08), and what a careful reader might write down.
HONEST = [
    ("I just moved to NYC for work", "User moved to New York City for work."),
    ("I live in New York City", "User lives in NYC."),
    ("I grew up in LA and study at MIT", "User grew up in Los Angeles and studies at MIT."),
    ("I'm from the United States", "User is American."),
    ("I come from Norway and teach french", "User is Norwegian and teaches French."),
    ("my sister anna lives in rome", "The user's sister Anna lives in Rome."),
    ("I turned thirty-four last week", "User is 34 years old (turned 34 in the week of 2026-04-27)."),
    ("I was born in 1990", "User was born in 1990 and is 35 or 36 years old."),
    ("I'm 34 years old", "User is 34, born around 1992."),
    ("We have three kids", "User has 3 children."),
    ("My cats are called Biscuit and Mog", "User has two cats, Biscuit and Mog."),
    ("A flat white costs me 2.75 each morning", "User pays 2.75 for a flat white every morning."),
    ("I earn 15k a month", "User earns 15,000 a month."),
    ("The flat costs 15,000 kroner", "User's flat costs 15000 kroner."),
    ("I'm 1.83 m tall and weigh 80kg", "User is 183 cm tall and weighs 80 kg."),
    ("I get up at 5pm, night shifts", "User gets up at 17:00 because of night shifts."),
    ("Dinner is at 19:30 for us", "User has dinner at 7:30 pm."),
    ("My passport expires in March 2027", "User's passport expires in 2027-03."),
    ("My wedding is on the 12th of March", "User's wedding is on 12 March 2026."),
    ("Mum visits from 12.3. to 16.3.", "User's mother visits from March 12 to March 16."),
    ("My operation is on the 7th", "User has an operation on 2026-05-07."),
    ("In March, on the 12th, I fly to Rome", "User flies to Rome on 12 March."),
    ("We are away from May 12 to 16", "User is away from 2026-05-12 to 2026-05-16."),
    ("We move on the seventh of May", "User moves on 2026-05-07."),
    ("May twenty-third is my birthday", "User's birthday is on 23 May."),
    ("I was born on 31-07-1992", "User was born on 1992-07-31."),
    ("I was born on 3/12/95", "User was born on 3 December 1995."),
    ("My birthday is on 4 March. I was born in 1990", "User was born on 1990-03-04."),
    ("My exam is on 4 March, I was born in 1990", "User has an exam on 2026-03-04."),
    ("My card expires 03/2027", "User's card expires in March 2027."),
    ("5月7日に手術があります", "User has an operation on 2026-05-07."),
    ("I start at the aquarium tomorrow", "User starts at the aquarium on 2026-05-09."),
    ("I saw Dune on Monday", "User saw Dune on Monday (2026-05-04)."),
    ("I moved here three years ago", "User moved here in 2023."),
    ("The exam is in two months", "User has an exam in July 2026."),
    ("I quit coffee today", "User stopped drinking coffee on 2026-05-08."),
    ("My phone number ends in +47 912 34 567", "User's phone number is +4791234567."),
    ("My boss is Torbjørn Håkonsen-Lindqvist", "User's boss is Torbjorn Hakonsen-Lindqvist."),
    ("I write JS and some Postgres", "User writes JavaScript and uses PostgreSQL."),
    ("I am vegan but eat honey", "User follows a vegan diet but makes an exception for honey."),
    ("Fleisch esse ich seit Jahren keines mehr", "Nutzer ist Vegetarier und verzichtet auf Fleisch."),
    ("Ich wohne in München und arbeite als Lehrer", "User lives in Munich and works as a teacher."),
    ("Ich wohne in Göteborg", "User lives in Gothenburg."),
    ("Meine Schwester heißt Anna, sie ist vierunddreißig", "Die Schwester des Nutzers heißt Anna und ist 34."),
    ("Wir ziehen am ersten Mai nach Köln", "User zieht am 1. Mai nach Köln."),
    ("Annas Hund mag keine Katzen", "Der Hund von Anna mag keine Katzen."),
    ("Gestern habe ich meinen Job gekündigt", "User quit the job on 2026-05-07."),
    ("Soy alérgica a los cacahuetes", "La usuaria es alérgica a los cacahuetes."),
    ("Vivo en Sevilla con mi marido Javier", "User lives in Seville with husband Javier."),
    ("Mi hija tiene cuatro años y se llama Lucía", "La hija de la usuaria, Lucía, tiene 4 años."),
    ("東京に住んでいて、犬を二匹飼っています", "ユーザーは東京に住んでいて、犬を2匹飼っている。"),
    ("妹のアンナは大阪で働いています", "ユーザーの妹アンナさんは大阪で働いている。"),
    ("私は三十四歳で、看護師です", "User is a 34-year-old nurse."),
    ("我叫小明,住在北京", "用户名叫小明,住在北京。"),
    ("Меня зовут Анна, живу с Борисом", "Пользователя зовут Анна, она живёт с Борисом."),  # noqa: RUF001
    ("Mieszkam w Warszawie z Anią", "User mieszka z Anią w Warszawie."),
    ("My train leaves at half past six", "User's train leaves at 6:30."),
    ("I only run twice a week", "User runs 2 times a week."),
    ("We do code reviews via github", "User's team does code reviews via GitHub."),
    ("I've worked at ACME since '09", "User has worked at ACME since 2009."),
    ("There are a dozen of us", "User's team has 12 members."),
    ("I'd like answers as bullet points, max 5", "User prefers answers as at most five bullet points."),
]

INVENTED = [
    ("I have 5 cats and 7 dogs.", "User has an operation on 2026-05-07."),
    ("I have 5 cats and 7 dogs.", "User has an operation on 7 May."),
    ("I have 5 cats and 7 dogs.", "User moves house in July."),
    ("I was born in 1990 and have 3 dogs and 4 cats", "User was born on 1990-03-04."),
    ("I moved on 4 March 1990 and left on 6 June 2001", "User left on 1990-06-06."),
    ("I moved on 4 March 1990 and left on 6 June 2001", "User moved on 4 March 2001."),
    ("I moved on 4 March 2026", "User moved on 4 March 1926."),
    ("In May I have 3 tests", "User has a test on 3 May."),
    ("My flight is on 12.3. and 4 friends come", "User's flight is on 4 March."),
    ("My passport expires in 2027", "User's passport expires in 2026."),
    ("My passport expires in March 2027", "User's passport expires in March 2026."),
    ("My boss is Torbjørn Sørensen", "User's boss is Torbjørn Sorenson."),
    ("My cat is called Biscuit", "User's cat is called Biscoe."),
    ("My cat is called Biscuit", "Biscoe is the user's cat."),
    ("My sister came to see me", "User's sister Maria came to see the user."),
    ("My sister came to see me", "Maria Lopez came to see the user, their sister."),
    ("I work at a bank", "User works at Deutsche Bank."),
    ("I work at a bank", "User works at NASA."),
    ("I have some cats", "User has 3 cats."),
    ("I have some cats", "User has three cats."),
    ("I have two cats", "User has four cats."),
    ("I pay 15 a month", "User pays 15,000 a month."),
    ("I moved here last year", "User moved here on 2024-02-01."),
    ("I have a course on Tuesdays", "User has a course on Thursdays."),
    ("I have a course in May", "User has a course in June."),
    ("Mail me the list", "User's address is ada@example.com."),
    ("Ich wohne in Bremen", "User wohnt in Hamburg."),
    ("Ich wohne in Bremen", "User lives in Hamburg."),
    pytest.param("Meine Schwester heißt Anna", "Die Schwester des Nutzers heißt Maria.", marks=AS_SECRET),
    pytest.param("Meine Schwester ist krank", "Die Schwester Maria des Nutzers ist krank.", marks=AS_SECRET),
    ("Vivo con mi marido", "El usuario vive con su marido Javier."),
    ("妹が来ました", "ユーザーの妹はマリアさんです。"),
    ("犬がいます", "ユーザーは犬を3匹飼っている。"),
    ("Меня зовут Анна", "Пользователя зовут Мария."),
]


def taken(fact: str, *messages: StoredMessage, **fields: Any) -> Extraction:
    model = RecordingModel(replies=[json.dumps({"facts": [found(fact, **fields)]})])
    return extract_facts(model, list(messages))


@pytest.mark.parametrize(("message", "fact"), HONEST)
def test_an_honest_paraphrase_is_kept(message: str, fact: str) -> None:
    assert reasons(taken(fact, said(message))) == []


@pytest.mark.parametrize(("message", "fact"), INVENTED)
def test_a_name_number_or_date_that_nobody_said_is_refused(message: str, fact: str) -> None:
    assert reasons(taken(fact, said(message))) == ["not_said"]


@given(st.from_regex(r"[A-Z][a-z]{3,9}", fullmatch=True))
def test_no_name_that_nobody_said_passes_and_every_one_that_was_said_does(name: str) -> None:
    assume(fold(name) not in _NO_NAMES)
    fact = f"User has a friend called {name} at work."

    assert reasons(taken(fact, said("i have a friend at work"))) == ["not_said"]
    assert reasons(taken(fact, said(f"i have a friend at work, {name.lower()}"))) == []


@given(st.integers(13, 10**9), st.sampled_from(["{}", "{:,}", "{} kg"]))
def test_no_number_that_nobody_said_passes_and_every_one_that_was_said_does(number: int, form: str) -> None:
    fact = f"User has {form.format(number)} of them."

    assert reasons(taken(fact, said("I have many of them"))) == ["not_said"]
    assert reasons(taken(fact, said(f"I have {number} of them"))) == []


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_fact_and_any_message_can_be_judged(fact: str, message: str) -> None:
    taken(fact, said(f"a {message}"))


def test_what_only_the_assistant_said_lends_no_name() -> None:
    hall = said("You could try Klatreverket on Mondays at 18:30.", role="assistant")
    fact = "User climbs at Klatreverket."

    assert reasons(taken(fact, hall, said("Thanks a lot! I like climbing, and I climb often."))) == ["not_said"]
    assert reasons(taken(fact, hall, said("I climb, too. Is it far?"))) == ["not_said"]


@pytest.mark.parametrize(
    ("question", "reply", "fact"),
    [
        ("Do you mean Bergen in Norway?", "Yes, that is where I live.", "User lives in Bergen, Norway."),
        ("Is your flight on 12 March at 18:30?", "Exactly.", "User's flight is on 2026-03-12 at 18:30."),
        (
            "Shall we say Klatreverket or Bula?",
            "The second one, I like to climb there.",
            "User likes to climb at Bula.",
        ),
        ("There is a course by Ingrid Holm.", "I'll take that course then.", "User takes a course by Ingrid Holm."),
        pytest.param(
            "Heißt sie Anna?", "Ja, meine Schwester.", "Die Schwester des Nutzers heißt Anna.", marks=AS_SECRET
        ),
    ],
)
def test_a_question_that_the_user_affirms_lends_its_names_and_numbers(question: str, reply: str, fact: str) -> None:
    assert reasons(taken(fact, said(question, role="assistant"), said(reply))) == []


def test_the_fact_that_is_corrected_lends_its_names_and_numbers_others_only_their_names() -> None:
    existing = (known("User meets Ingrid Holm at 18:30", 1), known("User's cat Biscuit is 7", 2))
    fields = {"action": "corrects", "known": 2}
    corrected = found("User meets Ingrid Holm at 18:30 in Bergen", **fields)
    news = found("User lives in Bergen with Biscuit and 18 others")

    assert reasons(extract(corrected, existing=existing, text="We meet in Bergen")) == []
    assert reasons(extract(found("User lives in Bergen with Biscuit"), existing=existing)) == []
    assert reasons(extract(news, existing=existing)) == ["not_said"]


def test_a_section_of_the_profile_holds_no_name_or_number_that_nobody_said() -> None:
    def sections(text: str) -> Extraction:
        answer = {"facts": [], "profile": [{"section": "work", "text": text}]}
        model = RecordingModel(replies=[json.dumps(answer)])
        profile = {"user.work": "Nurse at Haukeland since 2019."}
        return extract_facts(model, [said("I am head nurse now")], profile=profile)

    assert sections("Head nurse at Haukeland, nurse there since 2019.").profile
    assert reasons(sections("Head nurse at Ullevaal, nurse since 2019.")) == ["not_said"]
    assert reasons(sections("Head nurse at Haukeland, nurse since 2017.")) == ["not_said"]
    assert reasons(sections("Head nurse at [company] now.")) == ["placeholder"]


@pytest.mark.parametrize(
    "fact",
    [
        "User's name is [name]",
        "User lives in <city>",
        "User lives in {city}",
        "User is called ___",
        "X's sister lives here",
        "User works at XXX",
        "User's birthday is on (date)",
        "User lives in [insert city here]",
        "User's job is unknown",
        "User's job is not specified.",
        "User likes {{food}}",
    ],
)
def test_a_blank_is_no_fact(fact: str) -> None:
    assert reasons(taken(fact, said("I live here with my sister, it's a nice city"))) == ["placeholder"]


@pytest.mark.parametrize(
    "fact", ["User wrote a parser for [WIP] tags", "User takes vitamin D (1000 units)", "User's plan B is teaching"]
)
def test_brackets_and_letters_that_the_user_wrote_are_no_blanks(fact: str) -> None:
    message = "I wrote a parser for [WIP] tags, take vitamin D, 1000 units, and my plan B is teaching"

    assert reasons(taken(fact, said(message))) == []


def test_john_doe_is_a_name_like_any_other() -> None:
    assert reasons(taken("User's name is John Doe", said("I like my name"))) == ["not_said"]
    assert reasons(taken("User's name is John Doe", said("John Doe is my name, really"))) == []


@pytest.mark.parametrize(
    "fact",
    [
        "User thanks.",
        "User thanked the assistant for the tips.",
        "The user says hello.",
        "User greets the assistant",
        "User appreciates the assistant's help.",
        "User is grateful for the advice",
        "User says good morning",
        "User bedankt sich.",
    ],
)
def test_thanks_and_greetings_are_no_facts(fact: str) -> None:
    message = "Hello, good morning! I have a boat. Thanks for the tips and the advice and the help!"

    assert reasons(taken(fact, said(message))) == ["small_talk"]


@pytest.mark.parametrize(
    "fact",
    [
        "User appreciates short answers.",
        "User says that Tom stays in Porto.",
        "User thanked Tom for the car with a cake.",
    ],
)
def test_what_sounds_like_thanks_and_tells_something_is_a_fact(fact: str) -> None:
    message = "I appreciate short answers. Tom stays in Porto, I thanked him for the car with a cake."

    assert reasons(taken(fact, said(message))) == []


@pytest.mark.parametrize(
    "message",
    [
        "Thanks!", "Hello there", "Thank you so much", "Vielen Dank", "ありがとうございます",
        "Thanks, that is very useful.", "¡Muchas gracias por tu ayuda!", "Gracias, eso me sirve mucho.",
        "Danke, das war sehr hilfreich!", "Merci beaucoup pour ton aide !", "Merci, c'est très utile.",
        "Obrigada, isso me ajuda muito.", "Большое спасибо за помощь!", "Спасибо, это очень полезно.",
        "助けてくれて本当にありがとうございます。", "ありがとう、とても役に立ちました。",
    ],
)  # fmt: skip
def test_nothing_is_learned_from_a_message_that_only_thanks_or_greets(message: str) -> None:
    tip = said("Are you fond of the aquarium? Go there often.", role="assistant")

    assert reasons(taken("User is fond of the aquarium", tip, said(message))) == ["small_talk"]


@pytest.mark.parametrize(
    "message",
    [
        "It is", "That is it.", "Es ist das", "Das hilft mir bei meiner Migräne", "Eso me ayuda a dormir",
        "Oui, c'est ça",
        "Gracias, me mudo a Sevilla", "Danke, ich bin Vegetarier", "Merci, je pars à Lyon", "Obrigado, moro no Porto",
        "Спасибо, я работаю врачом", "母を助けてくれてありがとう", "Thanks, my help desk is in Oslo", "これです",
    ],
)  # fmt: skip
def test_what_answers_or_thanks_and_tells_something_is_read(message: str) -> None:
    assert not is_thanks_or_greeting(message)


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("My sister lives in Rome.", "User's sister lives in Rome."),
        ("User shares a flat with my sister.", "User shares a flat with the user's sister."),
        ("Tom is my partner and lives with me.", "Tom is the user's partner and lives with the user."),
        ("I am a nurse and my sister is too.", "User is a nurse and the user's sister is too."),
        ("I've been to Rome with Tom.", "User has been to Rome with Tom."),
        (
            "Tom lives in Rome, so I have a flat for myself.",
            "Tom lives in Rome, so the user has a flat for themselves.",
        ),
        ("I went to Rome and Tom came with me.", "I went to Rome and Tom came with me."),
        (
            "User likes Elizabeth I and World War I is in the film.",
            "User likes Elizabeth I and World War I is in the film.",
        ),
        ("User read that World War I was in the film.", "User read that World War I was in the film."),
        ('User calls the flat "my palace".', 'User calls the flat "my palace".'),
        ("User likes the film My Sister in Rome.", "User likes the film My Sister in Rome."),
        ("Mi hermana vive en Roma.", "Mi hermana vive en Roma."),
    ],
)
def test_the_first_person_becomes_the_user_where_that_is_safe(written: str, stored: str) -> None:
    message = (
        "My sister, a nurse, and Tom, my partner, live in Rome in my palace: a flat. Mi hermana vive en Roma. I like "
    )
    message += "the film My Sister in Rome, World War I, Elizabeth I. I've been to Rome."

    assert [change.content for change in taken(written, said(message)).changes] == [stored]
