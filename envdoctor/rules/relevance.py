"""What a pasted text is about, and what stands beside it.

Where a text shows what failed, a warning of a table about packages that take no part in it (they
are in no traceback, and nothing that failed names them) says something true that nobody asked: it
is advice then. So is a warning about the machine where the cause is known. What is only advice in a
text of somebody else's machine says what was seen and changes nothing there: no remedy goes with
it. Errors stay, and so does what a finding of the failure explains. Of an engine that is installed
and not run, where another one is, errors are advice as well: it is there for its kernels.
"""

from __future__ import annotations

from ..model.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import FrozenSet, List, Sequence, Set

    from ..model.finding import Finding

__all__ = ["Reported", "set_apart"]

#: Engines that serve, of which one is run and another may be installed for what it holds.
_ENGINES = frozenset(["lmdeploy", "sglang", "tensorrt-llm", "vllm"])


class Reported(NamedTuple):
    """What a text shows: the keys of the findings of what failed, the packages that take part in
    that, whether the cause is known, and the engines that are run.
    """

    keys: FrozenSet[str] = frozenset()
    packages: FrozenSet[str] = frozenset()
    is_explained: bool = False
    run: FrozenSet[str] = frozenset()


def set_apart(findings: Sequence[Finding], reported: Reported) -> List[Finding]:
    """Return the findings of a pasted text, as advice those beside what failed, and advice without
    remedies.
    """
    return [_bare(_placed(finding, reported)) for finding in findings]


def _placed(finding: Finding, reported: Reported) -> Finding:
    if finding.verdict != "violated" or finding.severity == "advice":
        return finding
    if not reported.keys.isdisjoint((finding.key, finding.caused_by)):
        return finding
    about = {finding.component, *finding.packages}
    if _is_idle(about, reported) or not _takes_part(finding, about, reported):
        return finding._replace(severity="advice")
    return finding


def _is_idle(about: Set[str], reported: Reported) -> bool:
    """Tell whether packages are an engine that is not run, and what it is held against."""
    engines = _ENGINES & about
    runs = _ENGINES & reported.run
    return bool(engines and runs) and engines.isdisjoint(runs | reported.packages)


def _takes_part(finding: Finding, about: Set[str], reported: Reported) -> bool:
    if finding.severity == "error" or not reported.keys:
        return True
    if finding.packages:
        return not reported.packages.isdisjoint(about)
    return not reported.is_explained


def _bare(finding: Finding) -> Finding:
    if finding.severity != "advice" or not finding.remedies:
        return finding
    return finding._replace(remedies=())
