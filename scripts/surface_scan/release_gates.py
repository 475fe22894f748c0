"""What the modules of a release do about versions of other packages: ``gates`` reads one source."""

from __future__ import annotations

import re
from typing import Any, FrozenSet, Iterator, List, NamedTuple, Optional, Tuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from envdoctor.matrix.measured_rows import BEGINS_OTHERWISE

from .conditions import (
    AS_TEXT,
    NEGATED,
    NEVER,
    Condition,
    Limits,
    available_name,
    clause_holds,
)
from .packages import Entry
from .release import Foreign, Release

__all__ = ["EQUAL_KINDS", "Gate", "gates_of"]

#: Gates that ask for the own version of who asks.
EQUAL_KINDS = ("equal", "begins")


class Gate(NamedTuple):
    """What a release's code does about versions of another package.

    kind: as in ``gates``. package: as the source names it. specifier: what it accepts, with "||"
    between alternatives; "" for an equal version. at_import: it stops the import.
    """

    kind: str
    package: str
    specifier: str
    limits: Limits
    at_import: bool
    known: bool
    main: bool
    use: str
    message: str

    @property
    def effect(self) -> str:
        """What becomes of it: blocks, degrades or note."""
        if self.kind in ("window", "absent", "skips") or not self.known:
            return "note"
        if self.kind == "disable" or not self.at_import or not self.main:
            return "degrades"
        return "blocks"

    @property
    def verb(self) -> str:
        """What the package does with what it does not accept."""
        return {
            "window": "warns of",
            "disable": "disables",
            "absent": "goes on as if there were no",
            "skips": "leaves a part out with",
            "begins": BEGINS_OTHERWISE,
        }.get(self.kind, "refuses")

    @property
    def identity(self) -> str:
        """The id of a row without the package that it is about."""
        word = {
            "window": "supports",
            "disable": "disables",
            "equal": "equals",
            "begins": "equals",
            "absent": "passes-over",
            "skips": "skips",
        }
        specifier = re.sub(r"[^\w.]+", "-", self.specifier).strip("-")
        parts = [word.get(self.kind, "refuses"), self.package, specifier]
        return "-".join(filter(None, parts))

    def refuses(self, version: Version) -> bool:
        """Tell whether a release is not accepted, whoever asks."""
        return bool(self.specifier) and not any(
            all(clause_holds(*_clause(clause), version) for clause in part.split(","))
            for part in self.specifier.split("||")
        )


def gates_of(release: Release, foreign: Foreign) -> Iterator[Tuple[Gate, str, int]]:
    """Yield what the modules that ``demands_of`` reached do about versions of other packages, with
    path and line.
    """
    return _Gates(release, foreign).gates()


