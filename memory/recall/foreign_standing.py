"""What a user asked for once and for all, in the six most used languages of the web besides English. Pure.

English is read in `memory/recall/standing.py`. Here a wish is a clause that begins as one is told what to do, and says
that it is for good, names answers as such, or says how to call or to answer somebody. What people tell of themselves or
of others has another form or place.
"""

# ruff: noqa: RUF001 - letters of other scripts are meant

import re
from typing import Final

from memory.recall.japanese_wishes import JA_FORMS
from memory.recall.wishing_forms import FORMS
from memory.recall.wishing_words import JA_TELLS, JA_WISH, LANGUAGES
from memory.text import fold

# A longer sentence tells something; and each of its clauses is read to its end.
_MOST_CHARS: Final = 600
# So many characters lie between the parts of a wish, within one sentence.
_NEAR: Final = r"[^.!?\n\u3002\uff01\uff1f]{0,120}?"
# In these a clause of its own begins, which may hold the wish: "my friends say Nacho, so call me Nacho".
_CLAUSE: Final = re.compile(r"[,;]\s|\s(?=(?:y|e|pero|mas|asi que|und|aber|also|mais|et|donc|alors|entao|но|а|и)\s)")
_GREETINGS: Final = "oye|hola|y|pero|e|mas|und|aber|also|ach|et|mais|donc|ok|и|а|но|ну|oi|ola|entao|hey|hallo|salut"
_VERBS: Final = {
    words.language: rf"(?:(?P<answer>{words.answer})|(?P<sure>{words.sure})|(?:{words.do})(?:(?:me)?l[oa]s?)?)(?!\w)"
    for words in LANGUAGES
}
# One space at a time: runs of them would be tried in every division among the parts.
_LEADS: Final = {
    words.language: rf"[\W_]{{0,4}}(?:(?:{words.lead}|{words.please}|{words.good}),?\s){{0,4}}" for words in LANGUAGES
}
_ORDER: Final = {language: re.compile(_LEADS[language] + verbs) for language, verbs in _VERBS.items()}
_WHEN: Final = {
    words.language: re.compile(
        rf"[\W_]{{0,4}}(?:{words.when})(?!\w)[^,.!?\n]{{0,80}},\s(?:(?:{words.good})\s)?"
        rf"(?:{_VERBS[words.language]}|(?:no|nao) me \w+[ae]s?(?!\w))"
    )
    for words in LANGUAGES
}
# "When you are not sure, say so", "for recipes, use grams"; and forms that need no "always".
_YOUR_WHEN: Final = {
    forms.language: re.compile(
        rf"[\W_]{{0,4}}(?:{forms.when})(?!\w)[^,.!?\n]{{0,80}},\s(?:(?:{words.please}|{words.good}),?\s)?"
        rf"(?:{forms.then}|{_VERBS[forms.language]})(?! (?:ich|er|sie|wir|man|es|ihr|mein\w*)\b)"
    )
    for forms, words in zip(FORMS, LANGUAGES, strict=True)
}
_FORM: Final = {
    forms.language: re.compile(
        rf"[\W_]{{0,4}}(?:(?:{words.please}|{words.good}|{_GREETINGS}),?\s){{0,3}}(?:{'|'.join(forms.begins)})"
    )
    for forms, words in zip(FORMS, LANGUAGES, strict=True)
}
_JA_FORM: Final = re.compile("|".join(JA_FORMS))
_ASKED: Final = {
    words.language: re.compile(
        rf"{_LEADS[words.language]}(?:{words.modal})(?!\w){_NEAR}(?<!\w)(?:{words.infinitive})(?!\w)"
    )
    for words in LANGUAGES
}
_CALL: Final = {
    words.language: re.compile(rf"{_LEADS[words.language]}(?:{words.call})\s(?P<name>\w+)") for words in LANGUAGES
}
_WANT: Final = {words.language: re.compile(rf"{_LEADS[words.language]}(?:{words.want})(?!\w)") for words in LANGUAGES}
# "From today on: answers of three lines", "please always in English": no verb is needed.
_WITHOUT_VERB: Final = {
    words.language: re.compile(
        rf"[\W_]{{0,4}}(?:(?:{words.good}),?\s(?:{words.about}|{words.style})(?!\w)"
        rf"|(?:{words.about}|{words.style})(?!\w)[^.!?\n]{{0,40}}?(?<!\w)(?:{words.please})(?!\w)"
        rf"|(?:{words.good}),?\s(?:{words.please})(?!\w)|(?:{words.please}),?\s(?:{words.good})(?!\w))"
    )
    for words in LANGUAGES
}


def _anywhere(patterns: dict[str, str]) -> dict[str, re.Pattern[str]]:
    return {language: re.compile(rf"(?<!\w)(?:{pattern})(?!\w)") for language, pattern in patterns.items()}


