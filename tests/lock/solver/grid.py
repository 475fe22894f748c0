"""Every profile on every kind of machine: a lock that check accepts, or the reason why there is
none.
"""

from __future__ import annotations

import time
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.as_of import of_its_time
from envdoctor.lock.solver import resolve
from envdoctor.lock.solver.objective import applied
from envdoctor.lock.solver.profiles import ProfileResolver
from envdoctor.matrix.curated import Profile, TestedSet, make_profile
from envdoctor.matrix.derive import derive_gpus
from envdoctor.matrix.loader import Matrix
from envdoctor.model.facts import Facts
from envdoctor.model.request import Request, parse_root
from envdoctor.model.resolution import Explanation, Resolution, Statement
from envdoctor.model.versions import parse_version
from envdoctor.rules import judge

__all__ = [
    "DRIVERS",
    "GLIBC",
    "GPUS",
    "PYTHONS",
    "Cell",
    "Outcome",
    "cells_of",
    "judge_cells",
    "judge_set",
    "machine",
    "profiles_of",
    "runs",
]

#: One release of each branch, the newest of the driver table last.
DRIVERS = (
    "470.82.01",
    "525.147.05",
    "535.129.03",
    "550.54.15",
    "570.86.15",
    "580.95.05",
    "615.71.09",
)
GPUS = ("V100", "T4", "A100", "RTX 4090", "H100", "H20", "B200", "RTX 5090")
PYTHONS = ("3.10", "3.11", "3.12")
GLIBC = "2.35"
#: Indexes of the second try, where the default one has nothing.
FURTHER = ("pytorch",)


class Cell(NamedTuple):
    """One profile on one kind of machine."""

    profile: str
    driver: str
    gpu: str
    python: str


class Outcome(NamedTuple):
    """What became of a cell.

    request: the profile's request that fits, or "". index: the further index that it takes, or "".
    reason: why nothing is possible, in one sentence. fault: what is wrong with the answer, or "".
    seconds: what the answer took.
    """

    cell: Cell
    request: str
    index: str
    reason: str
    fault: str
    seconds: float


def profiles_of(matrix: Matrix) -> Dict[str, Profile]:
    """Return the profiles by name."""
    return {
        name: make_profile(name, document) for name, document in sorted(matrix.profiles.items())
    }


def machine(driver: str, gpu: str, glibc: str = GLIBC) -> Facts:
    """Return a machine with eight of these devices."""
    return Facts(
        parse_assumptions(
            [
                f"nvidia-driver={driver}",
                f"gpu={gpu}:8",
                f"glibc={glibc}",
                "os.platform=linux",
                "os.architecture=x86_64",
            ]
        )
    )


def cells_of(
    profile: str, python: str, drivers: Sequence[str] = DRIVERS, gpus: Sequence[str] = GPUS
) -> List[Cell]:
    """Return the cells of one profile and Python."""
    return [Cell(profile, driver, gpu, python) for driver in drivers for gpu in gpus]


def judge_cells(cells: Iterable[Cell], profile: Profile, matrix: Matrix) -> List[Outcome]:
    """Resolve cells of one profile and Python; what was read for one serves the next."""
    resolvers: Dict[Tuple[str, Tuple[str, ...]], ProfileResolver] = {}
    found = []
    for cell in cells:
        for indexes in ((), FURTHER):
            if (cell.python, indexes) not in resolvers:
                base = Request((), cell.python, allow_index=indexes)
                resolvers[cell.python, indexes] = ProfileResolver(
                    profile, base, matrix, cell.python, of_its_time("release", matrix)
                )
        found.append(_judge_cell(cell, profile, resolvers, matrix))
    return found


