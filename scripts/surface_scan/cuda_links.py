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

from envdoctor.matrix.measured_rows import CANNOT_LOAD, DRIVER, MACHINE
from envdoctor.matrix.spans import places_of
from envdoctor.matrix.symbols import AARCH64, as_read_on_aarch64
from envdoctor.model.requirement import try_requirement
from envdoctor.model.toml import parse_toml

from .documents import newest, runs

__all__ = ["cuda_link_statements"]


class _Group(NamedTuple):
    """What releases of a package that cannot be loaded with the same others have in common.

    use: the file, where only some uses open it. machine: the architecture whose wheels alone were
    read to say so, "" for both.
    """

    provider: str
    use: str
    lacking: FrozenSet[str]
    symbol: str
    file: str
    cuda: str
    machine: str = ""


def cuda_link_statements(
    matrices: Path, symbols: Mapping[str, Any], consumer: str
) -> List[Dict[str, Any]]:
    """Return the statements about a package, one for each set of releases that others lack the same
    for, from a document such as symbols.json; those of one architecture alone where the wheels for
    the other say otherwise, or where none of these was read.
    """
    metadata = _releases(matrices / "packages" / f"{consumer}.json")
    on_arm = as_read_on_aarch64(symbols)
    of_x86 = _groups(symbols, consumer, metadata, "x86_64")
    of_arm = _groups(on_arm, consumer, metadata, AARCH64)
    both = {
        (version, group): same
        for version, groups in of_x86.items()
        for group in groups
        for same in of_arm.get(version, ())
        if _says_the_same(group, same, on_arm)
    }
    said_of_both = {(version, same) for (version, _), same in both.items()}
    by_group: Dict[_Group, List[str]] = {}
    for version, groups in of_x86.items():
        for group in groups:
            is_of_both = (version, group) in both
            scoped = group if is_of_both else group._replace(machine="x86_64")
            by_group.setdefault(scoped, []).append(version)
    for version, groups in of_arm.items():
        for group in groups:
            if (version, group) not in said_of_both:
                by_group.setdefault(group._replace(machine=AARCH64), []).append(version)
    return [
        _statement(
            group,
            releases,
            on_arm if group.machine == AARCH64 else symbols,
            consumer,
            metadata,
            matrices,
        )
        for group, releases in by_group.items()
    ]


def _groups(
    symbols: Mapping[str, Any],
    consumer: str,
    metadata: Mapping[str, Mapping[str, Any]],
    machine: str,
) -> Dict[str, List[_Group]]:
    """Return what each release of a package cannot be loaded with, by its wheel for a machine."""
    asked = symbols.get("asked", {}).get(consumer, {"versions": (), "symbols": {}})
    return {
        version: [
            _Group(provider, *lacking, _cuda_of(metadata.get(version, {}), machine))
            for provider in asked["symbols"]
            for lacking in _lacking(asked, provider, number, symbols)
        ]
        for number, version in enumerate(asked["versions"])
    }


def _says_the_same(group: _Group, other: _Group, on_arm: Mapping[str, Any]) -> bool:
    """Tell whether the wheels for aarch64 lack the same of those releases of a library that have
    one.
    """
    if (group.provider, group.cuda) != (other.provider, other.cuda):
        return False
    if bool(group.use) is not bool(other.use):
        return False
    there = group.lacking.intersection(on_arm["libraries"][group.provider]["versions"])
    return other.lacking == there


def _lacking(
    asked: Mapping[str, Any], provider: str, number: int, symbols: Mapping[str, Any]
) -> Iterator[Tuple[str, FrozenSet[str], str, str]]:
    """Yield (use, releases that lack something, what most of them lack, file) for one release of a
    package: what stops its import first, and of the files that are opened later what is new.
    """
    library = symbols["libraries"][provider]
    everything = frozenset(library["versions"])
    without = {
        symbol: everything.difference(library["versions"][place] for place in places_of(span))
        for span, names in library["symbols"].items()
        for symbol in names.split()
    }
    by_file: Mapping[str, Mapping[str, str]] = asked["symbols"][provider]
    said: FrozenSet[str] = frozenset()
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
        releases = every - said
        if releases:
            said |= releases
            symbol = max(sorted(missing), key=lambda symbol: len(missing[symbol] & releases))
            yield (file.rsplit("/", 1)[-1] if late else ""), releases, symbol, file


def _releases(path: Path) -> Dict[str, Mapping[str, Any]]:
    document = json.loads(path.read_text("utf-8")) if path.exists() else {"releases": ()}
    return {release["version"]: release for release in document["releases"]}


def _cuda_of(release: Mapping[str, Any], machine: str) -> str:
    """The CUDA of the wheel for a machine on the default index, "" where it is not known: other
    builds of the release were made with other headers.
    """
    builds = [
        build.get("cuda", "")
        for build in release.get("builds", ())
        if build.get("index_name", "pypi") == "pypi"
        and build.get("architecture", "x86_64") == machine
    ]
    return builds[0] if len(set(builds)) == 1 else ""


def _statement(
    group: _Group,
    releases: Sequence[str],
    symbols: Mapping[str, Any],
    consumer: str,
    metadata: Mapping[str, Mapping[str, Any]],
    matrices: Path,
) -> Dict[str, Any]:
    asked = symbols["asked"][consumer]
    versions: Sequence[str] = symbols["libraries"][group.provider]["versions"]
    numbers = [asked["versions"].index(version) for version in releases]
    places = [place for place, version in enumerate(versions) if version in group.lacking]
    own = runs(asked["versions"], numbers)
    theirs = runs(versions, places)
    older = places[-1] + 1 == len(places)
    suffix = f"-{group.machine}" if group.machine == AARCH64 else ""
    statement = {
        "id": f"links-{group.provider}-{theirs[0][0]}-{own[0][0]}{suffix}",
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
    conditions = [[consumer, f"cuda=={group.cuda}"]] if group.cuda else []
    if group.machine:
        conditions.append([MACHINE, group.machine])
    pin = _pin(group, [metadata.get(version, {}) for version in releases], versions, matrices)
    return {
        **statement,
        **({"use": group.use} if group.use else {}),
        **({"with": conditions} if conditions else {}),
        **({"pin": pin} if pin else {}),
    }


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
        first = max(map(versions.index, group.lacking)) + 1
        return _driver_since(versions[first], matrices)
    asked = {
        f"{group.provider}=={requirement.exact}"
        for release in releases
        for requirement in map(try_requirement, release.get("requires") or ())
        if requirement is not None and requirement.name == group.provider and requirement.exact
    }
    if len(asked) == 1:
        return asked.pop()
    return newest(group.provider, versions, [version not in group.lacking for version in versions])


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
