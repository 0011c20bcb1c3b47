"""`palimpsest doctor`: what is wrong with a set-up, and what to do about it."""

import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import httpx
import typer

from graphs.cli.asking import ENV_FILE, AsJson, Token, Url, Where, client_settings, open_memory
from graphs.cli.checks import Finding, Machine, examine
from graphs.cli.client import THIS_MACHINE, connect
from graphs.cli.dev import CONFIG_HELP, server_file
from graphs.cli.output import Output, counted
from graphs.cli.shell import Json, Refused, Shell
from graphs.settings import environment

_SERVER_SECONDS = 5.0
_MARKS = {
    "ok": ("ok", "green"),
    "none": ("none", ""),
    "warning": ("warning", "yellow"),
    "failed": ("FAILED", "bold red"),
}


def doctor(
    ctx: typer.Context,
    config: Annotated[Path | None, typer.Option("--config", "-c", help=CONFIG_HELP)] = None,
    no_ask: Annotated[bool, typer.Option("--no-ask", help="Do not ask the model for a word, only load it.")] = False,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Look for what is wrong here: versions, configuration, model, tokenizer, embedder, files, disk, server.

    It changes nothing. The model is asked for one word. Exit code 1 if something does not work.
    """
    shell = ctx.find_object(Shell) or Shell()
    shell.as_json = as_json
    out = Output(as_json)
    environ = environment(ENV_FILE, shell.environ)
    found: list[Finding] = []

    # Each is shown as soon as it is known: the model may think for seconds.
    def told(findings: Iterator[Finding]) -> None:
        for finding in findings:
            found.append(finding)
            if not as_json:
                _show(out, finding)

    told(examine(environ, server_file(config), Machine(), asks=not no_ask))
    # Files are opened as the variables say, which then have to be in order.
    can_open = not any(each.check == "configuration" and each.state == "failed" for each in found)
    told(iter(asyncio.run(_running(shell, Where(url=url, token=token), can_open_files=can_open))))
    failed = sum(1 for each in found if each.state == "failed")
    out.answer({"ok": not failed, "findings": [asdict(each) for each in found]}, lambda: None)
    if failed:
        if not as_json:
            out.say(f"\n{counted(failed, 'thing')} to mend.")
        raise typer.Exit(1)


async def _running(shell: Shell, where: Where, *, can_open_files: bool) -> list[Finding]:
    """Look at the server that would be asked, and at what waits in the memory that can be reached."""
    url = where.url or client_settings(shell).url
    if not url:
        none = Finding("server", "none", "none of this folder runs: `palimpsest dev` starts one")
        return [none, *(await _waiting(shell, Where(local=True)) if can_open_files else [])]
    try:
        async with connect(url, "", shell.transport) as http:
            (await http.get("/ok", timeout=_SERVER_SECONDS)).raise_for_status()
    except (httpx.ConnectError, httpx.ConnectTimeout):
        is_here = httpx.URL(url).host in THIS_MACHINE
        free = Finding("server", "none", f"none runs at {url}: `palimpsest dev` may start there")
        away = Finding("server", "failed", f"no server answers at {url}", "start it, or name another with --url")
        return [free if is_here else away, *(await _waiting(shell, Where(local=True)) if can_open_files else [])]
    except ValueError as error:
        return [Finding("server", "failed", str(error), "change --url or PALIMPSEST_URL")]
    except httpx.HTTPError as error:
        fix = "stop it, or start with `palimpsest dev --port 2025` and ask with --url http://127.0.0.1:2025"
        return [Finding("server", "warning", f"another program answers at {url} ({type(error).__name__})", fix)]
    return await _waiting(shell, where)


async def _waiting(shell: Shell, where: Where) -> list[Finding]:
    """Look at what memory itself reports: what failed for good, and why it may be off."""
    try:
        async with open_memory(shell, where) as memory:
            reported = _reported(await memory.get("/overview"), " --local" if where.local else "")
    except Refused as refused:
        # Without files there is nothing to look at; `check_files` has said so.
        return [] if where.local else [Finding("server", "failed", str(refused), "see above")]
    server = [] if where.local else [Finding("server", "ok", f"{memory.place} answers")]
    return server + reported


def _reported(there: Json, place: str) -> list[Finding]:
    """Return what an overview tells, with the commands that mend it in that place."""
    findings = []
    if there["without_memory"]:
        said = f"turns go on without memory: {there['without_memory']}"
        findings.append(Finding("memory", "warning", said, "PALIMPSEST_MEMORY=true in .env switches it on"))
    if there["dead"]:
        said = f"{counted(there['dead'], 'update')} failed for good"
        findings.append(Finding("memory", "warning", said, f"`palimpsest pending list{place}`, then retry or discard"))
    if (budget := there["budget"]) and budget["used_up"]:
        said = f"the budget of the day is used up ({budget['calls']} calls)"
        fix = f"it goes on {budget['until'][:16]} UTC; PALIMPSEST_BUDGET_CALLS sets it"
        findings.append(Finding("memory", "warning", said, fix))
    if there["quarantined"]:
        said = f"{counted(there['quarantined'], 'fact')} in quarantine"
        fix = f"`palimpsest facts list --status quarantined{place}`, then release or delete"
        findings.append(Finding("memory", "warning", said, fix))
    said = f"{counted(there['facts'], 'fact')}, {counted(there['pending'], 'update')} to be learned"
    return findings or [Finding("memory", "ok", said)]


def _show(out: Output, finding: Finding) -> None:
    mark, style = _MARKS[finding.state]
    out.say(f"{mark:<8} {finding.check:<14} {finding.said}", style=style if finding.state != "ok" else "")
    if finding.fix:
        out.say(f"{'':<8} {'':<14} → {finding.fix}")
