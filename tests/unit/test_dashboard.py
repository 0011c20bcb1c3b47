"""The Grafana dashboard asks for metrics and labels that a scrape has."""

import json
import re
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from graphs.metrics import COUNTERS, Count, Metrics, away_metric, backlog_metrics
from memory.outbox.backlog import Backlog

DASHBOARD = json.loads((Path(__file__).parents[2] / "docs" / "grafana-dashboard.json").read_text())
ASKED = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
_NAME = re.compile(r"palimpsest_[a-z_]+")


class Gauges(Collector):
    def collect(self) -> list[Metric]:
        return [away_metric({"read": False, "write": True}), *backlog_metrics(Backlog(1, 1, 0.0), 9.0)]


def scraped() -> dict[str, set[str]]:
    """Every sample's name with its labels."""
    metrics = Metrics()
    for name, family in COUNTERS.items():
        metrics.add([Count(name, tuple(values[-1] for values in family.labels.values()))])
    metrics.context({"system": 5})
    registry = CollectorRegistry()
    registry.register(Gauges())
    text = generate_latest(metrics.registry).decode() + generate_latest(registry).decode()
    found: dict[str, set[str]] = {}
    for metric in text_string_to_metric_families(text):
        for sample in metric.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def test_every_metric_that_a_panel_asks_for_is_in_a_scrape() -> None:
    assert len(ASKED) > 10
    known = scraped()
    for expression in ASKED:
        names = _NAME.findall(expression)
        assert names, expression
        assert not [name for name in names if name not in known], expression


def test_every_label_that_a_panel_groups_or_filters_by_is_one_of_its_metric() -> None:
    known = scraped()
    for expression in ASKED:
        labels = {each.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for each in group.split(",")}
        labels |= set(re.findall(r"[{,](\w+)(?:!?=)", expression))
        for name in _NAME.findall(expression):
            assert labels <= known[name], expression


def test_what_is_counted_is_shown() -> None:
    shown = {name for expression in ASKED for name in _NAME.findall(expression)}
    assert {f"{name}_total" for name in COUNTERS} <= shown
