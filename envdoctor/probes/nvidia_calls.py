"""What the NVIDIA probe asks of the driver.

Every function here runs in a child: it may crash or hang, and returns JSON.
"""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Tuple

from .machine import Machine
from .nvidia_text import cuda_text, parse_gpu_information, parse_kernel_version, parse_maps

__all__ = ["init_libcuda", "read_libcuda", "read_nvml", "read_proc"]

# docs.nvidia.com/deploy/nvml-api: nvmlGpuFabricState_t and nvmlReturn_t; nvidia-ml-py names some
# only in its newest releases.
_FABRIC_STATES = {0: "not supported", 1: "not started", 2: "in progress", 3: "completed"}
_GONE = {15: "GPU is lost", 16: "GPU requires reset"}


def read_proc() -> bytes:
    """Read ``/proc/driver/nvidia``: with a lost GPU these files can hang."""
    machine = Machine()
    release, flavor = parse_kernel_version(
        machine.read_text("/proc/driver/nvidia/version", 4096) or ""
    )
    folder = "/proc/driver/nvidia/gpus"
    gpus = [
        {
            "bus": bus,
            **parse_gpu_information(machine.read_text(f"{folder}/{bus}/information", 65536) or ""),
        }
        for bus in (machine.listdir(folder) or [])[:1024]
    ]
    return json.dumps({"release": release, "flavor": flavor, "gpus": gpus}).encode()


def _mapped(stem: str) -> Optional[str]:
    content = Machine().read_text("/proc/self/maps", 64 << 20)
    return parse_maps(content, stem) if content else None


def read_libcuda(name: str = "libcuda.so.1") -> bytes:
    """Load libcuda and ask its version, which needs no device; or give the loader's text."""
    import ctypes

    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        return json.dumps({"error": str(error)[:1000]}).encode()
    answer: Dict[str, Any] = {"path": _mapped("libcuda.so")}
    number = ctypes.c_int(0)
    try:
        code = library.cuDriverGetVersion(ctypes.byref(number))
    except AttributeError as error:
        return json.dumps({**answer, "error": str(error)[:1000]}).encode()
    answer["cuda"] = cuda_text(number.value) if code == 0 else None
    return json.dumps(answer).encode()


def init_libcuda(environment: Mapping[str, str]) -> bytes:
    """Call cuInit, which finds 802, 803 and 804, and list the devices that it shows.

    No context is created.
    """
    import ctypes

    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        os.environ.pop(name, None)
        if name in environment:
            os.environ[name] = environment[name]
    try:
        library = ctypes.CDLL("libcuda.so.1")
        code = int(library.cuInit(0))
    except (OSError, AttributeError) as error:
        return json.dumps({"error": str(error)[:1000]}).encode()
    answer: Dict[str, Any] = {"code": code}
    count = ctypes.c_int(0)
    if code == 0 and library.cuDeviceGetCount(ctypes.byref(count)) == 0:
        answer["buses"] = []
        for position in range(min(count.value, 1024)):
            text = ctypes.create_string_buffer(64)
            device = ctypes.c_int(0)
            if library.cuDeviceGet(ctypes.byref(device), position) or library.cuDeviceGetPCIBusId(
                text, 64, device
            ):
                answer.pop("buses")
                break
            answer["buses"].append(text.value.decode("ascii", "replace"))
    return json.dumps(answer).encode()


def read_nvml(detailed: bool = True) -> bytes:
    """Ask NVML for everything; each field is optional: old drivers and small devices lack some.

    detailed: also what only tells nodes apart, such as the state of each NVLink.
    """
    import ctypes

    # nvidia-ml-py calls every failure of the loader "library not found": keep the loader's own
    # words.
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        return json.dumps({"error": str(error)[:1000], "loader": True}).encode()
    try:
        import pynvml as nvml  # type: ignore[import-untyped]
    except ImportError as error:
        return json.dumps(
            {
                "error": f"NVIDIA's binding (nvidia-ml-py) cannot be imported: {error}"[:1000],
                "loader": True,
            }
        ).encode()
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return json.dumps({"error": _nvml_text(nvml, error)}).encode()
    answer: Dict[str, Any] = {
        "release": _ask(nvml, "nvmlSystemGetDriverVersion"),
        "cuda": cuda_text(
            _ask(nvml, "nvmlSystemGetCudaDriverVersion_v2")
            or _ask(nvml, "nvmlSystemGetCudaDriverVersion")
            or 0
        ),
    }
    count = _ask(nvml, "nvmlDeviceGetCount")
    if count is None:
        answer["error"] = "NVML cannot count devices"
    else:
        positions = range(min(count, 1024))
        answer["gpus"] = [_read_device(nvml, position, detailed) for position in positions]
    _ask(nvml, "nvmlShutdown")
    return json.dumps(answer).encode()


def _nvml_text(nvml: Any, error: Any) -> str:
    # The driver's own words ("Driver/library version mismatch") are what people search for; the
    # binding rewrites some.
    return f"NVML error {error.value}: {_ask(nvml, 'nvmlErrorString', error.value) or error}"[:1000]


def _ask(nvml: Any, name: str, *arguments: Any) -> Any:
    """Call one NVML function; None where this driver or binding lacks it or refuses it."""
    function = getattr(nvml, name, None)
    if function is None:
        return None
    try:
        answer = function(*arguments)
    except (nvml.NVMLError, AttributeError, ValueError, TypeError):
        return None
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer


