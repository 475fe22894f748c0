"""JSON read by the scanner behind :mod:`json`, whose import costs 2 to 5 ms of each start."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["parse_json"]


def _make_scan() -> Any:
    try:
        from _json import make_scanner
    except ImportError:  # not CPython
        return None

    class Context:
        strict, memo = True, {}  # type: ignore[var-annotated]
        object_hook = object_pairs_hook = None
        parse_float, parse_int, parse_constant = float, int, float

    return make_scanner(Context)  # type: ignore[arg-type]


_scan = _make_scan()


def parse_json(text: str) -> Any:
    """Return what ``json.loads`` returns for a text that begins with the value; raises
    ValueError.
    """
    if _scan is None:
        import json

        return json.loads(text)
    try:
        value, end = _scan(text, 0)
    except (
        StopIteration,
        RecursionError,
        SystemError,
    ) as error:  # some releases have no exception of their own for some faults
        raise ValueError("it is no JSON") from error
    if text[end:].strip():
        raise ValueError("text behind the JSON")
    return value
