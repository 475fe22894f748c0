"""A first look at a request: what its pins force step by step, before anything else is read.

openrlhf 0.11.2 pins vllm 0.29.0, which pins torch 2.13.0, which is built for CUDA 13: an old driver
is told without the two hundred packages beside them. Only what has code for GPUs is followed, and
no row that may break metadata (``overrides``) breaks what is asked of that. So what is refuted here
has no solution; what is not may have none either.
"""

from __future__ import annotations

from typing import Dict, List, Sequence

from ...matrix.bind import Target, bind
from ...model.row import Row
from .candidates import Catalog, Limits, bits_of

__all__ = ["is_refuted_by_pins"]

_FEW = 4  # candidates whose requirements are compared


def is_refuted_by_pins(catalog: Catalog, targets: Sequence[Target], limits: Limits) -> bool:
    """Tell whether what the roots force is refused by itself on the targets."""
    return _Forced(catalog, targets, limits).is_refuted()


class _Forced:
    def __init__(self, catalog: Catalog, targets: Sequence[Target], limits: Limits) -> None:
        self._catalog = catalog
        self._targets = targets
        self._limits = limits
        self._masks: Dict[str, int] = {}
        self._nodes: Dict[str, List[str]] = {}  # of each package, with its extras
        self._waiting: List[str] = []

    def is_refuted(self) -> bool:
        for root in self._catalog.request.roots:
            self._narrow(root.name, self._catalog.table(root.name).mask(root.specifier))
            for extra in root.extras:
                self._narrow(f"{root.name}[{extra}]", -1)
        while self._waiting:
            name = self._waiting.pop()
            if not self._masks[name]:
                return True
            if bin(self._masks[name]).count("1") <= _FEW:
                self._follow(name)
        return False

    def _narrow(self, node: str, allowed: int) -> None:
        name = node.partition("[")[0]
        before = self._masks.get(name)
        mask = (self._admitted(name) if before is None else before) & allowed
        listed = self._nodes.setdefault(name, [])
        if mask != before or node not in listed:
            self._masks[name] = mask
            if node not in listed:
                listed.append(node)
            self._waiting.append(name)

    def _admitted(self, name: str) -> int:
        """The candidates that neither a limit nor a row about this package alone refuses."""
        table = self._catalog.table(name)
        refused = sum(self._catalog.refusals(name, self._limits).values())
        for row in self._catalog.matrix.rows_about([name]):
            if _is_about(row, name):
                for target in self._targets:
                    binding = bind(row, target)
                    if binding.outcome == "residual":
                        refused |= table.holding(binding.residual)
        return table.all & ~refused

    def _follow(self, name: str) -> None:
        """Narrow what all candidates that are left ask for."""
        followed = self._catalog.matrix.code_demands
        for node in list(self._nodes[name]):
            asked = [
                {wanted: allowed for wanted, allowed, _ in self._catalog.asks(node, bit)[0]}
                for bit in bits_of(self._masks[name])
            ]
            common = set.intersection(*(set(entry) for entry in asked))
            for wanted in sorted(common):
                base = wanted.partition("[")[0]
                if base in followed and base != name:
                    allowed = 0
                    for entry in asked:
                        allowed |= entry[wanted]
                    self._narrow(wanted, allowed)


def _is_about(row: Row, name: str) -> bool:
    """Tell whether a row binds, and asks of packages for this one alone."""
    return (
        row.effect == "blocks"
        and row.trust == "established"
        and not row.mitigations
        and all(term.component == name for term in row.terms if term.scope == "env")
    )
