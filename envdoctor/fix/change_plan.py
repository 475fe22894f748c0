"""A plan of changes as steps, as text, as JSON and as a shell script.

The script and ``--apply`` take the same steps.
"""

from __future__ import annotations

import json
from shlex import quote
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from ..model.calls import InstallerCall
from ..model.change import OF_PACKAGES, Change, Plan
from ..model.finding import Finding
from ..model.line import TextLine
from ..rules.installable import INDEX_OF_TORCH

__all__ = ["Step", "plan_json", "plan_lines", "script_text", "steps_of"]

SCHEMA_VERSION = 1
_KINDS = {
    "build": "another build",
    "upgrade": "upgrade",
    "downgrade": "downgrade",
    "install": "new",
    "remove": "remove",
    "pin": "pin",
    "reinstall": "installed anew",
}
_SHOWN = 40


class Step(NamedTuple):
    """One run of the installer. ``requirements`` are names for "uninstall".

    ``wheels``: names of shell variables that hold a wheel's address.
    """

    action: str  # "uninstall" or "install"
    requirements: Tuple[str, ...]
    indexes: Tuple[str, ...] = ()
    no_deps: bool = False
    no_build_isolation: bool = False
    anew: bool = False
    wheels: Tuple[str, ...] = ()
    why: str = ""

    def call(self, tool: str, python: str) -> InstallerCall:
        """Return the call of ``uv`` (its path), or of the environment's pip where that is empty."""
        options = (
            *(("--no-deps",) if self.no_deps else ()),
            *(("--no-build-isolation",) if self.no_build_isolation else ()),
            *(("--force-reinstall",) if self.anew else ()),
        )
        return InstallerCall(
            self.action, self.requirements, options, self.indexes, python=python, uv=tool
        )


def steps_of(plan: Plan) -> List[Step]:
    """Return what has to be run, in this order.

    What goes, and what is replaced by another build under the same version, which installers take
    for the same; then everything at once; then what is compiled against it; then what contradicts
    metadata, which an installer would refuse beside the rest.
    """
    gone = tuple(
        change.name for change in plan.changes if change.after is None or change.kind == "build"
    )
    moved = [change for change in plan.changes if change.after is not None]
    plain, built, fetched, anew = (
        [change for change in moved if _way_of(change, plan) == way]
        for way in ("plain", "built", "fetched", "anew")
    )
    steps = [
        Step(
            "uninstall",
            gone,
            why="what goes, and what is replaced by another build of the same version",
        ),
        Step("install", tuple(change.requirement for change in plain), _indexes(plain)),
        Step(
            "install",
            tuple(change.requirement for change in anew),
            _indexes(anew),
            no_deps=True,
            anew=True,
            why="files that are missing or damaged",
        ),
        Step(
            "install",
            tuple(change.requirement for change in built),
            no_build_isolation=True,
            why="compiled against what is installed now",
        ),
        Step(
            "install",
            (),
            no_deps=True,
            wheels=tuple(map(_variable, fetched)),
            why="wheels that no index has",
        ),
        Step(
            "install",
            _overriding_pins(plan),
            no_deps=True,
            why="contradicts metadata on purpose, so it comes last and alone",
        ),
    ]
    return [step for step in steps if step.requirements or step.wheels]


def _way_of(change: Change, plan: Plan) -> str:
    """Tell how a release gets in: with the others, built, fetched as a wheel, or last and alone."""
    if change.kind == "reinstall":
        return "anew"
    if change.index_name == "github":
        return "fetched"
    if any(override.name == change.name for override in plan.overrides):
        return "last"
    return "built" if change.from_source else "plain"


def _overriding_pins(plan: Plan) -> Tuple[str, ...]:
    """Return the pins that contradict metadata and that this plan moves.

    All of them where a package moves whose requirement is overridden: its installation may undo
    any of them.
    """
    moved = {change.name for change in plan.changes if change.after is not None}
    every = any(override.requirer in moved for override in plan.overrides)
    versions = {override.name: override.version for override in plan.overrides}
    return tuple(
        f"{name}=={version}" for name, version in versions.items() if every or name in moved
    )


def _variable(change: Change) -> str:
    return change.name.upper().replace("-", "_").replace(".", "_") + "_WHEEL"


def _indexes(changes: List[Change]) -> Tuple[str, ...]:
    variants = {
        (change.after or "").partition("+")[2]
        for change in changes
        if change.index_name == "pytorch"
    }
    return tuple(f"{INDEX_OF_TORCH}{variant}" for variant in sorted(variants) if variant)