class _Gates:
    """The gates of a release's modules, beside the releases of others."""

    def __init__(self, release: Release, foreign: Foreign) -> None:
        self._release = release
        self._readings = release.readings
        self._packages = release.packages
        self._foreign = foreign

    def gates(self) -> Iterator[Tuple[Gate, str, int]]:
        """Yield what the modules that ``demands`` reached do about versions of other packages, with
        path and line.
        """
        for module, (limits, entry) in self._release.entered.items():
            path = self._release.path_of(module)
            key = self._release.archive.members[path]
            for name, package, specifier in self._floors(module):
                gate = Gate(
                    "absent",
                    package,
                    specifier,
                    Limits(),
                    True,
                    True,
                    entry.main,
                    "",
                    f"{name} is false",
                )
                yield gate, path, self._readings.line_of(key, f"def {name}")
            for raw in self._readings.gates(key) if key else ():
                for gate, line in self._gates_of(raw, module, limits, entry):
                    yield gate, path, line

    def _gates_of(
        self, raw: List[Any], module: str, limits: Limits, entry: Entry
    ) -> Iterator[Tuple[Gate, int]]:
        """Yield what one gate of a module that is reached under limits accepts, with its line."""
        kind, what, line, at_import, conditions, function, message, callers = raw
        uses = [condition[1] for condition in conditions if condition[0] == "use"]
        if kind == "floor":  # who has the package chose, mostly, what is named after it
            uses += [f"{part[1]} {part[2]}" for part in conditions if _is_choice_of(part, what[0])]
        conditions = [
            condition
            for condition in conditions
            if condition[0] != "use" and not (kind == "floor" and _is_choice_of(condition, what[0]))
        ]
        own = self._limits(module, conditions)
        if own == NEVER or (own is None and kind != "floor"):
            return
        started = self._packages.start_of(self._release.archive.package, module, callers)
        use = uses[0] if uses else started
        if not use:
            use = entry.use if at_import else f"{function}()"
        for package, specifier, more in self._accepted(kind, what, module):
            asked = available_name(function)
            is_asked = asked and self._packages.distribution(asked) == (
                self._packages.distribution(package)
            )
            if kind == "if" and not (at_import or is_asked or started):
                continue  # who calls it is not known; is_x_available is called by many
            for provider in self._packages.alike(package):
                gate = Gate(
                    "skips" if kind == "pairs" else kind,
                    provider,
                    specifier,
                    limits.joined(own or Limits()).joined(more),
                    at_import and not uses,
                    own is not None,
                    entry.main,
                    use,
                    message,
                )
                yield gate, line

    def _floors(self, module: str) -> Iterator[Tuple[str, str, str]]:
        """Yield (function, package, specifier) for each ``is_x_available`` of a module that asks
        for versions of x.
        """
        reading = self._release.reading(module) or {}
        for key, condition in reading.get("names", {}).items():
            package = available_name(key[:-2]) if key.endswith("()") else None
            distribution = self._packages.distribution(package) if package else None
            if distribution is None or distribution == self._release.archive.package:
                continue
            limits = self._limits(module, [condition])
            versions = limits.versions if limits is not None else ()
            if versions and {name for name, _, _ in versions} == {distribution}:
                clauses = ",".join(f"{operator}{text}" for _, operator, text in versions)
                yield f"{key}", distribution, clauses

    def _accepted(self, kind: str, what: Any, module: str) -> Iterator[Tuple[str, str, Limits]]:
        """Yield (package, specifier that is accepted, what else has to hold)."""
        if kind in EQUAL_KINDS:
            yield what[0], "", Limits()
        elif kind == "pairs":
            here = self._release.version
            fitting = [Version(other) for own, other in what[1] if Version(own) == here]
            released = [f"=={other}" for other in fitting if not other.is_prerelease]
            if released:
                yield what[0], "||".join(released), Limits()
        elif kind != "if":
            try:
                [SpecifierSet(part) for part in what[1].split("||")]
            except InvalidSpecifier:
                return
            yield what[0], what[1], Limits()
        else:
            refused = self._refused(module, what[1:])
            clauses = refused.versions if refused is not None else ()
            if refused is None or refused == NEVER or not clauses:
                return
            # What is asked for last is refused; the rest has to hold as well.
            package = clauses[-1][0]
            accepted = [
                f"{_negated(operator)}{bound}"
                for name, operator, bound in clauses
                if name == package
            ]
            others = tuple(clause for clause in clauses if clause[0] != package)
            present = tuple(name for name in refused.present if name != package)
            yield package, "||".join(accepted), Limits(others, present, refused.absent)

    def _refused(self, module: str, conditions: List[Condition]) -> Optional[Limits]:
        """What must be installed for conditions to hold together. Of ``not is_x_available()`` the
        case that x is there, and too old; where it asks for no version that it is not there.
        """
        joined = Limits()
        for condition in conditions:
            found = self._limits(module, [condition])
            inner = condition[1] if condition[0] == "not" else [""]
            word = available_name(inner[1]) if inner[0] in ("call", "name") else None
            package = self._packages.distribution(word) if word else None
            if package and (found is None or not found.versions):
                old = self._limits(module, [condition], frozenset([package]))
                found = old if old and old.versions else Limits(absent=(package,))
            if found is None or found == NEVER:
                return found
            joined = joined.joined(found)
        return NEVER if set(joined.present) & set(joined.absent) else joined

    def _limits(
        self, module: str, conditions: List[Condition], there: FrozenSet[str] = frozenset()
    ) -> Optional[Limits]:
        return self._release.limits_of(module, conditions, self._foreign, there)


def _is_choice_of(condition: Condition, package: str) -> bool:
    return condition[0] == "chosen" and condition[2] in package


_CLAUSE = re.compile(rf"((?:{AS_TEXT})?(?:!?\^=|[<>=!~]=?))\s*(.*)")


def _clause(text: str) -> Tuple[str, str]:
    match = _CLAUSE.fullmatch(text.strip())
    return (match.group(1), match.group(2)) if match else ("==", text)


def _negated(operator: str) -> str:
    is_text = operator.startswith(AS_TEXT)
    return AS_TEXT + NEGATED[operator[len(AS_TEXT) :]] if is_text else NEGATED[operator]
