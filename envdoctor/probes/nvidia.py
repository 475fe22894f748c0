"""The NVIDIA driver and its devices.

Order of evidence, cheapest first and never with a CUDA context: the kernel module
(``/sys/module/nvidia/version``, ``/proc/driver/nvidia/version``), NVML, libcuda (the file that the
loader takes, ``cuDriverGetVersion``, ``cuInit``), ``nvidia-smi`` last. A missing source is no
verdict: gVisor and WSL have no ``/proc/driver/nvidia``.

Six versions that are never equated: kernel module, NVML's driver release, the release in libcuda's
file name, the driver's CUDA version, the toolkit, the runtime.

Files that cannot hang decide here whether a driver is worth asking; ``nvidia_driver`` asks it.
"""

from __future__ import annotations

import sys

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from .machine import FOLDER_ONLY, Machine, Probe
from .nvidia_files import (
    COMPAT_FIELDS,
    Traces,
    compat_facts,
    expected_gpus,
    find_libraries,
    other_gpus,
    read_traces,
)
from .nvidia_text import is_compat_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Tuple

__all__ = ["PROBES_HERE", "probe_nvidia"]

_DRIVER_FIELDS = (
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
    *COMPAT_FIELDS,
    "gpus",
    "gpus.expected",
)
_FIELDS = (
    *_DRIVER_FIELDS,
    "driver.nouveau",
    "driver.fabric_manager_running",
    "gpus.other",
    "pcie.acs_iommu",
)


def probe_nvidia(machine: Machine) -> Dict[str, Fact[Any]]:
    """Read driver, devices and cuda-compat."""
    if sys.platform != "linux":
        reason = Unknown(f"NVIDIA drivers are looked for on Linux, not on {sys.platform}")
        return dict.fromkeys(_FIELDS, reason)
    if machine.root:
        return _in_image(machine)
    traces = read_traces(machine)
    facts: Dict[str, Fact[Any]] = {"gpus.other": other_gpus(traces.devices)}
    if traces.modules:
        nouveau = machine.exists("/sys/module/nouveau")
        facts["driver.nouveau"] = Known(nouveau, Evidence("/sys/module/nouveau"))
    else:
        facts["driver.nouveau"] = Unknown("no /sys/module")
    if not traces.has_driver:
        facts.update(_without_driver(traces))
        return facts
    from .nvidia_driver import ask_driver

    facts.update(ask_driver(machine, traces))
    return facts


def _without_driver(traces: Traces) -> Dict[str, Fact[Any]]:
    """A machine without a trace of the driver: a CPU machine, or one whose driver is missing."""
    if not traces.modules:
        # gVisor shows no /sys/module, and a device may still come through it.
        return dict.fromkeys(
            _DRIVER_FIELDS, Unknown("no /sys/module, no device node and no library of the driver")
        )
    module = Evidence("/sys/module", "no nvidia")
    nodes = Evidence("/dev", "no nvidia device node")
    library = Absent(Evidence("the loader's folders", "no libcuda.so.1"))
    return {
        **dict.fromkeys(_DRIVER_FIELDS, Absent(module)),
        "driver.loaded": Known(False, module),
        "driver.exposed": Known(False, nodes),
        "gpus": Known((), nodes),
        "gpus.expected": expected_gpus(traces.devices),
        "driver.libcuda_release": library,
        "driver.libcuda_path": library,
        "driver.unversioned_libcuda": library,
        **dict.fromkeys(COMPAT_FIELDS, library),
        "driver.nvml_error": Known(
            "libnvidia-ml.so.1: no such library in the loader's folders",
            Evidence("the loader's folders"),
        ),
    }


def _in_image(machine: Machine) -> Dict[str, Fact[Any]]:
    """Nothing of the host counts for an unpacked image, but its own cuda-compat library does."""
    facts: Dict[str, Fact[Any]] = dict.fromkeys(_FIELDS, Unknown(FOLDER_ONLY))
    paths = find_libraries(machine, "libcuda.so.1")
    path = machine.realpath(paths[0]) if paths else None
    if path is not None and is_compat_path(path):
        facts.update(compat_facts(path, None, "first in the loader's folders"))
    elif machine.exists("/etc/ld.so.cache"):
        evidence = Evidence("/etc/ld.so.cache", "the loader takes no cuda-compat library")
        facts.update(dict.fromkeys(COMPAT_FIELDS, Absent(evidence)))
    return facts


PROBES_HERE: Tuple[Probe, ...] = (Probe("nvidia", probe_nvidia, _FIELDS, False, 5.0),)
