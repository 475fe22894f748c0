"""Random environments on random machines, most of them broken, and what their repair is judged
by.
"""

from __future__ import annotations

import random
from typing import Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

from envdoctor.fix.repair import changed_facts, faults_of, plan
from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.solver.building import build_problem
from envdoctor.lock.solver.engine import Nogood, Variable
from envdoctor.lock.solver.installed import InstalledCatalog, Situation
from envdoctor.lock.solver.nearest import Item, counted, request_for, settle
from envdoctor.matrix.loader import Matrix
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Distribution, Facts
from envdoctor.model.resolution import Explanation

from .oracle import values
from .stacks import DRIVERS, GPUS

ENGINES = (
    "vllm",
    "sglang",
    "verl",
    "openrlhf",
    "trl",
    "deepspeed",
    "flash-attn",
    "xformers",
    "transformers",
)
OTHERS = (
    "torch",
    "torchvision",
    "torchaudio",
    "triton",
    "transformers",
    "tokenizers",
    "numpy",
    "ray",
    "nvidia-cublas-cu12",
    "peft",
    "accelerate",
)


def random_environment(chance: random.Random, matrix: Matrix) -> Facts:
    """One or two engines and a few packages, each of any recent release, as ``pip list`` would show
    them.
    """
    names = dict.fromkeys(
        [
            *chance.sample(ENGINES, chance.randint(1, 2)),
            *chance.sample(OTHERS, chance.randint(1, 5)),
        ]
    )
    listed: Dict[str, Distribution] = {}
    for name in names:
        package = matrix.package(name)
        assert package is not None
        versions = [version for version in package.versions if not version.is_prerelease]
        version = str(chance.choice(versions[-30:]))
        if name == "torch" and chance.random() < 0.3:
            version += chance.choice(("+cu118", "+cu124", "+cu128", "+cpu"))
        listed[name] = Distribution(name, version)
    here = Evidence("test")
    assumed = [
        f"nvidia-driver={chance.choice(DRIVERS)}",
        f"gpu={chance.choice(GPUS)}",
        "glibc=2.35",
    ]
    facts = Facts(
        {
            "distributions": Known(listed, here),
            "python.version": Known(chance.choice(("3.10.12", "3.11.9", "3.12.4")), here),
        }
    )
    return facts.updated(parse_assumptions(assumed))


class Objective(NamedTuple):
    """What an answer costs, in the order of the objective."""

    roots_changed: int
    roots: Tuple[int, ...]
    changed: int
    rest: Tuple[int, ...]


def objective(
    model: Sequence[int],
    variables: Sequence[Variable],
    roots: Sequence[Item],
    items: Sequence[Item],
) -> Objective:
    """Work out the cost of an assignment from the words of the objective alone."""

    def rank(number: int) -> int:
        return list(values(variables[number])).index(model[number])

    return Objective(
        sum(1 for number, mask in roots if model[number] & mask),
        tuple(rank(number) for number, _ in roots),
        sum(1 for number, mask in items if model[number] & mask),
        tuple(rank(number) for number in range(len(variables))),
    )


