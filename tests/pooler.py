"""A real PgBouncer before a Postgres of the tests, lending a session for one transaction; Debian packages it."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.postgres import Postgres, unprivileged

SESSIONS = 6
_START_SECONDS = 60.0
_PLACES = (os.defpath, "/usr/sbin", os.environ.get("PATH", ""))  # noqa: TID251 - where the machine has its programs
_SETTINGS = """
[databases]
* = host={database} user=postgres
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 400
"""


@contextmanager
def running_pooler(postgres: Postgres) -> Iterator[str]:
    """Start it; yield what takes the place of `postgres.uri`, for databases of `Postgres.database`.

    It has `SESSIONS` sessions for each database. The test is skipped where it is not installed.
    """
    binary = shutil.which("pgbouncer", path=os.pathsep.join(_PLACES))
    if binary is None:
        pytest.skip("needs PgBouncer (Debian: apt install pgbouncer)")
    # As for Postgres: a short path, that `nobody` may reach.
    with tempfile.TemporaryDirectory(prefix="palimpsest-", ignore_cleanup_errors=True) as folder:
        settings = Path(folder) / "pgbouncer.ini"
        database = postgres.uri.rpartition("host=")[2]
        settings.write_text(_SETTINGS.format(database=database, folder=folder, sessions=SESSIONS))
        who = unprivileged()
        if who:
            shutil.chown(folder, who["user"], who["group"])
        with (Path(folder) / "log").open("wb") as log:
            command = [binary, "--quiet", str(settings)]
            pooler = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env={}, **who)
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not (Path(folder) / ".s.PGSQL.6432").exists():
                assert pooler.poll() is None, (Path(folder) / "log").read_text()
                assert time.monotonic() < deadline, (Path(folder) / "log").read_text()
                time.sleep(0.05)
            yield postgres.uri.replace(f"host={database}", f"host={folder}&port=6432")
        finally:
            pooler.terminate()
            pooler.wait()
