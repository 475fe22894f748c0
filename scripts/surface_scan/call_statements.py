"""Statements about arguments: a package passes one to a function of another that its release does
not take, or overrides a method without one that the other's release calls it with.
"""

from __future__ import annotations

import functools
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from envdoctor.matrix.measured_rows import OVERRIDES, PASSES

from .calls import Call, OwnCall
from .conditions import NEVER, Limits
from .documents import runs
from .pairs import direction, meets, mending, third_packages
from .release import Release

__all__ = ["ARGUMENTS", "Signatures", "argument_statements"]

#: What the statements say that are made here.
ARGUMENTS = (PASSES, OVERRIDES)
_MOST_STEPS = 8
_MOST_CLASSES = 20  # above one another
_WHEN_MADE = (".__init__", ".__post_init__")
#: Methods that their class makes of itself; what calls them is not the class.
_MADE = frozenset(("__init__", "__new__", "__post_init__"))


class Place(NamedTuple):
    """A class or a function: where it is defined, and its name there."""

    package: str
    module: str
    name: str


class Signatures:
    """What the functions and classes of releases take, by package."""

    def __init__(self, releases: Callable[[str], Sequence[Release]]) -> None:
        self._releases = releases
        self._placed: Dict[Tuple[str, int, str, str], Optional[Place]] = {}

    def releases(self, package: str) -> Sequence[Release]:
        """Return the releases of a package, oldest first."""
        return self._releases(package)

    def place(
        self, package: str, number: int, module: str, name: str, depth: int = 0
    ) -> Optional[Place]:
        """Return where a release defines what a module of it offers under a name; another package's
        where it is that one's. None where it cannot be said.
        """
        key = (package, number, module, name)
        if key not in self._placed:
            self._placed[key] = None  # a circle of imports ends here
            self._placed[key] = self._place(package, number, module, name, depth)
        return self._placed[key]

    def _place(
        self, package: str, number: int, module: str, name: str, depth: int
    ) -> Optional[Place]:
        release = self._releases(package)[number]
        declared = release.declared(module)
        if declared is None or depth > _MOST_STEPS:
            return None
        if name in declared["classes"] or name in declared["functions"]:
            return Place(package, module, name)
        imported = declared.get("imported", {}).get(name)
        if imported is not None:
            level, target, word = imported
            source = release.absolute(module, level, target)
            owners = release.owners(source)
            if package in owners:
                return self.place(package, number, source, word, depth + 1)
            return Place(owners[0], source, word) if len(owners) == 1 else None
        lazy = (release.reading(module) or {}).get("places", {}).get(name)
        if lazy:
            return self.place(package, number, f"{module}.{lazy}", name, depth + 1)
        for level, target in declared.get("stars", ()):
            source = release.absolute(module, level, target)
            place = self.place(package, number, source, name, depth + 1)
            if place is not None:
                return place
        return None

    def target(self, package: str, number: int, module: str, chain: str) -> Optional[Place]:
        """Return the place of ``Class.method``, ``Class`` or ``function`` of a module; modules on
        the way are followed.
        """
        parts = chain.split(".")
        release = self._releases(package)[number]
        while len(parts) > 1 and release.has_module(f"{module}.{parts[0]}") is True:
            module, parts = f"{module}.{parts[0]}", parts[1:]
        place = self.place(package, number, module, parts[0])
        if place is None or place.package != package or len(parts) > 2:
            return None
        return place._replace(name=".".join([place.name, *parts[1:]]))

    def bases(self, package: str, number: int, place: Place) -> List[Optional[Place]]:
        """Return the classes that one is derived from, None for one that is not known."""
        declared = self._releases(package)[number].declared(place.module) or {}
        entry = declared.get("classes", {}).get(place.name)
        # ``module.Class`` is not followed.
        return [
            None if "." in base else self.place(package, number, place.module, base)
            for base in (entry[0] if entry else ())
        ]

    def own_classes(self, package: str, number: int, place: Place) -> Optional[List[Place]]:
        """Return a class and those above it in its package, nearest first; None where one of them
        is not known, or is another package's.
        """
        classes: List[Place] = []
        waiting = [place]
        while waiting:
            one = waiting.pop(0)
            if one in classes:
                continue
            if one.package != package or len(classes) > _MOST_CLASSES:
                return None
            classes.append(one)
            for base in self.bases(package, number, one):
                if base is None:
                    return None
                waiting.append(base)
        return classes

    def signature(self, package: str, number: int, place: Place) -> Optional[str]:
        """Return the parameters of a function, a method, or what makes one of a class; None where
        they are not known for sure.
        """
        release = self._releases(package)[number]
        declared = release.declared(place.module) or {}
        owner, _, method = place.name.partition(".")
        if owner not in declared.get("classes", {}):
            return None if method else self._sure(release, place.module, owner)
        wanted = method or "__init__"
        # What a class inherits from another package may be anything.
        nearest = self.own_classes(package, number, place._replace(name=owner))
        for one in nearest or [place._replace(name=owner)]:
            functions = (release.declared(one.module) or {}).get("functions", {})
            if f"{one.name}.{wanted}" in functions:
                if not method and f"{one.name}.__new__" in functions:
                    return None
                return self._sure(release, one.module, f"{one.name}.{wanted}")
            if nearest is None:
                return None
        return None

    @staticmethod
    def _sure(release: Release, module: str, function: str) -> Optional[str]:
        text = (release.declared(module) or {}).get("functions", {}).get(function)
        if text is None or "|" in text:
            return None
        return None if function in release.calls(module).get("exchanged", ()) else text


