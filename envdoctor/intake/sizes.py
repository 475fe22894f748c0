"""Sizes as people and tools write them, in bytes."""

from __future__ import annotations

import re
from typing import Optional

__all__ = ["parse_limit", "parse_size"]

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([kmgtp]?)(i?)(b|bytes?)?", re.IGNORECASE)
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_UNLIMITED = frozenset(["unlimited", "infinity", "max", "-1"])


def parse_size(text: str, *, binary: bool = False, unit: int = 1) -> Optional[int]:
    """Return ``text`` in bytes, or None where it is no size.

    ``64g`` and ``64GiB`` are binary, ``64GB`` is decimal unless ``binary`` says that the tool means
    1024 (Docker, df). ``unit``: what a bare number counts.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    number, letter, iec, byte = match.groups()
    if not letter:
        return int(float(number) * (1 if byte else unit))
    base = 1000 if byte and not iec and not binary else 1024
    return int(float(number) * base ** _POWER[letter.lower()])


def parse_limit(text: str, *, unit: int = 1) -> Optional[int]:
    """Return a resource limit in bytes (or items); -1 is unlimited."""
    return -1 if text.strip().lower() in _UNLIMITED else parse_size(text, unit=unit)
