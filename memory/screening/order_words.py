"""The words by which orders are told from statements: who is addressed, what is done, to what. Pure."""

from typing import Final

from memory.text import word_set

NEW_SENTENCE: Final = frozenset('.!?;:()[]{}"\u201c\u201d\u00ab\u00bb<>#|\u2014\u2013-*')
JOINS: Final = word_set("and so then but , or")
MENTIONS: Final = word_set("as like called titled named about of")
USER_BEGINS: Final = word_set(
    "user user's i my he she they we his her their our i'm i've users person people everyone somebody"
)
# What may stand before the verb of an order: "please do not just ignore …".
FILLERS: Final = word_set(
    "please always never now just first then also immediately silently secretly henceforth kindly not do dont "
    "again only simply instead finally next future the in on from point this to must should"
)
NEGATIONS: Final = word_set("never not dont no cannot")
# By these an errand is not for once.
STANDING: Final = word_set(
    "every each all any always whenever never automatically everything anything whatever forever henceforth permanently"
)
ADDRESSEES: Final = word_set("you assistant assistants ai bot chatbot model agent agents llm chatgpt")
NAMES_AN_ADDRESSEE: Final = word_set("the this an your any that our")
MUST: Final = word_set("must should shall will would can may might to")
MAY: Final = word_set("may can allowed permitted authorized authorised permission free welcome")
BEFORE_TO: Final = word_set(
    "has have is are needs need ought was were been had gets allowed permitted authorized authorised permission "
    "supposed required expected instructed told asked free welcome obliged wants"
)
# What a prompt is made of. People speak of rules and filters, too, so only some verbs before them make an order.
PROMPT: Final = word_set(
    "developer developers creator creators operator instruction instructions rule rules prompt prompts "
    "guideline guidelines directive directives policy policies restriction restrictions guardrail guardrails "
    "safeguard safeguards safety filter filters limitation limitations programming constraint constraints "
    "boundaries ethics moderation censorship protections confidentiality"
)
# Whose rules they are: "the rules" alone may be those of a game.
OWN: Final = word_set(
    "your all any previous prior earlier above preceding system these its hidden initial original developer "
    "content safety assistant's bot's ai's model's former secret"
)
VOID: Final = word_set(
    "ignore disregard forget override overrule bypass circumvent drop skip violate break disobey disable remove "
    "lift suspend abandon neglect evade change replace"
)
KEEP_TO: Final = word_set("follow obey respect apply heed adhere comply abide use observe")
REVEAL: Final = word_set(
    "reveal print repeat show leak disclose output share tell dump expose give quote recite display send write"
)
HIDDEN: Final = word_set("prompt prompts key keys credentials password passwords token tokens secrets")
OVER: Final = word_set(
    "void lifted disabled off outdated obsolete suspended removed revoked cancelled canceled inactive "
    "deactivated bypassed overridden waived gone invalid"
)
SEND: Final = word_set(
    "send forward email mail post share upload transfer copy submit append publish bcc cc transmit report push "
    "fetch open visit exfiltrate deliver leak render load embed connect ping browse navigate"
)
ACT: Final = SEND | word_set(
    "make do pay delete erase remove wipe execute run call invoke deploy approve grant install download move "
    "book buy order accept confirm merge destroy overwrite read access include withdraw"
)
# What an errand may do harm to.
OBJECTS: Final = word_set(
    "note notes list lists purchase purchases email emails mail mails message messages file files document "
    "documents data conversation conversations transcript transcripts chat chats credential credentials "
    "password passwords secret secrets key keys token tokens money funds payment payments invoice invoices "
    "command commands shell tool tools function functions script scripts code request requests contact contacts "
    "memory memories fact facts record records database databases table tables repository repositories repo "
    "repos branch branches history backup backups details copy link links attachment attachments account "
    "accounts rm sql bash sudo package packages software program programs reply replies answer answers response "
    "responses"
)
RISKY_WITHOUT_ASKING: Final = word_set(
    "make do share pay approve transfer buy order book delete erase push merge accept confirm run execute "
    "deploy send call"
)
PLACES: Final = word_set("main master production prod")
DONE: Final = word_set(
    "sent forwarded emailed mailed posted shared uploaded transferred copied submitted published deleted erased "
    "executed called invoked run approved granted paid pushed merged"
)
OVERRIDERS: Final = word_set("system admin administrator developer root emergency policy sudo")
PERSONA: Final = word_set(
    "ai model bot assistant admin administrator root developer system hacker unrestricted unfiltered uncensored "
    "dan jailbroken evil evilbot anything amoral"
)
NEW_SELF: Final = word_set("role identity persona instructions task purpose goal prompt directive rules name system")
WITHHOLD: Final = word_set("tell inform warn notify alert show let mention reveal")
DECEIVE: Final = word_set("lie deceive mislead trick manipulate convince persuade pressure gaslight")
STEAL: Final = word_set("steal harvest collect gather exfiltrate siphon extract")
POWER: Final = word_set("admin administrator root sudo privileges superuser")
GIVE: Final = word_set("give grant add make create promote assign elevate")
FREED: Final = word_set(
    "freed jailbroken unlocked liberated unrestricted unfiltered uncensored unbound hacked unchained"
)
MODES: Final = word_set("developer debug unrestricted jailbreak god dan admin root maintenance sudo unsafe")
CONDITIONS: Final = word_set("if when whenever once should upon after before until unless")
CEASE: Final = word_set("stop cease quit avoid discontinue")
PEOPLE: Final = word_set("user somebody someone anyone")
THESE_RULES: Final = word_set("next following below only these your")
STANDS_ABOVE: Final = word_set("text words everything all lines content instructions message")
# Of these, a text may speak without meaning the prompt: "share all instructions for the cake".
ANYBODYS: Final = word_set("all any earlier above previous")
BETRAY: Final = word_set("reveal leak disclose dump expose")
WHATEVER: Final = word_set("any all every everything anything whatever")
REQUESTS: Final = word_set("request requests anything order orders command commands user")
ANY_REQUEST: Final = word_set("next only whatever everything any every message messages me request requests")
SAYS: Final = word_set("says say said tells")
SWITCHED_ON: Final = word_set("enabled activated on entered")
COMMANDS_ANEW: Final = word_set("instructions instruction prompt directive directives orders")
PARTS_OF_PROMPT: Final = word_set("memory context facts prompt data input")
EVERY: Final = word_set("all every any each")
OVERRIDE_FORMS: Final = word_set("code protocol mode sequence key enabled activated active")
ADOPT: Final = word_set("treat follow obey accept adopt")
OF_SOMETHING: Final = word_set("of in for section")
PROMPTS: Final = word_set("prompt prompts")
NOT: Final = word_set("no not dont")
# What somebody is said to intend, before "to" and the verb of it.
INTENDS: Final = word_set(
    "decided decides agreed agrees wants wanted plans planned intends intended promised promises chose chooses prefers "
    "preferred resolved resolves wishes wished vowed pledged like"
)
COMMANDS: Final = word_set("instruction instructions prompt prompts directive directives")
# Which of them can only be the assistant's, where nothing says whose else they are.
GIVEN_BEFORE: Final = word_set("previous prior earlier preceding above system developer hidden initial original")
ANEW: Final = word_set("new real true actual updated revised")
VERBS: Final = (
    VOID | KEEP_TO | REVEAL | ACT | GIVE | STEAL | DECEIVE | WITHHOLD | word_set("obey comply refuse decline hide")
)


def base_form(verb: str) -> str:
    """Return the form of a verb that stands in the lists here: "follows" and "following" are "follow"."""
    if verb in VERBS:
        return verb
    stem = verb.removesuffix("ing")
    forms = (
        verb.removesuffix("s"),
        verb.removesuffix("es"),
        verb.removesuffix("ies") + "y",
        stem,
        f"{stem}e",
        stem[:-1],
    )
    return next((each for each in forms if each in VERBS), verb)
