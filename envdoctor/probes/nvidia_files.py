"""What files that cannot hang show of NVIDIA's devices and libraries; the driver is not asked."""

from __future__ import annotations

import os

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from ..model.pattern import pattern
from ..model.record import NamedTuple
from .nvidia_text import parse_pci_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, List, Optional, Sequence, Tuple

    from .machine import Machine

__all__ = [
    "COMPAT_FIELDS",
    "PciDevice",
    "Traces",
    "compat_facts",
    "default_folders",
    "expected_gpus",
    "find_libraries",
    "other_gpus",
    "pci_displays",
    "read_traces",
    "release_in_name",
]

COMPAT_FIELDS = ("compat.release", "compat.path", "compat.cuda_version")

_LIBCUDA_FILE = pattern(r"(?a)libcuda\.so\.(\d{3,4}\.\d{1,4}(?:\.\d{1,4})?)")
_CUDA_FOLDER = pattern(r"(?a)/cuda-(\d{1,2}\.\d{1,2})(?:/|$)")
_VENDORS = {"10de": "NVIDIA", "1002": "AMD", "8086": "Intel"}
# As of "pci:v000010DEd00002330sv…sd…bc03sc02i00".
_MODALIAS = pattern(r"pci:v0000([0-9A-F]{4})d0000([0-9A-F]{4}).*bc([0-9A-F]{2})sc([0-9A-F]{2})")


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


class Traces(NamedTuple):
    """What speaks for a driver before it is asked."""

    modules: bool  # there is a /sys/module
    loaded: bool  # with nvidia in it
    proc: bool  # /proc/driver/nvidia/version
    nodes: Tuple[str, ...]  # the names in /dev
    libcuda: Tuple[str, ...]
    libnvml: Tuple[str, ...]
    devices: Optional[Tuple[PciDevice, ...]]  # None: no PCI bus shows

    @property
    def wsl(self) -> bool:
        """Whether the driver is that of Windows, whose module does not show."""
        return "dxg" in self.nodes

    @property
    def module_is_absent(self) -> bool:
        """Whether it is certain that no kernel module called nvidia is loaded."""
        return self.modules and not self.loaded and not self.wsl

    @property
    def _numbered(self) -> bool:
        """Whether there is the node of a device (/dev/nvidia0)."""
        return any(
            name.startswith("nvidia") and name[6:].isdecimal() and name.isascii()
            for name in self.nodes
        )

    @property
    def has_device(self) -> bool:
        """Whether a device may answer: a discrete one, WSL's or Tegra's."""
        return self._numbered or self.wsl or "nvhost-gpu" in self.nodes

    @property
    def has_usable_device(self) -> bool:
        """Whether all nodes that CUDA opens are there."""
        control = "nvidiactl" in self.nodes
        return (self._numbered and control) or self.wsl or "nvhost-gpu" in self.nodes

    @property
    def has_driver(self) -> bool:
        """Whether anything at all speaks for a driver, so that it is worth asking."""
        return bool(
            self.loaded
            or self.proc
            or self.has_device
            or "nvidiactl" in self.nodes
            or self.libcuda
            or self.libnvml
        )


def read_traces(machine: Machine) -> Traces:
    """Look for kernel module, device nodes, libraries and PCI devices."""
    return Traces(
        machine.exists("/sys/module"),
        machine.exists("/sys/module/nvidia"),
        machine.exists("/proc/driver/nvidia/version"),
        tuple(machine.listdir("/dev") or ()),
        tuple(find_libraries(machine, "libcuda.so.1")),
        tuple(find_libraries(machine, "libnvidia-ml.so.1")),
        pci_displays(machine),
    )


def find_libraries(machine: Machine, soname: str) -> List[str]:
    """Return where a library lies, in the loader's order, WSL's folder last.

    A cheap look that decides whether a child is worth its fork, and the whole answer for an
    unpacked image. What this process's loader really takes is read from the child's maps.
    """
    paths = dict.fromkeys(_library_paths(machine, soname))
    return [path for path in paths if machine.isfile(path)]


