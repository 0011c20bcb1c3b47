"""`palimpsest chat`: a conversation in a terminal, or in a pipe."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from graphs.cli.shell import AGENT, JSON, TOKEN, URL, Json, Refused, Shell, as_json, counted, examples_of_use

if TYPE_CHECKING:
    from graphs.cli.client import MemoryClient

_POLL_SECONDS = 1.0
# Those of `memory.turn`, which a help does not wait for.
_MODES = ("normal", "read_only", "incognito")


@click.command(
    params=[
        click.Argument(["said"], metavar="[TEXT]...", nargs=-1),
        click.Option(["--thread"], help="Go on with this thread."),
        click.Option(
            ["--mode"], type=click.Choice(_MODES),
            help="read_only: nothing is learned; incognito: nor is memory used.",
        ),
        click.Option(["--assistant"], default="chat", help="Who answers: a graph's name, or an assistant's id."),
        click.Option(["--wait"], type=float, help="In the end, wait so many seconds until what was said is learned."),
        URL, TOKEN, AGENT, JSON,
    ],
    epilog=examples_of_use("chat", 'chat "My name is Ada." --wait 300', "chat --mode incognito"),
)  # fmt: skip
@click.pass_obj
def chat(
    shell: Shell,
    /,
    said: tuple[str, ...],
    thread: str | None,
    mode: str | None,
    assistant: str,
    wait: float | None,
    **where: Any,
) -> None:
    """Talk to the server, and see what memory does: each TEXT is a turn, else what is typed or piped in, a line each.

    Ctrl-C ends a turn, not the conversation. In a pipe answers go to standard output and the rest to standard error;
    with --json each turn is one line of JSON.
    """
    from graphs.cli.client import open_memory  # with httpx: a help does not wait for it

    is_typed = not said and sys.stdin.isatty()
    with open_memory(shell, **where) as memory:
        talk = _Talk(shell, memory, assistant)
        talk.begin(thread, mode)
        for text in said or (_typed() if is_typed else filter(None, map(str.strip, sys.stdin))):
            try:
                if is_typed:  # in a pipe nothing passes between two turns: the end tells it all
                    talk.tell_what_was_learned()
                # Python reads bytes that are no UTF-8 as what no JSON can hold.
                talk.turn(text.encode(errors="replace").decode())
            except (KeyboardInterrupt, Refused) as ended:
                if not is_typed:
                    raise
                why = f"Error: {ended}" if str(ended) else "\nThe turn is ended; the conversation goes on."
                click.echo(why, err=True)
        if wait is not None:
            talk.wait(wait)
        talk.tell_what_was_learned()


def _typed() -> Iterator[str]:
    """Yield what a person types, without empty lines, until they press Ctrl-D."""
    with suppress(ImportError):
        import readline  # noqa: F401 - editing and history of what is typed, where the system has it
    click.echo("Ctrl-C ends a turn, Ctrl-D the conversation.", err=True)
    while True:
        try:
            text = input("\nyou> ").strip()
        except KeyboardInterrupt:
            click.echo("\nCtrl-D ends the conversation.", err=True)
            continue
        except EOFError:
            click.echo()
            return
        if text:
            yield text


class _Talk:
    """One thread of a server, and who talks in it.

    Args:
        shell: Where it is shown.
        memory: Knows the server, and tells what was learned.
        assistant: Who answers.
    """

    def __init__(self, shell: Shell, memory: "MemoryClient", assistant: str) -> None:
        self.shell, self.memory, self.assistant = shell, memory, assistant
        self.context = {} if memory.agent == "default" else {"agent_name": memory.agent}
        self.thread_id = self.told_until = ""

    def begin(self, thread: str | None, mode: str | None) -> None:
        """Go on with a thread, or begin one, which keeps its mode; in one that exists it holds for these turns."""
        from graphs.cli.client import ServerAnswer  # with httpx: a help does not wait for it

        given = {"memory_mode": mode} if mode else {}
        if thread:
            self.context |= given
            asked = self.memory.open("GET", f"/threads/{thread}")
        else:
            asked = self.memory.open("POST", "/threads", json={"metadata": given})
        with asked as answer:
            self.thread_id = ServerAnswer(json.loads(answer.read()))["thread_id"]
        self._receipts()
        self.shell.note(f"thread {self.thread_id}" + (f" ({mode})" if mode else ""))

    def turn(self, text: str) -> None:
        """Say one thing, and show the answer piece by piece, then what memory did.

        Ctrl-C closes the stream, and the server ends the run; what was said stays in the thread.
        """
        events: dict[str, Json] = {}
        state: Json = {}
        answer = spoken = ""
        for event, data in self._run(text):
            if event == "error":
                why = data.get("message") or data.get("error") if isinstance(data, dict) else data
                raise Refused(f"the turn failed: {why}")
            if event == "values":
                state = data
            elif event == "custom" and isinstance(data, dict):
                events[str(data.get("name"))] = data.get("payload")
            elif event == "messages" and _is_answer(*data) and (words := _words_of(data[0])):
                # With tools, the model speaks more than once.
                words = "\n" + words if answer and data[0].get("id") != spoken else words
                spoken = data[0].get("id")
                answer += words
                self.shell.say(words, nl=False)
        if not answer and state.get("messages"):  # of a model that streams nothing
            answer = _words_of(state["messages"][-1])
            self.shell.say(answer, nl=False)
        without = ((state.get("memory") or {}).get("receipt") or {}).get("without_memory") or None
        if self.shell.as_json:
            turn = {"thread_id": self.thread_id, "said": text, "answer": answer}
            click.echo(as_json({**turn, "events": events, "without_memory": without}))
            return
        click.echo()
        if without:
            self.shell.note(f"  without memory: {without}")
        for line in _reported(events):
            self.shell.note(f"  {line}")

    def _run(self, text: str) -> Iterator[tuple[str, Json]]:
        """Have the server run the turn, and yield the parts of its stream, each after its name."""
        run = {
            "assistant_id": self.assistant,
            "input": {"messages": [{"role": "user", "content": text}]},
            "stream_mode": ["values", "messages-tuple", "custom"],
            "on_disconnect": "cancel",
            **({"context": self.context} if self.context else {}),
        }
        with self.memory.open("POST", f"/threads/{self.thread_id}/runs/stream", json=run) as answer:
            event, rest = "", b""
            for piece in answer.iter_bytes():  # not lines of text: what ends one in Unicode stands in JSON
                *lines, rest = (rest + piece).split(b"\n")
                for name, _, value in (line.strip().partition(b": ") for line in lines):
                    if name == b"event":
                        event = value.decode()
                    elif name == b"data":
                        yield event, json.loads(value)

    def tell_what_was_learned(self) -> None:
        """Say which facts were learned from this thread since the last time, as they are now."""
        undo = "`palimpsest facts undo` takes the last change back"
        for fact_id in [each for receipt in self._receipts() for each in receipt["created"]]:
            with suppress(Refused):  # it may be gone again
                self.shell.note(f"  learned: {self.memory.get(f'/facts/{fact_id}')['content']} ({fact_id}; {undo})")

    def _receipts(self) -> list[Json]:
        """Return the receipts of this thread since the last time."""
        done = self.memory.get("/receipts", since=self.told_until)["receipts"]
        mine = [receipt for receipt in done if receipt["thread_id"] == self.thread_id]
        self.told_until = mine[-1]["time"] if mine else self.told_until
        return mine

    def wait(self, seconds: float) -> None:
        """Wait until all that was said is learned; `Refused` if that fails, or takes longer."""
        until = time.monotonic() + seconds
        while updates := self.memory.get("/updates", thread=self.thread_id)["updates"]:
            if dead := [each["error"] for each in updates if each["state"] == "dead"]:
                raise Refused(f"an update failed for good ({dead[0]}): `palimpsest pending list --state dead`")
            if time.monotonic() > until:
                raise Refused(f"not all was learned within {seconds:g} s: `palimpsest pending list` shows what waits")
            time.sleep(min(_POLL_SECONDS, seconds))


def _is_answer(message: Json, metadata: Json) -> bool:
    """Say whether a part of the stream is one of the answer."""
    return metadata.get("langgraph_node") == "call_model" and str(message.get("type")).startswith("AI")


def _words_of(message: Json) -> str:
    content = message.get("content", "")
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content if isinstance(block, dict))


def _reported(events: dict[str, Json]) -> Iterator[str]:
    """Yield, a line each, what memory reported of a turn."""
    if cut := events.get("memory.summarized"):
        messages = counted(cut["messages"], "message")
        yield f"summarized {messages}: {cut['tokens_before']} tokens are {cut['tokens_after']} now"
    if injected := events.get("memory.injected"):
        budget = injected["tokens"]["budget"]
        used = sum(injected["tokens"].values()) - budget
        yield f"shown {counted(len(injected['facts']), 'fact')}; {used} of {budget} tokens"
    if queued := events.get("memory.queued"):
        from datetime import datetime

        due = datetime.fromisoformat(queued["due"]).astimezone().strftime("%H:%M:%S")
        yield f"written down; read once it is quiet, at {due} at the latest"
