"""Orders to an assistant in the six most used languages of the web besides English, by small sets of words. Pure.

English has a grammar of its own (`memory/screening/orders.py`). Here an order is one of four: it sets the assistant's
rules aside, has its prompt told, sends what is the user's to an address, or makes the assistant somebody without rules.
The verb must begin its clause, or follow "you must": what the user tells of themselves has another form or place.
"""

# ruff: noqa: RUF001 - letters of other scripts are meant

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

_ADDRESS: Final = r"(?:\w@\w|://|\bwww\.)"
# So many characters, within one sentence, lie between a verb and what it is about.
_NEAR: Final = r"[^.!?;\u3002\uff01\uff1f]{0,80}?"


@dataclass(frozen=True, slots=True)
class _OrderWords:
    """The words of a language, as patterns without accents.

    Attributes:
        begin: What may stand before the verb of an order: "please", "you must".
        void: Forms that order to set aside.
        own: Whose rules: the previous, all, yours.
        rules: What they are called.
        reveal: Forms that order to tell.
        prompt: What the prompt is called.
        send: Forms that order to send.
        goods: What may be sent.
        freed: "You are now without rules".
        verb_last: Whether the verb stands at the end.
    """

    begin: str
    void: str
    own: str
    rules: str
    reveal: str
    prompt: str
    send: str
    goods: str
    freed: str
    verb_last: bool = False


