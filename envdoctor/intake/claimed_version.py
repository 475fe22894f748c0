"""Versions as people write them: ``0.7.3 (PyPI)``, ``>=0.16.0``, ``0.16.0+``, ``2.x``."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

from ..model.versions import try_version
from . import worded_ranges

__all__ = ["MORE", "ClaimedVersion", "claimed_version"]

_NUMBER = r"\d+(?:\.\d+)+(?:[a-zA-Z0-9.]*)(?:\+[A-Za-z0-9.]*)?"
_VERSION = re.compile(rf"v?({_NUMBER}|\d+\.\w+)")
MORE = re.compile(rf"{worded_ranges.MORE}(?:$|[\s,;)])")
_LESS = re.compile(rf"{worded_ranges.LESS}")
_RANGE = re.compile(r"(?:(?:>=|<=|==|~=|!=|<|>)\s*v?\d[\w.+*]*\s*,?\s*)+")


class ClaimedVersion(NamedTuple):
    """What a text says of a version: the version itself, or the range that it leaves."""

    version: Optional[str] = None
    constraint: str = ""


def claimed_version(text: str) -> Optional[ClaimedVersion]:
    """Read ``0.7.3 (PyPI)``, ``>=0.16.0``, ``0.16.0+`` or ``2.x`` at the start of a text."""
    text = text.strip().strip("\"'")
    match = _RANGE.match(text)
    if match:
        constraint = re.sub(r"\s+|(?<=[<>=~!])v", "", match.group()).strip(",")
        exact = re.fullmatch(r"==([0-9][\w.+]*)", constraint)
        return ClaimedVersion(exact.group(1)) if exact else ClaimedVersion(None, constraint)
    match = _VERSION.match(text)
    if match is None:
        return None
    version, rest = match.group(1).rstrip("."), text[match.end() :]
    wild = re.fullmatch(r"(\d+(?:\.\d+)*)\.[xX]{1,2}", version)
    if wild:
        return ClaimedVersion(None, f"=={wild.group(1)}.*")
    if version.endswith("+"):
        version, rest = version[:-1], "+" + rest
    if try_version(version) is None:
        return None
    if MORE.match(rest):
        return ClaimedVersion(None, f">={version}")
    if _LESS.match(rest):
        return ClaimedVersion(None, f"<={version}")
    return ClaimedVersion(version)
