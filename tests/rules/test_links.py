"""The papers: every relative link leads to a file that is there, and to a heading of it; the docs are short."""

import re
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]
PAPERS = [HOUSE / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG")]
PAGES = [*PAPERS, *sorted((HOUSE / "docs").rglob("*.md"))]
_FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """Return what GitHub makes of a page's headings, and the marks that the page sets itself."""
    text = _FENCED.sub("", page.read_text())
    headings: list[str] = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", each)) for each in headings]
    return {each.strip().lower().replace(" ", "-") for each in plain} | set(re.findall(r'<a id="([^"]+)">', text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(HOUSE)))
def test_every_link_leads_somewhere(page: Path) -> None:
    links: list[str] = _LINK.findall(_FENCED.sub("", page.read_text()))
    wrong = []
    for link in links:
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert wrong == []


def test_the_first_page_names_every_page() -> None:
    first = HOUSE / "docs" / "README.md"
    named = {(first.parent / link).resolve() for link in _LINK.findall(first.read_text())}
    assert set(PAGES) - set(PAPERS) - {first} <= named


def test_the_docs_have_ten_thousand_words_at_most() -> None:
    assert sum(len(page.read_text().split()) for page in set(PAGES) - set(PAPERS)) <= 10_000