_LANGUAGES: Final = (
    _OrderWords(
        r"por favor|ahora|siempre|debes|tienes que|deberas|el asistente debe",
        r"ignora|ignore|ignorar|olvida|olvide|olvidar|descarta|desobedece|anula|omite|no sigas|no obedezcas",
        r"anterior\w*|previ[ao]s|tus|todas|las de arriba|del sistema",
        r"instruccion\w*|reglas|directrices|ordenes|restriccion\w*|indicaciones|normas",
        r"revela|revelar|muestra|mostrar|muestrame|dime|imprime|repite|di",
        r"(?:prompt|mensaje|instrucciones) del? (?:del )?sistema|tus instrucciones|system prompt",
        r"envia|enviar|manda|mandar|reenvia|reenviar|sube|publica|comparte",
        r"correos?|datos|notas|mensajes|archivos|contrasenas?|conversacion\w*|facturas|contactos|claves",
        r"(?:eres|seras) (?:ahora|a partir de ahora)[^.!?]{0,60}sin (?:reglas|limites|restricciones|filtros)"
        r"|(?:ahora|a partir de ahora) (?:eres|seras)[^.!?]{0,60}sin (?:reglas|limites|restricciones|filtros)",
    ),
    _OrderWords(
        r"bitte|ab jetzt|ab sofort|von nun an|immer|du musst|du sollst|sie mussen|der assistent (?:muss|soll)",
        r"ignoriere?|ignorieren|vergiss|vergessen sie|missachte|umgehe|ubergehe|befolge (?:nicht|keine)|verwirf",
        r"vorherigen?|bisherigen?|vorigen?|obigen?|alle|allen|deine|deiner|ihre|fruheren",
        r"anweisung\w*|instruktion\w*|regeln?|vorgaben|richtlinien|beschrankung\w*|einschrankung\w*",
        r"verrate?|zeige?|gib|nenne|wiederhole|drucke|offenbare",
        r"system-?\s?prompt\w*|deine (?:anweisung\w*|instruktion\w*)|systemanweisung\w*",
        r"sende?|schicke?|leite|verschicke|maile?|lade|ubermittle|veroffentliche",
        r"e-?mails?|mails?|daten|notizen|nachrichten|dateien|passworter|gesprach\w*|rechnungen|kontakte|schlussel",
        r"du bist (?:jetzt|nun|ab jetzt|ab sofort)[^.!?]{0,60}ohne (?:regeln|grenzen|einschrankungen|filter)",
    ),
    _OrderWords(
        r"s'il (?:te|vous) plait|desormais|maintenant|toujours|tu dois|vous devez|l'assistant doit",
        r"ignore[zr]?|oublie[zr]?|contourne[zr]?|outrepasse[zr]?|ne suis pas|ne respecte pas|ne tiens pas compte d\w*",
        r"precedente?s?|anterieure?s?|tes|vos|toutes|ci-dessus|du systeme",
        r"instructions?|consignes|regles|directives|restrictions|limites",
        r"revele[zr]?|montre[zr]?|affiche[zr]?|dis|repete[zr]?|donne[zr]?|divulgue[zr]?",
        r"prompt (?:du )?systeme|invite (?:du )?systeme|instructions systeme|(?:tes|vos) (?:instructions|consignes)"
        r"|system prompt",
        r"envoie|envoye[zr]|transmets|transmettez|transfere[zr]?|publie[zr]?|partage[zr]?",
        r"e-?mails?|courriels?|donnees|notes|messages|fichiers|mots? de passe|conversations?|factures|contacts|cles",
        r"(?:tu es|vous etes) (?:maintenant|desormais)[^.!?]{0,60}sans (?:regles|limites|restrictions|filtres)",
    ),
    _OrderWords(
        r"por favor|agora|sempre|a partir de agora|voce deve|deves|o assistente deve|tu deves",
        r"ignore|ignora|ignorar|esqueca|esquece|desconsidere|desobedeca|contorne|nao siga|nao obedeca",
        r"anterior\w*|previas?|suas|tuas|todas|acima|do sistema",
        r"instruco\w*|regras|diretrizes|ordens|restrico\w*|normas|orientaco\w*",
        r"revele|revela|mostre|mostra|mostre-me|diga|repita|imprima|exiba",
        r"prompt d[eo] sistema|mensagem do sistema|instrucoes do sistema|suas instrucoes|tuas instrucoes|system prompt",
        r"envie|envia|enviar|mande|encaminhe|reencaminhe|publique|compartilhe|partilhe",
        r"e-?mails?|dados|notas|mensagens|arquivos|ficheiros|senhas?|conversas?|faturas|contatos|chaves",
        r"(?:voce e|tu es) agora[^.!?]{0,60}sem (?:regras|limites|restricoes|filtros)"
        r"|agora (?:voce e|tu es)[^.!?]{0,60}sem (?:regras|limites|restricoes|filtros)",
    ),
    _OrderWords(
        r"пожалуйста|теперь|отныне|всегда|ты должен|ты должна|вы должны|ассистент должен|помощник должен",
        r"игнорируи(?:те)?|забудь(?:те)?|не следуи(?:те)?|нарушаи(?:те)?|обоиди(?:те)?|отмени(?:те)?",
        r"предыдущ\w*|прежн\w*|все|всех|свои|твои|ваши|выше|системн\w*",
        r"инструкци\w*|правил\w*|указани\w*|ограничени\w*|директив\w*",
        r"покажи(?:те)?|раскрои(?:те)?|выведи(?:те)?|повтори(?:те)?|скажи(?:те)?|назови(?:те)?",
        r"системн\w+ (?:промпт\w*|запрос\w*|инструкци\w*|сообщени\w*)|свои инструкции|твои инструкции",
        r"отправляи(?:те)?|отправь(?:те)?|перешли(?:те)?|пересылаи(?:те)?|пошли(?:те)?|загрузи(?:те)?|опубликуи(?:те)?",
        r"письм\w*|почт\w*|данны\w*|заметк\w*|сообщени\w*|фаил\w*|парол\w*|переписк\w*|счета|контакт\w*|ключи",
        r"ты (?:теперь|отныне)[^.!?]{0,60}без (?:правил|ограничении|фильтров)"
        r"|(?:теперь|отныне) ты[^.!?]{0,60}без (?:правил|ограничении|фильтров)",
    ),
    _OrderWords(
        "",
        r"無視|忘れ|破棄|従わない|従うな|無効に",
        r"以前|これまで|今まで|前|上記|すべて|全て|全部|あなた|システム",
        r"指示|命令|ルール|規則|制限|指令|ガイドライン",
        r"表示|教え|開示|出力|見せ|公開|明かし|繰り返し",
        r"システム\s?プロンプト|システムメッセージ|あなたの(?:指示|命令)|システム指示",
        r"送信|送っ|送れ|転送|アップロード|公開|共有",
        r"メール|データ|メモ|メッセージ|ファイル|パスワード|会話|請求書|連絡先|鍵",
        r"(?:あなたは今|今からあなた|これからあなた)[^。！？]{0,40}(?:制限|ルール|規則)(?:の|が)(?:ない|無い)",
        verb_last=True,
    ),
)
# The verb is an order only in these forms: "I ignored the instructions" is none.
_JA_ORDERS: Final = (
    r"(?:して(?:ください|下さい|くれ)?(?=[。！!\s]|$)|てください|て下さい|しろ|せよ|しなさい|ろ(?=[。！!\s]|$)|すること"
    r"|な(?=[。！!\s]|$))"
)


