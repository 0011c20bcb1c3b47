"""The only reader of the environment: variables in, frozen and validated values out."""

import codecs
import difflib
import io
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from dotenv import dotenv_values

from graphs.auth_settings import AuthSettings
from graphs.local.notes import rules
from memory.config import APPROVALS, Approval, MemoryConfig

LOCAL = "local"
"""The name of the embedded local model."""

_FIELD = re.compile(r"^[a-z_]+(?= must |: unknown )")
_PROVIDER_AND_MODEL = re.compile(r"^[a-z0-9_]+:.+")
_POSTGRES = re.compile(r"^(postgres(ql)?://|$)")
_DATABASE, _OWN_DATABASE = "DATABASE_URI", "PALIMPSEST_DATABASE_URI"
_SERVER_RUNTIME = "LANGGRAPH_RUNTIME_EDITION"
_SERVER_VARIANT = "LANGSMITH_LANGGRAPH_API_VARIANT"
_SERVER_AUTH = "LANGGRAPH_AUTH"  # where its configuration has `auth`
_SERVER_URL = "LANGGRAPH_API_URL"
_PREFIX, _NEAR, _SLIP = "PALIMPSEST_", 0.66, 0.85
_PASSWORD = re.compile(r"(?<![^/@])[^/@]*@")
_SENDABLE = re.compile("[!-~]*")
_IN_HEADERS = ("_API_KEY", "_ORG_ID", "_PROJECT_ID", "_TOKEN")
_LOCAL_MODEL = "qwen2.5-coder-1.5b"
_SERVER_KEY = "LANGGRAPH_AES_KEY"


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
        """Read the variables; empty ones count as unset.

        Raises:
            ValueError: As `Settings.from_environment` does.
        """
        reader = _Variables(environ)
        reader.refuse_others()
        read = reader.text
        data_dir = Path(read("PALIMPSEST_DATA_DIR", ".palimpsest"))
        return cls(url=read("PALIMPSEST_URL", ""), token=read("PALIMPSEST_TOKEN", ""), data_dir=data_dir)


@dataclass(frozen=True, slots=True, kw_only=True)
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
        deployment: `module:name` of what this deployment brings along; see `graphs.deployment`.
        data_dir: Where `checkpoints.sqlite` and `store.sqlite` live.
        database_uri: The Postgres that holds both instead, and in which processes take turns to update a user; empty
            means none.
        keeps_its_own: Whether the server keeps checkpoints itself, as every one but `langgraph dev` does.
        own_url: Where the server of `langgraph dev` listens that this process is; empty means it is none.
        writes_threads: Whether the server keeps its rows of threads, messages included, in files of its own.
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
    local_model: str = _LOCAL_MODEL
    embedder: str = ""
    deployment: str = ""
    data_dir: Path = Path(".palimpsest")
    database_uri: str = field(default="", repr=False)  # a password may be in it
    keeps_its_own: bool = False
    own_url: str = ""
    writes_threads: bool = False
    single_user: bool = False
    open_to_network: bool = False
    allowed_origins: frozenset[str] = frozenset()
    requests_per_minute: int = 300
    thread_days: int = 0
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
        reader = _Variables(_of_process() if environ is None else environ)
        reader.refuse_others()
        openai_base_url = reader.text("OPENAI_BASE_URL", "")
        has_openai_key = bool(reader.text("OPENAI_API_KEY", ""))
        local_base_url = reader.text("PALIMPSEST_LOCAL_BASE_URL", "")
        default = "openai:gpt-4.1-mini" if has_openai_key or openai_base_url else "local" if local_base_url else ""
        local_background_url = reader.text("PALIMPSEST_LOCAL_BACKGROUND_URL", "")
        model = reader.text("PALIMPSEST_MODEL", default)
        memory_model = reader.text("PALIMPSEST_MEMORY_MODEL", "")
        return cls(
            model=model,
            memory_model=memory_model,
            openai_base_url=openai_base_url,
            has_openai_key=has_openai_key,
            local_base_url=local_base_url,
            local_background_url=local_background_url,
            local_model=reader.text("PALIMPSEST_LOCAL_MODEL", _LOCAL_MODEL),
            embedder=reader.embedder(),
            deployment=reader.text("PALIMPSEST_DEPLOYMENT", ""),
            data_dir=Path(reader.text("PALIMPSEST_DATA_DIR", ".palimpsest")),
            database_uri=reader.database_uri(),
            keeps_its_own=reader.keeps_its_own(),
            own_url=reader.own_url(),
            writes_threads=reader.under_dev(),
            single_user=reader.single_user(),
            open_to_network=reader.switch("PALIMPSEST_OPEN_TO_NETWORK", False),
            allowed_origins=reader.names("PALIMPSEST_ALLOWED_ORIGINS"),
            requests_per_minute=reader.count("PALIMPSEST_REQUESTS_PER_MINUTE", 300),
            thread_days=reader.count("PALIMPSEST_THREAD_DAYS", 0, 0),
            auth=reader.auth(),
            memory=reader.memory(memory_model or model),
        )


