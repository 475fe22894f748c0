"""From facts to what rows are bound to: the host after NVIDIA's compatibility rules, the devices,
the candidates.

Pure. NVIDIA knows three kinds of compatibility, and each has its own attribute here:

* backward and minor-version: ``host.cuda`` is the newest CUDA major whose runtime this driver
  serves (docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html);
* PTX: ``host.ptx`` is the newest toolkit whose PTX this driver compiles; minor-version
  compatibility does not cover it;
* forward: a cuda-compat libcuda that is loaded raises both, where GPU class and base branch allow
  it (docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html).
"""

from __future__ import annotations

from ..model.evidence import Absent, Known
from ..model.facts import Distribution, Facts, Gpu
from ..model.pattern import pattern
from ..model.versions import (
    InvalidSpecifier,
    Version,
    VersionSet,
    cuda_of_variant,
    find_variant,
    is_placeholder,
    parse_version,
    try_driver_release,
    try_version,
)
from .bind import Subject, Target
from .derived_rows import UNREAD, assembled, entry_demands
from .tables import Build, CudaMajor, DriverBranch, ForwardCompat, GpuModel, Package, Release

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, FrozenSet, Mapping, Optional, Protocol, Tuple
else:
    Protocol = object

__all__ = [
    "COMPAT_OF_CLASS",
    "Tables",
    "derive_candidate",
    "derive_gpus",
    "derive_host",
    "derive_target",
    "driver_branch",
    "forward_compat_verdict",
    "on_arm_board",
    "usual_architecture",
]

#: In the name of a GPU: its processor is ARM.
_ARM_BOARDS = frozenset(
    [
        "DRIVE",
        "GB10",
        "GB200",
        "GB300",
        "GH200",
        "Grace",
        "Jetson",
        "Orin",
        "T4G",
        "Tegra",
        "Thor",
        "Xavier",
    ]
)
_WORDS = pattern(r"\w+")
_TORCH_LABEL = pattern(r"torch(\d+\.\d+)")
_ABI_LABEL = pattern(r"(?i)cxx11abi(true|false)")
#: ``2.6.0a0+ecf3bae40a.nv25.01``: "the nvcr images use C++11 ABI"
#: (https://github.com/Dao-AILab/flash-attention/blob/v2.7.4/setup.py).
_OF_NVIDIA = pattern(r"a0\+[0-9a-f]{7,12}(?:\.nv\d|$)")
_ABSENT = Subject(False)
_UNKNOWN = Subject(None)


class Tables(Protocol):
    """What this module asks of the matrix."""

    @property
    def driver_branches(self) -> Mapping[str, DriverBranch]:
        """Branches by number ("570")."""

    @property
    def cuda_majors(self) -> Mapping[int, CudaMajor]:
        """Minor-version compatibility by CUDA major."""

    @property
    def forward_compat(self) -> Mapping[str, ForwardCompat]:
        """Admitted base branches by the CUDA version of cuda-compat ("12.4")."""

    def gpu(self, name: Optional[str], pci_id: Optional[str]) -> Optional[GpuModel]:
        """Return the model of a device; the PCI id wins over the name."""

    def package(self, name: str) -> Optional[Package]:
        """Return the releases of a distribution, read on first use."""


_RUNTIME_WHEEL = "nvidia-cuda-runtime-cu"


def driver_branch(release: str) -> str:
    """Return the branch of a driver release: ``570.86.15`` gives ``570``."""
    return release.split(".", 1)[0]


def derive_target(facts: Facts, matrix: Tables) -> Target:
    """Return what rows are bound to.

    Candidates are derived on first use: most rows ask for few packages.
    """
    candidates: Dict[str, Subject] = {}

    def environment(name: str) -> Subject:
        candidate = candidates.get(name)
        if candidate is None:
            candidate = candidates[name] = derive_candidate(facts, matrix, name)
        return candidate

    return Target(
        host=derive_host(facts, matrix),
        gpus=derive_gpus(facts, matrix),
        variable=lambda name: _variable(facts, name),
        request=lambda name: _request(facts, name),
        environment=environment,
    )


