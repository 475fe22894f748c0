"""Up to which line of a log its program shows later that it was still at work.

What a loop prints comes again and again in the same form: steps, bars, answers of a server. What
stands above enough of these lines ended nothing. Lines of several processes, and what programs
print of failing, are no such sign.
"""

from __future__ import annotations

import re
from typing import Dict, List

from .log_line import RANK, RAY, cleaned

__all__ = ["at_work_behind"]

_TIMES = 10  # lines of the same form behind a line that ended nothing
_SHORTEST = 4  # letters of a form
_LINE_BYTES = 400
_CHANGING = re.compile(r"[^A-Za-z_]+")
#: Of failing, waiting and clearing up, of tracebacks and of stacks in C++.
_NO_WORK = re.compile(
    r"(?i)(?<!\b0 )(?<!\bno )error|exception|fail|traceback|retr(?:y|ies)|wait|warn|refused|"
    r"time.?out|kill|terminat|signal|abort|closing|shut|exit|unable|cannot|frame #|core dump"
    r"|^\s|^[|+(\[]|^wandb:"
)
_BAR = re.compile(rb"%\|")


def at_work_behind(tail: bytes, number: int) -> int:
    """Return the number of the last line behind which enough lines of one form stand, or 0.

    Args:
        tail: The end of a log.
        number: How many of its lines come before.
    """
    places: Dict[str, List[int]] = {}
    for raw in tail.split(b"\n"):
        number += 1
        for piece in raw.split(b"\r"):
            form = _form(piece)
            if form:
                places.setdefault(form, []).append(number)
    last = (lines[-_TIMES] - 1 for lines in places.values() if len(lines) >= _TIMES)
    return max(last, default=0)


def _form(piece: bytes) -> str:
    """Return what of a line comes again; nothing of one that is no sign of work."""
    if _BAR.search(piece[:200]):
        return "bar"
    text = cleaned(piece[:_LINE_BYTES])
    if _NO_WORK.search(text) or RAY.match(text) or RANK.match(text):
        return ""
    form = _CHANGING.sub(" ", text).strip()
    return form if len(form) >= _SHORTEST else ""
