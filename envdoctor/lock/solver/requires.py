"""What packages require of a machine: the lowest driver and glibc, and the compute capabilities
that they have code for.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ...matrix.bind import Subject, Target, bind
from ...matrix.derive import derive_target
from ...matrix.loader import Matrix
from ...matrix.tables import DriverBranch
from ...model.facts import Facts
from ...model.resolution import Requires
from ...model.row import Row
from ...model.versions import Version, VersionSet, parse_version, try_version

__all__ = ["requires_of", "supported", "with_packages"]


def requires_of(
    subjects: Mapping[str, Subject],
    matrix: Matrix,
    *,
    python: str,
    platform: str,
    architecture: str,
    devices: Iterable[Subject] = (),
    glibc: Iterable[Version] = (),
) -> Requires:
    """Bind the blocking rows to packages on a machine of which nothing is known: what they wait for
    is what they require.

    Args:
        subjects: The packages by name, as ``matrix.derive`` makes them.
        matrix: What is known of versions and hardware.
        python: The version of the interpreter that they are for.
        platform: "linux", as ``sys.platform`` has it.
        architecture: "x86_64", as ``uname -m`` has it.
        devices: Kinds of GPUs for which floors are wanted that only they have.
        glibc: What the tags of the wheels ask for, where they are known.
    """
    rows = [
        row
        for row in matrix.rows_about(sorted(subjects))
        if row.effect == "blocks" and row.trust == "established"
    ]
    blank = with_packages(derive_target(Facts(), matrix), subjects)
    floors = _floors(rows, [blank, *(blank._replace(gpus=(one,)) for one in devices)], matrix)
    glibc = [
        *glibc,
        *(
            value
            for subject in subjects.values()
            for value in [subject.attributes.get("glibc")]
            if isinstance(value, Version)
        ),
        *([parse_version(floors["glibc"])] if "glibc" in floors else []),
    ]
    cuda = subjects["torch"].attributes.get("cuda") if "torch" in subjects else None
    coded = any("code" in subject.attributes for subject in subjects.values())
    return Requires(
        python=".".join(python.split(".")[:2]),
        driver=floors.get("driver"),
        glibc=str(max(glibc)) if glibc else None,
        cuda=str(cuda) if cuda is not None else None,
        sm=_served(rows, blank, matrix) if coded else (),
        platform=platform,
        architecture=architecture,
    )


def supported(
    capabilities: Iterable[str], targets: Sequence[Target], matrix: Matrix
) -> Tuple[str, ...]:
    """Return those compute capabilities whose GPUs the drivers of all these targets support."""
    rows = [row for row in matrix.rows_about(()) if row.effect == "blocks"]
    return tuple(
        capability
        for capability in capabilities
        if not any(
            bind(row, target._replace(gpus=(_device(capability, matrix),))).outcome == "violated"
            for target in targets
            for row in rows
        )
    )


def _device(capability: str, matrix: Matrix) -> Subject:
    """A GPU of which only the compute capability is known."""
    architecture = matrix.capabilities[capability].architecture
    attributes = {
        "sm": capability,
        "compute_capability": parse_version(capability),
        "architecture": architecture,
    }
    return Subject(True, attributes)


def with_packages(target: Target, subjects: Mapping[str, Subject]) -> Target:
    """Return a target on which these packages are installed, no others, and no variable is set."""
    absent = Subject(False)
    return target._replace(
        environment=lambda name: subjects.get(name, absent), variable=lambda _name: absent
    )


def _floors(rows: List[Row], machines: List[Target], matrix: Matrix) -> Dict[str, str]:
    """Return the lowest "driver" and "glibc" with which no row can apply on these machines, as the
    tables write them: 580.65.06 is no PEP 440 spelling.
    """
    majors = {str(entry.major): entry.min_driver for entry in matrix.cuda_majors.values()}
    floors: Dict[str, str] = {}
    for machine in machines:
        for row in rows:
            binding = bind(row, machine)
            waits_for_host = (
                binding.outcome == "undetermined"
                and len(binding.missing) == 1
                and binding.missing[0].scope == "host"
            )
            floor = _floor(row, matrix.driver_branches, majors) if waits_for_host else None
            if floor is not None:
                attribute, version = floor
                floors[attribute] = max(version, floors.get(attribute, version), key=parse_version)
    return floors


def _served(rows: List[Row], blank: Target, matrix: Matrix) -> Tuple[str, ...]:
    """Return the compute capabilities that no row refuses."""
    served = []
    for capability in matrix.capabilities:
        target = blank._replace(gpus=(_device(capability, matrix),))
        if all(bind(row, target).outcome != "violated" for row in rows):
            served.append(capability)
    return tuple(served)


def _floor(
    row: Row, branches: Mapping[str, DriverBranch], majors: Dict[str, str]
) -> Optional[Tuple[str, str]]:
    """Return the lowest driver or glibc with which a row that waits for the host does not apply."""
    for term in row.terms:
        if term.scope != "host" or term.operator != "in":
            continue
        intervals = term.argument.intervals if isinstance(term.argument, VersionSet) else ()
        if len(intervals) != 1:
            continue
        low, high = intervals[0]
        if low is not None or high is None:
            continue
        bound = parse_version(high.base_version)
        if term.attribute in ("driver", "glibc"):
            return term.attribute, _release_text(bound, row)
        if term.attribute == "cuda" and str(bound) in majors:
            return "driver", majors[str(bound)]
        if term.attribute == "ptx":
            able = [
                name for name, branch in branches.items() if parse_version(branch.cuda) >= bound
            ]
            return ("driver", min(able, key=parse_version)) if able else None
    return None


def _release_text(bound: Version, row: Row) -> str:
    """A bound as the row's pins write it, else as PEP 440 does."""
    for pin in row.pins:
        text = pin.rpartition(">=")[2].split(",")[0]
        if try_version(text) == bound:
            return text
    return str(bound)
