"""What an image requires of a host: computed at bake, and written for NVIDIA's runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple

from ..matrix.derive import derive_candidate, driver_branch
from ..model.facts import Facts

if TYPE_CHECKING:
    from ..matrix.loader import Matrix

__all__ = ["nvidia_require", "required_of"]

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
