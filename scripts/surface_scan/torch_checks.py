"""What C++ extensions of torch refuse: ``TORCH_CHECK`` of the compute capability of the GPU.

Read are the statements of functions, as they stand one after the other: names that hold the
properties of the device, a part of its capability or a comparison of it, and the checks of these.
What stands in a block of its own, behind an ``if``, is left out.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Set, Tuple

from .gpu_answers import CAPABILITIES, Device, capability_of, value_of
from .parsing import UNPARSABLE

__all__ = ["DeviceCheck", "checks_devices", "read_device_checks"]

_WORTH = re.compile(rb"TORCH_CHECK\([^;]*\b(?:is_sm\w+|(?:\w+(?:->|\.)|cc_)major)\b")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.DOTALL | re.MULTILINE)
_TRANSPARENT = re.compile(r"(?:namespace\b[^;{}()]*|extern\s*)\Z")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_PROPERTIES = re.compile(
    r"(?:const\s+)?(?:auto|cudaDeviceProp)\s*[*&]?\s*(\w+)\s*=\s*[\w:]*getCurrentDeviceProperties\("
)
_PARTS = re.compile(
    r"(?:const\s+)?auto\s*\[\s*(\w+)\s*,\s*(\w+)\s*\]\s*=\s*get_compute_capability\("
)
_NAMED = re.compile(r"(?:const\s+)?(?:bool|auto|int)\s+(\w+)\s*=\s*(.+)", re.DOTALL)
_CHECK = re.compile(r"TORCH_CHECK\s*\((.+)\)\s*\Z", re.DOTALL)
_PYTHON = ((r"&&", " and "), (r"\|\|", " or "), (r"!(?!=)", " not "), (r"->|::", "."))


class DeviceCheck(NamedTuple):
    """GPUs that every function of a source refuses that looks at the GPU at all, and the words of
    the first of these checks.
    """

    refused: FrozenSet[str]
    message: str
    line: int


def checks_devices(source: bytes) -> bool:
    """Tell whether a source in C++ may hold such checks."""
    return bool(_WORTH.search(source))


def read_device_checks(source: bytes) -> Optional[DeviceCheck]:
    """Return what a source in C++ refuses, None where it refuses nothing by the GPU alone."""
    text = _COMMENT.sub(_blank, source.decode("utf-8", "replace"))
    of_functions: List[List[Tuple[FrozenSet[str], str, int]]] = []
    for statements in _functions(text):
        checks = list(_checks(statements))
        if checks:
            of_functions.append(checks)
    refused = [frozenset().union(*(one[0] for one in checks)) for checks in of_functions]
    common = frozenset(CAPABILITIES).intersection(*refused) if refused else frozenset()
    first = next((one for checks in of_functions for one in checks if one[0] & common), None)
    return DeviceCheck(common, first[1], first[2]) if first is not None else None


def _blank(match: re.Match[str]) -> str:
    return "\n" * match.group().count("\n")


def _functions(text: str) -> Iterator[List[Tuple[str, int]]]:
    """Yield for each function its statements outside of inner blocks, with their lines."""
    depth = rounds = begin = 0
    statements: List[Tuple[str, int]] = []
    place, line = 0, 1
    for match in re.finditer(r'"(?:[^"\\\n]|\\.)*"|[{}();\n]', text):
        sign = match.group()
        if sign == "\n":
            line += 1
        elif sign in "()":
            rounds += 1 if sign == "(" else -1
        elif sign == "{":
            if depth or not _TRANSPARENT.search(_TEXT.sub("", text[place : match.start()])):
                depth += 1
            rounds, place, begin = 0, match.end(), line
        elif sign == "}":
            if depth == 1:
                yield statements
                statements = []
            depth, rounds, place, begin = max(depth - 1, 0), 0, match.end(), line
        elif sign == ";" and not rounds:
            if depth == 1:
                statement = text[place : match.start()]
                before = len(statement) - len(statement.lstrip())
                statements.append((statement.strip(), begin + statement[:before].count("\n")))
            place, begin = match.end(), line


def _checks(statements: List[Tuple[str, int]]) -> Iterator[Tuple[FrozenSet[str], str, int]]:
    """Yield the capabilities that a function's checks refuse, with their words and lines."""
    values: Dict[str, Dict[str, Any]] = {text: {} for text in CAPABILITIES}
    for statement, line in statements:
        check = _CHECK.match(statement)
        if check is None:
            _note(statement, values)
            continue
        asked, _, said = check.group(1).partition(",")
        node = _expression(asked)
        refused: Set[str] = set()
        for text, names in values.items() if node is not None else ():
            if value_of(node, Device(capability_of(text), names)) is False:
                refused.add(text)
        if refused and len(refused) < len(CAPABILITIES):
            words = "".join(part[1:-1] for part in _TEXT.findall(said))
            words = words or f"Expected {' '.join(asked.split())} to be true, but got false"
            yield frozenset(refused), words, line


def _note(statement: str, values: Dict[str, Dict[str, Any]]) -> None:
    """Note what a name holds, by capability."""
    whole, parts, named = (form.match(statement) for form in (_PROPERTIES, _PARTS, _NAMED))
    node = _expression(named.group(2)) if named and not whole else None
    for text, names in values.items():
        capability = capability_of(text)
        if whole:
            names[whole.group(1)] = capability
        elif parts:
            names.update(zip(parts.groups(), capability))
        elif named and node is not None:
            names[named.group(1)] = value_of(node, Device(capability, names))


def _expression(text: str) -> Optional[ast.expr]:
    for pattern, words in _PYTHON:
        text = re.sub(pattern, words, text)
    try:
        return ast.parse(" ".join(text.split()), mode="eval").body
    except UNPARSABLE:
        return None
