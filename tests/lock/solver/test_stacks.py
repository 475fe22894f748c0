"""Random stacks on the real matrix: the same verdict and the same optimum as a SAT solver, minimal
conflicts, nothing that check refuses.
"""

from __future__ import annotations

import random
from typing import Callable

from envdoctor.lock.solver.candidates import Catalog
from envdoctor.lock.solver.objective import attempt
from envdoctor.matrix.loader import Matrix

from .stacks import random_stack, run

COUNT = 100


def test_random_stacks(matrix: Matrix, require_module: Callable[[str], None]) -> None:
    require_module("pysat")
    verdicts = run(COUNT, 20261121, matrix)
    faults = [f"{verdict.words}: {verdict.fault}" for verdict in verdicts if verdict.fault]
    assert not faults, "\n".join(faults)
    feasible = sum(verdict.feasible for verdict in verdicts)
    assert COUNT // 5 < feasible < COUNT - COUNT // 10, "the stacks are all alike"


def test_what_nothing_reaches_changes_nothing(matrix: Matrix) -> None:
    """The complete problem, with everything that Python, date and glibc exclude, has the same
    optimum.
    """
    chance = random.Random(5)
    for _ in range(12):
        request, facts = random_stack(chance, matrix)
        catalog = Catalog(matrix, request)
        models = []
        for complete in (False, True):
            found = attempt(catalog, facts, complete=complete)
            model = found.outcome.model
            chosen = None
            if model is not None:
                chosen = {
                    node: str(found.problem.tables[node].at(bit).version)
                    for node, bit in zip(found.problem.nodes, model)
                    if node in found.problem.tables and bit != found.problem.tables[node].absent
                }
            models.append(chosen)
        assert models[0] == models[1]
