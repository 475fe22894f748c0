"""Random stacks on the real matrix: the same verdict and the same optimum as a SAT solver, minimal
conflicts, nothing that check refuses.
"""

from __future__ import annotations

import random
from typing import Callable

import pytest

from envdoctor.lock.solver.candidates import Catalog
from envdoctor.lock.solver.objective import attempt
from envdoctor.matrix.loader import Matrix

from .stacks import random_stack, run


@pytest.mark.parametrize(
    ("count", "seed"),
    [
        (10, 20261121),
        pytest.param(40, 20261121, marks=pytest.mark.slow),
        pytest.param(300, 20261122, marks=pytest.mark.slow),
    ],
)
def test_random_stacks(
    count: int, seed: int, matrix: Matrix, require_module: Callable[[str], None]
) -> None:
    require_module("pysat")
    verdicts = run(count, seed, matrix)
    faults = [f"{verdict.words}: {verdict.fault}" for verdict in verdicts if verdict.fault]
    assert not faults, "\n".join(faults)
    feasible = sum(verdict.feasible for verdict in verdicts)
    assert count // 5 < feasible < count - count // 10, "the stacks are all alike"


@pytest.mark.parametrize("count", [4, pytest.param(12, marks=pytest.mark.slow)])
def test_what_nothing_reaches_changes_nothing(count: int, matrix: Matrix) -> None:
    """The complete problem, with everything that Python, date and glibc exclude, has the same
    optimum.
    """
    chance = random.Random(5)
    for _ in range(count):
        request, facts = random_stack(chance, matrix)
        catalog = Catalog(matrix, request)
        models = []
        for complete in (False, True):
            solution = attempt(catalog, facts, complete=complete)
            model = solution.outcome.model
            chosen = None
            if model is not None:
                chosen = {
                    node: str(solution.problem.tables[node].at(bit).version)
                    for node, bit in zip(solution.problem.nodes, model)
                    if node in solution.problem.tables
                    and bit != solution.problem.tables[node].absent
                }
            models.append(chosen)
        assert models[0] == models[1]
