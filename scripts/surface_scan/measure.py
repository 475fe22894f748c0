"""Crosses what releases import with what other releases define, and writes what does not meet:
matrices/surfaces/<importing package>.json.

A statement is "these releases of the one import a name that those releases of the other do not
have", with the line of a wheel as its witness. Only statements with at least one pair of releases
that metadata allows are kept, and of those that say no more than others one.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Iterable,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from envdoctor.matrix.measured_rows import GPU, OVERWRITES
from envdoctor.model.requirement import try_requirement

from .call_statements import argument_statements
from .conditions import AS_TEXT, Limits
from .cuda_files import cuda_check_statements, cuda_file_statements
from .demands import Demand, demands_of
from .documents import read_document, runs, write_document
from .gpu_statements import gpu_statements
from .kept_answers import KeptAnswers
from .links import link_statements
from .packages import PYTHON, Packages
from .pairs import direction, meets, mending, third_packages
from .readings import Readings
from .relations import relation_statements
from .release import Release
from .release_gates import EQUAL_KINDS, Gate, gates_of
from .store import Archive, Sources

__all__ = ["Measurement", "measure"]

#: Releases of the interpreter that wheels are made for.
_PYTHONS = tuple(f"3.{minor}" for minor in range(8, 16))
_EFFECTS = {True: "blocks", False: "degrades"}


class _Key(NamedTuple):
    provider: str
    module: str
    name: str
    limits: Limits
    alternatives: Tuple[Tuple[str, str], ...]
    main: bool
    used: bool
    of: str  # a module of the provider, "" or in each release that the use is come to with


class Measurement:
    """All releases that were read, made on first use."""

    def __init__(self, packages: Packages, sources: Sources, matrices: Path) -> None:
        self.packages = packages
        self._sources = sources
        self.matrices = matrices
        self.readings = Readings(sources)
        self.kept = KeptAnswers(sources)
        self._releases: Dict[str, List[Release]] = {}
        self._missing: Dict[Tuple[str, str, str], List[Optional[bool]]] = {}
        self._requires: Dict[str, Dict[str, List[str]]] = {}
        #: By package, what each of its releases always imports.
        self.imported: Dict[str, Dict[str, List[List[str]]]] = {}

    def releases(self, package: str) -> List[Release]:
        """Return the releases of a package that were read, oldest first."""
        if package not in self._releases:
            found = [
                Release(archive, self.packages, self.readings)
                for archive in self._archives(package)
            ]
            self._releases[package] = sorted(found, key=lambda release: release.version)
        return self._releases[package]

    def _archives(self, package: str) -> Iterable[Archive]:
        """The archives of a package; of the interpreter, and of packages that are not read, their
        versions alone.
        """
        if package == PYTHON:
            return [Archive(PYTHON, version, "", "", "", {}) for version in _PYTHONS]
        if package not in self.packages.elsewhere:
            return self._sources.archives(package)
        return [Archive(package, version, "", "", "", {}) for version in self.requires(package)]

    def is_read(self, package: str) -> bool:
        """Tell whether all releases that were measured of a package were read on this machine, but
        those that the index has no more.
        """
        if package == PYTHON or package in self.packages.elsewhere:
            return True
        document = read_document(self.matrices / "surfaces" / f"{package}.json")
        known, listed = set(document.get("measured", ())), self.requires(package)
        known = known & listed.keys() if listed else known
        return known <= {release.archive.version for release in self.releases(package)}

    def newest(self, package: Optional[str]) -> Optional[Release]:
        """Return the newest release of a package, which speaks for functions that another imports
        from it.
        """
        releases = self.releases(package) if package in self.packages.entries else []
        return releases[-1] if releases else None

    def forget(self, package: str) -> None:
        """Free a package's releases."""
        self._releases.pop(package, None)

    def missing(self, provider: str, module: str, name: str) -> List[Optional[bool]]:
        """Return for each release of a package whether a name is missing; None: not known."""
        key = (provider, module, name)
        if key not in self._missing:
            answers = [
                self.kept.answer(
                    release.archive,
                    f"defines {module} {name}",
                    functools.partial(_has, release, module, name),
                )
                for release in self.releases(provider)
            ]
            self._missing[key] = [None if there is None else not there for there in answers]
        return self._missing[key]

    def requires(self, package: str) -> Dict[str, List[str]]:
        """Return requirement lines by version, from the package files; empty where not known."""
        if package not in self._requires:
            path = self.matrices / "packages" / f"{package}.json"
            document = json.loads(path.read_text("utf-8")) if path.exists() else {"releases": []}
            self._requires[package] = {
                entry["version"]: [
                    *entry["requires"],
                    # A release of the interpreter is any of its patches.
                    f"{PYTHON}{entry['requires_python']}" if entry.get("requires_python") else "",
                ]
                for entry in document["releases"]
                if "requires" in entry
            }
        return self._requires[package]

    def allowed(self, release: Release, provider: str) -> List[bool]:
        """Return for each release of a provider whether the metadata of a release admit it."""
        always: List[SpecifierSet] = []
        sometimes: List[SpecifierSet] = []
        lines = self.requires(release.archive.package).get(release.archive.version, [])
        for line in lines:
            requirement = try_requirement(line)
            if requirement is None or requirement.name != provider or not requirement.specifier:
                continue
            if requirement.marker_extras:
                continue  # people install the two without the extra as well
            try:
                specifier = SpecifierSet(requirement.specifier)
            except InvalidSpecifier:
                continue
            (sometimes if requirement.marker else always).append(specifier)
        versions = [other.version for other in self.releases(provider)]
        if provider == PYTHON:
            versions = [Version(f"{version}.99") for version in versions]
        return [
            all(version in specifier for specifier in always)
            and (not sometimes or any(version in specifier for specifier in sometimes))
            for version in versions
        ]