def _read_device(nvml: Any, position: int, detailed: bool) -> Dict[str, Any]:
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(position)
    except nvml.NVMLError as error:
        return {"fault": _GONE.get(error.value, "") or _nvml_text(nvml, error)}
    entry: Dict[str, Any] = {
        "name": _ask(nvml, "nvmlDeviceGetName", handle),
        "uuid": _ask(nvml, "nvmlDeviceGetUUID", handle),
    }
    for call, values in _DEVICE_CALLS:
        answer = _ask(nvml, call, handle)
        if answer is not None:
            entry.update(values(answer))
    if entry.get("mig_mode"):
        entry["mig"] = list(_mig_uuids(nvml, handle))
    if entry.get("ecc_mode"):
        # Volatile: since the driver was loaded. Old, repaired faults are in the aggregate counter.
        entry["ecc_uncorrected"] = _ask(nvml, "nvmlDeviceGetTotalEccErrors", handle, 1, 0)
    entry["fabric_state"] = _fabric_state(nvml, handle)
    if detailed:
        entry.update(_details(nvml, handle))
    if entry["name"] is None and entry["uuid"] is None:
        entry["fault"] = _fault(nvml, handle)
    return entry


def _pci_values(pci: Any) -> Dict[str, Any]:
    return {
        "pci_bus": pci.busId.decode("ascii", "replace")
        if isinstance(pci.busId, bytes)
        else pci.busId,
        "pci_id": f"{pci.pciDeviceId & 0xFFFF:04x}:{pci.pciDeviceId >> 16:04x}",
    }


def _remapped_values(rows: Any) -> Dict[str, Any]:
    if len(rows) != 4:
        return {}
    return {"remapped_pending": bool(rows[2]), "remapped_failed": bool(rows[3])}


#: What is asked of each device, and the values of the answer.
_DEVICE_CALLS: Tuple[Tuple[str, Callable[[Any], Dict[str, Any]]], ...] = (
    ("nvmlDeviceGetPciInfo", _pci_values),
    (
        "nvmlDeviceGetMemoryInfo",
        lambda memory: {"memory_total": memory.total, "memory_used": memory.used},
    ),
    (
        "nvmlDeviceGetCudaComputeCapability",
        lambda capability: {"compute_capability": "{}.{}".format(*capability)},
    ),
    ("nvmlDeviceGetMigMode", lambda modes: {"mig_mode": bool(modes[0])}),
    ("nvmlDeviceGetEccMode", lambda modes: {"ecc_mode": bool(modes[0])}),
    ("nvmlDeviceGetPersistenceMode", lambda mode: {"persistence_mode": bool(mode)}),
    ("nvmlDeviceGetRemappedRows", _remapped_values),
)


_SM_CLOCK = 1  # nvmlClockType_t: NVML_CLOCK_SM
_MOST_NVLINKS = 18  # NVML_NVLINK_MAX_LINKS


def _details(nvml: Any, handle: Any) -> Dict[str, Any]:
    """Return what only tells nodes apart: the highest clock, the limit of power, the NVLinks."""
    entry: Dict[str, Any] = {
        "clock_max": _ask(nvml, "nvmlDeviceGetMaxClockInfo", handle, _SM_CLOCK)
    }
    milliwatts = _ask(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle)
    if milliwatts:
        entry["power_limit"] = round(milliwatts / 1000)
    states = []
    for link in range(_MOST_NVLINKS):
        state = _ask(nvml, "nvmlDeviceGetNvLinkState", handle, link)
        if state is None:  # no such link, or a device without any
            break
        states.append(bool(state))
    if states:
        entry.update(nvlinks=sum(states), nvlinks_down=len(states) - sum(states))
    return entry


def _mig_uuids(nvml: Any, handle: Any) -> Iterator[str]:
    for position in range(min(_ask(nvml, "nvmlDeviceGetMaxMigDeviceCount", handle) or 0, 64)):
        instance = _ask(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", handle, position)
        uuid = _ask(nvml, "nvmlDeviceGetUUID", instance) if instance is not None else None
        if uuid:
            yield uuid


def _fabric_state(nvml: Any, handle: Any) -> Optional[str]:
    # Bindings differ: the newer call fills a versioned structure, the older one may return it.
    for structure, call in (
        ("c_nvmlGpuFabricInfoV_t", "nvmlDeviceGetGpuFabricInfoV"),
        ("c_nvmlGpuFabricInfo_t", "nvmlDeviceGetGpuFabricInfo"),
    ):
        make = getattr(nvml, structure, None)
        if make is None or not hasattr(nvml, call):
            continue
        from ctypes import byref

        info = make()
        try:
            code = getattr(nvml, call)(handle, byref(info))
        except (nvml.NVMLError, TypeError, AttributeError):
            continue
        if code in (0, None):
            return _FABRIC_STATES.get(info.state)
    return None


def _fault(nvml: Any, handle: Any) -> Optional[str]:
    try:
        nvml.nvmlDeviceGetUUID(handle)
    except nvml.NVMLError as error:
        return _GONE.get(error.value, "") or _nvml_text(nvml, error)
    return None
