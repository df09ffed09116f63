"""The page and the dashboard name the metrics that are there."""

from __future__ import annotations

import json
import re
from pathlib import Path

from locus_memory.observability import METRICS

DOCS = Path(__file__).parents[2] / "docs"
SUFFIXES = {"histogram": ("_bucket", "_count"), "counter": ("_total",), "observed": ("_total",)}


def prometheus_names(metric):
    """Return the names that Prometheus gives to a metric of OpenTelemetry."""
    name = metric.name.replace(".", "_") + ("_seconds" if metric.unit == "s" else "")
    return {name + suffix for suffix in SUFFIXES.get(metric.kind, ("",))}


def test_the_dashboard_shows_each_metric_and_no_other():
    dashboard = json.loads((DOCS / "assets" / "grafana-dashboard.json").read_text("utf-8"))
    shown = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    labels = {name.replace(".", "_") for metric in METRICS for name in metric.attributes}
    words = set(re.findall(r"\b(?:db|gen_ai|locus_memory)_\w+", shown))
    names = words - labels
    known = {metric.name: prometheus_names(metric) for metric in METRICS}
    assert names <= set().union(*known.values())
    assert [name for name, spelled in known.items() if not spelled & names] == []


def test_the_page_has_each_metric_with_its_attributes():
    page = (DOCS / "observability.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w.]+)` \|[^|]*\| ?(.*) \|$", page, re.MULTILINE)
    assert {name: set(re.findall(r"`([\w.]+)`", listed)) for name, listed in rows} == {
        metric.name: set(metric.attributes) for metric in METRICS
    }