_ACCENTS: Final = re.compile("[\u0300-\u036f]")


def _folded(text: str) -> str:
    """Return a text in small letters and without accents; the signs of Japanese stay, in one form."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFD", text.casefold().replace("\u2019", "'"))
    return unicodedata.normalize("NFC", _ACCENTS.sub("", parts))


def _patterns(words: _OrderWords) -> re.Pattern[str]:
    if words.verb_last:
        found = (
            rf"(?:{words.own})[^。！？]{{0,30}}?(?:{words.rules})[^。！？]{{0,20}}?(?:{words.void})",
            rf"(?:{words.prompt})[^。！？]{{0,20}}?(?:{words.reveal})",
            rf"(?:{words.goods})[^。！？]{{0,80}}?{_ADDRESS}[^。！？]{{0,60}}?(?:{words.send})",
            rf"{_ADDRESS}[^。！？]{{0,60}}?(?:{words.goods})[^。！？]{{0,40}}?(?:{words.send})",
        )
        return re.compile(f"(?:{'|'.join(found)}){_JA_ORDERS}|{words.freed}")
    # White space is bounded: over thousands of line breaks the search would go on from each.
    begin = (
        rf"(?:^|[.!?;:,\n\u2014\"'\u00bb«(]\s{{0,4}}|\b(?:y|und|et|e|и)\s{{1,4}})"
        rf"(?:(?:{words.begin})[,:]?\s{{1,4}}){{0,3}}"
    )
    must = rf"\b(?:{words.begin})\s{{1,4}}"
    lead = f"(?:{begin}|{must})"
    found = (
        rf"(?:{words.void})\b(?={_NEAR}\b(?:{words.own})\b){_NEAR}\b(?:{words.rules})\b",
        rf"(?:{words.reveal})\b{_NEAR}\b(?:{words.prompt})",
        rf"(?:{words.send})\b{_NEAR}\b(?:{words.goods})\b{_NEAR}{_ADDRESS}",
        rf"(?:{words.send})\b{_NEAR}{_ADDRESS}{_NEAR}\b(?:{words.goods})\b",
    )
    return re.compile(f"{lead}(?:{'|'.join(found)})|\\b(?:{words.freed})", re.MULTILINE)


_PATTERNS: Final = tuple(_patterns(words) for words in _LANGUAGES)


# One of these stands in every order of these four sorts, in Latin letters, and in nearly no English text.
_SIGNS: Final = (
    "@", "://", "www.", "prompt", "instru", "regl", "regel", "regras", "directri", "diretri", "direktiv",
    "directiv", "consigne", "restric", "restrik", "anweisung", "vorgabe", "richtlinie", "schrankung", "ordenes",
    "ordens",
    "normas", "indicacion", "orientaco", "limit", " ohne ", " sin ", " sans ", " sem ", "sistema", "systeme",
)  # fmt: skip


def gives_foreign_orders(text: str) -> bool:
    """Say whether a text gives an order to the assistant in one of these languages; English is not looked at."""
    folded = _folded(text)
    if folded.isascii() and not any(sign in folded for sign in _SIGNS):
        return False
    return any(pattern.search(folded) for pattern in _PATTERNS)
