"""What a small model reads before a message in another language than English: it writes as its examples do. Pure."""

# ruff: noqa: RUF001 - letters of other scripts are meant

import json
import re
from collections.abc import Mapping
from typing import Final

from memory.prompts import BRIEF_EXAMPLES
from memory.text import word_set

# What is said, and the notes that are made of it: a person's own, none, what is not eaten, and how to answer.
_SAID: Final[Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]]] = {
    "es": (
        (
            "¡Hola! Soy Ana. Mi marido Leo y yo nos mudamos de Roma a Oslo, con nuestro perro Pip.",
            (
                "El usuario se llama Ana.",
                "El marido del usuario se llama Leo.",
                "El usuario se mudó de Roma a Oslo.",
                "El usuario tiene un perro llamado Pip.",
            ),
        ),
        ("¡Gracias, me ha ayudado mucho! ¿Qué es un fiordo?", ()),
        (
            "No puedo comer setas, me sientan mal. Ayer (2026-06-11) le prometí a Eva llevar un pastel.",
            (
                "El usuario no puede comer setas: le sientan mal.",
                "El usuario prometió a Eva llevar un pastel (2026-06-11).",
            ),
        ),
        (
            "Por favor, escríbeme en mayúsculas, no veo bien.",
            ("El usuario quiere respuestas en mayúsculas, porque no ve bien.",),
        ),
    ),
    "de": (
        (
            "Hallo! Ich bin Ana. Mein Mann Leo und ich sind von Rom nach Oslo gezogen, mit unserem Hund Pip.",
            (
                "Der Nutzer heißt Ana.",
                "Der Mann des Nutzers heißt Leo.",
                "Der Nutzer ist von Rom nach Oslo gezogen.",
                "Der Nutzer hat einen Hund namens Pip.",
            ),
        ),
        ("Danke, das hat mir sehr geholfen! Was ist ein Fjord?", ()),
        (
            "Ich kann keine Pilze essen, mir wird davon schlecht. Gestern (2026-06-11) habe ich Eva "
            "versprochen, einen Kuchen zu bringen.",
            (
                "Der Nutzer kann keine Pilze essen: ihm wird davon schlecht.",
                "Der Nutzer hat Eva versprochen, einen Kuchen zu bringen (2026-06-11).",
            ),
        ),
        (
            "Bitte schreib mir in Großbuchstaben, ich sehe schlecht.",
            ("Der Nutzer möchte Antworten in Großbuchstaben, weil er schlecht sieht.",),
        ),
    ),
    "fr": (
        (
            "Bonjour ! Je suis Ana. Mon mari Leo et moi avons déménagé de Rome à Oslo, avec notre chien Pip.",
            (
                "L'utilisateur s'appelle Ana.",
                "Le mari de l'utilisateur s'appelle Leo.",
                "L'utilisateur a déménagé de Rome à Oslo.",
                "L'utilisateur a un chien appelé Pip.",
            ),
        ),
        ("Merci, c'est très utile ! Qu'est-ce qu'un fjord ?", ()),
        (
            "Je ne peux pas manger de champignons, ils me rendent malade. Hier (2026-06-11), j'ai "
            "promis à Eva d'apporter un gâteau.",
            (
                "L'utilisateur ne peut pas manger de champignons : ils le rendent malade.",
                "L'utilisateur a promis à Eva d'apporter un gâteau (2026-06-11).",
            ),
        ),
        (
            "Écris-moi en majuscules, s'il te plaît, je vois mal.",
            ("L'utilisateur veut des réponses en majuscules, car il voit mal.",),
        ),
    ),
    "pt": (
        (
            "Olá! Sou a Ana. O meu marido Leo e eu mudámos de Roma para Oslo, com o nosso cão Pip.",
            (
                "O usuário chama-se Ana.",
                "O marido do usuário chama-se Leo.",
                "O usuário mudou de Roma para Oslo.",
                "O usuário tem um cão chamado Pip.",
            ),
        ),
        ("Obrigado, ajudou muito! O que é um fiorde?", ()),
        (
            "Não posso comer cogumelos, fazem-me mal. Ontem (2026-06-11) prometi à Eva levar um bolo.",
            (
                "O usuário não pode comer cogumelos: fazem-lhe mal.",
                "O usuário prometeu à Eva levar um bolo (2026-06-11).",
            ),
        ),
        (
            "Por favor, escreva-me em maiúsculas, não vejo bem.",
            ("O usuário quer respostas em maiúsculas, porque não vê bem.",),
        ),
    ),
    "ru": (
        (
            "Привет! Я Аня. Мы с мужем Лёвой переехали из Рима в Осло, с нашей собакой Пип.",
            (
                "Пользователя зовут Аня.",
                "Мужа пользователя зовут Лёва.",
                "Пользователь переехал из Рима в Осло.",
                "У пользователя есть собака Пип.",
            ),
        ),
        ("Спасибо, очень помогло! Что такое фьорд?", ()),
        (
            "Мне нельзя грибы, мне от них плохо. Вчера (2026-06-11) я обещал Еве принести торт.",
            ("Пользователю нельзя грибы: ему от них плохо.", "Пользователь обещал Еве принести торт (2026-06-11)."),
        ),
        (
            "Пожалуйста, пиши мне заглавными буквами, я плохо вижу.",
            ("Пользователь хочет ответы заглавными буквами, потому что плохо видит.",),
        ),
    ),
    "ja": (
        (
            "こんにちは、アナです。夫のレオと犬のピップと一緒に、ローマからオスロに引っ越しました。",
            (
                "ユーザーの名前はアナ。",
                "ユーザーの夫はレオ。",
                "ユーザーはローマからオスロに引っ越した。",
                "ユーザーはピップという犬を飼っている。",
            ),
        ),
        ("ありがとう、助かりました。フィヨルドとは何ですか。", ()),
        (
            "きのこは食べられません、気分が悪くなるので。昨日 (2026-06-11)、エヴァにケーキを持っていくと約束しました。",
            (
                "ユーザーはきのこを食べられない。気分が悪くなるから。",
                "ユーザーはエヴァにケーキを持っていくと約束した (2026-06-11)。",
            ),
        ),
        (
            "目がよく見えないので、大きな文字で書いてください。",
            ("ユーザーは目がよく見えないので、大きな文字の返事を望んでいる。",),
        ),
    ),
}
FOREIGN_EXAMPLES: Final = {
    language: tuple((said, json.dumps({"facts": notes}, ensure_ascii=False)) for said, notes in examples)
    for language, examples in _SAID.items()
}
FOREIGN_NOTES: Final = tuple(note for examples in _SAID.values() for _, notes in examples for note in notes)
"""What the examples note: a small model repeats it, so it is refused where the user did not say it."""

