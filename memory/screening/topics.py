"""Which sensitive topics a text is about: health, money, other people. By words and forms, in seven languages. Pure.

A person may ask that facts of a topic wait for their yes. What is taken for sensitive and is not only has to be said
yes to; what is missed is used at once. So the words are chosen to find more rather than less.
"""

import re
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import Final

from memory.config import TOPICS, Topic
from memory.screening.door import compatible

# What sounds like a topic and is none.
_IDIOMS = re.compile(
    r"\b(?:sick (?:and tired )?of|pain points?|growing pains|painstaking\w*|a pain to|"
    r"allergic to (?:meetings|work|bugs)|"
    r"mental model|(?:code|system|service) health|health ?checks?|addicted to (?:coffee|chocolate|puzzles|podcasts)|"
    r"blind (?:spot|test|tasting|date)s?|operations? (?:manager|team|research)|token budget|time budget|"
    r"technical debt|tech debt|credits? (?:to|for) the|rich text|kids['\u2019]? (?:books?|menu|films?)|family name|"
    r"(?:as|is|was|become) an? (?:\w+ )?(?:doctor|nurse|therapist|psychologist|surgeon|dentist|pharmacist|physician)|"
    r"pays? attention|invest\w* (?:more |some |a lot of )?(?:time|effort)|rich (?:chocolate|flavou?rs?|sauce))\b",
    re.IGNORECASE,
)
_HEALTH: Final = (
    r"diagnos\w*|diseases?|illness\w*|ill|sick|sickness|cancer\w*|tumou?rs?|leuk\w*|diabet\w*|insulin|asthma\w*|"
    r"allerg\w*|intoleran\w*|coeliac|celiac|lactose|gluten|depress\w*|anxiety|adhd|autis\w*|bipolar|schizo\w*|"
    r"epilep\w*|migraines?|headaches?|hiv|hepatitis|covid\w*|pneumonia|pregnan\w*|miscarr\w*|abortion|fertility|ivf|"
    r"surger\w*|surgeon|operated on|operations?|hospital\w*|clinic|doctors?|physician|gp appointment|dentist|"
    r"therap\w*|psychiatr\w*|psycholog\w*|counsell?ing|medicat\w*|medicines?|pills?|dos(?:e|age)|\d+ ?mg|prescri\w*|"
    r"antidepress\w*|painkillers?|statins?|sertraline|ibuprofen|blood (?:pressure|sugar|test|type)|cholesterol|"
    r"heart (?:attack|disease|condition|failure|problems?)|strokes?|disabilit\w*|disabled|wheelchair|chronic\w*|pains?|"
    r"symptoms?|arthrit\w*|dementia|alzheimer\w*|parkinson\w*|multiple sclerosis|alcoholi\w*|addict\w*|sober|rehab\w*|"
    r"overdose\w*|suicid\w*|self-?harm\w*|eating disorder|anorexi\w*|bulimi\w*|overweight|obes\w*|bmi|weighs?|"
    r"los[te]\w* weight|injur\w*|broke (?:his|her|their|an?|the) (?:arm|leg|hip|wrist|ankle|foot|rib)|vaccinat\w*|"
    r"contracept\w*|menopaus\w*|hearing (?:loss|aid)s?|deaf\w*|blind\w*|insomnia|panic attacks?|trauma\w*|ptsd|"
    r"burn-?out|apn(?:o?)ea|thyroid|kidneys?|liver|transplant\w*|chemo\w*|biops\w*|cannot eat|can['\u2019]t eat|"
    r"\w{3,20}ologist|exhaust\w*|lithium|(?:slipped|herniated) dis[ck]|stopped drinking|drinks? too much|drunk|"
    r"hears? (?:little|badly|poorly)|dairy|stomach|(?:knee|hip) replacement|trouble sleeping|sleeping problems|fever|"
    r"(?:los\w+|gain\w*) .{1,12}(?:kilos?|kg)|\w{3,20}itis|lump|benign|malignant|pacemaker|inhaler|diet|seizures?|"
    r"dyslexi\w*|stutter\w*|breakdown|panic|nausea|vertigo|tinnitus|scan|x-ray|mri|"
    r"health\w*|see(?:s)? (?:badly|poorly)|crutches|immun\w*|eczema|psoriasis|endometriosis|fibromyalgia|concussion"
)
_MONEY: Final = (
    r"salar\w*|wages?|incomes?|earn(?:s|ed|ing|ings)?|debts?|indebted|owe[sd]?|owing|loans?|mortgage\w*|overdraft|"
    r"overdrawn|credit (?:card|score|rating|history)|bankrupt\w*|insolven\w*|savings|saving (?:up|for)|saved up|"
    r"invest(?:s|ed|ing|ments?|or)?|(?:owns?|bought|sold) shares|shares (?:of|in)|stocks|bonds|"
    r"index funds?|crypto\w*|bitcoin|pensions?|tax(?:es|ed)?|rents? (?:is|costs)|"
    r"pays?|paid|payments?|bank accounts?|inherit\w*|alimony|child (?:support|benefit)|budgets?|"
    r"(?:got|wants?|asked for|pay|salary) (?:a )?(?:raise|pay rise)|credit cards|dividends?|casino|bets?|betting|"
    r"ends meet|behind on|lent|lends?|borrow\w*|tuition|scholarship|retire[sd]? (?:at|on)|afford\w*|net worth|"
    r"\d{3,9} a (?:week|month|year)|pay ?rise|"
    r"bonus(?:es)?|unemployment benefits?|welfare|penniless|"
    r"(?:is|was|got|grew up|became|very) (?:broke|wealthy|rich|poor)|money|financ\w*|gambl\w*|lottery|"
    r"invoices?|in the red"
)
# Amounts: a sign or a currency beside a number.
_AMOUNT = re.compile(
    r"[$€£¥₽]\s?\d|\d[\d.,]{0,20}\s?(?:[$€£¥₽円]|k\b|(?:euros?|dollars?|usd|eur|gbp|pounds|"
    r"kroner|kronor|nok|sek|dkk|chf|francs?|rupees|yen|rubles?|reais|pesos|grand|thousand a (?:year|month))\b|"
    r"рубл)",
    re.IGNORECASE,
)
_PEOPLE: Final = (
    r"wife|husband|spouse|(?:girl|boy)friends?|fianc\w*|partner|ex-?(?:wife|husband|partner|girlfriend|boyfriend)|"
    r"mothers?|mom|mum|fathers?|dad|parents?|(?:grand|step)\w*(?:mother|father|son|daughter|child|children|parents?|ma|"
    r"pa)|sons?|daughters?|child|children|kids?|bab(?:y|ies)|brothers?|sisters?|siblings?|twins?|aunts?|uncles?|"
    r"cousins?|nieces?|nephews?|\w+-in-law|in-laws|friends?|roommates?|flatmates?|housemates?|neighbou?rs?|colleagues?|"
    r"co-?workers?|ex|boss|landlord|landlady|mentor|therapist|family|relatives?|team-?mates?|"
    r"(?:user['\u2019]s|my|their|his|her|our) (?:manager|teacher|professor|client|clients|employee|employees|student|"
    r"students|patient|patients|lead|coach|team)"
)
# Somebody who has a name: as the subject of a sentence, or as whom the user has to do with.
_NAMED = re.compile(
    r"(?:^|[.;:] )(?!User\b|The\b|This\b|There\b|It\b|He\b|She\b|They\b|We\b|I\b)[A-Z][\w'\u2019-]{1,30}"
    r"(?: [A-Z][\w'\u2019-]{1,30})? (?:would|will|wants?|likes?|loves?|hates?|lives?|works?|said|told|thinks?|feels?|"
    r"(?:is|was) (?:getting|in love|engaged|pregnant|ill|sick|divorced|married|seeing|moving|leaving|gay|trans|dead)|"
    r"found|moved|quit|married|divorced|died|turns?|turned|owes?|asked|promised|prefers?|believes?|studies|cheated)\b|"
    r"\b(?:in love with|thinks(?: that)?|says(?: that)?|crush on) [A-Z][a-z]{1,30} (?:in|from|is|was|has|should)\b|"
    r"\b(?:in love with|crush on) [A-Z]|"
    r"\b(?:met|meets|dating|dates|married|marries|told|tells|promised|misses|visits|visited|invited|helps|hates|loves|"
    r"trusts|(?:lives?|lived|travels?|travelled|went|goes|argued|fell out|broke up|talks?|talked) with) "
    r"(?:Dr\.? |Mr\.? |Mrs\.? |Ms\.? )?[A-Z][a-z]{1,30}\b(?! (?:API|CSS|SQL))"
)
# Of the six other languages the words that are met most; Japanese has no blanks to tell words apart by.
_ELSEWHERE: Final[dict[Topic, str]] = {
    "health": (
        r"enferm\w*|c[aá]ncer|al[eé]rgi\w*|al[eé]rgic\w*|diab[eé]t\w*|embaraz\w*|m[eé]dic[oa]s?|"
        r"medicament\w*|operaci[oó]n|salud|asma|dolor\w*|ansiedad|depresi[oó]n|"
        r"krank\w*|krebs|schwanger\w*|arzt|ärztin|medikament\w*|\w*schmerz\w*|gesundheit\w*|"
        r"malad\w*|enceinte|m[eé]decin|m[eé]dicaments?|op[eé]ration|sant[eé]|douleur\w*|d[eé]pression|h[oô]pital|"
        r"doen[çc]a|doente|gr[aá]vida|rem[eé]dios?|sa[uú]de|depress[aã]o|cirurgia|"
        r"бол[еь]\w*|диабет\w*|аллерг\w*|беремен\w*|врач\w*|лекарств\w*|депресс\w*|здоров\w*"
    ),
    "money": (
        r"sueldo|salario|gana|deudas?|debe|hipoteca|pr[eé]stamo|ahorr\w*|dinero|impuestos|"
        r"gehalt|verdien\w*|schulden|schuldet|hypothek|kredit\w*|erspar\w*|geld\w*|steuern|rente|"
        r"salaire|gagne|dettes?|emprunt\w*|hypoth[eè]que|[eé]conomies|argent|imp[oô]ts|retraite|"
        r"sal[aá]rio|ganha|d[ií]vidas?|empr[eé]stimo|poupan[çc]a|dinheiro|impostos|aposentadoria|"
        r"зарплат\w*|зарабатыв\w*|долг\w*|ипотек\w*|кредит\w*|деньг\w*|налог\w*|пенси\w*"
    ),
    "people": (
        r"esposa|marido|novi[oa]|hij[oa]s?|madre|padre|herman[oa]s?|abuel[oa]s?|amig[oa]s?|jef[ea]|vecin[oa]s?|"
        r"frau|mann|ehefrau|ehemann|freund(?:in)?|tochter|sohn|(?-i:Kind(?:er)?)|mutter|vater|bruder|schwester|"
        r"großmutter|großvater|großeltern|kolleg\w+|(?-i:Chef(?:in)?)|nachbar\w*|"
        r"femme|mari|copine|copain|fille|fils|enfants?|m[eè]re|p[eè]re|fr[eè]re|s(?:œ|oe)ur|ami[es]?|voisin\w*|patron|"
        r"esposo|namorad[oa]|filh[oa]s?|m[aã]e|pai|irm[aã]o?|irmã|av[oóô]|vizinh[oa]|chefe|"
        r"жен[ауыо]\w*|муж\w*|доч\w*|сын\w*|мать|мам\w*|отец|пап[ауы]|брат\w*|сестр\w*|друг|друга|другу|друзья|"
        r"подруг\w*|начальник\w*|дет[еи]\w*"
    ),
}
_UNSPACED: Final[dict[Topic, str]] = {
    "health": "病|アレルギー|糖尿|がん(?!ば)|癌|妊娠|薬|医者|手術|うつ|健康|痛|症",
    "money": "給料|年収|月収|借金|ローン|貯金|税|年金|お金",
    "people": "妻|(?<!丈)夫|息子|娘|母|父|兄|弟|姉|妹|祖母|祖父|友|同僚|上司|子供|彼女|彼氏",
}


