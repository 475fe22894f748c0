"""The curated tables and package releases as frozen values. No I/O: ``loader`` fills them."""

from __future__ import annotations

from ..model.record import NamedTuple
from ..model.row import Source
from ..model.versions import Version, VersionSet, parse_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Optional, Tuple

__all__ = [
    "Board",
    "Build",
    "Capability",
    "CodeDemand",
    "CudaMajor",
    "Difference",
    "DriverBranch",
    "ForwardCompat",
    "GpuModel",
    "NgcImage",
    "Package",
    "Release",
    "SourceBuild",
    "ToolkitRelease",
    "release_key",
]


class DriverBranch(NamedTuple):
    """One driver branch ("570"): the CUDA version it reports, its kind and its end of life
    ("2026-02" or None).
    """

    branch: str
    cuda: str
    kind: str
    end_of_life: Optional[str]
    status: str
    source: Source


class ToolkitRelease(NamedTuple):
    """One CUDA toolkit release ("12.8.1"): the driver it came with, its branch, and the driver of
    its cuda-compat package.
    """

    version: str
    branch: str
    driver: Optional[str]
    min_driver: str
    compat_driver: Optional[str]
    trust: str
    source: Source


class CudaMajor(NamedTuple):
    """Minor-version compatibility of one CUDA major: the oldest Linux driver that runs any of its
    minors.
    """

    major: int
    min_driver: str
    source: Source


class ForwardCompat(NamedTuple):
    """The base driver branches that NVIDIA's cuda-compat package of one CUDA version admits."""

    cuda: str
    branches: Tuple[str, ...]
    source: Source


class NgcImage(NamedTuple):
    """The CUDA toolkit of NVIDIA's framework images of one month ("25.08")."""

    month: str
    cuda: str
    source: Source


class Capability(NamedTuple):
    """One compute capability ("9.0"): first and last CUDA, first and last driver branch (None:
    still supported / unknown).
    """

    capability: str
    architecture: str
    first_cuda: str
    last_cuda: Optional[str]
    first_driver: Optional[str]
    last_driver: Optional[str]
    trust: str
    source: Source


class Board(NamedTuple):
    """A GPU on a board that takes CUDA builds for Arm servers, as PyPI has them, only from some
    ``system`` on, which has this ``cuda``; ``builds``: where its maker has some for older ones.
    """

    gpu: str
    system: str
    cuda: str
    builds: str
    source: Source


class CodeDemand(NamedTuple):
    """What it means that a package has no code for a GPU: ``blocks`` where it cannot work at all,
    ``degrades`` where only some kernels go.
    """

    package: str
    effect: str
    symptom: str
    trust: str
    source: Source


class SourceBuild(NamedTuple):
    """How releases without a wheel are built.

    ``needs`` are requirement lines of what has to be installed before, torch among them where the
    build imports it; ``compiler``: "nvcc", or "" where nothing is compiled; ``python``: the Pythons
    that it was tried on, None: those of the release's time; ``fetches``: the index of wheels that
    the build takes instead where it has a fitting one.
    """

    package: str
    versions: VersionSet
    needs: Tuple[str, ...]
    compiler: str
    python: Optional[VersionSet]
    fetches: str
    source: Source


class GpuModel(NamedTuple):
    """One GPU model. ``kind``: datacenter, workstation, geforce, mobile, jetson, other (decides
    forward compatibility).
    """

    name: str
    compute_capability: str
    kind: str
    architecture: str
    memory: Optional[int] = None  # bytes


class Build(NamedTuple):
    """One build of a release: what its binary wheel holds. None or an empty tuple is not known.

    sass, ptx: compute capabilities ("9.0"). ptx_cuda: CUDA version of the toolkit that made the
    PTX. ptx_read: False where only the machine code was looked at, so that ptx says nothing. torch:
    torch minor it was compiled against. needed: CUDA sonames.
    entries: the distinct kinds of fat binaries,
    ``sass=8.0,9.0a;ptx=8.0@8.7;in=_C,_moe_C;kernels=marlin``: which machine code and PTX (with the
    version of the PTX language) lie together, in which libraries, and the kernels of the PTX.
    tools: ``ptxas=12.8.93;sm=7.5,9.0a``.
    glibc: what the libraries without which the package is of no use want; glibc_parts: others that
    want more, ``_moe_C=2.29``.
    torch_symbols: number and digest of the undefined symbols of libtorch. bundled: other projects'
    libraries in the wheel.
    pythons: tags of the wheels of this build ("cp312"), where a build does not have those of the
    release.
    nightly: only nightly wheels of it exist, so that no release of it can be installed; or it was
    compiled against a nightly of its torch, which the source names.
    labelled_abi: the C++ ABI that its label names, where it is of the other. fetched_under: CUDA
    majors of a torch, besides its own, under which the release's setup.py fetches it.
    """

    index_name: str = "pypi"
    variant: Optional[str] = None
    cuda: Optional[str] = None
    sass: Tuple[str, ...] = ()
    ptx: Tuple[str, ...] = ()
    ptx_cuda: Optional[str] = None
    ptx_read: bool = True
    cxx11abi: Optional[bool] = None
    glibc: Optional[str] = None
    torch: Optional[str] = None
    needed: Tuple[str, ...] = ()
    architecture: str = "x86_64"
    trust: str = "established"
    source: str = ""
    entries: Tuple[str, ...] = ()
    tools: Tuple[str, ...] = ()
    glibcxx: Optional[str] = None
    glibc_parts: Tuple[str, ...] = ()
    torch_symbols: Optional[str] = None
    bundled: Tuple[str, ...] = ()
    pythons: Tuple[str, ...] = ()
    nightly: bool = False
    labelled_abi: Optional[bool] = None
    fetched_under: Tuple[str, ...] = ()


