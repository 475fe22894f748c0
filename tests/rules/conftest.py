"""Facts by hand and the matrix as it is shipped: what the tests of the rules share."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence

import pytest

from envdoctor.matrix.loader import Matrix, load_matrix
from envdoctor.model.evidence import Absent, Evidence, Known, Unknown
from envdoctor.model.facts import Distribution, Facts, Gpu
from envdoctor.model.finding import Finding
from envdoctor.model.workload import stated_workload
from envdoctor.rules import judge

HERE = Evidence("test")
Judge = Callable[..., List[Finding]]


@pytest.fixture(scope="session")
def matrix() -> Matrix:
    return load_matrix()


def distribution(
    line: str, *requires: str, python: Optional[str] = None, **values: Any
) -> Distribution:
    """``torch 2.6.0+cu124`` as an installed distribution that requires ``requires``."""
    name, _, version = line.partition(" ")
    location = values.pop(
        "location", f"/site-packages/{name.replace('-', '_')}-{version}.dist-info"
    )
    return Distribution(
        name, version or None, location, requires=tuple(requires), requires_python=python, **values
    )


def facts_of(
    packages: Sequence[Any] = (),
    *,
    gpus: Optional[Sequence[Any]] = None,
    complete: bool = True,
    **fields: Any,
) -> Facts:
    """Make facts: ``driver_release="535.1"`` is the field driver.release; None is Absent."""
    table: Dict[str, Any] = {}
    if packages:
        found = [
            entry if isinstance(entry, Distribution) else distribution(entry) for entry in packages
        ]
        table["distributions"] = Known({entry.name: entry for entry in found}, HERE)
        table["distributions.complete"] = Known(complete, HERE)
    if gpus is not None:
        table["gpus"] = Known(
            tuple(entry if isinstance(entry, Gpu) else Gpu(name=entry) for entry in gpus), HERE
        )
    if "request" in fields:
        fields["request"] = stated_workload(fields["request"], HERE)
    for name, value in fields.items():
        field = (
            name.replace("_", ".", 1)
            if name not in ("variables", "request", "libraries", "toolkits", "binaries")
            else name
        )
        if isinstance(value, Unknown):
            table[field] = value
        else:
            table[field] = Absent(HERE) if value is None else Known(value, HERE)
    return Facts(table)


@pytest.fixture
def judged(matrix: Matrix) -> Judge:
    """Judge facts; what a rule raises fails the test."""

    def run(facts: Facts, *, nodes: Sequence[Facts] = (), **options: Any) -> List[Finding]:
        return judge(facts, options.pop("matrix", matrix), nodes=nodes, propagate=True, **options)

    return run


def codes(findings: Sequence[Finding], verdict: str = "violated") -> List[str]:
    return [finding.code for finding in findings if finding.verdict == verdict]


def by_code(findings: Sequence[Finding], code: str) -> Finding:
    """The one finding of a code; a test that expects one fails on none and on two."""
    found = [
        finding for finding in findings if finding.code == code and finding.verdict == "violated"
    ]
    assert len(found) == 1, (
        f"{len(found)} findings of {code} in "
        f"{[(finding.code, finding.message) for finding in findings]}"
    )
    return found[0]


def errors(findings: Sequence[Finding]) -> List[Finding]:
    return [
        finding
        for finding in findings
        if finding.severity == "error" and finding.verdict == "violated"
    ]
