"""Statements about libraries that cannot be loaded with a torch: ``links`` of symbols.json, as
``scripts/measure_symbols`` writes them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import (
    AbstractSet,
    Any,
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

from envdoctor.matrix.measured_rows import BUILT_FOR_NUMPY_1, CANNOT_LOAD, MACHINE
from envdoctor.matrix.spans import places_of
from envdoctor.matrix.symbols import AARCH64, as_read_on_aarch64

from .cuda_links import cuda_link_statements
from .documents import newest, read_document, runs, write_document
from .numpy_links import numpy_statements

__all__ = ["link_statements", "write_links"]

#: What statements about libraries say that are made here.
_LINKS = (CANNOT_LOAD, BUILT_FOR_NUMPY_1)
#: The first release of torch whose wheels for x86_64 on the default index have the new C++ ABI.
_NEW_ABI = Version("2.7")


def link_statements(matrices: Path, consumer: str, optional: bool = False) -> List[Dict[str, Any]]:
    """Return the statements about a package, one for each cure; ``optional``: others go on without
    it.
    """
    path = matrices / "symbols.json"
    document = json.loads(path.read_text("ascii")) if path.exists() else {}
    on_arm = as_read_on_aarch64(document)
    releases = sorted(
        {*document.get("links", {}).get(consumer, ()), *document.get("fits", {}).get(consumer, ())},
        key=Version,
    )
    lacking = _all_lacking(document, consumer, releases)
    of_arm = _all_lacking(on_arm, consumer, releases)
    machines = ["" if own == other else "x86_64" for own, other in zip(lacking, of_arm)]
    others = [AARCH64 if machine else None for machine in machines]
    statements = _of_torch(document, consumer, releases, lacking, machines)
    statements += _of_torch(on_arm, consumer, releases, of_arm, others)
    statements += _of_one_abi(document, consumer, releases, lacking, machines)
    statements += cuda_link_statements(matrices, document, consumer)
    statements += numpy_statements(matrices, document, consumer)
    if optional:
        return [{**statement, "effect": "degrades"} for statement in statements]
    return statements


def _all_lacking(
    document: Mapping[str, Any], consumer: str, releases: Sequence[str]
) -> List[Optional[AbstractSet[int]]]:
    links = document.get("links", {}).get(consumer, {})
    return [_lacking(links.get(name), len(document.get("versions", ()))) for name in releases]


def _of_torch(
    document: Mapping[str, Any],
    consumer: str,
    releases: Sequence[str],
    lacking: Sequence[Optional[AbstractSet[int]]],
    machines: Sequence[Optional[str]],
) -> List[Dict[str, Any]]:
    """Return the statements about torch; of each release that of its machine, "" for both; None: it
    is said already.
    """
    links: Mapping[str, Mapping[str, str]] = document.get("links", {}).get(consumer, {})
    torch: Sequence[str] = document.get("versions", ())
    groups: Dict[Tuple[str, FrozenSet[int], str], List[int]] = {}
    for number, (without, machine) in enumerate(zip(lacking, machines)):
        if machine is None:
            continue
        by_cure: Dict[str, Set[int]] = {}
        for place in without or ():
            fits = [other is not None and place not in other for other in lacking]
            cure = newest(consumer, releases, fits)
            by_cure.setdefault(cure, set()).add(place)
        if "" in by_cure:  # no release of it: another torch
            others = [place not in (without or ()) for place in range(len(torch))]
            places = by_cure.pop("")
            by_cure.setdefault(newest("torch", torch, others), set()).update(places)
        for cure, places in by_cure.items():
            groups.setdefault((cure, frozenset(places), machine), []).append(number)
    statements = []
    for (cure, places, machine), numbers in groups.items():
        last = releases[numbers[-1]]
        own, theirs = runs(releases, numbers), runs(torch, places)
        statements.append(_statement(links[last], consumer, own, theirs, cure, machine))
    return statements


def _of_one_abi(
    document: Mapping[str, Any],
    consumer: str,
    releases: Sequence[str],
    lacking: Sequence[Optional[AbstractSet[int]]],
    machines: Sequence[str],
) -> List[Dict[str, Any]]:
    """Return what cannot be loaded with a release of torch of the C++ ABI of its wheel for x86_64,
    where that for aarch64 has the other: it fits neither by its own wheel nor is it certain that
    no build fits.
    """
    torch: Sequence[str] = document.get("versions", ())
    fits = document.get("fits", {}).get(consumer, {})
    links = document.get("links", {}).get(consumer, {})
    groups: Dict[Tuple[int, str], List[int]] = {}
    for number, version in enumerate(releases):
        without = lacking[number]
        if without is None or version not in fits or not links[version]["lacking"]:
            continue
        for place in set(range(len(torch))) - without - places_of(fits[version]):
            groups.setdefault((place, machines[number]), []).append(number)
    statements = []
    for (place, machine), numbers in groups.items():
        old = Version(torch[place]) < _NEW_ABI
        last = releases[numbers[-1]]
        fitting = [other in places_of(fits[last]) for other in range(len(torch))]
        statement = _statement(
            links[last],
            consumer,
            runs(releases, numbers),
            runs(torch, [place]),
            newest("torch", torch, fitting),
            machine,
        )
        abi = "false" if old else "true"
        statements.append(
            {
                **statement,
                "id": f"links-torch-{torch[place]}-abi-{abi}-{releases[numbers[0]]}",
                "with": [["torch", f"cxx11abi={abi}"], *statement.get("with", ())],
            }
        )
    return statements


def _statement(
    link: Mapping[str, str],
    consumer: str,
    own: List[List[str]],
    theirs: List[List[str]],
    cure: str,
    machine: str,
) -> Dict[str, Any]:
    suffix = f"-{machine}" if machine == AARCH64 else ""
    statement = {
        "id": f"links-torch-{theirs[0][0]}-{own[0][0]}{suffix}",
        "provider": "torch",
        "module": "",
        "name": link["symbol"],
        "effect": "blocks",
        "verb": CANNOT_LOAD,
        "text": f"undefined symbol: {link['symbol']}",
        "in": own,
        "lacking": theirs,
        "kind": "abi-mismatch",
        "component": consumer,
        "archive": link["archive"],
        "path": link["library"],
        "line": 0,
    }
    if machine:
        statement["with"] = [[MACHINE, machine]]
    return {**statement, "pin": cure} if cure else statement


def _lacking(link: Optional[Mapping[str, str]], count: int) -> Optional[AbstractSet[int]]:
    """The places of releases of torch that a release cannot be loaded with; None where it was not
    judged, or is for a torch that was not read.
    """
    places = places_of(link["lacking"]) if link is not None else frozenset()
    return places if link is not None and len(places) < count else None


def write_links(
    matrices: Path, consumers: Iterable[str], optional: FrozenSet[str] = frozenset()
) -> None:
    """Put the statements of packages into their files, where they changed; ``optional``: those
    without which others go on.
    """
    for consumer in consumers:
        path = matrices / "surfaces" / f"{consumer}.json"
        old = read_document(path)
        kept = [entry for entry in old.get("statements", ()) if entry.get("verb") not in _LINKS]
        statements = [*kept, *link_statements(matrices, consumer, consumer in optional)]
        if statements != old.get("statements", []):
            write_document(path, {"measured": [], **old}, statements)
