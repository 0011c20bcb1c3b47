"""Until when a fact holds, where its text says so in one of the other languages: "esta semana", "bis Freitag". Pure.

As in English (`memory/extraction/validity.py`), what is relative to the day of the message has its date in brackets
behind it already, and only what is beyond doubt is read.
"""

# ruff: noqa: RUF001 - letters of other scripts are meant

import re
from datetime import date, timedelta
from typing import Final

# The days of the week as they stand behind "until", from Monday; Portuguese needs its "-feira", or "segunda" is second.
_WEEKDAYS: Final = (
    "lunes|montag|lundi|segunda-feira|понедельника|月曜日|月曜",
    "martes|dienstag|mardi|terça-feira|вторника|火曜日|火曜",
    "miércoles|mittwoch|mercredi|quarta-feira|среды|水曜日|水曜",
    "jueves|donnerstag|jeudi|quinta-feira|четверга|木曜日|木曜",
    "viernes|freitag|vendredi|sexta-feira|пятницы|金曜日|金曜",
    "sábado|samstag|samedi|субботы|土曜日|土曜",
    "domingo|sonntag|dimanche|воскресенья|日曜日|日曜",
)
_DATE: Final = r"(?P<begin>\d{4}-\d\d(?:-\d\d)?|\d{4})(?:/(?P<last>\d{4}-\d\d-\d\d))?"
_WEEKDAY: Final = "(?P<weekday>" + "|".join(_WEEKDAYS) + ")"
_UNTIL: Final = (
    # Few words between: "hasta el final de la semana que viene (…)".
    re.compile(rf"(?:\b(?:hasta|bis|até|до)\b|\bjusqu['\u2019])[^.;,()]{{0,30}}\({_DATE}\)(?!\s?まで)", re.IGNORECASE),
    re.compile(
        rf"\b(?:hasta|bis|até|до)\s{_DATE}(?![\d-])|\bjusqu['\u2019]au\s{_DATE.replace('<', '<fr')}", re.IGNORECASE
    ),
    re.compile(
        rf"\b(?:hasta\s(?:el|este)|bis|bis\szum|jusqu['\u2019][àa]|jusqu['\u2019]au|até|até\s[oaà]|do|до)\s{_WEEKDAY}\b"
        r"(?!\s?\()",
        re.IGNORECASE,
    ),
    re.compile(rf"(?:\({_DATE}\)|{_WEEKDAY.replace('<', '<ja')})\s?まで"),
)
# "No empieza hasta marzo", "fängt nicht vor", "не раньше": these tell when something begins.
_NEGATED: Final = re.compile(
    r"\b(?:no|nunca|nicht|kein\w{0,2}|erst|ne|n['\u2019]\w+|pas|não|só|не|нет)\b|ない|ません", re.IGNORECASE
)
_HABIT: Final = re.compile(
    r"\b(?:cada|siempre|suele|jede\w?|immer|chaque|toujours|todos|todas|sempre|кажд\w{2,3}|всегда)\b|毎|いつも",
    re.IGNORECASE,
)
_THIS: Final = re.compile(
    r"(?:\best[ea] (?:semana|mes|fin de semana|mañana|tarde|noche)|\bhoy"
    r"|\bdiese[nrsm]? (?:woche|monat|wochenende)|\bheute(?: (?:morgen|abend|nacht|mittag|früh))?"
    r"|\bc(?:e|et|ette) (?:semaine|mois|week-?end|matin|soir|après-midi)|\baujourd['\u2019]hui"
    r"|\bn?est[ea] (?:mês|fim de semana|manhã|noite)|\bhoje"
    r"|\bэт(?:ой|у|от|ом|и) (?:неделе|неделю|месяце?|выходные)|\bсегодня"
    rf"|今(?:週末?|月|日|朝|晩|夜))\s?\({_DATE}\)",
    re.IGNORECASE,
)
# What is so for a time. What begins then ("zieht diese Woche um") may last for good.
_FOR_A_TIME: Final = re.compile(
    r"\b(?:está|estará|se queda|visita|viaja|tiene que|debe|fica|tem que|tem de)\b"
    r"|\bist\b[^.;]{0,60}\b(?:in|im|am|auf|bei|zu besuch|krank|unterwegs|weg|verreist|beschäftigt)\b"
    r"|\b(?:bleibt|besucht|muss)\b"
    r"|\best (?:encore |actuellement )?(?:à|en|au|aux|chez|dans|malade|absente?|occupée?)\b|\b(?:reste|séjourne|doit)\b"
    r"|\b(?:находится|остаётся|остается|гостит|болеет|в отпуске|в командировке|в отъезде|должен|должна)\b"
    r"|(?:にいる|にいます|滞在|出張|休暇|休み|旅行中|なければならない)",
    re.IGNORECASE,
)
# "Ist diese Woche nach Oslo gezogen" tells what happened.
_HAPPENED: Final = re.compile(r"\b(?:ist|hat)\b[^.;]{0,80}\b\w{0,12}ge\w{2,20}(?:t|en)\b", re.IGNORECASE)


def foreign_validity(content: str, said: date | None) -> tuple[str, str]:
    """Return from when and until when a fact holds; empty parts where its text does not tell beyond doubt.

    Args:
        content: The fact, with its relative dates resolved.
        said: The day it was said; it tells which Friday is meant.
    """
    if _HABIT.search(content):
        return "", ""
    ends = {end for pattern in _UNTIL for found in pattern.finditer(content) if (end := _end(found, said))}
    if ends:
        return ("", ends.pop()) if len(ends) == 1 and not _NEGATED.search(content) else ("", "")
    times = list(_THIS.finditer(content))
    if len(times) != 1 or not _FOR_A_TIME.search(content) or _HAPPENED.search(content):
        return "", ""
    return times[0]["begin"], times[0]["last"] or times[0]["begin"]


def _end(found: re.Match[str], said: date | None) -> str:
    named = {name.removeprefix("fr").removeprefix("ja"): value for name, value in found.groupdict().items() if value}
    if weekday := named.get("weekday"):
        at = next(at for at, names in enumerate(_WEEKDAYS) if weekday.lower() in names.split("|"))
        return (said + timedelta((at - said.weekday()) % 7)).isoformat() if said else ""
    return named.get("last") or named.get("begin", "")
