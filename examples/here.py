"""Where the server of this folder listens: `make dev` leaves its address here. PALIMPSEST_URL names another server."""

import json
import os
import sys
from pathlib import Path

from dotenv import dotenv_values  # comes with Palimpsest


def server_url() -> str:
    """Return the URL of the server; the program ends where none runs."""
    given = {**dotenv_values(".env"), **os.environ}
    if url := given.get("PALIMPSEST_URL"):
        return url
    try:
        server = json.loads(Path(given.get("PALIMPSEST_DATA_DIR") or ".palimpsest", "server.json").read_text())
        os.kill(server["pid"], 0)  # fails where that process is gone
        return str(server["url"])
    except (OSError, ValueError, LookupError, TypeError):
        sys.exit("No server of this folder runs: start one with `make dev`, or set PALIMPSEST_URL.")
