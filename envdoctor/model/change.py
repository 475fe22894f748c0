"""What ``fix`` proposes: the changes, why each of them, and what they leave open."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional, Tuple

from .finding import Finding
from .resolution import Override, Reason
from .versions import VersionSet, meets_pin, parse_version, try_version

__all__ = ["GOALS", "OF_PACKAGES", "Change", "Plan", "kind_of_change"]

#: Beginnings of the codes about a compiled or contradicting copy, which another release or another
#: build of it may cure.
OF_PACKAGES = ("ED20", "ED3", "ED4")


#: What a plan is for: that nothing fails any more, or that no warning is left either.
GOALS = ("working", "healthy")


class Change(NamedTuple):
    """One distribution that changes.

    ``before`` is None where it is not installed yet, ``after`` where it has to go.

    kind: build (another build of the same version), upgrade, downgrade, install, remove, pin,
    reinstall (the same files anew). top: nothing else that is installed asks for it. is_range:
    ``after`` is a range (">=2,<4", "" for any), because no release of it is known here.
    """

    name: str
    before: Optional[str]
    after: Optional[str]
    kind: str
    reason: Reason
    index_name: str = "pypi"
    top: bool = False
    from_source: bool = False
    is_range: bool = False

    @property
    def requirement(self) -> str:
        """What an installer is told; only the name of what goes."""
        if self.after is None:
            return self.name
        return f"{self.name}{self.after}" if self.is_range else f"{self.name}=={self.after}"

    def is_met(self, installed: Optional[str]) -> bool:
        """Tell whether this version, None for nothing, is what the change was to bring."""
        if installed is None or self.after is None:
            return installed == self.after
        if not self.is_range:
            return meets_pin(installed, self.after)
        version = try_version(installed)
        return version is not None and version in VersionSet.parse(self.after)


def kind_of_change(before: Optional[str], after: str) -> str:
    """Return the kind of a change; "pin" where what is installed is known by a range only."""
    was, now = try_version(before), parse_version(after)
    if was is None:
        return "install" if before is None else "pin"
    if parse_version(was.public) == parse_version(now.public):
        return "build"
    return "upgrade" if now > was else "downgrade"


class Plan(NamedTuple):
    """The smallest set of changes that cures an environment.

    goal: one of ``GOALS``. errors: what is to be cured. remaining: those of them that no change of
    packages cures, and what the changes bring. left: how many warnings the goal leaves alone.
    broken: requirements of other distributions that the changes break. alternatives: what else
    would help and is never done here: another index, a driver. overrides: metadata that the result
    contradicts on purpose. presumed: what had to be presumed of the target.
    """

    changes: Tuple[Change, ...]
    errors: Tuple[Finding, ...]
    remaining: Tuple[Finding, ...] = ()
    broken: Tuple[str, ...] = ()
    alternatives: Tuple[str, ...] = ()
    overrides: Tuple[Override, ...] = ()
    settings: Mapping[str, str] = {}
    target: str = ""
    python: str = ""
    goal: str = "working"
    left: int = 0
    presumed: Tuple[str, ...] = ()
    matrix_date: str = ""
