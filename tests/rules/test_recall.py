"""Recall: what matters now is found, and what is gone is not."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.recall import Document, Index
from memory.recall.user_index import LEAST_COVERAGE
from memory.recall.words import is_standing, names, parts, stem, terms

WORDS = ("Oslo", "cello", "harbour", "painting", "paints", "seven", "figs", "Ada's", "camping", "May")


def fact(name: str, text: str, **more: object) -> Document:
    return Document(id=name, text=text, **more)  # type: ignore[arg-type]


def turn(name: str, text: str, **more: object) -> Document:
    return Document(id=name, text=text, kind="turn", **more)  # type: ignore[arg-type]


def found(index: Index, query: str, **more: object) -> list[str]:
    return [hit.document.id for hit in index.rank(query, **more)]  # type: ignore[arg-type]


def test_what_shares_words_is_found_and_what_was_removed_is_not() -> None:
    index = Index([fact("a", "Lives in Oslo"), fact("b", "Plays the cello"), fact("c", "Has a brown horse")])
    assert found(index, "cello") == ["b"]
    index.remove(["b", "unknown"])
    assert found(index, "cello") == []
    index.put([fact("a", "Lives in Bergen")])
    assert found(index, "Who is in Bergen?") == ["a"]
    assert found(index, "Oslo") == []
    assert len(index) == 2
    assert index.rank("Bergen")[0].document.text == "Lives in Bergen"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("Does she adopt?", "Is adopting a child"),
        ("When did they go campping?", "Went camping"),
        ("What happened in October?", "Moved house on 2023-10-29"),
        ("What did I do on Sunday?", "Moved house on 2023-10-29"),
        ("Où habite-t-elle, à Tromsø?", "Lives in Tromso"),
        ("東京に住んでいますか", "東京で働いている"),
        ("Caroline's dog", "Caroline has a dog"),
    ],
)
def test_words_that_are_written_otherwise_are_found(query: str, text: str) -> None:
    assert found(Index([fact("other", "Likes green tea"), fact("it", text)]), query)[0] == "it"


@pytest.mark.parametrize(
    ("message", "least", "most"),
    [
        ("Where does she play the cello?", 0.7, 1.0),
        ("Did Tom like the orchestra he heard in Oslo?", 0.1, 0.6),
        ("Please translate photosynthesis into Finnish", 0.0, 0.0),
        ("Ok, sounds great, thank you so much!", 0.0, 0.0),
        ("Gut, danke", 0.0, 0.0),
        ("Thanks, that helps!", 0.0, 0.0),
        ("Understood, that works.", 0.0, 0.0),
        ("A cellar?", 0.0, 0.2),  # which looks a little like "cello", and is none
        ("And when was that?", 1.0, 1.0),  # about what was said before
    ],
)
def test_how_much_of_a_message_is_about_what_is_known(message: str, least: float, most: float) -> None:
    texts = ["Lives in Oslo", "Plays the cello at home", "Sounds great, thanks", "Has a brown horse", "Likes figs"]
    index = Index([fact(str(number), text) for number, text in enumerate(texts)])
    assert least <= index.coverage(message) <= most


def test_a_sentence_is_about_what_a_fact_has_in_more_than_one_word_or_stands_out_for_an_embedder() -> None:
    known = [fact(str(number), f"Has seen harbour {number} by ferry") for number in range(200)]
    said = "Learned the cello from a neighbour in Oslo"
    index = Index([*known, fact("it", said)])
    index_of_talk = Index([*known, turn("it", said)])
    asked = "Which neighbour gave lessons on the cello?"

    assert index.coverage(asked) > 3 * index.coverage("Which dentist gave lessons on the cello?")
    assert index.coverage(asked) > index_of_talk.coverage(asked)  # what was only said tells less
    assert index.coverage(asked, similarity={}) < index.coverage(asked)  # nothing is close
    unusual = {str(number): 0.1 for number in range(200)} | {"it": 0.6}
    assert index.coverage("Music?", similarity=unusual) > 0.8
    assert index.coverage("Music?", similarity=dict.fromkeys(unusual, 0.1)) < 0.1


def test_of_an_index_that_is_empty_no_message_is_about_anything() -> None:
    assert Index([]).coverage("What is my password?") == 0.0


def test_what_was_said_tells_more_where_no_fact_was_taken_from_its_conversation() -> None:
    known = [fact(str(number), f"Has seen harbour {number} by ferry") for number in range(200)]
    said = turn("it", "I learned the cello from a neighbour", session="t/2025-10-09", place="1")
    beside = fact("beside", "Has a horse", session="t/2025-10-09")
    asked = "Which neighbour gave lessons on the cello?"
    assert Index([*known, said]).coverage(asked) > Index([*known, said, beside]).coverage(asked) > 0


def test_no_message_is_about_an_explanation_that_only_has_its_words() -> None:
    words = "Which neighbour gave lessons on the cello in the cellar of the harbour, and on the ferry to Oslo? " * 8
    index = Index([*(fact(str(number), f"Likes fig {number}") for number in range(200)), turn("it", words)])
    asked = "Which neighbour gave lessons on the cello?"
    assert index.coverage(asked) >= LEAST_COVERAGE
    index.put([turn("it", words, is_reply=True)])
    assert index.coverage(asked) < LEAST_COVERAGE
    assert index.coverage(asked, similarity={"it": 0.8}) >= LEAST_COVERAGE  # it stands out


@pytest.mark.parametrize(
    ("message", "is_about"), [("What did I do yesterday?", True), ("Say 'see you tomorrow' in French", False)]
)
def test_a_day_that_is_named_beside_something_else_is_not_what_a_message_is_about(message: str, is_about: bool) -> None:
    said = [turn(str(n), f"Harbour {n}", when=f"2025-10-{n % 28 + 1:02}") for n in range(150)]
    index = Index([*said, fact("it", "Has a ferry", when="2025-10-09")])
    assert (index.coverage(message, now="2025-10-08T10:00:00") >= LEAST_COVERAGE) == is_about


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Thanks! Where is it? I sail.", ["I sail."]),
        ("Thanks, ok", ["Thanks, ok"]),
        ("", [""]),
        (" ".join(f"w{number}" for number in range(30)), [15, 15]),
        ("\n".join(f"w{number}" for number in range(30)), [1] * 8),
    ],
)
def test_a_message_is_looked_at_by_its_sentences(message: str, expected: list[object]) -> None:
    found = parts(message)
    assert found == expected or [len(each.split()) for each in found] == expected


@pytest.mark.parametrize("said", ["It always makes me grin when I look at it", "Anytime. What do you read?"])
def test_what_tells_of_the_user_asks_for_nothing(said: str) -> None:
    assert not is_standing(said)


def test_a_possessive_and_question_words_find_nothing_by_themselves() -> None:
    index = Index([fact("a", "Ada's figs are what she likes")])
    assert found(index, "What is Tom's?") == []
    assert terms("What did Ada's aunt do there?") == ["ada", "aunt"]


def test_the_day_of_a_fact_and_yesterday_are_words() -> None:
    index = Index([fact("a", "Saw a whale", when="2023-05-07"), fact("b", "Saw a bear", when="2023-08-01")])
    assert found(index, "What was seen in May?")[0] == "a"
    assert found(index, "What was seen yesterday?", now="2023-08-02T10:00:00+02:00")[0] == "b"


def test_an_answer_is_found_beside_its_question_and_a_fact_through_its_source() -> None:
    session = [
        turn("1", "Do you practise any martial arts?", session="s", place="1"),
        turn("2", "Taekwondo, twice a week", session="s", place="2"),
        turn("3", "Nice weather", session="s", place="3"),
    ]
    index = Index([*session, fact("f", "Practises taekwondo", session="s", sources=("2",)), fact("g", "Owns a boat")])
    assert set(found(index, "martial arts")[:3]) == {"1", "2", "f"}
    assert "g" not in found(index, "martial arts")


def test_a_name_that_many_texts_have_says_whom_a_question_is_about() -> None:
    about = [
        fact(f"{who}{thing}", f"{who} has {thing}") for who in ("Anna", "Tom") for thing in ("figs", "tea", "rice")
    ]
    index = Index([*about, fact("lesson", "Anna took an early and rather long lesson"), fact("x", "A lesson, Tom")])
    assert found(index, "Which lesson was it that Anna took?")[0] == "lesson"

    def lead(query: str) -> float:
        hits = {hit.document.id: hit.score for hit in index.rank(query)}
        return hits["Annafigs"] / hits["x"]

    assert lead("Which lesson was for Anna") > lead("Which lesson was for anna")  # nothing says that it is a name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Where did Anna go with Tom's sister in May?", {"anna", "tom"}),
        ("Where was it? Anna knows.", set()),  # what begins a sentence has a capital letter anyway
        ("I told him that I am here on Monday", set()),
        ("", set()),
    ],
)
def test_names_are_words_with_a_capital_letter_within_a_sentence(text: str, expected: set[str]) -> None:
    assert names(text) == expected


def test_the_turn_before_says_what_it_means() -> None:
    index = Index([fact("a", "The cello is from Bergen"), fact("b", "The horse is from Iceland")])
    assert found(index, "Where is it from?", before="I practise the cello")[0] == "a"


def test_what_an_embedder_finds_alike_is_found_without_a_word_in_common() -> None:
    index = Index([fact("a", "Practises taekwondo"), fact("b", "Owns a boat")])
    assert found(index, "martial arts", similarity={"a": 0.8, "b": 0.2}) == ["a"]


def test_a_fact_counts_for_those_of_its_conversation_that_are_alike_and_half_as_alike_for_less_than_half() -> None:
    index = Index([*(fact(name, name, session=name[0]) for name in ("x1", "x2", "y1", "y2")), fact("none", "none")])
    hits = {
        hit.document.id: hit.score for hit in index.rank("?", similarity={"x1": 1, "x2": 0.5, "y1": 0.5, "none": 0})
    }
    assert hits["x2"] > hits["y1"] > 0.0
    assert hits["y1"] < hits["x1"] / 2 - hits["y2"]


documents = st.lists(
    st.builds(
        Document,
        id=st.sampled_from("abcdefgh"),
        text=st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join),
        when=st.sampled_from(["", "2023-05-07", "no day"]),
        session=st.sampled_from(["", "s", "t"]),
        place=st.sampled_from("012"),
        kind=st.sampled_from(["fact", "turn"]),
        sources=st.sampled_from([(), ("a",), ("b", "z")]),
    ),
    max_size=12,
)


@given(documents, st.sets(st.sampled_from("abcdefgh")), st.lists(st.sampled_from(WORDS), min_size=1, max_size=3))
def test_an_index_that_was_changed_ranks_as_a_new_one(docs: list[Document], gone: set[str], query: list[str]) -> None:
    changed = Index(docs)
    changed.rank("Oslo")
    changed.remove(sorted(gone))
    left = {each.id: each for each in docs if each.id not in gone}
    mixed = sorted(left.values(), key=lambda each: random.Random(each.id).random())
    ours, new = (index.rank(" ".join(query)) for index in (changed, Index(mixed)))
    assert {hit.document.id for hit in ours} == {hit.document.id for hit in new}
    assert dict(ours) == pytest.approx(dict(new))
    assert len(changed) == len(left)


def test_what_the_user_asked_for_once_and_for_all_is_known_and_what_fits_comes_first() -> None:
    index = Index(
        [
            turn("a", "Always name the version when I ask about libraries.", when="2023-01-01"),
            turn("b", "From now on, answer in French.", when="2023-01-02"),
            turn("c", "Noted: always in French.", when="2023-01-02", is_reply=True),
            turn("d", "I always liked Oslo."),
        ]
    )
    assert [each.id for each in index.standing()] == ["b", "a"]
    assert [each.id for each in index.standing(index.rank("Which libraries are there?"))] == ["a", "b"]
    index.remove(["b"])
    assert [each.id for each in index.standing()] == ["a"]


def test_what_the_user_said_comes_before_a_reply_of_the_same_words() -> None:
    index = Index([turn("a", "figs", is_reply=True), turn("b", "figs")])
    assert found(index, "figs") == ["b", "a"]


@pytest.mark.parametrize(("said", "share"), [("Your figs came from Oslo by boat", 1.0), ("figs " * 40, 0.4)])
def test_a_reply_competes_by_what_it_says_and_an_explanation_counts_less(said: str, share: float) -> None:
    (users,), (reply,) = (Index([turn("a", said, is_reply=each)]).rank("figs") for each in (False, True))
    assert reply.score == share * users.score


def test_a_limit_keeps_what_is_as_good_as_the_last() -> None:
    index = Index([fact(str(n), "figs") for n in range(5)] + [fact("x", "tea")])
    assert found(index, "figs", limit=2) == ["0", "1", "2", "3", "4"]
    assert found(Index(), "figs") == []
    assert found(index, "?") == []


def test_stems_are_the_same_for_forms_of_one_word() -> None:
    assert len({stem(word) for word in ("camp", "camps", "camping", "camped")}) == 1
    assert stem("glass") == "glass"
    assert stem("bus") == "bus"