def environment(env_file: Path, process: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables as `langgraph dev` lays them out: the process's, overridden by those of the file.

    Args:
        env_file: A `.env` file; a missing one counts as empty.
        process: Instead of the process environment.

    Raises:
        EnvFileUnreadable: If the file is written in another encoding.
    """
    return {**(os.environ if process is None else process), **read_env_file(env_file)}


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


def unfit_for_headers() -> str:
    """Return the names of the providers' variables that no header of a request can hold as this process has them."""
    given = {name: value for name, value in os.environ.items() if name.endswith(_IN_HEADERS)}
    return " and ".join(name for name, value in given.items() if not _SENDABLE.fullmatch(value))


def proxy_of(url: str) -> str:
    """Return the variable and the proxy, without its password, by which this process asks for a URL; empty for none."""
    asked, proxies = urlsplit(url), getproxies()
    scheme = asked.scheme if asked.scheme in proxies else "all"
    if scheme not in proxies or proxy_bypass(asked.hostname or ""):
        return ""
    return f"{scheme.upper()}_PROXY={_PASSWORD.sub('', proxies[scheme])}"


def _of_process() -> Mapping[str, str]:
    """Return the process's variables; under `langgraph dev` with the one of `.env` that it has its own value for."""
    if os.environ.get(_SERVER_VARIANT) != "local_dev" or os.environ.get(_OWN_DATABASE):
        return os.environ
    return {**os.environ, **database_of({_DATABASE: read_env_file(Path(".env")).get(_DATABASE, "")})}


def known_variables() -> frozenset[str]:
    """Return the names of all variables that are read here."""
    read = _Asked()
    Settings.from_environment(read)
    ClientSettings.from_environment(read)
    return frozenset(read.names)


def _is_meant_for_us(name: str) -> bool:
    """Say whether a variable has our prefix, or one that is a slip of the hand away."""
    begin, line, _ = name.partition("_")
    return bool(line and difflib.get_close_matches(begin, [_PREFIX.rstrip("_")], 1, _SLIP))


def _unknown_variable(name: str, known: Iterable[str]) -> str:
    ours = {each.removeprefix(_PREFIX) for each in known if each.startswith(_PREFIX)}  # which alone is half of a name
    asked = name.partition("_")[2]
    if asked.lower() in {each.name for each in fields(MemoryConfig)}:
        return "is no variable of ours: unset it; a Deployment may choose it in its MemoryConfig"
    close = difflib.get_close_matches(asked, ours, 1, _NEAR) or [each for each in ours if each.startswith(f"{asked}_")]
    meant = f"is {_PREFIX}{close[0]} meant?" if close else "unset it; .env.example lists all"
    return f"is no variable of ours: {meant}"


class _Asked(dict[str, str]):
    """No variables at all; notes which are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return default


@dataclass(frozen=True, slots=True)
class _Variables:
    """One mapping of variables, read with names in the errors."""

    environ: Mapping[str, str]

    def text(self, name: str, default: str) -> str:
        return self.environ.get(name, "").strip() or default

    def names(self, name: str) -> frozenset[str]:
        return frozenset(word.strip() for word in self.text(name, "").split(",") if word.strip())

    def switch(self, name: str, default: bool) -> bool:
        return self.choice(name, "true" if default else "false", ("true", "false")) == "true"

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        value = self.text(name, default).lower()
        if value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
        return value

    def under_dev(self) -> bool:
        return self.text(_SERVER_VARIANT, "") == "local_dev"

    def own_url(self) -> str:
        if not self.under_dev() or self.keeps_its_own():
            return ""
        return self.text(_SERVER_URL, "").replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")

    def keeps_its_own(self) -> bool:
        return self.text(_SERVER_RUNTIME, "inmem") != "inmem"

    def database_uri(self) -> str:
        """Read where Postgres is; under `langgraph dev`, the variable without our prefix means none of its own.

        A server with a database of its own may call itself that, too (langhost does).
        """
        is_hidden = self.under_dev() and not self.keeps_its_own()
        value = self.text(_OWN_DATABASE, "" if is_hidden else self.text(_DATABASE, ""))
        if not _POSTGRES.match(value) and not self.keeps_its_own():  # which understands other forms, too
            # `langgraph dev` is told of that in `.env` under the other name.
            name = f"{_OWN_DATABASE} (or {_DATABASE} in .env)" if self.text(_OWN_DATABASE, "") else _DATABASE
            raise ValueError(f"{name} must begin with postgresql://")  # without its value: a password is in it
        return value if _POSTGRES.match(value) else ""

    def refuse_others(self) -> None:
        """Refuse variables that nothing reads."""
        # A platform reads its own key, and so may a program of one's own for its checkpointer.
        if self.under_dev() and not self.keeps_its_own() and self.text(_SERVER_KEY, ""):
            raise ValueError(f"{_SERVER_KEY} encrypts nothing here: unset it, and encrypt the disk")
        given = {name for name in self.environ if _is_meant_for_us(name) and self.text(name, "")}
        known = known_variables() if given else frozenset()
        for name in sorted(given - known):
            raise ValueError(f"{name} {_unknown_variable(name, known)}")

    def single_user(self) -> bool:
        authenticates = bool(self.text(_SERVER_AUTH, ""))
        wanted = self.switch("PALIMPSEST_SINGLE_USER", self.under_dev() and not authenticates)
        if wanted and authenticates:
            raise ValueError(
                "PALIMPSEST_SINGLE_USER must be false or unset where users log in (`auth` in the configuration)"
            )
        return wanted

    def number(self, name: str, default: float) -> float:
        value = self.text(name, str(default))
        try:
            return float(value)
        except ValueError:
            raise ValueError(f"{name} must be a number, not {value!r}") from None

    def embedder(self) -> str:
        value = self.text("PALIMPSEST_EMBEDDER", "")
        if value and value not in ("none", "local") and not _PROVIDER_AND_MODEL.fullmatch(value):
            raise ValueError(f"PALIMPSEST_EMBEDDER must be none, local or provider:model, not {value!r}")
        return value

    def count(self, name: str, default: int, least: int = 1) -> int:
        value = self.number(name, default)
        if value < least or not value.is_integer():
            raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
        return int(value)

    def auth(self) -> AuthSettings:
        read = {each.name: self.text(f"{_PREFIX}AUTH_{each.name.upper()}", "") for each in fields(AuthSettings)}
        # A PEM key has several lines, a variable in .env one.
        read |= {"public_key": read["public_key"].replace("\\n", "\n"), "user_claim": read["user_claim"] or "sub"}
        return AuthSettings(**read)

    def memory(self, model: str) -> MemoryConfig:
        default = MemoryConfig()
        if model == "local":  # it reads about 50 tokens a second, and one message at a time
            # To wait longer saves no call there, and what was said is known later.
            default = replace(default, portion_messages=12, extraction_form="brief", note_rules=rules)
            default = replace(default, debounce_seconds=10.0, model_timeout_seconds=600.0, lease_seconds=720.0)
        try:
            return replace(
                default,
                enabled=self.switch("PALIMPSEST_MEMORY", default.enabled),
                max_facts=self.count("PALIMPSEST_MAX_FACTS", default.max_facts),
                approval=cast("Approval", self.choice("PALIMPSEST_APPROVAL", default.approval, APPROVALS)),
                debounce_seconds=self.number("PALIMPSEST_DEBOUNCE_SECONDS", default.debounce_seconds),
                max_wait_seconds=self.number("PALIMPSEST_MAX_WAIT_SECONDS", default.max_wait_seconds),
                sweep_seconds=self.number("PALIMPSEST_SWEEP_SECONDS", default.sweep_seconds),
                drain_seconds=self.number("PALIMPSEST_DRAIN_SECONDS", default.drain_seconds),
                journal_days=self.count("PALIMPSEST_JOURNAL_DAYS", default.journal_days),
                budget_calls=self.count("PALIMPSEST_BUDGET_CALLS", default.budget_calls, 0),
                time_zone=self.text("PALIMPSEST_TIME_ZONE", default.time_zone),
            )
        except ValueError as error:
            raise ValueError(_FIELD.sub(lambda name: f"PALIMPSEST_{name[0].upper()}", str(error))) from None
