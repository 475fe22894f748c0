"""The oldest glibc that a wheel, or the default build of a release, runs on."""

from __future__ import annotations

from ..model.pattern import pattern
from ..model.versions import parse_version
from .tags import LEGACY_GLIBC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Optional

    from .tables import Release

__all__ = ["floor_of_platforms", "glibc_floor"]

_MANYLINUX = pattern(r"manylinux_(\d+)_(\d+)_")


def floor_of_platforms(platforms: Iterable[str]) -> Optional[str]:
    """Return the lowest glibc that a wheel's platform tags admit: ``manylinux_2_28_x86_64`` gives
    ``2.28``.
    """
    versions = []
    for platform in platforms:
        for tag in platform.split("."):
            match = _MANYLINUX.match(tag)
            if match is not None:
                versions.append(f"{match.group(1)}.{match.group(2)}")
            else:
                versions += [
                    floor for name, floor in LEGACY_GLIBC.items() if tag.startswith(f"{name}_")
                ]
    return min(versions, key=parse_version) if versions else None


def glibc_floor(release: Release) -> Optional[str]:
    """Return the glibc that the default build of a release needs: what was read in the wheel, else
    what its tags admit.
    """
    measured = [
        build.glibc for build in release.builds if build.glibc and build.index_name == "pypi"
    ]
    return (
        min(measured, key=parse_version)
        if measured
        else release.glibc or floor_of_platforms(release.platforms)
    )
