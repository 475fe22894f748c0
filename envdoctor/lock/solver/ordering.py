"""Which node comes before which: requirers before what they require."""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, Sequence, Set, Tuple

__all__ = ["reached", "requirers_first", "topological"]


def reached(nodes: Iterable[str], requires: Mapping[str, Set[str]]) -> Set[str]:
    """Return what these nodes require, directly or not, and they themselves."""
    seen = set(nodes)
    waiting = list(seen)
    while waiting:
        for other in requires.get(waiting.pop(), ()):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen


def requirers_first(
    nodes: Mapping[str, Sequence[str]], requires: Mapping[str, Set[str]]
) -> Tuple[List[str], List[str]]:
    """Return names, each with its nodes, in two lists: those that no other requires, directly or
    not, as they stand, and the others, each after those that require it. Names that require each
    other count as one.
    """
    below = {
        name: {node.partition("[")[0] for node in reached(members, requires)}
        for name, members in nodes.items()
    }

    def is_free(name: str, among: Sequence[str]) -> bool:
        return not any(name in below[other] and other not in below[name] for other in among)

    first = [name for name in nodes if is_free(name, list(nodes))]
    waiting = [name for name in nodes if name not in first]
    others: List[str] = []
    while waiting:
        others.append(next(name for name in waiting if is_free(name, waiting)))
        waiting.remove(others[-1])
    return first, others


def topological(requires: Mapping[str, Set[str]]) -> List[str]:
    """Order nodes so that each comes before what it requires; members of a cycle stand together, by
    name.
    """
    from heapq import heapify, heappop, heappush

    component = _components(requires)
    members: Dict[str, List[str]] = {}
    for node, head in component.items():
        members.setdefault(head, []).append(node)
    lead = {head: min(group) for head, group in members.items()}
    waiting: Dict[str, int] = dict.fromkeys(members, 0)
    after: Dict[str, Set[str]] = {head: set() for head in members}
    for node, wanted in requires.items():
        for other in wanted:
            if (
                component[node] != component[other]
                and component[other] not in after[component[node]]
            ):
                after[component[node]].add(component[other])
                waiting[component[other]] += 1
    ready = [(lead[head], head) for head, count in waiting.items() if not count]
    heapify(ready)
    order: List[str] = []
    while ready:
        _, head = heappop(ready)
        order += sorted(members[head])
        for other in after[head]:
            waiting[other] -= 1
            if not waiting[other]:
                heappush(ready, (lead[other], other))
    return order


def _components(requires: Mapping[str, Set[str]]) -> Dict[str, str]:
    """Return for each node the head of its strongly connected component (Tarjan, without
    recursion).
    """
    place: Dict[str, int] = {}
    low: Dict[str, int] = {}
    stack: List[str] = []
    heads: Dict[str, str] = {}
    for start in sorted(requires):
        if start in place:
            continue
        place[start] = low[start] = len(place)
        stack.append(start)
        work = [(start, iter(sorted(requires[start])))]
        while work:
            node, others = work[-1]
            for other in others:
                if other not in place:
                    place[other] = low[other] = len(place)
                    stack.append(other)
                    work.append((other, iter(sorted(requires.get(other, ())))))
                    break
                if other not in heads:
                    low[node] = min(low[node], place[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == place[node]:
                    bottom = stack.index(node)
                    heads.update(dict.fromkeys(stack[bottom:], node))
                    del stack[bottom:]
    return heads