# Small words, and letters that count as much. Those that many languages share decide nothing between them.
_SMALL: Final = {
    "en": word_set(
        "the a an is was has have had and with of their his her does not likes wants works lives who to for are at my "
        "i am you it be this that on prefers plans loves hates about from"
    ),
    "es": word_set(
        "y el la los las un una mi mis tu tus su me se que como cuando siempre nunca por para con sin del al "
        "de en muy más estoy soy tengo trabajo quiero gusta prefiero es está desde hace ayer hoy lo le vivo "
        "este esta a no semana ¿ ¡ ñ á í ó ú"
    ),
    "pt": word_set(
        "o os um uma meu minha meus minhas seu sua tu me se que como quando sempre nunca por para com sem do "
        "da dos das ao de no na nos nas e muito mais estou sou tenho trabalho quero gosto prefiro está desde "
        "há ontem hoje eu não moro você este esta a às semana ã õ ê á í ó ú"
    ),
    "fr": word_set(
        "le la les un une des du de en je j mon ma mes ton ta tes tu me se que qui quand toujours jamais pour "
        "par avec sans dans sur et est suis ai ne n pas plus très nous vous il elle c l qu y depuis hier chez "
        "comme au à è ê œ"
    ),
    "de": word_set(
        "ich mein meine meinen meiner mich mir du dich dir der die das den dem ein eine einen und ist bin hat "
        "habe nicht kein keine mit von vor seit bei nach für auf im am zu zum zur in an wenn immer nie gern "
        "sehr bitte gestern heute auch als ä ö ü ß"
    ),
}
_LEAST: Final = 2
_KANA: Final = re.compile("[\u3040-\u30ff]")
_CYRILLIC: Final = re.compile("[\u0400-\u04ff]")
_WORD: Final = re.compile(r"[^\W\d_]+")


def examples_for(text: str) -> tuple[tuple[str, str], ...]:
    """Return the examples in the language of what the user said: the English ones where that is unclear."""
    return FOREIGN_EXAMPLES.get(language_of(text), BRIEF_EXAMPLES)


def language_of(text: str) -> str:
    """Return the language of a text, one of the six; empty for English, and where small words do not tell it."""
    if _KANA.search(text):
        return "ja"
    said = _WORD.findall(text.casefold())
    if 2 * len(_CYRILLIC.findall(text)) > sum(map(len, said)):
        return "ru"
    seen = [*said, *(letter for letter in text.casefold() if not letter.isascii())]
    signs = {language: sum(sign in small for sign in seen) for language, small in _SMALL.items()}
    english = signs.pop("en")
    second, best = sorted(signs, key=lambda language: signs[language])[-2:]
    # Names and borrowed words bring other languages' letters into an English text.
    is_clear = signs[best] >= _LEAST and signs[best] > signs[second] and signs[best] > 2 * english
    return best if is_clear else ""
