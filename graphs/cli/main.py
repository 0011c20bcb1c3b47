"""The `palimpsest` command."""

import click

from graphs.cli.demo import demo
from graphs.cli.dev import dev
from graphs.cli.token import token


@click.group()
@click.version_option(package_name="palimpsest-memory")
def main() -> None:
    """A chat agent for LangGraph Platform that remembers."""


main.add_command(dev)
main.add_command(demo)
main.add_command(token)


if __name__ == "__main__":
    main()
