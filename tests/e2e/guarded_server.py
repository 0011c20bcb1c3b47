"""A server that authenticates: the production configuration, with SQLite files to look into."""

import json
from pathlib import Path
from typing import Any

import httpx
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.e2e.dev_server import DevServer
from tests.stories.people import token_of
from tests.stories.serving import PROJECT, SECRET


def production_config(folder: Path) -> Path:
    """Write `langgraph.prod.json` with the SQLite persistence of `langgraph.json` into a folder; return its path."""
    shipped = json.loads((PROJECT / "langgraph.prod.json").read_text())
    development = json.loads((PROJECT / "langgraph.json").read_text())
    persistence = {name: development[name] for name in ("checkpointer", "store")}
    path = folder / "langgraph.json"
    path.write_text(json.dumps({**shipped, **persistence}))
    return path


def guarded_server(folder: Path, model_url: str, **environment: str) -> DevServer:
    """Return a server that lets nobody in without a token of `token_of`."""
    variables = {"OPENAI_BASE_URL": model_url, "OPENAI_API_KEY": "stub", "PALIMPSEST_AUTH_SECRET": SECRET}
    return DevServer(folder, config=production_config(folder), environment={**variables, **environment})


def headers_of(user: str, **claims: Any) -> dict[str, str]:
    """Return the header that proves who calls."""
    return {"Authorization": f"Bearer {token_of(user, **claims)}"}


def sdk(server: DevServer, user: str, **claims: Any) -> SyncLangGraphClient:
    """Return an SDK client on behalf of a user."""
    return get_sync_client(url=server.url, headers=headers_of(user, **claims))


def api(server: DevServer, user: str) -> httpx.Client:
    """Return a client of the memory API on behalf of a user."""
    return httpx.Client(base_url=f"{server.url}/memory", headers=headers_of(user), timeout=60)
