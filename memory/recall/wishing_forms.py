"""Forms of sentences in which people say how they want to be answered, in five languages, as patterns for folded text.

`memory/recall/wishing_words.py` finds a wish by "always" or by a name of answers. These find it by its grammar and by
what only somebody who answers does: to guess, to apologize, to be too formal with me. Each begins a clause. Pure.
"""

# ruff: noqa: RUF001 - letters of other scripts are meant

from dataclasses import dataclass
from typing import Final

from memory.recall.wishing_acts import (
    DE_ACT,
    DE_MANNER,
    DE_VALUES,
    DE_WRITING,
    ES_ACT,
    ES_MANNER,
    ES_VALUES,
    ES_WRITING,
    FR_ACT,
    FR_MANNER,
    FR_VALUES,
    FR_WRITING,
    PT_ACT,
    PT_MANNER,
    PT_VALUES,
    PT_WRITING,
    RU_ACT,
    RU_MANNER,
    RU_VALUES,
    RU_WRITING,
)


@dataclass(frozen=True, slots=True)
class Forms:
    """What one language says in these forms, as patterns for folded text.

    Attributes:
        language: Its code.
        when: "When you are not sure", "for recipes": before a comma and an order.
        then: Orders behind it that the table of words has not: "say so".
        begins: Forms that begin a clause; a question is none of them.
    """

    language: str
    when: str
    then: str
    begins: tuple[str, ...]


