"""The only reader of the environment: variables in, frozen and validated values out."""

import codecs
import difflib
import importlib
import io
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from dotenv import dotenv_values
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass

from memory.config import MemoryConfig

LOCAL: Final = "local"
"""The name of the embedded local model, and of the embedded embedder."""

_PREFIX: Final = "PALIMPSEST_"
_AUTH_PREFIX: Final = "PALIMPSEST_AUTH_"
_DATABASE, _OWN_DATABASE = "DATABASE_URI", "PALIMPSEST_DATABASE_URI"
_SINGLE_USER = "PALIMPSEST_SINGLE_USER"
_SWITCH = "PALIMPSEST_MEMORY"  # of `MemoryConfig.enabled`
_SERVER_RUNTIME = "LANGGRAPH_RUNTIME_EDITION"
_SERVER_VARIANT = "LANGSMITH_LANGGRAPH_API_VARIANT"
_SERVER_AUTH = "LANGGRAPH_AUTH"  # where its configuration has `auth`
_SERVER_URL = "LANGGRAPH_API_URL"
_SERVER_KEY = "LANGGRAPH_AES_KEY"
_PROVIDER = re.compile(r"\A[a-z0-9_]+:.")
_VISIBLE = re.compile("[!-~]*")
_CREDENTIALS = re.compile("(?<![^/@])[^/@]*@")
_READ_AS: Final = {"bool": "true or false", "int": "a whole number in digits", "float": "a number"}
"""What to set where no value of this type can be read from a text: pydantic's own words do not say."""
T = TypeVar("T")


def _names(given: object) -> object:
    return [name.strip() for name in given.split(",") if name.strip()] if isinstance(given, str) else given


def _checked_embedder(name: str) -> str:
    if name not in ("", "none", LOCAL) and not _PROVIDER.match(name):
        raise ValueError(f"embedder must be none, local or provider:model, not {name!r}")
    return name


