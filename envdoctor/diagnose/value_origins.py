"""Where a value of a message was set: the option, argument or line of a configuration, printed in
the same log, that has it.

A message quotes what a program was given (a name, a path, a number) and seldom says by what. The
same value under a name, in words of a command, of a printed ``Namespace(…)``, of a dict, of YAML or
JSON, says it. What stands under many names is of none.
"""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, Optional, Tuple

from ..intake.log_line import SHOWN
from ..intake.presence import is_advised
from ..model.log import Raised
from ..model.pattern import pattern
from ..model.record import NamedTuple
from ..model.redaction import redact

__all__ = ["Origin", "value_origins"]

_QUOTED = pattern(r"(?<![\w'\"])(?P<quote>['\"`])(?P<value>[^'\"`\n]{3,200})(?P=quote)(?![\w'\"])")
_NUMBER = pattern(r"(?<![\w.:/#-])(?:\d{3,9}|\d{1,3}(?:,\d{3})+)(?![\w:/%]|[.,]\d)")
_MOST_QUOTED = 6
_MOST_VALUES = 12  # of a message
_MOST_NAMES = 2
_MOST_TRIED = 200  # places of one value
#: What stands before a value that a name is given, in each of the forms.
_NAMED = pattern(
    r"(?:^|[\s{(,;\[])(?:--?(?P<option>[A-Za-z][\w-]{1,60})(?:=|\s{1,4})['\"]?"
    r"|(?P<quote>['\"]?)(?P<name>[A-Za-z_][\w.-]{1,80})(?P=quote)\s{0,20}[=:]\s{0,20}['\"]?)\Z"
)
_BEHIND = pattern(r"\A['\"]?(?:[\s,;)}\]]|\Z)")
#: Names that say nothing of what a value is to the run, and counts that go by chance.
_NO_SETTING = pattern(
    r"file|line|error|message|key|kind|name|value|type|id|level|module|function|in|at|to|of|is"
    r"|(?:global_)?steps?|iter(?:ation)?|epoch|time|pid|port|rank|seed|total|count|elapsed|loss|lr"
    r"|length|size|raise|return|exception|info|warning"
)
_WHOLE = re.compile(r"[A-Za-z]")


class Origin(NamedTuple):
    """A value of a message, the names that have it, and the first line with one: its number and
    text.
    """

    value: str
    names: Tuple[str, ...]
    line: int
    text: str


def value_origins(raised: Raised, report: str) -> List[Origin]:
    """Return for the values of an exception's message what was given them above its traceback."""
    above = _above(report, raised)
    origins = []
    for value in _values(raised):
        names = _names(value, "\n".join(above))
        if names and len(names) <= _MOST_NAMES:
            line = min(names.values())
            text = redact(above[line - 1].strip())[:SHOWN]
            origins.append(Origin(value, tuple(names), line, text))
    return origins


def _above(report: str, raised: Raised) -> List[str]:
    """Return the lines of a log above a traceback, as far as they were kept."""
    return report.split("\n")[: max(raised.first.number - 1, 0)]


def _values(raised: Raised) -> Iterator[str]:
    message = raised.message.partition("\n")[0]
    quoted = [match.group("value") for match in _QUOTED.finditer(message)]
    if len(quoted) > _MOST_QUOTED:
        return  # a whole command, or a list of all that there is
    values = [value for value in quoted if _WHOLE.search(value) and "\\" not in value]
    if raised.kind.rpartition(".")[2] not in ("KeyError", "FileNotFoundError"):
        # A single word is mostly one of the language: a type, an attribute, a codec.
        values = [value for value in values if not value.isidentifier() or value.count("_")]
    numbers = [match.group().replace(",", "") for match in _NUMBER.finditer(message)]
    yield from dict.fromkeys((*values, *numbers)[:_MOST_VALUES])


def _names(value: str, text: str) -> Dict[str, int]:
    """Return the names under which a value stands, with the numbers of their lines."""
    names: Dict[str, int] = {}
    start = 0
    for _ in range(_MOST_TRIED):
        at = text.find(value, start)
        if at < 0:
            break
        start = at + len(value)
        name = _name(text, at, start)
        if name is not None and not _NO_SETTING.fullmatch(name.rpartition(".")[2].lower()):
            same = next((known for known in names if _same(known, name)), name)
            names.setdefault(same, text.count("\n", 0, at) + 1)
    return names


def _same(one: str, other: str) -> bool:
    """Tell whether two names are one, as an option and an argument write it."""
    ends = [name.replace("-", "_").rpartition(".")[2].lower() for name in (one, other)]
    return ends[0] == ends[1]


def _name(text: str, start: int, end: int) -> Optional[str]:
    """Return the name that is given what stands there, None where it is no value of one."""
    line = text[max(text.rfind("\n", 0, start) + 1, start - 160) : start]
    match = _NAMED.search(line)
    if match is None or _BEHIND.match(text[end : end + 2]) is None or is_advised(line):
        return None
    return match.group("option") or match.group("name")