def _variable(facts: Facts, name: str) -> Subject:
    fact = facts.variable(name)
    if isinstance(fact, Known):
        items = frozenset(part.strip() for part in fact.value.split(",") if part.strip())
        # What stands before the first hyphen: "MIG" and "GPU" of the UUIDs in CUDA_VISIBLE_DEVICES.
        prefixes = frozenset(part.split("-", 1)[0] for part in items if "-" in part)
        return Subject(True, {"value": fact.value, "items": items, "prefixes": prefixes})
    return _ABSENT if isinstance(fact, Absent) else _UNKNOWN


def _request(facts: Facts, name: str) -> Subject:
    workload = facts.value("request")
    text = workload.setting(name) if workload is not None else None
    if text is None:
        return _UNKNOWN
    attributes: Dict[str, Any] = {"value": text}
    number = try_version(text)
    if number is not None:
        attributes["number"] = number
    return Subject(True, attributes)


def derive_host(facts: Facts, matrix: Tables) -> Subject:
    """Return the host: driver, cuda, ptx, glibc, python (versions), platform, architecture,
    container (strings).
    """
    attributes: Dict[str, Any] = {}
    for attribute, field in (
        ("glibc", "glibc.version"),
        ("python", "python.version"),
        ("toolkit", "toolkit.version"),
    ):
        version = try_version(facts.value(field))
        if version is not None:
            attributes[attribute] = version
    if isinstance(facts.get("toolkit.version"), Absent):
        attributes["toolkit"] = VersionSet()  # no nvcc is of no version
    for attribute, field in (
        ("platform", "os.platform"),
        ("architecture", "os.architecture"),
        ("container", "container.runtime"),
    ):
        value = facts.value(field)
        if value is not None:
            attributes[attribute] = value
    driver = try_driver_release(facts.value("driver.release"))
    if driver is not None:
        attributes["driver"] = driver
        attributes.update(_served_by(driver, facts, matrix))
    _raise_by_compat(attributes, facts, matrix)
    return Subject(True, attributes)


def _served_by(driver: Version, facts: Facts, matrix: Tables) -> Dict[str, Version]:
    """Return the newest CUDA ("cuda") and PTX ("ptx") that a driver serves by itself."""
    served: Dict[str, Version] = {}
    majors = matrix.cuda_majors
    newest = max(
        (entry.major for entry in majors.values() if driver >= parse_version(entry.min_driver)),
        default=None,
    )
    # A driver newer than every branch known here may serve a CUDA major that no row knows: only
    # known majors count.
    if newest is not None:
        served["cuda"] = parse_version(str(newest))
    elif majors:
        served["cuda"] = parse_version("10")  # older than what the first known major asks for
    branch = matrix.driver_branches.get(driver_branch(str(driver)))
    ptx = try_version(branch.cuda if branch is not None else facts.value("driver.cuda_version"))
    if ptx is not None:
        served["ptx"] = ptx
    return served


def _raise_by_compat(attributes: Dict[str, Any], facts: Facts, matrix: Tables) -> None:
    """Raise CUDA and PTX to what a loaded cuda-compat serves."""
    compat = try_version(facts.value("compat.cuda_version"))
    works = forward_compat_verdict(facts, matrix) if compat is not None else False
    if compat is not None and works:
        none = parse_version("0")
        attributes["cuda"] = max(parse_version(str(compat.major)), attributes.get("cuda", none))
        attributes["ptx"] = max(compat, attributes.get("ptx", none))
    elif works is None:
        # It may raise them: a verdict that rests on the driver alone would be a guess.
        attributes.pop("cuda", None)
        attributes.pop("ptx", None)


#: Whether cuda-compat works on a class of devices; of the others (workstation cards) it does on
#: some only.
COMPAT_OF_CLASS = {"datacenter": True, "jetson": True, "geforce": False, "mobile": False}


def forward_compat_verdict(facts: Facts, matrix: Tables) -> Optional[bool]:
    """Tell whether the loaded cuda-compat works here: True, False, or None where class or branch is
    not known, or the branch not listed.

    False for a device that is no data-centre part (error 804), or where the kernel driver is not
    older than the compat library (error 803 or no use).
    """
    cuda = facts.value("compat.cuda_version")
    driver = try_driver_release(facts.value("driver.release"))
    if cuda is None or driver is None:
        return None
    release = try_version(facts.value("compat.release"))
    if release is not None and driver >= release:
        return False
    devices = facts.value("gpus")
    if not devices:
        return None
    for device in devices:
        model = matrix.gpu(device.name, device.pci_id)
        if model is None:
            return None
        works = COMPAT_OF_CLASS.get(model.kind)
        if not works:
            return works
    allowed = matrix.forward_compat.get(cuda)
    if allowed is None:
        return None
    return True if driver_branch(str(driver)) in allowed.branches else None


