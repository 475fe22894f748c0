"""Clause learning over finite candidate sets: the search, and nothing about packages.

A variable is a package; its domain is one int, bit i its i-th candidate in order of preference, the
top bit "absent". A nogood maps variables to masks and says "not all of these at once". Unit
propagation, first-UIP learning and backjumping are those of SAT solvers, on masks; resolution of
two nogoods on a variable is the union of its masks and the intersection of all others.

Decisions follow a fixed order of variables and of values. What propagation and learned nogoods
remove is implied by earlier decisions, so each decision is the best value that these leave, and the
first model found is the lexicographic optimum: no separate optimisation. A sum that is to be small
is such a variable too, which stands before what it counts: nogoods that bound it are made when the
values that are left contradict it, since all of them would be too many.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...errors import EnvdoctorError

__all__ = ["GaveUp", "Nogood", "Outcome", "Sum", "Variable", "solve"]

#: Conflicts after which a search ends without an answer; random stacks need some hundred at most.
CONFLICT_LIMIT = 20_000


class GaveUp(EnvdoctorError):
    """The search limit was reached: neither a solution nor a proof that there is none."""


class Variable(NamedTuple):
    """One variable: the values it may take, and which of them stands for "absent" (0: none)."""

    domain: int
    absent: int


class Nogood(NamedTuple):
    """Not all of these at once: (variable, mask) pairs in order of variables.

    ``why`` is the caller's.
    """

    terms: Tuple[Tuple[int, int], ...]
    why: Any = None


class Sum(NamedTuple):
    """Bit i of ``variable`` says that what the others cost is at most i in all.

    costs: by variable, (cost, values that cost so much) in ascending order; each value that is not
    named costs nothing. The domain of ``variable`` has to reach as far as all costs together.
    """

    variable: int
    costs: Mapping[int, Tuple[Tuple[int, int], ...]]


class Outcome(NamedTuple):
    """The bit of each variable, or None and the numbers of the nogoods that refute the problem."""

    model: Optional[Tuple[int, ...]]
    core: Tuple[int, ...]
    conflicts: int
    decisions: int


def solve(
    variables: Sequence[Variable],
    nogoods: Iterable[Nogood],
    limit: int = CONFLICT_LIMIT,
    sums: Sequence[Sum] = (),
    first: Sequence[int] = (),
) -> Outcome:
    """Find the lexicographic optimum: variables in order, those of ``first`` before the others,
    each absent where that is possible, else its lowest bit.

    Raises:
        GaveUp: after ``limit`` conflicts.
    """
    return _Search(variables, nogoods, limit, sums, first).run()


class _Search:
    def __init__(
        self,
        variables: Sequence[Variable],
        nogoods: Iterable[Nogood],
        limit: int,
        sums: Sequence[Sum],
        first: Sequence[int],
    ) -> None:
        self._domains = [variable.domain for variable in variables]
        self._absent = [variable.absent for variable in variables]
        self._limit = limit
        self._sums = tuple(sums)
        self._order = [*first, *(number for number in range(len(variables)) if number not in first)]
        self._clauses: List[Dict[int, int]] = []
        self._given = 0
        self._parents: Dict[
            int, Tuple[int, ...]
        ] = {}  # of learned nogoods: what they were resolved from
        self._watchers: List[List[int]] = [[] for _ in variables]
        self._watched: List[Tuple[int, int]] = []
        # The trail: variable, its domain before, the nogood that narrowed it (-1: a decision),
        # level.
        self._trail: List[Tuple[int, int, int, int]] = []
        self._history: List[List[int]] = [[] for _ in variables]  # places in the trail, by variable
        self._level = 0
        self._next = 0  # place in the trail from which on it is not propagated
        self._units: List[int] = []
        self._conflicts = 0
        self._decisions = 0
        self._core: Tuple[int, ...] = ()
        for nogood in nogoods:
            self._give(dict(nogood.terms))
        self._given = len(self._clauses)

    # ----------------------------------------------------------------------------------------------
    # the loop

    def run(self) -> Outcome:
        """Search to the end."""
        conflict = next((number for number in self._units if not self._assert(number)), -1)
        empty = next((variable for variable, domain in enumerate(self._domains) if not domain), -1)
        if empty >= 0 and conflict < 0:  # a variable without candidates refutes by itself
            return Outcome(None, (), 0, 0)
        cursor = 0
        while True:
            if conflict < 0:
                conflict = self._propagate_all()
            if conflict >= 0:
                self._conflicts += 1
                if self._conflicts > self._limit:
                    raise GaveUp(
                        f"the search for a resolution was given up after {self._limit} conflicts; "
                        "nothing is proven either way"
                    )
                if not self._learn(conflict):
                    return Outcome(None, self._core, self._conflicts, self._decisions)
                conflict = -1
                cursor = 0
                continue
            domains, order = self._domains, self._order
            count = len(domains)
            while cursor < count and not domains[order[cursor]] & (domains[order[cursor]] - 1):
                cursor += 1
            if cursor == count:
                return Outcome(tuple(domains), (), self._conflicts, self._decisions)
            variable = order[cursor]
            domain = domains[variable]
            value = domain & self._absent[variable] or domain & -domain
            self._level += 1
            self._decisions += 1
            self._narrow(variable, value, -1)

    def _narrow(self, variable: int, domain: int, reason: int) -> None:
        self._history[variable].append(len(self._trail))
        self._trail.append((variable, self._domains[variable], reason, self._level))
        self._domains[variable] = domain

    # ----------------------------------------------------------------------------------------------
    # nogoods

    def _give(self, terms: Dict[int, int]) -> None:
        """Take a nogood of the problem, and watch two terms that do not hold yet; where all but one
        hold before the search starts, it is queued.
        """
        domains = self._domains
        waiting = [variable for variable, mask in terms.items() if domains[variable] & ~mask]
        if len(waiting) < 2:
            self._units.append(len(self._clauses))
            waiting += [variable for variable in terms if variable not in waiting]
        self._watch(terms, waiting)

    def _learned(self, terms: Dict[int, int]) -> int:
        """Take a nogood that was learned, and watch the asserting term and the one that was
        satisfied last, so that backtracking frees them first.
        """
        by_place = sorted(
            terms, key=lambda variable: self._satisfied_at(variable, terms[variable]), reverse=True
        )
        return self._watch(terms, by_place)

    def _watch(self, terms: Dict[int, int], order: Sequence[int]) -> int:
        """Add a nogood that is watched by the first two of its variables; return its number."""
        number = len(self._clauses)
        self._clauses.append(terms)
        if len(order) < 2:  # asserted once, and never looked at again
            self._watched.append((order[0], order[0]) if order else (-1, -1))
            return number
        first, second = order[0], order[1]
        self._watched.append((first, second))
        self._watchers[first].append(number)
        self._watchers[second].append(number)
        return number

    def _assert(self, number: int) -> bool:
        """Apply a nogood of which at most one term does not hold; False where all hold."""
        terms = self._clauses[number]
        for variable, mask in terms.items():
            domain = self._domains[variable]
            if domain & ~mask:
                others = all(
                    not self._domains[other] & ~other_mask
                    for other, other_mask in terms.items()
                    if other != variable
                )
                if others and domain & mask:
                    self._narrow(variable, domain & ~mask, number)
                return True
        return False

    def _propagate(self) -> int:
        """Propagate to the end; return the number of a nogood that holds entirely, or -1."""
        domains, clauses, watched = self._domains, self._clauses, self._watched
        trail = self._trail
        while self._next < len(trail):
            variable = trail[self._next][0]
            self._next += 1
            domain = domains[variable]
            watchers = self._watchers[variable]
            kept: List[int] = []
            for place, number in enumerate(watchers):
                terms = clauses[number]
                if domain & ~terms[variable]:
                    kept.append(number)
                    continue
                first, second = watched[number]
                other = second if first == variable else first
                left = domains[other]
                mask = terms[other]
                if not left & mask:  # cannot hold any more
                    kept.append(number)
                    continue
                moved = False
                for candidate, own_mask in terms.items():
                    if (
                        candidate != variable
                        and candidate != other
                        and domains[candidate] & ~own_mask
                    ):
                        watched[number] = (other, candidate)
                        self._watchers[candidate].append(number)
                        moved = True
                        break
                if moved:
                    continue
                kept.append(number)
                if not left & ~mask:
                    kept.extend(watchers[place + 1 :])
                    self._watchers[variable] = kept
                    return number
                self._narrow(other, left & ~mask, number)
            self._watchers[variable] = kept
        return -1

    def _propagate_all(self) -> int:
        """Propagate nogoods and sums to the end; return the number of a nogood that holds entirely,
        or -1.
        """
        while True:
            conflict = self._propagate()
            if conflict >= 0:
                return conflict
            terms = next(filter(None, map(self._exceeded, self._sums)), None)
            if terms is None:
                return -1
            number = self._learned(terms)
            if not self._assert(number):
                return number

    def _exceeded(self, total: Sum) -> Optional[Dict[int, int]]:
        """Return a nogood that follows from a sum and of which at most one term does not hold yet,
        or None: values of the sum that are too low for what is left, or values of one variable that
        are too dear for what is left of the sum.
        """
        domains = self._domains
        least: Dict[int, Tuple[int, int]] = {}  # cost, values that cost at least so much
        for variable, costs in total.costs.items():
            domain = domains[variable]
            if costs and not domain & ~_union(costs):  # all that is left costs
                place = next(place for place, (_, values) in enumerate(costs) if domain & values)
                least[variable] = (costs[place][0], _union(costs[place:]))
        floor = sum(cost for cost, _ in least.values())
        terms = {variable: values for variable, (_, values) in least.items()}
        low = (1 << floor) - 1
        if domains[total.variable] & low:
            return {**terms, total.variable: low}
        room = domains[total.variable].bit_length() - 1 - floor
        for variable, costs in total.costs.items():
            most = room + least.get(variable, (0, 0))[0]
            for place, (cost, _) in enumerate(costs):
                dear = _union(costs[place:]) if cost > most else 0
                if dear & domains[variable]:
                    others = floor - least.get(variable, (0, 0))[0]
                    terms[variable] = dear
                    return {**terms, total.variable: (1 << (others + cost)) - 1}
                if dear:
                    break
        return None

    # ----------------------------------------------------------------------------------------------
    # learning

    def _satisfied_at(self, variable: int, mask: int) -> int:
        """The place in the trail where a term began to hold: -1 from the start, past the end where
        it does not hold.
        """
        if self._domains[variable] & ~mask:
            return len(self._trail)
        history = self._history[variable]
        for place in reversed(history):
            if self._trail[place][1] & ~mask:  # the domain before this narrowing did not hold
                return place
        return -1

    def _learn(self, conflict: int) -> bool:
        """Learn from a nogood that holds entirely and jump back; False where that refutes the
        problem.
        """
        terms = dict(self._clauses[conflict])
        used = [conflict]
        trail = self._trail
        while True:
            places = [
                (self._satisfied_at(variable, mask), variable) for variable, mask in terms.items()
            ]
            place, variable = max(places, default=(-1, -1))
            if place < 0:
                self._core = self._leaves(used)
                return False
            _, _, reason, level = trail[place]
            back = max((trail[other][3] for other, _ in places if 0 <= other != place), default=0)
            if reason < 0 or (back < level):
                break
            used.append(reason)
            terms = _resolve(terms, self._clauses[reason], variable, self._full(variable))
        self._jump(back if level else 0, terms, used)
        return True

    def _full(self, variable: int) -> int:
        """The domain of a variable before the search."""
        history = self._history[variable]
        return self._trail[history[0]][1] if history else self._domains[variable]

    def _jump(self, level: int, terms: Dict[int, int], used: Sequence[int]) -> None:
        trail = self._trail
        while trail and trail[-1][3] > level:
            variable, domain, _, _ = trail.pop()
            self._history[variable].pop()
            self._domains[variable] = domain
        self._level = level
        self._next = len(trail)
        number = self._learned(terms)
        self._parents[number] = tuple(used)
        self._assert(number)

    def _leaves(self, used: Sequence[int]) -> Tuple[int, ...]:
        """The given nogoods from which a refutation was derived."""
        waiting, seen = list(used), set(used)
        while waiting:
            for parent in self._parents.get(waiting.pop(), ()):
                if parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
        return tuple(sorted(number for number in seen if number < self._given))


def _union(costs: Iterable[Tuple[int, int]]) -> int:
    union = 0
    for _, values in costs:
        union |= values
    return union


def _resolve(
    terms: Dict[int, int], reason: Mapping[int, int], variable: int, full: int
) -> Dict[int, int]:
    """Resolve two nogoods on a variable."""
    resolvent = dict(terms)
    for other, mask in reason.items():
        if other == variable:
            joined = resolvent[variable] | mask
            if joined & full == full:
                del resolvent[variable]
            else:
                resolvent[variable] = joined
        else:
            resolvent[other] = resolvent.get(other, mask) & mask if other in resolvent else mask
    return resolvent
