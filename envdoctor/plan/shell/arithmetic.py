"""Integer arithmetic as ``$(( … ))`` has it: C operators on 64-bit numbers, names stand for
variables.
"""

from __future__ import annotations

import re
from typing import Callable, List, Optional

__all__ = ["Undecided", "evaluate"]

_TOKEN = re.compile(
    r"\s*(\d+#\w+|0[xX][0-9a-fA-F]+|\d+|\$?\{?[A-Za-z_]\w*\}?|\*\*|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%<>&|^!~?:()=,])"
)
_BINARY = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9,
    "*": 10, "/": 10, "%": 10, "**": 12,
}  # fmt: skip
_MAX_TOKENS = 400


class Undecided(ValueError):
    """The value cannot be told: a name is not known, or it is no expression of numbers."""


def evaluate(text: str, lookup: Callable[[str], Optional[str]]) -> int:
    """Return the value of an expression; ``lookup`` gives a variable's text, "" where unset.

    Raises :class:`Undecided`.
    """
    tokens: List[str] = []
    at = 0
    text = text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or len(tokens) > _MAX_TOKENS:
            raise Undecided(text)
        tokens.append(found.group(1))
        at = found.end()
    if not tokens:
        return 0
    parser = _Parser(tokens, lookup)
    value = parser.ternary(0)
    if parser.at != len(tokens):
        raise Undecided(text)
    return value


class _Parser:
    def __init__(self, tokens: List[str], lookup: Callable[[str], Optional[str]]) -> None:
        self.tokens = tokens
        self.lookup = lookup
        self.at = 0

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self.at += 1
        return token

    def ternary(self, depth: int) -> int:
        """Read ``a ? b : c`` and everything that binds closer."""
        if depth > 50:
            raise Undecided("nested too deep")
        value = self._binary(1, depth)
        if self._peek() != "?":
            return value
        self._take()
        first = self.ternary(depth + 1)
        if self._take() != ":":
            raise Undecided("no ':'")
        second = self.ternary(depth + 1)
        return first if value else second

    def _binary(self, lowest: int, depth: int) -> int:
        left = self._unary(depth)
        while True:
            operator = self._peek()
            strength = _BINARY.get(operator, 0)
            if not strength or strength < lowest:
                return left
            self._take()
            right = self._binary(strength if operator == "**" else strength + 1, depth)
            left = _apply(operator, left, right)

    def _unary(self, depth: int) -> int:
        if depth > 50:
            raise Undecided("nested too deep")
        token = self._take()
        if token in ("-", "+", "!", "~"):
            value = self._unary(depth + 1)
            return {"-": -value, "+": value, "!": int(not value), "~": ~value}[token]
        if token == "(":
            value = self.ternary(depth + 1)
            if self._take() != ")":
                raise Undecided("no ')'")
            return value
        return self._number(token, depth)

    def _number(self, token: str, depth: int) -> int:
        if "#" in token:
            base, _, digits = token.partition("#")
            if not 2 <= int(base) <= 36:
                raise Undecided(token)
            try:
                return int(digits, int(base))
            except ValueError:
                raise Undecided(token) from None
        if token[:1].isdigit():
            if token[:2] in ("0x", "0X"):
                return _wrapped(int(token, 16))
            if token[0] == "0" and len(token) > 1:
                if set(token) - set("01234567"):
                    raise Undecided(token)
                return _wrapped(int(token, 8))
            if len(token) > 19:
                raise Undecided(token)
            return _wrapped(int(token))
        name = token.strip("${}")
        if not name.isidentifier():
            raise Undecided(token)
        text = self.lookup(name)
        if text is None:
            raise Undecided(name)
        if text == "":
            return 0
        if depth > 20:
            raise Undecided(name)
        found = re.fullmatch(r"\s*([-+]?)\s*(\w+)\s*", text)
        if found is None:
            raise Undecided(name)
        value = self._number(found.group(2), depth + 1)
        return -value if found.group(1) == "-" else value


def _apply(operator: str, left: int, right: int) -> int:
    if operator in ("/", "%"):
        if right == 0:
            raise Undecided("division by zero")
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - right * quotient
    if operator == "**":
        if right < 0 or right > 63:
            raise Undecided("exponent")
        return _wrapped(left**right)
    if operator in ("<<", ">>"):
        shift = right & 63
        return _wrapped(left << shift) if operator == "<<" else left >> shift
    results: dict[str, Callable[[], int]] = {
        "||": lambda: int(bool(left) or bool(right)),
        "&&": lambda: int(bool(left) and bool(right)),
        "|": lambda: left | right,
        "^": lambda: left ^ right,
        "&": lambda: left & right,
        "==": lambda: int(left == right),
        "!=": lambda: int(left != right),
        "<": lambda: int(left < right),
        ">": lambda: int(left > right),
        "<=": lambda: int(left <= right),
        ">=": lambda: int(left >= right),
        "+": lambda: _wrapped(left + right),
        "-": lambda: _wrapped(left - right),
        "*": lambda: _wrapped(left * right),
    }
    return results[operator]()


def _wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63
