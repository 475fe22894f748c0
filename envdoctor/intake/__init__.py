"""Text that people have, turned into facts. Parsers report and never judge."""

from __future__ import annotations

from .assumptions import parse_assumptions
from .report import parse_report
from .requirements import parse_requirements

__all__ = ["parse_assumptions", "parse_report", "parse_requirements"]
