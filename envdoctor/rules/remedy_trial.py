"""Remedies held against the environment that they would leave behind: one that brings an error of
its own is said with that error, behind the others.
"""

from __future__ import annotations

from ..model.calls import InstallerCall
from ..model.evidence import Evidence, Known
from ..model.requirement import try_requirement
from ..model.versions import InvalidSpecifier, VersionSet, try_version
from .requirement_lines import meets, served_here

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
        findings: What was found. The remedies of errors and warnings are judged; what those of
            any finding install has to have a release for the Python that is there.
        facts: What was judged.
        matrix: What is known of releases.
        judge: Judges other facts in the same way.
    """
    known = {finding.key for finding in findings}
    tried = []
    left = _MOST
    for finding in findings:
        is_judged = finding.severity != "advice" and finding.verdict == "violated" and left > 0
        left -= len(finding.remedies) if is_judged else 0
        fitting: List[Remedy] = []
        others: List[Remedy] = []
        for remedy in finding.remedies:
            objection = _refused_by(remedy, facts, matrix)
            if not objection and is_judged:
                objection = _brought_by(remedy, known, facts, matrix, judge)
            if objection:
                text = f"{remedy.text.rstrip('.')}; {objection}"
                others.append(remedy._replace(text=text, commands=()))
            else:
                fitting.append(remedy)
        tried.append(finding._replace(remedies=(*fitting, *others)) if others else finding)
    return tried


def _brought_by(
    remedy: Remedy,
    known: Set[str],
    facts: Facts,
    matrix: Any,
    judge: Callable[[Facts], Sequence[Finding]],
) -> str:
    """Return in words the first thing that fails after a remedy and does not now; "" for
    nothing.
    """
    changed = _changed(remedy, facts, matrix)
    if not changed:
        return ""
    before = facts.value("distributions", {})
    evidence = facts.evidence("distributions") or Evidence("report")
    after = facts.updated({"distributions": Known({**before, **changed}, evidence)})
    for finding in judge(after):
        about = {finding.component, *finding.packages}
        is_new = finding.verdict == "violated" and finding.key not in known
        if is_new and not about.isdisjoint(changed) and _fails(finding):
            return f"then, though: {finding.message}"
    return ""


def _refused_by(remedy: Remedy, facts: Facts, matrix: Any) -> str:
    """Return in words what a remedy installs of which every known release refuses this Python, by
    its Requires-Python; "" where one can be installed, none is known, or another Python comes
    along.
    """
    python = try_version(facts.value("python.version"))
    calls = [call for call in remedy.commands if isinstance(call, InstallerCall)]
    if python is None or len(calls) < len(remedy.commands):
        return ""
    for call in calls:
        for line in call.packages if call.action == "install" else ():
            requirement = try_requirement(line)
            if requirement is None or not requirement.specifier:
                continue
            package = matrix.package(requirement.name)
            wanted = [
                served_here(package.release(version), facts).requires_python
                for version in _admitted(package, requirement.specifier)
            ]
            if wanted and all(asked and meets(python, asked) is False for asked in wanted):
                release = f"{requirement.name} {requirement.specifier}"
                return f"no known release of {release} is for Python {python}, though."
    return ""


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
    fitting, here = _admitted(matrix.package(name), specifier), try_version(version)
    newer = [entry for entry in fitting if here is None or entry >= here]
    return newer[0] if newer else fitting[-1] if fitting else None


def _admitted(package: Any, specifier: str) -> List[Version]:
    """Return the known final releases of a package in a range, oldest first."""
    try:
        admitted = VersionSet.parse(specifier)
    except InvalidSpecifier:
        return []
    releases: Tuple[Version, ...] = tuple(package.versions) if package is not None else ()
    return [entry for entry in releases if entry in admitted and not entry.is_prerelease]
