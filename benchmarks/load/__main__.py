"""Drive servers with many users at once, through the SDK, and write down what it takes.

    python -m benchmarks.load [--users 20] [--turns 5] [--processes 1 --processes 3] [--write measured/load.md]
    python -m benchmarks.load --server http://… --server http://… --secret … --model-port 9999 [--database postgres://…]

The first starts servers of its own with the production configuration: so many processes of `langgraph dev` over one
Postgres, which it starts too, or without `--processes` one over SQLite files. A user talks to one of them all the time,
as each knows only the threads that were made there; what memory keeps is shared. The second drives servers that run
already, however many processes that share their database: they are started with
`OPENAI_BASE_URL=http://127.0.0.1:9999/v1`, any `OPENAI_API_KEY`, and the secret as `PALIMPSEST_AUTH_SECRET`;
`--model-only` serves the model until it is stopped, so that they can be started. Each line of the table is one run, in
which every user logs in and says so many things in one thread. locust (`make bench-load` installs it) plays the users.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.load.figures import LoadRun, Sample, load_table, pending_plot
from benchmarks.load.model import LoadModel
from benchmarks.load.simulation import Measured, Rules, simulation_table
from benchmarks.load.watching import Database, Postgres, SqliteFiles, Watch, updates_done
from benchmarks.measuring import keep, progress
from memory.config import MemoryConfig
from memory.context.tokens import shared_counter
from tests.e2e.guarded_server import guarded_server
from tests.limits import limits
from tests.postgres import running_postgres
from tests.stories.serving import SECRET

DEBOUNCE_SECONDS = 2
"""Quiet time before an update, of a server that is started here: the shipped 30 s would be longer than a run."""
SIMULATED = (10_000, 100_000, 1_000_000)
TURNS_A_DAY = 10.0
_LOCUSTFILE = Path(__file__).with_name("locustfile.py")
_LONGEST_DRAIN = 300.0


def main() -> int:
    """Measure and print; the exit code is 1 when a turn failed."""
    options = _options()
    shared_counter().tokenizer.warm_up()
    with LoadModel(options.latency, options.model_port) as model:
        if options.model_only:
            print(f"The model answers at {model.url} until Ctrl-C.", flush=True)
            _wait_for_ctrl_c()
            return 0
        runs = list(_runs(options, model))
    text = _conditions(options) + "\n\n" + load_table(runs)
    simulated = simulation_table(SIMULATED, TURNS_A_DAY, measured_by(runs, options.latency), Rules())
    print(text, simulated, sep="\n\n")
    if options.write:
        keep(options.write, f"{text}\n\n{simulated}")
        options.write.with_suffix(".svg").write_text(pending_plot(runs), "utf-8")
    return 1 if any(sample.error for run in runs for sample in run.samples) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--turns", type=int, default=5, help="of each user")
    parser.add_argument("--thinking", type=float, default=1.0, help="seconds between two turns of a user")
    parser.add_argument("--latency", type=float, default=0.3, help="seconds of each model call")
    parser.add_argument(
        "--processes", type=int, action="append", default=[], help="start so many servers over one Postgres; may repeat"
    )
    parser.add_argument(
        "--server", action="append", default=[], help="a server that runs already; more than one may be"
    )
    parser.add_argument("--secret", default=SECRET, help="with which these servers check tokens")
    parser.add_argument("--database", default="", help="their Postgres; without it nothing is said of bytes and depth")
    parser.add_argument("--model-port", type=int, default=0, help="where the fake model listens")
    parser.add_argument("--model-only", action="store_true", help="serve the model and drive nothing")
    parser.add_argument("--note", default="", help="what else there is to know, for the page")
    parser.add_argument("--write", type=Path)
    return parser.parse_args()


def _runs(options: argparse.Namespace, model: LoadModel) -> Iterator[LoadRun]:
    for processes in options.processes or [0]:
        with _servers(options, model, processes) as (urls, database):
            for memory in ("normal", "incognito"):
                model.reset()
                progress(f"{options.users} users, {options.turns} turns each, memory {memory}, {len(urls)} servers")
                yield _driven(options, memory, urls, model, database)


@contextmanager
def _servers(
    options: argparse.Namespace, model: LoadModel, processes: int
) -> Iterator[tuple[list[str], Database | None]]:
    """Yield where the servers listen, and where they keep what they remember; 0 processes are one over SQLite."""
    if options.server:
        yield options.server, Postgres(options.database) if options.database else None
        return
    variables = {
        "PALIMPSEST_DEBOUNCE_SECONDS": str(DEBOUNCE_SECONDS),
        # As shipped: servers of tests wait longer for memory.
        **limits(
            read_timeout_seconds=MemoryConfig().read_timeout_seconds,
            write_timeout_seconds=MemoryConfig().write_timeout_seconds,
        ),
    }
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-load-")))
        if not processes:
            server = stack.enter_context(guarded_server(folder, model.url, **variables))
            yield [server.url], SqliteFiles(server.data)
            return
        uri = stack.enter_context(running_postgres(required=True)).database()
        urls = []
        for number in range(processes):
            place = folder / str(number)
            place.mkdir()
            server = guarded_server(place, model.url, PALIMPSEST_DATABASE_URI=uri, **variables)
            urls.append(stack.enter_context(server).url)
        yield urls, Postgres(uri)


def _driven(
    options: argparse.Namespace, memory: str, urls: list[str], model: LoadModel, database: Database | None
) -> LoadRun:
    """Return what one run came to, once its updates are done."""
    before, done = (database.size() if database else None), updates_done(urls)
    with tempfile.TemporaryDirectory() as folder, Watch(database) as watch:
        samples = Path(folder) / "samples"
        samples.touch()
        _locust(options, memory, urls, samples)
        drained = watch.drained(_LONGEST_DRAIN) if memory == "normal" else None
        found = [Sample(*json.loads(line)) for line in samples.read_text("utf-8").splitlines()]
    first = min((sample.began for sample in found), default=0.0)
    after = database.size() if database else None
    grown = after.since(before) if after and before else None
    return LoadRun(
        servers=len(urls),
        memory=memory == "normal",
        users=options.users,
        samples=found,
        pending=[(at - first, depth) for at, depth in watch.depths if at >= first],
        drained=drained - first if drained else None,
        updates=updates_done(urls) - done,
        calls=dict(model.calls),
        tokens=dict(model.tokens),
        store_bytes=grown.store if grown else 0,
        checkpoint_bytes=grown.checkpoints if grown else 0,
        rows=grown.rows if grown else 0,
    )


def _locust(options: argparse.Namespace, memory: str, urls: list[str], samples: Path) -> None:
    """Play the users; all of them begin within a second or two."""
    command = [sys.executable, "-m", "locust", "--headless", "--locustfile", str(_LOCUSTFILE), "--only-summary"]
    command += ["--users", str(options.users), "--spawn-rate", str(max(1, options.users // 2))]
    command += ["--turns", str(options.turns), "--memory", memory, "--thinking", str(options.thinking)]
    command += ["--secret", options.secret, "--samples", str(samples), "--loglevel", "WARNING"]
    for url in urls:
        command += ["--server", url]
    # Failed turns are counted here, and are no failure of locust's.
    done = subprocess.run([*command, "--exit-code-on-error", "0"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"locust ended with {done.returncode}:\n{done.stderr}")


def _conditions(options: argparse.Namespace) -> str:
    cores, load = os.cpu_count(), os.getloadavg()[0]
    said = (
        f"{options.users} users with {options.turns} turns each and {options.thinking:g} s between them, a model that "
        f"takes {options.latency:g} s for each call. {cores} cores for servers, model, users and database together: "
        f"more servers share them, and answer no more than they give (load average {load:.1f} at the end)."
    )
    return f"{said} {options.note}".strip()


def measured_by(runs: list[LoadRun], latency: float) -> Measured:
    """Return what the simulation takes from the run with memory that answered most turns a second for each server."""
    best = max((run for run in runs if run.memory), key=lambda run: run.turns_a_second / run.servers)
    turns = max(1, best.turns)
    return Measured(
        turns_a_second=best.turns_a_second / best.servers,
        calls_a_turn=sum(best.calls.values()) / turns,
        tokens_a_turn=sum(best.tokens.values()) / turns,
        updates_a_turn=best.updates / turns,
        rows_a_turn=best.rows / turns,
        bytes_a_turn=best.store_bytes / turns,
        checkpoint_bytes_a_turn=best.checkpoint_bytes / turns,
        update_seconds=latency,
    )


def _wait_for_ctrl_c() -> None:
    try:
        while True:
            time.sleep(60)
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    sys.exit(main())
