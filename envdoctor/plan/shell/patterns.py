"""Globs and braces of the shell: ``${x##*/}``, ``${x/a/b}``, ``{a,b}``, ``{1..3}``.

Text in, text out.
"""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

from .quoting import closing, quoted
from .tree import SyntaxProblem

__all__ = ["brace_words", "cut_pattern", "regex_of", "replaced"]

_MAX_BRACES = 1000


def cut_pattern(text: str) -> Tuple[str, str]:
    """Split what stands after ``/`` in ``${x/pattern/replacement}``."""
    at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == "'":
            at = text.find("'", at + 1) + 1 or len(text)
        elif text[at] == '"':
            at = quoted(text, at + 1, 0)
        elif text.startswith("${", at):
            at = closing(text, at + 2, "{")
        elif text[at] == "/":
            return text[:at], text[at + 1 :]
        else:
            at += 1
    return text, ""


def regex_of(glob: str) -> Optional[str]:
    """Return the regular expression of a glob, in which a backslash quotes; None for extended
    patterns.
    """
    result: List[str] = []
    at = 0
    while at < len(glob):
        char = glob[at]
        at += 1
        if char == "\\" and at < len(glob):
            result.append(re.escape(glob[at]))
            at += 1
        elif char == "*":
            result.append(".*")
        elif char == "?":
            result.append(".")
        elif char == "[":
            close = glob.find("]", at + 1)
            if close < 0 or "[" in glob[at:close] or "\\" in glob[at:close]:
                return None
            inner = glob[at:close]
            result.append("[" + ("^" + inner[1:] if inner[0] in "!^" else inner) + "]")
            at = close + 1
        elif char in "(|)" or (char in "@+!" and glob[at : at + 1] == "("):
            return None  # an extended pattern, or one of several
        else:
            result.append(re.escape(char))
    return "".join(result)


def replaced(text: str, operator: str, pattern: str, replacement: str) -> str:
    """Do what ``#``, ``%`` and ``/`` do to a text."""
    compiled = re.compile(pattern, re.DOTALL)
    if operator in ("#", "##"):
        ends = range(len(text) + 1) if operator == "#" else range(len(text), -1, -1)
        return next((text[end:] for end in ends if compiled.fullmatch(text, 0, end)), text)
    if operator in ("%", "%%"):
        starts = range(len(text), -1, -1) if operator == "%" else range(len(text) + 1)
        return next((text[:start] for start in starts if compiled.fullmatch(text, start)), text)
    if not pattern:
        return text
    if operator == "//":
        return (
            re.sub(f"(?s:{pattern})", lambda _: replacement, text)
            if not compiled.fullmatch("")
            else text
        )
    anchored = {"/": f"(?s:{pattern})", "/#": rf"\A(?s:{pattern})", "/%": rf"(?s:{pattern})\Z"}[
        operator
    ]
    return re.sub(anchored, lambda _: replacement, text, count=1)


def brace_words(raw: str) -> List[str]:
    """Expand ``{a,b}`` and ``{1..3}``; quotes, ``${…}`` and ``$(…)`` are left alone."""
    if "{" not in raw:
        return [raw]
    found = _first_brace(raw)
    if found is None:
        return [raw]
    start, end, options = found
    results = [
        raw[:start] + option + tail
        for option in (inner for text in options for inner in brace_words(text))
        for tail in brace_words(raw[end:])
    ]
    if len(results) > _MAX_BRACES:
        raise SyntaxProblem(0, f"braces that expand to more than {_MAX_BRACES} words")
    return results


def _first_brace(raw: str) -> Optional[Tuple[int, int, List[str]]]:
    at = 0
    while at < len(raw):
        skipped = _skip(raw, at)
        if skipped > at:
            at = skipped
            continue
        if raw[at] == "{":
            options = _options(raw, at)
            if options is not None:
                return (at, *options)
        at += 1
    return None


def _skip(raw: str, at: int) -> int:
    char = raw[at]
    if char == "\\":
        return at + 2
    if char == "'":
        return raw.index("'", at + 1) + 1
    if char == '"':
        return quoted(raw, at + 1, 0)
    if char == "`":
        return raw.index("`", at + 1) + 1
    if char == "$" and raw[at + 1 : at + 2] in ("{", "("):
        return closing(raw, at + 2, raw[at + 1])
    return at


def _options(raw: str, start: int) -> Optional[Tuple[int, List[str]]]:
    depth, at, last = 0, start, start + 1
    options: List[str] = []
    while at < len(raw):
        skipped = _skip(raw, at)
        if skipped > at:
            at = skipped
            continue
        char = raw[at]
        if char == "{":
            depth += 1
        elif char == "," and depth == 1:
            options.append(raw[last:at])
            last = at + 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                if options:
                    return at + 1, [*options, raw[last:at]]
                numbers = re.fullmatch(
                    r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(-?\d{1,9}))?", raw[start + 1 : at]
                )
                return (at + 1, _sequence(numbers)) if numbers else None
        at += 1
    return None


def _sequence(numbers: re.Match[str]) -> List[str]:
    first, last = int(numbers.group(1)), int(numbers.group(2))
    step = abs(int(numbers.group(3) or 1)) or 1
    if abs(last - first) // step > _MAX_BRACES:
        raise SyntaxProblem(0, f"braces that expand to more than {_MAX_BRACES} words")
    width = max(
        (len(text) for text in numbers.groups()[:2] if text and re.match(r"-?0\d", text)), default=0
    )
    values = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    return [f"{value:0{width}d}" if width else str(value) for value in values]
