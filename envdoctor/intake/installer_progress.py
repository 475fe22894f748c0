"""What an installer tells of its work, package by package: Poetry's operations and PDM's.

Poetry prints ``- Installing torch (2.5.1)`` as it begins and, where it failed on a terminal, the
line again with ``: Failed`` (poetry 2.5.1 installation/executor.py, get_operation_message); PDM
prints ``✖ Install torch 2.5.1 failed`` (pdm 2.29.4 installers/synchronizers.py). "Install torch
2.5.1" without an outcome is what somebody says to do.
"""

from __future__ import annotations

import re

from .clean_text import Line
from .draft import LABEL, Draft

__all__ = ["read_progress"]

_NAME = r"(?P<name>[A-Za-z][\w.-]{0,80})(?:\[[\w,-]{1,80}\])?"
_VERSION = r"(?P<version>\d[\w.+!]{0,60})(?: [^\s()>]{7,40})?(?: -> (?P<new>\d[\w.+!]{0,60}))?"
_POETRY = re.compile(
    rf"\W{{0,6}}(?P<verb>Install|Updat|Downgrad|Remov)ing {_NAME} \({_VERSION}\)"
    r"(?:: ?(?P<outcome>[A-Z].{0,120}))?$"
)
_PDM = re.compile(
    rf"\W{{0,6}}(?P<verb>Install|Update|Remove) {_NAME} {_VERSION} (?P<outcome>successful|failed)$"
)
_FAILED = ("Failed", "Cancelled", "failed")


def read_progress(line: Line, draft: Draft) -> bool:
    """Read one operation: what was installed is there, what failed is not."""
    match = _POETRY.match(line.text) or _PDM.match(line.text)
    if match is None:
        return False
    name, version = match.group("name"), match.group("new") or match.group("version")
    outcome = match.group("outcome") or ""
    is_removal, has_failed = match.group("verb").startswith("Remov"), outcome.startswith(_FAILED)
    if is_removal != has_failed:
        draft.withdraw(name, version)
        draft.no_distribution(name, line)
    elif not outcome.startswith("Skipped") or "Already installed" in outcome:
        draft.distribution(name, version, line, LABEL)
    return True