def _has(release: Release, module: str, name: str) -> Optional[bool]:
    return release.defines(module, name) if name else release.has_module(module)


def measure(
    packages: Packages,
    names: Sequence[str],
    sources: Sources,
    matrices: Path,
    say: Callable[[str], None],
    about: Collection[str] = (),
) -> None:
    """Write the statements of packages; a file whose statements did not change stays as it is, and
    so does what is said of a package whose releases were read on another machine.

    about: What is said of other packages than these stays as it was; nothing: all is measured.
    """
    measurement = Measurement(packages, sources, matrices)
    for name in names:
        if not measurement.is_read(name):
            say(f"{name}: not read on this machine, statements as before")
            continue
        old = read_document(matrices / "surfaces" / f"{name}.json").get("statements", [])
        statements = statements_of(measurement, name, about)
        spoken_of = {statement["provider"] for statement in (*old, *statements)}
        unread = {provider for provider in spoken_of if not measurement.is_read(provider)}
        if about or unread:
            statements = _exchanged(old, statements, (spoken_of & set(about or spoken_of)) - unread)
        if unread:
            say(f"{name}: as before, not read on this machine: {', '.join(sorted(unread))}")
        written = write_statements(matrices, name, statements, measurement)
        say(f"{name}: {len(statements)} statements{'' if written else ', as before'}")
        measurement.readings.flush()
        measurement.kept.flush()


def _exchanged(
    old: Sequence[Dict[str, Any]], new: Sequence[Dict[str, Any]], about: Collection[str]
) -> List[Dict[str, Any]]:
    """Return the old statements with those about some packages exchanged, each at its place."""
    by_id = {one["id"]: one for one in new if one["provider"] in about}
    kept = [
        statement if statement["provider"] not in about else by_id.pop(statement["id"], None)
        for statement in old
    ]
    return [statement for statement in kept if statement is not None] + list(by_id.values())


def statements_of(
    measurement: Measurement, consumer: str, about: Collection[str] = ()
) -> List[Dict[str, Any]]:
    """Return the statements about a package's imports: of these packages, or of all."""
    releases = measurement.releases(consumer)
    asked = {
        key: demands
        for key, demands in _asked(measurement, consumer).items()
        if not about or key.provider in about
    }
    allowed: Dict[Tuple[int, str], List[bool]] = {}
    broken: List[Tuple[_Key, Dict[int, Demand], List[int], Set[Tuple[int, int]]]] = []
    for key, demands in asked.items():
        missing = _missing(measurement, key)
        if not missing:
            continue
        pairs = set()
        for number in demands:
            place = (number, key.provider)
            if place not in allowed:
                allowed[place] = measurement.allowed(releases[number], key.provider)
            pairs.update((number, other) for other in missing if allowed[place][other])
        if pairs:
            broken.append((key, demands, missing, pairs))
    # What blocks first, then what says most.
    broken.sort(key=lambda item: (not item[0].main, -len(item[3]), item[0][:3], repr(item[0])))
    covered: Dict[Tuple[Any, ...], Set[Tuple[int, int]]] = {}
    statements = []
    for key, demands, missing, pairs in broken:
        others = tuple(map(tuple, third_packages(key.limits, consumer, key.provider)))
        # What is said under fewer conditions is said.
        seen = [
            of_these
            for (provider, fewer), of_these in covered.items()
            if provider == key.provider and set(fewer) <= set(others)
        ]
        if pairs <= set().union(*seen):
            continue
        covered.setdefault((key.provider, others), set()).update(pairs)
        statement = _statement(measurement, releases, key, demands, missing)
        statements += [statement, *_beside(measurement.packages, key, statement)]
    statements += gate_statements(measurement, consumer, about)
    statements += argument_statements(measurement, consumer, about)
    statements += cuda_file_statements(measurement.packages, releases, measurement.matrices)
    statements += cuda_check_statements(measurement.packages, releases, measurement.matrices)
    if not about or GPU in about:
        statements += gpu_statements(measurement, consumer)
    statements += overwriting_statements(measurement, consumer)
    optional = consumer in measurement.packages.optional
    statements += link_statements(measurement.matrices, consumer, optional)
    statements += relation_statements(measurement.matrices, consumer, statements)
    return _with_own_ids([one for one in statements if not about or one["provider"] in about])


