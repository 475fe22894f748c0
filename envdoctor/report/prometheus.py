"""Findings as metrics: for node_exporter's textfile collector, and as OpenMetrics.

All are gauges without units, so that one text is both formats (the end mark of OpenMetrics is a
comment of the other).
"""

from __future__ import annotations

from ..model.finding import SEVERITIES
from ..model.record import NamedTuple
from .text import clean, clip, fold
from .view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

    from ..model.finding import Finding
    from ..model.report import Report
    from ..rules.node_table import ClusterReport

    Labels = Tuple[Tuple[str, str], ...]

__all__ = ["render", "render_cluster"]

_LONGEST = 200
_HELP = {
    "envdoctor_info": "The release that judged, and the date of what it knows.",
    "envdoctor_findings": "How many findings there are, by severity.",
    "envdoctor_finding": "On how many nodes a finding holds.",
    "envdoctor_node_finding": "A finding that holds for few of the nodes, by node.",
    "envdoctor_unread": "What could not be read, so that there is no verdict on it.",
    "envdoctor_nodes": "How many nodes are like most, differ, or gave no answer.",
    "envdoctor_node_differences": "In how many things a node differs from most.",
    "envdoctor_changed_nodes": "How many nodes changed, are new, gone or silent since a file.",
}


class _Sample(NamedTuple):
    name: str
    labels: Labels
    value: int = 1


def render(report: Report, view: View) -> str:
    """Return a report as metrics."""
    return _text([*_info(report.matrix_date), *_findings([report], len(report.nodes))])


def render_cluster(report: ClusterReport) -> str:
    """Return the answer about a cluster as metrics."""
    reports = [section.report for section in report.sections]
    total = sum(section.size for section in report.sections)
    samples = [*_info(reports[0].matrix_date if reports else ""), *_findings(reports, total)]
    counts = {"alike": 0, "odd": 0, "silent": len(report.failed)}
    for section in report.sections:
        for number, kind in enumerate(section.kinds):
            counts["odd" if number else "alike"] += len(kind.names)
            samples += [
                _sample("node_differences", {"node": name}, len(kind.differences))
                for name in (kind.names if number else ())
            ]
    samples += [_sample("nodes", {"state": state}, count) for state, count in counts.items()]
    since = report.since
    if since is not None:
        changed = sum(len(entry.names) for entry in since.changed)
        for word, count in (
            ("changed", changed),
            ("added", len(since.added)),
            ("gone", len(since.gone)),
            ("silent", len(since.silent)),
        ):
            samples.append(_sample("changed_nodes", {"change": word}, count))
    return _text(samples)


def _info(matrix_date: str) -> Iterator[_Sample]:
    from .. import __version__

    yield _sample("info", {"version": __version__, "matrix": matrix_date})


def _findings(reports: Sequence[Report], nodes: int) -> Iterator[_Sample]:
    from ..model.host_names import unfold_all

    findings = [finding for report in reports for finding in report.findings]
    for severity in SEVERITIES:
        count = sum(finding.severity == severity for finding in findings)
        yield _sample("findings", {"severity": severity}, count)
    count = sum(len(report.undetermined) for report in reports)
    yield _sample("findings", {"severity": "undetermined"}, count)
    for finding in (finding for report in reports for finding in report.unread):
        yield _sample("unread", {"code": finding.code, "message": finding.message})
    for finding in findings:
        names = unfold_all(finding.nodes)
        labels = _labels_of(finding)
        yield _sample("finding", labels, max(len(names), 1))
        # A label of ten thousand values for each finding would be more than a server takes.
        for name in names if 2 * len(names) < nodes else ():
            yield _sample("node_finding", {**labels, "node": name})


def _labels_of(finding: Finding) -> Dict[str, str]:
    return {
        "code": finding.code,
        "rule": finding.rule,
        "component": finding.component,
        "severity": finding.severity,
    }


def _sample(name: str, labels: Mapping[str, str], value: int = 1) -> _Sample:
    return _Sample(f"envdoctor_{name}", tuple(labels.items()), value)


def _text(samples: Iterable[_Sample]) -> str:
    """Return samples by their names, each set of labels once."""
    families: Dict[str, Dict[Labels, int]] = {}
    for sample in samples:
        family = families.setdefault(sample.name, {})
        known = family.get(sample.labels, 0)
        family[sample.labels] = known + sample.value
    lines: List[str] = []
    for name, family in families.items():
        lines += [f"# HELP {name} {_HELP[name]}", f"# TYPE {name} gauge"]
        lines += [f"{name}{{{_written(labels)}}} {value}" for labels, value in family.items()]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _written(labels: Labels) -> str:
    return ",".join([f'{name}="{_escaped(value)}"' for name, value in labels])


def _escaped(text: str) -> str:
    shown = clip(fold(clean(text)), _LONGEST)
    return shown.replace("\\", "\\\\").replace('"', '\\"')
