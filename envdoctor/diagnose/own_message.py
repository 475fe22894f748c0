"""What the program's own message was made of: a line that raises, or asserts, writes it out, so
that each of its expressions has the value that stands in its place.

``raise ValueError(f"Unknown task {args.task}")`` with the message ``Unknown task sst`` says that
args.task was sst. The line is parsed and never run.
"""

from __future__ import annotations

import ast
import re
from typing import Iterator, List, Optional, Sequence, Tuple

from ..model.log import Frame, Raised
from .code_owner import is_own
from .source_line import SourceLine, operand_text

__all__ = ["of_own_message", "own_values", "remedy_of_own_message"]

_MOST = 4  # expressions of a message
_LONGEST = 120  # characters of a value that is told
_FEWEST = 4  # letters that the line itself writes


def own_values(raised: Raised) -> List[Tuple[str, str]]:
    """Return the expressions of a message that the program's own line wrote, with their values."""
    frame = _raising(raised)
    if frame is None:
        return []
    for node in SourceLine(frame).all(ast.Raise, ast.Assert):
        parts = list(_parts(_message_of(node)))
        written = "".join(text for text, _ in parts)
        names = [name for _, name in parts if name]
        if sum(map(str.isalpha, written)) < _FEWEST or not 0 < len(names) <= _MOST:
            continue
        form = "".join("(.{1,400}?)" if name else re.escape(text) for text, name in parts)
        match = re.fullmatch(form, raised.message.strip(), re.DOTALL)
        if match is not None:
            return _shown(names, match.groups())
    return []


def of_own_message(raised: Raised) -> str:
    """Say of what a message of the program itself holds values; "" where none is seen."""
    values = [f"{name} is {value}" for name, value in own_values(raised)]
    return f"By that line {', '.join(values)}." if values else ""


def remedy_of_own_message(raised: Raised, where: str) -> str:
    """Say where the values come from that a program refuses in words of its own."""
    values = own_values(raised)
    if not values:
        return ""
    names = " and ".join(name for name, _ in values)
    return f"Read above {where} what it takes for {names}, and look at what gives it"


def _raising(raised: Raised) -> Optional[Frame]:
    frame = raised.frames[-1] if raised.frames else None
    return frame if frame is not None and frame.line and is_own(frame) else None


def _shown(names: Sequence[str], values: Sequence[str]) -> List[Tuple[str, str]]:
    by_name = dict(zip(names, values))
    return [
        (name, value)
        for name, value in by_name.items()
        if len(value) <= _LONGEST and "\n" not in value and name != value
    ]


def _message_of(node: ast.AST) -> Optional[ast.AST]:
    """Return what a line makes its message of."""
    if isinstance(node, ast.Assert):
        return node.msg
    raises = node.exc if isinstance(node, ast.Raise) else None
    return raises.args[0] if isinstance(raises, ast.Call) and len(raises.args) == 1 else None


def _parts(node: Optional[ast.AST]) -> Iterator[Tuple[str, str]]:
    """Yield the parts of a text that is put together: (text, "") or ("", expression)."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value, ""
    elif isinstance(node, ast.JoinedStr):
        for value in node.values:
            yield from _parts(value)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _parts(node.left)
        yield from _parts(node.right)
    elif isinstance(node, ast.FormattedValue):
        yield from _parts_of_value(node.value)
    elif node is not None:
        yield from _parts_of_value(node)


def _parts_of_value(node: ast.AST) -> Iterator[Tuple[str, str]]:
    is_cast = isinstance(node, ast.Call) and ast.unparse(node.func) in ("str", "repr")
    if isinstance(node, ast.Call) and is_cast and len(node.args) == 1:
        node = node.args[0]
    text = operand_text(node)
    yield ("", text or "…")
