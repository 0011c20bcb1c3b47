"""Ports for the servers of tests, which run beside each other."""

import random
import socket
from contextlib import suppress

# Below those that Linux gives to who asks for any (32768 and more): of these, another test's model or client would have
# taken one before the server that it was meant for has started, or while it is stopped.
_PORTS = range(20_000, 32_000)
_chance = random.SystemRandom()  # as workers of one run may share a seed


def free_port() -> int:
    """Return a port on loopback where nobody listens."""
    while True:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", _chance.choice(_PORTS)))
            return int(probe.getsockname()[1])
