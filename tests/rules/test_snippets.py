"""Each snippet of README and docs is run by a test as it is printed, or stands here with the reason why it is not."""

import json
import re
from pathlib import Path

import pytest

from graphs.process.events import TokenParts
from graphs.turn.content import SOURCES_KEY, TOKENS_KEY
from graphs.turn.prompt import Sources

HOUSE = Path(__file__).parents[2]
PAGES = [HOUSE / "README.md", *sorted((HOUSE / "docs").rglob("*.md"))]
RUN_BY = {
    "agent.invoke(": "tests/e2e/test_readme.py",
    "memory/facts\n": "tests/e2e/test_readme.py",
    "palimpsest erase everything": "tests/e2e/test_readme.py",
    "graph TD;": "tests/laws/test_rules_graph.py",
    "state_schema=PalimpsestState": "tests/e2e/test_agents.py",
    "Answer in one sentence": "tests/e2e/test_readme.py",
    "def weather": "tests/integration/test_extend.py",
    "memory_tools(": "tests/integration/test_extend.py",
    "extraction_prompt": "tests/integration/test_extend.py",
    "+++ b/memory/config.py": "tests/integration/test_extend.py",
    "MemoryUpdateQueue(": "tests/integration/test_extend.py",
    "build_graph()": "tests/e2e/test_readme.py",
    "cp .env.example .env": "tests/e2e/test_deploy.py",
    'ARGS="--config langgraph.prod.json"': "tests/e2e/test_deploy.py",
    "palimpsest token ada": "tests/e2e/test_deploy.py",
    "/metrics | grep": "tests/e2e/test_readme.py",
    "palimpsest chat": "tests/e2e/test_readme.py",
    "OPENAI_BASE_URL": "tests/e2e/test_readme.py",
    "erase/fact": "tests/e2e/test_readme.py",
    "memory.jsonl": "tests/e2e/test_readme.py",
    "palimpsest backfill": "tests/e2e/test_readme.py",
    '"conversation": "trip"': "tests/e2e/test_readme.py",
    '"overrides"': "tests/rules/test_snippets.py",
    SOURCES_KEY + '": {': "tests/rules/test_snippets.py",
}
"""What tells a snippet, and the test that runs or reads its page."""
NOT_RUN = {
    "pip install": "downloads packages: make check installs the wheel",
    "make dev\n": "downloads packages and a model: scripts/bare-roots runs it",
    '"OPENAI_API_KEY=sk-..." >> .env\n': "a key is nobody's to print",
    "docker run": "needs Docker and a licence",
    "docker compose": "needs Docker and a licence",
    "kubectl": "needs a cluster",
}


def snippets(page: Path) -> list[str]:
    return [code for _, code in re.findall(r"^ *```(\w*)\n(.*?)^ *```", page.read_text("utf-8"), re.M | re.S)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(HOUSE)))
def test_every_snippet_is_run(page: Path) -> None:
    for code in snippets(page):
        tests = [where for mark, where in RUN_BY.items() if mark in code]
        assert tests or any(mark in code for mark in NOT_RUN), f"no test runs this:\n{code}"
        for test in tests:
            assert page.name in (HOUSE / test).read_text("utf-8"), f"{test} does not read {page.name}"


def test_every_mark_is_that_of_a_snippet() -> None:
    every = "".join(code for page in PAGES for code in snippets(page))
    assert [mark for mark in {**RUN_BY, **NOT_RUN} if mark not in every] == []


def test_what_chat_clients_are_told_is_so() -> None:
    overrides, answer = snippets(HOUSE / "docs" / "build" / "chat-clients.md")
    example = json.loads((HOUSE / "examples" / "package.json").read_text("utf-8"))
    assert json.loads(f"{{{overrides}}}")["overrides"] == example["dependencies"]
    told = json.loads(answer)["response_metadata"]
    assert set(told[SOURCES_KEY]) == set(Sources.__annotations__)
    assert set(told[TOKENS_KEY]) == set(TokenParts.model_fields)
