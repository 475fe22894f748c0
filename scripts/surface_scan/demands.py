"""What importing the entry modules of a release imports of other packages."""

from __future__ import annotations

import heapq
import itertools
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from .conditions import NEVER, Condition, Limits
from .module import Call, Import, Use
from .packages import Entry
from .release import Foreign, Release

__all__ = ["Demand", "demands_of"]

_ALWAYS = Limits()


class Demand(NamedTuple):
    """An import of another package's name that runs whenever an entry module is imported.

    name: "" for a module. alternatives: it runs where one of these (module, name) of the same
    package was missing; empty where it always runs. used: it is no import, but an attribute of an
    imported module.
    """

    provider: str
    module: str
    name: str
    limits: Limits
    entry: Entry
    path: str
    line: int
    alternatives: Tuple[Tuple[str, str], ...]
    used: bool = False


def demands_of(release: Release, entries: Tuple[Entry, ...], foreign: Foreign) -> List[Demand]:
    """Return what importing the entry modules of a release imports of other packages; the modules
    that it reached are ``release.entered`` then.
    """
    return _Imports(release, foreign).demands(entries)


class _Imports:
    """What the modules of a release import that are run when one is imported."""

    def __init__(self, release: Release, foreign: Foreign) -> None:
        self._release = release
        self._readings = release.readings
        self._packages = release.packages
        self._foreign = foreign

    def demands(self, entries: Tuple[Entry, ...]) -> List[Demand]:
        """Return what importing the entry modules imports of other packages."""
        found: Dict[Tuple[Any, ...], Demand] = {}
        # What an earlier entry always runs needs no second look: entries of everybody come first.
        always: Set[str] = set()
        for entry in entries:
            reached = self._reached(entry.module, always)
            always.update(module for module, limits in reached.items() if limits == Limits())
            for module, limits in reached.items():
                self._release.entered.setdefault(module, (limits, entry))
            for module, limits in reached.items():
                for demand in self._of_module(module, limits, entry):
                    found.setdefault(_key(demand), demand)
        for demand in self._started():
            found.setdefault(_key(demand), demand)
        return list(found.values())

    def _started(self) -> Iterator[Demand]:
        """Yield what the functions import that people's runs come to, and the modules of their own
        that these import.
        """
        for start, use in self._packages.starts.get(self._release.archive.package, {}).items():
            module, _, function = start.partition(":")
            source = self._release.source_key(module)
            if not source:
                continue
            entry = Entry(module, use, False)
            imports = self._readings.started(source, function)
            yield from self._of_imports(module, imports, Limits(), entry)
            for target, limits in list(self._own_targets(module, imports, Limits())):
                for name, own in self._reached(target, set(self._release.entered), limits).items():
                    self._release.entered.setdefault(name, (own, entry))
                    yield from self._of_module(name, own, entry)

    def _reached(self, entry: str, known: Set[str], limits: Limits = _ALWAYS) -> Dict[str, Limits]:
        """The modules of this release, but those ``known``, that importing one under limits runs,
        with what must be installed for it.
        """
        reached: Dict[str, Limits] = {}
        if entry not in self._release.modules:
            return reached
        # Those that always run first: the way with the fewest conditions counts; of equal ones the
        # last that was come to.
        waiting: List[Tuple[int, int, str, Limits]] = [(0, 0, entry, limits)]
        serial = itertools.count(-1, -1)
        while waiting:
            _, _, module, limits = heapq.heappop(waiting)
            for name in _with_parents(module):
                if name in reached or name in known or name not in self._release.modules:
                    continue
                reached[name] = limits
                for target, joined in self._edges(name, limits):
                    conditions = sum(map(len, joined))
                    heapq.heappush(waiting, (conditions, next(serial), target, joined))
        return reached

    def _edges(self, module: str, limits: Limits) -> Iterator[Tuple[str, Limits]]:
        imports = [Import(*raw) for raw in (self._release.reading(module) or {}).get("imports", ())]
        yield from self._own_targets(module, imports, limits)

    def _own_targets(
        self, module: str, imports: List[Import], limits: Limits
    ) -> Iterator[Tuple[str, Limits]]:
        """Yield the modules of the package itself that imports in one of them run."""
        for item in imports:
            target = self._release.absolute(module, item.level, item.module)
            if item.guarded or item.after or target.split(".")[0] != module.split(".")[0]:
                continue
            own = self._limits(module, item.conditions)
            if own is None or own == NEVER:
                continue
            joined = limits.joined(own)
            yield target, joined
            places = (self._release.reading(target) or {}).get("places", {})
            for name in item.names or ():
                if f"{target}.{name}" in self._release.modules:
                    yield f"{target}.{name}", joined
                elif name in places:
                    yield f"{target}.{places[name]}", joined

    def _of_module(self, module: str, limits: Limits, entry: Entry) -> Iterator[Demand]:
        reading = self._release.reading(module) or {}
        imports = [Import(*raw) for raw in reading.get("imports", ())]
        yield from self._of_imports(module, imports, limits, entry)
        for use in (Use(*raw) for raw in reading.get("used", ())):
            yield from self._of_use(module, use, limits, entry)
        for call in (Call(*raw) for raw in reading.get("calls", ())):
            yield from self._of_call(module, call, limits, entry)

    def _of_call(self, module: str, call: Call, limits: Limits, entry: Entry) -> Iterator[Demand]:
        """Yield what a function of the package itself needs that a module calls when it is
        imported; what that function calls in turn is not followed.
        """
        own = self._limits(module, call.conditions)
        if own is None or own == NEVER:
            return
        place, (imports, uses) = self._function(module, call.name)
        joined = limits.joined(own)
        items = [Import(*raw) for raw in imports]
        yield from self._of_imports(place, items, joined, entry)
        for use in (Use(*raw) for raw in uses):
            yield from self._of_use(place, use, joined, entry)

    def _function(self, module: str, name: str) -> Tuple[str, List[List[Any]]]:
        """Return the module of the package in which a function is defined that another module of it
        has under a name, and what it does when it is called; nothing where that is not known.
        """
        place = self._release.definition(module, name)
        if not place:
            return module, [[], []]
        return place, self._readings.called(self._release.source_key(place)).get(name, [[], []])

    def _of_use(self, module: str, use: Use, limits: Limits, entry: Entry) -> Iterator[Demand]:
        """Yield what must be in a module of another package for its attributes to be read: the
        first that is no module.
        """
        providers = self._packages.owners(use.module)
        own = self._limits(module, use.conditions) if len(providers) == 1 else None
        newest = self._foreign(providers[0]) if providers and own not in (None, NEVER) else None
        if newest is None or own is None or self._release.archive.package in providers:
            return
        parts = [*use.module.split("."), *use.chain.split(".")]
        place = 1
        while place < len(parts) and newest.has_module(".".join(parts[: place + 1])):
            place += 1
        if place < len(parts) and not parts[place].startswith("__"):
            yield Demand(
                providers[0],
                ".".join(parts[:place]),
                parts[place],
                limits.joined(own),
                entry,
                self._release.path_of(module),
                use.line,
                (),
                True,
            )

    def _of_imports(
        self,
        module: str,
        imports: List[Import],
        limits: Limits,
        entry: Entry,
    ) -> Iterator[Demand]:
        for item in imports:
            target = self._release.absolute(module, item.level, item.module)
            providers = self._packages.owners(target)
            if not providers or item.guarded:
                continue
            own = self._limits(module, item.conditions)
            if own is None or own == NEVER:
                continue
            if self._release.archive.package in providers:
                if not item.after:
                    yield from self._of_own_names(target, item, limits.joined(own), entry)
                continue
            alternatives = self._tried(item, imports, providers)
            if alternatives is None:
                continue
            for provider, name in itertools.product(providers, item.names or [""]):
                yield Demand(
                    provider,
                    item.module,
                    "" if name == "*" else name,
                    limits.joined(own),
                    entry,
                    self._release.path_of(module),
                    item.line,
                    alternatives,
                )

    def _of_own_names(
        self, target: str, item: Import, limits: Limits, entry: Entry
    ) -> Iterator[Demand]:
        """Yield what must be in another package for a module of this one to have what is imported
        from it.
        """
        source = self._release.source_key(target)
        if not item.names or not source:
            return
        optional = self._readings.optional_names(source)
        for name in item.names:
            asked = optional.get(name)
            providers = self._packages.owners(asked.module) if asked is not None else ()
            if asked is not None and self._release.archive.package not in providers:
                path = self._release.path_of(target)
                for provider in providers:
                    what = (provider, asked.module, asked.name, limits, entry)
                    yield Demand(*what, path, asked.line, ())

    def _tried(
        self, item: Import, imports: List[Import], providers: Tuple[str, ...]
    ) -> Optional[Tuple[Tuple[str, str], ...]]:
        """What was tried before an import in a handler; None where that is not only names of the
        same package.
        """
        tried: List[Tuple[str, str]] = []
        for number in item.after:
            if number < 0:
                return None
            other = imports[number]
            if other.level or self._packages.owners(other.module) != providers:
                return None
            tried += [(other.module, name) for name in other.names or [""]]
        return tuple(tried)

    def _limits(self, module: str, conditions: List[Condition]) -> Optional[Limits]:
        return self._release.limits_of(module, conditions, self._foreign)


def _key(demand: Demand) -> Tuple[Any, ...]:
    """What demands share that say the same."""
    return (
        *(demand.provider, demand.module, demand.name, demand.limits),
        *(demand.entry.main, demand.used),
    )


def _with_parents(module: str) -> Iterator[str]:
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        yield ".".join(parts[:depth])
