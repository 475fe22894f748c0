"""TOML as text to tables, for every file that somebody else may have written."""

from __future__ import annotations

import re
import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

__all__ = ["parse_toml"]

#: Parts of a dotted key. The time that Python's parser takes grows with their square.
_MOST_PARTS = 200
_BLANKS = re.compile(r"[ \t]+")
_KEYS = re.compile(r"[^=,{}\[\]\n]+")


def parse_toml(text: str) -> Dict[str, Any]:
    """Return the tables of a document; raises :class:`ValueError` where it is none."""
    tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    plain = _BLANKS.sub("", text)
    if any(match.group().count(".") > _MOST_PARTS for match in _KEYS.finditer(plain)):
        raise ValueError(f"a key has more than {_MOST_PARTS} parts")
    try:
        tables: Dict[str, Any] = tomllib.loads(text.replace("\r\n", "\n"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return tables