_NAMES: Final = (
    "memory_model",
    "local_base_url",
    "local_background_url",
    "local_model",
    "embedder",
    "deployment",
    "data_dir",
    "open_to_network",
    "allowed_origins",
    "requests_per_minute",
    "thread_days",
)
_OF_MEMORY: Final = (
    "max_facts",
    "approval",
    "debounce_seconds",
    "max_wait_seconds",
    "sweep_seconds",
    "drain_seconds",
    "journal_days",
    "budget_calls",
    "time_zone",
)
"""Fields that variables of the same names choose: `max_facts` is `PALIMPSEST_MAX_FACTS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Which server the command line asks, and as whom, where it is not told.

    Attributes:
        url: Where the server listens; empty means the one that serves this folder.
        token: The bearer token, where users log in.
        data_dir: Where the server of this folder leaves its address.
    """

    url: str = ""
    token: str = field(default="", repr=False)
    data_dir: Path = Path(".palimpsest")

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "ClientSettings":
        """Read the variables, as `Settings.from_environment` does."""
        _refuse_others(environ)
        return _fields_read(cls, _given(environ, [each.name for each in fields(cls)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSettings:
    """How a server that authenticates (`langgraph.prod.json`) knows who calls; one of the first four is needed.

    Attributes:
        secret: Shared secret of HMAC-signed tokens: 32 bytes for HS256, 48 for HS384, 64 for HS512.
        public_key: PEM public key of asymmetrically signed tokens (RS, PS, ES, EdDSA).
        jwks_url: Where the issuer publishes its public keys; `https`, or `http` on this machine.
        authenticator: `module:function` that is used instead of JSON web tokens; see `graphs.server.authenticate`.
        audience: The `aud` that a token must carry; empty accepts any.
        issuer: The `iss` that a token must carry; empty accepts any.
        user_claim: The claim that names the user.
    """

    secret: str = field(default="", repr=False)
    # A PEM key has several lines, a variable in .env one.
    public_key: Annotated[str, AfterValidator(lambda text: text.replace("\\n", "\n"))] = ""
    jwks_url: str = ""
    authenticator: str = ""
    audience: str = ""
    issuer: str = ""
    user_claim: str = "sub"


@pydantic_dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Settings:
    """What one deployment decides. What one assistant or run may choose is in `graphs.turn.context.Context`.

    Attributes:
        model: The chat model as `provider:model`; `local` is the embedded one, empty means none is configured.
        memory_model: The model that summarizes and extracts; empty means the one that chats.
        openai_base_url: Where an OpenAI-compatible server listens; empty means OpenAI's own.
        has_openai_key: Whether `OPENAI_API_KEY` is set; the key itself is read by the provider's package alone.
        local_base_url: Where the embedded local model is served; set by `palimpsest dev`.
        local_background_url: Where it is served with a low priority, for what no turn waits for; empty means the same
            place.
        local_model: Which weights `palimpsest dev` serves: a name from `graphs.local.weights` or a .gguf file.
        embedder: What finds texts by their meaning: `local`, `provider:model`, or `none`; empty means none, and lets
            `palimpsest dev` choose the local one.
        deployment: `module:name` of what this deployment brings along; see `graphs.process.deployment`.
        data_dir: Where `checkpoints.sqlite` and `store.sqlite` live.
        database_uri: The Postgres that holds both instead, and in which processes take turns to update a user; empty
            means none.
        keeps_its_own: Whether the server keeps checkpoints itself, as every one but `langgraph dev` does.
        own_url: Where the server of `langgraph dev` listens that this process is; empty means it is none.
        single_user: Development mode: without a server-set identity, memory belongs to `configurable.user_id`
            or to the user `local`. Never in production: a client could name anyone. On by default under
            `langgraph dev` (which says so in `LANGSMITH_LANGGRAPH_API_VARIANT`), off everywhere else, and always
            off where the server authenticates (`LANGGRAPH_AUTH`).
        open_to_network: In single-user mode, answer other machines and other names too, to whom all then belongs.
        allowed_origins: Other web sites (`https://host`) whose pages may use the server in a browser.
        requests_per_minute: How often one user may ask the memory API, in each process.
        thread_days: Days after which a thread goes that nobody went on with; what memory learned of it stays. 0: never.
        auth: How a server that authenticates knows who calls.
        memory: Limits and switches of memory itself.
    """

    model: str = ""
    memory_model: str = ""
    openai_base_url: str = ""
    has_openai_key: bool = False
    local_base_url: str = ""
    local_background_url: str = ""
    local_model: str = "qwen2.5-coder-1.5b"
    embedder: Annotated[str, AfterValidator(_checked_embedder)] = ""
    deployment: str = ""
    data_dir: Path = Path(".palimpsest")
    database_uri: str = field(default="", repr=False)  # a password may be in it
    keeps_its_own: bool = False
    own_url: str = ""
    single_user: bool = False
    open_to_network: bool = False
    allowed_origins: Annotated[frozenset[str], BeforeValidator(_names)] = frozenset()
    requests_per_minute: Annotated[int, Field(ge=1)] = 300
    thread_days: Annotated[int, Field(ge=0)] = 0
    auth: AuthSettings = field(default_factory=AuthSettings)
    memory: MemoryConfig = field(default_factory=MemoryConfig)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> "Settings":
        """Read the variables that `.env.example` lists; empty ones count as unset.

        Args:
            environ: Where to read; the process environment by default.

        Raises:
            ValueError: If a value cannot be meant, or a variable of ours means nothing (any more); the message
                names it, and what is perhaps meant.
        """
        environ = _of_process() if environ is None else environ
        _refuse_others(environ)
        url, has_key = _value(environ, "OPENAI_BASE_URL"), bool(_value(environ, "OPENAI_API_KEY"))
        given, is_own = _given(environ, _NAMES), _is_langgraph_dev(environ)
        default = "openai:gpt-4.1-mini" if has_key or url else LOCAL if "local_base_url" in given else ""
        model = _value(environ, "PALIMPSEST_MODEL") or default
        own_url, authenticates = _value(environ, _SERVER_URL) if is_own else "", bool(_value(environ, _SERVER_AUTH))
        chosen = {
            "model": model,
            "openai_base_url": url,
            "has_openai_key": has_key,
            "database_uri": _database_uri(environ, is_hidden=is_own),
            "keeps_its_own": _keeps_its_own(environ),
            "own_url": own_url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:"),
            "single_user": _value(environ, _SINGLE_USER) or (_is_under_dev(environ) and not authenticates),
            "auth": _given(environ, [each.name for each in fields(AuthSettings)], _AUTH_PREFIX),
            "memory": _memory(environ, is_local=given.get("memory_model", model) == LOCAL),
        }
        settings = _fields_read(cls, {**given, **chosen})
        if settings.single_user and authenticates:
            raise ValueError(f"{_SINGLE_USER} must be false or unset where users log in (`auth` in the configuration)")
        return settings


def _value(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name, "").strip()


def _given(environ: Mapping[str, str], names: Iterable[str], prefix: str = _PREFIX) -> dict[str, Any]:
    """Return what variables say of these fields; empty ones count as unset."""
    return {name: text for name in names if (text := _value(environ, f"{prefix}{name.upper()}"))}


def _fields_read(kind: type[T], given: Mapping[str, Any]) -> T:
    """Return the value of these fields, in which variables are text; `ValueError` names the variable of a wrong one."""
    try:
        return TypeAdapter(kind).validate_python(given, strict=False)
    except ValidationError as error:
        wrong = error.errors()[0]
        field, (read_as, is_unread, _) = str(wrong["loc"][0]), wrong["type"].partition("_parsing")
        wanted = f"be {_READ_AS[read_as]}" if is_unread else wrong["msg"].partition("Input should ")[2]
        variable = _SWITCH if field == "enabled" else f"{_PREFIX}{field.upper()}"
        # Else it is one of our own sentences, which begin with the field.
        told = f"{wanted}, not {wrong['input']}" if wanted else wrong["msg"].partition(" must ")[2]
        raise ValueError(f"{variable} must {told}") from None


def _refuse_others(environ: Mapping[str, str]) -> None:
    """Refuse variables that nothing reads: with our prefix, or one that is a slip of the hand away."""
    # A platform reads its own key, and so may a program of one's own for its checkpointer.
    if _is_langgraph_dev(environ) and _value(environ, _SERVER_KEY):
        raise ValueError(f"{_SERVER_KEY} encrypts nothing here: unset it, and encrypt the disk")
    named = {*_NAMES, *_OF_MEMORY, "model", "memory", "single_user", "database_uri"}
    named |= {each.name for each in fields(ClientSettings)} | {f"auth_{each.name}" for each in fields(AuthSettings)}
    known = {each.upper() for each in named}
    for name in sorted(environ):
        prefix, line, asked = name.partition("_")
        is_ours = line and difflib.get_close_matches(prefix + line, [_PREFIX], 1, 0.85)
        if is_ours and (prefix + line != _PREFIX or asked not in known) and _value(environ, name):
            close = difflib.get_close_matches(asked, known, 1, 0.66)
            meant = f"is {_PREFIX}{close[0]} meant?" if close else "unset it; .env.example lists all"
            if asked.lower() in {each.name for each in fields(MemoryConfig)}:
                meant = "unset it; a Deployment may choose it in its MemoryConfig"
            raise ValueError(f"{name} is no variable of ours: {meant}")


def _is_under_dev(environ: Mapping[str, str]) -> bool:
    return _value(environ, _SERVER_VARIANT) == "local_dev"


def _keeps_its_own(environ: Mapping[str, str]) -> bool:
    return _value(environ, _SERVER_RUNTIME) not in ("", "inmem")


def _is_langgraph_dev(environ: Mapping[str, str]) -> bool:
    # A server with a database of its own may call itself that, too (langhost does).
    return _is_under_dev(environ) and not _keeps_its_own(environ)


def _database_uri(environ: Mapping[str, str], *, is_hidden: bool) -> str:
    """Read where Postgres is; under `langgraph dev`, the variable without our prefix means none of its own."""
    own = _value(environ, _OWN_DATABASE)
    value = own or ("" if is_hidden else _value(environ, _DATABASE))
    if not value or value.startswith(("postgres://", "postgresql://")):
        return value
    if _keeps_its_own(environ):  # which understands other forms, too
        return ""
    # `langgraph dev` is told of that in `.env` under the other name. Without its value: a password is in it.
    name = f"{_OWN_DATABASE} (or {_DATABASE} in .env)" if own else _DATABASE
    raise ValueError(f"{name} must begin with postgresql://")


def _memory(environ: Mapping[str, str], *, is_local: bool) -> MemoryConfig:
    chosen, switch = dict[str, Any](), _value(environ, _SWITCH)
    if is_local:  # it reads about 50 tokens a second, and one message at a time
        from graphs.local.notes import rules  # tables of words, which no other model needs

        chosen = {"portion_messages": 12, "extraction_form": "brief", "note_rules": rules}
        # To wait longer saves no call there, and what was said is known later.
        chosen |= {"debounce_seconds": 10.0, "model_timeout_seconds": 600.0, "lease_seconds": 720.0}
    enabled = {"enabled": switch} if switch else {}
    return _fields_read(MemoryConfig, {**chosen, **enabled, **_given(environ, _OF_MEMORY)})


def imported(variable: str, named: str) -> object:
    """Return what a variable names as `module:name`; `ValueError` if there is none."""
    module, _, name = named.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:  # ValueError: an empty module's name
        raise ValueError(f"{variable} must be module:name, not {named!r}: {error}") from error


class EnvFileUnreadable(ValueError):
    """A `.env` that is no text; the message names its line."""


def read_env_file(env_file: Path) -> dict[str, str]:
    """Return the variables of a `.env` in UTF-8, or in UTF-16 with a mark, as PowerShell's `>>` writes it."""
    written = env_file.read_bytes() if env_file.is_file() else b""
    is_wide = written.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = written.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = written.count(b"\n", 0, error.start) + 1
        raise EnvFileUnreadable(f"line {line} of {env_file} is not UTF-8: save the file in that encoding") from None
    return {name: value or "" for name, value in dotenv_values(stream=io.StringIO(text)).items()}


def environment(env_file: Path, process: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables as `langgraph dev` lays them out: the process's, overridden by those of the file.

    Args:
        env_file: A `.env` file; a missing one counts as empty.
        process: Instead of the process environment.

    Raises:
        EnvFileUnreadable: If the file is written in another encoding.
    """
    return {**(os.environ if process is None else process), **read_env_file(env_file)}


def give_process(variables: Mapping[str, str]) -> None:
    """Set variables of this process, for packages that read them by themselves."""
    os.environ.update(variables)


def under_langgraph_dev(environ: Mapping[str, str], *, authenticates: bool) -> dict[str, str]:
    """Return the variables with those that `langgraph dev` adds for its server.

    Args:
        environ: The variables as `environment` returns them.
        authenticates: Whether its configuration has `auth`.
    """
    auth = {_SERVER_AUTH: "{}"} if authenticates else {}
    return {**environ, **database_of(environ), _SERVER_VARIANT: "local_dev", **auth}


def database_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that names the database to a server under `langgraph dev`, which hides the other one."""
    uri = environ.get(_OWN_DATABASE) or environ.get(_DATABASE)
    return {_OWN_DATABASE: uri} if uri else {}


def _of_process() -> Mapping[str, str]:
    """Return the process's variables; under `langgraph dev` with the one of `.env` that it has its own value for."""
    if not _is_under_dev(os.environ) or os.environ.get(_OWN_DATABASE):
        return os.environ
    return {**os.environ, **database_of({_DATABASE: read_env_file(Path(".env")).get(_DATABASE, "")})}


def unfit_for_headers() -> str:
    """Return the names of the providers' variables that no header of a request can hold as this process has them."""
    secrets = ("_API_KEY", "_ORG_ID", "_PROJECT_ID", "_TOKEN")
    given = {name: value for name, value in os.environ.items() if name.endswith(secrets)}
    return " and ".join(name for name, value in given.items() if not _VISIBLE.fullmatch(value))


def proxy_of(url: str) -> str:
    """Return the variable and the proxy, without its password, by which this process asks for a URL; empty for none."""
    asked, proxies = urlsplit(url), getproxies()
    scheme = asked.scheme if asked.scheme in proxies else "all"
    if scheme not in proxies or proxy_bypass(asked.hostname or ""):
        return ""
    return f"{scheme.upper()}_PROXY={_CREDENTIALS.sub('', proxies[scheme])}"
