"""The operating system: name, kernel, architecture, C library, and whether it runs in another."""

from __future__ import annotations

import os
import sys

from ..model.evidence import ROOT, Absent, Evidence, Fact, Known, Unknown
from ..model.pattern import pattern
from .machine import FOLDER_ONLY, Machine, Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, Optional, Tuple

__all__ = ["PROBES_HERE", "parse_elf_machine", "parse_glibc", "parse_os_release", "probe_system"]

# System V ABI, e_machine. 64-bit little-endian only: nothing else runs these stacks.
_MACHINES = {62: "x86_64", 183: "aarch64", 21: "ppc64le", 243: "riscv64", 22: "s390x"}
_BANNER = pattern(rb"GNU C Library [^\0]{0,100}?release version (\d{1,2}\.\d{1,3})")
_FILE_VERSION = pattern(r"(?a)libc-(\d{1,2}\.\d{1,3})\.so")
_GVISOR = (
    "#1 SMP Sun Jan 10 15:06:54 PST 2016"  # the fixed text of gVisor's uname and /proc/version
)

_LIBC_FOLDERS = (
    "/lib/{0}-linux-gnu",
    "/usr/lib/{0}-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)


def parse_os_release(text: str) -> Optional[str]:
    """Return PRETTY_NAME, or NAME and VERSION, of an os-release file."""
    table: Dict[str, str] = {}
    for line in text[:65536].splitlines():
        key, present, value = line.partition("=")
        if present and key.isidentifier():
            table[key] = value.strip().strip("\"'").replace("\\", "")[:200]
    return (
        table.get("PRETTY_NAME")
        or f"{table.get('NAME', '')} {table.get('VERSION_ID', '')}".strip()
        or None
    )


def parse_glibc(content: bytes) -> Optional[str]:
    """Return ``2.35`` from the banner inside libc.so.6."""
    match = _BANNER.search(content)
    return match.group(1).decode() if match else None


def parse_elf_machine(content: bytes) -> Optional[str]:
    """Return the architecture of an ELF file from its first 20 bytes."""
    if content[:4] != b"\x7fELF" or len(content) < 20:
        return None
    order = "big" if content[5] == 2 else "little"
    return _MACHINES.get(int.from_bytes(content[18:20], order))  # type: ignore[arg-type]


def probe_system(machine: Machine) -> Dict[str, Fact[Any]]:
    """Read what the operating system says of itself."""
    return dict(_folder(machine) if machine.root else _own(machine))


def _own(machine: Machine) -> Iterator[Tuple[str, Fact[Any]]]:
    names = os.uname()
    uname = Evidence("uname")
    yield "node.name", Known(machine.environment.get("SLURMD_NODENAME") or names.nodename, uname)
    yield "os.platform", Known(sys.platform, Evidence("sys.platform"))
    yield "os.kernel", Known(names.release, uname)
    yield "os.architecture", Known("x86_64" if names.machine == "amd64" else names.machine, uname)
    yield "os.name", _name(machine, f"{names.sysname} {names.release}")
    yield "os.wsl", Known("microsoft" in names.release.lower(), uname)
    yield "os.sandbox", _sandbox(machine, names.version)
    yield "glibc.version", _own_glibc(machine)


def _name(machine: Machine, fallback: str) -> Fact[Any]:
    if sys.platform == "darwin" and not machine.root:
        return Known(fallback.replace("Darwin", "macOS (Darwin)"), Evidence("uname"))
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        text = machine.read_text(path, 65536)
        name = parse_os_release(text) if text is not None else None
        if name:
            return Known(name, Evidence(path))
    return Known(fallback, Evidence("uname")) if fallback else Unknown("no os-release file")


def _own_glibc(machine: Machine) -> Fact[Any]:
    if sys.platform != "linux":
        return Absent(Evidence("sys.platform", f"{sys.platform} has no glibc"))
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError, AttributeError):
        # This interpreter runs on another C library (musl); the target's may still be glibc.
        return _file_glibc(machine, os.uname().machine)
    name, _, version = (text or "").partition(" ")
    numbers = version.split(".")[:2]
    if name == "glibc" and len(numbers) == 2 and all(number.isdecimal() for number in numbers):
        return Known(".".join(numbers), Evidence("confstr", text or ""))
    return _file_glibc(machine, os.uname().machine)


