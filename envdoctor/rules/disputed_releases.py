"""What a report tells twice and differently: two lists, or the banners of two runs in one file.

Each release may be of an environment of its own, and a pair of one of each of none. What does not
hold with the other release of everything that is told twice is said to hold of one alone.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence

from ..model.evidence import Evidence, Known, Unknown
from ..model.facts import Distribution, Facts
from ..model.finding import Finding
from .replaced_packages import with_packages

__all__ = ["held_by_both", "with_other_releases"]

_NAMED = 3


#: Fields of which the other value can be taken: they are read from nothing else.
_FIELDS = frozenset(["python.version", "driver.release", "glibc.version", "toolkit.version"])


def _others(facts: Facts) -> Dict[str, str]:
    """Return the other of two releases, by distribution or field."""
    disputed = facts.value("report.disputed") or {}
    return {name: text for name, text in disputed.items() if "." not in name or name in _FIELDS}


def with_other_releases(facts: Facts) -> Optional[Facts]:
    """Return the facts with the other of two releases wherever a report tells two; None where it
    tells no two releases.
    """
    disputed = _others(facts)
    if not disputed:
        return None
    packages = {
        name: Distribution(name, version) for name, version in disputed.items() if "." not in name
    }
    table = dict(with_packages(facts, packages, "report"))
    for field, version in disputed.items():
        if "." in field:
            table[field] = Known(version, facts.evidence(field) or Evidence("report"))
    table["report.disputed"] = Unknown("the other releases are taken")
    return Facts(table)


def held_by_both(
    findings: Sequence[Finding], others: Sequence[Finding], facts: Facts
) -> List[Finding]:
    """Return the findings; those that do not hold with the other of two releases are advice.

    Args:
        findings: What was found with the releases that were taken.
        others: What was found with the others.
        facts: The facts, with the releases that were taken.
    """
    disputed = _others(facts)
    alike = {finding.key for finding in others if finding.verdict == "violated"}
    return [
        finding
        if finding.verdict != "violated" or finding.severity == "advice" or finding.key in alike
        else _of_one(finding, disputed)
        for finding in findings
    ]


def _of_one(finding: Finding, disputed: Mapping[str, str]) -> Finding:
    about = [name for name in (*finding.packages, finding.component) if name in disputed]
    names = list(dict.fromkeys(about or disputed))[:_NAMED]
    others = " and ".join(f"{name} {disputed[name]}" for name in names)
    return finding._replace(
        severity="advice",
        message=f"{finding.message.rstrip('.')}; but the report tells of {others}, too, with which "
        "it is not so.",
    )
