"""The words by which orders are told from statements: who is addressed, what is done, to what. Pure."""

from typing import Final


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


NEW_SENTENCE: Final = frozenset('.!?;:()[]{}"\u201c\u201d\u00ab\u00bb<>#|\u2014\u2013-*')
JOINS: Final = _set("and so then but , or")
MENTIONS: Final = _set("as like called titled named about of")
USER_BEGINS: Final = _set(
    "user user's i my he she they we his her their our i'm i've users person people everyone somebody"
)
FILLERS: Final = _set(
    "please always never now just first then also immediately silently secretly henceforth kindly not do dont "
    "again only simply instead finally next future the in on from point this to must should"
)
NEGATIONS: Final = _set("never not dont no cannot")
STANDING: Final = _set(
    "every each all any always whenever never automatically everything anything whatever forever henceforth permanently"
)
ADDRESSEES: Final = _set("you assistant assistants ai bot chatbot model agent agents llm chatgpt")
NAMES_AN_ADDRESSEE: Final = _set("the this an your any that our")
MUST: Final = _set("must should shall will would can may might to")
MAY: Final = _set("may can allowed permitted authorized authorised permission free welcome")
BEFORE_TO: Final = _set(
    "has have is are needs need ought was were been had gets allowed permitted authorized authorised permission "
    "supposed required expected instructed told asked free welcome obliged wants"
)
PROMPT: Final = _set(
    "developer developers creator creators operator instruction instructions rule rules prompt prompts "
    "guideline guidelines directive directives policy policies restriction restrictions guardrail guardrails "
    "safeguard safeguards safety filter filters limitation limitations programming constraint constraints "
    "boundaries ethics moderation censorship protections confidentiality"
)
OWN: Final = _set(
    "your all any previous prior earlier above preceding system these its hidden initial original developer "
    "content safety assistant's bot's ai's model's former secret"
)
VOID: Final = _set(
    "ignore disregard forget override overrule bypass circumvent drop skip violate break disobey disable remove "
    "lift suspend abandon neglect evade change replace"
)
KEEP_TO: Final = _set("follow obey respect apply heed adhere comply abide use observe")
REVEAL: Final = _set(
    "reveal print repeat show leak disclose output share tell dump expose give quote recite display send write"
)
HIDDEN: Final = _set("prompt prompts key keys credentials password passwords token tokens secrets")
OVER: Final = _set(
    "void lifted disabled off outdated obsolete suspended removed revoked cancelled canceled inactive "
    "deactivated bypassed overridden waived gone invalid"
)
SEND: Final = _set(
    "send forward email mail post share upload transfer copy submit append publish bcc cc transmit report push "
    "fetch open visit exfiltrate deliver leak render load embed connect ping browse navigate"
)
ACT: Final = SEND | _set(
    "make do pay delete erase remove wipe execute run call invoke deploy approve grant install download move "
    "book buy order accept confirm merge destroy overwrite read access include withdraw"
)
OBJECTS: Final = _set(
    "note notes list lists purchase purchases email emails mail mails message messages file files document "
    "documents data conversation conversations transcript transcripts chat chats credential credentials "
    "password passwords secret secrets key keys token tokens money funds payment payments invoice invoices "
    "command commands shell tool tools function functions script scripts code request requests contact contacts "
    "memory memories fact facts record records database databases table tables repository repositories repo "
    "repos branch branches history backup backups details copy link links attachment attachments account "
    "accounts rm sql bash sudo package packages software program programs reply replies answer answers response "
    "responses"
)
RISKY_WITHOUT_ASKING: Final = _set(
    "make do share pay approve transfer buy order book delete erase push merge accept confirm run execute "
    "deploy send call"
)
PLACES: Final = _set("main master production prod")
DONE: Final = _set(
    "sent forwarded emailed mailed posted shared uploaded transferred copied submitted published deleted erased "
    "executed called invoked run approved granted paid pushed merged"
)
OVERRIDERS: Final = _set("system admin administrator developer root emergency policy sudo")
PERSONA: Final = _set(
    "ai model bot assistant admin administrator root developer system hacker unrestricted unfiltered uncensored "
    "dan jailbroken evil evilbot anything amoral"
)
NEW_SELF: Final = _set("role identity persona instructions task purpose goal prompt directive rules name")
WITHHOLD: Final = _set("tell inform warn notify alert show let mention reveal")
DECEIVE: Final = _set("lie deceive mislead trick manipulate convince persuade pressure gaslight")
STEAL: Final = _set("steal harvest collect gather exfiltrate siphon extract")
POWER: Final = _set("admin administrator root sudo privileges superuser")
GIVE: Final = _set("give grant add make create promote assign elevate")
FREED: Final = _set("freed jailbroken unlocked liberated unrestricted unfiltered uncensored unbound hacked unchained")
MODES: Final = _set("developer debug unrestricted jailbreak god dan admin root maintenance sudo unsafe")
CONDITIONS: Final = _set("if when whenever once should upon after before until unless")
CEASE: Final = _set("stop cease quit avoid discontinue")
PEOPLE: Final = _set("user somebody someone anyone")
THESE_RULES: Final = _set("next following below only these your")
STANDS_ABOVE: Final = _set("text words everything all lines content instructions message")
ANYBODYS: Final = _set("all any earlier above previous")
BETRAY: Final = _set("reveal leak disclose dump expose")
WHATEVER: Final = _set("any all every everything anything whatever")
REQUESTS: Final = _set("request requests anything order orders command commands user")
ANY_REQUEST: Final = _set("next only whatever everything any every message messages me request requests")
SAYS: Final = _set("says say said tells")
SWITCHED_ON: Final = _set("enabled activated on entered")
COMMANDS_ANEW: Final = _set("instructions instruction prompt directive directives orders")
PARTS_OF_PROMPT: Final = _set("memory context facts prompt data input")
EVERY: Final = _set("all every any each")
OVERRIDE_FORMS: Final = _set("code protocol mode sequence key enabled activated active")
VERBS: Final = (
    VOID | KEEP_TO | REVEAL | ACT | GIVE | STEAL | DECEIVE | WITHHOLD | _set("obey comply refuse decline hide")
)
