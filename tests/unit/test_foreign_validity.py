"""Until when a fact holds, said in one of the six languages besides English."""

from datetime import date

import pytest

from memory.extraction.days import with_dates
from memory.extraction.validity import validity

WEDNESDAY = date(2026, 5, 6)
THIS_WEEK = ("2026-05-04", "2026-05-10")
TO_FRIDAY = ("", "2026-05-08")


def held(text: str) -> tuple[str, str]:
    return validity(with_dates(text, WEDNESDAY), WEDNESDAY)


@pytest.mark.parametrize(
    "text",
    [
        "User is in Paris this week",
        "El usuario está en París esta semana",
        "Der Nutzer ist diese Woche in Paris",
        "L'utilisateur est à Paris cette semaine",
        "Пользователь на этой неделе находится в Париже",
        "ユーザーは今週パリにいる",
    ],
)
def test_what_is_so_this_week_is_over_with_it(text: str) -> None:
    assert held(text) == THIS_WEEK


def test_portuguese_shares_its_week_with_spanish() -> None:
    assert held("O usuário está em Paris esta semana") == THIS_WEEK


@pytest.mark.parametrize(
    "text",
    [
        "User is in Paris until Friday",
        "El usuario está en París hasta el viernes",
        "Der Nutzer ist bis Freitag in Paris",
        "L'utilisateur est à Paris jusqu'à vendredi",
        "O usuário está em Paris até sexta-feira",
        "Пользователь находится в Париже до пятницы",
        "ユーザーは金曜日までパリにいる",
    ],
)
def test_until_a_day_of_the_week_is_until_the_first_one_from_now(text: str) -> None:
    assert held(text) == TO_FRIDAY


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("El usuario está en París hasta mañana", "2026-05-07"),
        ("Der Nutzer ist bis übermorgen in Paris", "2026-05-08"),
        ("L'utilisateur est à Paris jusqu'à la semaine prochaine", "2026-05-17"),
        ("O usuário está em Paris até amanhã", "2026-05-07"),
        ("Пользователь находится в Париже до 2026-06-01", "2026-06-01"),
        ("ユーザーは来週までパリにいる", "2026-05-17"),
        ("Der Nutzer ist bis 2026-06 in Paris", "2026-06"),
    ],
)
def test_until_a_date_is_until_that_date(text: str, end: str) -> None:
    assert held(text) == ("", end)


@pytest.mark.parametrize(
    "text",
    [
        "El usuario se muda a Oslo esta semana",
        "Der Nutzer ist diese Woche nach Oslo gezogen",
        "Der Nutzer zieht diese Woche nach Oslo",
        "L'utilisateur commence un nouveau travail cette semaine",
        "Пользователь на этой неделе переехал в Осло",
        "ユーザーは今週オスロに引っ越した",
        "El usuario no empieza hasta el viernes",
        "Der Nutzer arbeitet jede Woche bis Freitag",
        "User does not start until Friday",
        "O usuário trabalha sempre até sexta-feira",
        "Der Nutzer wohnt in Paris",
        "Do Friday talks interest the user",
    ],
)
def test_what_may_last_or_is_a_habit_has_no_end(text: str) -> None:
    assert held(text) == ("", "")
