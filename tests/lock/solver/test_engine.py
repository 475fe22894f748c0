"""The engine against brute force and a SAT solver, on problems that mean nothing."""

from __future__ import annotations

import random
from itertools import product
from typing import List, Tuple

import pytest

from envdoctor.lock.solver.engine import GaveUp, Nogood, Sum, Variable, solve

from .oracle import SatOracle, brute_force, values


def random_problem(
    chance: random.Random, size: int, width: int, density: float, thin: bool = False
) -> Tuple[List[Variable], List[Nogood]]:
    variables = []
    for _ in range(size):
        bits = chance.randint(1, width)
        absent = chance.choice((0, 1 << (bits - 1)))
        variables.append(Variable((1 << bits) - 1, absent))
    nogoods = []
    for _ in range(int(size * density)):
        chosen = sorted(
            chance.sample(
                range(size), min(size, chance.choice((2, 2, 3) if thin else (1, 2, 2, 2, 3)))
            )
        )
        terms = []
        for number in chosen:
            mask = chance.randint(1, variables[number].domain)
            if thin:
                mask &= chance.randint(1, variables[number].domain)
            if not mask:
                mask = 1
            terms.append((number, mask))
        nogoods.append(Nogood(tuple(terms)))
    return variables, nogoods


def test_tiny_problems_agree_with_brute_force() -> None:
    chance = random.Random(1)
    refuted = 0
    for _ in range(3000):
        variables, nogoods = random_problem(
            chance, chance.randint(1, 5), 4, chance.choice((1.0, 2.0, 3.0, 4.0))
        )
        solution = solve(variables, nogoods)
        assert solution.model == brute_force(variables, nogoods)
        if solution.model is None:
            refuted += 1
            assert brute_force(variables, [nogoods[number] for number in solution.core]) is None
    assert refuted > 500


def test_larger_problems_agree_with_a_sat_solver(require_module: object) -> None:
    require_module("pysat")  # type: ignore[operator]
    chance = random.Random(2)
    refuted = conflicts = 0
    for _ in range(150):
        variables, nogoods = random_problem(
            chance, chance.randint(10, 40), 5, chance.choice((5.0, 7.0, 9.0)), thin=True
        )
        solution = solve(variables, nogoods)
        oracle = SatOracle(variables, nogoods)
        assert solution.model == oracle.optimum()
        oracle.close()
        conflicts += solution.conflicts
        if solution.model is None:
            refuted += 1
            core = SatOracle(variables, [nogoods[number] for number in solution.core])
            assert not core.satisfiable()
            core.close()
    assert refuted > 20
    assert conflicts > 100, "hardly any conflict: the problems do not test learning"


def test_the_least_sum_comes_first_and_then_the_order() -> None:
    chance = random.Random(3)
    refuted = bought = 0
    for _ in range(2000):
        variables, nogoods = random_problem(
            chance, chance.randint(2, 5), 4, chance.choice((1.0, 2.0, 3.0))
        )
        costs = [
            {bit: chance.choice((0, 0, 1, 2, 5)) for bit in values(variable)}
            for variable in variables
        ]
        total = Variable((2 << sum(max(cost.values()) for cost in costs)) - 1, 0)
        shifted = [
            Nogood(tuple((number + 1, mask) for number, mask in nogood.terms)) for nogood in nogoods
        ]
        table = {
            number: tuple(
                (price, sum(bit for bit, its in cost.items() if its == price))
                for price in sorted(set(cost.values()) - {0})
            )
            for number, cost in enumerate(costs, 1)
        }
        solution = solve([total, *variables], shifted, sums=[Sum(0, table)])
        best = None
        for model in product(*(list(values(variable)) for variable in variables)):
            if any(all(model[at] & mask for at, mask in entry.terms) for entry in nogoods):
                continue
            price = sum(cost[bit] for cost, bit in zip(costs, model))
            if best is None or price < best[0]:
                best = (price, model)
        if best is None:
            refuted += 1
            assert solution.model is None
            kept = [nogoods[number] for number in solution.core]
            assert brute_force(variables, kept) is None
        else:
            bought += best[1] != brute_force(variables, nogoods)
            assert solution.model == (1 << best[0], *best[1])
    assert refuted > 200
    assert bought > 200, "the sum hardly ever decides"


def test_a_variable_without_values_is_refuted() -> None:
    assert solve([Variable(0, 0)], []).model is None


def test_no_variables_are_solved() -> None:
    assert solve([], []).model == ()


def test_a_contradiction_names_both_sides() -> None:
    solution = solve([Variable(0b111, 0b100)], [Nogood(((0, 0b101),)), Nogood(((0, 0b110),))])
    assert solution.model is None
    assert solution.core == (0, 1)


def test_the_limit_ends_in_giving_up_not_in_unsatisfiable() -> None:
    size = 7  # pigeons in one hole less: exponential for resolution
    variables = [Variable((1 << (size - 1)) - 1, 0) for _ in range(size)]
    nogoods = [
        Nogood(((a, 1 << hole), (b, 1 << hole)))
        for a in range(size)
        for b in range(a + 1, size)
        for hole in range(size - 1)
    ]
    with pytest.raises(GaveUp, match="given up"):
        solve(variables, nogoods, limit=20)
    assert solve(variables, nogoods).model is None
