"""What only somebody who answers does, is or writes, in five languages, as patterns for folded text. Pure.

`VALUES` are plurals that answers hold, as prices and dates: whoever asks for one of them says so in the singular. `ACT`
is to guess, to apologize, to flatter; `MANNER` how one speaks: formal, frank; `WRITING` what a text has: capitals.
"""

# ruff: noqa: RUF001 - letters of other scripts are meant

from typing import Final

ES_VALUES: Final = (
    r"(?:l[oa]s )?(?:precios|fechas|hor[ao]s|horarios|temperaturas|distancias|medidas|cantidades|unidades|pesos"
    r"|importes|cifras|numeros|tamanos|duraciones)"
)
ES_ACT: Final = (
    r"(?:disculp|repet|repit|salud|felicit|halag|elogi|adul|moraliz|sermone|invent|adivin|supon|asum|exager|divag"
    r"|agradec|agradez|juzg|juzgu|especul|interrump|pid\w{0,3} (?:perdon|disculpas)|pedir(?:me)? (?:perdon|disculpas)"
    r"|des? (?:lecciones|sermones|la razon)|dar(?:me)? (?:lecciones|sermones|la razon))"
)
ES_MANNER: Final = (
    r"(?:informal|formal|direct[oa]|sincer[oa]|honest[oa]|franc[oa]|critic[oa]|breve|concis[oa]|cortes|educad[oa]"
    r"|sever[oa]|dur[oa]|exigente|estrict[oa]|cercan[oa]|natural|precis[oa]|clar[oa]|divertid[oa]|gracios[oa]"
    r"|sarcastic[oa]|tecnic[oa]|seri[oa]|complaciente|verbos[oa]|prolij[oa]|entusiasta|efusiv[oa]|repetitiv[oa]"
    r"|rebuscad[oa]|espontane[oa]|vag[oa]|largo|complicado|rapido)(?!\w)"
)
ES_WRITING: Final = (
    r"(?:palabras en \w{1,24}|anglicismos|extranjerismos|abreviaturas|siglas|mayusculas|negritas|exclamaciones"
    r"|topicos|cliches|frases hechas|metaforas|parentesis|asteriscos|hashtags|markdown|diminutivos|formalidades"
    r"|adornos|preambulos|introducciones|cumplidos|halagos|elogios|sermones|moralejas|saludos|despedidas|repeticiones)"
)

DE_VALUES: Final = (
    r"(?:die |alle )?(?:preise|datumsangaben|uhrzeiten|zeitangaben|temperaturen|entfernungen|masse|massangaben|mengen"
    r"|mengenangaben|einheiten|gewichte|betrage|zahlen|grossen|werte|langen|geldbetrage)"
)
DE_ACT: Final = (
    r"(?:entschuldig|lob|wiederhol|begruss|bedank|schmeichel|belehr|moralisier|erfind|raten(?!\w)|ratst|mutmass"
    r"|vermut|ubertreib|abschweif|ausschweif|spekulier|rechtfertig|verabschied|recht geb|recht gibst|nach dem mund)"
)
DE_MANNER: Final = (
    r"(?:formlich|formell|hoflich|direkt|ehrlich|kritisch|streng|offen|locker|sachlich|lustig|witzig|ausfuhrlich|knapp"
    r"|kurz|lang|langatmig|umstandlich|geschwollen|technisch|kompliziert|optimistisch|euphorisch|sarkastisch|ironisch"
    r"|genau|prazise|informell|hart|schonungslos|steif|unterwurfig|belehrend|ernst|deutlich|konkret|kunstlich"
    r"|begeistert|uberschwanglich|vage|schwammig|fachlich)(?:er|e)?(?!\w)"
)
DE_WRITING: Final = (
    r"(?:anglizismen|englischen? worter|fremdworter|abkurzungen|ausrufezeichen|fettschrift|klammern|sternchen"
    r"|wiederholungen|komplimente|schmeicheleien|lobhudelei|belehrungen|moralpredigten|ratschlage|grussformeln"
    r"|hoflichkeitsfloskeln|phrasen|metaphern|zusammenfassung am ende|schlusssatze?|hashtags|markdown|konjunktiv)"
)

