"""Builds of torch in the place of one that this driver does not serve, that has no code for this
GPU, or that is for no GPU at all: of the same release first, then of those next to it. Whether one
cures, and brings nothing, is for who tries them to find out.
"""

from __future__ import annotations

from ..model.calls import InstallerCall
from ..model.facts import is_unindexed
from ..model.finding import Remedy
from ..model.versions import try_version
from .installable import INDEX_OF_TORCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Tuple

    from ..model.facts import Facts
    from ..model.finding import Finding
    from ..model.versions import Version

__all__ = ["other_builds"]

_COMPANIONS = ("torchvision", "torchaudio")
_MOST_RELEASES = 6


def other_builds(finding: Finding, facts: Facts, matrix: Any) -> List[Remedy]:
    """Return the commands that install another build of torch and of what belongs to it, each from
    the index that has it; of each release those for the newest CUDA first.
    """
    there = facts.value("distributions", {})
    torch = there.get("torch")
    version = try_version(torch.version) if torch is not None else None
    package = matrix.package("torch")
    if torch is None or version is None or package is None or is_unindexed(torch):
        return []
    if "torch" not in finding.packages:
        return []
    beside = [name for name in _COMPANIONS if name in there]
    verb = "Or, where the driver has to stay, install" if finding.code == "ED101" else "Install"
    return [
        Remedy(
            f"{verb} the build of torch {release} for CUDA {cuda}.",
            (
                InstallerCall(
                    "install",
                    (*beside, f"torch=={release}"),
                    ("--upgrade", "--force-reinstall", "--index-url", f"{INDEX_OF_TORCH}{variant}"),
                ),
            ),
        )
        for release in _releases(package, version)
        for variant, cuda in _variants(package.release(release))
    ]


def _releases(package: Any, version: Version) -> List[Version]:
    """Return the release of a version, the first of each later minor, and those before it."""
    finals = [entry for entry in package.versions if not entry.is_prerelease]
    same = [entry for entry in finals if entry.release == version.release]
    firsts = {entry.release[:2]: entry for entry in reversed(finals) if entry > version}
    newer = sorted(entry for minor, entry in firsts.items() if minor != version.release[:2])
    older = [entry for entry in reversed(finals) if entry < version and entry not in same]
    return [*same, *newer[: _MOST_RELEASES - 1], *older[: _MOST_RELEASES - 1]]


def _variants(release: Any) -> List[Tuple[str, str]]:
    """Return the variants for CUDA of a release on torch's own index, the newest CUDA first."""
    builds = {
        build.variant: build.cuda
        for build in release.builds
        if build.variant and build.cuda and build.variant.startswith("cu") and not build.nightly
    }
    return sorted(builds.items(), key=lambda entry: int(entry[0][2:] or 0), reverse=True)