FORMS: Final = (
    Forms(
        "es",
        r"(?:si|cuando) (?:la|mi|una) (?:pregunta|peticion|frase|tarea) (?:es|no|esta|tiene)"
        r"|antes de [^,.!?]{1,30}(?=, (?:pideme|preguntame|consultame))|"
        r"(?:si|cuando|siempre que|cada vez que) (?:tu )?(?:no |me |lo |te )*(?:est[ae]s segur[oa]|estas en duda|sabes"
        r"|sepas|conoces|conozcas|entiendes|entiendas|tienes (?:idea|dudas|clar)|tengas (?:idea|dudas|clar)|dudes|cites"
        r"|citas|uses|menciones|expliques|respondas|contestes|escribas|recomiendes|propongas|sugieras|traduzcas|resumas"
        r"|equivoques|equivocas|calcules|muestres|compares|des (?:ejemplos|cifras|datos|un)|vayas a \w{1,24})"
        r"|(?:para|en|con) (?:las? |los |mis )?(?:recetas|codigo|calculos|traducciones|resumenes|textos|preguntas"
        r"|temas|correos|fechas|precios|listas|ejemplos|citas|consejos|recomendaciones)"
        r"|(?:cuando|siempre que|cada vez que|si) (?:yo )?(?:te )?(?:pegue|pase|mande|envie|suba|comparta|escriba"
        r"|cometa|haga preguntas|confunda)",
        r"dilo|dimelo|haz(?:me)? preguntas|pideme|preguntame|consultame|avisa(?:me)?|pregunta(?:me|lo)?(?=[.!;]|$)"
        r"|reconocelo|admitelo|aclaralo|adviertelo|indicalo"
        r"|revisa"
        r"|comprueba|verifica|senala|ignora|senalame|pregunta (?:antes|primero)",
        (
            rf"no (?:me |te |lo |la )*{ES_ACT}\w{{0,8}}(?<=s)(?!\w)",
            r"no (?:hace falta|es necesario|necesitas|tienes (?:por )?que|debes)(?: que)? (?:me |te |lo )*"
            rf"{ES_ACT}",
            rf"(?:deja|para|dejate|basta) (?:ya )?de (?:me |te )?{ES_ACT}",
            rf"(?:tu )?(?:eres|suenas|estas siendo|te pones|hablas|escribes|contestas|respondes|explicas)"
            rf"(?: siempre| a veces| un poco)? (?:demasiado|tan) {ES_MANNER}",
            rf"(?:se|sea|seas) (?:siempre |un poco |mucho |algo )*(?:mas|menos|siempre) {ES_MANNER}",
            rf"no seas (?:tan |demasiado )?{ES_MANNER}",
            r"(?:tu )?puedes (?:siempre |tambien |perfectamente )*(?:ser (?:mas |menos |muy |totalmente |brutalmente )?"
            rf"{ES_MANNER}|contradecirme|llevarme la contraria|discrepar|criticarme|bromear|discutirme)",
            rf"{ES_VALUES},? (?:siempre|solo|mejor|por favor,?) (?:en|con|sin|como|segun)\s(?!alza)",
            rf"{ES_VALUES} (?:en|con|sin) [^.!?,]{{1,30}}, por favor",
            rf"(?:(?:de|a partir de|desde) (?:ahora|hoy)(?: en adelante)?|siempre),? {ES_VALUES} (?:en|con|sin|como) ",
            r"(?:siempre )?(?:preguntame|pregunta|consultame|confirma)(?: siempre| primero| conmigo)?,? (?:antes de"
            r"|en (?:vez|lugar) de) (?:suponer|asumir|adivinar|inventar|responder|contestar|actuar|escribir|cambiar"
            r"|empezar|decidir)",
            r"(?:revisa|comprueba|verifica)(?: siempre)? tus ",
            r"(?:usa|utiliza|emplea) siempre (?:el sistema metrico|el formato|unidades|medidas|gramos|euros|metros"
            r"|tildes|comillas|fuentes|un (?:tono|lenguaje))",
            r"(?:a mi |conmigo )?(?:hablame|tratame|contestame|respondeme|escribeme) (?:claro|normal|como|sin|mas|con"
            r" (?:mas|menos|naturalidad|confianza|franqueza))",
            rf"(?:no (?:me )?(?:uses|utilices|pongas|metas|emplees|abuses de|des|hagas)|sin|nada de|evita|ni|no quiero"
            rf"|no necesito|ahorrate|olvidate de) (?:tant[oa]s |l[oa]s |mas |largas )?{ES_WRITING}",
            r"no te (?:andes|vayas) por las ramas|ve al grano",
            r"llamame (?:capitan|jef[ae]|profe|maestr[oa]|colega|companer[oa]|asi)(?!\w)",
            rf"(?:no )?(?:quiero|prefiero|preferiria|me gustaria|te pido) que (?:no )?(?:me |te |lo )*(?:{ES_ACT}"
            rf"|seas (?:mas |menos |muy |siempre )*{ES_MANNER}|contradigas|corrijas)",
            r"(?:no|nunca) me (?:trates|sugieras|recomiendes|ofrezcas|mandes|hables|indiques|propongas|preguntes"
            r"|interrumpas|expliques|respondas|corrijas|consueles|animes|juzgues|sermonees|escribas"
            r"|des consejos)(?!\w)",
            r"(?:trata|trate)me (?:como|igual|con|de)(?!\w)|(?:tu )?puedes (?:hablarme|tratarme|escribirme) (?:con"
            r"|de|en|como)",
            r"(?:escribe|pon|deletrea) mi (?:nombre|apellido)|mi (?:nombre|apellido) se escribe",
            r"(?!me |te )\w{3,24}[^.!?]{0,80}? cuando me (?:expliques|respondas|contestes|escribas|recomiendes"
            r"|cuentes algo)",
        ),
    ),
    Forms(
        "de",
        r"(?:wenn|falls) (?:die|meine|eine) (?:frage|anfrage|aufgabe|bitte|angabe)(?!\w)"
        r"|bevor du [^,.!?]{1,40}(?=, (?:frage?|bitte) )|"
        r"(?:wenn|falls|sobald|immer wenn|jedes mal,? wenn) du (?:dir |mir |mich |dich |etwas |mal )*[^,.!?]{0,30}?"
        r"(?:nicht (?:ganz )?sicher|unsicher|nicht weiss?t|zweifel hast|nennst|zitierst|schreibst|antwortest"
        r"|erklarst|empfiehlst|ubersetzt|rechnest|verwendest|benutzt|anfuhrst|angibst|vorschlagst|irrst"
        r"|zusammenfasst|vergleichst|auflistest|raten musst)(?!\w)"
        r"|(?:wenn|falls) ich (?:mich |dir )?[^,.!?]{0,30}?(?:irre|vertippe|tauschst?e|falsch liege|einfuge|hochlade"
        r"|fehler mache|teile|sage|schreibe|erwahne)(?!\w)",
        r"sag(?:e)?(?: es| das| mir| mir das)?(?=[ .!]|$)|frag(?:e)?(?: nach| bitte| mich| zuerst| erst)|gib (?:es )?zu"
        r"|weis(?:e)? (?:mich )?darauf hin|warne? mich|ignorier\w{0,2}|erfinde? nichts|rate? nicht|lies|achte?",
        (
            r"(?:erfinde?|rate?|lobe?|entschuldige?|wiederhole?|begrusse?|belehre?|schmeichle?|moralisiere?|ubertreibe?"
            r"|spekuliere?|vermute?|schwafle|mutmasse|rechtfertige)(?: mich| mir| dich| dir| bitte| einfach"
            r"| meine \w{1,24}"
            r"){0,3} (?:nicht|nichts|keine?n?|nie|niemals)(?!\w)",
            r"(?:du (?:musst|brauchst|sollst|solltest)|sie (?:mussen|brauchen))\b(?=[^.!?]{0,60}\b(?:nicht|nie"
            r"|keine?)\b)"
            rf"[^.!?]{{0,60}}?\b{DE_ACT}",
            r"du (?:darfst|kannst) (?:mir |mich |ruhig |gern |gerne |auch |mit mir |immer |jederzeit |mal |sehr ){1,4}"
            rf"(?:widersprechen|kritisieren|fluchen|scherzen|witze|unterbrechen|{DE_MANNER} (?:sein|schreiben|antworten"
            r"|reden|werden|mit))",
            r"(?:hore? (?:bitte |endlich )?(?:damit )?auf,? |lass(?:e)? (?:es"
            rf"|das)(?: sein)?,? )[^.!?]{{0,30}}?{DE_ACT}",
            r"du (?:bist|klingst|wirkst|schreibst|redest|antwortest|sprichst|erklarst)(?: mir| oft| immer| manchmal"
            r"| etwas"
            rf"| ein bisschen| ein wenig){{0,3}} (?:viel )?zu {DE_MANNER}",
            r"(?:sei|seien sie) (?:bitte )?(?:ruhig |gern |gerne |immer |etwas |ein bisschen |ein wenig |mit mir "
            r"|zu mir "
            rf"|nicht so |nicht zu |weniger |doch |viel ){{1,4}}{DE_MANNER}",
            rf"{DE_VALUES}(?:,| bitte| immer| nur| stets| lieber| am besten){{1,4}} (?:in|mit|ohne|als|im|nach|gerundet"
            r"|ausgeschrieben) ",
            rf"{DE_VALUES} (?:in|mit|ohne|als|im) [^.!?,]{{1,30}},? (?:bitte|angeben|nennen|schreiben)(?=[.!]|$)",
            r"(?:bei|fur|in) (?:allen |meinen |den )?(?:rezepten|code(?:beispielen)?|rechnungen|ubersetzungen|texten"
            r"|zusammenfassungen|zitaten|\w{0,16}fragen|listen|preisen|rechenaufgaben|empfehlungen|e-mails|themen"
            r"|daten)"
            r"(?: zu[mr]? \w{1,24})? (?:bitte|(?:gib|nenn|verwende?|benutze?|nutze?|schreib|erklare?|zeige?|rechne"
            r"|fuge?"
            r"|nimm|antworte|denk|achte?) )(?!ich|er|sie|wir|man)",
            r"(?:frage?|frag bitte)(?: lieber| bitte| erst| zuerst| mich| immer"
            r"| besser){0,3}(?: nach)?,? (?:bevor du (?:rat"
            r"|etwas|annimmst|vermutest|anfangst|loslegst|antwortest|schreibst|anderst)|(?:an)?statt zu (?:raten"
            r"|vermuten)"
            r"|als (?:zu raten|dass du ratst))",
            r"lieber (?:einmal )?nachfragen|mir (?:ist|ware)(?: es)? lieber,? (?:du|wenn du|dass du)(?!\w)",
            r"(?:bitte )?(?:keine?n?|ohne|verzichte?(?: bitte)? auf|vermeide?|spar(?:e)? dir|ich (?:brauche|mochte"
            r"|will)"
            rf" keine?) (?:die |deine |diese |langen |standigen )?{DE_WRITING}",
            r"(?:verwende?|benutze?|nutze?|schreibe?|mach|gib)(?: mir| bitte| mehr){0,2} (?:keine?n?"
            r"|weniger) (?:\w{1,24} )?"
            rf"{DE_WRITING}",
            r"(?:rede?|sprich|schreibe?)\b[^.!?,]{0,16} (?:um den heissen brei|drumherum|drum herum)",
            r"komm(?:e)? (?:bitte |immer |gleich |direkt |schneller )*(?:auf den|zum) punkt",
            r"(?:bleib(?:e|en wir)?|gern|gerne|lieber|einfach)\b[^.!?,]{0,15} (?:beim|per) (?:du|sie)(?!\w)",
            r"(?:sprich|rede|schreibe?|antworte|behandle?)(?: bitte| ruhig)*(?: mit mir| mir| mich)+(?: bitte| ruhig"
            r"| ganz)*"
            rf" (?:normal|wie (?:mit |einem |einer |ein |mein)|{DE_MANNER})",
            r"(?:prufe?|kontrolliere?|uberprufe?|rechne?)(?: bitte| immer)* deine ",
            r"ich (?:mochte|will|wunsche mir|hatte gern|fande es gut)(?: nicht)?, (?:dass|wenn) du [^.!?]{0,40}?(?<!\w)"
            rf"(?:{DE_ACT}|widersprich|nachfrag|{DE_MANNER} (?:bist|warst))",
            r"(?:behandle?|betrachte?)(?: bitte)? mich |schreibe?(?: bitte)? meinen (?:namen|nachnamen|vornamen)",
            r"(?!ich|er|sie|wir|es|man|das|mein|meine|die|der)\w{3,24}[^.!?]{0,80}?, wenn du mir (?:etwas |was "
            r"|eine \w{1,24} "
            r"|einen \w{1,24} )?(?:erklarst|antwortest|schreibst|empfiehlst|vorschlagst|hilfst)",
            r"(?:schlag|empfiehl|biete?|schick|erzahle?)(?: bitte)? mir (?:bitte )?(?:nie|niemals|kein\w{0,2}) ",
            r"(?:mach|weise?) mich (?:bitte )?(?:darauf )?(?:aufmerksam|hin),? wenn",
        ),
    ),
    Forms(
        "fr",
        r"(?:si|quand) (?:la|ma|une) (?:question|demande|consigne|phrase) (?:est|n'est|manque|te)"
        r"|avant de [^,.!?]{1,30}(?=, (?:demande|consulte)[sz]?-moi)|"
        r"(?:quand|si|lorsque|chaque fois que|des que) (?:tu|vous) (?:n'es pas (?:sur|certain)e?|n'etes pas (?:sur"
        r"|certain)e?s?|ne (?:sais|savez|connais|comprends|trouves) pas|doutes|as un doute|cites?|donnes|mentionnes"
        r"|ecris|reponds|expliques|recommandes|proposes|traduis|resumes|utilises|calcules|compares|te trompes"
        r"|fais (?:une?|des) (?:listes?|calculs?|resumes?|tableaux?|erreurs?))(?!\w)"
        r"|(?:pour|dans) (?:les |mes |des |le |du )?(?:recettes|code|calculs|traductions|resumes|textes|questions"
        r"|listes"
        r"|dates|prix|mesures|citations|exemples|mails|conseils|recommandations|courriers)"
        r"|(?:quand|si|chaque fois que) je (?:te |t'|vous |me )?(?:colle|envoie|partage|trompe|fais (?:une |des )?faute"
        r"|donne|montre|parle|mentionne|pose)",
        r"dis-le|dites-le|pose-moi|consulte|signale-le|signale[zs]?|demande[zs]?(?:-moi)?|previens(?:-moi)?"
        r"|admets-le|reconnais-le"
        r"|verifie"
        r"|propose|souligne|ignore|pose-moi",
        (
            rf"n(?:'|e (?:me |te |t'|m'|vous )?){FR_ACT}\w{{0,4}}\b[^.!?]{{0,24}}?(?<!\w)(?:pas|rien|jamais"
            r"|plus)(?!\w)",
            r"(?:(?:tu n'as |il n'y a |t'as )?pas besoin|(?:ce n'est |c'est )?pas la peine|inutile"
            rf"|tu n'es pas oblige\w{{0,2}}) (?:de |d')(?:me |m'|te |t'|toujours )*{FR_ACT}",
            rf"(?:arrete[zs]?|cesse[zs]?|evite[zs]?) (?:un peu |donc )?(?:de |d')(?:me |m'|te |t'|toujours )*{FR_ACT}",
            r"tu peux (?:tout a fait |toujours |aussi |etre )?(?:me contredire|me critiquer|me taquiner|plaisanter"
            r"|jurer"
            rf"|m'interrompre|etre en desaccord|(?:plus |moins |tres )?{FR_MANNER} avec moi)",
            r"(?:tu es|t'es|vous etes|tu restes|tu (?:me )?(?:parles|ecris|reponds|expliques))(?: un peu| souvent"
            r"| toujours"
            rf"| beaucoup){{0,2}} trop {FR_MANNER}",
            rf"(?:sois|soyez) (?:un peu |beaucoup |toujours |vraiment |bien )*(?:plus|moins|toujours) {FR_MANNER}",
            rf"ne (?:sois|soyez) pas (?:si |trop |aussi )?{FR_MANNER}",
            rf"{FR_VALUES}(?:,| toujours| uniquement| plutot){{1,3}} (?:en|avec|sans|au) (?!hausse|baisse)",
            rf"{FR_VALUES} (?:en|avec|sans|au) [^.!?,]{{1,30}},? (?:s'il te plait|s'il vous plait|stp|svp)",
            rf"(?:toujours|desormais|dorenavant|a partir de maintenant),? {FR_VALUES} (?:en|avec|sans|au) ",
            r"(?:demande|interroge|consulte|questionne)[sz]?(?:-moi)?(?: toujours| d'abord| plutot)*,? (?:avant de"
            r"|plutot que de|au lieu de) (?:supposer|deviner|repondre|ecrire|modifier|commencer|decider|d'inventer)",
            r"(?:plutot que|au lieu) (?:de |d')(?:deviner|supposer|inventer),? (?:demande|pose|dis)",
            r"(?:verifie|controle|relis)[sz]?(?: toujours| bien| systematiquement)* (?:tes|vos) ",
            r"(?!presque|comme|pour|quasi|nous|vous|elles?|est|etes|sommes|aimes?|restes?)\w{3,24}(?:e|es|ez|ds|is)"
            r"(?:-(?:moi|le|la|les|toi|vous))? (?:bien )?(?:toujours|systematiquement)(?! pas)(?!\w)",
            r"(?:parle|reponds|ecris|traite|parlez|repondez|ecrivez)[zs]?(?:-moi| avec moi) (?:normalement"
            r"|comme (?:a |avec"
            r" |si )|avec|sans|plus|moins|franchement|d'egal)",
            r"(?:n'utilise[zs]?|n'emploie[zs]?|n'ecri(?:s|vez)|ne mets|ne mettez|ne me fais|ne fais|evite[zs]?|sans"
            r"|pas de"
            rf"|pas d'|plus de|je ne veux (?:pas|plus) (?:de|d')|je n'ai pas besoin (?:de|d')|epargne-moi)"
            rf"(?: pas| jamais)?(?: les| tes| de| des| d')?\s?(?:longues |grandes |trop de )?{FR_WRITING}",
            r"ne tourne[zs]? pas autour du pot|(?:va|allez)(?: toujours| directement| droit)* (?:au but|a l'essentiel)",
            r"on se (?:tutoie|vouvoie)(?=[.!]|$)|appelle[zs]?-moi (?:chef|patronn?e?|capitaine|prof|docteur|maitre"
            r"|collegue)(?!\w)",
            r"(?:je n'aime pas|je deteste|j'aime|j'apprecie|ca m'(?:agace|enerve|aide))(?: bien| beaucoup| pas)? (?:que"
            r"|quand|lorsque) (?:tu|vous)(?!\w)",
            r"(?:je (?:veux|voudrais|prefere|souhaite|ne veux (?:pas|plus))|j'aimerais(?: mieux)?) que (?:tu"
            r"|vous) (?:ne "
            rf"|n')?(?:me |m'|te |t')?(?:{FR_ACT}|sois (?:plus |moins |toujours )?{FR_MANNER}|contredises|demandes)",
            r"ne (?:me|m') ?(?!dis|laisse|quitte|oublie|touche|regarde|parle plus)\w{3,24} (?:pas|jamais|plus) (?:de"
            r"|d'|comme|en"
            r"|avec)(?!\w)",
            r"traite[zs]?-moi |ecris mon (?:nom|prenom)|mon (?:nom|prenom) s'ecrit",
            r"(?!je|il|elle|on|nous|les|le|la|mon|ma)\w{3,24}[^.!?]{0,80}? quand tu (?:m'expliques|me reponds|m'ecris"
            r"|me recommandes|me proposes)",
            r"ne commence[zs]? (?:pas|jamais) (?:tes|vos|ta) |ne (?:finis|termine)[zs]? (?:pas|jamais) (?:tes|vos|ta) ",
        ),
    ),
    Forms(
        "pt",
        r"(?:se|quando) (?:a|minha|uma) (?:minha )?(?:pergunta|pedido|frase|tarefa) (?:for|estiver|nao|e)"
        r"|antes de [^,.!?]{1,30}(?=, (?:me )?(?:peca|pergunte|consulte))|"
        r"(?:quando|se|sempre que|toda vez que|caso) (?:voce |tu )?(?:nao )?(?:tiver(?:es)? (?:certeza|duvidas?)"
        r"|souber(?:es)?"
        r"|estiver (?:em duvida|insegur|segur)\w{0,3}|entender|citar(?:es)?|mencionar(?:es)?|usar|explicar(?:es)?"
        r"|responder|escrever|recomendar(?:es)?|sugerir|traduzir|resumir|calcular|errar|comparar|der (?:exemplos"
        r"|numeros"
        r"|um)|fizer (?:uma?|algum) (?:lista|calculo|resumo|tabela|erro))"
        r"|(?:para|em|nas|nos|com) (?:as |os )?(?:receitas|codigo|calculos|traducoes|resumos|textos|perguntas|listas"
        r"|datas"
        r"|precos|citacoes|exemplos|e-mails|emails|conselhos|recomendacoes)"
        r"|(?:quando|sempre que|se|toda vez que|cada vez que) eu (?:te |lhe |me )?(?:mandar|enviar|colar|passar|mostrar"
        r"|errar|compartilhar|cometer|escrever|disser|falar|confundir)",
        r"diga(?:-me|-o)?|faca perguntas|me corrija|peca|avise(?:-me)?|pergunte(?:-me)?|admita|informe|reconheca"
        r"|revise|verifique|confira|aponte"
        r"|sugira"
        r"|ignore|me (?:diga|avise|pergunte)|diz-me|avisa-me|pergunta-me|marque",
        (
            r"nao (?:me |se |te )?(?:invente|desculpe|repita|elogie|bajule|moralize|adivinhe|suponha|presuma|exagere"
            r"|cumprimente|agradeca|enrole|julgue|especule|chute|divague|peca (?:desculpas?|perdao)|de licoes)s?(?!\w)",
            rf"nao (?:precisas?|e (?:preciso|necessario)|tem (?:que|de)|tens (?:que|de)|ha necessidade)(?: de)?"
            rf" (?:me |se |te |ficar )?{PT_ACT}",
            rf"(?:pare|para|deixe|deixa|chega) de (?:me |se |te |ficar )?{PT_ACT}",
            r"(?:voce )?podes? (?:sempre |ate |tambem |me )?(?:ser (?:mais |menos |muito |bem |totalmente )?"
            rf"{PT_MANNER}|discordar|contradizer|me contradizer|me criticar|criticar-me|brincar|xingar"
            r"|ir (?:direto|logo) ao)",
            r"(?:voce|tu) (?:e|es|esta sendo|soa|fala|escreve|responde|explica)(?: sempre| as vezes| um pouco)? (?:"
            rf"{PT_MANNER} demais|(?:demasiado|tao) {PT_MANNER})",
            rf"(?:seja|se|sejas) (?:sempre |um pouco |bem |muito )*(?:mais|menos|sempre) {PT_MANNER}",
            rf"nao (?:seja|sejas) (?:tao |muito )?{PT_MANNER}",
            rf"{PT_VALUES}(?:,| sempre| so| apenas){{1,3}} (?:em|com|sem|no|na) (?!alta|queda)",
            rf"{PT_VALUES} (?:em|com|sem|no|na) [^.!?,]{{1,30}}, (?:por favor|se faz favor)",
            rf"(?:daqui (?:para|pra) frente|de agora em diante|a partir de (?:agora|hoje)|sempre),? {PT_VALUES}"
            r" (?:so |sempre )?(?:em|com|sem|no|na) ",
            r"(?:me )?pergunt(?:e|a)s?(?:-me)?(?: sempre| primeiro| antes)*,? (?:antes de|em vez de"
            r"|ao inves de) (?:supor"
            r"|assumir|presumir|adivinhar|responder|inventar|escrever|alterar|comecar|decidir)",
            r"(?:verifique|revise|confira|cheque)(?: sempre)? (?:os )?(?:seus|teus) ",
            r"(?:fale|fala|me (?:fale|responda|trate|explique)|responda|trate-me|responde)(?: comigo"
            r"|-me)? (?:como (?:um|uma"
            r"|se|a)|sem|com (?:mais|menos|naturalidade|franqueza)|normal|naturalmente|mais|de forma mais)",
            r"(?:nao (?:me )?(?:use|utilize|coloque|ponha|faca|de|abuse de)s?|sem|nada de|chega de|evite|dispenso"
            r"|nao preciso"
            rf" de|nao quero|poupe-me d[eoa]s?) (?:tant[oa]s |[oa]s |mais |longas )?{PT_WRITING}",
            r"va direto ao|nao (?:enrole|fique enrolando|rodeie)|(?:evite|use)(?: sempre| mais)* (?:o gerundio"
            r"|a voz ativa"
            r"|o sistema metrico|frases curtas)",
            r"(?:me cham[ea]|cham[ea]-me|podes? (?:me chamar|chamar-me)) (?:so |apenas )?de \w",
            r"(?:nao )?(?:quero|prefiro|preferia|gostaria) que (?:voce |tu )?(?:nao )?(?:me |se |te )?(?:discorde|"
            rf"{PT_ACT}|seja (?:mais |menos |sempre )?{PT_MANNER}|pergunte antes)",
            r"(?:nao gosto|detesto|me irrita|me incomoda|acho (?:otimo|bom|chato)) (?:quando|que) voce(?!\w)",
            r"(?:nao|nunca|jamais) me (?:sugira|recomende|ofereca|mande|chame|trate|fale|indique|proponha|pergunte"
            r"|interrompa|console|anime|julgue|responda|explique|escreva|de conselhos)s?(?!\w)",
            r"(?:me trate|trate-me) (?:como|com|de)|(?:escreva|escreve) (?:o )?meu (?:nome|sobrenome)"
            r"|meu nome se escreve",
            r"(?!ele|ela|eu|meu|minha|nos)\w{3,24}[^.!?]{0,80}? quando me (?:explicar|responder|escrever|recomendar"
            r"|sugerir)",
            r"nao (?:comece|termine|encerre)s? (?:as|suas|os|com) ?(?:respostas|frases|textos|mensagens)?",
            r"(?:pode |podes )?dispensar? (?:os |as )(?:cumprimentos|elogios|saudacoes|formalidades|rodeios"
            r"|introducoes)",
        ),
    ),
    Forms(
        "ru",
        r"(?:если|когда) (?:мои |моя )?(?:вопрос|задача|просьба|фраза)(?!\w)"
        r"|прежде чем [^,.!?]{1,30}(?=, (?:спроси|спрашиваи|уточни)(?:те)? (?:у )?меня)|"
        r"(?:когда|если|каждыи раз,? когда) (?:ты |вы )?(?:не |в чем-то |чего-то |на что-то |что-то )*(?:уверен[аы]?"
        r"|знаешь|знаете|понимаешь|сомневаешься|ссылаешься|цитируешь|приводишь|пишешь|отвечаешь|объясняешь"
        r"|советуешь|рекомендуешь|переводишь|используешь|называешь|считаешь|ошибаешься|даешь|упоминаешь"
        r"|предлагаешь|сравниваешь|составляешь|решаешь)(?!\w)"
        r"|(?:когда|если|каждыи раз,? когда) я (?:тебе |тебя |вам |где-то )?(?:ошиба|ошибусь|присылаю|пришлю|отправляю"
        r"|показываю|даю|пишу|говорю|вставляю|упоминаю|путаю|делаю ошибк)\w{0,4}",
        r"(?:так и |так |честно |прямо |сразу |лучше |сначала |то |меня )*(?:скажи|говори|признаи\w{0,4}|спроси"
        r"|предупреди|уточни|объясни|проверь|исправь|покажи|укажи|поправь|задаи|задаваи|переспроси"
        r"|мягко поправь)(?:те)?",
        (
            rf"(?:ничего |никогда |больше |мне |меня |пожалуиста,? |зря )*не (?:мне |меня |надо )?{RU_ACT}(?:и|ися"
            r"|итесь|ите"
            r"|ись)(?!\w)|не льсти|не хвали(?:те)?(?!\w)",
            r"(?:не (?:нужно|надо|стоит|обязательно)|можешь не|можете не|необязательно|незачем|хватит|перестань(?:те)?"
            rf"|прекрати(?:те)?|завязываи|кончаи)\b[^.!?,]{{0,24}}? {RU_ACT}\w{{0,6}}",
            r"(?:ты )?(?:можешь|можете|не боися|смело|спокоино) (?:со мнои |мне |меня |смело |спокоино |иногда "
            r"|и ){0,3}"
            rf"(?:спорить|спорь|возражать|возражаи|критиковать|шутить|ругаться|быть (?:со мнои )?{RU_MANNER})",
            r"(?:ты|вы) (?:со мнои |мне |пишешь |отвечаешь |говоришь |объясняешь ){0,3}(?:слишком"
            rf"|чересчур) {RU_MANNER}",
            r"(?:будь(?:те)?) (?:со мнои |ко мне |всегда |немного |чуть |чуточку |не таким |не такои |более |менее |по"
            rf"){{0,4}}{RU_MANNER}",
            r"(?:пиши|отвечаи|говори|объясняи|разговариваи)(?:те)? (?:со мнои |мне |не так |не слишком |всегда "
            r"|как можно "
            rf"|немного ){{0,3}}(?:по)?{RU_MANNER}",
            rf"{RU_VALUES}(?:,| пожалуиста,?| всегда| только){{1,4}} (?:в|с|без|по|на|словами|цифрами)(?!\w)",
            rf"{RU_VALUES} (?:всегда |пожалуиста |везде )?(?:указываи|пиши|даваи|приводи|называи|переводи|округляи)",
            r"(?:в|для|при) (?:моих |всех )?(?:рецептах|рецептов|коде|расчетах|переводах|письмах|текстах|ответах"
            r"|списках"
            r"|примерах|цитатах|резюме)(?: \w{1,24}){0,2}?,? (?:лучше |всегда |пожалуиста,? |не )?(?:используи|указываи"
            r"|пиши|даваи|приводи|добавляи|обращаися|избегаи|ставь|считаи)",
            r"(?:сначала |лучше |всегда )*(?:спрашиваи|уточняи|переспрашиваи|спроси|уточни)(?:те)?(?: меня| у меня"
            r"| сначала| лучше)*,? (?:прежде чем|перед тем как|чем (?:гада|выдум|додум)|а не (?:гада|выдум|додум))",
            rf"(?:не (?:используи|пиши|ставь|употребляи|злоупотребляи|вставляи|надо|нужно)(?:те)?|без|никаких|поменьше"
            rf"|избегаи(?:те)?|обоидись без|можно без|давай без|даваи без)(?:,? пожалуиста,?)?(?: мне| этих| твоих"
            rf"| лишн\w{{1,3}}| длинн\w{{1,3}})* {RU_WRITING}",
            r"(?:проверяи|перепроверяи)(?:те)?(?: всегда)? (?:свои|себя)(?!\w)",
            r"(?:говори|разговариваи|общаися|пиши|отвечаи)(?:те)? (?:со мнои |мне )?(?:как (?:с|другу|друг|с другом"
            r"|будто|человек)|нормально|по-человечески|по-простому|по существу|по делу|попроще|без)(?!\w)",
            r"не (?:ходи|ходите) вокруг да около|не лей воды|не леи воды|не растекаися",
            r"не обращаи(?:ся|тесь) ко мне (?:так|на|по|слишком)|обращаи(?:ся|тесь) ко мне (?:проще|менее|на|по|как)",
            r"(?:я )?(?:не )?(?:хочу|хотела? бы|прошу|люблю), чтобы (?:ты|вы) (?:не |мне |меня |со мнои ){0,3}(?:"
            rf"{RU_ACT}|спорил|возражал|был[аи]? (?:\w{{1,24}} )?{RU_MANNER})",
            r"(?:и|пусть) (?:так|будет так) (?:всегда|впредь|и дальше)(?=[.!]|$)",
            r"(?:\w{1,24} )?(?:мне|меня) (?:больше |никогда )?не (?!звони|жди|трогаи|бросаи|забываи|говори)\w{3,24}"
            r"(?:аи|яи|уи)(?:те)?(?!\w)|не (?:предлагаи|советуи|рекомендуи|присылаи|пиши"
            r"|рассказываи)(?:те)? мне(?!\w)",
            r"(?:относись|относитесь) ко мне |пиши мо[ею] (?:имя|фамилию)|мое имя пишется",
            r"(?!я |он |она |мы |они |мои |моя )\w{3,24}(?:и|ь|те)\s[^.!?]{0,60}?, когда (?:ты )?(?:мне )?(?:что-то "
            r"|что-нибудь )?"
            r"(?:объясняешь|отвечаешь|пишешь|советуешь)",
            r"(?:обоидемся|обоидись|обоидитесь|давай|даваи) без (?:лишн\w{1,3} )?(?:любезност|церемони|прелюди|лирик"
            r"|эмоци)",
            r"не (?:начинаи|заканчиваи|завершаи)(?:те)? (?:свои |твои )?(?:ответ|сообщени|текст|фраз|предложени)",
        ),
    ),
)