def _asked(measurement: Measurement, consumer: str) -> Dict[_Key, Dict[int, Demand]]:
    """Return what the releases of a package import, and note what each always imports."""
    releases = measurement.releases(consumer)
    entries = measurement.packages.entries[consumer]
    purposes = measurement.packages.purposes.get(consumer, ())
    asked: Dict[_Key, Dict[int, Demand]] = {}
    imported: Dict[str, Set[int]] = {}
    for number, release in enumerate(releases):
        for demand in demands_of(release, entries, measurement.newest):
            limits, entry = demand.limits, demand.entry
            always = limits == Limits() and not demand.alternatives
            if always and (entry.main or entry.use in purposes):
                imported.setdefault(demand.provider, set()).add(number)
            both = (consumer, demand.provider)
            if not meets(release.version, limits, consumer) or _is_text(limits, both):
                continue
            if not any(meets(Version(python), limits, PYTHON) for python in _PYTHONS):
                continue
            what = (demand.provider, demand.module, demand.name, limits, demand.alternatives)
            of = measurement.packages.of.get(consumer, {}).get(entry.use, "")
            of = of if demand.provider in measurement.packages.owners(of) else ""
            key = _Key(*what, entry.main, demand.used, of)
            asked.setdefault(key, {}).setdefault(number, demand)
    measurement.imported[consumer] = {
        provider: runs([release.archive.version for release in releases], numbers)
        for provider, numbers in sorted(imported.items())
    }
    return asked


def gate_statements(
    measurement: Measurement, consumer: str, about: Collection[str] = ()
) -> List[Dict[str, Any]]:
    """Return the statements about versions that a package's code refuses, disables or warns of: of
    these packages, or of all.
    """
    releases = measurement.releases(consumer)
    found: Dict[Gate, Dict[int, Tuple[str, int, Gate]]] = {}
    for number, release in enumerate(releases):
        for gate, path, line in gates_of(release, measurement.newest):
            provider = measurement.packages.distribution(gate.package)
            both = (consumer, provider or "")
            if provider and provider != consumer and not _is_text(gate.limits, both):
                # Words and functions change more often than what is asked.
                key = gate._replace(package=provider, message="", use="")
                found.setdefault(key, {}).setdefault(number, (path, line, gate))
    statements: List[Dict[str, Any]] = []
    for gate, places in found.items():
        if about and gate.package not in about:
            continue
        numbers = sorted(places)
        others = measurement.releases(gate.package)
        refused = [number for number, other in enumerate(others) if gate.refuses(other.version)]
        if gate.effect == "blocks" and len(refused) == len(others) > 0:
            continue  # nobody could import it: the check was misread
        allowed = [measurement.allowed(releases[number], gate.package) for number in numbers]
        if gate.kind not in EQUAL_KINDS and not any(
            row[number] for row in allowed for number in refused
        ):
            continue
        path, line, newest = places[numbers[-1]]
        kind, component = "version-mismatch", gate.package
        if refused and gate.kind not in EQUAL_KINDS:
            kind, component = direction(consumer, gate.package, refused, len(others))
        statement: Dict[str, Any] = {
            "id": gate.identity,
            "provider": gate.package,
            "module": "",
            "name": "",
            "effect": gate.effect,
            "verb": gate.verb,
            "text": newest.message,
            "in": runs([release.archive.version for release in releases], numbers),
            "lacking": runs([release.archive.version for release in others], refused),
            "kind": kind,
            "component": component,
            "archive": releases[numbers[-1]].archive.file,
            "path": path,
            "line": line,
        }
        if newest.use:
            statement["use"] = newest.use
        asked = list(third_packages(gate.limits, consumer, gate.package))
        if asked:
            statement["with"] = asked
        if gate.kind in EQUAL_KINDS:
            statement["equal"] = [releases[number].archive.version for number in numbers]
        else:
            # What is refused while a package is not there that the message asks for.
            pin = next((name for name in gate.limits.absent if name in newest.message), "")
            pin = pin or _pin(measurement, releases, numbers, gate.package, refused)
            if pin:
                statement["pin"] = pin
        same = next((other for other in statements if _says_the_same(other, statement)), None)
        if same is None:
            statements.append(statement)
        elif statement["text"] not in same["text"].split("; "):
            same["text"] += f"; {statement['text']}"
    return statements