_GOOD: Final = _anywhere({words.language: words.good for words in LANGUAGES})
_WHENEVER: Final = _anywhere({words.language: words.whenever for words in LANGUAGES})
_POLITE: Final = _anywhere({words.language: words.please for words in LANGUAGES})
_WHOLE: Final = _anywhere({words.language: words.whole for words in LANGUAGES})
_STYLE: Final = _anywhere({words.language: words.style for words in LANGUAGES})
_STEPS: Final = re.compile(
    r"\b(?:paso a paso|schritt fur schritt|etape par etape|pas a pas|passo a passo|по шагам|пошагов\w+)\b"
)
_PREFERS: Final = re.compile(r"\b(?:prefier|prefir|prefer|bevorzug|lieber\b|предпочита)")
_ABOUT: Final = _anywhere({words.language: f"{words.style}|{words.about}" for words in LANGUAGES})
_BRIEF: Final = _anywhere({words.language: words.brief for words in LANGUAGES})
_AMBIGUOUS: Final = frozenset(words.language for words in LANGUAGES if words.is_ambiguous)
_WORD: Final = re.compile(r"\w+")


def _is_wish(language: str, folded: str, text: str) -> bool:
    """Say whether a sentence is a wish in a language, given folded and as it stands."""
    if _WHOLE[language].search(folded) or _WHEN[language].match(folded) or _WITHOUT_VERB[language].match(folded):
        return True
    if _YOUR_WHEN[language].match(folded):
        return True
    is_for_good, is_style, is_about, is_brief = (
        where[language].search(folded) is not None for where in (_GOOD, _STYLE, _ABOUT, _BRIEF)
    )
    wanted = _WANT[language].match(folded)
    if (
        wanted
        and "?" not in folded
        and (is_style or (is_about and (is_brief or is_for_good or _PREFERS.search(folded))))
    ):
        return True
    if _ASKED[language].match(folded) and (is_for_good or is_style):
        return True
    begins = (0, *(each.end() for each in _CLAUSE.finditer(folded)))
    if "?" not in folded and any(_FORM[language].match(folded, begin) for begin in begins):
        return True
    return any(_is_ordered(language, folded[begin:], text) for begin in begins)


def _is_ordered(language: str, folded: str, text: str) -> bool:
    """Say whether a clause, up to the sentence's end, begins as an order does that holds for good."""
    if called := _CALL[language].match(folded):
        # A name has a capital letter; a taxi, which is called in the same words, has none.
        return any(word[0].isupper() and fold(word) == called["name"] for word in _WORD.findall(text))
    order = _ORDER[language].match(folded)
    if order is None:
        return bool(_WANT[language].match(folded) and _STYLE[language].search(folded) and "?" not in folded)
    is_about, is_brief = (where[language].search(folded) is not None for where in (_ABOUT, _BRIEF))
    # What ends with a question, or comes before one, is done with one answer.
    if order["answer"] and (is_brief or is_about) and "?" not in folded and ":" not in folded:
        return True
    is_told = order["sure"] or order.group().endswith("me")  # with this pronoun no statement looks like it
    is_plain = is_told or is_brief or language not in _AMBIGUOUS or _POLITE[language].search(folded)
    is_for_good = _GOOD[language].search(folded) or _WHENEVER[language].search(folded, order.end())
    return is_about or bool(is_for_good and is_plain)


_JAPANESE: Final = re.compile("[\u3040-\u30ff]")
# None of these is a word of the five languages with Latin or Cyrillic letters: most messages are read no further.
_ENGLISH: Final = re.compile(r"\b(?:the|you|and|with|i|my|is)\b", re.IGNORECASE)
# Behind a wish, this is no question.
_TAG: Final = re.compile(r",\s*(?:ok|okay|vale|de acuerdo|ja|gut|d'accord|hein|ta|certo|хорошо|ладно)\s*\?")
_QUOTES: Final = re.compile('[\u00ab\u00bb\u201c\u201d\u201e"]')
_ENDS: Final = re.compile(r"(?<=[.!?])\s+|\n|(?<=[\u3002\uff01\uff1f])")


def _folded(text: str) -> str:
    """Fold a text, and leave out what says nothing: quotation marks ("на «вы»"), and "okay?" at the end."""
    return _TAG.sub(".", _QUOTES.sub("", fold(text.replace("\u2019", "'"))))


def is_foreign_standing(text: str) -> bool:
    """Say whether a sentence of a text asks for something once and for all; English is not looked at."""
    return any(foreign_wish(sentence) for sentence in _ENDS.split(text))


def foreign_wish(sentence: str) -> str:
    """Return in which language (`es`, `de` …) one sentence asks for something once and for all; empty for none."""
    if len(sentence) > _MOST_CHARS:
        return ""
    if _JAPANESE.search(sentence):
        return "ja" if JA_WISH.search(sentence) or _JA_FORM.search(sentence) else ""
    if _ENGLISH.search(sentence):
        return ""
    folded = _folded(sentence)
    return next((language for language in _ORDER if _is_wish(language, folded, sentence)), "")


def is_about_foreign_answers(content: str) -> bool:
    """Say whether a fact tells how the user wants to be answered; English is not looked at."""
    if _JAPANESE.search(content):
        return JA_TELLS.search(content) is not None
    folded = _folded(content)
    return _STEPS.search(folded) is not None or any(about.search(folded) for about in _ABOUT.values())
