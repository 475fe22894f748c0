"""Sizes in bytes, as text and back.

Everything that the project prints or reads as a size goes through here. No regular expressions:
the start of a container reads the size of /dev/shm, and has no time for ``re``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

__all__ = [
    "GIB",
    "MIB",
    "gib_text",
    "parse_limit",
    "parse_size",
    "size_text",
    "whole_number",
]

MIB = 1 << 20
GIB = 1 << 30

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_BYTES = ("bytes", "byte", "b")
_MOST_DIGITS = 18
_UNLIMITED = frozenset(["unlimited", "infinity", "max", "-1"])


def whole_number(text: str, digits: int = _MOST_DIGITS) -> Optional[int]:
    """Return the number that a text of at most so many ASCII digits is, else None.

    ``str.isdigit`` alone lets "²" through, which ``int`` refuses, and so many digits that it does.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


def size_text(size: float) -> str:
    """Return a size in the binary unit that suits it: 68719476736 gives "64 GiB"; -1 stands for no
    limit.
    """
    if size < 0:
        return "unlimited"
    power = min((max(int(size), 1).bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{size / 1024**power:.1f}".removesuffix(".0") + f" {_UNITS[power]}"


def gib_text(size: float) -> str:
    """Return the number of GiB, for tables and ranges that share the unit, with as many digits as
    mean something: "448", "62.1", "0.36".
    """
    number = size / GIB
    if abs(number) >= 99.95:
        return f"{number:.0f}"
    if abs(number) >= 9.95:
        return f"{number:.1f}"
    return f"{number:.2f}".rstrip("0").rstrip(".") or "0"


def parse_size(
    text: str, *, binary: bool = False, decimal: bool = False, unit: int = 1
) -> Optional[int]:
    """Return ``text`` in bytes, or None where it is no size.

    ``64GiB`` is binary, always. ``64g`` is binary and ``64GB`` decimal, as most tools mean it.

    Args:
        text: A number, and a unit or none.
        binary: ``64GB`` means 1024 as well (Docker, df, torch).
        decimal: ``64g`` means 1000 as well (Kubernetes).
        unit: What a bare number counts, bytes.
    """
    word = text.strip().lower()
    name = word.lstrip("0123456789.")
    number = _number(word[: len(word) - len(name)])
    name = name.lstrip()
    byte = next((ending for ending in _BYTES if name.endswith(ending)), "")
    prefix = name[: len(name) - len(byte)]
    iec = prefix.endswith("i")
    power = _POWERS.get(prefix[:-1] if iec else prefix)
    if number is None or power is None or prefix == "i":
        return None
    if not power:
        return int(number * (1 if byte else unit))
    thousand = not iec and (decimal or (bool(byte) and not binary))
    return int(number * (1000 if thousand else 1024) ** power)


def _number(digits: str) -> Optional[float]:
    """Return a decimal number; whole ones exactly, for a float has but 53 bits."""
    whole, point, fraction = digits.partition(".")
    if not whole.isdigit() or len(whole) > _MOST_DIGITS or (point and not fraction.isdigit()):
        return None
    return float(digits[: _MOST_DIGITS + 8]) if point and int(fraction) else int(whole)


def parse_limit(text: str, *, unit: int = 1) -> Optional[int]:
    """Return a resource limit in bytes (or items); -1 is unlimited."""
    return -1 if text.strip().lower() in _UNLIMITED else parse_size(text, unit=unit)
