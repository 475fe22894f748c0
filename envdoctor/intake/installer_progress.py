"""What an installer tells of its work, package by package: Poetry's operations and PDM's.

Poetry prints ``- Installing torch (2.5.1)`` as it begins and, where it failed, the line again with
``: Failed`` (poetry 2.1 installation/executor.py, _display_operation and get_operation_message);
PDM prints ``✖ Install torch 2.5.1 failed`` (pdm 2.22 installers/manager.py and synchronizers.py).
"""

from __future__ import annotations

import re

from .clean_text import Line
from .draft import LABEL, Draft

__all__ = ["read_progress"]

_OPERATION = re.compile(
    r"\W{0,6}(?P<verb>Install|Updat|Downgrad|Remov|Reinstall)(?:e|ing|es)? "
    r"(?P<name>[A-Za-z][\w.-]{0,80})(?:\[[\w,-]{1,80}\])? "
    r"\(?(?P<version>v?\d[\w.+!]{0,60})(?: [^\s()]{7,40})?(?: ?-> ?(?P<new>\d[\w.+!]{0,60}))?\)?"
    r"(?:: ?(?P<outcome>[A-Z].{0,120})| (?P<end>successful|failed))?$"
)
_FAILED = ("Failed", "Cancelled", "failed")


def read_progress(line: Line, draft: Draft) -> bool:
    """Read one operation: what was installed is there, what failed is not."""
    if not any(verb in line.text for verb in ("nstall", "pdat", "owngrad", "emov")):
        return False
    match = _OPERATION.match(line.text)
    if match is None:
        return False
    name, version = match.group("name"), match.group("version").lstrip("v")
    version = match.group("new") or version
    outcome = match.group("outcome") or match.group("end") or ""
    is_removal, has_failed = match.group("verb") == "Remov", outcome.startswith(_FAILED)
    if is_removal != has_failed:
        draft.withdraw(name, version)
        draft.no_distribution(name, line)
    elif not outcome.startswith("Skipped") or "Already installed" in outcome:
        draft.distribution(name, version, line, LABEL)
    return True
