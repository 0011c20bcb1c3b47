"""How long turns of a test wait for memory: as long as a busy machine takes, except where a test is about it."""

import time

from graphs.process.service import MemoryService
from memory.config import MemoryConfig

PATIENCE = 120.0
_USUAL = MemoryConfig()


def let_turns_wait(service: MemoryService, *, read: float = PATIENCE, write: float = PATIENCE) -> None:
    """Give the turns that begin from now on so many seconds for each reading, and for each writing."""
    service.stores.seconds |= {"read": read, "write": write}


def let_pauses_pass(service: MemoryService) -> None:
    """Let the pauses of all stores be over."""
    pauses = max((until for away in service.stores._away.values() for until, _ in away.values()), default=0.0)
    service.stores.clock = lambda: max(pauses, time.monotonic())


def be_patient(service: MemoryService) -> None:
    """Let turns wait where the test chose no deadline of its own.

    The usual ones are two seconds: a process that gets no core meanwhile goes on without memory.
    """
    read, write = service.settings.memory.read_timeout_seconds, service.settings.memory.write_timeout_seconds
    let_turns_wait(
        service,
        read=PATIENCE if read == _USUAL.read_timeout_seconds else read,
        write=PATIENCE if write == _USUAL.write_timeout_seconds else write,
    )
