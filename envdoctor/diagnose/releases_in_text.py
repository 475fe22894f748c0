"""A line that finds no release in a range, beside what the text tells of that package: a release in
the range was installed where the program does not look, one outside it is the one that was found.
"""

from __future__ import annotations

import re
from typing import Dict, Iterator, Optional, Sequence

from ..model.finding import Remedy
from ..model.requirement import Requirement, try_requirement
from ..model.versions import try_version
from ..rules.requirement_lines import meets
from ..rules.rule import Context
from .logged_run import LoggedRun
from .trace_draft import TraceDraft, groups_of

__all__ = ["tell_releases_in_text"]

_LONGEST = 200_000  # characters of a text that are searched
#: Signatures of lines that give a range, and what was found of it, if anything.
_SIGNATURES = ("require-version", "distribution-unmet", "pkg-resources-conflict")
_BETWEEN = (
    r"(?:[ =:`'\"(]{1,4}|\s+(?:latest |newest |current )?(?:version |release )?(?:is |of )?v?)"
)
_VERSION = r"(?P<version>\d{1,4}(?:\.\w{1,12}){1,5}(?:\+[\w.]{1,20})?)"


def tell_releases_in_text(drafts: Sequence[TraceDraft], run: LoggedRun) -> None:
    """Say which other release of a package the text tells than the one that a line found."""
    for draft in drafts:
        if not draft.is_made_by(*_SIGNATURES) or not draft.events:
            continue
        groups = groups_of(draft.events[0], run.modules)
        needs = try_requirement(groups.get("needs", ""))
        if needs is None or not needs.specifier:
            continue
        other = next(_others(needs, groups, run.context, run.report, draft), None)
        if other is not None:
            _tell(draft, needs, groups, other)


def _others(
    needs: Requirement,
    groups: Dict[str, str],
    context: Context,
    report: str,
    draft: TraceDraft,
) -> Iterator[str]:
    """Yield the releases of a package that a text tells, other than the one that the line found."""
    seen = groups.get("found", "").split(" ")[-1]
    own = {event.first.number for event in draft.events}
    disputed = context.facts.value("report.disputed", {})
    known = (context.facts.version_of(needs.name), disputed.get(needs.name))
    name = "[-_.]".join(map(re.escape, needs.name.split("-")))
    spoken = re.compile(
        rf"(?<![A-Za-z0-9./_-]){name}{_BETWEEN}{_VERSION}(?![A-Za-z0-9/_])", re.IGNORECASE
    )
    lines = report[:_LONGEST].split("\n")
    in_text = [
        match.group("version").rstrip(".")
        for number, line in enumerate(lines, 1)
        if number not in own and "is required" not in line
        for match in spoken.finditer(line)
    ]
    for version in (*known, *in_text):
        if version and try_version(version) is not None and not _is_same(version, seen):
            yield version


def _is_same(version: str, other: str) -> bool:
    return try_version(version) == try_version(other)


def _tell(draft: TraceDraft, needs: Requirement, groups: Dict[str, str], other: str) -> None:
    version = try_version(other)
    is_met: Optional[bool] = meets(version, needs.specifier) if version is not None else None
    seen = groups.get("found", "").split(" ")[-1]
    message = draft.finding.message.rstrip(".")
    if is_met:
        copy = f"another copy, {seen}," if seen else "none"
        draft.finding = draft.finding._replace(
            message=f"{message}. The text tells of {needs.name} {other}, which is in that range: "
            f"the interpreter of this run finds {copy} where it looks.",
            remedies=(_which(needs),),
        )
    elif is_met is False and not seen:
        draft.finding = draft.finding._replace(
            message=f"{message}. {needs.name} {other}, of which the text tells, does not."
        )


def _which(needs: Requirement) -> Remedy:
    module = needs.name.replace("-", "_")
    return Remedy(
        f"Do not install it once more: find the copy that this interpreter imports (python -c "
        f"'import sys, {module}; print(sys.executable, {module}.__file__)' with the interpreter "
        f"and in the folder of the run; python -m pip list -v names each place), and remove that "
        "copy or its metadata, or start the program with the interpreter that has the other one."
    )
