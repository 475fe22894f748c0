"""The answers of ``test``, ``[`` and ``[[``: yes, no, or not to be told."""

from __future__ import annotations

import re
from typing import Optional, Sequence

from .expansion import is_clear

__all__ = ["decide"]


def decide(words: Sequence[str]) -> Optional[bool]:
    """The answer of ``test``, where its words are known; None where it is about files or
    unclear.
    """
    for operator, absorbing in (("||", True), ("-o", True), ("&&", False), ("-a", False)):
        if operator in words:
            at = list(words).index(operator)
            answers = (decide(words[:at]), decide(words[at + 1 :]))
            return (
                absorbing if absorbing in answers else (None if None in answers else not absorbing)
            )
    if words[:1] == ["!"]:
        answer = decide(words[1:])
        return None if answer is None else not answer
    if len(words) > 2 and words[0] == "(" and words[-1] == ")":
        return decide(words[1:-1])
    if not all(is_clear(word) for word in words):
        return None
    if not words:
        return False
    if len(words) == 1:
        return words[0] != ""
    if len(words) == 2:
        return {"-n": words[1] != "", "-z": words[1] == ""}.get(words[0])
    if len(words) != 3:
        return None
    left, operator, right = words
    if operator in ("=", "=="):
        return left == right
    if operator == "!=":
        return left != right
    numbers = {"-eq": "==", "-ne": "!=", "-lt": "<", "-le": "<=", "-gt": ">", "-ge": ">="}
    if (
        operator in numbers
        and re.fullmatch(r"-?\d{1,18}", left)
        and re.fullmatch(r"-?\d{1,18}", right)
    ):
        first, second = int(left), int(right)
        return {
            "==": first == second,
            "!=": first != second,
            "<": first < second,
            "<=": first <= second,
            ">": first > second,
            ">=": first >= second,
        }[numbers[operator]]
    return None
