"""Remedies held against the environment that they would leave behind: one that brings an error of
its own is said with that error, behind the others.
"""

from __future__ import annotations

from ..model.calls import InstallerCall
from ..model.evidence import Evidence, Known
from ..model.requirement import try_requirement
from ..model.versions import InvalidSpecifier, VersionSet, try_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

    from ..model.facts import Distribution, Facts
    from ..model.finding import Finding, Remedy
    from ..model.versions import Version

__all__ = ["tried_remedies"]

_MOST = 12  # remedies of one report that are tried


def tried_remedies(
    findings: Sequence[Finding],
    facts: Facts,
    matrix: Any,
    judge: Callable[[Facts], Sequence[Finding]],
) -> List[Finding]:
    """Return findings whose remedies go with what else is there.

    Args:
        findings: What was found; errors and warnings are looked at.
        facts: What was judged.
        matrix: What is known of releases.
        judge: Judges other facts in the same way.
    """
    known = {finding.key for finding in findings}
    tried = []
    left = _MOST
    for finding in findings:
        if finding.severity != "advice" and finding.verdict == "violated" and left > 0:
            left -= len(finding.remedies)
            finding = _with_tried(finding, known, facts, matrix, judge)
        tried.append(finding)
    return tried


def _with_tried(
    finding: Finding,
    known: Set[str],
    facts: Facts,
    matrix: Any,
    judge: Callable[[Facts], Sequence[Finding]],
) -> Finding:
    fitting: List[Remedy] = []
    others: List[Remedy] = []
    for remedy in finding.remedies:
        brought = _brought_by(remedy, known, facts, matrix, judge)
        if brought is None:
            fitting.append(remedy)
        else:
            text = f"{remedy.text.rstrip('.')}; then, though: {brought.message}"
            others.append(remedy._replace(text=text, commands=()))
    return finding._replace(remedies=(*fitting, *others)) if others else finding


def _brought_by(
    remedy: Remedy,
    known: Set[str],
    facts: Facts,
    matrix: Any,
    judge: Callable[[Facts], Sequence[Finding]],
) -> Optional[Finding]:
    """Return the first thing that fails after a remedy and does not now; None for nothing."""
    changed = _changed(remedy, facts, matrix)
    if not changed:
        return None
    before = facts.value("distributions", {})
    evidence = facts.evidence("distributions") or Evidence("report")
    after = facts.updated({"distributions": Known({**before, **changed}, evidence)})
    for finding in judge(after):
        about = {finding.component, *finding.packages}
        is_new = finding.verdict == "violated" and finding.key not in known
        if is_new and not about.isdisjoint(changed) and _fails(finding):
            return finding
    return None


def _fails(finding: Finding) -> bool:
    """Tell whether a finding is an error, or a requirement that pip would refuse to break."""
    return finding.severity == "error" or finding.code == "ED301"


def _changed(remedy: Remedy, facts: Facts, matrix: Any) -> Dict[str, Distribution]:
    """Return what a remedy installs over what is there, each at the nearest release."""
    before = facts.value("distributions", {})
    changed: Dict[str, Distribution] = {}
    for call in remedy.commands:
        if not isinstance(call, InstallerCall) or call.action != "install":
            continue
        for line in call.packages:
            requirement = try_requirement(line)
            there = before.get(requirement.name) if requirement is not None else None
            if requirement is None or there is None or not requirement.specifier:
                continue
            release = _nearest(matrix, requirement.name, requirement.specifier, there.version)
            if release is not None:
                changed[there.name] = there._replace(
                    version=str(release), requires=None, constraint="", tags=(), build=""
                )
    return changed


def _nearest(matrix: Any, name: str, specifier: str, version: Optional[str]) -> Optional[Version]:
    """Return the release in a range that is the nearest to a version: the next newer one, else the
    next older one.
    """
    package, here = matrix.package(name), try_version(version)
    try:
        admitted = VersionSet.parse(specifier)
    except InvalidSpecifier:
        return None
    releases: Tuple[Version, ...] = tuple(package.versions) if package is not None else ()
    fitting = [entry for entry in releases if entry in admitted and not entry.is_prerelease]
    newer = [entry for entry in fitting if here is None or entry >= here]
    return newer[0] if newer else fitting[-1] if fitting else None
