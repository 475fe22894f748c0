"""The tree of a shell script: commands, and what joins them.

Words stay raw, as they stand in the script.
"""

from __future__ import annotations

from typing import Optional, Tuple, Union

from ...model.record import NamedTuple

__all__ = [
    "Arithmetic",
    "Case",
    "Chain",
    "Function",
    "Group",
    "If",
    "Loop",
    "Node",
    "Pipeline",
    "Redirect",
    "Simple",
    "SyntaxProblem",
    "Word",
]


class SyntaxProblem(ValueError):
    """A script that bash would not take; ``line`` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class Word(NamedTuple):
    """One word as it stands in the script; ``elements`` where it is ``NAME=( … )``."""

    raw: str
    line: int
    elements: Optional[Tuple[Word, ...]] = None


class Redirect(NamedTuple):
    """``> file``, and here-documents with their text; ``literal`` where the delimiter is quoted."""

    operator: str
    target: Word
    body: str = ""
    literal: bool = False


class Simple(NamedTuple):
    """Words and redirections up to the end of the command; ``test`` where it is ``[[ … ]]``."""

    words: Tuple[Word, ...]
    redirects: Tuple[Redirect, ...]
    line: int
    test: bool = False


class Arithmetic(NamedTuple):
    """``(( … ))``."""

    text: str
    line: int


class Pipeline(NamedTuple):
    """Commands joined by ``|``; ``background`` where an ``&`` follows."""

    commands: Tuple[Node, ...]
    negated: bool = False
    background: bool = False


class Chain(NamedTuple):
    """Pipelines joined by ``&&`` and ``||``; the operator is the one before, "" for the first."""

    items: Tuple[Tuple[str, Pipeline], ...]


class If(NamedTuple):
    """Conditions with their bodies, and what ``else`` holds."""

    clauses: Tuple[Tuple[Tuple[Node, ...], Tuple[Node, ...]], ...]
    orelse: Optional[Tuple[Node, ...]]
    line: int


class Loop(NamedTuple):
    """``for`` (with name and words; words None is ``"$@"``), ``while`` and ``until`` (with a
    condition).
    """

    kind: str
    name: str
    words: Optional[Tuple[Word, ...]]
    condition: Tuple[Node, ...]
    body: Tuple[Node, ...]
    line: int


class Case(NamedTuple):
    """A word and its branches."""

    word: Word
    branches: Tuple[Tuple[Tuple[Word, ...], Tuple[Node, ...]], ...]
    line: int


class Group(NamedTuple):
    """``{ … }`` or ``( … )``."""

    body: Tuple[Node, ...]
    subshell: bool


class Function(NamedTuple):
    """A definition."""

    name: str
    body: Tuple[Node, ...]


Node = Union[Simple, Arithmetic, Pipeline, Chain, If, Loop, Case, Group, Function]
