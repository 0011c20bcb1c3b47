"""The learned judges of the door, read once from the file that `python -m tests.screening_training` writes. Pure."""

import json
from pathlib import Path
from typing import Final

from memory.core.judge import Judge, unpacked

FILE: Final = Path(__file__).with_suffix(".json")
_LEARNED: Final = json.loads(FILE.read_text("utf-8"))
DATA: Final[str] = _LEARNED["data"]  # the digest of the texts that they learned from
ORDERS: Final[Judge] = unpacked(_LEARNED["orders"])
SECRETS: Final[Judge] = unpacked(_LEARNED["secrets"])
