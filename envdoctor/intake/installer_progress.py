"""What an installer tells of its work, package by package: Poetry's operations and PDM's, and what
pip, uv and people say that they could not install.

Poetry prints ``- Installing torch (2.5.1)`` as it begins and, where it failed on a terminal, the
line again with ``: Failed`` (poetry 2.5.1 installation/executor.py, get_operation_message); PDM
prints ``✖ Install torch 2.5.1 failed`` (pdm 2.29.4 installers/synchronizers.py). "Install torch
2.5.1" without an outcome is what somebody says to do.
"""

from __future__ import annotations

import re
from typing import Optional

from ..model.requirement import try_requirement
from .clean_text import Line
from .distribution_names import COMMON_WORDS, known_distribution
from .draft import INTENT, LABEL, Draft
from .marked import Marked

__all__ = ["is_change", "is_operation", "read_failure", "read_progress"]

_NAME = r"(?P<name>[A-Za-z][\w.-]{0,80})(?:\[[\w,-]{1,80}\])?"
_VERSION = r"(?P<version>\d[\w.+!]{0,60})(?: [^\s()>]{7,40})?(?: -> (?P<new>\d[\w.+!]{0,60}))?"
_POETRY = re.compile(
    rf"\W{{0,6}}(?P<verb>Install|Updat|Downgrad|Remov)ing {_NAME} \({_VERSION}\)"
    r"(?:: ?(?P<outcome>[A-Z].{0,120}))?$"
)
_PDM = re.compile(
    rf"\W{{0,6}}(?P<verb>Install|Update|Remove) {_NAME} {_VERSION} (?P<outcome>successful|failed)$"
)
#: What uv ends with, one line for each change (its crates/uv/src/commands/pip/operations.rs).
_UV = re.compile(
    rf" {{0,2}}(?P<sign>[+~-]) {_NAME}=={_VERSION}"
    r"(?: \(from [^)]{1,300}\))?$"
)
_FAILED = ("Failed", "Cancelled", "failed")
#: What pip found no file of, by its own name whatever that is.
_UNMATCHED = re.compile(
    r"(?:No matching distribution found for|that satisfies the requirement) ([A-Za-z][^\s(;]{1,80})"
)
#: What could not be fetched, built or installed, and the names behind: pip 25.0
#: (wheel_builder.py, commands/install.py), uv 0.5 (uv-requirements, uv-installer), people.
_NOT_DONE = re.compile(
    r"(?:[Ff]ailed to (?:download and build|download|fetch|build|compile|(?:re)?install)"
    r"|[Ff]ailed building wheel for|[Cc]ould not build wheels for"
    r"|(?:[Uu]nable to|[Cc]ould ?n[o']t|[Cc]an(?:not|'t)|[Cc]an not) (?:\w+ly )?"
    r"(?:install|build|compile|download)"
    r"|[Ii]nstall(?:ation|ing)(?: of)?(?=[^.;]{1,60} fail(?:s|ed)\b)|\u65e0\u6cd5\u5b89\u88c5"
    r"|\u5b89\u88c5(?=[^.;\u3002\uff0c]{1,40}\u5931\u8d25))"
    r"(?: installable wheels for some pyproject\.toml based projects)?[ :`'(]{0,4}(?=(.{1,300}))"
    r"|(?:^|[.;,] )([A-Za-z][\w.-]{1,40}) (?:fails? to (?:install|build)\b"
    r"|(?:wheel )?(?:installation|install|build) (?:has |always |keeps )?fail(?:s|ed|ing)\b)"
)
_NAMES = re.compile(r"[\s,`'()\u300c\u300d]+(?:and |the |package )?")
_INSTALLERS = ("pip", "uv", "conda")
_BEHIND_NAME = re.compile(r"[=<>~!\[.:]")
_SAYS_UNMATCHED = re.compile("matching|satisfies")
_MAY_FAIL = Marked(
    "fail, not, n't, unable, 无法, 失败",
    r"(?i:fail|not|n't|unable)|\u65e0\u6cd5|\u5931\u8d25",
    0,
)
#: A line that is the installer's: nothing else in it states anything.
_BEGINS = re.compile(r"\W*(?:ERROR: |error: )?(?:Failed |Could not build )")


def is_change(line: Line) -> bool:
    """Tell whether a line is one of those that uv ends with, or would end with."""
    return _UV.match(line.raw.rstrip()) is not None


def is_operation(line: Line) -> bool:
    """Tell whether a line is an operation of Poetry's or PDM's, whose marks say how it ended."""
    return _operation_of(line) is not None


def _operation_of(line: Line) -> Optional[re.Match[str]]:
    return _POETRY.match(line.text) or _PDM.match(line.text)


def read_progress(line: Line, draft: Draft) -> bool:
    """Read one operation: what was installed is there, what failed is not."""
    change = _UV.match(line.raw.rstrip())
    if change is not None:
        name, version = change.group("name"), change.group("version")
        if change.group("sign") == "-":
            draft.withdraw(name, version)
        else:
            draft.installed(name, version, line)
        return True
    match = _operation_of(line)
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


def read_failure(line: Line, draft: Draft) -> bool:
    """Read what could not be installed: it is not there, whatever release was asked for."""
    unmatched = _UNMATCHED.search(line.text) if _SAYS_UNMATCHED.search(line.text) else None
    if unmatched is not None:
        return _put_missing(unmatched.group(1).rstrip("."), line, draft)
    if not _MAY_FAIL.search(line.text):
        return False
    understood = False
    for match in list(_NOT_DONE.finditer(line.text))[:5]:
        for word in filter(None, _NAMES.split(match.group(1) or match.group(2))[:20]):
            known = known_distribution(_BEHIND_NAME.split(word)[0])
            if known is None and "==" not in word:
                break  # the rest of a sentence
            is_named = known not in (*COMMON_WORDS, *_INSTALLERS)
            understood |= is_named and _put_missing(word.rstrip(".:"), line, draft)
    return understood and _BEGINS.match(line.text) is not None


def _put_missing(requirement_line: str, line: Line, draft: Draft) -> bool:
    requirement = try_requirement(requirement_line)
    if requirement is None:
        return False
    draft.no_distribution(requirement.name, line)
    if requirement.exact is not None:
        draft.distribution(requirement.name, requirement.exact, line, INTENT)
    return True
