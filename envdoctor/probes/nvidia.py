"""The NVIDIA driver and its devices.

Order of evidence, cheapest first and never with a CUDA context: the kernel module
(``/sys/module/nvidia/version``, ``/proc/driver/nvidia/version``), NVML, libcuda (the file that the
loader takes, ``cuDriverGetVersion``, ``cuInit``), ``nvidia-smi`` last. A missing source is no
verdict: gVisor and WSL have no ``/proc/driver/nvidia``.

Six versions that are never equated: kernel module, NVML's driver release, the release in libcuda's
file name, the driver's CUDA version, the toolkit, the runtime.

Whatever loads a library, or reads a file behind which the driver may hang, runs in a child. The
children run side by side, so that the probe takes as long as the slowest of them.
"""

from __future__ import annotations

import json
import os
import re
import sys

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from ..model.facts import Gpu
from ..model.pattern import pattern
from ..model.record import NamedTuple
from .machine import FOLDER_ONLY, Machine, Probe
from .nvidia_text import (
    is_compat_path,
    is_release,
    parse_fabric_version,
    parse_pci_list,
    parse_smi_gpus,
    visible_by_variable,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (
        Any,
        Callable,
        Dict,
        Iterable,
        Iterator,
        List,
        Mapping,
        Optional,
        Sequence,
        Tuple,
    )

    from .isolation import Child, Outcome

__all__ = [
    "CHILD_DEADLINE",
    "PROBES_HERE",
    "PciDevice",
    "find_libraries",
    "pci_displays",
    "probe_nvidia",
]

CHILD_DEADLINE = 4.0
"""Seconds for NVML and cuInit.

Eight GPUs without persistence mode take 24-30 s (aks-gpu#105): then they are unknown.
"""

_SMI_DEADLINE = 2.0
_FABRIC_DEADLINE = 1.0

_LIBCUDA_FILE = pattern(r"(?a)libcuda\.so\.(\d{3,4}\.\d{1,4}(?:\.\d{1,4})?)")
_CUDA_FOLDER = pattern(r"(?a)/cuda-(\d{1,2}\.\d{1,2})(?:/|$)")
_INIT_PID_NAMESPACE = "pid:[4026531836]"  # include/linux/proc_ns.h: PROC_PID_INIT_INO
_VENDORS = {"10de": "NVIDIA", "1002": "AMD", "8086": "Intel"}


class PciDevice(NamedTuple):
    """A display or 3D controller on the PCI bus."""

    bus: str
    vendor: str
    device: str
    klass: str

    @property
    def pci_id(self) -> str:
        """Vendor and device, ``10de:2330``."""
        return f"{self.vendor}:{self.device}"


# --- files that cannot hang
# -------------------------------------------------------------------------------------------


def find_libraries(machine: Machine, soname: str) -> List[str]:
    """Return where a library lies, in the loader's order: LD_LIBRARY_PATH, the cache, the default
    folders, WSL's.

    A cheap look that decides whether a child is worth its fork, and the whole answer for an
    unpacked image. What this process's loader really takes is read from the child's maps.
    """
    paths: List[str] = []
    for folder in machine.environment.get("LD_LIBRARY_PATH", "").replace(";", ":").split(":"):
        if folder.startswith("/"):
            _add_file(machine, f"{folder.rstrip('/')}/{soname}", paths)
    cache = machine.read_bytes("/etc/ld.so.cache", 16 << 20)
    if cache and soname.encode() + b"\0" in cache:  # most machines need no parse
        from .dynamic_loader import parse_cache

        for kind in (62, 183):  # EM_X86_64, EM_AARCH64: an image may be of either
            for path in parse_cache(cache, kind).get(soname, ()):
                _add_file(machine, path, paths)
    for folder in _default_folders():
        _add_file(machine, f"{folder}/{soname}", paths)
    return paths


def _default_folders() -> Iterator[str]:
    architecture = os.uname().machine
    for prefix in ("/lib", "/usr/lib"):
        yield f"{prefix}/{architecture}-linux-gnu"
        yield prefix + "64"
        yield prefix
    yield "/usr/lib/wsl/lib"


def _add_file(machine: Machine, path: str, paths: List[str]) -> None:
    if path not in paths and machine.isfile(path):
        paths.append(path)


def pci_displays(machine: Machine) -> Optional[List[PciDevice]]:
    """Return the display and 3D controllers of NVIDIA, AMD and Intel; None where sysfs shows no PCI
    bus.

    ``/proc/bus/pci/devices`` is one read for all devices and spares hundreds of reads in sysfs
    where no NVIDIA device is.
    """
    listing = machine.read_text("/proc/bus/pci/devices", 4 << 20)
    if listing is not None and not any(
        parse_pci_list(listing, vendor) for vendor in ("10de", "1002")
    ):
        return []
    buses = machine.listdir("/sys/bus/pci/devices")
    if buses is None:
        return None
    displays = []
    for bus in buses[:8192]:
        # "pci:v000010DEd00002330sv…sd…bc03sc02i00"
        alias = machine.read_text(f"/sys/bus/pci/devices/{bus}/modalias", 256) or ""
        match = re.match(
            r"pci:v0000([0-9A-F]{4})d0000([0-9A-F]{4}).*bc([0-9A-F]{2})sc([0-9A-F]{2})", alias
        )
        if match is None:
            continue
        vendor, device, base, sub = (group.lower() for group in match.groups())
        # 03: display controllers; 12: processing accelerators (AMD Instinct).
        if vendor in _VENDORS and base in ("03", "12"):
            displays.append(PciDevice(bus, vendor, device, base + sub))
    return displays


# --- the probe
# --------------------------------------------------------------------------------------------------


class _Answer(NamedTuple):
    """A child's answer, or why there is none."""

    table: Mapping[str, Any]
    failure: Optional[Unknown] = None


class _Children:
    """The children of one probe run: started side by side, waited for once."""

    def __init__(self, machine: Machine) -> None:
        self._deadline = machine.remaining(CHILD_DEADLINE)
        self._children: Dict[str, Child] = {}
        self._refused: Dict[str, Outcome] = {}

    def start(self, name: str, function: Callable[[], bytes]) -> None:
        from .isolation import no_child, start_isolated

        try:
            self._children[name] = start_isolated(function, self._deadline)
        except OSError as error:
            self._refused[name] = no_child(error)

    def wait(self, name: str, title: str) -> _Answer:
        return _answer(
            self._refused.get(name) or self._children.pop(name).wait(self._deadline), title
        )

    def __enter__(self) -> _Children:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children.values():  # only after an exception
            child.wait(0.0)


def _answer(outcome: Outcome, title: str) -> _Answer:
    if outcome.reason:
        return _Answer({}, _failed(title, outcome.reason))
    try:
        return _Answer(json.loads(outcome.text))
    except ValueError:
        return _Answer({}, _failed(title, "its answer was damaged"))


def _failed(what: str, reason: str) -> Unknown:
    """Say that what this probe asked failed, and why."""
    return Unknown(f"{what}: {reason}", "nvidia")


def probe_nvidia(machine: Machine) -> Dict[str, Fact[Any]]:
    """Read driver, devices and cuda-compat."""
    if sys.platform != "linux":
        reason = Unknown(f"no NVIDIA driver is looked for on {sys.platform}")
        return dict.fromkeys(_FIELDS, reason)
    if machine.root:
        return _folder(machine)
    facts: Dict[str, Fact[Any]] = {}
    modules = machine.exists("/sys/module")
    loaded = machine.exists("/sys/module/nvidia")
    nodes = machine.listdir("/dev") or []
    wsl = "dxg" in nodes
    numbered = any(_is_numbered(name) for name in nodes)
    has_nodes = (numbered and "nvidiactl" in nodes) or wsl or "nvhost-gpu" in nodes
    libcuda = find_libraries(machine, "libcuda.so.1")
    libnvml = find_libraries(machine, "libnvidia-ml.so.1")
    facts["driver.nouveau"] = (
        Known(machine.exists("/sys/module/nouveau"), Evidence("/sys/module/nouveau"))
        if modules
        else Unknown("no /sys/module")
    )
    devices = pci_displays(machine)
    facts.update(_others(devices))
    proc = not loaded and machine.exists("/proc/driver/nvidia/version")
    if not (
        loaded
        or proc
        or numbered
        or wsl
        or libcuda
        or libnvml
        or "nvidiactl" in nodes
        or "nvhost-gpu" in nodes
    ):
        facts.update(_nothing(modules, devices))
        return facts
    from .nvidia_calls import init_libcuda, read_libcuda, read_nvml, read_proc

    with _Children(machine) as children:
        children.start("proc", read_proc)
        children.start("nvml", read_nvml)
        children.start("libcuda", read_libcuda)
        children.start("init", lambda: init_libcuda(machine.environment))
        kernel = children.wait("proc", "/proc/driver/nvidia")
        cuda = children.wait("libcuda", "libcuda")
        nvml = children.wait("nvml", "NVML")
        init = children.wait("init", "cuInit")
    smi = _smi(machine, nvml)
    sources = _Sources(machine, kernel, nvml, cuda, init, smi, devices, tuple(nodes))
    facts.update(_kernel_facts(sources, modules, loaded, wsl))
    facts.update(_nvml_facts(sources))
    facts.update(_libcuda_facts(sources, libcuda))
    facts["driver.exposed"] = _exposed(sources, has_nodes)
    facts.update(_gpu_facts(sources))
    facts.update(_fabric(machine))
    facts["pcie.acs_iommu"] = _iommu(machine, facts["gpus"])
    return facts


class _Sources(NamedTuple):
    machine: Machine
    kernel: _Answer
    nvml: _Answer
    cuda: _Answer
    init: _Answer
    smi: _Answer
    devices: Optional[List[PciDevice]]
    nodes: Tuple[str, ...]


def _nothing(modules: bool, devices: Optional[List[PciDevice]]) -> Dict[str, Fact[Any]]:
    """A machine without a trace of the driver: a CPU machine, or one whose driver is missing."""
    if not modules:
        # gVisor shows no /sys/module, and a device may still come through it.
        return dict.fromkeys(
            _NO_DRIVER, Unknown("no /sys/module, no device node and no library of the driver")
        )
    module = Evidence("/sys/module", "no nvidia")
    nodes = Evidence("/dev", "no nvidia device node")
    library = Evidence("the loader's folders", "no libcuda.so.1")
    facts: Dict[str, Fact[Any]] = dict.fromkeys(_NO_DRIVER, Absent(module))
    facts["driver.loaded"] = Known(False, module)
    facts["driver.exposed"] = Known(False, nodes)
    facts["gpus"] = Known((), nodes)
    facts["gpus.expected"] = _expected(devices, ())
    for name in (
        "driver.libcuda_release",
        "driver.libcuda_path",
        "driver.unversioned_libcuda",
        "compat.release",
        "compat.path",
        "compat.cuda_version",
    ):
        facts[name] = Absent(library)
    facts["driver.nvml_error"] = Known(
        "libnvidia-ml.so.1: no such library in the loader's folders",
        Evidence("the loader's folders"),
    )
    return facts


def _kernel_facts(
    sources: _Sources, modules: bool, loaded: bool, wsl: bool
) -> Iterator[Tuple[str, Fact[Any]]]:
    machine, kernel, nvml, smi = sources.machine, sources.kernel, sources.nvml, sources.smi
    sign = _sign_of_driver(sources)
    release = (machine.read_text("/sys/module/nvidia/version", 256) or "").strip()
    fact: Fact[Any]
    if is_release(release):
        fact = Known(release, Evidence("/sys/module/nvidia/version"))
    elif kernel.table.get("release"):
        fact = Known(kernel.table["release"], Evidence("/proc/driver/nvidia/version"))
    elif is_release(nvml.table.get("release")):
        fact = Known(nvml.table["release"], Evidence("NVML", "nvmlSystemGetDriverVersion"))
    elif smi.table.get("release"):
        fact = Known(smi.table["release"], Evidence("nvidia-smi"))
    elif kernel.failure is not None:
        fact = kernel.failure
    elif nvml.failure is not None:
        fact = nvml.failure
    elif sign:
        fact = Unknown(
            f"{sign}, but nothing names the driver's release: "
            f"{nvml.table.get('error') or 'NVML does not name it'}"
        )
    elif modules and not loaded and not wsl:
        fact = Absent(Evidence("/sys/module", "no nvidia"))
    else:
        fact = Unknown("no source names the driver's release")
    yield "driver.release", fact
    if kernel.table.get("flavor"):
        yield (
            "driver.flavor",
            Known(kernel.table["flavor"], Evidence("/proc/driver/nvidia/version")),
        )
    elif isinstance(fact, Absent):
        yield "driver.flavor", fact
    else:
        yield "driver.flavor", kernel.failure or Unknown("no /proc/driver/nvidia/version")
    if loaded:
        yield "driver.loaded", Known(True, Evidence("/sys/module/nvidia"))
    elif kernel.table.get("release"):
        yield "driver.loaded", Known(True, Evidence("/proc/driver/nvidia/version"))
    elif "release" in nvml.table:
        yield "driver.loaded", Known(True, Evidence("NVML", "it answers"))
    elif sign:
        yield "driver.loaded", Unknown(f"{sign}, but /sys/module shows no nvidia")
    elif modules and not wsl:
        yield "driver.loaded", Known(False, Evidence("/sys/module", "no nvidia"))
    else:
        yield "driver.loaded", Unknown("no /sys/module, and NVML does not answer")


def _sign_of_driver(sources: _Sources) -> str:
    """Return what speaks for a driver although /sys/module shows no module "nvidia" (Tegra's has
    another name), or "".

    NVML's word that no driver is loaded counts for more than a library of a package that lies
    around, and cuda-compat is no driver's.
    """
    if sources.init.table.get("code") == 0:
        return "cuInit succeeds"
    if not sources.nvml.table.get("loader"):
        return ""
    if sources.machine.exists("/proc/driver/nvidia"):
        return "there is /proc/driver/nvidia"
    path = sources.cuda.table.get("path")
    return "libcuda.so.1 can be loaded" if path and not is_compat_path(path) else ""


def _nvml_facts(sources: _Sources) -> Iterator[Tuple[str, Fact[Any]]]:
    nvml = sources.nvml
    evidence = Evidence("NVML", "libnvidia-ml.so.1")
    release = nvml.table.get("release")
    if nvml.failure:
        yield "driver.nvml_release", nvml.failure
        yield "driver.nvml_error", nvml.failure
        return
    yield (
        "driver.nvml_release",
        Known(release, evidence)
        if release
        else Unknown(nvml.table.get("error") or "NVML does not name it"),
    )
    error = nvml.table.get("error")
    yield "driver.nvml_error", Known(error, evidence) if error else Absent(evidence)


def _libcuda_facts(sources: _Sources, candidates: Sequence[str]) -> Iterator[Tuple[str, Fact[Any]]]:
    machine, cuda, init = sources.machine, sources.cuda, sources.init
    path = cuda.table.get("path") or None
    how = "the file that the loader mapped"
    if path is None and candidates and (cuda.failure or "path" in cuda.table):
        path, how = machine.realpath(candidates[0]), "first in the loader's folders"
    yield from _compat_facts(sources, path)
    missing = cuda.table.get("error")
    if path is None:
        none: Fact[Any] = cuda.failure or Absent(Evidence("libcuda.so.1", missing or "not loaded"))
        for name in ("driver.libcuda_release", "driver.libcuda_path"):
            yield name, none
        yield "driver.unversioned_libcuda", none
    else:
        evidence = Evidence(path, how)
        yield "driver.libcuda_path", Known(path, evidence)
        release = _LIBCUDA_FILE.fullmatch(path.rpartition("/")[2])
        yield (
            "driver.libcuda_release",
            Known(release.group(1), evidence)
            if release
            else Unknown(f"the file name {path} holds no release"),
        )
        plain = _plain_libcuda(machine)
        yield (
            "driver.unversioned_libcuda",
            Known(
                plain is not None,
                Evidence(plain or "the loader's folders", "" if plain else "no libcuda.so"),
            ),
        )
    shown = machine.environment.get("CUDA_VISIBLE_DEVICES")
    detail = "" if shown is None else f"with CUDA_VISIBLE_DEVICES={shown}"[:200]
    if "code" in init.table:
        yield "driver.init_error", Known(init.table["code"], Evidence("cuInit", detail))
    else:
        yield (
            "driver.init_error",
            init.failure or Unknown(init.table.get("error") or "cuInit gave no code"),
        )


def _plain_libcuda(machine: Machine) -> Optional[str]:
    for folder in machine.environment.get("LIBRARY_PATH", "").split(":"):
        path = f"{folder.rstrip('/')}/libcuda.so"
        if folder.startswith("/") and machine.isfile(path):
            return path
    paths = find_libraries(machine, "libcuda.so")
    return paths[0] if paths else None


def _compat_facts(sources: _Sources, path: Optional[str]) -> Iterator[Tuple[str, Fact[Any]]]:
    cuda, nvml = sources.cuda, sources.nvml
    names = ("compat.release", "compat.path", "compat.cuda_version")
    if path is None or not is_compat_path(path):
        fact: Fact[Any]
        if path is None and cuda.failure:
            fact = cuda.failure
        else:
            fact = Absent(
                Evidence(path or "libcuda.so.1", "the loader takes no cuda-compat library")
            )
        for name in names:
            yield name, fact
        if cuda.table.get("cuda"):
            yield (
                "driver.cuda_version",
                Known(cuda.table["cuda"], Evidence("cuDriverGetVersion", path or "libcuda.so.1")),
            )
        elif nvml.table.get("cuda"):
            yield (
                "driver.cuda_version",
                Known(nvml.table["cuda"], Evidence("NVML", "nvmlSystemGetCudaDriverVersion")),
            )
        else:
            yield (
                "driver.cuda_version",
                cuda.failure
                or Unknown(cuda.table.get("error") or "neither libcuda nor NVML names it"),
            )
        return
    yield from _compat_of(path, cuda.table.get("cuda"), "the file that the loader takes")
    yield "driver.cuda_version", _native_cuda(sources)


def _compat_of(path: str, version: Optional[str], how: str) -> Iterator[Tuple[str, Fact[Any]]]:
    evidence = Evidence(path, how)
    release = _LIBCUDA_FILE.fullmatch(path.rpartition("/")[2])
    folder = _CUDA_FOLDER.search(path)
    version = version or (folder.group(1) if folder else None)
    yield "compat.path", Known(path, evidence)
    yield (
        "compat.release",
        Known(release.group(1), evidence)
        if release
        else Unknown(f"the file name {path} holds no release"),
    )
    yield (
        "compat.cuda_version",
        Known(version, evidence) if version else Unknown(f"{path} names no CUDA version"),
    )


def _native_cuda(sources: _Sources) -> Fact[Any]:
    """Ask the driver's own libcuda, which cuda-compat hides, by the kernel driver's release in its
    file name.
    """
    machine = sources.machine
    release = sources.kernel.table.get("release")
    for folder in _default_folders() if release else ():
        path = f"{folder}/libcuda.so.{release}"
        if machine.isfile(path):
            from functools import partial

            from .isolation import run_isolated
            from .nvidia_calls import read_libcuda

            outcome = run_isolated(partial(read_libcuda, path), machine.remaining(1.0))
            answer = _answer(outcome, path)
            if answer.table.get("cuda"):
                return Known(answer.table["cuda"], Evidence("cuDriverGetVersion", path))
    return Unknown("the loader takes cuda-compat, which hides the driver's own libcuda")


def _exposed(sources: _Sources, has_nodes: bool) -> Fact[Any]:
    cuda = sources.cuda
    evidence = Evidence("/dev and libcuda.so.1", cuda.table.get("error") or "")
    if not has_nodes and not sources.nvml.table.get("gpus"):
        return Known(False, Evidence("/dev", "no nvidia device nodes"))
    if cuda.failure:
        return cuda.failure
    if cuda.table.get("path") or "cuda" in cuda.table:
        return Known(True, evidence)
    return Known(False, evidence)


def _gpu_facts(sources: _Sources) -> Iterator[Tuple[str, Fact[Any]]]:
    machine, nvml, smi = sources.machine, sources.nvml, sources.smi
    mig: List[List[str]] = []
    gpus: Optional[List[Gpu]] = None
    evidence = Evidence("NVML")
    if "gpus" in nvml.table:
        gpus = [
            Gpu(**{name: value for name, value in entry.items() if name != "mig"})
            for entry in nvml.table["gpus"]
        ]
        mig = [entry.get("mig", []) for entry in nvml.table["gpus"]]
    elif "gpus" in smi.table:
        gpus, evidence = [_smi_gpu(entry) for entry in smi.table["gpus"]], Evidence("nvidia-smi")
    elif sources.kernel.table.get("gpus"):
        exposed = [
            entry
            for entry in sources.kernel.table["gpus"]
            if f"nvidia{entry.get('minor')}" in sources.nodes
        ]
        gpus, evidence = (
            [_proc_gpu(entry, sources.devices) for entry in exposed],
            Evidence("/proc/driver/nvidia/gpus", "those with a device node"),
        )
    elif (
        not any(_is_numbered(name) for name in sources.nodes)
        and "dxg" not in sources.nodes
        and "nvhost-gpu" not in sources.nodes
    ):
        gpus, evidence = [], Evidence("/dev", "no nvidia device nodes")
    if gpus is None:
        yield (
            "gpus",
            nvml.failure or Unknown(nvml.table.get("error") or "NVML does not list devices"),
        )
        yield "gpus.expected", _expected(sources.devices, sources.kernel.table.get("gpus") or ())
        return
    shown = _visible(sources, gpus, mig, machine.environment)
    yield (
        "gpus",
        Known(tuple(gpu._replace(visible=visible) for gpu, visible in zip(gpus, shown)), evidence),
    )
    if not gpus:
        yield "gpus.expected", _expected(sources.devices, sources.kernel.table.get("gpus") or ())
    else:
        yield "gpus.expected", Absent(Evidence(evidence.source, "devices are shown"))


def _visible(
    sources: _Sources,
    gpus: Sequence[Gpu],
    mig: Sequence[Sequence[str]],
    environment: Mapping[str, str],
) -> List[Optional[bool]]:
    """CUDA's own answer where cuInit worked, else what the variable says."""
    buses = sources.init.table.get("buses")
    if isinstance(buses, list) and all(gpu.pci_bus for gpu in gpus if not gpu.fault):
        shown = {_short_bus(bus) for bus in buses}
        return [gpu.pci_bus is not None and _short_bus(gpu.pci_bus) in shown for gpu in gpus]
    return visible_by_variable(
        gpus, environment.get("CUDA_VISIBLE_DEVICES"), environment.get("CUDA_DEVICE_ORDER"), mig
    )


def _short_bus(bus: str) -> str:
    """NVML writes the PCI domain with eight digits, CUDA and sysfs with four."""
    domain, _, rest = bus.lower().partition(":")
    return f"{domain.lstrip('0').rjust(4, '0')}:{rest}"


def _proc_gpu(entry: Mapping[str, str], devices: Optional[Iterable[PciDevice]]) -> Gpu:
    bus = entry.get("bus", "").lower()
    device = next((device for device in devices or () if device.bus.lower() == bus), None)
    return Gpu(
        name=entry.get("model"),
        pci_bus=entry.get("bus"),
        uuid=entry.get("uuid"),
        pci_id=device.pci_id if device else None,
    )


def _expected(
    devices: Optional[Iterable[PciDevice]], proc: Iterable[Mapping[str, str]]
) -> Fact[Any]:
    """The GPUs that the host has: model names from the driver, else PCI ids."""
    named = tuple(entry["model"] for entry in proc if entry.get("model"))
    if named:
        return Known(named, Evidence("/proc/driver/nvidia/gpus"))
    if devices is None:
        return Unknown("no PCI bus in sysfs")
    ids = tuple(device.pci_id for device in devices if device.vendor == "10de")
    evidence = Evidence("/sys/bus/pci/devices")
    return Known(ids, evidence) if ids else Absent(evidence)


def _others(devices: Optional[Iterable[PciDevice]]) -> Iterator[Tuple[str, Fact[Any]]]:
    if devices is None:
        yield "gpus.other", Unknown("no PCI bus in sysfs")
        return
    # Intel's and AMD's small display controllers are no accelerators: 3D controllers (0302, 0380)
    # and 12xx are.
    others = tuple(
        f"{_VENDORS[device.vendor]} {device.pci_id}"
        for device in devices
        if device.vendor != "10de" and device.klass != "0300"
    )
    evidence = Evidence("/sys/bus/pci/devices")
    yield "gpus.other", Known(others, evidence) if others else Absent(evidence)


# --- nvidia-smi, the last source
# --------------------------------------------------------------------------------------

_SMI_NAMES = (
    "driver_version",
    "name",
    "pci.bus_id",
    "pci.device_id",
    "uuid",
    "memory.total",
    "memory.used",
    "mig.mode.current",
    "ecc.mode.current",
    "persistence_mode",
    "compute_cap",
)


def _smi(machine: Machine, nvml: _Answer) -> _Answer:
    """Run nvidia-smi where this process could not load NVML (another C library, no binding); else
    it knows no more.
    """
    command = _on_path(machine, "nvidia-smi") if nvml.table.get("loader") else None
    if command is None:
        return _Answer({})
    from .isolation import run_command

    # compute_cap is not known before R510 and fails the whole query.
    for names in (_SMI_NAMES, _SMI_NAMES[:-1]):
        query = [command, "--query-gpu=" + ",".join(names), "--format=csv,noheader,nounits"]
        outcome = run_command(query, machine.remaining(_SMI_DEADLINE), limit=1 << 20)
        if outcome.reason:
            return _Answer({}, _failed("nvidia-smi", outcome.reason))
        rows = parse_smi_gpus(outcome.text, names)
        if outcome.status == 0 and rows:
            return _Answer({"release": rows[0].get("driver_version"), "gpus": rows})
    return _Answer({})


def _on_path(machine: Machine, name: str) -> Optional[str]:
    for folder in [*machine.environment.get("PATH", "").split(":"), "/usr/bin", "/usr/lib/wsl/lib"]:
        path = f"{folder.rstrip('/')}/{name}"
        if (
            folder.startswith("/")
            and machine.isfile(path)
            and os.access(machine.path(path), os.X_OK)
        ):
            return path
    return None


def _smi_gpu(row: Mapping[str, str]) -> Gpu:
    device = row.get("pci.device_id", "")
    known = re.fullmatch(r"0x([0-9A-Fa-f]{4})([0-9A-Fa-f]{4})", device)
    capability = row.get("compute_cap", "")
    return Gpu(
        name=row.get("name"),
        pci_id=f"{known.group(2)}:{known.group(1)}".lower() if known else None,
        pci_bus=row.get("pci.bus_id"),
        uuid=row.get("uuid"),
        compute_capability=capability if re.fullmatch(r"[0-9]{1,2}\.[0-9]", capability) else None,
        memory_total=_mebibytes(row.get("memory.total")),
        memory_used=_mebibytes(row.get("memory.used")),
        mig_mode=_enabled(row.get("mig.mode.current")),
        ecc_mode=_enabled(row.get("ecc.mode.current")),
        persistence_mode=_enabled(row.get("persistence_mode")),
    )


def _mebibytes(text: Optional[str]) -> Optional[int]:
    return (
        int(text) << 20 if text and text.isascii() and text.isdigit() and len(text) < 12 else None
    )


def _enabled(text: Optional[str]) -> Optional[bool]:
    return {"Enabled": True, "Disabled": False}.get(text or "")


# --- fabric manager, IOMMU, folders
# -----------------------------------------------------------------------------------


def _fabric(machine: Machine) -> Iterator[Tuple[str, Fact[Any]]]:
    """Fabric manager belongs to the host: from a container its absence tells nothing."""
    own = machine.readlink("/proc/self/ns/pid") == _INIT_PID_NAMESPACE
    path = next(
        (
            path
            for path in ("/usr/bin/nv-fabricmanager", "/usr/sbin/nv-fabricmanager")
            if machine.isfile(path)
        ),
        None,
    )
    if path is None:
        fact: Fact[Any] = (
            Absent(Evidence("/usr/bin/nv-fabricmanager"))
            if own
            else Unknown("in a container, where the host's services do not show")
        )
        yield "driver.fabric_manager", fact
        yield (
            "driver.fabric_manager_running",
            Known(False, Evidence("/usr/bin/nv-fabricmanager", "not installed")) if own else fact,
        )
        return
    from .isolation import run_command

    outcome = run_command(
        [path, "--version"], machine.remaining(_FABRIC_DEADLINE), limit=65536, stderr=True
    )
    release = None if outcome.reason else parse_fabric_version(outcome.text)
    if release:
        yield "driver.fabric_manager", Known(release, Evidence(f"{path} --version"))
    else:
        yield (
            "driver.fabric_manager",
            _failed(path, outcome.reason or "it names no release"),
        )
    if not own:
        yield (
            "driver.fabric_manager_running",
            Unknown("in a container, where the host's processes do not show"),
        )
        return
    for pid in machine.listdir("/proc") or []:
        # comm holds 15 characters.
        if (
            pid.isdigit()
            and (machine.read_text(f"/proc/{pid}/comm", 64) or "").strip()
            == "nv-fabricmanager"[:15]
        ):
            yield "driver.fabric_manager_running", Known(True, Evidence(f"/proc/{pid}"))
            return
    yield (
        "driver.fabric_manager_running",
        Known(False, Evidence("/proc", "no process nv-fabricmanager")),
    )


def _iommu(machine: Machine, gpus: Fact[Any]) -> Fact[Any]:
    """Tell whether the IOMMU translates the GPUs' addresses, which redirects peer traffic through
    the root complex.
    """
    buses = [gpu.pci_bus for gpu in gpus.value if gpu.pci_bus] if isinstance(gpus, Known) else []
    kinds = set()
    for bus in buses:
        path = f"/sys/bus/pci/devices/{_short_bus(bus)}"
        if not machine.exists(path):
            return Unknown("the devices do not show in sysfs")
        kind = (machine.read_text(f"{path}/iommu_group/type", 64) or "").strip()
        kinds.add(kind)
    if not kinds:
        return Unknown("no devices are listed")
    evidence = Evidence(
        "/sys/bus/pci/devices/*/iommu_group/type",
        ", ".join(sorted(kind or "none" for kind in kinds)),
    )
    if any(kind.startswith("DMA") for kind in kinds):
        return Known(True, evidence)
    # Without an IOMMU, or with identity mapping, ACS of a PCIe switch could still redirect: that
    # needs config space.
    return Unknown("the IOMMU does not translate; ACS of the switches is not read")


def _is_numbered(name: str) -> bool:
    """Tell whether this is the node of one device (/dev/nvidia0)."""
    return name.startswith("nvidia") and name[6:].isdecimal() and name.isascii()


def _folder(machine: Machine) -> Dict[str, Fact[Any]]:
    """An unpacked image: nothing of the host counts, but a cuda-compat library that its loader
    would take does.
    """
    facts: Dict[str, Fact[Any]] = dict.fromkeys(_FIELDS, Unknown(FOLDER_ONLY))
    paths = find_libraries(machine, "libcuda.so.1")
    path = machine.realpath(paths[0]) if paths else None
    if path is not None and is_compat_path(path):
        facts.update(_compat_of(path, None, "first in the loader's folders"))
    elif machine.exists("/etc/ld.so.cache"):
        evidence = Evidence("/etc/ld.so.cache", "the loader takes no cuda-compat library")
        facts.update(
            dict.fromkeys(
                ("compat.release", "compat.path", "compat.cuda_version"), Absent(evidence)
            )
        )
    return facts


_NO_DRIVER = (
    "driver.release",
    "driver.flavor",
    "driver.nvml_release",
    "driver.nvml_error",
    "driver.libcuda_release",
    "driver.libcuda_path",
    "driver.cuda_version",
    "driver.init_error",
    "driver.loaded",
    "driver.exposed",
    "driver.unversioned_libcuda",
    "driver.fabric_manager",
    "compat.release",
    "compat.path",
    "compat.cuda_version",
    "gpus",
    "gpus.expected",
)
_FIELDS = (
    *_NO_DRIVER,
    "driver.nouveau",
    "driver.fabric_manager_running",
    "gpus.other",
    "pcie.acs_iommu",
)

PROBES_HERE: Tuple[Probe, ...] = (Probe("nvidia", probe_nvidia, _FIELDS, False, 5.0),)
