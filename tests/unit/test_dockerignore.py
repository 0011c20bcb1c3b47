"""What `docker build` sends along: nothing that git does not keep, and nothing private."""

from pathlib import Path

import pathspec
import pytest

PROJECT = Path(__file__).parents[2]
IGNORED = pathspec.PathSpec.from_lines(
    # Docker's patterns begin at the folder of the file; those of git at any.
    "gitignore",
    [f"/{line}" for line in (PROJECT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")],
)
NEEDED = ("pyproject.toml", "README.md", "LICENSE", "langgraph.json", "langgraph.prod.json", "graphs/chat.py")
OF_THE_STAGE = ("page/package.json", "page/package-lock.json", "page/build.mjs")


@pytest.mark.parametrize(
    "line",
    [line for line in (PROJECT / ".gitignore").read_text().splitlines() if not line.startswith("#")],
)
def test_what_git_ignores_is_ignored(line: str) -> None:
    """Git's lines hold at any depth; what is made below the top is named with its depth."""
    path = line.replace("*", "x") + ("file" if line.endswith("/") else "")
    assert IGNORED.match_file(path)
    if line in ("__pycache__/", "*.egg-info/", "node_modules", ".env"):
        assert IGNORED.match_file(f"graphs/server/{path}")


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".env",
        ".env.production",
        "deploy/.env",
        ".palimpsest/store.sqlite",
        "data/checkpoints.sqlite-wal",
        ".langgraph_api/.langgraph_ops.pckl",
        "page/node_modules/a/index.js",
        "graphs/server/page/static/built/langgraph.js",  # the image builds its own
        "signing.pem",
        "certs/server.key",
        "graphs/server/__pycache__/guard.cpython-311.pyc",
        ".venv/bin/python",
        "server.log",
    ],
)
def test_what_is_private_or_made_here_is_ignored(path: str) -> None:
    assert IGNORED.match_file(path)


def test_what_the_image_is_built_of_is_sent() -> None:
    code = [str(path.relative_to(PROJECT)) for room in ("graphs", "memory") for path in (PROJECT / room).rglob("*.py")]
    assert [path for path in [*NEEDED, *OF_THE_STAGE, *code] if IGNORED.match_file(path)] == []
    assert len(code) > 100
