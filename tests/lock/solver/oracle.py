"""What the solver is compared with: a SAT solver that knows nothing of it, and brute force for what
is tiny.
"""

from __future__ import annotations

from datetime import date
from itertools import product
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from envdoctor.lock.solver.engine import Nogood, Variable
from envdoctor.lock.solver.problem import Edge, Problem
from envdoctor.model.request import Root


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
        clauses = self.clauses = []  # type: List[List[int]]
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
        self._count = count
        self._solver = Solver(name="cadical153", bootstrap_with=clauses)

    def name(self, variable: int, bit: int) -> int:
        """The boolean of one value."""
        return self._names[variable][bit]

    def bits(self, variable: int) -> List[int]:
        """The values of a variable, the preferred one first."""
        return list(self._names[variable])

    def fresh(self) -> int:
        """A boolean that stands for nothing yet."""
        self._count += 1
        return self._count

    def add(self, clause: List[int]) -> None:
        self.clauses.append(clause)
        self._solver.add_clause(clause)

    def admits(self, *assumed: int) -> bool:
        return self._solve(list(assumed)) is not None

    def close(self) -> None:
        self._solver.delete()

    def satisfiable(self) -> bool:
        return self._solve([]) is not None

    def _solve(self, assumed: Sequence[int]) -> Optional[Set[int]]:
        """What is true in a model, or None."""
        while self._solver.solve(assumptions=list(assumed)):
            true = set(self._solver.get_model() or ())
            if not self.rule_out(true):
                return true
        return None

    def rule_out(self, true: Set[int]) -> bool:
        """Add clauses that a model violates though those so far do not say so; tell whether there
        are any.
        """
        return False

    def optimum(self) -> Optional[Tuple[int, ...]]:
        """The lexicographic optimum: each variable in turn gets the best value that leaves a
        solution.
        """
        assumed: List[int] = []
        model: List[int] = []
        known = self._solve([])
        for names in self._names if known is not None else ():
            for bit, name in names.items():
                better = known if name in known else self._solve([*assumed, name])
                if better is not None:
                    known = better
                    assumed.append(name)
                    model.append(bit)
                    break
        return tuple(model) if known is not None else None


class FoundedOracle(SatOracle):
    """A problem of packages, in which nothing is there that nothing asks for: found again in each
    model by following what is asked for, whatever the problem says of it.
    """

    def __init__(self, problem: Problem, nogoods: Sequence[Nogood]) -> None:
        calls = {problem.nodes.index(call.node) for call in problem.calls}
        of_need = ("extra", ("need",))
        kept = [
            nogood
            for nogood in nogoods
            if nogood.why[:2] != of_need or any(number in calls for number, _ in nogood.terms)
        ]
        super().__init__(problem.variables, kept)
        self._problem = problem
        self._number = {node: number for number, node in enumerate(problem.nodes)}
        self._edges: Dict[str, List[Edge]] = {node: [] for node in problem.tables}
        for edge in problem.edges:
            self._edges[edge.requirer].append(edge)
        for node in problem.tables:  # what is left then are circles
            if node not in problem.anchors:
                self._ask_for_reasons({node})

    def _values(self, node: str, bits: int) -> List[int]:
        """The booleans of some values of a node."""
        names = self._names[self._number[node]]
        return [name for bit, name in names.items() if bit & bits]

    def rule_out(self, true: Set[int]) -> bool:
        problem = self._problem

        def has(node: str, bits: int) -> bool:
            return any(name in true for name in self._values(node, bits))

        waiting = list(problem.anchors)
        waiting += [
            call.name for call in problem.calls if has(call.node, 1) and has(call.name, call.bits)
        ]
        reasoned = set(waiting)
        while waiting:
            node = waiting.pop()
            for edge in self._edges[node]:
                if has(node, edge.bits):
                    new = {edge.name, edge.name.split("[")[0]} - reasoned
                    reasoned |= new
                    waiting += new
        tables = problem.tables
        bare = {node for node in tables if node not in reasoned and has(node, tables[node].all)}
        if bare:
            self._ask_for_reasons(bare)
        return bool(bare)

    def _ask_for_reasons(self, bare: Set[str]) -> None:
        """State that none of these is there unless something else asks for one of them."""
        problem, reasons = self._problem, []
        for edge in problem.edges:
            if edge.requirer not in bare and bare & {edge.name, edge.name.split("[")[0]}:
                reasons += self._values(edge.requirer, edge.bits)
        for call in problem.calls:  # a reason for these values of the package alone
            if call.name in bare:
                called = self.fresh()
                reasons.append(called)
                self.add([-called, *self._values(call.node, 1)])
                self.add([-called, *self._values(call.name, call.bits)])
        reason = self.fresh()
        self.add([-reason, *reasons])
        for node in bare:
            for name in self._values(node, problem.tables[node].all):
                self.add([-name, reason])