def takes(text: str, keywords: Collection[str], count: int = 0) -> Tuple[List[str], bool]:
    """Return which keywords a signature does not take, and whether it takes so many positional
    arguments.
    """
    parts = text.split(",") if text else []
    if "**" in parts or any(part.startswith("+") for part in parts):
        unknown: List[str] = []
    else:
        names = {part.rstrip("=") for part in parts[parts.index("/") + 1 if "/" in parts else 0 :]}
        unknown = [word for word in keywords if word not in names]
    if "*_" in parts:
        return unknown, True
    plain = parts[: parts.index("*")] if "*" in parts else parts
    return unknown, count <= len([part for part in plain if part not in ("/", "**")])


class _Asked(NamedTuple):
    """An argument that a package counts on, and what has to be there for it."""

    verb: str
    provider: str
    module: str
    name: str
    argument: str
    limits: Limits
    sure: bool


class _Witness(NamedTuple):
    path: str
    line: int
    use: str


def argument_statements(
    measurement: Any, consumer: str, about: Collection[str] = ()
) -> List[Dict[str, Any]]:
    """Return the statements about a package's calls of others and its overridden methods: of these
    packages, or of all. What it imports was asked before.
    """
    signatures = Signatures(measurement.releases)
    releases = measurement.releases(consumer)
    asked: Dict[_Asked, Dict[int, _Witness]] = {}
    for number, release in enumerate(releases):
        reader = _OfRelease(measurement, signatures, consumer, number, about)
        for key, witness in reader.passed():
            asked.setdefault(key, {}).setdefault(number, witness)
        for module in release.entered:
            for key, witness in reader.overridden(module):
                asked.setdefault(key, {}).setdefault(number, witness)
    crossing = _Crossing(measurement, signatures, consumer)
    statements = [crossing.statement(*item) for item in asked.items()]
    return _joined(filter(None, statements), [release.archive.version for release in releases])


