"""In which releases names exist: ``matrices/names.json``.

Statements say what cannot work; a log asks of any name that somebody misses: which releases have
it, who asks for it, and which releases of both fit. Names are those of a package's top-level module
and of the public modules right below it, its modules, and what a statement speaks of; of all of
them only such as not every release has.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, Sequence, Set, Tuple

from envdoctor.file_replacement import replace_file

from .measure import Measurement
from .packages import Packages
from .release import Release
from .store import Sources

__all__ = ["measure_names"]

#: Who imports a name: (provider, module, name) → importing package → spans of its releases.
Asked = Dict[Tuple[str, str, str], Dict[str, List[List[str]]]]


def measure_names(
    packages: Packages,
    providers: Sequence[str],
    sources: Sources,
    matrices: Path,
    say: Callable[[str], None],
) -> None:
    """Write the file after each provider; of other packages what it has stays."""
    path = matrices / "names.json"
    before = json.loads(path.read_text("utf-8"))["packages"] if path.exists() else {}
    measurement = Measurement(packages, sources, matrices)
    asked = _asked(matrices)
    for provider in providers:
        document = _of_provider(measurement, provider, asked)
        measurement.readings.flush()
        before.pop(provider, None)
        if document["names"]:
            before[provider] = document
        _write(path, packages, before)
        say(f"{provider}: {sum(map(len, document['names'].values()))} names")
        measurement.readings.forget()
        measurement.forget(provider)


def _write(path: Path, packages: Packages, documents: Mapping[str, Any]) -> None:
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    body = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(documents[name], separators=(',', ':'))}"
        for name in packages.names
        if name in documents
    )
    text = f'{{"schema": 1, "date": "{date}", "packages": {{\n{body}\n}}}}\n'
    replace_file(str(path), text.encode("utf-8"))


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
    return asked


def _of_provider(measurement: Measurement, provider: str, asked: Asked) -> Dict[str, Any]:
    releases = measurement.releases(provider)
    wanted = {key[1:] for key in asked if key[0] == provider}
    wanted |= _ever_there(releases, measurement.packages, provider)
    names: Dict[str, Dict[str, List[List[int]]]] = {}
    users: Dict[str, Dict[str, Dict[str, List[List[str]]]]] = {}
    for module, name in sorted(wanted):
        missing = measurement.missing(provider, module, name)
        present = [number for number, gone in enumerate(missing) if gone is False]
        if None in missing or not present or len(present) == len(missing):
            continue
        if name and measurement.missing(provider, module, "") == missing:
            continue  # it comes and goes with its module
        names.setdefault(module, {})[name] = _runs(present)
        importers = asked.get((provider, module, name))
        if importers:
            users.setdefault(module, {})[name] = importers
    versions = [release.archive.version for release in releases]
    return {"versions": versions, "names": names, "asked": users}


def _ever_there(
    releases: Sequence[Release], packages: Packages, provider: str
) -> Set[Tuple[str, str]]:
    """Return the public modules that a release has or had, and the names of the topmost ones."""
    wanted: Set[Tuple[str, str]] = set()
    tops = {module for module, owners in packages.modules.items() if provider in owners}
    for release in releases:
        for module in release.modules:
            parts = module.split(".")
            if not tops & {module, parts[0]} or any(part.startswith("_") for part in parts):
                continue
            wanted.add((module, ""))
            if len(parts) <= _DEEPEST:
                wanted.update((module, name) for name in _bound(release, module))
    return wanted


#: How many dots down names are kept: ``transformers.utils``, not ``transformers.models.x.y``.
_DEEPEST = 2


def _bound(release: Release, module: str) -> Set[str]:
    reading = release.reading(module)
    if reading is None:
        return set()
    names = {*reading["bound"], *(reading.get("all") or ())}
    for tree in reading.get("trees", ()):
        names |= release.names_in_tree(module, tree)
    return {name for name in names if not name.startswith("_")}


def _runs(numbers: Iterable[int]) -> List[List[int]]:
    runs: List[List[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs
