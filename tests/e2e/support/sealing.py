"""An encryption of the server's own rows, as a deployment names it in `langgraph.json`: only its shape is real."""

import base64
import json
from typing import Any

from langgraph_sdk import Encryption, EncryptionContext

encryption = Encryption()
_SEALED = "sealed:"
# The server itself looks for these.
_IN_THE_CLEAR = frozenset(
    {"assistant_id", "created_by", "graph_id", "langgraph_auth_user_id", "owner", "run_id", "thread_id"}
)


@encryption.encrypt.blob
async def seal_bytes(_: EncryptionContext, blob: bytes) -> bytes:
    """Seal a checkpoint's bytes."""
    return base64.b85encode(blob)


@encryption.decrypt.blob
async def open_bytes(_: EncryptionContext, blob: bytes) -> bytes:
    """Open a checkpoint's bytes."""
    return base64.b85decode(blob)


@encryption.encrypt.json
async def seal_values(_: EncryptionContext, data: dict[str, Any]) -> dict[str, Any]:
    """Seal the values of a row; its keys stay."""
    return {
        name: value if name in _IN_THE_CLEAR else _SEALED + base64.b85encode(json.dumps(value).encode()).decode()
        for name, value in data.items()
    }


@encryption.decrypt.json
async def open_values(_: EncryptionContext, data: dict[str, Any]) -> dict[str, Any]:
    """Open what was sealed, and leave the rest."""
    return {
        name: json.loads(base64.b85decode(value.removeprefix(_SEALED)))
        if isinstance(value, str) and value.startswith(_SEALED)
        else value
        for name, value in data.items()
    }