class _OfRelease:
    def __init__(
        self,
        measurement: Any,
        signatures: Signatures,
        consumer: str,
        number: int,
        about: Collection[str],
    ) -> None:
        self._measurement = measurement
        self._signatures = signatures
        self._consumer = consumer
        self._number = number
        self._about = about
        self._release: Release = measurement.releases(consumer)[number]

    def passed(self) -> Iterator[Tuple[_Asked, _Witness]]:
        """Yield the keywords that it passes to functions of other packages."""
        for module, (limits, _) in self._release.entered.items():
            for raw in self._release.calls(module).get("calls", ()):
                call = Call(*raw)
                own = self._release.limits_of(module, call.conditions, self._measurement.newest)
                target = self._target(module, call) if own not in (None, NEVER) else None
                if own is None or target is None:
                    continue
                witness = _Witness(self._release.path_of(module), call.line, call.function)
                for keyword in call.keywords:
                    key = _Asked(PASSES, *target, keyword, limits.joined(own), call.sure)
                    yield key, witness

    def _target(self, module: str, call: Call) -> Optional[Place]:
        place, _, chain = call.target.partition(":")
        if place == "super":
            owner, _, method = chain.partition(".")
            above = self._above(Place(self._consumer, module, owner), method)
            return above and above._replace(name=f"{above.name}.{method}")
        owners = self._release.owners(place)
        if len(owners) != 1 or not chain or not self._is_tracked(owners[0]):
            return None
        return Place(owners[0], place, chain)

    def _is_tracked(self, package: str) -> bool:
        return (
            package != self._consumer
            and (not self._about or package in self._about)
            and package in self._measurement.packages.entries
            and bool(self._measurement.releases(package))
        )

    def _above(self, place: Place, method: str, depth: int = 0) -> Optional[Place]:
        """Return the class of another package above one of this package from which it has a method,
        where that is the only one and nothing in between defines it.
        """
        bases: List[Place] = []
        for base in self._signatures.bases(self._consumer, self._number, place):
            if base is None or depth > _MOST_STEPS:
                return None
            if base.package != self._consumer:
                bases.append(base)
                continue
            declared = self._release.declared(base.module) or {}
            if f"{base.name}.{method}" in declared.get("functions", {}):
                return None
            above = self._above(base, method, depth + 1)
            bases += [above] if above is not None else []
        tracked = [base for base in bases if self._is_tracked(base.package)]
        return tracked[0] if len(tracked) == len(bases) == 1 else None

    def overridden(self, module: str) -> Iterator[Tuple[_Asked, _Witness]]:
        """Yield what its classes take in methods that another package's class may call."""
        declared = self._release.declared(module) or {}
        limits = self._release.entered[module][0]
        exchanged = self._release.calls(module).get("exchanged", ())
        for name, entry in declared.get("classes", {}).items():
            if not entry[0]:
                continue
            own = {word for word in declared["functions"] if word.startswith(f"{name}.")}
            handing = set(self._release.calls(module).get("above", {}).get(name, ()))
            above = self._above(Place(self._consumer, module, name), "")
            if above is None:
                continue
            for function in sorted(own - set(exchanged)):
                method, text = function.partition(".")[2], declared["functions"][function]
                if method in _MADE or method.startswith("__") or "|" in text:
                    continue
                # What hands on to the class above runs that as well.
                methods = sorted({word.partition(".")[2] for word in own} - handing)
                argument = f"{text};{','.join(methods)}"
                key = _Asked(
                    OVERRIDES,
                    above.package,
                    above.module,
                    f"{above.name}.{method}",
                    argument,
                    limits,
                    True,
                )
                line = self._release.line_of(module, f"def {method}", f"class {name}")
                yield key, _Witness(self._release.path_of(module), line, name)


