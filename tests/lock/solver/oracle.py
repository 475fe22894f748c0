"""What the solver is compared with: a SAT solver that knows nothing of it, and brute force for what
is tiny.
"""

from __future__ import annotations

from itertools import product
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from envdoctor.lock.solver.engine import Nogood, Variable


def values(variable: Variable) -> Iterator[int]:
    """The values of a variable, the preferred one first: absent, then the lowest bit."""
    if variable.domain & variable.absent:
        yield variable.absent
    rest = variable.domain & ~variable.absent
    while rest:
        low = rest & -rest
        yield low
        rest ^= low


def brute_force(
    variables: Sequence[Variable], nogoods: Sequence[Nogood]
) -> Optional[Tuple[int, ...]]:
    """The first assignment in lexicographic order of preferences that violates nothing."""
    for model in product(*(list(values(variable)) for variable in variables)):
        if not any(
            all(model[variable] & mask for variable, mask in nogood.terms) for nogood in nogoods
        ):
            return model
    return None


class SatOracle:
    """The same problem as clauses: one boolean per value."""

    def __init__(self, variables: Sequence[Variable], nogoods: Sequence[Nogood]) -> None:
        from pysat.solvers import Solver

        self._variables = variables
        self._names: List[Dict[int, int]] = []
        count = 0
        clauses: List[List[int]] = []
        for variable in variables:
            names = {}
            for bit in values(variable):
                count += 1
                names[bit] = count
            self._names.append(names)
            clauses.append(list(names.values()))
            if (
                len(names) > 1
            ):  # at most one, by a ladder: pairs would be thousands for transformers
                previous = None
                for name in names.values():
                    count += 1
                    clauses.append([-name, count])
                    if previous is not None:
                        clauses += [[-previous, count], [-previous, -name]]
                    previous = count
        for nogood in nogoods:
            clauses.append(
                [
                    name
                    for variable, mask in nogood.terms
                    for bit, name in self._names[variable].items()
                    if not bit & mask
                ]
            )
        self._solver = Solver(name="cadical153", bootstrap_with=clauses)

    def close(self) -> None:
        self._solver.delete()

    def satisfiable(self) -> bool:
        return bool(self._solver.solve())

    def optimum(self) -> Optional[Tuple[int, ...]]:
        """The lexicographic optimum: each variable in turn gets the best value that leaves a
        solution.
        """
        assumed: List[int] = []
        model: List[int] = []
        if not self._solver.solve():
            return None
        known = set(self._solver.get_model() or ())
        for names in self._names:
            for bit, name in names.items():
                if name not in known and not self._solver.solve(assumptions=[*assumed, name]):
                    continue
                if name not in known:
                    known = set(self._solver.get_model() or ())
                assumed.append(name)
                model.append(bit)
                break
        return tuple(model)
