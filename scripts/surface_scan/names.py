"""In which releases modules, names, attributes of classes and parameters of functions exist, and
which registries know what: ``matrices/names/<package>.json``.

Statements say what cannot work; a log asks of any name that somebody misses: which releases have
it, where it went, who asks for it, and which releases of both fit. Only what not all releases have
is written.
"""

from __future__ import annotations

import datetime
import json
from bisect import bisect_left
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from packaging.version import Version

from envdoctor.file_replacement import replace_file

from .documents import place_spans
from .families import load_families, write_families
from .measure import Measurement
from .packages import Packages
from .release import Release
from .store import Sources

__all__ = ["is_own", "is_unnamed", "measure_names"]

SCHEMA = 2
#: Who imports a name: (provider, module, name) → importing package → spans of its releases.
Asked = Dict[Tuple[str, str, str], Dict[str, List[List[str]]]]
#: For each release whether it has something.
Presence = List[bool]
_NOWHERE: FrozenSet[str] = frozenset()
_UNREADABLE = (_NOWHERE, True)
_MOST_BASES = 40
_LIFE = "."  # stands for the class or the function itself
_FEW_NEW_HOMES = 3
#: Parts of a module's path whose names nobody's environment asks for.
_ASIDE = frozenset(("tests", "testing", "test", "_vendor", "third_party", "benchmarks", "vendor"))


def measure_names(
    packages: Packages,
    providers: Sequence[str],
    sources: Sources,
    matrices: Path,
    say: Callable[[str], None],
) -> None:
    """Write the file of each provider."""
    measurement = Measurement(packages, sources, matrices)
    asked = _asked(matrices)
    for provider in providers:
        releases = measurement.releases(provider)
        if not releases:
            continue
        document = _Provider(measurement, provider, asked).document()
        measurement.readings.flush()
        _write(matrices, provider, document)
        say(f"{provider}: {len(releases)} releases, {_size(document)} names")
        measurement.readings.forget()
        measurement.forget(provider)
    _write_index(packages, matrices)
    if set(load_families()["engine"]) & set(providers):  # of others families say nothing
        say(f"{write_families(measurement, matrices)} families of models")


def _write_index(packages: Packages, matrices: Path) -> None:
    """Write which package has which top-level modules, classes and functions."""
    words: Dict[str, str] = {}
    for path in sorted((matrices / "names").glob("*.json")):
        document = json.loads(path.read_text("utf-8"))
        own = {module for module, owners in packages.modules.items() if document["name"] in owners}
        tops = {module.split(".")[0] for module in own}
        for part in ("classes", "bases", "signatures"):
            tops.update(place.rpartition(":")[2].split(".")[0] for place in document[part])
        words[document["name"]] = " ".join(sorted(tops))
    lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(text)}" for name, text in words.items())
    text = f'{{"schema":{SCHEMA},"packages":{{\n{lines}\n}}}}\n'
    replace_file(str(matrices / "names.json"), text.encode("utf-8"))


def _size(document: Mapping[str, Any]) -> int:
    return sum(
        len(words.split()) for entry in document["names"].values() for words in entry.values()
    )


