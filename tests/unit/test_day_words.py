"""Relative dates in the six most used languages of the web besides English; English texts stay what they were."""

# ruff: noqa: RUF001 - letters of other scripts are meant

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.calendar import Calendar
from memory.extraction.days import with_dates

FRIDAY = date(2026, 5, 8)


@pytest.mark.parametrize(
    "meant",
    [
        "Ayer (2026-05-07) vi a Ana.",
        "Mañana (2026-05-09) por la mañana corro con mi perro.",
        "Pasado mañana (2026-05-10) viajo a Lima.",
        "Me mudé hace tres semanas (2026-04-17).",
        "Anteayer (2026-05-06) comí con mi tío.",
        "La semana pasada (2026-04-27/2026-05-03) empecé un curso.",
        "El próximo viernes (2026-05-15) es mi boda.",
        "El mes que viene (2026-06) cumplo años.",
        "Gestern (2026-05-07) war ich beim Arzt.",
        "Ich ziehe übermorgen (2026-05-10) um.",
        "Morgen (2026-05-09) fahre ich nach Bonn.",
        "Am Morgen trinke ich Tee.",
        "Guten Morgen! Ich wohne hier.",
        "Vor zwei Wochen (2026-04-24) habe ich geheiratet.",
        "In 3 Tagen (2026-05-11) beginnt mein Urlaub.",
        "Nächstes Jahr (2027) studiere ich in Graz.",
        "Letzten Montag (2026-05-04) bin ich gelaufen.",
        "Hier (2026-05-07) j'ai vu mon frère.",
        "Il y a 3 jours (2026-05-05) j'ai déménagé.",
        "Je pars après-demain (2026-05-10) avec ma fille.",
        "Aujourd'hui (2026-05-08) je suis malade.",
        "La semaine prochaine (2026-05-11/2026-05-17) je suis à Lyon.",
        "Ontem (2026-05-07) comprei um carro.",
        "Mudei há duas semanas (2026-04-24) para o Porto.",
        "Depois de amanhã (2026-05-10) viajo com a minha mãe.",
        "No próximo ano (2027) vou estudar.",
        "Вчера (2026-05-07) я видел Анну.",
        "Послезавтра (2026-05-10) я еду в Казань.",
        "Я переехал две недели назад (2026-04-24).",
        "Через 3 дня (2026-05-11) у меня экзамен.",
        "В прошлом году (2025) я жил в Омске.",
        "昨日(2026-05-07)東京に行きました。",
        "3日前 (2026-05-05)に引っ越しました。",
        "来週の月曜日 (2026-05-11)に試験があります。",
        "来月 (2026-06)結婚します。",
        "二週間前 (2026-04-24)に犬を飼い始めました。",
    ],
)
def test_what_is_relative_gets_the_day_it_means(meant: str) -> None:
    said = meant
    for bracket in re.findall(r" ?\(\d[^)]*\)", meant):
        said = said.replace(bracket, "")
    assert with_dates(said, FRIDAY).replace(" (", "(") == meant.replace(" (", "(")
    # Once more changes nothing: what stands in brackets is resolved.
    assert with_dates(with_dates(said, FRIDAY), FRIDAY) == with_dates(said, FRIDAY)


@pytest.mark.parametrize(
    "text",
    [
        "Ich wohne hier in Bonn.",
        "Nächsten Samstag koche ich.",  # the one of this week, or of the next: nobody can tell
        "Hace muchos días que no corro.",
        "Corro cada mañana por la mañana.",
        "Heather Morgen and Mr. Hier live in Ayer, in a house.",
        "Il y a des gens dans le parc.",
        "We demand that the vor is in the los.",
    ],
)
def test_what_is_not_clear_is_left_alone(text: str) -> None:
    assert with_dates(text, FRIDAY) == text


def test_the_days_are_days_that_were_meant() -> None:
    meant = Calendar.of("Ayer vi a Ana. La semana pasada empecé.", FRIDAY)
    assert {date(2026, 5, 7), date(2026, 4, 27), date(2026, 5, 3)} <= meant.days


@given(st.text(max_size=60), st.dates(date(1990, 1, 1), date(2090, 1, 1)))
def test_nothing_but_brackets_is_added(text: str, said: date) -> None:
    found = with_dates(text, said)
    assert re.sub(r" \([^()]*\)", "", found) == re.sub(r" \([^()]*\)", "", text)