def derive_gpus(facts: Facts, matrix: Tables) -> Optional[Tuple[Subject, ...]]:
    """Return one subject for each kind of visible device, or None where the devices are not
    known.
    """
    devices = facts.value("gpus")
    if devices is None:
        return None
    kinds: Dict[Any, Subject] = {}
    for device in devices:
        if device.visible is False:
            continue
        key = (device.name, device.pci_id, device.compute_capability, device.mig_mode)
        if key not in kinds:
            kinds[key] = Subject(True, gpu_attributes(device, matrix))
    return tuple(kinds.values())


def gpu_attributes(device: Gpu, matrix: Tables) -> Dict[str, Any]:
    """Return the attributes of one device: model, kind, architecture, sm (strings),
    compute_capability (version).
    """
    attributes: Dict[str, Any] = {}
    model = matrix.gpu(device.name, device.pci_id)
    if model is not None:
        attributes.update(model=model.name, kind=model.kind, architecture=model.architecture)
    capability = device.compute_capability or (
        model.compute_capability if model is not None else None
    )
    version = try_version(capability)
    if capability is not None and version is not None:
        attributes.update(sm=capability, compute_capability=version)
    if device.mig_mode is not None:
        attributes["mig"] = "enabled" if device.mig_mode else "disabled"
    return attributes


def derive_candidate(facts: Facts, matrix: Tables, name: str) -> Subject:
    """Return one installed distribution as a candidate.

    What the installed files say wins over the matrix; a build that no index knows (NGC's
    ``2.6.0a0+…``, a nightly, an editable install) has a version but no build attributes.
    """
    fact = facts.distribution(name)
    if not isinstance(fact, Known):
        return _ABSENT if isinstance(fact, Absent) else _UNKNOWN
    installed: Distribution = fact.value
    version = try_version(installed.version)
    if version is None or is_placeholder(installed.version or ""):
        stated = _torch_itself(facts) if name == "torch" else {}
        return Subject(True, {**_ranged(installed), **stated})
    attributes: Dict[str, Any] = {"version": version}
    package = matrix.package(name)
    release = package.release(version) if package is not None else None
    builds = _possible_builds(facts, matrix, installed, release, version)
    runtime = _runtime_major(facts, installed)
    if runtime is not None:
        # A wheel from elsewhere under the same version: what the matrix says of the index's build
        # does not hold for it.
        builds = tuple(
            build
            for build in builds
            if build.cuda is None or build.cuda.split(".", 1)[0] == runtime
        )
    attributes.update(_labelled(version.local or ""))
    attributes.update(_agreed(builds))  # which know better where a label says what is not so
    attributes.update(_measured(facts, installed))
    if runtime is not None and "cuda" not in attributes:
        attributes["cuda"] = parse_version(runtime)
    return Subject(True, attributes)


def _ranged(installed: Distribution) -> Dict[str, Any]:
    """What is known without a release: the range that a requirement or a report leaves, and the
    CUDA of a build ("cu130").
    """
    attributes: Dict[str, Any] = {}
    variant = find_variant(installed.build) if installed.build else None
    cuda = try_version(cuda_of_variant(variant)) if variant is not None else None
    if cuda is not None:
        attributes.update(variant=variant, cuda=cuda)
    if installed.constraint:
        try:
            attributes["version"] = VersionSet.parse(installed.constraint)
        except InvalidSpecifier:
            return attributes
    return attributes


