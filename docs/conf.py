"""The site that `make docs` builds: Sphinx reads the whole project, so that each link of its papers holds there, too.

The pages stay plain Markdown. What the site adds is made of what is already said elsewhere: the order of the pages from
`docs/README.md`, the table of settings from `.env.example`, the reference of the memory API from its own document.
"""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

HOUSE = Path(__file__).parents[1]

project, author, copyright = "Palimpsest", "The Palimpsest authors", "The Palimpsest authors"  # noqa: A001 - Sphinx's
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md"]
exclude_patterns = ["[.]*", "**/node_modules", "site", "measured", "dist"]
html_theme = "furo"
html_title = "Palimpsest"
html_use_index = html_copy_source = html_show_sphinx = False
myst_heading_anchors = 3
# A page may begin below a first heading, and a file that is linked may be no page.
suppress_warnings = ["myst.header", "myst.xref_missing"]

_MERMAID = re.compile(r"(?:<!-- graph:.*?-->\n)?```mermaid\n.*?```", re.DOTALL)
_READER = re.compile(r"^- \*\*(.+?)\*\*:(.*?)(?=^- |\Z)", re.DOTALL | re.MULTILINE)
_VARIABLE = re.compile(r"((?:^# .*\n)+)#(\w+)=(.*)$", re.MULTILINE)


def contents() -> str:
    """Return the site's table of contents: for each reader the pages that `docs/README.md` names."""
    readers: list[tuple[str, str]] = _READER.findall((HOUSE / "docs" / "README.md").read_text())
    folders = [
        (reader, [f"docs/{page}" for page in re.findall(r"\]\(([a-z][\w/-]+)\.md\)", said)]) for reader, said in readers
    ]
    papers = [*folders, ("The project", ["ARCHITECTURE", "CONTRIBUTING", "CHANGELOG"])]
    lists = [f"```{{toctree}}\n:hidden:\n:caption: {name}\n\n{chr(10).join(pages)}\n```" for name, pages in papers]
    return "\n\n".join(lists)


def settings() -> str:
    """Return `.env.example` as a table."""
    rows = ["| Variable | Default | |", "|---|---|---|"]
    for said, name, default in _VARIABLE.findall((HOUSE / ".env.example").read_text()):
        told = " ".join(line.removeprefix("# ") for line in said.splitlines() if not line.startswith("# ---"))
        rows.append(f"| `{name}` | {f'`{default}`' if default else ''} | {told.replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def reference() -> str:
    """Return the memory API's own document: each operation with what it takes and answers, and each of its values."""
    from graphs.server.api import MemoryApi

    document: dict[str, Any] = MemoryApi().openapi()
    parts = ["## Reference"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parts.append(
                f"### `{method.upper()} {path}`\n\n{operation.get('description') or operation.get('summary', '')}"
            )
            parts += [
                f"- `{each['name']}` ({each['in']}): {_type(each['schema'])} {each.get('description', '')}".rstrip()
                for each in operation.get("parameters", ())
            ]
            contents = [*operation.get("requestBody", {}).get("content", {}).values()]
            parts += [f"\nTakes {_type(each['schema'])}." for each in contents]
            parts += [
                f"\nAnswers {status} with {_type(each['schema'])}."
                for status, answer in operation["responses"].items()
                for each in answer.get("content", {}).values()
                if status.startswith("2")
            ]
    parts.append("## Values")
    for name, schema in document["components"]["schemas"].items():
        parts.append(f"### {name}\n\n{schema.get('description', '')}")
        parts += [
            f"- `{field}`: {_type(said)} {said.get('description', '')}".rstrip()
            for field, said in schema.get("properties", {}).items()
        ]
    return "\n".join(f"\n{part}\n" if part.startswith("#") else part for part in parts)


def _type(schema: dict[str, Any]) -> str:
    """Return a JSON schema as a word or two."""
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    kind = schema.get("title" if schema.get("type") == "object" else "type", "any JSON")
    return f"{kind} of {_type(schema['items'])}" if "items" in schema else str(kind)


def complete(_app: Sphinx, page: str, source: list[str]) -> None:
    """Give a page what it has on the site only."""
    to_root = "../" * page.count("/")
    picture = f"![The graph, the store, and the update behind the turn]({to_root}docs/pictures/architecture.svg)"
    source[0] = _MERMAID.sub(picture, source[0])
    added = {root_doc: contents, "docs/run/settings": settings, "docs/build/api": reference}
    if page in added:
        source[0] += f"\n\n{added[page]()}\n"


def begin(app: Sphinx, error: Exception | None) -> None:
    """Let the folder's own address lead to the first page."""
    if not error:
        (app.outdir / "index.html").write_text('<meta http-equiv="refresh" content="0; url=README.html">\n')


def setup(app: Sphinx) -> None:
    """Have Sphinx call these."""
    app.connect("source-read", complete)
    app.connect("build-finished", begin)