# --------------------------------------------------------------------------------------------------
# text


def plan_lines(plan: Plan) -> List[TextLine]:
    """Return a plan for people: what changes and why, what stays wrong, what else would help."""
    if not plan.errors and not plan.changes:
        verdict = "no problem found" if plan.goal == "healthy" else "nothing fails"
        text = f"nothing to change: {verdict} ({plan.target})"
        return [TextLine(text, "title"), *_left_alone(plan)]
    return [
        *_changed(plan),
        *_contradicted(plan),
        *[TextLine(text, "warning", 2, "breaks:") for text in plan.broken],
        *[
            TextLine(f"set {name}={value}", "command", 2)
            for name, value in sorted(plan.settings.items())
        ],
        *_still_wrong(plan),
        *_left_alone(plan),
        *_other_ways(plan),
    ]


def _changed(plan: Plan) -> List[TextLine]:
    """Return what changes and what that cures."""
    if not plan.changes:
        return [TextLine(f"no change of packages was found that helps ({plan.target})", "title")]
    count = len(plan.changes)
    known = {finding.key for finding in plan.errors}
    cured = len(known - {finding.key for finding in plan.remaining})
    noun = "error" if all(f.severity == "error" for f in plan.errors) else "problem"
    text = (
        f"{_counted(count, 'change')} {_s(count, 'cures', 'cure')} {cured} of "
        f"{_counted(len(known), noun)} ({plan.target})"
    )
    lines = [TextLine(text, "title")]
    cited: Set[str] = set()
    for change in plan.changes[:_SHOWN]:
        lines.append(TextLine(_change_line(change), "change", 2))
        reason, *sources = _reason_lines(change) or [""]
        lines += [TextLine(reason, "item", 6)] if reason else []
        lines += [TextLine(source, "dim", 6) for source in sources if source not in cited]
        cited.update(sources)
    if count > _SHOWN:
        lines.append(TextLine(f"and {count - _SHOWN} more (--format json has all)", indent=2))
    return lines


def _contradicted(plan: Plan) -> List[TextLine]:
    """Return the metadata that the new pins contradict."""
    return [
        TextLine(
            f"{override.requirer} {override.requirer_version}, which asks for "
            f"{override.name}{override.specifier} [{override.row}]",
            "warning",
            2,
            "contradicts",
        )
        for override in plan.overrides
    ]


def _still_wrong(plan: Plan) -> List[TextLine]:
    lines = []
    for title, findings in _left(plan):
        lines.append(TextLine(f"{title}:", "title"))
        for finding in findings:
            lines.append(TextLine(_line(finding.message), "warning", 2, finding.code))
            lines += [
                TextLine(f"-> {_line(remedy.text)}", indent=6) for remedy in finding.remedies[:2]
            ]
    return lines


def _other_ways(plan: Plan) -> List[TextLine]:
    """Return what else would help, and what the plan takes for granted."""
    lines = []
    if plan.alternatives:
        lines.append(TextLine("other ways:", "title"))
        lines += [TextLine(f"- {text}", indent=2) for text in plan.alternatives]
    if plan.presumed:
        lines.append(TextLine(f"presumed: {'; '.join(plan.presumed)}", "dim"))
    return lines


def _left_alone(plan: Plan) -> List[TextLine]:
    """Say how many warnings the goal leaves alone."""
    if not plan.left:
        return []
    remain = _s(plan.left, "remains", "remain")
    text = (
        f"{_counted(plan.left, 'warning')} {remain} (nothing is certain to fail); "
        f"--to healthy cures {_s(plan.left, 'it', 'them')} too, if changing packages can"
    )
    return [TextLine(text, "dim")]


def _left(plan: Plan) -> List[Tuple[str, List[Finding]]]:
    """What stays wrong: that which packages have no part in, and that for which no better set was
    found.
    """
    about = [finding for finding in plan.remaining if finding.code.startswith(OF_PACKAGES)]
    others = [finding for finding in plan.remaining if finding not in about]
    titled = (
        ("not cured by packages", others),
        ("about packages, and no set was found that cures it", about),
    )
    return [(title, findings) for title, findings in titled if findings]


def _change_line(change: Change) -> str:
    source = (
        ", built from source"
        if change.from_source
        else ""
        if change.index_name == "pypi"
        else f", from the index {change.index_name}"
    )
    after = "removed" if change.after is None else change.after or "any release"
    arrow = f"{change.before} -> {after}"
    if change.before is None or change.kind == "reinstall":
        arrow = after
    return f"{change.name} {arrow} ({_KINDS.get(change.kind, change.kind)}{source})"