def _possible_builds(
    facts: Facts,
    matrix: Tables,
    installed: Distribution,
    release: Optional[Release],
    version: Version,
) -> Tuple[Build, ...]:
    """The builds of a release that the installed distribution can be; none where it may be one that
    no index has.
    """
    elsewhere = installed.is_own_build or installed.direct_url.startswith("git+")
    if release is None or installed.editable or elsewhere:
        return ()
    cuda = None
    if installed.name == "torch":
        if isinstance(facts.get("torch.cuda"), Absent) or isinstance(facts.get("torch.hip"), Known):
            return ()  # a CPU or ROCm build
        cuda = facts.value("torch.cuda")
    if (installed.installer == "conda" or installed.build) and cuda is None:
        return ()  # conda builds its own
    architecture = facts.value("os.architecture") or usual_architecture(facts, matrix)
    builds = find_builds(release, version, architecture, cuda)
    if installed.name != "torch" or cuda is not None or version.local is not None:
        return builds
    stated = facts.value("report.cuda")
    if stated is not None:
        # "torch 2.2.0, CUDA 11.8" may speak of the build for 11.8, or of a toolkit beside the usual
        # one.
        of_stated = find_builds(release, version, architecture, stated)
        builds = tuple(dict.fromkeys((*builds, *of_stated)))
    runtimes = _runtime_wheels(facts)
    of_runtime = [build for build in builds if (build.cuda or "").split(".")[0] in runtimes]
    return tuple(of_runtime) if len(runtimes) == 1 and of_runtime else builds


def _runtime_wheels(facts: Facts) -> FrozenSet[str]:
    """The CUDA majors of which a wheel of the runtime is installed: torch's own builds bring it,
    and one for CPUs has none.
    """
    installed = facts.value("distributions") or {}
    names = [name for name in installed if name.startswith(_RUNTIME_WHEEL)]
    return frozenset(name[len(_RUNTIME_WHEEL) :] for name in names)


def usual_architecture(facts: Facts, matrix: Tables) -> Optional[str]:
    """The machine architecture that goes with the devices, for a report that shows GPUs and
    packages only (nvidia-smi and pip list).

    Known models that are on no ARM board come in x86_64 machines but for rarities, whose wheels
    hold a subset of the same code. None where there is no device, or one of no known model.
    """
    architectures = set()
    for device in facts.value("gpus") or ():
        model = matrix.gpu(device.name, device.pci_id)
        if model is None:
            return None
        architectures.add("aarch64" if on_arm_board(model.name) else "x86_64")
    return architectures.pop() if len(architectures) == 1 else None


def on_arm_board(gpu: str) -> bool:
    """Tell by a GPU's name whether its processor is ARM: Grace, Spark, Jetson, DRIVE, and Graviton
    beside the T4G.
    """
    return not _ARM_BOARDS.isdisjoint(_WORDS.findall(gpu))


def find_builds(
    release: Release, version: Version, architecture: Optional[str], cuda: Optional[str] = None
) -> Tuple[Build, ...]:
    """Return the builds of a release that an installed version can be.

    The local label decides (``2.6.0+cu124``); without one, the CUDA version that torch/version.py
    names; else it is the default index's build. Several remain where the architecture is not known,
    or where builds differ in what no label tells.
    """
    builds = [
        build
        for build in release.builds
        if architecture is None or build.architecture == architecture
    ]
    if version.local is not None:
        return tuple([build for build in builds if _has_label(build, version.local)])
    if cuda is not None:
        return tuple([build for build in builds if build.cuda == cuda])
    return tuple([build for build in builds if build.index_name == "pypi"])


def _has_label(build: Build, local: str) -> bool:
    """Tell whether a build can be that of a local label; one without a variant is nobody's."""
    variant = find_variant(local)
    minor = _torch_of_label(local)
    abi = _abi_of_label(local)
    if variant is None:
        return False
    of_variant = build.variant == variant or (
        build.variant is None and build.cuda == cuda_of_variant(variant)
    )
    labelled = build.cxx11abi if build.labelled_abi is None else build.labelled_abi
    return of_variant and minor in (None, build.torch) and (abi is None or labelled in (None, abi))


def _agreed(builds: Tuple[Build, ...]) -> Dict[str, Any]:
    """The attributes in which all possible builds agree: what they differ in is not known."""
    if not builds:
        return {}
    first, *others = [build_attributes(build) for build in builds]
    return {
        name: value
        for name, value in first.items()
        if all(other.get(name) == value for other in others)
    }


def _torch_of_label(local: Optional[str]) -> Optional[str]:
    """``cu12torch2.6cxx11abifalse`` gives ``2.6``."""
    match = _TORCH_LABEL.search(local) if local and "torch" in local else None
    return match.group(1) if match else None


def _abi_of_label(local: Optional[str]) -> Optional[bool]:
    match = _ABI_LABEL.search(local) if local and len(local) >= len("cxx11abitrue") else None
    return None if match is None else match.group(1) == "true"


