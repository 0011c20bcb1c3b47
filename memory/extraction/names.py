"""Which names a text holds, and whether others said them. Pure.

Nobody can tell a name by its letters alone. Here it is a word with a capital letter in the middle of a sentence, or one
in the place of a name ("heißt Anna", アンナさん). German writes all nouns with a capital letter, so there only such
places count, and what looks like another's name misspelt. Scripts are compared with themselves only.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Self

from memory.text import fold, word_set

_FUNCTION_WORDS: Final = {
    "en": "the a an is was has have had and with of their his her does not likes wants works lives who to for are at "
    "my i am you it be this that on prefers plans loves hates about from",
    "de": "der die das ist war hat und mit von ein eine einen seit nicht ich wohnt lebt heißt arbeitet liebt kommt aus "
    "für mein meine gern auf zum zur im bei als wird sie er des dem den auch am bin habe wir mich sich",
    "es": "el la los las es era tiene y con un una su vive trabaja se llama no que para por yo mi soy me gusta del al",
    "fr": "le la les est était a et avec un une son sa vit travaille s'appelle ne pas que pour je mon ma suis du des "
    "aux il elle",
    "it": "il lo la gli è ha e con un una suo sua vive lavora si chiama non che per io mio mia sono di del",
    "pt": "o os as é tem e com um uma seu sua mora trabalha não que para eu meu minha sou do da em",
    "nl": "de het een is heeft en met zijn haar woont werkt niet dat voor ik mijn ben van",
}
_LANGUAGE_OF: Final = {language: word_set(text) for language, text in _FUNCTION_WORDS.items()}
# Words that take a capital letter and name nobody. Months and weekdays are dates, and are judged as such.
_NO_NAMES: Final = word_set(
    """
    user users the i a an dr mr mrs ms prof sir mom mum dad mommy daddy mama papa grandma grandpa granny aunt uncle
    nutzer nutzers benutzer benutzerin usuario utilisateur utente gebruiker ai tv pc it id ok am pm phd mba msc bsc ba
    ma ceo cto cfo hr usb gps diy faq pdf url api app internet web wifi christmas easter bachelor master god covid
    he she they his her their its in on at this that there who
    """,
    fold,
)
# Names of one thing, a group between bars: in short (in capitals only), in other languages, and what comes from it.
_SAME: Final = """
| USA US united_states america american americans amerika amerikanisch EEUU estados_unidos estadounidense
| UK great_britain united_kingdom britain british großbritannien | EU european_union europe european europa
| germany german germans deutschland deutsch alemania alemán allemagne allemand
| spain spanish spaniard españa español española spanien spanisch espagne espagnol
| france french francia francés frankreich französisch français | italy italian italia italiano italien italienisch
| netherlands dutch holland niederlande niederländisch nederland nederlands países_bajos
| switzerland swiss schweiz suisse suiza svizzera | norway norwegian norge norsk norwegen norwegisch noruega
| sweden swedish swede sverige svensk schweden schwedisch suecia | denmark danish dane danmark dansk dänemark dänisch
| poland polish polska polski polen polnisch polonia | greece greek griechenland griechisch grecia
| turkey turkish türkiye türkei türkisch turquía | ireland irish irland | scotland scottish schottland | wales welsh
| england english engländer englisch inglés anglais inglaterra angleterre inglese | finland finnish suomi finnland
| iceland icelandic isländisch | portugal portuguese português portugiesisch | china chinese chinesisch 中国 中文
| japan japanese japón japonés japanisch 日本 | korea korean | russia russian russland russisch россия русский
| thailand thai | philippines filipino filipina | israel israeli hebrew | ukraine ukrainian україна
| austria austrian österreich autriche | belgium belgian belgien belgique bélgica | brazil brazilian brasil brasilien
| munich münchen | cologne köln colonia | vienna wien viena | zurich zürich | geneva genf genève ginebra
| milan milano mailand | rome roma rom | venice venezia venedig | naples napoli neapel | florence firenze florenz
| prague praha prag praga | warsaw warszawa warschau | moscow москва moskau moskva | athens athen atenas
| copenhagen københavn kopenhagen | lisbon lisboa lissabon | brussels brüssel bruxelles | nuremberg nürnberg
| seville sevilla | london londres londra | paris parís parigi | new nueva nouvelle nova | tokyo 東京
| beijing peking 北京 | christmas xmas weihnachten navidad noël | javascript JS | typescript TS
| postgresql postgres | kubernetes k8s
"""
_DERIVED: Final = word_set("an ian ean n er ese i ish ist ite s es")
# Languages whose names keep their letters; in others a name may end in many ways.
_UNINFLECTED: Final = word_set("en es fr it pt nl")
# German: what stands before a name, and after which verbs and prepositions a place is named.
_NAMING: Final = word_set(
    """
    heißt heisst namens genannt herr herrn dr schwester bruder mutter vater tochter sohn frau mann freund freundin
    partner partnerin ehefrau ehemann hund hündin katze kater pferd baby kind kollege kollegin chef chefin stadt firma
    nachbar nachbarin tante onkel oma opa cousin cousine enkel enkelin
    """,
    fold,
)
_GOING: Final = word_set("wohnt lebt zieht zog stammt kommt geboren umgezogen gezogen reist fliegt fährt", fold)
_WHERE: Final = word_set("in aus nach")
# What stands behind the same words and is no place: "lebt in Armut", "zieht nach Hause", "in Rente".
_COMMON_ENDINGS: Final = tuple(word_set("ung heit keit zeit schaft ion tat haus hause rente not armut"))
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019](?=[^\W\d_]{2})[^\W\d_]+)?")
_ENDS = re.compile(r"[.!?:;\u2026\"\u201c\u201d\u201e\u00ab\u00bb(\[*\n-]\s{0,4}$")
_ADDRESS = re.compile(
    r"https?://\S+|[\w.+-]{1,64}@[\w.-]+|(?<![\w@.])[\w-]{1,63}\.(?:com|org|net|io|de|dev|ai|uk|fr|es)\b"
)
_HONORED = re.compile(r"([\u30a0-\u30ff]{1,12}|[\u3400-\u9fff]{1,4})(?:さん|くん|ちゃん|様|氏|先生)")
_CALLED = re.compile(r"(?:名叫|叫做|名字是|名字叫|名前は「?)([\u3400-\u9fff]{2}|[\u30a0-\u30ff]{2,12})")
# Who is called by an honorific without a name: "mother", "the doctor", "everybody".
_KIN: Final = word_set("母 父 兄 姉 娘 息子 奥 旦那 医者 婆 爺 妹 弟 子 皆 客 赤 嫁 主人 孫")
_POSSESSIVE = re.compile(r"['\u2019]s?$")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_LETTER = re.compile(r"[^\W\d_]")
# Words of a family begin with the same three letters, so only those are compared: "Oslo" with "Oslo's", not with all.
_SHARED: Final = 3
# Words whose lengths differ by more cannot be as alike as `_ALIKE` asks.
_LENGTHS_APART: Final = 3
# How alike two spellings are of 1 (`SequenceMatcher.ratio`): "Sarah" and "Sara" 0.89, "Anna" and "Anne" 0.75.
_ALIKE: Final = 0.75
# Names in two languages are less so: "Florence" and "Firenze" 0.67, "Warsaw" and "Warschau" 0.71.
_LIKE_ANOTHER_LANGUAGE_S: Final = 0.6
_LONG_ENOUGH: Final = 5  # shorter words are alike by chance


def _groups() -> dict[str, list[tuple[str, ...]]]:
    """Return for each word of a name the forms that all mean the same."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for line in _SAME.split("|"):
        forms = tuple(each if each.isupper() else fold(each).replace("_", " ") for each in line.split())
        for form in forms:
            for word in form.split():
                found.setdefault(word, []).append(forms)
    return found