def _file_glibc(machine: Machine, architecture: str) -> Fact[Any]:
    for folder in _LIBC_FOLDERS:
        path = folder.format(architecture) + "/libc.so.6"
        content = machine.read_bytes(path, 8 << 20)
        if content is None:
            continue
        version = parse_glibc(content)
        if version:
            return Known(version, Evidence(path))
        named = _FILE_VERSION.fullmatch(machine.realpath(path).rpartition("/")[2])
        return (
            Known(named.group(1), Evidence(path)) if named else Unknown(f"{path} names no version")
        )
    for folder in ("/lib", "/usr/lib"):
        for name in machine.listdir(folder) or ():
            if name.startswith(("ld-musl-", "libc.musl-")):
                return Absent(Evidence(f"{folder}/{name}", "musl"))
    return Unknown("no libc.so.6 in the usual folders")


def _sandbox(machine: Machine, version: str) -> Fact[Any]:
    if version == _GVISOR:
        return Known("gvisor", Evidence("uname -v"))
    command = machine.read_text("/proc/cmdline", 4096) or ""
    vendor = (machine.read_text("/sys/class/dmi/id/sys_vendor", 256) or "").strip()
    if not vendor and "virtio_mmio.device=" in command and "pci=off" in command:
        return Known("firecracker", Evidence("/proc/cmdline"))
    kind = (machine.read_text("/sys/hypervisor/type", 64) or "").strip()
    if kind:
        return Known(kind, Evidence("/sys/hypervisor/type"))
    return _hypervisor_of(machine, vendor)


def _hypervisor_of(machine: Machine, vendor: str) -> Fact[Any]:
    # Bare-metal instances of the clouds carry the same vendor: only the CPU flag tells a guest.
    is_guest = _is_guest(machine)
    for word, name in _VENDORS:
        if vendor.startswith(word):
            evidence = Evidence("/sys/class/dmi/id/sys_vendor", vendor)
            return Known(name, evidence) if is_guest else Absent(evidence)
    if is_guest:
        return Unknown("a virtual machine whose hypervisor does not name itself")
    return Absent(Evidence("/proc/cpuinfo", "no hypervisor flag"))


#: Hypervisors by the start of the system vendor in the firmware's tables.
_VENDORS = (
    ("QEMU", "kvm"),
    ("Amazon EC2", "kvm"),
    ("Google", "kvm"),
    ("Alibaba", "kvm"),
    ("VMware", "vmware"),
    ("Microsoft", "hyper-v"),
)


def _is_guest(machine: Machine) -> bool:
    text = machine.read_text("/proc/cpuinfo", 8192) or ""
    return any(line.startswith("flags") and " hypervisor" in line for line in text.splitlines())


def _folder(machine: Machine) -> Iterator[Tuple[str, Fact[Any]]]:
    """An unpacked image: what its files say; kernel and node belong to where it will run."""
    yield "os.kernel", Unknown(FOLDER_ONLY)
    yield "os.wsl", Unknown(FOLDER_ONLY)
    yield "os.sandbox", Unknown(FOLDER_ONLY)
    yield "node.name", Known(machine.root, Evidence(ROOT))
    yield "os.name", _name(machine, "")
    architecture = _folder_architecture(machine)
    if architecture is None:
        yield "os.architecture", Unknown("no ELF file in the usual folders")
        yield "os.platform", Unknown("no ELF file in the usual folders")
        yield "glibc.version", Unknown("the folder's architecture is not known")
        return
    name, path = architecture
    yield "os.architecture", Known(name, Evidence(path))
    yield "os.platform", Known("linux", Evidence(path))
    yield "glibc.version", _file_glibc(machine, name)


def _folder_architecture(machine: Machine) -> Optional[Tuple[str, str]]:
    for path in (
        "/bin/sh",
        "/usr/bin/env",
        "/bin/busybox",
        "/usr/bin/python3",
        "/lib64/ld-linux-x86-64.so.2",
        "/lib/ld-linux-aarch64.so.1",
        "/usr/bin/ldd",
    ):
        content = machine.read_bytes(path, 64)
        name = parse_elf_machine(content) if content else None
        if name:
            return name, path
    return None


PROBES_HERE: Tuple[Probe, ...] = (
    Probe(
        "system",
        probe_system,
        (
            "node.name",
            "os.platform",
            "os.name",
            "os.kernel",
            "os.architecture",
            "os.wsl",
            "os.sandbox",
            "glibc.version",
        ),
        False,
        2.0,
    ),
)
