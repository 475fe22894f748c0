"""Ignore files: findings that someone has accepted, each with a reason and a last day.

One entry per line, ``#`` begins a comment::

    # pattern          until             reason
    ED304:torch        until=2026-12-31  reason="the engine is built from source here"
    cublas-12.1-sigfpe-h20  until=2026-09-30  reason="no H20 in this pool"

The pattern is a code, a row id, or the beginning of a finding's key as ``--verbose`` shows it
(``ED304:torch``). Reason and day are required. After that day the entry hides nothing and the
report names it. Nothing is read
implicitly: ``--ignore-file``, else ``ENVDOCTOR_IGNORE``.
"""

from __future__ import annotations

import re
from typing import List, Tuple

from ..errors import InputError, bounded
from ..model.redaction import redact
from ..model.report import Ignore

__all__ = ["parse_ignores"]

_MEMBER = re.compile(r'\s+([A-Za-z-]+)=("[^"]*"|[^\s"]+)')
_EXAMPLE = 'ED304:torch until=2026-12-31 reason="..."'
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def parse_ignores(text: str, where: str) -> Tuple[Ignore, ...]:
    """Parse the text of an ignore file; raises :class:`InputError` with the faulty lines."""
    entries: List[Ignore] = []
    faults: List[str] = []
    for number, line in enumerate(redact(text).splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                entries.append(_entry(line.strip(), f"{where}:{number}"))
            except ValueError as fault:
                faults.append(f"{where}:{number}: {fault}")
    if faults:
        raise InputError("\n  ".join(bounded(faults)))
    return tuple(entries)


def _entry(line: str, origin: str) -> Ignore:
    pattern = line.split(None, 1)[0]
    members = {}
    position = len(pattern)
    while position < len(line) and not line[position:].lstrip().startswith("#"):
        match = _MEMBER.match(line, position)
        if match is None:
            raise ValueError(
                f"expected an entry such as {_EXAMPLE}, found {line[position:].strip()[:80]!r}"
            )
        name = match.group(1)
        if name not in ("until", "reason") or name in members:
            raise ValueError(
                f"{name}= {'is given twice' if name in members else 'is none of until=, reason='}"
            )
        members[name] = match.group(2).strip('"')
        position = match.end()
    for name in ("until", "reason"):
        if not members.get(name, "").strip():
            raise ValueError(f"{name}= is missing: an entry such as {_EXAMPLE} needs both")
    if not _is_day(members["until"]):
        raise ValueError(f"until={members['until']}: expected a day such as 2026-12-31")
    return Ignore(pattern, members["until"], members["reason"], origin)


def _is_day(text: str) -> bool:
    """Tell whether this is an ISO 8601 day; datetime would cost more than the rest of this file."""
    match = re.fullmatch(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", text)
    return (
        match is not None
        and 1 <= int(match.group(2)) <= 12
        and 1 <= int(match.group(3)) <= _DAYS[int(match.group(2)) - 1]
    )