def _reason_lines(change: Change) -> List[str]:
    reason = change.reason
    if not reason.text:
        return []
    first = _line(reason.text) + (f" [{reason.row}]" if reason.row else "")
    return [first, *(f"source: {_line(source.address)}" for source in reason.sources[:1])]


def _line(text: str) -> str:
    return " ".join(text.split())


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _s(number: int, one: str, many: str) -> str:
    return one if number == 1 else many


# --------------------------------------------------------------------------------------------------
# JSON


def plan_json(plan: Plan, version: str) -> str:
    """Return a plan as JSON text."""
    table: Dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "envdoctor": version,
        "matrix": plan.matrix_date,
        "target": plan.target,
        "goal": plan.goal,
        "python": plan.python,
        "changes": [_change_json(change) for change in plan.changes],
        "overrides": [
            {
                "requirer": entry.requirer,
                "name": entry.name,
                "specifier": entry.specifier,
                "version": entry.version,
                "row": entry.row,
            }
            for entry in plan.overrides
        ],
        "settings": dict(sorted(plan.settings.items())),
        "broken": list(plan.broken),
        "errors": [_finding_json(finding) for finding in plan.errors],
        "not_cured": [_finding_json(finding) for finding in plan.remaining],
        "warnings_left": plan.left,
        "alternatives": list(plan.alternatives),
        "presumed": list(plan.presumed),
        "steps": [
            {key: value for key, value in step._asdict().items() if value}
            for step in steps_of(plan)
        ],
    }
    return json.dumps(table, indent=2, ensure_ascii=False) + "\n"


def _change_json(change: Change) -> Dict[str, Any]:
    return {
        "name": change.name,
        "before": change.before,
        "after": change.after,
        "is_range": change.is_range,
        "kind": change.kind,
        "index": change.index_name,
        "top": change.top,
        "from_source": change.from_source,
        "reason": {
            "text": change.reason.text,
            "row": change.reason.row,
            "sources": [source.address for source in change.reason.sources],
        },
    }


def _finding_json(finding: Finding) -> Dict[str, Any]:
    return {
        "key": finding.key,
        "code": finding.code,
        "component": finding.component,
        "severity": finding.severity,
        "effect": finding.effect,
        "message": finding.message,
        "remedies": [remedy.text for remedy in finding.remedies],
    }


# --------------------------------------------------------------------------------------------------
# script


def script_text(plan: Plan, version: str, python: Optional[str]) -> str:
    """Return a plan as a POSIX shell script that uses uv where it is there, and else pip.

    Args:
        plan: the plan.
        version: version of envdoctor, for the header.
        python: interpreter of the environment; without one the script takes the first on PATH.
    """
    lines = [
        "#!/bin/sh",
        (
            f"# written by envdoctor {version} with the matrix of {plan.matrix_date}, for: "
            f"{_line(plan.target)}"
        ),
        "set -eu",
    ]
    for change in plan.changes:
        lines.append(f"# {_change_line(change)}")
        lines += [f"#   {line}" for line in _reason_lines(change)]
    lines += [f"# breaks: {_line(text)}" for text in plan.broken]
    lines += [
        f"# {title}: {finding.code} {_line(finding.message)}"
        for title, findings in _left(plan)
        for finding in findings
    ]
    lines += [f"# set {name}={value}" for name, value in sorted(plan.settings.items())]
    steps = steps_of(plan)
    if not steps:
        return "\n".join([*lines, "# nothing to change"]) + "\n"
    lines += ["", f'PYTHON="${{PYTHON:-{_in_quotes(python or "python3")}}}"']
    for step in steps:
        lines += [
            f': "${{{name}:?set it to the address of the wheel that the comment above names}}"'
            for name in step.wheels
        ]
    lines += [
        "if command -v uv >/dev/null 2>&1; then",
        *(f"    {_shell(step, 'uv')}" for step in steps),
    ]
    lines += ["else", *(f"    {_shell(step, '')}" for step in steps), "fi"]
    return "\n".join(lines) + "\n"


def _in_quotes(text: str) -> str:
    """Escape what a shell would expand within double quotes."""
    return "".join("\\" + letter if letter in '\\"$`}' else letter for letter in text)


def _shell(step: Step, tool: str) -> str:
    words = [
        '"$PYTHON"' if word == "$PYTHON" else quote(word)
        for word in step.call(tool, "$PYTHON").words()
    ]
    return " ".join([*words, *(f'"${name}"' for name in step.wheels)]) + (
        f"  # {step.why}" if step.why else ""
    )
