"""What pins force step by step refutes only what has no solution."""

from __future__ import annotations

import random

import pytest

from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.solver.building import Builder
from envdoctor.lock.solver.candidates import Catalog
from envdoctor.lock.solver.engine import solve
from envdoctor.lock.solver.forced import is_refuted_by_pins
from envdoctor.matrix.loader import Matrix
from envdoctor.model.facts import Facts
from envdoctor.model.request import Request, parse_root

from .stacks import random_stack


@pytest.mark.parametrize(("driver", "refuted"), [("450.80.02", True), ("580.95.05", False)])
def test_a_chain_of_pins_meets_an_old_driver(driver: str, refuted: bool, matrix: Matrix) -> None:
    catalog = Catalog(matrix, Request((parse_root("openrlhf[vllm]==0.11.2"),), "3.12"))
    machine = Facts(parse_assumptions(["gpu=H100", f"nvidia-driver={driver}"]))
    builder = Builder(catalog, (machine,), costs=True)
    assert is_refuted_by_pins(catalog, builder.targets, builder.limits) is refuted


def test_what_it_refutes_has_no_solution(matrix: Matrix) -> None:
    chance = random.Random(8)
    base = Catalog(matrix, Request((), "3.11"))
    refuted = 0
    for _ in range(25):
        request, facts = random_stack(chance, matrix)
        catalog = base.changed(request)
        builder = Builder(catalog, facts, costs=True)
        if is_refuted_by_pins(catalog, builder.targets, builder.limits):
            refuted += 1
            problem = builder.problem(len(builder.problem().overrides))
            assert solve(problem.variables, problem.nogoods).model is None
    assert refuted > 3
