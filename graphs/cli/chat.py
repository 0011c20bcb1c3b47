"""`palimpsest chat`: a conversation in a terminal, or in a pipe."""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphs.cli.asking import AsAgent, AsJson, Token, Url, open_memory
from graphs.cli.shell import Json, Output, Refused, Shell, counted, plain

if TYPE_CHECKING:
    import asyncio

    from graphs.cli.client import MemoryClient

_SILENT_SECONDS = 600.0  # a model may think for minutes
_POLL_SECONDS = 1.0
_MODES = ("normal", "read_only", "incognito")
_MODE = "memory_mode"

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
    import asyncio

    shell = ctx.find_object(Shell) or Shell()
    shell.as_json = as_json
    chosen = mode.replace("-", "_").lower()
    if chosen and chosen not in _MODES:
        raise typer.BadParameter(f"--mode must be one of {', '.join(_MODES)}, not {mode!r}")
    # One loop for the whole conversation; Ctrl-C cancels what it runs at the moment.
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        opened = open_memory(shell, url=url, token=token, agent=agent)
        memory = runner.run(stack.enter_async_context(opened))
        try:
            talk = _Talk(Output(as_json), memory, assistant, is_typed=not said and sys.stdin.isatty())
            runner.run(talk.begin(thread, chosen))
            for text in said or talk.typed():
                # Python reads bytes that are no UTF-8 as what no JSON can hold.
                talk.turn(runner, text.encode(errors="replace").decode())
            if wait is not None:
                runner.run(talk.settle(wait))
            runner.run(talk.tell_what_was_learned())
        finally:
            runner.run(stack.aclose())


