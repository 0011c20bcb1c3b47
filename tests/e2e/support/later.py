"""A deployment whose clock is 40 days ahead."""

import time

from graphs.process.deployment import Deployment
from graphs.process.models import load_chat_model
from graphs.process.service import MemoryService
from graphs.settings import Settings
from tests.limited import limited

SECONDS = 40 * 86_400.0


def make_service(settings: Settings) -> MemoryService:
    """Return the service of the settings, later."""
    settings = limited(settings)
    return MemoryService(
        settings,
        lambda name, purpose: load_chat_model(name, settings, purpose=purpose),
        clock=lambda: time.time() + SECONDS,
    )


deployment = Deployment(make_service=make_service)
