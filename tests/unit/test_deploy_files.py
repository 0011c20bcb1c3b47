"""What a deployment is made of says the same everywhere: configuration, compose file, Kubernetes example, settings."""

import importlib.util
import inspect
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from langgraph_cli import docker
from langgraph_cli.schemas import CheckpointerConfig, CorsConfig, HttpConfig, ThreadTTLConfig

from graphs.settings import Settings
from tests.rules.test_house import HOUSE

SERVERS_OWN = {"DATABASE_URI", "REDIS_URI", "BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS"}
"""Variables that the server in the image reads."""
CONFIG = json.loads((HOUSE / "langgraph.prod.json").read_text())
COMPOSE = yaml.safe_load((HOUSE / "compose.yaml").read_text())
MANIFESTS = list(yaml.safe_load_all((HOUSE / "deploy" / "kubernetes.yaml").read_text()))
PYPROJECT = tomllib.loads((HOUSE / "pyproject.toml").read_text())
PAGE = (HOUSE / "docs" / "run" / "deploy.md").read_text()
DRAIN = Settings.from_environment({}).memory.drain_seconds


def manifest(kind: str, name: str) -> dict[str, Any]:
    (found,) = [each for each in MANIFESTS if each["kind"] == kind and each["metadata"]["name"] == name]
    return dict(found)


def pod() -> dict[str, Any]:
    return dict(manifest("Deployment", "palimpsest")["spec"]["template"]["spec"])


def server() -> dict[str, Any]:
    (found,) = pod()["containers"]
    return dict(found)


def said_in_kubernetes() -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in server()["env"]}


def said_in_compose() -> dict[str, str]:
    return dict(COMPOSE["services"]["server"]["environment"])


def all_replicas() -> Iterator[tuple[str, float, float, dict[str, str]]]:
    """Yield the grace period of each file, what goes before the server hears of its end, and the variables."""
    stop = COMPOSE["services"]["server"]["stop_grace_period"]
    yield "compose", float(re.fullmatch(r"(\d+)s", stop)[1]), 0.0, said_in_compose()  # type: ignore[index]
    word, seconds = server()["lifecycle"]["preStop"]["exec"]["command"]
    assert word == "sleep"
    yield "kubernetes", float(pod()["terminationGracePeriodSeconds"]), float(seconds), said_in_kubernetes()


@pytest.mark.parametrize(("name", "grace", "before", "said"), list(all_replicas()), ids=lambda value: str(value)[:10])
def test_runs_under_way_and_the_drain_fit_the_grace_period(
    name: str, grace: float, before: float, said: dict[str, str]
) -> None:
    drain = Settings.from_environment(said).memory.drain_seconds
    assert before + float(said["BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS"]) + drain < grace


def test_the_variables_are_ours_or_the_servers_and_the_server_reads_them() -> None:
    ours = set(re.findall(r"^#?([A-Z_]+)=", (HOUSE / ".env.example").read_text(), re.M))
    for said in (said_in_compose(), said_in_kubernetes()):
        assert set(said) - {"POSTGRES_PASSWORD"} <= ours | SERVERS_OWN
        assert {"DATABASE_URI", "REDIS_URI"} <= set(said)
        Settings.from_environment(said)
    (location,) = importlib.util.find_spec("langgraph_api").submodule_search_locations  # type: ignore[union-attr,misc]
    source = (Path(location) / "config" / "__init__.py").read_text()
    assert [name for name in SERVERS_OWN if f'"{name}"' not in source] == []


def test_both_files_name_the_same_database_and_images() -> None:
    for said in (said_in_compose(), said_in_kubernetes()):
        assert re.fullmatch(
            r"postgres://palimpsest:\$[({]POSTGRES_PASSWORD[^@]*[)}]@(palimpsest-)?postgres:5432/palimpsest\?.*",
            said["DATABASE_URI"],
        )
        assert re.fullmatch(r"redis://(palimpsest-)?redis:6379", said["REDIS_URI"])
    services = {"postgres": manifest("StatefulSet", "palimpsest-postgres")}
    services |= {"redis": manifest("Deployment", "palimpsest-redis")}
    for name, described in services.items():
        (container,) = described["spec"]["template"]["spec"]["containers"]
        assert container["image"] == COMPOSE["services"][name]["image"]
    assert COMPOSE["services"]["postgres"]["image"].startswith("pgvector/")