def build_attributes(build: Build) -> Dict[str, Any]:
    """Return a build's attributes as terms name them.

    ``code`` is the set of what runs or compiles ("sass:9.0", "ptx:9.0"); it is left out where
    machine code was not read. ``jit`` says of single fat binaries what they leave to the driver's
    compiler ("some:9.0@12.8"), or that they were not read ("unread"). ``ptxas`` is the set of
    devices ("9.0a") that the assembler in a wheel of triton knows.
    """
    attributes: Dict[str, Any] = {
        "index": build.index_name,
        "jit": entry_demands(build.entries) if build.entries else UNREAD,
    }
    if build.variant is not None:
        attributes["variant"] = build.variant
    for attribute, text in (
        ("cuda", build.cuda),
        ("glibc", build.glibc),
        ("torch", build.torch),
        ("ptx_cuda", build.ptx_cuda),
    ):
        version = try_version(text)
        if version is not None:
            attributes[attribute] = version
    if build.sass:
        # Where the PTX was not read, each architecture may have some: only a device older than all
        # of them is surely without code.
        ptx = build.ptx if build.ptx_read else build.sass
        attributes["code"] = frozenset(
            ["sass:" + sm for sm in build.sass] + ["ptx:" + sm for sm in ptx]
        )
    if build.cxx11abi is not None:
        attributes["cxx11abi"] = "true" if build.cxx11abi else "false"
    if build.needed:
        attributes["sonames"] = frozenset(build.needed)
    if build.tools:
        attributes["ptxas"] = assembled(build.tools)
    return attributes


def _measured(facts: Facts, installed: Distribution) -> Dict[str, Any]:
    """Return what the installed files themselves say of a candidate."""
    attributes: Dict[str, Any] = {}
    if installed.name == "torch":
        if _OF_NVIDIA.search(installed.version or ""):
            attributes["cxx11abi"] = _ABI[True]
        attributes.update(_torch_itself(facts))
    needed = frozenset(
        soname
        for binary in facts.value("binaries", ())
        if binary.distribution == installed.name
        for soname in binary.needed
    )
    if needed:
        attributes["sonames"] = needed
    return attributes


def _labelled(label: str) -> Dict[str, Any]:
    """Return what the local label of a version says: cu128, torch2.6, cxx11abiTRUE."""
    variant = find_variant(label) if label else None
    if variant is None:
        return {}
    abi = _abi_of_label(label)
    stated = {
        "variant": variant,
        "cuda": try_version(cuda_of_variant(variant)),
        "torch": try_version(_torch_of_label(label)),
        "cxx11abi": None if abi is None else _ABI[abi],
    }
    return {name: value for name, value in stated.items() if value is not None}


def _torch_itself(facts: Facts) -> Dict[str, Any]:
    """Return what torch says of its own build."""
    abi = facts.value("torch.cxx11abi")
    codes = frozenset(filter(None, map(_code_of, facts.value("torch.arch_list") or ())))
    stated = {
        "cuda": try_version(facts.value("torch.cuda")),
        "code": codes if facts.value("torch.arch_list") else None,
        "cxx11abi": None if abi is None else _ABI[bool(abi)],
    }
    return {name: value for name, value in stated.items() if value is not None}


_ABI = {True: "true", False: "false"}


def _runtime_major(facts: Facts, installed: Distribution) -> Optional[str]:
    """The CUDA major whose runtime the compiled files of a distribution were linked to, where all
    say the same.
    """
    majors = {
        soname.split(".so.", 1)[1].split(".", 1)[0]
        for binary in facts.value("binaries", ())
        if binary.distribution == installed.name
        for soname in binary.needed
        if soname.startswith("libcudart.so.")
    }
    return majors.pop() if len(majors) == 1 else None


def _code_of(entry: str) -> Optional[str]:
    """``sm_90`` gives ``sass:9.0``, ``compute_120`` gives ``ptx:12.0``; an architecture-specific
    ``sm_90a`` stays itself.
    """
    kind, _, digits = entry.partition("_")
    if kind not in ("sm", "compute") or len(digits) < 2:
        return None
    number = digits.rstrip("af")
    if not (number.isascii() and number.isdigit()):
        return None
    suffix = digits[len(number) :]
    return f"{'sass' if kind == 'sm' else 'ptx'}:{number[:-1]}.{number[-1]}{suffix}"
