"""Text that is safe to show: nothing read from a machine or a pasted report reaches a terminal
unescaped.
"""

from __future__ import annotations

from ..model.pattern import UNSEEN, pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import List

__all__ = ["cells", "clean", "clip", "fold", "wrap"]

#: C0 and C1 controls, line separators, what is not seen, lone surrogates.
_UNSAFE = pattern(f"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{UNSEEN}]")
_LONGEST = 2000

_FOLDED = str.maketrans(
    {
        "×": "x",
        "…": "...",
        "–": "-",
        "—": "-",
        "→": "->",
        "≥": ">=",
        "≤": "<=",
        "≠": "!=",
        "≈": "~",
        "·": "-",
        "•": "-",
        "“": '"',
        "”": '"',
        "„": '"',
        "‘": "'",
        "’": "'",
        "\u00a0": " ",
    }
)


def clean(text: str) -> str:
    """Escape what could steer a terminal or hide text, and shorten what nobody reads; one line
    comes out.
    """
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}… ({len(text) - _LONGEST} more characters)"
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    if match.group() in "\n\t\r":
        return {"\n": "\\n", "\t": " ", "\r": "\\r"}[match.group()]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def fold(text: str) -> str:
    """Return the text with typographic signs in ASCII, so that it is the same on every terminal."""
    return text if text.isascii() else text.translate(_FOLDED)


def cells(text: str) -> int:
    """Return how many columns a terminal needs for the text."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in text
    )


def clip(text: str, width: int) -> str:
    """Shorten to ``width`` columns at a word, with "..." for what is left out."""
    if cells(text) <= width:
        return text
    kept = ""
    for sign in text:
        if cells(kept + sign) > width - 3:
            break
        kept += sign
    head, space, _ = kept.rpartition(" ")
    return (head if space and len(head) > len(kept) // 2 else kept).rstrip(" ,;:(") + "..."


def wrap(text: str, width: int, first: str = "", rest: str = "") -> List[str]:
    """Wrap at spaces; ``first`` and ``rest`` begin the lines.

    Words longer than a line stay whole, so that they can be copied.
    """
    lines: List[str] = []
    line, empty = first, True
    for word in text.split():
        if not empty and cells(line) + 1 + cells(word) > width:
            lines.append(line)
            line, empty = rest, True
        line += word if empty else f" {word}"
        empty = False
    lines.append(line)
    return lines