def test_every_service_is_probed_and_selected_by_its_labels() -> None:
    assert all(service["healthcheck"]["test"][0] == "CMD" for service in COMPOSE["services"].values())
    for each in MANIFESTS:
        if each["kind"] in ("Deployment", "StatefulSet"):
            template = each["spec"]["template"]
            assert template["metadata"]["labels"] == each["spec"]["selector"]["matchLabels"]
            for container in template["spec"]["containers"]:
                assert {"readinessProbe", "livenessProbe"} <= set(container)
                ports = {port["name"] for port in container["ports"]}
                service = manifest("Service", each["metadata"]["name"])
                assert service["spec"]["selector"] == template["metadata"]["labels"]
                assert {port["targetPort"] for port in service["spec"]["ports"]} == ports


def test_the_server_is_probed_where_it_answers() -> None:
    assert "/api/healthcheck.py" in inspect.getsource(docker)
    assert COMPOSE["services"]["server"]["healthcheck"]["test"][-1] == "/api/healthcheck.py"
    probes = {name: server()[f"{name}Probe"]["httpGet"] for name in ("startup", "readiness", "liveness")}
    assert {probe["path"].partition("?")[0] for probe in probes.values()} == {"/ok"}
    # Who restarts replicas for a database that is away ends the turns that go on without it.
    assert "check_db" not in probes["liveness"]["path"]


def test_there_are_several_replicas_and_an_update_leaves_enough() -> None:
    replicas = manifest("Deployment", "palimpsest")["spec"]["replicas"]
    assert replicas > manifest("PodDisruptionBudget", "palimpsest")["spec"]["minAvailable"] >= 1
    described = COMPOSE["services"]["server"]
    first, last = re.fullmatch(r"127\.0\.0\.1:(\d+)-(\d+):8000", described["ports"][0]).groups()  # type: ignore[union-attr]
    assert described["deploy"]["replicas"] == int(last) - int(first) + 1 > 1


def test_no_secret_stands_in_a_file() -> None:
    for said in (said_in_compose(), said_in_kubernetes()):
        assert not [name for name, value in said.items() if re.search("SECRET|KEY|PASSWORD", name) and value]
    assert not [each for each in MANIFESTS if each["kind"] == "Secret"]
    assert server()["envFrom"] == [{"secretRef": {"name": "palimpsest"}}]
    assert COMPOSE["services"]["server"]["env_file"] == ".env"


def test_production_needs_a_login_and_has_no_door_beside_it() -> None:
    assert CONFIG["auth"]["path"] == "graphs.auth:auth"
    assert CONFIG["auth"]["disable_studio_auth"] is True
    assert CONFIG["http"]["enable_custom_route_auth"] is True
    assert CONFIG["http"]["disable_mcp"] is CONFIG["http"]["disable_a2a"] is True
    assert not {"path"} & set(CONFIG["checkpointer"]), "the server's own saver is on Postgres"
    assert CONFIG["store"] == {"path": "graphs.persistence.store"}, "a time to live of the store would let facts go"
    needed = PYPROJECT["project"]["optional-dependencies"]["postgres"]
    assert CONFIG["dependencies"] == [".", *(re.sub(r">=(\d+\.\d+),<\d+$", r"~=\1", each) for each in needed)]


def test_production_lets_no_other_site_in_and_old_threads_go() -> None:
    cors, ttl = CONFIG["http"]["cors"], CONFIG["checkpointer"]["ttl"]
    assert cors["allow_origins"] == []
    assert cors["allow_credentials"] is False
    # keep_latest would prune what a delta channel is replayed from.
    assert ttl["strategy"] == "delete"
    assert ttl["default_ttl"] == 365 * 24 * 60
    known = ((CONFIG["http"], HttpConfig), (cors, CorsConfig), (CONFIG["checkpointer"], CheckpointerConfig))
    for section, schema in (*known, (ttl, ThreadTTLConfig)):
        assert set(section) <= set(schema.__annotations__), "the server passes over what it does not know"


def test_the_page_says_what_the_files_say() -> None:
    assert f"`PALIMPSEST_DRAIN_SECONDS` ({DRAIN:g})" in PAGE
    for name in ("compose.yaml", "deploy/kubernetes.yaml", "BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS", "POSTGRES_PASSWORD"):
        assert name in PAGE, name
