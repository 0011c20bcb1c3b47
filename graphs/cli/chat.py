"""`palimpsest chat`: a conversation in a terminal, or in a pipe."""

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import httpx
import typer

from graphs.cli.asking import AsAgent, AsJson, Token, Url, Where, open_memory
from graphs.cli.output import Output, counted, plain
from graphs.cli.shell import Json, Refused, Shell

if TYPE_CHECKING:
    from graphs.cli.thread_client import Answered, ThreadClient
    from memory.turn import MemoryMode

_SILENT_SECONDS = 600.0

Said = Annotated[
    list[str] | None, typer.Argument(metavar="TEXT", help="What to say, a turn each; else it is typed or piped in.")
]
Thread = Annotated[str, typer.Option(metavar="THREAD", help="Go on with this thread.")]
Mode = Annotated[
    str,
    typer.Option(
        metavar="MODE", help="normal; read_only: nothing is learned; incognito: nor is memory used.", show_default=False
    ),
]
Assistant = Annotated[str, typer.Option(metavar="NAME", help="Who answers: a graph's name, or an assistant's id.")]
Wait = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", min=0.001, help="In the end, wait so long until what was said is learned."),
]


def chat(
    ctx: typer.Context,
    said: Said = None,
    thread: Thread = "",
    mode: Mode = "",
    assistant: Assistant = "chat",
    wait: Wait = None,
    url: Url = None,
    token: Token = None,
    agent: AsAgent = "default",
    as_json: AsJson = False,
) -> None:
    """Talk to the server, and see what memory does.

    Ctrl-C ends a turn, not the conversation. In a pipe every line is a turn, answers go to standard output and the rest
    to standard error; with --json each turn is one line of JSON.
    """
    # Only here, as most other commands do not need the SDK.
    from langgraph_sdk.client import LangGraphClient

    from graphs.cli.thread_client import ThreadClient

    shell = ctx.find_object(Shell) or Shell()
    shell.as_json = as_json
    where = Where(url=url, token=token, agent=agent, as_json=as_json)
    chosen = _mode(mode)
    talk = _Talk(Output(as_json), is_typed=not said and sys.stdin.isatty())
    # One loop for the whole conversation; Ctrl-C cancels what it runs at the moment.
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        memory = runner.run(stack.enter_async_context(open_memory(shell, where)))
        try:
            context = {"agent_name": agent} if agent != "default" else {}
            conversation = ThreadClient(LangGraphClient(_patient(memory.http)), memory, assistant, context)
            runner.run(conversation.begin(thread, chosen))
            talk.begins(conversation, chosen)
            for text in said or talk.typed():
                # Python reads bytes that are no UTF-8 as what no JSON can hold.
                talk.turn(runner, conversation, text.encode(errors="replace").decode())
            if wait is not None:
                runner.run(conversation.settled(wait))
            talk.tell(runner.run(conversation.learned()))
        finally:
            runner.run(stack.aclose())


def _mode(given: str) -> "MemoryMode | None":
    """Return the mode of that name, however it is spelt; `None` for none."""
    from memory.turn import MODES  # with LangGraph, which other commands do not wait for

    for mode in MODES:
        if given.replace("-", "_").lower() == mode:
            return mode
    if given:
        raise typer.BadParameter(f"--mode must be one of {', '.join(MODES)}, not {given!r}")
    return None


def _patient(http: httpx.AsyncClient) -> httpx.AsyncClient:
    """Return the client, waiting for a model that may think for minutes."""
    http.timeout = httpx.Timeout(_SILENT_SECONDS, connect=5.0)
    return http


class _Talk:
    """What a person types, and sees."""

    def __init__(self, out: Output, *, is_typed: bool) -> None:
        self.out = out
        self.is_typed = is_typed

    def begins(self, conversation: "ThreadClient", mode: "MemoryMode | None") -> None:
        self._aside(f"thread {conversation.thread_id}" + (f" ({mode})" if mode else ""))
        if self.is_typed:
            with suppress(ImportError):
                import readline  # noqa: F401 - editing and history of what is typed, where the system has it
            self._aside("Ctrl-C ends a turn, Ctrl-D the conversation.")

    def typed(self) -> Iterator[str]:
        """Yield what is typed or piped in, without empty lines."""
        if not self.is_typed:
            yield from (line.strip() for line in sys.stdin if line.strip())
            return
        while True:
            try:
                text = input("\nyou> ").strip()
            except KeyboardInterrupt:
                typer.echo("\nCtrl-D ends the conversation.", err=True)
                continue
            except EOFError:
                typer.echo()
                return
            if text:
                yield text

    def turn(self, runner: asyncio.Runner, conversation: "ThreadClient", text: str) -> None:
        """Have one turn; what fails ends a pipe, and is only said to a person."""
        try:
            # In a pipe nothing passes between two turns: the end tells it all.
            learned = runner.run(conversation.learned()) if self.is_typed else []
            self.tell(learned)
            answered = runner.run(conversation.say(text, self._piece))
            self._close(conversation, text, answered)
        except KeyboardInterrupt:
            if not self.is_typed:
                raise
            typer.echo("\nThe turn is ended; the conversation goes on.", err=True)
        except Refused as refused:
            if not self.is_typed:
                raise
            typer.echo(f"Error: {refused}", err=True)

    def _piece(self, words: str) -> None:
        if not self.out.as_json:
            typer.echo(plain(words), nl=False)

    def _close(self, conversation: "ThreadClient", text: str, answered: "Answered") -> None:
        if self.out.as_json:
            turn = {
                "thread_id": conversation.thread_id, "said": text, "answer": answered.answer,
                "events": dict(answered.events), "without_memory": answered.without_memory or None,
            }  # fmt: skip
            typer.echo(json.dumps(turn, ensure_ascii=False))
            return
        typer.echo()
        for line in told(answered):
            self._aside(line)

    def tell(self, learned: list[Json]) -> None:
        """Say what was learned, and how it is taken back."""
        for fact in learned:
            back = "`palimpsest facts undo` takes the last change back"
            self._aside(f"learned: {fact['content']} ({fact['id']}; {back})")

    def _aside(self, line: str) -> None:
        """Print what is no part of the answers."""
        if self.is_typed:
            self.out.say(f"  {line}", style="dim")
        else:
            self.out.note(line)


def told(answered: "Answered") -> list[str]:
    """Return, a line each, what memory reported of a turn."""
    lines = []
    if answered.without_memory:
        lines.append(f"without memory: {answered.without_memory}")
    if summarized := answered.events.get("memory.summarized"):
        lines.append(
            f"summarized {counted(summarized['messages'], 'message')}: {summarized['tokens_before']} tokens are "
            f"{summarized['tokens_after']} now"
        )
    if injected := answered.events.get("memory.injected"):
        tokens = injected["tokens"]
        used = sum(count for part, count in tokens.items() if part != "budget")
        lines.append(f"shown {counted(len(injected['facts']), 'fact')}; {used} of {tokens['budget']} tokens")
    if queued := answered.events.get("memory.queued"):
        due = datetime.fromisoformat(queued["due"]).astimezone().strftime("%H:%M:%S")
        lines.append(f"written down; read once it is quiet, at {due} at the latest")
    return lines
