"""What the engine takes, and how to read its answer: variables over candidates, and nogoods with
their reasons.
"""

from __future__ import annotations

from typing import FrozenSet, Mapping, NamedTuple, Optional, Tuple

from ...matrix.bind import Target
from ...model.row import Row
from .candidate_table import CandidateTable
from .engine import Nogood, Sum, Variable
from .misfit import Misfit

__all__ = [
    "MONTHS_BEHIND",
    "MONTHS_OF_REQUIRED",
    "UNREAD",
    "YEARS_BEHIND",
    "BoundRow",
    "Call",
    "Edge",
    "OverrideOption",
    "Problem",
    "Why",
    "base_of",
]

#: The nodes that stand before the roots where a problem is to have an optimum: how far the worst of
#: the roots is behind, and how far those are in all that no other requires (``staleness``); and
#: before the other roots, how far these are.
YEARS_BEHIND, MONTHS_BEHIND = "behind:years", "behind:months"
MONTHS_OF_REQUIRED = "behind:months-of-required"
#: The node that stands after all others: whether a release is chosen of which it was not read what
#: it asks for.
UNREAD = "unread"


def base_of(node: str) -> str:
    """Return the package of a node: ``vllm`` of ``vllm[flashinfer]``."""
    return node.partition("[")[0]


class Edge(NamedTuple):
    """What one set of candidates asks of another package: ``allowed`` of its candidates."""

    requirer: str
    name: str
    bits: int
    allowed: int
    specifier: str


class Why(NamedTuple):
    """Why a nogood holds.

    kind: request, extra, metadata, build, row, host, override, cost. key: what belongs together in
    an explanation. text: the request. misfit: what is wrong with the candidates. limits: the
    properties of targets that it rests on (driver, gpu, glibc, python, platform, date). targets:
    numbers of the targets that it holds for; empty: all.
    """

    kind: str
    key: Tuple[str, ...]
    edge: Optional[Edge] = None
    row: Optional[Row] = None
    text: str = ""
    misfit: Optional[Misfit] = None
    limits: FrozenSet[str] = frozenset()
    targets: Tuple[int, ...] = ()


class OverrideOption(NamedTuple):
    """A metadata edge that a row may break: the variable that says so, the row and the release that
    is installed instead.
    """

    node: str
    row: Row
    requirer: str
    name: str
    bit: int


class Call(NamedTuple):
    """What a row, or the override of a requirement, asks for without a release that does: a node
    that says whether it counts, the package, its candidates, and what has to hold for that.
    """

    node: str
    name: str
    bits: int
    reasons: Mapping[str, int]


class BoundRow(NamedTuple):
    """A row as it is bound to targets: the masks that violate it together, the limits that it rests
    on and the numbers of the targets that have them.
    """

    row: Row
    masks: Mapping[str, int]
    limits: FrozenSet[str] = frozenset()
    targets: Tuple[int, ...] = ()


class Problem(NamedTuple):
    """What the engine takes, and how to read its answer.

    ``nodes`` are packages ("vllm") and their extras ("vllm[flashinfer]"); what has no table is
    counted or weighed. ``sums`` belong to the nogoods. ``anchors``: the nodes that the request
    itself asks for. ``calls``: what rows ask for.
    """

    nodes: Tuple[str, ...]
    variables: Tuple[Variable, ...]
    nogoods: Tuple[Nogood, ...]
    tables: Mapping[str, CandidateTable]
    edges: Tuple[Edge, ...]
    overrides: Tuple[OverrideOption, ...]
    targets: Tuple[Target, ...]
    settings: Tuple[
        Tuple[Nogood, Row], ...
    ]  # rows that a variable mitigates: violated, they ask for the setting
    peers: Tuple[str, ...] = ()  # roots that no other root requires
    sums: Tuple[Sum, ...] = ()
    anchors: FrozenSet[str] = frozenset()
    calls: Tuple[Call, ...] = ()
