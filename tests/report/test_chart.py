"""The drawing of a watched run: its labels are round, and kills are marked where they were."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from envdoctor.model.sizes import parse_size
from envdoctor.probes.usage import Group, GroupUse
from envdoctor.report.chart import chart_svg
from envdoctor.watch.recording import Outlook, Recording, Sample
from envdoctor.watch.trend import Arrival, Trend

SVG = "{http://www.w3.org/2000/svg}"


def recording(limit, peak, seconds, **changes):
    """A run whose use rises evenly."""
    group = Group(limit, "test", "/group", 2, False)
    samples = [
        Sample(seconds * n / 50, GroupUse(peak * n // 50, peak * n // 50, 0, 0, 0, 0), ())
        for n in range(51)
    ]
    whole = Recording(group, tuple(samples), 51, None, peak, seconds, 0, 0, 0.1)
    return whole._replace(**changes)


def texts(drawn):
    root = ElementTree.fromstring(drawn)
    return [element.text or "" for element in root.iter(f"{SVG}text")], root


@pytest.mark.parametrize("seconds", [3, 47, 100, 700, 5000, 30000, 200000, 3_000_000])
@pytest.mark.parametrize("limit", [3 << 20, 700 << 20, 1536 << 20, 23_600_000_000, 931 << 30])
def test_labels_are_round(limit, seconds):
    words, _ = texts(chart_svg(recording(limit, int(limit * 0.9), seconds)))
    times = [word for word in words if word.split()[-1:] in (["s"], ["min"], ["h"])]
    sizes = [parse_size(word) for word in words if word.endswith("B") and "limit" not in word]
    assert 3 <= len(sizes) <= 9
    assert 3 <= len(times) <= 9
    assert sizes == [sizes[1] * index for index in range(len(sizes))]  # nothing is rounded
    assert times[0] == "0 s"


def test_kills_are_marked_where_they_were():
    killed = recording(1 << 30, 1 << 30, 100, oom_kills=2, killed_at=(50.0, 75.0), exit_code=137)
    words, root = texts(chart_svg(killed))
    lines = [line for line in root.iter(f"{SVG}line") if line.get("stroke-dasharray")]
    width = [float(line.get("x1")) for line in lines]
    assert width == [480.0, 680.0]  # of 80 to 880
    assert "killed for lack of memory" in words


def test_a_run_that_somebody_killed_is_marked_at_its_end():
    words, root = texts(chart_svg(recording(1 << 30, 1 << 29, 100, exit_code=137)))
    (line,) = [line for line in root.iter(f"{SVG}line") if line.get("stroke-dasharray")]
    assert line.get("x1") == "880.0"
    assert "ended by SIGKILL" in words
    _, root = texts(chart_svg(recording(1 << 30, 1 << 29, 100)))
    assert not [line for line in root.iter(f"{SVG}line") if line.get("stroke-dasharray")]


def test_of_a_run_that_has_ended_no_limit_is_ahead():
    steady = recording(1 << 30, 1 << 29, 600)
    trend, arrival = Trend("steady", slope=1e6), Arrival(600.0, 500.0, 700.0)
    outlook = Outlook(steady.samples[-1], steady.group, trend, arrival, None)
    steady = steady._replace(outlook=outlook, exit_code=None)
    assert any("meets the limit" in word for word in texts(chart_svg(steady))[0])
    ended, _ = texts(chart_svg(steady._replace(exit_code=0)))
    assert not any("meets the limit" in word for word in ended)
    assert "at most 512 MiB of 1 GiB (50 %)" in ended
    assert any(word.endswith("until it ended") for word in ended)
