"""A command about memory: which memory it is about, what it asks, and how the answer is shown.

Most ask the API one thing. They are a table (`route`): where it is asked, what is typed, by the API's own names, and
how a person is shown the answer.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate

import click

from graphs.cli.shell import Json, Shell, examples

if TYPE_CHECKING:
    from graphs.cli.client import MemoryClient

URL = click.Option(["--url"], help="The server. Default: PALIMPSEST_URL, or the one of this folder.")
TOKEN = click.Option(["--token"], help="Your token, where users log in. Default: PALIMPSEST_TOKEN.")
AGENT = click.Option(["--agent"], default="default", help="Whose memory: an agent_name.")
LOCAL = click.Option(["--local"], is_flag=True, help="Ask no server, but this folder's files.")
JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print the API's own answer as JSON.")
YES = click.Option(["--yes", "-y"], is_flag=True, help="Do not ask.")

Run = Callable[Concatenate["MemoryClient", Shell, ...], None]
"""What a command does with the memory that it is about, and where it prints; what is typed follows by name."""


def asks(
    name: str, *typed: click.Parameter, shown: tuple[str, ...] = (), does: str = ""
) -> Callable[[Run], click.Command]:
    """Return what makes a command of a function: with the options that say which memory it is about, which is opened.

    Args:
        name: What is typed for it.
        typed: What else is.
        shown: Examples of its use.
        does: What it does; by default the function's docstring says so.
    """

    def decorate(run: Run) -> click.Command:
        def command(as_json: bool, url: str, token: str, agent: str, local: bool, **given: Any) -> None:
            from graphs.cli.client import open_memory  # with httpx and settings: a help does not wait for imports

            shell = click.get_current_context().ensure_object(Shell)
            shell.as_json = as_json
            with open_memory(shell, url, token, agent, local) as memory:
                run(memory, shell, **given)

        params = [*typed, URL, TOKEN, AGENT, LOCAL, JSON]
        return click.Command(
            name, callback=command, params=params, help=does or run.__doc__, epilog=examples(*shown) if shown else None
        )

    return decorate


def route(
    name: str,
    asked: str,
    show: Callable[[Shell, Json], None],
    does: str,
    *typed: click.Parameter,
    shown: tuple[str, ...] = (),
    **fixed: object,
) -> click.Command:
    """Return a command that asks the API one thing.

    Args:
        name: What is typed for it.
        asked: Method and path. What is typed under a name of the path goes there, the rest into query or body.
        show: Shows a person the answer.
        does: What it does.
        typed: What else is typed, under the API's names.
        shown: Examples of its use.
        fixed: What the body says whatever is typed.
    """
    method, _, path = asked.partition(" ")

    @asks(name, *typed, shown=shown, does=does)
    def command(memory: "MemoryClient", shell: Shell, **given: object) -> None:
        fields = {each: said for each, said in given.items() if f"{{{each}}}" not in path}
        answer = memory.ask(method, path.format(**given), {**fields, **fixed})
        shell.answer(answer)
        show(shell, answer)

    return command
