"""What releases ask for is read when a solution wants them, and that changes no answer."""

from __future__ import annotations

from typing import Dict

import pytest

from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.solver.building import Builder
from envdoctor.lock.solver.candidates import Catalog
from envdoctor.lock.solver.engine import solve
from envdoctor.lock.solver.objective import attempt
from envdoctor.lock.solver.problem import Problem
from envdoctor.matrix.loader import Matrix
from envdoctor.model.facts import Facts
from envdoctor.model.request import Request, parse_root


def chosen(problem: Problem, model: tuple[int, ...]) -> Dict[str, str]:
    bits = dict(zip(problem.nodes, model))
    return {
        node: str(table.at(bits[node]).version)
        for node, table in problem.tables.items()
        if bits[node] != table.absent
    }


def test_little_is_read_and_the_answer_is_that_of_everything(matrix: Matrix) -> None:
    catalog = Catalog(matrix, Request((parse_root("vllm"),), "3.11"))
    facts = (Facts(parse_assumptions(["gpu=H100", "nvidia-driver=550.54.15"])),)
    found = attempt(catalog, facts)
    assert found.outcome.model is not None
    whole = Builder(catalog, facts, costs=True, whole=True).problem()
    outcome = solve(whole.variables, whole.nogoods)
    assert outcome.model is not None
    assert chosen(whole, outcome.model) == chosen(found.problem, found.outcome.model)
    assert len(found.problem.edges) * 3 < len(whole.edges)


@pytest.mark.parametrize(("driver", "fits"), [("450.80.02", False), ("580.95.05", True)])
def test_a_chain_of_pins_meets_an_old_driver(driver: str, fits: bool, matrix: Matrix) -> None:
    """openrlhf pins vllm, which pins a torch for CUDA 13: what that needs is not read."""
    catalog = Catalog(matrix, Request((parse_root("openrlhf[vllm]==0.11.2"),), "3.12"))
    found = attempt(catalog, (Facts(parse_assumptions(["gpu=H100", f"nvidia-driver={driver}"])),))
    assert (found.outcome.model is not None) is fits
    assert fits or not any(edge.requirer == "torch" for edge in found.problem.edges)


def test_what_nothing_asks_for_is_absent(matrix: Matrix) -> None:
    """protobuf 3 asks for setuptools: that is no reason to install it for a newer setuptools."""
    catalog = Catalog(matrix, Request((parse_root("triton==3.1.0"),), "3.11"))
    found = attempt(catalog, (Facts({}),))
    assert found.outcome.model is not None
    pins = chosen(found.problem, found.outcome.model)
    assert set(pins) == {"triton", "setuptools"}
    assert int(pins["setuptools"].split(".")[0]) < 82
