"""docs/run/deploy.md is carried out as it is printed, where it needs no Docker; `langgraph.prod.json` is unmodified."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from graphs.server.page.assets import BUILT, CHAT_CLIENT, RENDERING, SHARED
from tests.e2e.dev_server import DevServer
from tests.stories.serving import PROJECT
from tests.stub_model import StubModel

PAGE = (PROJECT / "docs/run/deploy.md").read_text()
BIN = Path(sys.executable).parent


def commands() -> list[str]:
    found: list[str] = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return found


def shell(folder: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {
        "PATH": f"{BIN}{os.pathsep}{os.defpath}",
        "PYTHONPATH": str(PROJECT),
        "HOME": str(folder),
        **environment,
    }
    return subprocess.run(
        ["sh", "-ec", code.replace(".venv/bin/", f"{BIN}/")],
        cwd=folder, env=variables, capture_output=True, encoding="utf-8", timeout=240, check=False,
    )  # fmt: skip


def test_the_page_leads_from_a_fresh_clone_to_an_answer(tmp_path: Path, model: StubModel) -> None:
    secrets, start, ask, *_ = commands()
    shutil.copy(PROJECT / ".env.example", tmp_path)
    assert shell(tmp_path, secrets).returncode == 0
    with (tmp_path / ".env").open("a") as env_file:
        env_file.write(f"OPENAI_BASE_URL={model.url}\n")
    assert "langgraph.prod.json" in start
    with DevServer(tmp_path, config=PROJECT / "langgraph.prod.json") as server:
        asked = shell(tmp_path, ask.replace("http://127.0.0.1:2024", server.url))
        assert asked.returncode == 0, asked.stderr
        assert "You said: Hello, I am Ada." in asked.stdout
        nobody = httpx.get(f"{server.url}/memory/overview", timeout=60)
        assert (nobody.status_code, "Authorization: Bearer" in nobody.text) == (401, True)
        for probe in ("/ok", "/ok?check_db=1"):
            answered = httpx.get(f"{server.url}{probe}", headers={"Origin": "https://elsewhere.example"}, timeout=60)
            assert answered.status_code == 200
            assert "access-control-allow-origin" not in answered.headers


def test_without_a_secret_neither_server_nor_token_is_had_and_both_say_why(tmp_path: Path) -> None:
    shutil.copy(PROJECT / "langgraph.prod.json", tmp_path)
    for command in ("palimpsest dev --config langgraph.prod.json", "palimpsest token ada"):
        done = shell(tmp_path, f".venv/bin/{command}", OPENAI_API_KEY="stub")
        assert done.returncode == 1
        assert "PALIMPSEST_AUTH_SECRET" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def dockerfile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `docs/run/deploy.md` has another machine build."""
    folder = tmp_path_factory.mktemp("image")
    (line,) = [line for line in PAGE.split("`") if line.startswith(".venv/bin/langgraph dockerfile")]
    code = line.replace("langgraph.prod.json", str(PROJECT / "langgraph.prod.json"))
    written = shell(folder, code, LANGGRAPH_CLI_NO_ANALYTICS="1", PALIMPSEST_AUTH_SECRET="x" * 40)
    assert written.returncode == 0, written.stderr
    return (folder / "Dockerfile").read_text()


def test_the_image_gets_login_and_graphs_and_no_secret(dockerfile: str) -> None:
    text = dockerfile
    served = dict(re.findall(r"^ENV (\w+)='(.*)'$", text, re.M))
    assert set(json.loads(served["LANGSERVE_GRAPHS"])) == {"chat"}
    config = json.loads((PROJECT / "langgraph.prod.json").read_text())
    for name in ("auth", "http", "checkpointer", "store"):
        assert json.loads(served[f"LANGGRAPH_{name.upper()}"]).items() >= config[name].items()
    # The line is no quoted one: `>=` would be where a shell writes to.
    (packages,) = re.findall(r"^RUN .* pip install .* (langgraph-checkpoint-postgres.*)$", text, re.M)
    assert not set("<>;&|$`") & set(packages)
    assert text.startswith("FROM langchain/langgraph-api:3.1")
    assert "x" * 40 not in text


def test_the_image_builds_the_browser_code_in_a_stage_of_its_own(dockerfile: str) -> None:
    first, *others = re.findall(r"^FROM (\S+)(?: AS (\w+))?$", dockerfile, re.M)
    (node, stage), last = others
    assert node.startswith("node:2")
    # The command line names the image once, before its stage: the same must follow behind it.
    assert last == first
    assert dockerfile.index(f"FROM {node}") < dockerfile.rindex(f"FROM {last[0]}") < dockerfile.index("ADD . ")
    ((taken_from, source, target),) = re.findall(r"^COPY --from=(\w+) (\S+) (\S+)$", dockerfile, re.M)
    (folder,) = re.findall(r"^WORKDIR (/build\S*)$", dockerfile, re.M)
    assert (taken_from, source) == (stage, str(Path(folder).parent / BUILT.relative_to(PROJECT)))
    assert Path(target) == Path("/usr/local") / SHARED.relative_to(sys.prefix)


def test_the_stage_of_the_image_makes_what_the_page_needs(dockerfile: str, tmp_path: Path) -> None:
    """Its lines are carried out in a folder, by npm and Node.js of this machine: no Docker is here."""
    stage = dockerfile.partition(" AS page\n")[2].partition("\nFROM ")[0]
    (folder,) = re.findall(r"^WORKDIR /(\S+)$", stage, re.M)
    place = tmp_path / folder
    place.mkdir(parents=True)
    for word, rest in re.findall(r"^(COPY|RUN) (.*)$", stage, re.M):
        if word == "COPY":
            for name in rest.split()[:-1]:
                shutil.copy(PROJECT / name, place)
        else:
            done = subprocess.run(["sh", "-ec", rest], cwd=place, capture_output=True, encoding="utf-8", check=False)
            assert done.returncode == 0, done.stderr
    made = place.parent / BUILT.relative_to(PROJECT)
    assert {path.name for path in made.iterdir()} == {CHAT_CLIENT, RENDERING, "licences.txt"}


@pytest.mark.parametrize("variable", sorted(set(re.findall(r"`(PALIMPSEST_[A-Z_]+)", PAGE))))
def test_the_page_names_variables_that_there_are(variable: str) -> None:
    assert f"#{variable}=" in (PROJECT / ".env.example").read_text()