FR_VALUES: Final = (
    r"(?:tou(?:s|tes) )?(?:les )?(?:prix|dates|heures|horaires|temperatures|distances|mesures|quantites|unites|poids"
    r"|montants|chiffres|nombres|tailles|durees)"
)
FR_ACT: Final = (
    r"(?:excus|repet|compliment|felicit|flatt|jug|moralis|devin|suppos|exager|remerci|salu|invent|extrapol|specul"
    r"|paraphras|justifi|reformul|brod|faire la morale|fais la morale|donner? raison|donnes? raison|demander? pardon"
    r"|dire bonjour|presenter des excuses)"
)
FR_MANNER: Final = (
    r"(?:informel|formel|direct|honnete|franc|critique|bref|breve|concis|sever|exigeant|strict|poli|familier|naturel"
    r"|precis|clair|drole|sarcastique|technique|serieu|flatteu|complaisant|verbeu|bavard|enthousiaste|optimiste"
    r"|repetiti|simple|concret|detaille|nuance|cash|scolaire|solennel|long|complique|vague|vite|dur)\w{0,4}(?!\w)"
)
FR_WRITING: Final = (
    r"(?:anglicismes|mots anglais|abreviations|majuscules|points d'exclamation|parentheses|metaphores|cliches"
    r"|formules de politesse|formalites|preambules?|introductions?|conclusions?|compliments|flatteries|repetitions"
    r"|morale|lecons de morale|asterisques|gras|sigles|markdown|conditionnel)"
)

PT_VALUES: Final = (
    r"(?:[oa]s )?(?:precos|datas|horas|horarios|temperaturas|distancias|medidas|quantidades|unidades|pesos|valores"
    r"|numeros|quantias|tamanhos)"
)
PT_ACT: Final = (
    r"(?:desculp|repet|repit|cumpriment|elogi|bajul|moraliz|invent|adivinh|supo[nr]|presum|exager|enrol|agradec|julg"
    r"|especul|chut|divag|justific|pedir (?:desculpas?|perdao)|pec\w{1,3} (?:desculpas?|perdao)"
    r"|de(?:s|em)? licoes|dar licoes|dar razao|de razao)"
)
PT_MANNER: Final = (
    r"(?:informal|formal|diret[oa]|sincer[oa]|honest[oa]|franc[oa]|critic[oa]|breve|concis[oa]|sever[oa]|dur[oa]"
    r"|exigente|rigoros[oa]|educad[oa]|natural|precis[oa]|clar[oa]|divertid[oa]|engracad[oa]|sarcastic[oa]|tecnic[oa]"
    r"|seri[oa]|bajulador\w{0,2}|prolix[oa]|repetitiv[oa]|entusiasmad[oa]|otimista|objetiv[oa]|detalhad[oa]"
    r"|descontraid[oa]|vag[oa]|long[oa]|complicad[oa]|rapido|polid[oa])(?!\w)"
)
PT_WRITING: Final = (
    r"(?:palavras em \w{1,24}|anglicismos|estrangeirismos|abreviaturas|abreviacoes|siglas|maiusculas|negrito"
    r"|exclamacoes"
    r"|cliches|metaforas|parenteses|asteriscos|hashtags|markdown|diminutivos|formalidades|preambulos|introducoes"
    r"|elogios|sermoes|licoes de moral|saudacoes|repeticoes|gerundio)"
)

RU_VALUES: Final = (
    r"(?:все )?(?:цены|даты|время|температур[уы]|расстояния|меры|количества|единицы(?: измерения)?|вес|суммы|числа"
    r"|размеры|сроки)"
)
RU_ACT: Final = (
    r"(?:выдумыва|придумыва|извин|повторя|хвали|льсти|поуча|морализир|мораль|гада|догадыва|преувеличива|здорова"
    r"|благодари|сочиня|фантазир|осужда|додумыва|оправдыва|поддакива|умнича|сюсюка|соглаша|пересказыва|перебива)"
)
RU_MANNER: Final = (
    r"(?:прям|честн|строж|строг|критичн|кратк|краче|короч|вежлив|формальн|официальн|дружелюбн|весел|серьезн|точн"
    r"|конкретн|откровенн|жестч|жестк|проще|ироничн|саркастичн|лаконичн|многослов|нудн|занудн|восторжен|эмоциональн"
    r"|сух|пафосн|длинн|подробн|сложн|непринужден|естествен|расплывчат)\w{0,4}(?!\w)"
)
RU_WRITING: Final = (
    r"(?:англицизм|иностранн\w{1,3} слов|английск\w{1,3} слов|англииск\w{1,3} слов|сокращени|восклицательн|заглавн|скоб"
    r"|метафор|клише|штамп|комплимент|лест|морал|нравоучени|повтор|приветстви|предислови|вводн\w{1,3} слов|формальност"
    r"|аббревиатур|хештег|хэштег|пафос|общих фраз|лишних слов|жирн\w{1,3} шрифт)\w{0,8}"
)
