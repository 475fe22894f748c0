"""Statements about libraries that cannot be loaded with a release of one of CUDA's libraries, or
with a driver: ``asked`` and ``libraries`` of symbols.json, as ``scripts/measure_symbols`` writes
them.

A library that an import opens is bound as a whole (Python opens extensions with RTLD_NOW), so one
symbol that is missing ends the import. What is looked up at run time, by dlsym or
cudaGetDriverEntryPoint, stands in no table of symbols and counts for nothing here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from packaging.version import Version

from envdoctor.matrix.measured_rows import CANNOT_LOAD, DRIVER
from envdoctor.matrix.spans import places_of
from envdoctor.model.requirement import try_requirement
from envdoctor.model.toml import parse_toml

from .documents import newest, runs

__all__ = ["cuda_link_statements"]


class _Group(NamedTuple):
    """What releases of a package that cannot be loaded with the same others have in common.

    use: the file, where only some uses open it.
    """

    provider: str
    use: str
    lacking: FrozenSet[int]
    symbol: str
    file: str
    cuda: str


def cuda_link_statements(
    matrices: Path, symbols: Mapping[str, Any], consumer: str
) -> List[Dict[str, Any]]:
    """Return the statements about a package, one for each set of releases that others lack the same
    for, from a document such as symbols.json.
    """
    asked = symbols.get("asked", {}).get(consumer)
    if asked is None:
        return []
    metadata = _releases(matrices / "packages" / f"{consumer}.json")
    groups: Dict[_Group, List[int]] = {}
    for provider in asked["symbols"]:
        for number, version in enumerate(asked["versions"]):
            cuda = _cuda_of(metadata.get(version, {}))
            for use, places, symbol, file in _lacking(asked, provider, number, symbols):
                group = _Group(provider, use, places, symbol, file, cuda)
                groups.setdefault(group, []).append(number)
    statements = []
    for group, numbers in groups.items():
        library = symbols["libraries"][group.provider]
        statement = _statement(group, numbers, asked, library["versions"])
        if group.cuda:
            statement["with"] = [[consumer, f"cuda=={group.cuda}"]]
        releases = [metadata.get(asked["versions"][number], {}) for number in numbers]
        pin = _pin(group, releases, library["versions"], matrices)
        statements.append({**statement, "pin": pin} if pin else statement)
    return statements


def _lacking(
    asked: Mapping[str, Any], provider: str, number: int, symbols: Mapping[str, Any]
) -> Iterator[Tuple[str, FrozenSet[int], str, str]]:
    """Yield (use, releases that lack something, what most of them lack, file) for one release of a
    package: what stops its import first, and of the files that are opened later what is new.
    """
    library = symbols["libraries"][provider]
    everything = frozenset(range(len(library["versions"])))
    without = {
        symbol: everything - places_of(span)
        for span, names in library["symbols"].items()
        for symbol in names.split()
    }
    by_file: Mapping[str, Mapping[str, str]] = asked["symbols"][provider]
    said: FrozenSet[int] = frozenset()
    for late, file in sorted((file not in asked["loaded"], file) for file in by_file):
        missing = {
            symbol: without[symbol]
            for span, names in by_file[file].items()
            if number in places_of(span)
            for symbol in names.split()
            if symbol in without
        }
        # Where the file that is needed has another name, it may be found elsewhere.
        files = [missing.pop(name) for name in list(missing) if ".so" in name]
        every = frozenset().union(*missing.values()).difference(*files)
        if every == everything:
            continue  # made for a release that was not read
        places = every - said
        if places:
            said |= places
            symbol = max(sorted(missing), key=lambda symbol: len(missing[symbol] & places))
            yield (file.rsplit("/", 1)[-1] if late else ""), places, symbol, file


def _releases(path: Path) -> Dict[str, Mapping[str, Any]]:
    document = json.loads(path.read_text("utf-8")) if path.exists() else {"releases": ()}
    return {release["version"]: release for release in document["releases"]}


def _cuda_of(release: Mapping[str, Any]) -> str:
    """The CUDA of the wheel for x86_64 on the default index, "" where it is not known: other builds
    of the release were made with other headers.
    """
    builds = [
        build.get("cuda", "")
        for build in release.get("builds", ())
        if build.get("index_name", "pypi") == "pypi" and "architecture" not in build
    ]
    return builds[0] if len(set(builds)) == 1 else ""


def _statement(
    group: _Group, numbers: Sequence[int], asked: Mapping[str, Any], versions: Sequence[str]
) -> Dict[str, Any]:
    own = runs(asked["versions"], numbers)
    theirs = runs(versions, group.lacking)
    older = max(group.lacking) + 1 == len(group.lacking)
    statement = {
        "id": f"links-{group.provider}-{theirs[0][0]}-{own[0][0]}",
        "provider": group.provider,
        "module": "",
        "name": group.symbol,
        "effect": "degrades" if group.use else "blocks",
        "verb": CANNOT_LOAD,
        "text": f"undefined symbol: {group.symbol}",
        "in": own,
        "lacking": theirs,
        "kind": "too-old" if older else "version-mismatch",
        "component": "nvidia-driver" if group.provider == DRIVER else group.provider,
        "archive": asked["archives"][numbers[-1]],
        "path": group.file,
        "line": 0,
    }
    return {**statement, "use": group.use} if group.use else statement


def _pin(
    group: _Group,
    releases: Sequence[Mapping[str, Any]],
    versions: Sequence[str],
    matrices: Path,
) -> str:
    """The requirement that mends it: what all of these releases ask for themselves, where that is
    one, else the newest releases in a row that have all symbols; of the driver the first branch
    that serves such a CUDA.
    """
    if group.provider == DRIVER:
        return _driver_since(versions[max(group.lacking) + 1], matrices)
    asked = {
        f"{group.provider}=={requirement.exact}"
        for release in releases
        for requirement in map(try_requirement, release.get("requires") or ())
        if requirement is not None and requirement.name == group.provider and requirement.exact
    }
    if len(asked) == 1:
        return asked.pop()
    return newest(
        group.provider, versions, [place not in group.lacking for place in range(len(versions))]
    )


def _driver_since(cuda: str, matrices: Path) -> str:
    """The requirement for drivers of the first branch that serves a CUDA, "" where none does."""
    path = matrices / "drivers.toml"
    branches = parse_toml(path.read_text("utf-8"))["branch"] if path.exists() else ()
    serving = [
        int(entry["branch"])
        for entry in branches
        if "cuda" in entry and Version(entry["cuda"]) >= Version(cuda)
    ]
    return f"nvidia-driver>={min(serving)}" if serving else ""