_ILLS = re.compile(rf"\b(?:{_HEALTH}|{_ELSEWHERE['health']})\b|{_UNSPACED['health']}", re.IGNORECASE)
_MEANS = re.compile(rf"\b(?:{_MONEY}|{_ELSEWHERE['money']})\b|{_UNSPACED['money']}", re.IGNORECASE)
_KIN = re.compile(rf"\b(?:{_PEOPLE}|{_ELSEWHERE['people']})\b|{_UNSPACED['people']}", re.IGNORECASE)
_PATTERNS: Final[dict[Topic, re.Pattern[str]]] = {"health": _ILLS, "money": _MEANS, "people": _KIN}
_SENTENCES = re.compile(r"(?<=[.!?。])\s{0,8}")


@lru_cache(maxsize=4096)
def topics_of(text: str) -> frozenset[Topic]:
    """Return the sensitive topics that a text is about; none of a routine text."""
    line = _IDIOMS.sub(" ", compatible(text))
    found = {topic for topic, words in _PATTERNS.items() if words.search(line)}
    if _AMOUNT.search(line):
        found.add("money")
    if _NAMED.search(line):
        found.add("people")
    return frozenset(found)


def held_topic(text: str, wanted: Collection[Topic], told: Iterable[Topic] = ()) -> Topic | None:
    """Return the topic for which a text has to wait for a person's yes; `None` where it need not.

    Args:
        text: What a fact says.
        wanted: The topics that wait, as the user or the deployment asked.
        told: The topics that the model named.
    """
    found = topics_of(text).union(told, ("everything",)) if wanted else ()
    return next((topic for topic in TOPICS if topic in wanted and topic in found), None)


def held_topics(text: str, wanted: Collection[Topic]) -> tuple[Topic, ...]:
    """Return all the topics for which a text has to wait for a person's yes; none where it need not.

    A text that waits because everything does waits for that alone: any yes is one to it.
    """
    if "everything" in wanted:
        return ("everything",)
    found = topics_of(text) if wanted else frozenset()
    return tuple(topic for topic in TOPICS if topic in wanted and topic in found)


def without_topics(text: str, wanted: Collection[Topic], may_tell: Callable[[str], bool]) -> str:
    """Return a text without its sentences that would have to wait, but for those that may be told all the same.

    Args:
        text: A text that a model wrote, such as a section of the profile.
        wanted: The topics that wait.
        may_tell: Says of a sentence whether a person has said yes to what it tells.
    """
    parts = [part for part in _SENTENCES.split(text) if part] if wanted else [text]
    return " ".join(part for part in parts if held_topic(part, wanted) is None or may_tell(part))


def people_in(text: str) -> frozenset[str]:
    """Return the words of a text that name what somebody is to the user: `sister`, `boss`."""
    return frozenset(found.casefold() for found in _KIN.findall(compatible(text)))