def _says_the_same(one: Dict[str, Any], other: Dict[str, Any]) -> bool:
    """Whether two checks refuse the same in other words: one row has both texts."""
    keys = ("provider", "effect", "verb", "use", "in", "lacking", "with", "equal")
    return all(one.get(key) == other.get(key) for key in keys)


def overwriting_statements(measurement: Measurement, consumer: str) -> List[Dict[str, Any]]:
    """Return one statement for each package that installs a file that this one installs too."""
    statements = []
    for provider, said in measurement.packages.overwrites.get(consumer, {}).items():
        own, others = measurement.releases(consumer), measurement.releases(provider)
        files = {path for release in others for path in release.archive.members}
        shared = sorted(
            {path for release in own for path in release.archive.members} & files,
            key=lambda path: (path.count("/"), "__init__" not in path, path),
        )
        if not shared:
            continue
        path = shared[0]
        having = [number for number, release in enumerate(own) if path in release.archive.members]
        place = own[having[-1]].place_of(said) if said else None
        theirs = [number for number, other in enumerate(others) if path in other.archive.members]
        statements.append(
            {
                "id": f"overwrites-{provider}",
                "provider": provider,
                "module": "",
                "name": path,
                "effect": "degrades" if place else "note",
                "verb": OVERWRITES,
                "text": said if place else "",
                "in": runs([release.archive.version for release in own], having),
                "lacking": runs([release.archive.version for release in others], theirs),
                "kind": "two-copies",
                "component": consumer,
                "archive": own[having[-1]].archive.file,
                "path": path,
                "line": 0,
            }
        )
        if place:
            statements[-1]["path"], statements[-1]["line"] = place
    return statements


