"""What an environment requires of a machine: computed at bake, read from a lock, held against a
host, written for NVIDIA's runtime.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from ..errors import InputError
from ..matrix.derive import derive_candidate, driver_branch
from ..model.evidence import Evidence, Known, Unknown
from ..model.facts import Facts
from ..model.finding import Finding, Remedy
from ..model.versions import parse_version, try_version

if TYPE_CHECKING:
    from ..matrix.loader import Matrix
    from ..model.report import Report

__all__ = ["find_unmet", "nvidia_require", "read_lock", "required_of", "with_findings"]

_FILE = "envdoctor.lock.json"

# As the ENV lines of NVIDIA's CUDA images have them (github.com/NVIDIA/nvidia-docker/wiki/CUDA; a
# space is "or", a comma "and"): the brands of which some models may use cuda-compat. Which of these
# really may is the entrypoint's to judge; this line must not refuse what works.
_BRANDS = (
    "tesla",
    "unknown",
    "nvidia",
    "nvidiartx",
    "geforce",
    "geforcertx",
    "quadro",
    "quadrortx",
    "titan",
    "titanrtx",
)


def read_lock(folder: str) -> Dict[str, Any]:
    """Return ``envdoctor.lock.json`` of a folder (or that file); raises :class:`InputError`."""
    path = os.path.join(folder, _FILE) if os.path.isdir(folder) else folder
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"--lock {folder}: expected {_FILE}, written by 'envdoctor lock --output DIR': {error}"
        ) from error
    if not isinstance(found, dict) or not isinstance(found.get("requires"), dict):
        raise InputError(
            f"--lock {folder}: {_FILE} has no 'requires'; write it again with 'envdoctor lock "
            "--output DIR'"
        )
    return found


def with_findings(report: Report, found: Iterable[Finding]) -> Report:
    """Return a report with further findings in front of its own."""
    listed = tuple(found)
    violated = tuple(finding for finding in listed if finding.verdict == "violated")
    return report._replace(
        findings=violated + report.findings,
        undetermined=tuple(finding for finding in listed if finding.verdict != "violated")
        + report.undetermined,
        exit_code=1
        if any(finding.severity == "error" for finding in violated)
        else report.exit_code,
    )


def find_unmet(requires: Mapping[str, Any], facts: Facts, origin: str) -> Iterator[Finding]:
    """Yield what a machine lacks of what a lock requires; what is not known of the machine is
    undetermined.
    """
    for name, code, component, field, words in _FLOORS:
        wanted = requires.get(name)
        if not isinstance(wanted, str) or try_version(wanted) is None:
            continue
        known = facts.get(field)
        asked = f"The lock requires {words} {wanted} or newer"
        if isinstance(known, Unknown):
            yield _finding(
                code,
                component,
                "too-old",
                field,
                f"{asked}, and which one this is is not known.",
                facts,
                origin,
                words,
            )
        elif not isinstance(known, Known):
            yield _finding(
                code, component, "missing", field, f"{asked}, and there is none.", facts, origin
            )._replace(severity=_of_missing(name, facts))
        elif try_version(known.value) is not None and parse_version(known.value) < parse_version(
            wanted
        ):
            yield _finding(
                code, component, "too-old", field, f"{asked}, this is {known.value}.", facts, origin
            )
    yield from _python(requires, facts, origin)
    yield from _devices(requires, facts, origin)


def _of_missing(name: str, facts: Facts) -> str:
    """As ED307 has it: a machine without a driver and without a sign of a GPU may be meant to run
    without one.
    """
    from ..rules.driver import gpu_sign

    return "error" if name != "driver" or gpu_sign(facts) else "warning"


#: Name in "requires", code, component, field, words.
_FLOORS = (
    ("driver", "ED101", "nvidia-driver", "driver.release", "NVIDIA driver"),
    ("glibc", "ED403", "glibc", "glibc.version", "glibc"),
)


def _python(requires: Mapping[str, Any], facts: Facts, origin: str) -> Iterator[Finding]:
    wanted, known = requires.get("python"), facts.value("python.version")
    if (
        isinstance(wanted, str)
        and isinstance(known, str)
        and known.split(".")[:2] != wanted.split(".")[:2]
    ):
        kind = (
            "too-old"
            if (try_version(known) or parse_version("0")) < parse_version(wanted)
            else "too-new"
        )
        yield _finding(
            "ED303",
            "python",
            kind,
            "python.version",
            f"The lock is for Python {wanted}, this is {known}.",
            facts,
            origin,
        )


def _devices(requires: Mapping[str, Any], facts: Facts, origin: str) -> Iterator[Finding]:
    served = requires.get("sm")
    if not isinstance(served, list) or not served:
        return
    for device in facts.value("gpus", ()):
        capability = device.compute_capability
        if device.visible is not False and capability is not None and capability not in served:
            message = (
                f"The lock has code for compute capability {', '.join(served)}, "
                f"{device.name or 'the GPU'} is {capability}."
            )
            yield _finding("ED109", "gpu", "arch-missing", "gpus", message, facts, origin)
            return


def _finding(
    code: str,
    component: str,
    kind: str,
    field: str,
    message: str,
    facts: Facts,
    origin: str,
    missing: str = "",
) -> Finding:
    known = facts.evidence(field)
    return Finding(
        code=code,
        component=component,
        kind=kind,
        severity="error",
        message=message,
        verdict="undetermined" if missing else "violated",
        subject="lock",
        evidence=(Evidence(origin), *((known,) if known is not None else ())),
        remedies=(
            Remedy(
                "Run this where the lock's requirements are met, or resolve for this machine with "
                "'envdoctor lock'."
            ),
        ),
        missing=missing,
    )


# --------------------------------------------------------------------------------------------------
# at bake


def required_of(facts: Facts, matrix: Matrix) -> Dict[str, Any]:
    """Return what the installed packages require of a machine, as a lock of the same versions would
    say it; what nothing asks for is left out.
    """
    from ..lock.solver.requires import requires_of

    requires = requires_of(
        {name: derive_candidate(facts, matrix, name) for name in facts.value("distributions", {})},
        matrix,
        python=str(facts.value("python.version", "")),
        platform=str(facts.value("os.platform", "")),
        architecture=str(facts.value("os.architecture", "")),
    )
    return {name: value for name, value in requires._asdict().items() if value}


def nvidia_require(requires: Mapping[str, Any], compat: Optional[str], matrix: Matrix) -> str:
    """Return the value of NVIDIA_REQUIRE_CUDA: the driver that is required, or with a cuda-compat
    in the image one of its base branches.
    """
    driver = requires.get("driver")
    if not driver:
        return ""
    alternatives = [f"driver>={driver}"]
    branches = matrix.forward_compat.get(".".join(compat.split(".")[:2])) if compat else None
    for branch in _older(branches.branches if branches is not None else (), driver):
        alternatives += [
            f"brand={brand},driver>={branch},driver<{int(branch) + 1}" for brand in _BRANDS
        ]
    return " ".join(alternatives)


def _older(branches: Tuple[str, ...], driver: str) -> List[str]:
    return [
        branch
        for branch in branches
        if branch.isdigit() and int(branch) < int(driver_branch(driver))
    ]
