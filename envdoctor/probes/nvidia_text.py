"""Text of the NVIDIA driver's files and tools: parsers, and what CUDA_VISIBLE_DEVICES means.

Pure; they take any text.
"""

from __future__ import annotations

from ..model.facts import Gpu
from ..model.pattern import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Sequence, Tuple

__all__ = [
    "cuda_text",
    "is_compat_path",
    "is_release",
    "parse_fabric_version",
    "parse_gpu_information",
    "parse_kernel_version",
    "parse_maps",
    "parse_pci_list",
    "parse_smi_gpus",
    "visible_by_variable",
]

_RELEASE = pattern(r"(?a)(?<![\w.])\d{3,4}\.\d{1,4}(?:\.\d{1,4})?(?![\w.])")
_COMPAT = pattern(r"/(?:cuda-)?compat(?:/|$)")


def parse_kernel_version(text: str) -> Tuple[Optional[str], Optional[str]]:
    """Return release and flavor (open, proprietary) from ``/proc/driver/nvidia/version``."""
    for line in text[:4096].splitlines():
        if line.startswith("NVRM version:"):
            match = _RELEASE.search(line)
            if match is None:
                return None, None
            return match.group(0), "open" if "Open Kernel Module" in line else "proprietary"
    return None, None


def parse_gpu_information(text: str) -> Dict[str, str]:
    """Return model, uuid, bus and minor from a GPU's ``information`` file; ``??`` is nothing."""
    keys = {"Model": "model", "GPU UUID": "uuid", "Bus Location": "bus", "Device Minor": "minor"}
    values: Dict[str, str] = {}
    for line in text[:65536].splitlines():
        key, colon, value = line.partition(":")
        name = keys.get(key.strip())
        value = value.strip()[:200]
        if colon and name and value and "?" not in value:
            values[name] = value
    return values


def parse_maps(text: str, stem: str) -> Optional[str]:
    """Return the file in ``/proc/self/maps`` whose name begins with ``stem`` (``libcuda.so``)."""
    for line in text.splitlines():
        path = line[line.find("/") :] if "/" in line else ""
        if path.rpartition("/")[2].startswith(stem):
            return path[:-10] if path.endswith(" (deleted)") else path
    return None


def parse_pci_list(text: str, vendor: str) -> bool:
    """Tell whether ``/proc/bus/pci/devices`` lists a device of a vendor (``10de``).

    It holds no class.
    """
    for line in text.splitlines():
        fields = line.split(None, 2)
        if len(fields) > 1 and fields[1].startswith(vendor):
            return True
    return False


def parse_smi_gpus(text: str, names: Sequence[str]) -> List[Dict[str, str]]:
    """Return one mapping per line of ``nvidia-smi --query-gpu=… --format=csv,noheader,nounits``.

    Values that nvidia-smi has not (``[N/A]``, ``[Not Supported]``, ``[Unknown Error]``) are left
    out; lines with another number of values are no devices (messages, warnings).
    """
    rows: List[Dict[str, str]] = []
    for line in text.splitlines()[:1024]:
        values = [value.strip() for value in line[:4096].split(",")]
        if len(values) == len(names):
            rows.append(
                {
                    name: value
                    for name, value in zip(names, values)
                    if value and not value.startswith("[") and value != "N/A"
                }
            )
    return rows


def parse_fabric_version(text: str) -> Optional[str]:
    """Return the release in the output of ``nv-fabricmanager --version``."""
    match = _RELEASE.search(text[:4096])
    return match.group(0) if match else None


def cuda_text(number: int) -> Optional[str]:
    """Return ``12.4`` for the ``12040`` of cuDriverGetVersion and NVML; None for 0 (no driver)."""
    return f"{number // 1000}.{number % 1000 // 10}" if number >= 1000 else None


def is_compat_path(path: str) -> bool:
    """Tell whether a path is in a cuda-compat package (``/usr/local/cuda-12.4/compat/…``)."""
    return _COMPAT.search(path.rpartition("/")[0] + "/") is not None


def visible_by_variable(
    gpus: Sequence[Gpu],
    value: Optional[str],
    order: Optional[str] = None,
    mig: Sequence[Sequence[str]] = (),
) -> List[Optional[bool]]:
    """Return which devices ``CUDA_VISIBLE_DEVICES`` leaves visible, in PCI order as ``gpus`` is.

    As the CUDA C++ programming guide says: entries are indices or abbreviated UUIDs, an invalid
    entry hides itself and all that follow, an empty value hides all. None where it cannot be told:
    indices into devices of different models count by speed unless ``CUDA_DEVICE_ORDER=PCI_BUS_ID``,
    and no document says what a repeated device does.

    Args:
        gpus: The devices.
        value: The variable; None where it is not set.
        order: ``CUDA_DEVICE_ORDER``.
        mig: UUIDs of each device's MIG instances.
    """
    if value is None:
        return [True] * len(gpus)
    unclear: List[Optional[bool]] = [None] * len(gpus)
    shown: List[int] = []
    by_index = False
    for entry in map(str.strip, value.split(",")):
        position = _device_of(entry, gpus, mig)
        if position is None:
            break
        by_index = by_index or entry.isdigit()
        if position in shown and not entry.startswith("MIG-"):
            return unclear
        shown.append(position)
    in_pci_order = order == "PCI_BUS_ID" or len({gpu.name for gpu in gpus}) <= 1
    if by_index and not in_pci_order and len(set(shown)) < len(gpus):
        return unclear
    return [position in shown for position in range(len(gpus))]


def _device_of(entry: str, gpus: Sequence[Gpu], mig: Sequence[Sequence[str]]) -> Optional[int]:
    """The position of the device that one entry of the variable names."""
    if entry.isascii() and entry.isdigit():
        return int(entry) if len(entry) < 6 and int(entry) < len(gpus) else None
    if entry.startswith("MIG-GPU-"):
        # Before R470: MIG-<GPU UUID>/<GPU instance>/<compute instance>.
        entry = entry[4:].partition("/")[0]
    if entry.startswith("MIG-"):
        return next(iter(_positions(entry, mig)), None)
    if not entry.startswith("GPU-"):
        return None
    matches = _positions(entry, [[gpu.uuid or ""] for gpu in gpus])
    return matches[0] if len(matches) == 1 else None


def _positions(start: str, uuids: Sequence[Sequence[str]]) -> List[int]:
    return [
        position
        for position, several in enumerate(uuids)
        if any(uuid.startswith(start) for uuid in several)
    ]


def is_release(text: Any) -> bool:
    """Tell whether a text is a driver release (``570.86.15``) and nothing else."""
    return isinstance(text, str) and _RELEASE.fullmatch(text) is not None