def _write(matrices: Path, provider: str, document: Mapping[str, Any]) -> None:
    """Write a file, one module or class per line; one of which only the date differs stays."""
    path = matrices / "names" / f"{provider}.json"
    old = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if {**old, "date": ""} == {**document, "date": ""}:
        return
    parts = []
    for key, value in document.items():
        if isinstance(value, dict):
            lines = ",\n".join(
                f"{json.dumps(name)}:{_dumps(value[name])}" for name in sorted(value)
            )
            parts.append(
                f"{json.dumps(key)}:{{\n{lines}\n}}" if value else f"{json.dumps(key)}:{{}}"
            )
        else:
            parts.append(f"{json.dumps(key)}:{_dumps(value)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(str(path), ("{" + ",\n".join(parts) + "}\n").encode("utf-8"))


def _dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _asked(matrices: Path) -> Asked:
    """Return who imports what, from the statements about imports that do not always meet."""
    asked: Asked = {}
    for path in sorted((matrices / "surfaces").glob("*.json")):
        document = json.loads(path.read_text("utf-8"))
        for entry in document["statements"]:
            if entry["module"] and not entry.get("verb"):
                key = (entry["provider"], entry["module"], entry["name"])
                spans = asked.setdefault(key, {}).setdefault(document["name"], [])
                spans += [span for span in entry["in"] if span not in spans]
                spans.sort(key=lambda span: Version(span[0] or "0"))
    return asked


def is_own(module: str, tops: Sequence[str]) -> bool:
    """Tell whether a module is one of a package's own, by its top-level modules: none that was
    copied in, and none of its tests.
    """
    parts = module.split(".")
    if any(module == top or module.startswith(f"{top}.") for top in tops):
        return _ASIDE.isdisjoint(parts) and all(part.isidentifier() for part in parts)
    return False


def is_unnamed(module: str, patterns: Sequence[str]) -> bool:
    """Tell whether a module, or one that it is in, is one whose names nobody asks for."""
    return any(fnmatchcase(f"{module}.", f"{entry}.*") for entry in patterns)


class _Provider:
    """What the releases of one package declare, over all of them."""

    def __init__(self, measurement: Measurement, provider: str, asked: Asked) -> None:
        self._measurement = measurement
        self._provider = provider
        self._packages = measurement.packages
        self._releases = measurement.releases(provider)
        self._asked = asked
        self._tables_only = provider in measurement.packages.tables_only
        self._public_only = provider in measurement.packages.public_names
        self._tops = tuple(
            module for module, owners in self._packages.modules.items() if provider in owners
        )
        self._defined: Dict[str, FrozenSet[str]] = {}  # source → names that it does not import
        self._paths: Dict[int, List[str]] = {}  # of a release, sorted
        self._silent: Set[str] = set()  # sources without registries and options
        self._plain: Dict[str, Tuple[FrozenSet[str], bool]] = {}
        self._bases: Dict[Tuple[int, str], Tuple[FrozenSet[str], bool]] = {}

    def document(self) -> Dict[str, Any]:
        """Return what is written."""
        every = len(self._releases)
        modules: Dict[str, str] = {}
        names: Dict[str, Dict[str, str]] = {}
        dynamic: Dict[str, str] = {}
        classes: Dict[str, Dict[str, str]] = {}
        bases: Dict[str, str] = {}
        signatures: Dict[str, Dict[str, str]] = {}
        registries: Dict[str, Dict[str, Set[int]]] = {}
        gone: List[Tuple[int, str, str]] = []
        for module in self._modules():
            there = self._presence(module)
            if not all(there):
                modules[module] = place_spans(_numbers(there))
            if self._tables_only or self._is_hidden(module):
                self._registries(module, registries)
                continue
            gone += [(number, module, "") for number in _ends(there)]
            exports = [self._exports(number, module) for number in range(every)]
            unclear = [number for number, entry in enumerate(exports) if entry and entry[1]]
            if unclear:
                dynamic[module] = place_spans(unclear)
            listed = [entry[0] if entry else None for entry in exports]
            grouped = _grouped(listed)
            if grouped:
                names[module] = grouped
            for before, after in zip(range(every), range(1, every)):
                one, two = listed[before], listed[after]
                if one is not None and two is not None and one is not two:
                    gone += [(after, module, name) for name in one - two]
            if not (self._public_only and _is_private(module)):
                self._classes(module, classes, bases)
                self._signatures(module, signatures)
            self._registries(module, registries)
            self._measurement.readings.forget_declared()
        return {
            "schema": SCHEMA,
            "name": self._provider,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
            "versions": [release.archive.version for release in self._releases],
            "modules": modules,
            "names": names,
            "dynamic": dynamic,
            "moved": self._moved(gone),
            "classes": classes,
            "bases": bases,
            "signatures": signatures,
            "registries": {
                table: _by_spans({word: place_spans(sorted(words[word])) for word in words})
                for table, words in registries.items()
            },
            "asked": self._askers(),
        }

    # modules and names

    def _modules(self) -> List[str]:
        found: Set[str] = set()
        for release in self._releases:
            found.update(release.modules)
        unnamed = self._packages.unnamed.get(self._provider, ())
        return sorted(
            module
            for module in found
            if is_own(module, self._tops) and not is_unnamed(module, unnamed)
        )

    def _is_hidden(self, module: str) -> bool:
        """Tell whether of a module no more is measured than in which releases it is: of a private
        one below the first level that nobody else imports from.
        """
        asked = any(
            provider == self._provider and place == module for provider, place, _ in self._asked
        )
        return self._public_only and _is_private(module) and module.count(".") > 1 and not asked

    def _presence(self, module: str) -> Presence:
        """For each release whether it has a module, true where that cannot be said."""
        missing = self._measurement.missing(self._provider, module, "")
        return [gone is not True for gone in missing]

    def _declared(self, number: int, module: str) -> Optional[Dict[str, Any]]:
        """The reading of a module in a release; None where it has none that can be read."""
        key = self._releases[number].source_key(module)
        if not key:
            return None
        reading = self._measurement.readings.declared(key)
        if key not in self._defined:
            self._defined[key] = frozenset(reading["names"]) - set(reading.get("imported", ()))
        return reading

    def _exports(
        self, number: int, module: str, above: FrozenSet[str] = _NOWHERE
    ) -> Optional[Tuple[FrozenSet[str], bool]]:
        """Return the names that a module offers, and whether there may be more; None where the
        release has no such source.
        """
        key = self._releases[number].source_key(module)
        if key in self._plain:
            return self._plain[key]
        reading = self._declared(number, module)
        if reading is None:
            release = self._releases[number]
            return _UNREADABLE if module in release.modules else None
        imported = reading.get("imported", {})
        listed = reading.get("all") or ()
        names = {
            name
            for name in reading["names"]
            if name not in imported or name in listed or self._is_inner(imported[name])
        }
        names.update(name for name in listed if name.isidentifier())
        more = bool(reading.get("dynamic"))
        release = self._releases[number]
        for level, target in reading.get("stars", ()):
            source = release.absolute(module, level, target)
            if source in above or source == module:
                continue
            inner = self._exports(number, source, above | {module})
            if inner is None:
                more = True
            else:
                of_star = self._declared(number, source) or {}
                shown = of_star.get("all")
                names |= (
                    set(shown) & inner[0]
                    if shown
                    else {name for name in inner[0] if not name.startswith("_")}
                )
                more = more or inner[1]
        for tree in reading.get("trees", ()):
            names |= self._in_tree(release, module, tree)
        exports = frozenset(names), more
        if not reading.get("stars") and not reading.get("trees"):
            self._plain[key] = exports  # they are of this source alone
        return exports

    def _is_inner(self, place: Sequence[Any]) -> bool:
        """Whether a name is imported from the package itself."""
        level, target, _ = place
        return bool(level) or any(
            target == top or target.startswith(f"{top}.") for top in self._tops
        )

    def _in_tree(self, release: Release, module: str, tree: str) -> Set[str]:
        below = "" if tree == "__file__" else tree.strip("/")
        folder = "/".join([*module.split("."), *filter(None, [below])]) + "/"
        names: Set[str] = set()
        paths = self._paths.get(id(release))
        if paths is None:
            paths = self._paths[id(release)] = sorted(release.archive.members)
        for path in paths[bisect_left(paths, folder) :]:
            if not path.startswith(folder):
                break
            key = release.archive.members[path]
            names |= self._measurement.readings.listed(key) if key else _NOWHERE
        return names

    # classes and functions

    def _classes(
        self, module: str, classes: Dict[str, Dict[str, str]], bases: Dict[str, str]
    ) -> None:
        """Add the attributes that classes of a module did not always have."""
        seen: Dict[str, Dict[int, Tuple[FrozenSet[str], List[str]]]] = {}
        of_source: Dict[str, Dict[str, Tuple[FrozenSet[str], List[str]]]] = {}
        for number, release in enumerate(self._releases):
            key = release.source_key(module)
            if key and key not in of_source:
                reading = self._declared(number, module) or {}
                of_source[key] = {
                    name: (frozenset(entry[1]), entry[0])
                    for name, entry in reading.get("classes", {}).items()
                }
            for name, both in of_source.get(key, {}).items():
                seen.setdefault(name, {})[number] = both
        for name, by_release in seen.items():
            ever = frozenset().union(*(entry[0] for entry in by_release.values()))
            always = frozenset(ever).intersection(*(entry[0] for entry in by_release.values()))
            changing = ever - always
            if changing:
                spans = {}
                for attribute in changing:
                    numbers = [
                        number
                        for number, entry in sorted(by_release.items())
                        if attribute in entry[0]
                        or attribute in self._inherited(number, module, name)
                    ]
                    if len(numbers) < len(by_release):
                        spans[attribute] = place_spans(numbers)
                if spans:
                    spans[_LIFE] = place_spans(sorted(by_release))
                    classes[f"{module}:{name}"] = _by_spans(spans)
            above: Set[str] = set()
            asked: Set[Tuple[str, str]] = set()
            for number, both in by_release.items():
                key = self._releases[number].source_key(module)
                for base in both[1]:
                    if (key, base) not in asked:
                        asked.add((key, base))
                        above.add(self._resolved(number, module, base))
            above.discard("")
            if above:
                bases[f"{module}:{name}"] = " ".join(sorted(above)[:_MOST_BASES])

    def _inherited(self, number: int, module: str, name: str) -> FrozenSet[str]:
        """The attributes of a class and of those above it in the package."""
        reading = self._declared(number, module)
        entry = (reading or {}).get("classes", {}).get(name)
        if entry is None:
            return _NOWHERE
        key = (number, f"{module}:{name}")
        if key not in self._bases:
            self._bases[key] = (_NOWHERE, False)  # a circle ends here
            attributes = set(entry[1])
            for base in entry[0]:
                place, _, of_base = self._resolved(number, module, base).partition(":")
                if of_base:
                    attributes |= self._inherited(number, place, of_base)
            self._bases[key] = (frozenset(attributes), True)
        return self._bases[key][0]

    def _resolved(self, number: int, module: str, base: str, depth: int = 0) -> str:
        """Return ``module:Class`` of what a module means by a name, "" for Python's own."""
        reading = self._declared(number, module)
        if reading is None or depth > 5:
            return ""
        if base in reading["classes"]:
            return f"{module}:{base}"
        head, _, rest = base.partition(".")
        place = reading.get("imported", {}).get(head)
        if place is None:
            return ""
        level, target, name = place
        source = self._releases[number].absolute(module, level, target)
        if rest:  # ``module.Class``
            return self._resolved(number, f"{source}.{name}", rest, depth + 1)
        if not self._is_inner(place):
            return f"{source}:{name}" if self._packages.owners(source) else ""
        found = self._resolved(number, source, name, depth + 1)
        return found or f"{source}:{name}"

    def _signatures(self, module: str, signatures: Dict[str, Dict[str, str]]) -> None:
        """Add the parameters of functions where they are not always the same."""
        seen: Dict[str, Dict[str, List[int]]] = {}
        of_source: Dict[str, Dict[str, str]] = {}
        for number, release in enumerate(self._releases):
            key = release.source_key(module)
            if key in of_source:
                for name, text in of_source[key].items():
                    seen[name][text].append(number)
                continue
            reading = self._declared(number, module) or {}
            functions = dict(reading.get("functions", {}))
            own = True
            for name, entry in reading.get("classes", {}).items():
                if entry[2] is not None and f"{name}.__init__" not in functions:
                    fields = self._fields(number, module, name, 0)
                    if fields is not None:
                        functions[f"{name}.__init__"] = ",".join(fields)
                        own = own and not entry[0]
            if key and own:
                of_source[key] = functions
            for name, text in functions.items():
                seen.setdefault(name, {}).setdefault(text, []).append(number)
        for name, texts in seen.items():
            if len(texts) > 1 and not any("|" in text for text in texts):
                changes = _parameters(texts)
                if changes:
                    signatures[f"{module}:{name}"] = changes

    def _fields(self, number: int, module: str, name: str, depth: int) -> Optional[List[str]]:
        """The parameters of a class that has its fields as such; ``+module:Class`` stands for those
        of another package's.
        """
        reading = self._declared(number, module) or {}
        entry = reading.get("classes", {}).get(name)
        if entry is None or depth > 8:
            return None
        fields: Dict[str, str] = {}
        for base in reversed(entry[0]):
            place, _, of_base = self._resolved(number, module, base).partition(":")
            if not of_base:
                continue
            inner = self._fields(number, place, of_base, depth + 1)
            if inner is None:
                if self._provider not in self._packages.owners(place):
                    fields[f"+{place}:{of_base}"] = ""
                continue
            fields.update((field.rstrip("="), field) for field in inner)
        for field in entry[2] or ():
            fields[field.rstrip("=")] = field
        return [text or name for name, text in fields.items()]

    def _registries(self, module: str, registries: Dict[str, Dict[str, Set[int]]]) -> None:
        for number, release in enumerate(self._releases):
            if release.source_key(module) in self._silent:
                continue
            key = release.source_key(module)
            reading = self._measurement.readings.registries(key) if key else {}
            if not reading.get("registries") and not reading.get("options"):
                self._silent.add(release.source_key(module))
            for table, words in reading.get("registries", {}).items():
                entry = registries.setdefault(table, {})
                for word in words:
                    entry.setdefault(word, set()).add(number)
            for word in reading.get("options", ()):
                registries.setdefault("--", {}).setdefault(word, set()).add(number)

    # where names went

    def _moved(self, gone: List[Tuple[int, str, str]]) -> Dict[str, Dict[str, str]]:
        """Return by module where its names are from some release on: new home → names."""
        moved: Dict[str, Dict[str, List[str]]] = {}
        by_release: Dict[int, List[Tuple[str, str]]] = {}
        for number, module, name in gone:
            by_release.setdefault(number, []).append((module, name))
        for number, entries in sorted(by_release.items()):
            before, after = self._homes(number - 1), self._homes(number)
            for module, name in entries:
                if name:
                    home = self._new_home(module, name, before, after)
                else:
                    home = self._new_module(number, module, before, after)
                if home:
                    places = moved.setdefault(module, {})
                    for words in places.values():
                        if name in words:  # what went twice is where it went last
                            words.remove(name)
                    places.setdefault(home, []).append(name)
        return {
            module: {home: " ".join(sorted(words)) for home, words in places.items() if words}
            for module, places in moved.items()
            if any(places.values())
        }

    def _homes(self, number: int) -> Dict[str, Set[str]]:
        """The modules of a release by the names that they define."""
        homes: Dict[str, Set[str]] = {}
        release = self._releases[number]
        for module in release.modules:
            key = release.source_key(module)
            for name in self._defined.get(key, ()) if key else ():
                homes.setdefault(name, set()).add(module)
        return homes

    def _new_home(
        self, module: str, name: str, before: Dict[str, Set[str]], after: Dict[str, Set[str]]
    ) -> str:
        old = before.get(name, set())
        new = after.get(name, set()) - old
        if module not in old:  # it had been handed on: from where it is defined still
            new = new or after.get(name, set()) & old
        new.discard(module)
        return _best(new) if len(new) <= _FEW_NEW_HOMES else ""

    def _new_module(
        self, number: int, module: str, before: Dict[str, Set[str]], after: Dict[str, Set[str]]
    ) -> str:
        """The module that has most of the names of one that went."""
        key = self._releases[number - 1].source_key(module)
        names = self._defined.get(key, _NOWHERE) if key else _NOWHERE
        names = frozenset(name for name in names if name not in ("logger", "T"))
        homes: Counter[str] = Counter()
        for name in names:
            homes.update(after.get(name, set()) - before.get(name, set()))
        if not homes:
            return ""
        most = max(homes.values())
        return (
            _best({home for home, count in homes.items() if count == most})
            if most * 2 > len(names)
            else ""
        )

    def _askers(self) -> Dict[str, Any]:
        users: Dict[str, Dict[str, Dict[str, List[List[str]]]]] = {}
        for (provider, module, name), importers in sorted(self._asked.items()):
            if provider == self._provider:
                users.setdefault(module, {})[name] = importers
        return users


def _is_private(module: str) -> bool:
    return any(part.startswith("_") for part in module.split("."))


def _best(modules: Iterable[str]) -> str:
    """The module that people import from: no private one, the shortest."""
    public = [module for module in modules if not _is_private(module)]
    return min(public, key=lambda module: (module.count("."), len(module), module), default="")


def _grouped(listed: Sequence[Optional[FrozenSet[str]]]) -> Dict[str, str]:
    """Return names by the spans of releases that have them, but those that are always there."""
    there = [entry for entry in listed if entry is not None]
    if not there:
        return {}
    distinct = list({id(entry): entry for entry in there}.values())
    always = distinct[0].intersection(*distinct)
    changing = frozenset().union(*distinct) - always
    numbers: Dict[str, List[int]] = {name: [] for name in changing}
    for number, entry in enumerate(listed):
        if entry is not None:
            for name in entry & changing:
                numbers[name].append(number)
    return _by_spans({name: place_spans(places) for name, places in numbers.items()})


def _parameters(texts: Mapping[str, Sequence[int]]) -> Dict[str, str]:
    """Return parameters by the spans of releases whose function has them, but those that it always
    has; what takes others, ``**`` and ``+``, always.
    """
    numbers: Dict[str, Set[int]] = {}
    for text, places in texts.items():
        for part in text.split(","):
            if part not in ("", "*", "*_", "/"):
                numbers.setdefault(part, set()).update(places)
    life = sorted(number for places in texts.values() for number in places)
    changes = {
        part: place_spans(sorted(places))
        for part, places in numbers.items()
        if len(places) < len(life) or part.startswith(("*", "+"))
    }
    return _by_spans({**changes, _LIFE: place_spans(life)}) if changes else {}


def _by_spans(spans: Mapping[str, str]) -> Dict[str, str]:
    grouped: Dict[str, List[str]] = {}
    for name in sorted(spans):
        grouped.setdefault(spans[name], []).append(name)
    return {text: " ".join(grouped[text]) for text in sorted(grouped)}


def _numbers(there: Presence) -> List[int]:
    return [number for number, is_there in enumerate(there) if is_there]


def _ends(there: Presence) -> List[int]:
    """The places of the first release after each that had something."""
    return [number for number in range(1, len(there)) if there[number - 1] and not there[number]]