def in_order(problem: Problem, first: Sequence[str]) -> Problem:
    """The same problem with some of its nodes, in another order, before the others."""
    known = [node for node in first if node in problem.nodes]
    order = [*known, *(node for node in problem.nodes if node not in known)]
    place = {node: number for number, node in enumerate(order)}
    variables = dict(zip(problem.nodes, problem.variables))
    return problem._replace(
        nodes=tuple(order),
        variables=tuple(variables[node] for node in order),
        nogoods=tuple(
            Nogood(
                tuple((place[problem.nodes[number]], mask) for number, mask in nogood.terms),
                nogood.why,
            )
            for nogood in problem.nogoods
        ),
    )


MONTH, YEAR = 30, 365
MONTHS_OF_FAULT = {"wrong-results": 12, "blocks": 9, "degrades": 6}
MONTHS_OF_SLOWER_MACHINE = 3


class AgeOracle:
    """The objective of a lock in words of a SAT and a MaxSAT solver: the least worst year of the
    roots, then the fewest months of those that no other requires and these in their order, then the
    same of the other roots, then the lexicographic optimum. ``edges``: what tells which root
    requires which.
    """

    def __init__(self, problem: Problem, roots: Sequence[Root], edges: Sequence[Edge]) -> None:
        self._problem = problem
        self._edges = edges
        self._number = {node: number for number, node in enumerate(problem.nodes)}
        self._roots = list(dict.fromkeys(root.name for root in roots))
        self._peers = self._not_required({root.name: set() for root in roots}, roots)
        self.newest: Dict[str, int] = {}

    def optimum(self) -> Optional[Tuple[int, ...]]:
        problem = self._problem
        oracle = FoundedOracle(problem, problem.nogoods)
        try:
            if not oracle.satisfiable():
                return None
            days = {name: self._days(name) for name in self._roots}
            self._bound_years(oracle, days)
            required = [name for name in self._roots if name not in self._peers]
            for names in ([name for name in self._roots if name in self._peers], required):
                weights = self._weights(oracle, days, names)
                self._bound_sum(oracle, weights, _least_cost(oracle, weights))
                model = oracle.optimum()
                assert model is not None
                for node in problem.nodes:
                    if node.split("[")[0] in names:
                        oracle.add([oracle.name(self._number[node], model[self._number[node]])])
            return oracle.optimum()
        finally:
            oracle.close()

    def _days(self, name: str) -> Dict[int, int]:
        """How far each release is behind the newest one that is possible without other roots."""
        problem, number = self._problem, self._number[name]
        alone = [
            nogood
            for nogood in problem.nogoods
            if nogood.why.kind != "request"
            or problem.nodes[nogood.terms[0][0]].split("[")[0] == name
        ]
        oracle = FoundedOracle(problem, alone)
        try:
            best = next(
                bit for bit in oracle.bits(number) if oracle.admits(oracle.name(number, bit))
            )
        finally:
            oracle.close()
        self.newest[name] = best
        table = problem.tables[name]
        newest = date.fromisoformat(table.at(best).release.released)
        return {
            bit: max(0, (newest - date.fromisoformat(table.at(bit).release.released)).days)
            for bit in values(problem.variables[number])
            if bit != table.absent
        }

    def _not_required(self, requires: Dict[str, Set[str]], roots: Sequence[Root]) -> Set[str]:
        """The roots that no other one leads to; of a circle all."""
        asked: Dict[str, Set[str]] = {
            name: {
                name,
                *(
                    f"{root.name}[{extra}]"
                    for root in roots
                    if root.name == name
                    for extra in root.extras
                ),
            }
            for name in requires
        }
        changed = True
        while changed:
            changed = False
            for edge in self._edges:
                for nodes in asked.values():
                    if edge.requirer in nodes and edge.name not in nodes:
                        nodes.add(edge.name)
                        changed = True
        leads = {
            (name, other)
            for name, nodes in asked.items()
            for other in asked
            if other != name and any(node.split("[")[0] == other for node in nodes)
        }
        return {
            name
            for name in asked
            if all((name, other) in leads for other in asked if (other, name) in leads)
        }

    def _bound_years(self, oracle: SatOracle, days: Mapping[str, Mapping[int, int]]) -> None:
        """Forbid what is further behind, in years, than the worst root has to be."""
        levels: Dict[int, int] = {}
        for name, behind in days.items():
            for bit, count in behind.items():
                whole = 0
                while count > (whole + 1) * YEAR:
                    whole += 1
                level = whole if name in self._peers else whole - 1
                levels[oracle.name(self._number[name], bit)] = max(level, 0)
        for worst in sorted(set(levels.values())):
            forbidden = [-literal for literal, level in levels.items() if level > worst]
            if oracle.admits(*forbidden):
                for literal in forbidden:
                    oracle.add([literal])
                return

    def _weights(
        self,
        oracle: SatOracle,
        days: Mapping[str, Mapping[int, int]],
        names: Sequence[str],
    ) -> List[Dict[int, int]]:
        """For each thing that counts, its values that cost months."""
        weights = [
            {
                oracle.name(self._number[name], bit): count // MONTH
                for bit, count in days[name].items()
                if count >= MONTH
            }
            for name in names
        ]
        faults = {
            nogood.why.row.id: nogood.why.row
            for nogood in self._problem.nogoods
            if nogood.why.kind == "cost" and nogood.why.row.component in names
        }
        for row in faults.values():
            violated = oracle.name(self._number[f"cost:{row.id}"], 0b01)
            machine = [term for term in row.terms if term.scope not in ("env", "var", "request")]
            slower = bool(machine) and row.effect == "degrades"
            months = MONTHS_OF_SLOWER_MACHINE if slower else MONTHS_OF_FAULT[row.effect]
            weights.append({violated: months})
        return weights

    @staticmethod
    def _bound_sum(oracle: SatOracle, weights: Sequence[Mapping[int, int]], most: int) -> None:
        """Forbid what costs more in all: a boolean for each sum that the first few can reach."""
        reached = {0: oracle.fresh()}
        oracle.add([reached[0]])
        for group in weights:
            following: Dict[int, int] = {}
            for total, state in reached.items():
                stays = following.setdefault(total, oracle.fresh())
                oracle.add([-state, stays, *group])
                for literal, cost in group.items():
                    if total + cost > most:
                        oracle.add([-state, -literal])
                        continue
                    next_state = following.setdefault(total + cost, oracle.fresh())
                    oracle.add([-state, -literal, next_state])
            reached = following


def _least_cost(oracle: SatOracle, weights: Sequence[Mapping[int, int]]) -> int:
    from pysat.examples.rc2 import RC2
    from pysat.formula import WCNF

    while True:
        formula = WCNF()
        for clause in oracle.clauses:
            formula.append(list(clause))
        for group in weights:
            for literal, cost in group.items():
                formula.append([-literal], weight=cost)
        with RC2(formula) as search:
            if not oracle.rule_out(set(search.compute())):
                return int(search.cost)
