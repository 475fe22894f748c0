"""The line of source at a place of a traceback, parsed and never run: what it takes, calls and
asks, of which only what Python marked counts where it marked a part.
"""

from __future__ import annotations

import ast
from itertools import takewhile
from typing import Iterator, List, Optional, Sequence, Tuple, Type, TypeVar

from ..model.log import Frame, Raised
from ..model.pattern import pattern

__all__ = ["LOOKING_UP", "SourceLine", "asking_frames", "operand_text"]

_OF_DICT = pattern(r"^['\"]\w{1,60}['\"]: ")
_LONGEST = 80  # characters of an operand
_Node = TypeVar("_Node", bound=ast.AST)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
#: What the standard library stands between: who asked is the caller.
_RELAYS = pattern(r"(?:^|[/\\ ])(?:os|collections/__init__|typing)(?:\.py|>?)$")
#: What looks up an attribute for the line that asks for it.
LOOKING_UP = ("__getattr__", "__getattribute__")


class SourceLine:
    """A line of source: its nodes, and which of them Python marked."""

    def __init__(self, frame: Frame) -> None:
        tree = _parsed(frame.code)
        self._nodes = list(ast.walk(tree)) if tree is not None else []
        self._marked = [
            node for node in self._nodes if frame.marked[1] and _span(node) == frame.marked
        ]

    @property
    def is_read(self) -> bool:
        """Whether the line is Python as far as it stands there."""
        return bool(self._nodes)

    def all(self, *kinds: Type[_Node]) -> List[_Node]:
        """Return the nodes of some kinds, of those that are marked where one is."""
        nodes = [node for node in self._nodes if isinstance(node, kinds)]
        return [node for node in nodes if node in self._marked] or nodes

    def the_one(self, nodes: Sequence[ast.AST]) -> str:
        """Return the one operand that there is; "" where there are several."""
        marked = [node for node in nodes if node in self._marked]
        texts = {
            operand_text(node) for node in marked or nodes if not isinstance(node, ast.Constant)
        }
        return texts.pop() if len(texts) == 1 else ""

    def operands(self) -> List[str]:
        """Return what the marked part, or the whole line, takes: names and attributes that are
        read, and no function that is called.
        """
        roots = self._marked[:1] or self._nodes[:1]
        inner = [node for root in roots for node in ast.walk(root)]
        called = {id(node.func) for node in inner if isinstance(node, ast.Call)}
        parts = {id(node.value) for node in inner if isinstance(node, ast.Attribute)}
        inner.sort(key=_span)
        texts = [
            operand_text(node)
            for node in inner
            if isinstance(node, (ast.Name, ast.Attribute))
            and isinstance(node.ctx, ast.Load)
            and id(node) not in called
            and id(node) not in parts
        ]
        return [text for text in dict.fromkeys(texts) if text and text not in ("self", "cls")]


def operand_text(node: ast.AST) -> str:
    """Return an operand as it is written; "" for a literal and for one that is too long."""
    if isinstance(node, (ast.Constant, ast.JoinedStr, ast.Dict, ast.List, ast.Tuple, ast.Lambda)):
        return ""
    text = ast.unparse(node)
    return text if len(text) <= _LONGEST else ""


def asking_frames(raised: Raised) -> Sequence[Frame]:
    """Return the places up to the one that asked: what looks up an attribute or a variable for it
    only answers.
    """
    behind = takewhile(
        lambda frame: frame.function in LOOKING_UP or _RELAYS.search(frame.file),
        raised.frames[::-1],
    )
    return raised.frames[: len(raised.frames) - len(list(behind))]


def _parsed(code: str) -> Optional[ast.AST]:
    """Return the tree of a line, closed where it goes on below."""
    # As many characters, so that what is marked stays where it is.
    code = f"if   {code[5:]}" if code.startswith("elif ") else code
    trees = map(_tree, _completed(code))
    return next((tree for tree in trees if tree is not None), None)


def _tree(text: str) -> Optional[ast.AST]:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _span(node: ast.AST) -> Tuple[int, int]:
    """Return where an expression begins and ends in its line."""
    return getattr(node, "col_offset", -1), getattr(node, "end_col_offset", -1)


def _completed(code: str) -> Iterator[str]:
    yield code
    if code.endswith(":"):
        yield f"{code} pass"
    if _OF_DICT.match(code):
        yield f"{{{code}}}"
    opened: List[str] = []
    quote = ""
    for char in code:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in _CLOSING:
            opened.append(_CLOSING[char])
        elif opened and char == opened[-1]:
            opened.pop()
    if opened and not quote:
        closing = "".join(reversed(opened))
        yield code + closing
        yield f"{code}{closing}: pass"