class Difference(NamedTuple):
    """The wheels of a release, by Python and platform tag, whose metadata is not that of the
    release. ``requires_python``: None where it is.
    """

    pythons: Tuple[str, ...]
    platforms: Tuple[str, ...]
    requires: Tuple[str, ...]
    requires_python: Optional[str] = None


class Release(NamedTuple):
    """One release of a distribution on the index.

    pythons: tags of the Linux wheels, such as "cp310", "cp38-abi3", "cp313t", "py3". glibc: the
    oldest one that a Linux x86_64 wheel serves by its tag. sdist: there is a source archive;
    sdist_only: there is nothing else. requires: of the x86_64 wheels, only what touches the stack
    (scripts/matrix_refresh/packages.toml has the names); differs: the Linux wheels that ask for
    something else. malformed: a requirement line for which pip since 24.1 refuses the release.
    """

    version: str
    released: str
    yanked: bool = False
    requires_python: Optional[str] = None
    requires: Optional[Tuple[str, ...]] = None  # None: metadata not read
    pythons: Tuple[str, ...] = ()
    platforms: Tuple[str, ...] = ()
    sdist_only: bool = False
    builds: Tuple[Build, ...] = ()
    yanked_reason: Optional[str] = None
    glibc: Optional[str] = None
    sdist: bool = False
    differs: Tuple[Difference, ...] = ()
    malformed: Optional[str] = None


class Package:
    """All releases of one distribution, oldest first; one release is found by its public version.

    ``releases`` maps ``release_key`` of a version to its JSON form; a mapping that reads lines on
    demand will do. What needs all of them reads them in one pass, once.
    """

    __slots__ = ("_by_key", "_known", "_releases", "_versions", "date", "name", "source", "trust")

    def __init__(
        self, name: str, releases: Mapping[str, Any], source: str, date: str, trust: str
    ) -> None:
        self.name = name
        self.source = source
        self.date = date
        self.trust = trust
        self._by_key = releases
        self._known: Dict[str, Optional[Release]] = {}  # what was asked for
        self._versions: Optional[Tuple[Version, ...]] = None
        self._releases: Optional[Tuple[Tuple[Version, Release], ...]] = None

    @property
    def versions(self) -> Tuple[Version, ...]:
        """All versions in the matrix, oldest first."""
        if self._versions is None:
            entries = self._by_key.items()
            self._versions = tuple(sorted(parse_version(entry["version"]) for _, entry in entries))
        return self._versions

    def releases(self) -> Tuple[Tuple[Version, Release], ...]:
        """Return all releases with their versions, oldest first."""
        if self._releases is None:
            entries = self._by_key.items()
            pairs = [(parse_version(entry["version"]), _release(entry)) for _, entry in entries]
            pairs.sort(key=lambda pair: pair[0])
            self._releases = tuple(pairs)
        return self._releases

    def release(self, version: Version) -> Optional[Release]:
        """Return the release of this version, whatever its local label, or None."""
        key = release_key(version)
        if key not in self._known:
            values = self._by_key.get(key)
            self._known[key] = None if values is None else _release(values)
        return self._known[key]


def release_key(version: Version) -> str:
    """Return a text that is equal for equal public versions: ``2.6``, ``2.6.0`` and ``2.6.0+cu124``
    give ``2.6``.
    """
    release = version.release
    end = len(release)
    while end > 1 and release[end - 1] == 0:
        end -= 1
    parts = [f"{version.epoch}!" if version.epoch else "", ".".join(map(str, release[:end]))]
    if version.pre is not None:
        parts.append(f"{version.pre[0]}{version.pre[1]}")
    if version.post is not None:
        parts.append(f".post{version.post}")
    if version.dev is not None:
        parts.append(f".dev{version.dev}")
    return "".join(parts)


def _release(entry: Mapping[str, Any]) -> Release:
    """Make a release from its JSON form (``schema`` says what it holds)."""
    values = _frozen(entry)
    values["builds"] = tuple(Build(**_frozen(build)) for build in entry.get("builds", ()))
    values["differs"] = tuple(Difference(**_frozen(item)) for item in entry.get("differs", ()))
    return Release(**values)


def _frozen(entry: Mapping[str, Any]) -> Dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
