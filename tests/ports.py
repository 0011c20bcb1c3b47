"""Ports for the servers of tests, which run beside each other."""

import random
import socket

# Below those that Linux gives to who asks for any (32768 and more): of these, another test's model or client would have
# taken one before the server that it was meant for has started, or while it is stopped.
_PORTS = range(20_000, 32_000)
_chance = random.SystemRandom()  # as workers of one run may share a seed
_kept: list[int] = []  # descriptors: a socket that is open when its worker ends would warn of it in the output


def free_port() -> int:
    """Return a port on loopback where nobody listens, and which nobody else is given while this process lives.

    A server begins to listen seconds after its port is chosen, and stops in between: until then its port looks free to
    the other workers of a run. So the number is taken for datagrams, which no server here wants: that keeps it in all
    processes, and ends with this one, however it ends.
    """
    while True:
        port = _chance.choice(_PORTS)
        keeper = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            keeper.bind(("127.0.0.1", port))
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            keeper.close()
        else:
            _kept.append(keeper.detach())
            return port
