"""Where quotes and brackets of shell text end."""

from __future__ import annotations

from .tree import SyntaxProblem

__all__ = ["MAX_DEPTH", "after", "after_ansi", "closing", "quoted"]

MAX_DEPTH = 60  # deeper than any script that a person wrote


def closing(
    text: str, start: int, opening: str, line: int = 0, *, inside_quotes: bool = False
) -> int:
    """Return the index after the bracket that closes the one before ``start``; quotes and nested
    expansions count.

    ``inside_quotes``: the expansion stands between double quotes, where a single quote in ``${…}``
    is a plain character.
    """
    wanted = [")" if opening == "(" else "}"]
    at, end = start, len(text)
    while at < end:
        char = text[at]
        if char == "\\":
            at += 2
            continue
        if char == "'" and not (inside_quotes and wanted[-1] == "}"):
            at = after(text, "'", at + 1, line)
            continue
        if char == '"':
            at = quoted(text, at + 1, line)
            continue
        if char == "`":
            at = after(text, "`", at + 1, line)
            continue
        if char == "#" and wanted[-1] == ")" and (text[at - 1] in " \t\n;") and "\n" in text[at:]:
            at = text.index("\n", at)
            continue
        if char == "$" and text[at + 1 : at + 2] in ("{", "("):
            wanted.append("}" if text[at + 1] == "{" else ")")
            at += 2
        elif char == wanted[-1]:
            wanted.pop()
            at += 1
            if not wanted:
                return at
        elif char == "(" and wanted[-1] == ")":
            wanted.append(")")
            at += 1
        else:
            at += 1
        if len(wanted) > MAX_DEPTH:
            raise SyntaxProblem(line, f"more than {MAX_DEPTH} brackets inside each other")
    raise SyntaxProblem(line, f"no {wanted[-1]!r} closes {opening!r}")


def quoted(text: str, start: int, line: int) -> int:
    """Return the index after the double quote that ends at or after ``start``."""
    at = start
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
        elif char == '"':
            return at + 1
        elif char == "`":
            at = after(text, "`", at + 1, line)
        elif char == "$" and text[at + 1 : at + 2] in ("{", "("):
            at = closing(text, at + 2, text[at + 1], line, inside_quotes=True)
        else:
            at += 1
    raise SyntaxProblem(line, "a double quote is not closed")


def after(text: str, char: str, start: int, line: int) -> int:
    """Return the index after the next ``char``; a backslash hides a backquote."""
    at = start
    while True:
        at = text.find(char, at)
        if at < 0:
            raise SyntaxProblem(line, f"{char} is not closed")
        if char == "`" and text[at - 1] == "\\":
            at += 1
            continue
        return at + 1


def after_ansi(text: str, start: int, line: int) -> int:
    """Return the index after the quote that ends ``$'…'``."""
    at = start
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == "'":
            return at + 1
        else:
            at += 1
    raise SyntaxProblem(line, "$' is not closed")