class _Crossing:
    def __init__(self, measurement: Any, signatures: Signatures, consumer: str) -> None:
        self._measurement = measurement
        self._signatures = signatures
        self._consumer = consumer
        self._releases: Sequence[Release] = measurement.releases(consumer)

    def statement(self, asked: _Asked, witnesses: Dict[int, _Witness]) -> Optional[Dict[str, Any]]:
        """Return what is said of an argument, None where no release of the provider is without
        it, or none with it, or metadata allow no pair.
        """
        others = self._signatures.releases(asked.provider)
        question = f"{asked.verb} {asked.module} {asked.name} {asked.argument}"
        verdicts: List[Optional[str]] = [
            self._measurement.kept.answer(
                other.archive, question, functools.partial(self._verdict, asked, number)
            )
            for number, other in enumerate(others)
        ]
        lacking = [
            number
            for number, verdict in enumerate(verdicts)
            if verdict and meets(others[number].version, asked.limits, asked.provider)
        ]
        numbers = [
            number
            for number in sorted(witnesses)
            if meets(self._releases[number].version, asked.limits, self._consumer)
        ]
        if not lacking or not numbers or "" not in verdicts:
            return None
        allowed = {
            number: self._measurement.allowed(self._releases[number], asked.provider)
            for number in numbers
        }
        numbers = [n for n in numbers if any(allowed[n][other] for other in lacking)]
        if not numbers:
            return None
        newest = verdicts[lacking[-1]] or ""
        words, _, may = newest.partition("?")
        witness = witnesses[numbers[-1]]
        kind, component = direction(self._consumer, asked.provider, lacking, len(others))
        # Who calls a function, or a method, is not known; one of a class is made by who uses it.
        is_met = asked.verb == OVERRIDES or witness.use.endswith(_WHEN_MADE) or not witness.use
        sure = asked.sure and not may and is_met
        if not sure and component != self._consumer:
            return None  # an argument that came later, where it is not known who comes to it
        statement: Dict[str, Any] = {
            "id": _identity(asked, words, witness.use),
            "provider": asked.provider,
            "module": asked.module,
            "name": asked.name,
            # Of one class or function: a package goes well where neither is used.
            "effect": "degrades" if sure and not witness.use else "note",
            "verb": asked.verb,
            "text": words,
            "in": runs([release.archive.version for release in self._releases], numbers),
            "lacking": runs([other.archive.version for other in others], lacking),
            "kind": kind,
            "component": component,
            "archive": self._releases[numbers[-1]].archive.file,
            "path": witness.path,
            "line": witness.line,
        }
        if witness.use:
            statement["use"] = witness.use
        more = list(third_packages(asked.limits, self._consumer, asked.provider))
        if more:
            statement["with"] = more
        unfit = [number for number, verdict in enumerate(verdicts) if verdict != ""]
        pin = mending(
            (self._consumer, [release.archive.version for release in self._releases]),
            numbers,
            (asked.provider, [other.archive.version for other in others]),
            sorted({*unfit, *lacking}),
            lambda number: allowed[number],
        )
        if pin:
            statement["pin"] = pin
        return statement

    def _verdict(self, asked: _Asked, number: int) -> Optional[str]:
        """What a release of the provider does not take, or calls a method with; "" for nothing,
        None where it cannot be said.
        """
        package, module = asked.provider, asked.module
        place = self._signatures.target(package, number, module, asked.name)
        if asked.verb == PASSES:
            text = place and self._signatures.signature(package, number, place)
            if text is None:
                return None
            return ",".join(takes(text, [asked.argument])[0])
        owner, _, method = asked.name.partition(".")
        base = self._signatures.target(package, number, module, owner)
        classes = base and self._signatures.own_classes(package, number, base)
        if base is None:
            return None
        text, _, own = asked.argument.partition(";")
        release = self._signatures.releases(package)[number]
        perhaps, knows = "", False
        for one in classes or [base]:
            calls = release.calls(one.module).get("own", {}).get(one.name, {}).get(method, ())
            for call in (OwnCall(*raw) for raw in calls):
                if call.caller in own.split(","):
                    continue  # overridden as well: the call is not come to
                unknown, fits = takes(text, call.keywords, call.count)
                many = f"{call.count} argument{'s' if call.count > 1 else ''}"
                what = unknown[0] if unknown else "" if fits else many
                if what and call.sure:
                    return what
                knows = knows or bool(what and call.asks)
                if what and not call.asks:
                    perhaps = perhaps or f"{what}?"
        return perhaps or (None if knows else "")


def _identity(asked: _Asked, words: str, use: str) -> str:
    last = asked.name.rpartition(".")[2]
    if asked.verb == OVERRIDES:
        return f"overrides-{use}.{last}-without-{words.replace(' ', '-')}"
    return f"passes-{words}-to-{asked.name}-in-{use or 'module'}"


def _joined(statements: Iterable[Dict[str, Any]], releases: Sequence[str]) -> List[Dict[str, Any]]:
    """Return statements that say the same of different releases as one, with the newest witness; of
    arguments that one call passes to the same releases the first is enough.
    """
    joined: Dict[str, Dict[str, Any]] = {}
    for statement in statements:
        same = ("provider", "name", "verb", "use", "lacking", "with", "effect")
        words = statement["text"] if statement["verb"] == OVERRIDES else ""
        key = repr([words, *(statement.get(name) for name in same)])
        numbers = {
            number
            for first, last in statement["in"]
            for number in range(releases.index(first), releases.index(last) + 1)
        }
        if key in joined:
            before = joined[key]
            newest = statement if max(numbers) > max(before["in"]) else before
            joined[key] = {**newest, "in": numbers | before["in"]}
        else:
            joined[key] = {**statement, "in": numbers}
    return [{**one, "in": runs(releases, one["in"])} for one in joined.values()]