def _with_own_ids(statements: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Tell statements apart that speak of one name under different conditions."""
    seen: Dict[str, int] = {}
    for statement in statements:
        text = statement["id"]
        seen[text] = seen.get(text, 0) + 1
        if seen[text] > 1:
            statement["id"] = f"{text}-{seen[text]}"
    return statements


def _missing(measurement: Measurement, key: _Key) -> List[int]:
    """The releases of the provider in which an import fails, by number."""
    vector = measurement.missing(key.provider, key.module, key.name)
    releases = measurement.releases(key.provider)
    if all(vector) and not _removed_before(measurement, key):
        return []
    tried = [measurement.missing(key.provider, *name) for name in key.alternatives]
    return [
        number
        for number, missing in enumerate(vector)
        if missing
        and (not key.of or releases[number].has_module(key.of) is not False)
        and (not tried or any(other[number] for other in tried))
        and meets(releases[number].version, key.limits, key.provider)
    ]


def _removed_before(measurement: Measurement, key: _Key) -> bool:
    """Whether a name that no release has was removed before the oldest that was read: its module
    is not there either. One whose module is there may be put there from elsewhere, as numpy.dtypes
    is filled, and of a namespace package another distribution may have the module.
    """
    newest = measurement.newest(key.provider)
    top = key.module.split(".")[0]
    own = newest is not None and f"{top}/__init__.py" in newest.archive.members
    return (own or _is_placeholder(measurement, key)) and all(
        measurement.missing(key.provider, key.module, "")
    )


def _is_placeholder(measurement: Measurement, key: _Key) -> bool:
    """Whether a distribution bears the name of a module and installs nothing of it: people may have
    the one that is meant from elsewhere.
    """
    top = key.module.split(".")[0]
    releases = measurement.releases(key.provider)
    return bool(releases) and all(
        release.archive.members and not release.has_module(top) for release in releases
    )


def _is_text(limits: Limits, both: Sequence[str]) -> bool:
    """Whether versions of third packages are compared as texts: no range says that."""
    return any(
        operator.startswith(AS_TEXT) for name, operator, _ in limits.versions if name not in both
    )


def _statement(
    measurement: Measurement,
    releases: List[Release],
    key: _Key,
    demands: Dict[int, Demand],
    missing: List[int],
) -> Dict[str, Any]:
    numbers = sorted(demands)
    witness = demands[numbers[-1]]
    archive = releases[numbers[-1]].archive
    providers = measurement.releases(key.provider)
    kind, component = direction(archive.package, key.provider, missing, len(providers))
    statement: Dict[str, Any] = {
        "id": _identity(key, archive.package),
        "provider": key.provider,
        "module": key.module,
        "name": key.name,
        "effect": _EFFECTS[key.main and not _is_placeholder(measurement, key)],
        "in": runs([release.archive.version for release in releases], numbers),
        "lacking": runs([release.archive.version for release in providers], missing),
        "kind": kind,
        "component": component,
        "archive": archive.file,
        "path": witness.path,
        "line": witness.line,
    }
    if key.used:
        statement["text"] = f"{key.module}.{key.name}"
    if witness.entry.use:
        statement["use"] = witness.entry.use
    statement["entry"] = witness.entry.module
    others = list(third_packages(key.limits, archive.package, key.provider))
    others += [
        [patch.by, f"!{patch.releases}"]
        for patch in measurement.packages.patched.get((key.provider, key.name), ())
        if patch.by != archive.package
    ]
    if others:
        statement["with"] = others
    known = measurement.missing(key.provider, key.module, key.name)
    unfit = [number for number, gone in enumerate(known) if gone is not False or number in missing]
    pin = _pin(measurement, releases, numbers, key.provider, unfit)
    if pin:
        statement["pin"] = pin
    return statement


def _beside(packages: Packages, key: _Key, statement: Dict[str, Any]) -> Iterable[Dict[str, Any]]:
    """Yield what is said where a third package would put the name there beside another's releases,
    which are not there.
    """
    patches = packages.patched.get((key.provider, key.name), ())
    unpatched = [[patch.by, f"!{patch.releases}"] for patch in patches]
    rest = [pair for pair in statement.get("with", ()) if pair not in unpatched]
    for patch in patches:
        asked = try_requirement(patch.beside)
        if asked is not None and asked.name != statement["component"] and len(rest) < 2:
            yield {
                **statement,
                "id": f"{statement['id']}-beside-{patch.by}",
                "with": [*rest, [patch.by, patch.releases], [asked.name, f"!{asked.specifier}"]],
            }


def _identity(key: _Key, consumer: str) -> str:
    """The id of a row without its importing package: what is imported, and when."""
    what = f"{key.module}.{key.name}" if key.name else key.module
    others = [
        f"{'without' if asked == '-' else 'with'}-{name}"
        for name, asked in third_packages(key.limits, consumer, key.provider)
        if asked != "cuda"
    ]
    return "-".join(["imports" if key.main else "uses", what, *others])


def _pin(
    measurement: Measurement,
    releases: Sequence[Release],
    numbers: Sequence[int],
    provider: str,
    missing: Sequence[int],
) -> str:
    """The requirement that mends what these releases import and those of a provider lack."""
    others = measurement.releases(provider)
    return mending(
        (releases[0].archive.package, [release.archive.version for release in releases]),
        numbers,
        (provider, [other.archive.version for other in others]),
        missing,
        lambda number: measurement.allowed(releases[number], provider),
    )


def write_statements(
    matrices: Path, name: str, statements: List[Dict[str, Any]], measurement: Measurement
) -> bool:
    """Write the file of a package where something in it changed; tell whether it was written."""
    path = matrices / "surfaces" / f"{name}.json"
    measured = [release.archive.version for release in measurement.releases(name)]
    old = read_document(path)
    purpose = list(measurement.packages.purposes.get(name, ()))
    imported = measurement.imported.get(name, {})
    same = tuple(old.get(key) for key in ("statements", "measured", "imports"))
    if same == (statements, measured, imported) and old.get("purpose", []) == purpose:
        return False
    if not measured:
        return False
    values = {"purpose": purpose, "measured": measured, "imports": imported}
    write_document(path, values, statements)
    return True