def _library_paths(machine: Machine, soname: str) -> Iterator[str]:
    for folder in machine.environment.get("LD_LIBRARY_PATH", "").replace(";", ":").split(":"):
        if folder.startswith("/"):
            yield f"{folder.rstrip('/')}/{soname}"
    cache = machine.read_bytes("/etc/ld.so.cache", 16 << 20)
    if cache and soname.encode() + b"\0" in cache:  # most machines need no parse
        from .dynamic_loader import parse_cache

        for kind in (62, 183):  # EM_X86_64, EM_AARCH64: an image may be of either
            yield from parse_cache(cache, kind).get(soname, ())
    for folder in default_folders():
        yield f"{folder}/{soname}"


def default_folders() -> Iterator[str]:
    """Yield the folders in which drivers put their libraries."""
    architecture = os.uname().machine
    for prefix in ("/lib", "/usr/lib"):
        yield f"{prefix}/{architecture}-linux-gnu"
        yield prefix + "64"
        yield prefix
    yield "/usr/lib/wsl/lib"


def pci_displays(machine: Machine) -> Optional[Tuple[PciDevice, ...]]:
    """Return the displays and 3D controllers of the three vendors; None where no PCI bus shows.

    ``/proc/bus/pci/devices`` is one read for all devices and spares hundreds of reads in sysfs
    where no NVIDIA or AMD device is.
    """
    text = machine.read_text("/proc/bus/pci/devices", 4 << 20)
    if text is not None and not any(parse_pci_list(text, vendor) for vendor in ("10de", "1002")):
        return ()
    buses = machine.listdir("/sys/bus/pci/devices")
    if buses is None:
        return None
    devices = [_display(machine, bus) for bus in buses[:8192]]
    return tuple([device for device in devices if device is not None])


def _display(machine: Machine, bus: str) -> Optional[PciDevice]:
    alias = machine.read_text(f"/sys/bus/pci/devices/{bus}/modalias", 256) or ""
    match = _MODALIAS.match(alias)
    if match is None:
        return None
    vendor, device, base, sub = (group.lower() for group in match.groups())
    # 03: display controllers; 12: processing accelerators (AMD Instinct).
    if vendor not in _VENDORS or base not in ("03", "12"):
        return None
    return PciDevice(bus, vendor, device, base + sub)


def expected_gpus(devices: Optional[Sequence[PciDevice]], models: Sequence[str] = ()) -> Fact[Any]:
    """The GPUs that the host has: the driver's model names, else PCI ids."""
    if models:
        return Known(tuple(models), Evidence("/proc/driver/nvidia/gpus"))
    if devices is None:
        return Unknown("no PCI bus in sysfs")
    ids = tuple([device.pci_id for device in devices if device.vendor == "10de"])
    evidence = Evidence("/sys/bus/pci/devices")
    return Known(ids, evidence) if ids else Absent(evidence)


def other_gpus(devices: Optional[Sequence[PciDevice]]) -> Fact[Any]:
    """The accelerators of other vendors."""
    if devices is None:
        return Unknown("no PCI bus in sysfs")
    # Intel's and AMD's small display controllers are no accelerators: 3D controllers (0302, 0380)
    # and 12xx are.
    names = tuple(
        [
            f"{_VENDORS[device.vendor]} {device.pci_id}"
            for device in devices
            if device.vendor != "10de" and device.klass != "0300"
        ]
    )
    evidence = Evidence("/sys/bus/pci/devices")
    return Known(names, evidence) if names else Absent(evidence)


def release_in_name(path: str, evidence: Evidence) -> Fact[Any]:
    """The driver release in libcuda's file name."""
    match = _LIBCUDA_FILE.fullmatch(path.rpartition("/")[2])
    if match is None:
        return Unknown(f"the file name {path} contains no driver release")
    return Known(match.group(1), evidence)


def compat_facts(path: str, version: Optional[str], how: str) -> Iterator[Tuple[str, Fact[Any]]]:
    """Yield what is known of a cuda-compat library; ``how`` says how it came to be chosen."""
    evidence = Evidence(path, how)
    folder = _CUDA_FOLDER.search(path)
    version = version or (folder.group(1) if folder else None)
    yield "compat.path", Known(path, evidence)
    yield "compat.release", release_in_name(path, evidence)
    if version:
        yield "compat.cuda_version", Known(version, evidence)
    else:
        yield "compat.cuda_version", Unknown(f"{path} names no CUDA version")
