"""JSON read by the scanner behind :mod:`json`, whose import costs 2 to 5 ms of each start."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["parse_json"]

try:
    from _json import make_scanner
except ImportError:  # not CPython
    from json import loads as parse_json
else:

    class _Context:
        strict = True
        object_hook = object_pairs_hook = None
        parse_float, parse_int, parse_constant = float, int, float

    _Context.memo = {}  # type: ignore[attr-defined]
    _scan = make_scanner(_Context)  # type: ignore[arg-type]

    def parse_json(text: str) -> Any:
        """Return what ``json.loads`` returns for a text that begins with the value; raises ValueError."""
        try:
            value, end = _scan(text, 0)
        except (StopIteration, RecursionError, SystemError) as error:  # some releases have no exception of their own for some faults
            raise ValueError("it is no JSON") from error
        if text[end:].strip():
            raise ValueError("text behind the JSON")
        return value