def _judge_cell(
    cell: Cell,
    profile: Profile,
    resolvers: Dict[Tuple[str, Tuple[str, ...]], ProfileResolver],
    matrix: Matrix,
) -> Outcome:
    start = time.perf_counter()
    facts = (machine(cell.driver, cell.gpu),)
    for indexes in ((), FURTHER):
        for named in profile.requests:
            resolution = resolvers[cell.python, indexes].fit(named, facts)
            if resolution is not None:
                seconds = time.perf_counter() - start
                return Outcome(
                    cell,
                    named.name,
                    "".join(indexes),
                    "",
                    fault_of(resolution, facts[0], matrix),
                    seconds,
                )
    # The oldest request that is for this Python asks least of the machine.
    causes: Sequence[Statement] = ()
    for named in reversed(profile.requests):
        own = resolvers[cell.python, ()].causes(named, facts)
        causes = causes or own
        if own[-1].kind != "python":
            causes = own
            break
    seconds = time.perf_counter() - start
    missing = "" if causes and causes[-1].text else "neither a lock nor an explanation"
    expected = [tested.name for tested in profile.tested if must_fit(tested, cell, matrix)]
    if expected:
        missing = f"maintainers tested {', '.join(expected)} on such a machine"
    return Outcome(cell, "", "", causes[-1].text if causes else "", missing, seconds)


def fault_of(found: Resolution, facts: Facts, matrix: Matrix) -> str:
    """Return the first error of check that the pins bring with them, or ""."""
    own = {finding.key for finding in judge(facts, matrix, today=matrix.date)}
    for finding in judge(applied(found, facts), matrix, today=matrix.date):
        if finding.severity == "error" and finding.verdict == "violated" and finding.key not in own:
            return f"check refuses it: {finding.code} {finding.message}"
    return ""


# --------------------------------------------------------------------------------------------------
# tested sets


def must_fit(tested: TestedSet, cell: Cell, matrix: Matrix) -> bool:
    """Tell whether a set that maintainers tested has to come out in a cell: its Python, a driver
    and a device that run its CUDA.

    A set with a local label is an image's: its builds are on no index that is asked.
    """
    python = ".".join(tested.python.split(".")[:2])
    on_index = bool(tested.cuda) and not any("+" in text for text in tested.packages)
    return (
        tested.good
        and on_index
        and python == cell.python
        and runs(tested, cell.driver, cell.gpu, matrix)
    )


def runs(tested: TestedSet, driver: str, gpu: str, matrix: Matrix) -> bool:
    """Tell whether the CUDA of a set runs with a driver on a device, by the tables of drivers and
    architectures alone.
    """
    devices = derive_gpus(machine(driver, gpu), matrix) or ()
    for device in devices:
        entry = matrix.capabilities[str(device.attributes["sm"])]
        first, last = parse_version(entry.first_cuda), entry.last_cuda
        cuda = parse_version(tested.cuda)
        if cuda < first or (last is not None and cuda > parse_version(last)):
            return False
        if entry.first_driver is not None and parse_version(driver).release[0] < int(
            entry.first_driver
        ):
            return False
        if entry.last_driver is not None and parse_version(driver).release[0] > int(
            entry.last_driver
        ):
            return False
    return parse_version(driver) >= parse_version(tested.driver or "525.60.13")


def judge_set(tested: TestedSet, driver: str, gpu: str, matrix: Matrix) -> str:
    """Ask for exactly what maintainers tested; return why there is no lock for it, or ""."""
    roots = tuple(map(parse_root, tested.packages))
    broken = {edge.partition(" -> ")[2] for edge in tested.contradicts}
    request = Request(
        tuple(root for root in roots if root.name not in broken)
        + tuple(root for root in roots if root.name in broken),
        ".".join(tested.python.split(".")[:2]) or "3.12",
        allow_index=FURTHER if any("+" in text for text in tested.packages) else (),
        prereleases=tuple(root.name for root in roots),
        profile=tested.name,
        overrides=tuple(root for root in roots if root.name in broken),
    )
    facts = machine(driver, gpu)
    resolution = resolve(request, (facts,), matrix)
    if isinstance(resolution, Explanation):
        return "; ".join(cause.text for cause in resolution.causes)
    return fault_of(resolution, facts, matrix)


def own_machine(tested: TestedSet) -> Tuple[str, Optional[str]]:
    """Return the driver and the device of a set: what it names, else the first driver of its CUDA
    on an H100.
    """
    driver = tested.driver or "535.129.03"
    return driver, tested.gpu or "H100"
