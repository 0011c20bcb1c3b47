"""A deployment with the limits that `tests/limits.py` tells a server of tests."""

import json
import os
from dataclasses import replace

from palimpsest import Deployment, MemoryService, Settings, configured_service
from tests.limits import LIMITS


def limited(settings: Settings) -> Settings:
    """Return the settings with what the variable says.

    Who waits for a fact asks for it again and again: within half a minute more often than one user may by default.
    """
    memory = json.loads(os.environ.get(LIMITS, "{}"))  # noqa: TID251 - a variable of the tests
    return replace(settings, memory=replace(settings.memory, **memory), requests_per_minute=100_000)


def make_service(settings: Settings) -> MemoryService:
    """Return the service of the limited settings."""
    return configured_service(limited(settings))


deployment = Deployment(make_service=make_service)