class _Talk:
    """One thread of a server, and who talks in it.

    Args:
        out: Where it is shown.
        memory: Knows the server, and tells what was learned.
        assistant: Who answers.
        is_typed: Whether a person types.
    """

    def __init__(self, out: Output, memory: "MemoryClient", assistant: str, *, is_typed: bool) -> None:
        self.out, self.memory, self.assistant, self.is_typed = out, memory, assistant, is_typed
        self.context = {"agent_name": memory.agent} if memory.agent != "default" else {}
        self.thread_id = self.told_until = ""

    async def begin(self, thread: str, mode: str) -> None:
        """Go on with a thread, or begin one, which keeps its mode; in one that exists it holds for these turns."""
        given = {_MODE: mode} if mode else {}
        self.context |= given if thread else {}
        with self.memory.explained():
            asked = ("GET", f"/threads/{thread}", None) if thread else ("POST", "/threads", {"metadata": given})
            answer = await self.memory.http.request(asked[0], asked[1], json=asked[2])
            self.memory.check(answer)
            self.thread_id = answer.json()["thread_id"]
        await self._receipts()
        self._aside(f"thread {self.thread_id}" + (f" ({mode})" if mode else ""))
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

    def turn(self, runner: "asyncio.Runner", text: str) -> None:
        """Have one turn; what fails ends a pipe, and is only said to a person."""
        try:
            if self.is_typed:  # in a pipe nothing passes between two turns: the end tells it all
                runner.run(self.tell_what_was_learned())
            runner.run(self._say(text))
        except KeyboardInterrupt:
            if not self.is_typed:
                raise
            typer.echo("\nThe turn is ended; the conversation goes on.", err=True)
        except Refused as refused:
            if not self.is_typed:
                raise
            typer.echo(f"Error: {refused}", err=True)

    async def _say(self, text: str) -> None:
        """Say one thing, and show the answer piece by piece, then what memory did.

        When it is cancelled, the server ends the run; what was said stays in the thread.
        """
        events: dict[str, Json] = {}
        state: Json = {}
        answer = spoken = ""
        async for event, data in self._run(text):
            if event == "error":
                why = data.get("message") or data.get("error") if isinstance(data, dict) else data
                raise Refused(f"the turn failed: {why}")
            if event == "values":
                state = data
            elif event == "custom" and isinstance(data, dict):
                events[str(data.get("name"))] = data.get("payload")
            elif words := _words(event, data):
                # With tools, the model speaks more than once.
                gap = "\n" if answer and data[0].get("id") != spoken else ""
                spoken = data[0].get("id")
                answer += gap + words
                self._piece(gap + words)
        if not answer and state.get("messages"):  # of a model that streams nothing
            answer = _text(state["messages"][-1])
            self._piece(answer)
        receipt = (state.get("memory") or {}).get("receipt") or {}
        without = receipt.get("without_memory") or None
        if self.out.as_json:
            turn = {"thread_id": self.thread_id, "said": text, "answer": answer}
            typer.echo(json.dumps({**turn, "events": events, "without_memory": without}, ensure_ascii=False))
            return
        typer.echo()
        if without:
            self._aside(f"without memory: {without}")
        for line in _reported(events):
            self._aside(line)

    async def _run(self, text: str) -> AsyncIterator[tuple[str, Json]]:
        """Have the server run the turn, and yield the parts of its stream, each after its name."""
        run = {
            "assistant_id": self.assistant,
            "input": {"messages": [{"role": "user", "content": text}]},
            "stream_mode": ["values", "messages-tuple", "custom"],
            "on_disconnect": "cancel",
            **({"context": self.context} if self.context else {}),
        }
        path, http = f"/threads/{self.thread_id}/runs/stream", self.memory.http
        with self.memory.explained():
            async with http.stream("POST", path, json=run, timeout=_SILENT_SECONDS) as answer:
                if answer.is_error:
                    await answer.aread()
                self.memory.check(answer)
                event, rest = "", b""
                async for piece in answer.aiter_bytes():  # not lines of text: what ends one in Unicode stands in JSON
                    *lines, rest = (rest + piece).split(b"\n")
                    for name, _, value in (line.strip().partition(b": ") for line in lines):
                        if name == b"event":
                            event = value.decode()
                        elif name == b"data":
                            yield event, json.loads(value)

    async def tell_what_was_learned(self) -> None:
        """Say which facts were learned from this thread since the last time, as they are now."""
        for fact_id in [each for receipt in await self._receipts() for each in receipt["created"]]:
            with suppress(Refused):  # it may be gone again
                fact = await self.memory.get(f"/facts/{fact_id}")
                back = "`palimpsest facts undo` takes the last change back"
                self._aside(f"learned: {fact['content']} ({fact_id}; {back})")

    async def _receipts(self) -> list[Json]:
        """Return the receipts of this thread since the last time."""
        done = (await self.memory.get("/receipts", since=self.told_until))["receipts"]
        mine = [receipt for receipt in done if receipt["thread_id"] == self.thread_id]
        self.told_until = str(mine[-1]["time"]) if mine else self.told_until
        return mine

    async def settle(self, seconds: float) -> None:
        """Wait until all that was said is learned.

        Raises:
            Refused: If that fails, or takes longer.
        """
        import asyncio

        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while updates := (await self.memory.get("/updates", thread=self.thread_id))["updates"]:
                    if dead := [each for each in updates if each["state"] == "dead"]:
                        raise Refused(
                            f"an update failed for good ({dead[0]['error']}): `palimpsest pending list --state dead`"
                        )
                    await asyncio.sleep(_POLL_SECONDS)
                return
        raise Refused(f"not all was learned within {seconds:.0f} s: `palimpsest pending list` shows what waits")

    def _piece(self, words: str) -> None:
        if not self.out.as_json:
            typer.echo(plain(words), nl=False)

    def _aside(self, line: str) -> None:
        """Print what is no part of the answers."""
        if self.is_typed:
            self.out.say(f"  {line}", dim=True)
        else:
            self.out.note(line)


def _words(event: str, data: Any) -> str:
    """Return the words of the answer in a part of the stream."""
    if not event.startswith("messages") or not isinstance(data, list):
        return ""
    message, metadata = data
    is_answer = metadata.get("langgraph_node") == "call_model" and str(message.get("type")).startswith("AI")
    return _text(message) if is_answer else ""


def _text(message: dict[str, Any]) -> str:
    content = message.get("content", "")
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content if isinstance(block, dict))


def _reported(events: dict[str, Json]) -> Iterator[str]:
    """Yield, a line each, what memory reported of a turn."""
    if summarized := events.get("memory.summarized"):
        yield (
            f"summarized {counted(summarized['messages'], 'message')}: {summarized['tokens_before']} tokens are "
            f"{summarized['tokens_after']} now"
        )
    if injected := events.get("memory.injected"):
        tokens = injected["tokens"]
        used = sum(count for part, count in tokens.items() if part != "budget")
        yield f"shown {counted(len(injected['facts']), 'fact')}; {used} of {tokens['budget']} tokens"
    if queued := events.get("memory.queued"):
        from datetime import datetime

        due = datetime.fromisoformat(queued["due"]).astimezone().strftime("%H:%M:%S")
        yield f"written down; read once it is quiet, at {due} at the latest"
