"""Text that people have, turned into facts. Parsers report and never judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assumptions import parse_assumptions
    from .pasted_report import parse_report
    from .requirement_files import parse_requirements

__all__ = ["parse_assumptions", "parse_report", "parse_requirements"]

_HOME = {
    "parse_assumptions": "assumptions",
    "parse_report": "pasted_report",
    "parse_requirements": "requirement_files",
}


def __getattr__(name: str) -> Any:
    """Import a parser when it is asked for: the expressions of all of them cost 40 ms, and a
    command needs one.
    """
    if name not in _HOME:
        raise AttributeError(name)
    from importlib import import_module

    return getattr(import_module(f".{_HOME[name]}", __name__), name)
