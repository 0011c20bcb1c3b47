"""Limits that no variable sets, for servers of tests: `tests/limited.py` is the deployment that reads them."""

import json

LIMITS = "LIMITS_OF_TEST"


def limits(**memory: float) -> dict[str, str]:
    """Return the variables of a server with these values of `MemoryConfig`.

    Where a machine is slow, a turn is to wait for memory: that it goes on without is the test of those who say so.
    """
    chosen = {"read_timeout_seconds": 60, "write_timeout_seconds": 60, **memory}
    return {"PALIMPSEST_DEPLOYMENT": "tests.limited:deployment", LIMITS: json.dumps(chosen)}