_GROUPS: Final = _groups()


def language_of(*texts: str) -> str:
    """Return the language that the first text with any has most of its small words from (`en`, `de` …); else empty."""
    for text in texts:
        counts = small_words(text)
        best = max(counts, key=lambda language: counts[language])
        if counts[best]:
            return best
    return ""


def small_words(text: str) -> dict[str, int]:
    """Return how many small words of each language (`en`, `de` …) a text has."""
    found = [word.casefold() for word in _WORD.findall(text)]
    return {language: sum(word in known for word in found) for language, known in _LANGUAGE_OF.items()}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What was said, as names are looked up in it.

    Attributes:
        words: Its words, folded; those in capitals also as they are.
        alike: Its words by their first three letters.
        text: All of it, folded, one space between words.
        initials: The initials of two to four words in a row.
        named: Its words that begin with a capital letter, folded, by their first letter.
        languages: The languages it is in.
        is_latin: Whether most of its letters are Latin.
    """

    words: frozenset[str]
    alike: Mapping[str, frozenset[str]]
    text: str
    initials: frozenset[str]
    named: Mapping[str, frozenset[str]]
    languages: frozenset[str]
    is_latin: bool

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """Return what these texts say."""
        own = list(texts)
        found = [word for text in own for word in _WORD.findall(text)]
        folded = [fold(word) for word in found]
        forms = {form for word in set(folded) for form in _forms(word)}
        letters = _LETTER.findall(" ".join(own))
        heads = [word[0] for word in folded if word not in ("of", "the", "and")]
        return cls(
            words=frozenset(forms | {word for word in found if word.isupper()}),
            alike=_by_start(forms, _SHARED),
            text=f" {' '.join(folded)} {fold(' '.join(own))}",
            initials=frozenset("".join(heads[at : at + n]) for n in (2, 3, 4) for at in range(len(heads) - n + 1)),
            named=_by_start({fold(word) for word in found if word[0].isupper()}, 1),
            languages=frozenset(map(language_of, own)),
            is_latin=2 * len(_LATIN.findall(" ".join(own))) >= len(letters),
        )

    def joined(self, other: "Vocabulary") -> "Vocabulary":
        """Return what both say, in the languages of this one."""
        return Vocabulary(
            words=self.words | other.words,
            alike=_joined(self.alike, other.alike),
            text=f"{self.text} {other.text}",
            initials=self.initials | other.initials,
            named=_joined(self.named, other.named),
            languages=self.languages,
            is_latin=self.is_latin,
        )

    def has(self, word: str, language: str) -> bool:
        """Say whether a word of a name in a text of that language is one of these, in some form or another language."""
        folded = fold(word)
        if any(form in self.words for form in _forms(folded)) or (f" {folded}" in self.text and not self.is_latin):
            return True
        # Scripts cannot be compared with each other: what may be the same name passes.
        if bool(_LATIN.match(folded)) != self.is_latin or (word.isupper() and folded in self.initials):
            return True
        groups = _GROUPS.get(word, []) + _GROUPS.get(folded, [])
        if any(f" {form} " in self.text or form in self.words for group in groups for form in group):
            return True
        near = self.alike.get(folded[:_SHARED], frozenset())
        if any(_is_derived(folded, each) for each in near):
            return True
        if language not in (*_UNINFLECTED, "de") and any(_is_inflected(folded, each) for each in near):
            return True
        return language not in self.languages and any(
            _alike(each, folded) >= _LIKE_ANOTHER_LANGUAGE_S for each in self.named.get(folded[0], ())
        )

    def misspells(self, word: str) -> bool:
        """Say whether a folded word is almost one of these with a capital letter, but no other form of it."""
        if len(word) < _LONG_ENOUGH or _forms(word) & self.words:
            return False
        return any(
            len(each) >= _LONG_ENOUGH
            and word[:-2] != each[:-2]
            and not word.startswith(each[:-3])
            and not each.startswith(word[:-3])
            and _alike(each, word) >= _ALIKE
            for each in self.named.get(word[0], ())
        )


def unsaid_name(text: str, said: Vocabulary, language: str) -> str:
    """Return the first name in a text that was not said; empty if there is none.

    Args:
        text: A fact, or a section of the profile.
        said: What may lend it names.
        language: The text's own (`en`, `de` …), empty if it is not known.
    """
    for found in _ADDRESS.findall(text):
        if fold(found.rstrip(".,;")) not in said.text:
            return str(found)
    for found in (*_HONORED.findall(text), *_CALLED.findall(text)):
        if found not in _KIN and fold(found) not in said.text:
            return str(found)
    for run in _runs(_ADDRESS.sub(" ", text), said, language):
        if "".join(word[0] for word in run).upper() in said.words:
            continue  # "New York City" of "NYC"
        for word in run:
            if not said.has(word, language):
                return word
    return ""


def _runs(text: str, said: Vocabulary, language: str) -> Iterator[list[str]]:
    """Yield the names of a text, words in a row together."""
    found = list(_WORD.finditer(text))
    run: list[str] = []
    for at, each in enumerate(found):
        between = text[found[at - 1].end() : each.start()] if at else ""
        # A verb that tells of a place may stand six words before it.
        before = [fold(word[0]) for word in found[max(0, at - 6) : at]]
        is_first = not at or bool(_ENDS.search(between))
        is_name = _is_name(each, [] if is_first else before, said, language)
        if run and not (is_name and between.isspace()):
            yield run
            run = []
        if is_name:
            run.append(_without_possessive(each[0]))
    if run:
        yield run


def _is_name(found: re.Match[str], before: list[str], said: Vocabulary, language: str) -> bool:
    """Say whether a word names something, by its capital letter and by the words before it, none in a new sentence."""
    word, bare = found[0], _without_possessive(found[0])
    folded = fold(word)
    if word.lower() == word or fold(bare) in _NO_NAMES:
        return False
    if not before:  # always with a capital letter: "Anna's sister", "Anna is the user's sister", "McDonald"
        after = fold(found.string[found.end() : found.end() + 16])
        is_owner = bare != word or after.startswith((" is the user", " is user"))
        return is_owner or any(map(str.isupper, bare[1:])) or said.misspells(fold(bare))
    if language != "de":
        return True
    is_place = before[-1] in _WHERE and not _GOING.isdisjoint(before) and not folded.endswith(_COMMON_ENDINGS)
    return before[-1] in _NAMING or is_place or word[1:].lower() != word[1:] or said.misspells(folded)


def _is_derived(word: str, said: str) -> bool:
    """Say whether a word is made from one that was said: "Hawaiian", "Parisian", "Londoner"."""
    if len(said) <= _SHARED or not word.startswith(said[:-1]):
        return False
    return word.removeprefix(said) in _DERIVED or word.removeprefix(said[:-1]) in _DERIVED - {"s", "es", "n", "er"}


def _is_inflected(word: str, said: str) -> bool:
    """Say whether two words have the same beginning and endings of up to three letters: "Москва" and "Москве"."""
    kept = max(3, min(len(word), len(said)) - 3)
    return word[:kept] == said[:kept] and abs(len(word) - len(said)) <= 3


def _alike(one: str, other: str) -> float:
    """Return how alike two words are, from 0 to 1; 0 where their lengths already tell that they are not."""
    if abs(len(one) - len(other)) > _LENGTHS_APART:
        return 0.0
    return SequenceMatcher(None, one, other).ratio()


def _by_start(words: Iterable[str], length: int) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for word in words:
        found.setdefault(word[:length], set()).add(word)
    return {start: frozenset(each) for start, each in found.items()}


def _joined(one: Mapping[str, frozenset[str]], other: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    return {**one, **{start: each | one.get(start, frozenset()) for start, each in other.items()}}


def _forms(word: str) -> frozenset[str]:
    """Return a folded word as it is, without an ending of possession or number, and with "ue" for "ü" as "u"."""
    bare = _without_possessive(word)
    return frozenset({bare, bare.removesuffix("s"), bare.replace("ue", "u").replace("oe", "o").replace("ae", "a")})


def _without_possessive(word: str) -> str:
    return _POSSESSIVE.sub("", word)