class CountingOracle:
    """The same problem for a SAT solver, with cardinality encodings that others wrote.

    One solver keeps its clauses and what it learned between the questions: starting it anew for
    each costs fifteen times as much.
    """

    def __init__(self, variables: Sequence[Variable], nogoods: Sequence[Nogood]) -> None:
        from pysat.solvers import Solver

        self._solver = Solver(name="cadical153")
        self._names: List[Dict[int, int]] = []
        self._variables = variables
        self._top = 0
        self._bounds: List[int] = []  # literals that switch on the bounds that hold
        self._model: FrozenSet[int] = frozenset()  # of the last question that had an answer
        for variable in variables:
            names = {bit: self._new() for bit in values(variable)}
            self._names.append(names)
            self._solver.add_clause(list(names.values()))
            self._solver.append_formula(self._at_most(list(names.values()), 1))
        for nogood in nogoods:
            self._solver.add_clause(
                [
                    name
                    for number, mask in nogood.terms
                    for bit, name in self._names[number].items()
                    if not bit & mask
                ]
            )

    def __enter__(self) -> CountingOracle:
        return self

    def __exit__(self, *_: object) -> None:
        self._solver.delete()

    def _new(self) -> int:
        self._top += 1
        return self._top

    def _at_most(self, literals: List[int], bound: int) -> List[List[int]]:
        from pysat.card import CardEnc, EncType

        if len(literals) <= bound:
            return []
        encoded = CardEnc.atmost(literals, bound, top_id=self._top, encoding=EncType.seqcounter)
        self._top = max(self._top, encoded.nv)
        return [list(clause) for clause in encoded.clauses]

    def _changed(self, items: Sequence[Item]) -> List[int]:
        """One literal for each item, true where it is changed."""
        literals = []
        for number, mask in items:
            literal = self._new()
            literals.append(literal)
            for bit, name in self._names[number].items():
                if bit & mask:
                    self._solver.add_clause([-name, literal])
        return literals

    def optimum(self, roots: Sequence[Item], items: Sequence[Item]) -> Optional[Tuple[int, ...]]:
        """Fewest roots, each root in turn, fewest items, then each variable in turn."""
        if not self._solve([]):
            return None
        self._bound(self._changed(roots))
        assumed: List[int] = []
        for number, _ in roots:
            self._settle(number, assumed)
        for name in assumed:
            self._solver.add_clause([name])
        self._bound(self._changed(items))
        assumed.clear()
        for number in range(len(self._variables)):
            self._settle(number, assumed)
        chosen = set(assumed)
        return tuple(
            next(bit for bit, name in names.items() if name in chosen) for names in self._names
        )

    def _bound(self, literals: List[int]) -> None:
        """Let as few of these be true as can be; a bound that was too low is never switched on."""
        for bound in range(len(literals) + 1):
            switch = self._new()
            clauses = (
                self._at_most(literals, bound) if bound else [[-literal] for literal in literals]
            )
            for clause in clauses:
                self._solver.add_clause([*clause, -switch])
            if self._solve([switch]):
                self._bounds.append(switch)
                return

    def _settle(self, number: int, assumed: List[int]) -> None:
        """Give a variable the best value that leaves a solution."""
        for name in self._names[number].values():
            if name in self._model or self._solve([*assumed, name]):
                assumed.append(name)
                return

    def _solve(self, assumed: List[int]) -> bool:
        if not self._solver.solve(assumptions=[*self._bounds, *assumed]):
            return False
        self._model = frozenset(self._solver.get_model() or ())
        return True


def judge_repair(facts: Facts, matrix: Matrix) -> Tuple[str, str]:
    """Repair one environment; returns (what came of it, what is wrong with that, or nothing)."""
    if not faults_of(facts, matrix):
        return "healthy", ""
    change_plan = plan(facts, matrix, alternatives=False)
    if isinstance(change_plan, Explanation):
        return "explained", "" if change_plan.causes else "no cause is named"
    after = {
        finding.key for finding in faults_of(changed_facts(facts, change_plan.changes), matrix)
    }
    if after != {finding.key for finding in change_plan.remaining}:
        return "repaired", f"the plan says that {change_plan.remaining} remains, and {after} does"
    unexplained = [change.name for change in change_plan.changes if not change.reason.text]
    if unexplained:
        return "repaired", f"no reason is given for {unexplained}"
    return (
        "repaired"
        if not change_plan.remaining
        else "partly"
        if change_plan.changes
        else "not by packages"
    ), ""


def compare_with_oracle(facts: Facts, matrix: Matrix) -> str:
    """Return what is wrong with the optimum that the search finds, or nothing."""
    catalog = InstalledCatalog(
        matrix, request_for(facts, matrix), Situation(facts, lambda _requirer, _required: True)
    )
    problem = build_problem(catalog, (facts,), any_machine=True)
    given = counted(problem, catalog)
    outcome = settle(given.problem.variables, given.problem.nogoods, given.roots, given.items)
    with CountingOracle(given.problem.variables, given.problem.nogoods) as oracle:
        best = oracle.optimum(given.roots, given.items)
    if best == outcome.model:
        return ""
    if best is None or outcome.model is None:
        return f"the oracle says {'unsatisfiable' if best is None else 'satisfiable'}"
    mine, its = (
        objective(model, given.problem.variables, given.roots, given.items)
        for model in (outcome.model, best)
    )
    return f"the oracle has {its[:3]}, the search {mine[:3]}"
