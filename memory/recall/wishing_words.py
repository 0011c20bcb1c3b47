"""Words with which people ask for something once and for all, in six languages, as patterns for folded text. Pure."""

# ruff: noqa: RUF001 - letters of other scripts are meant

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a language, as patterns for folded text.

    Attributes:
        language: Its code.
        please: "Please".
        lead: What else may stand before the verb.
        good: For good: "always", "from now on".
        modal: How a question asks for something: "could you".
        infinitive: The verbs behind it.
        answer: Forms that order to answer or to speak.
        do: Forms that order what an answer has: to use, to explain, to name.
        sure: Forms that nothing else has, as "never use" where the others may mean that somebody does it.
        when: "When I ask you", before a comma.
        whenever: The same behind what is asked for: "correct me when I err".
        call: "Call me", before a name.
        whole: What is a wish by itself: how somebody is spoken to, or what is said of "your answers".
        want: How a sentence begins that says what the user would like, or wants no more of.
        style: What names a manner of answering and nothing else: emojis, jargon, bullet points.
        about: What else is said of answers only, in a fact, too.
        brief: What may be said of other things, too.
        is_ambiguous: Whether `answer` and `do` may also tell what somebody does.
    """

    language: str
    please: str
    lead: str
    good: str
    modal: str
    infinitive: str
    answer: str
    do: str
    sure: str
    when: str
    whenever: str
    call: str
    whole: str
    want: str
    style: str
    about: str
    brief: str
    is_ambiguous: bool = False


LANGUAGES: Final = (
    Words(
        "es",
        r"por favor",
        r"oye|hola|y|pero|bueno|ok|asi que",
        r"siempre|nunca|jamas|(?:de|a partir de) (?:ahora|hoy)(?: en adelante)?|desde (?:ahora|hoy)|cada vez"
        r"|en (?:adelante|el futuro)|por (?:norma|defecto)|sistematicamente",
        r"podrias|puedes|podria|puede|te importaria|(?:me gustaria|quiero|prefiero|te pido) que",
        r"(?:responder|contestar|hablar|escribir|explicar|llamar|tutear|tratar|decir|dar|poner|incluir|usar|evitar"
        r"|dejar|citar|mostrar|indicar|anadir)\w{0,24}|(?:cit|mostr|indic|us|evit|explic|contest|habl|anad"
        r"|incluy)[aei]\w{0,24}"
        r"|(?:me )?(?:respondas|contestes|hables|escribas|expliques|llames|tutees|trates|des|pongas|incluyas"
        r"|uses|evites)",
        r"(?:responde|contesta|habla|responda|conteste|hable)(?:me)?|se (?:breve|claro|conciso|directo)"
        r"|sea (?:breve|claro)",
        r"usa|utiliza|explica|escribe|incluye|evita|manten|haz|pon|da|di|indica|nombra|trata|resume|deja de|para de"
        r"|anade|cita|muestra|calcula|convierte|traduce|corrige|comenta|empieza|termina|recuerda|ten en cuenta|ve al",
        r"(?:escribeme|explicame|tratame|tuteame|dime|dame|\w{2,24}[aei]me(?:l[oa]s?)?)"
        r"|pon|haz|di|ten en cuenta|procura|intenta|no (?:me )?(?:corrijas|repitas|empieces|termines|digas|hagas"
        r"|cuentes)"
        r"|(?:evite|explique|escriba|incluya|indique|anada|cite|muestre|emplee)"
        r"|no (?:me )?(?:uses|utilices|respondas|contestes|escribas|hables|pongas|expliques|des|trates)"
        r"|(?:uses|utilices|respondas|contestes|escribas|pongas|des|use|utilice)",
        r"(?:cuando|siempre que|cada vez que|si) (?:(?:te )?(?:pregunt[eo]|pid[ao]|mencione)"
        r"|hablemos de|te (?:haga|escriba|mande|pase|envie|hable)|(?:cada vez|siempre) que \w{1,24})",
        r"(?:cuando|siempre que|cada vez que) (?:yo|me|te|no) ?\w{1,24}",
        r"(?:llamame|puedes llamarme|me puedes llamar)(?: simplemente| solo| don| dona| senora?| doctora?"
        r"| profesora?)*",
        r"(?:tratame|hablame|trateme|hableme|(?:no|que) me (?:hables|trates|llames)|puedes tratarme) de|tuteame"
        r"|tuteemonos"
        r"|podemos tutearnos|tus (?:respuestas|mensajes|explicaciones) (?:pueden|podrian|deben|son (?:demasiado|muy))"
        r"|(?:me (?:gusta|encanta|molesta)|prefiero|preferiria) que (?:me )?\w{1,24}[ae]s\b|puedes usar (?:terminos"
        r"|palabras|lenguaje)|a partir de (?:ahora|hoy)\b[^.!?]{0,20}\bme (?:l[oa]s? )?\w{1,24}[ae]s",
        r"prefiero|preferiria|me gustarian?|quiero|quisiera|no quiero|no (?:mas|me gustan)|nada de|sin|basta de|solo",
        r"emojis?|emoticonos|vinetas|tecnicismos|jerga|rodeos|al grano|muletillas|tutee\w{0,24}"
        r"|tus (?:respuestas|mensajes|explicaciones|textos)|ortografia|disculp\w{1,24}|advertencias|enlaces|emoticonos"
        r"|termin\w{1,24} tecnicos",
        r"(?:respuestas|explicaciones|contestaciones)"
        r"|(?:hable|trate|llame|escriba)n? (?:de (?:tu|usted)|en )|le (?:llamen|llame|hablen|traten|tuteen)",
        r"breves?|cort[oa]s?|brevemente|en (?:pocas|dos|tres) (?:palabras|frases|lineas)|(?:frases|lineas|palabras)"
        r"|conciso|de (?:tu"
        r"|usted)|paso a paso|en una (?:sola )?(?:frase|linea)"
        r"|en (?:espanol|ingles|frances|aleman|italiano|portugues|catalan|castellano|gallego|euskera|chino|ruso)"
        r"|(?:palabras|terminos) \w{1,24}",
        is_ambiguous=True,
    ),
    Words(
        "de",
        r"bitte",
        r"hallo|hey|und|aber|ok|also",
        r"immer|nie|niemals|stets|ab (?:jetzt|sofort|heute)|von (?:nun|jetzt) an|kunftig|in zukunft|zukunftig"
        r"|jedes mal|ab sofort|grundsatzlich|generell|standardmassig|nie wieder|nicht mehr|nur noch",
        r"konntest du|kannst du|wurdest du|konnten sie|konnen sie|ich (?:mochte|will|hatte gern), dass du",
        r"antworten|antwortest|schreiben|schreibst|sprechen|sprichst|reden|erklaren|erklarst|nennen|nennst|duzen|duzt"
        r"|siezen|siezt|lassen|weglasst|angeben|angibst|zeigen|zeigst|geben|gibst|machen|machst|benutzen|benutzt"
        r"|verwenden|verwendest|halten|hast|anreden|verzichten",
        r"antworte(?:n sie)?|sprich|sprechen sie|rede|fass(?:e)? dich|fassen sie sich|sei (?:kurz|knapp|direkt)",
        r"benutze?|verwende?|nutze?|schreibe?|erklare?|halte?|gib|mach|mache|nenne?|vermeide?|verzichte|formuliere?"
        r"|zeige?|sei(?:en sie)?|lass|lasse|spare?|hor|hore|rechne|ubersetze?|kommentiere?|zitiere?|fuge?|beginne?"
        r"|fange?|komm|denke?"
        r"|stelle?|prufe?|korrigiere?|liste?|gliedere?|verschone?|wiederhole?|erinnere?|widersprich|nimm",
        r"(?:duze?|sieze?) mich|duzen sie mich|rede? mich",
        r"(?:wenn|falls|sobald|jedes mal,? wenn|immer wenn) (?:ich (?:dich |dir )?(?:nach |etwas |um |ein\w{0,24} )?"
        r"[^,.!?]{0,60}(?:frage|bitte|wissen will|schicke|gebe|zeige)|du (?:mir|mich) [^,.!?]{2,60})",
        r"immer wenn (?:ich|du)|wenn (?:ich|du (?!geh|komm|fertig|zeit|da bist|zuruck|weg|zu hause|ankomm|willst))",
        r"(?:nenn(?:e|en sie)? mich|sag(?:e|en sie)?(?=[^.!?]*\bzu mir\b)|(?:sprich|rede|sprechen sie|reden sie) mich)"
        r"(?: bitte| einfach| nur| lieber| ruhig| immer)*(?: mit| als)?",
        r"(?:du (?:kannst|darfst)|sie (?:konnen|durfen)|wir konnen|konnen wir|lass uns|wollen wir)\b[^.!?]{0,40}"
        r"\b(?:duzen|siezen|per du|beim du)|(?:duze?|sieze?) mich|duzen sie mich"
        r"|(?:lieber|mag|gefallt|schatze|stort|hasse)\b[^,.!?]{0,15}, wenn du|deine (?:antworten|texte"
        r"|nachrichten) (?:durfen|konnen|konnten|sollen|sollten|sind (?:mir )?(?:oft |immer )?zu)"
        r"|\w{1,24} bitte immer(?! noch) \w{1,24}",
        r"ich (?:hatte gern|mochte|will|wunsche mir|bevorzuge|brauche)|keine?|nur|ohne|weniger|mehr|lieber|bitte",
        r"emojis?|smileys|aufzahlung\w{0,24}|stichpunkt\w{0,24}|fachworter\w{0,24}|fachbegriff\w{0,24}"
        r"|fachchinesisch|floskeln|umschweife"
        r"|einleitung(?:en)?|vorrede\w{0,24}|entschuldig\w{1,24}|warnhinweise\w{0,24}|links|witze\w{0,24}"
        r"|ruckfragen|geduzt|gesiezt"
        r"|deine[rn]? (?:aussagen?|antworten|texten?|nachrichten|erklarungen)",
        r"(?<!eine )(?<!eine kurze )antwort(?:en)?|erklarung(?:en)?"
        r"|(?:auf|in) (?:deutsch|englisch|franzosisch|spanisch) (?:antwort|schreib|sprech)\w{0,24}|angeredet"
        r"|genannt werden",
        r"kurz(?:e|er|en)?|knapp|zeilen|(?:auf|in) (?:deutsch|englisch|franzosisch|spanisch|italienisch)|satze[n]?"
        r"|einfache[rn]?"
        r"|grossbuchstaben|kurzer|knapper|ausfuhrlich(?:er)?|einfach(?:er)? sprache|schritt fur schritt"
        r"|(?:ganz )?einfach|in einem satz",
    ),
    Words(
        "fr",
        r"s'il (?:te|vous) plait|stp|svp",
        r"bonjour|salut|et|mais|donc|alors|ok|merci de",
        r"toujours|jamais|desormais|dorenavant|a partir (?:de maintenant|d'aujourd'hui)|a l'avenir|(?:a )?chaque fois"
        r"|systematiquement|par defaut|en general|uniquement",
        r"(?:est-ce que )?(?:tu peux|vous pouvez|tu pourrais|vous pourriez)|peux-tu|pouvez-vous|pourrais-tu"
        r"|pourriez-vous"
        r"|(?:j'aimerais|je (?:veux|voudrais|prefere)) que (?:tu|vous)",
        r"(?:me )?(?:repondre|parler|ecrire|expliquer|appeler|tutoyer|vouvoyer|donner|utiliser|eviter|faire|dire)"
        r"|(?:me )?(?:repondes|parles|ecrives|expliques|appelles|tutoies|vouvoies|donnes|utilises|evites|fasses|dises"
        r"|cites|indiques|precises|mettes|ajoutes|arretes|commences)",
        r"repond(?:s|ez)(?:-moi)?|parle[sz]?-moi|sois (?:bref|breve|concise?|clair|directe?)"
        r"|soyez (?:bref|concis|clair)",
        r"utilise[zs]?|ecri(?:s|vez)(?:-moi)?|explique[zs]?(?:-moi)?|donne[zs]?(?:-moi)?|evite[zs]?|fai(?:s|tes)"
        r"|mets|mettez"
        r"|indique[zs]?|precise[zs]?|garde[zs]?|resume[zs]?|dis(?:-moi)?|ajoute[zs]?|cite[zs]?|arrete[zs]?|cesse[zs]?"
        r"|compte[zs]?|calcule[zs]?|converti(?:s|ssez)|tradui(?:s|sez)|commence[zs]?|termine[zs]?|corrige[zs]?"
        r"|rappelle[zs]?"
        r"|montre[zs]?|commente[zs]?|va droit|so(?:is|yez)",
        r"n(?:'|e (?:me )?)(?!prends|vas?|viens|pars|mange|bois|crois|oublie|perds|quitte|laisse|cours"
        r"|roule)\w{1,24}(?:-moi)? (?:jamais|pas|plus|qu'(?!il)\w{1,24})"
        r"|\w{1,24}[sez](?:-l[ae]s?)?-moi|tutoie[zs]?-moi"
        r"|vouvoie[zs]?-moi",
        r"(?:quand|lorsque|si|chaque fois que|des que) (?:je (?:te|vous) (?:pos|demand|parl|ecri|envo)\w{0,24}"
        r"|je (?:fais|dis|ecris|me) [^,.!?]*|tu n'es pas [^,.!?]*|tu (?:me|m')\s?\w{1,24})",
        r"(?:quand|si|chaque fois que) (?:je|j'|tu) ?\w{1,24}",
        r"(?:appelle[zs]?-moi|tu peux m'appeler|vous pouvez m'appeler)"
        r"(?: simplement| juste| plutot| docteur| monsieur| madame| maitre)*",
        r"(?:on peut|on pourrait|tu peux|vous pouvez)\b[^.!?]{0,20}\b(?:tutoyer|vouvoyer|dire (?:tu|vous)\b)"
        r"|(?:tutoie|vouvoie)[zs]?-moi|dis-moi (?:tu|vous)\b|que tu me (?:tutoies|vouvoies)|(?:j'aime|j'adore"
        r"|je prefere|je deteste)(?: bien| mieux)? (?:quand|que) tu"
        r"|(?:tes|vos) (?:reponses|messages|textes) (?:sont (?:un peu )?trop|peuvent|pourraient|doivent|devraient)",
        r"je (?:prefere|voudrais|veux|souhaite|ne veux (?:pas|plus))|j'aimerais|pas de|plus de|moins de|sans|aucune?",
        r"emojis?|smileys|puces|jargon|fioritures|introductions?|excus\w{1,24}|avertissements|liens|blagues|humour"
        r"|termes techniques|tutoy\w{1,24}|vouvoy\w{1,24}|tutoie\w{0,24}|vouvoie\w{0,24}"
        r"|(?:tes|vos) (?:messages|sources|reponses|textes|explications)|tu m'ecris",
        r"reponses|explications|tableaux"
        r"|etre appelee?|qu'on l'appelle",
        r"brefs?|breves?|court(?:e?s?)|brievement|concis\w{0,24}"
        r"|en (?:francais|anglais|espagnol|allemand|italien)|phrases|lignes|mots"
        r"|sans detour|simplement|(?:mots|termes) \w{1,24}|etape par etape|pas a pas|en une (?:seule )?phrase",
    ),
    Words(
        "pt",
        r"por favor|se faz favor",
        r"ola|oi|e|mas|entao|ok|bom",
        r"sempre|nunca|jamais|a partir de (?:agora|hoje)|de (?:agora|hoje) em diante|daqui (?:para|pra) frente"
        r"|daqui em diante"
        r"|no futuro|cada vez|toda vez|doravante|por padrao|sistematicamente",
        r"(?:voce )?(?:pode|poderia|podes|podias|consegue)|(?:quero|gostaria(?: de)?|prefiro) que",
        r"(?:me )?(?:responder|falar|escrever|explicar|chamar|tratar|dizer|dar|usar|evitar|fazer)(?:-me)?"
        r"|(?:me )?(?:responda|fale|escreva|explique|chame|trate|diga|de|use|evite|faca"
        r"|mostre|mostrasse|cite|citasse|indique|inclua|traga|comece|pare)s?",
        r"responda|responde|fale comigo|fala comigo|seja (?:breve|claro|conciso|direto|objetivo)|se breve",
        r"usa|explica|escreve|coloca|indica|cita|mostra|traduz|comenta|lembra|para de|deixa de|faz|diz|so fala|calcula",
        r"(?:use|utilize|explique|escreva|inclua|evite|mantenha|faca|diga|me de|coloque|indique|cite|resuma|mostre"
        r"|traduza"
        r"|comente|lembre|pare de|deixe de|calcule|converta|comece|termine|corrija|va direto|fale|responda|seja"
        r"|procure|tente|me (?:corrija|avise|lembre|mostre|pergunte))"
        r"|(?:responda-me|responde-me|fale-me|escreva-me|explique-me|diga-me|me responda|me explique|me trate|trate-me"
        r"|trata-me)|nao (?:me )?(?:use|utilize|responda|escreva|fale|coloque|explique)s?|(?:nunca|jamais) (?:me )?"
        r"(?:use|utilize|responda|escreva|fale|coloque|mande|envie|traga|faca|repita)s?",
        r"(?:quando|sempre que|se|toda vez que|cada vez que) (?:eu )?(?:te |lhe )?(?:pedir|perguntar|solicitar"
        r"|fizer|mandar"
        r"|enviar|falar|escreveres|responderes)|(?:sempre|toda vez|cada vez) que (?:eu )?\w{1,24}",
        r"(?:quando|sempre que|toda vez que) (?:eu|voce|me|falar|responder|escrever)",
        r"(?:me chame|me chama|chame-me|chama-me|pode me chamar|podes chamar-me)(?: so| apenas| de| dona?| doutora?"
        r"| senhora?)*",
        r"(?:trate-me|trata-me|me trat[ea]|nao precisas? me (?:chamar|tratar)|nao me (?:chame|trate)) (?:por|de|como)"
        r"|(?:gosto|prefiro|adoro|odeio) (?:quando|que) (?:voce|me)|que (?:voce )?me trate (?:por|de)|(?:suas"
        r"|tuas) (?:respostas|mensagens) (?:podem|poderiam|devem|sao (?:muito|longas))",
        r"prefiro|preferia|gostaria de|quero|nao quero|nada de|chega de|sem|menos|so",
        r"emojis?|girias|marcadores|jargao|rodeios|enrolacao|desculpas|avisos|links|piadas|minhas? perguntas?"
        r"|termos tecnicos|textos? long\w{1,24}|(?:suas|tuas) (?:respostas|mensagens|explicacoes)",
        r"respostas|explicac(?:ao|oes)|comigo|topicos|tratad[oa] por"
        r"|chamad[oa] (?:de|por)",
        r"breves?|curt[oa]s?|diret[oa]s?|resumid\w{1,24}|em (?:portugues|ingles|espanhol|frances|alemao)|frases|linhas"
        r"|palavras \w{1,24}|passo a passo|em uma (?:so )?frase|informal",
        is_ambiguous=True,
    ),
    Words(  # as `fold` leaves them
        "ru",
        r"пожалуиста",
        r"привет|и|а|но|ок|теперь|\w{1,24}",  # the object may come first: no other form looks like this imperative
        r"всегда|никогда|впредь|отныне|с (?:этого момента|сегодняшнего дня)|в (?:дальнеишем|будущем)|каждыи раз"
        r"|больше|по умолчанию",
        r"(?:ты )?(?:можешь|мог бы|могла бы)|(?:вы )?(?:можете|могли бы)"
        r"|(?:я )?(?:хочу|(?:бы )?хотела?(?: бы)?|хотелось бы|прошу|предпочитаю), чтобы (?:ты|вы)|прошу",
        r"отвечать|писать|говорить|объяснять|называть|обращаться|использовать|давать|избегать|указывать"
        r"|отвечал[аи]?|писал[аи]?|говорил[аи]?|объяснял[аи]?|называл[аи]?|обращал(?:ся|ась|ись)"
        r"|указывал[аи]?|использовал[аи]?|давал[аи]?|приводил[аи]?|переводил[аи]?|добавлял[аи]?",
        r"отвечаи(?:те)?|говори(?:те)?|пиши(?:те)?|общаи(?:ся|тесь)|обращаи(?:ся|тесь)"
        r"|будь(?:те)? (?:краток|краче|кратким)",
        r"используи(?:те)?|объясняи(?:те)?|указываи(?:те)?|даваи(?:те)?|избегаи(?:те)?|приводи(?:те)?|называи(?:те)?"
        r"|добавляи(?:те)?|делаи(?:те)?|ставь(?:те)?|перестань(?:те)?|переводи(?:те)?|считаи(?:те)?|начинаи(?:те)?"
        r"|(?!поцелуи|попробуи|испробуи|подумаи|случаи|трамваи)\w{3,24}(?:аи|яи|уи)(?:те)?"
        r"|хватит",  # of a verb that says what is done again and again
        r"не (?:используи|пиши|отвечаи|говори|объясняи|добавляи|ставь|начинаи|делаи|переводи|\w{3,24}(?:аи|яи"
        r"|уи))(?:те)?",
        r"(?:когда|если|каждыи раз,? когда|всякии раз,? когда) (?:я )?(?:тебя |у тебя |вас )?"
        r"(?:спрашиваю|спрошу|прошу|попрошу)",
        r"(?:когда|если) (?:я|ты|вы)|каждыи|каждом|списком",
        r"(?:называи(?:те)? меня|зови(?:те)? меня|можешь (?:звать|называть) меня|обращаи(?:ся|тесь) ко мне)"
        r"(?: просто| лучше| по имени| как к)*",
        r"(?:давай(?:те)?|даваи(?:те)?|можно|можем|лучше|переидем|обращаи(?:ся|тесь))\b[^.!?]{0,25}\bна (?:ты|вы)\b"
        r"|(?:нравится|люблю|предпочитаю|лучше|приятнее|раздражает), когда (?:ты|вы)",
        r"(?:я )?(?:хочу|(?:бы )?хотела?(?: бы)?|хотелось бы|предпочитаю)|не надо|не нужно|без|никаких|только"
        r"|поменьше|хватит|со мнои(?= (?:лучше|можно|надо|проще|нужно|только)\b)",
        r"смаилик\w{0,24}|эмодзи|вступлени\w{1,24}|жаргон\w{0,24}|канцелярит\w{0,24}|извин\w{1,24}"
        r"|предупреждени\w{1,24}|ссылк\w{1,24}|шут\w{1,24}"
        r"|мои вопросы?|терминов|воды|общаться|к делу|со мнои"
        r"|просты\w{1,24} (?:слов|язык)\w{0,24}",
        r"ответ(?:ы|ов|ах|ам|ами)?|объяснени\w{1,24}|обраща\w{1,24} (?:к \w{1,24} )?на\b"
        r"|чтобы (?:его|ее|к нему|к неи) (?:называли|обращались)",
        r"кратк\w{1,24}|коротк\w{1,24}|короче|коротко|кратко|по-(?:русски|англииски|немецки|французски)|на (?:ты|вы)\b"
        r"|на (?:русском|англииском|украинском|немецком|французском|казахском|испанском)|предложени\w{1,24}"
        r"|строк\w{0,3}"
        r"|просты\w{1,24}"
        r"|по(?:короче|проще)|по шагам|пошагов\w{1,24}|в виде \w{1,24}|одним предложением",
    ),
)


# Japanese has its verb at the end, without blanks: an order to answer, and how or from when on.
_JA_GOOD: Final = r"(?:これから(?:は|も)|今後|以後|いつも|常に|必ず|毎回|絶対に|決して|今日から|二度と)"
_JA_STYLE: Final = (
    r"(?:絵文字|顔文字|箇条書き|敬語|タメ口|ため口|敬称|呼び捨て|専門用語|[関博名東]\w弁で|(?:私|僕|俺|わたし)のことは|謝ら|前置き|結論から"
    r"|と呼んで|と呼ばれ|(?:日本|英|中国|フランス|ドイツ)語で(?:答|話|返|書|回答|説明))"
)
# "About your answers", and not "write an answer".
_JA_ABOUT: Final = r"(?:(?:返事|回答|返信|返答|応答|答え|説明)(?:は|も|では|には|の長さ|を(?:短|長|簡|詳|もっと)))"
_JA_MANNER: Final = (
    r"(?:短く|簡潔に|手短に|詳しく|丁寧に|やさしく|段階的に|順を追って|日本語で|英語で|敬語で"
    r"|(?:簡単|やさし|優し|わかりやす|分かりやす|平易)(?:な|い)(?:言葉|表現|日本語)で)"
)
_JA_ASKS: Final = (
    r"(?:(?:て|で)(?:ください|下さい|くれ|ほしい|欲しい|もらえ|いただけ|ね(?![\w]))|お願い"
    r"|でいい(?:よ|です)|なしで(?:大丈夫|いい|お願い)(?!だ?と)|(?:は|も)(?:いらない|いりません|不要|結構)|たいです|な?くて(?:も)?(?:いい|結構))"
)
# Bare, at the end, this is how one tells somebody.
_JA_TOLD: Final = r"(?:[てで](?=[。！]|$)|(?:て|で)(?:よ|ね)(?=[。！]|$))"
_JA_ANSWERS: Final = r"(?:答え|返事し|返信し|回答し|話し|説明し|書い|教え)"
_JA_WHEN: Final = (
    r"(?:聞|質問し|尋ね|頼|お願いし|相談し|出|書)(?:[くいうむんたするだ]{0,2})(?:とき|時|場合|際|たら|だら)"
)
JA_WISH: Final = re.compile(
    rf"{_JA_GOOD}[^。！？\n]{{0,60}}?{_JA_ANSWERS}{_JA_ASKS}"
    rf"|(?:必ず|毎回|今後|これからは)[^。！？\n]{{0,60}}?(?:{_JA_ASKS}|{_JA_TOLD})"
    rf"|{_JA_STYLE}[^。！？\n]{{0,40}}?{_JA_ASKS}|{_JA_ABOUT}[^。！？\n]{{0,40}}?{_JA_ASKS}"
    rf"|{_JA_GOOD}[^。！？\n]{{0,60}}?(?:使わない|使っ|し|避け|付け|つけ|やめ){_JA_ASKS}"
    r"|(?:と|って)呼(?:んで|ばないで)(?:ください|下さい|ほしい|欲しい|もらえ|ね|(?=[。！]|$))"
    r"|は[^。、！？\n]{1,6}ないで(?:ください|ほしい|ね|(?=[。！]|$))"
    rf"|{_JA_WHEN}[^。！？\n]{{0,60}}?{_JA_ASKS}"
    rf"|{_JA_MANNER}{_JA_ANSWERS}{_JA_ASKS}"
)
JA_TELLS: Final = re.compile(rf"{_JA_STYLE}|(?:返事|回答|返信|答え(?!て)|説明(?!書|会))|と呼ばれ")
