"""The curated tables and package releases as frozen values. No I/O: ``loader`` fills them."""

from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

from ..model.row import Source
from ..model.versions import Version

__all__ = ["Build", "Capability", "CudaMajor", "DriverBranch", "ForwardCompat", "GpuModel", "Package", "Release"]


class DriverBranch(NamedTuple):
    """One driver branch ("570"): the CUDA version it reports, its kind and its end of life ("2026-02" or None)."""

    branch: str
    cuda: str
    kind: str
    end_of_life: Optional[str]
    status: str
    source: Source


class CudaMajor(NamedTuple):
    """Minor-version compatibility of one CUDA major: the oldest Linux driver that runs any of its minors."""

    major: int
    min_driver: str
    source: Source


class ForwardCompat(NamedTuple):
    """The base driver branches that NVIDIA's cuda-compat package of one CUDA version admits."""

    cuda: str
    branches: Tuple[str, ...]
    trust: str
    source: Source


class Capability(NamedTuple):
    """One compute capability ("9.0"): first and last CUDA, first and last driver branch (None: still supported / unknown)."""

    capability: str
    architecture: str
    first_cuda: str
    last_cuda: Optional[str]
    first_driver: Optional[str]
    last_driver: Optional[str]
    trust: str
    source: Source


class GpuModel(NamedTuple):
    """One GPU model. ``kind``: datacenter, workstation, geforce, jetson, mobile … (decides forward compatibility)."""

    name: str
    compute_capability: str
    kind: str
    architecture: str
    memory: Optional[int] = None  # bytes


class Build(NamedTuple):
    """One build of a release: what its binary wheel holds. None or an empty tuple is not known.

    sass, ptx: compute capabilities ("9.0"). ptx_only: capabilities that at least one fatbin entry serves by PTX alone.
    torch: torch minor it was compiled against. needed: CUDA sonames.
    """

    index_name: str = "pypi"
    variant: Optional[str] = None
    cuda: Optional[str] = None
    sass: Tuple[str, ...] = ()
    ptx: Tuple[str, ...] = ()
    ptx_cuda: Optional[str] = None
    cxx11abi: Optional[bool] = None
    glibc: Optional[str] = None
    torch: Optional[str] = None
    needed: Tuple[str, ...] = ()
    architecture: str = "x86_64"
    trust: str = "established"
    source: str = ""


class Release(NamedTuple):
    """One release of a distribution on the index. ``pythons``: wheel tags such as "cp310", "cp38-abi3", "py3"."""

    version: str
    released: str
    yanked: bool = False
    requires_python: Optional[str] = None
    requires: Optional[Tuple[str, ...]] = None  # None: metadata not read
    pythons: Tuple[str, ...] = ()
    platforms: Tuple[str, ...] = ()
    sdist_only: bool = False
    builds: Tuple[Build, ...] = ()


class Package:
    """All releases of one distribution, oldest first; one release is found by its public version."""

    __slots__ = ("_by_version", "date", "name", "source", "trust")

    def __init__(self, name: str, releases: Mapping[Version, Any], source: str, date: str, trust: str) -> None:
        self.name = name
        self.source = source
        self.date = date
        self.trust = trust
        self._by_version = releases

    @property
    def versions(self) -> Tuple[Version, ...]:
        """All versions in the matrix, oldest first."""
        return tuple(sorted(self._by_version))

    def release(self, version: Version) -> Optional[Release]:
        """Return the release of this version, whatever its local label, or None."""
        found = self._by_version.get(version)
        if found is None and version.local is not None:
            found = self._by_version.get(Version(version.public))
        if isinstance(found, dict):
            found = _release(found)
        return found


def _release(entry: Mapping[str, Any]) -> Release:
    """Make a release from its JSON form (see CONTRIBUTING, "matrices/packages")."""
    values = _frozen(entry)
    values["builds"] = tuple(Build(**_frozen(build)) for build in entry.get("builds", ()))
    return Release(**values)


def _frozen(entry: Mapping[str, Any]) -> Dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
