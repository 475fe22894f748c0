"""Metrics, before the parsers of those who will read them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from envdoctor.model.differences import Changed, NodeDifference, Since
from envdoctor.model.node_answers import NodeAnswer
from envdoctor.report import View, render
from envdoctor.report.prometheus import render_cluster
from tests.rules.test_node_table import cluster, report_of, without_gpu

from .conftest import HEALTHY, REPORT, hostile_report


def of_cluster():
    store, answers = cluster(8, {3: without_gpu})
    report = report_of(store, [*answers, NodeAnswer("gpu09", failed="no answer")])
    difference = NodeDifference("driver.release", "550", "570")
    return report._replace(
        since=Since("x", (Changed(("gpu03",), (difference,)),), 7, ("gpu09",), ("a", "b"))
    )


TEXTS = {
    "report": render(REPORT, "prometheus", View(80)),
    "healthy": render(HEALTHY, "prometheus", View(80)),
    "hostile": render(hostile_report(), "prometheus", View(80)),
    "cluster": render_cluster(of_cluster()),
}


def samples(text, parse):
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(text)
        for sample in family.samples
    }


@pytest.fixture(params=["prometheus_client.parser", "prometheus_client.openmetrics.parser"])
def parse(request):
    """Both formats that a scrape may ask for."""
    module = pytest.importorskip(request.param)
    return module.text_string_to_metric_families


@pytest.mark.parametrize("name", TEXTS)
def test_both_parsers_read_the_same(name, parse):
    read = samples(TEXTS[name], parse)
    lines = [line for line in TEXTS[name].splitlines() if not line.startswith("#")]
    assert len(read) == len(lines)  # each set of labels once


@pytest.mark.parametrize("name", TEXTS)
def test_promtool_has_no_complaint(name, prerequisite):
    prerequisite(shutil.which("promtool"), "promtool (Debian: prometheus)")
    done = subprocess.run(
        ["promtool", "check", "metrics"],
        input=TEXTS[name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_what_they_say(parse):
    read = samples(TEXTS["cluster"], parse)
    lost = (
        ("code", "ED710"),
        ("component", "gpu"),
        ("node", "gpu03"),
        ("rule", "ED710"),
        ("severity", "error"),
    )
    assert read["envdoctor_node_finding", lost] == 1
    assert read["envdoctor_findings", (("severity", "error"),)] == 1
    assert read["envdoctor_nodes", (("state", "alike"),)] == 7
    assert read["envdoctor_nodes", (("state", "silent"),)] == 1
    assert read["envdoctor_node_differences", (("node", "gpu03"),)] == 1
    assert read["envdoctor_changed_nodes", (("change", "gone"),)] == 2
    # What holds for all of them names none: so many series no server takes.
    assert not [
        key for key in read if dict(key[1]).get("code") == "ED707" and "node" in dict(key[1])
    ]


def test_the_gaps_are_not_silence(parse):
    """A report without a finding says 0, so that an alarm can end."""
    read = samples(TEXTS["healthy"], parse)
    assert read["envdoctor_findings", (("severity", "error"),)] == 0
