"""Several server processes behind one address, as in a cluster: requests go to them in turn.

A process that dies is started again. Signals reach all of them, as they are in one process group.
"""

import argparse
import asyncio
import itertools
import os
import re
import signal
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tests.ports import free_port

HEAD_BYTES = 1 << 20
TRIES_SECONDS = 0.1


class Server:
    """One process, and where it listens; it is started again for as long as the whole is not stopped.

    Attributes:
        port: Where it listens.
        told: Tells tests whom to kill, and where to ask this one: its process id and its port.
    """

    def __init__(self, number: int, command: list[str]) -> None:
        self.port = free_port()
        self.told = Path(f"server-{number}")
        self._command = [*command, "--port", str(self.port)]

    async def run(self, stopping: asyncio.Event) -> bool:
        """Return whether it ran until it was stopped; if it ends otherwise than killed, its log says why."""
        while not stopping.is_set():
            process = await asyncio.create_subprocess_exec(*self._command)
            self.told.write_text(f"{process.pid} {self.port}")
            code = await process.wait()
            self.told.unlink()
            if code >= 0 and not stopping.is_set():
                os.killpg(os.getpgrp(), signal.SIGTERM)
                return False
        return True

    async def answers(self) -> None:
        """Return once it answers."""
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                with closing(writer):
                    writer.write(b"GET /ok HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                    if b" 200 " in await reader.readline():
                        return
            await asyncio.sleep(TRIES_SECONDS)


class Balancer:
    """Hands each request to the next process that takes it."""

    def __init__(self, servers: list[Server]) -> None:
        self._turns = itertools.cycle(servers)
        self._count = len(servers)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError), closing(writer):
            head = await reader.readuntil(b"\r\n\r\n")
            behind, before = await self._next()
            with closing(before):
                before.write(alone(head))
                # Whichever side ends first: an answer ends its connection, and a client that leaves must be seen to.
                both = {asyncio.create_task(copy(reader, before)), asyncio.create_task(copy(behind, writer))}
                _, other = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                for task in other:
                    task.cancel()

    async def _next(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        for server in itertools.islice(self._turns, self._count):
            with suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", server.port)
        raise ConnectionError("no process takes requests")


def alone(head: bytes) -> bytes:
    """Return a request's head so that its answer ends the connection: the next request goes to the next process."""
    first, _, rest = head.partition(b"\r\n")
    return first + b"\r\nConnection: close\r\n" + re.sub(rb"(?im)^connection:[^\r\n]*\r\n", b"", rest)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hand on what comes until there is no more."""
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


async def supervise(host: str, port: int, servers: list[Server]) -> bool:
    """Start the processes, then take requests; return once a signal said to stop and all have ended.

    Returns:
        Whether all ran until then.
    """
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    running = asyncio.gather(*(server.run(stopping) for server in servers))
    started = asyncio.gather(*(server.answers() for server in servers))
    told = asyncio.create_task(stopping.wait())
    first: set[asyncio.Future[Any]] = {started, told}
    await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
    if not stopping.is_set():
        async with await asyncio.start_server(Balancer(servers), host, port, limit=HEAD_BYTES):
            await told
    started.cancel()
    return all(await running)


def main() -> None:
    """Read who asks for what."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("--processes", required=True, type=int)
    parser.add_argument("--n-jobs-per-worker", required=True)
    told = parser.parse_args()
    command = [sys.executable, "-m", "tests.e2e.langhost.serve", "serve", "--host", "127.0.0.1"]
    command += ["--config", told.config, "--n-jobs-per-worker", told.n_jobs_per_worker]
    servers = [Server(number, command) for number in range(told.processes)]
    sys.exit(not asyncio.run(supervise(told.host, told.port, servers)))


if __name__ == "__main__":
    main()
