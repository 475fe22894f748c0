"""What nvidia-smi (table, csv, -L), the driver's version file and nvcc say, also in failing."""

from __future__ import annotations

import re
from typing import Dict, Optional, Sequence

from ..model.facts import Gpu
from ..model.sizes import parse_size
from .clean_text import Line
from .draft import EXACT, LABEL, Draft

__all__ = ["NvidiaReader", "driver_release"]

_HEADER = re.compile(
    r"NVIDIA-SMI\s+(\S+).{0,60}?Driver Version:\s*(\S+)(?:.{0,40}?CUDA Version:\s*(\S+))?"
)
_ROW_NAME = re.compile(
    r"\|\s*(\d{1,3})\s+(\S.{0,80}?)\s+(On|Off|N/A|WDDM|TCC|MCDM)\s*\|\s*"
    r"([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s+(?:On|Off|N/A)\s*\|\s*(\S+)"
)
_ROW_MEMORY = re.compile(r"\|.{0,60}?\|\s*(\d{1,8})\s*MiB\s*/\s*(\d{1,8})\s*MiB\s*\|")
_ROW_MIG = re.compile(r"\|[^|]{0,60}\|[^|]{0,40}\|\s*(Disabled|Enabled)\*?\s*\|")
_LISTED = re.compile(
    r"(?:GPU models(?: and "
    r"configuration)?\s*:\s*)?GPU\s*(\d{1,3}(?:,\s*\d{1,3}){0,64})\s*:\s*(\S.{0,120}?)\s*"
    r"(?:\(UUID:\s*([\w-]{1,64})\s*\))?$"
)
_LISTED_CAPABILITY = re.compile(
    r"GPU\s*(\d{1,3}(?:,\s*\d{1,3}){0,64})\s+Compute Capability\s*:\s*(\d{1,2}\.\d)"
)
_MIG_DEVICE = re.compile(
    r"MIG\s+\d{1,2}c?\.?\d?g?\.?\d{1,3}gb\S{0,12}\s+Device\s+\d+\s*:", re.IGNORECASE
)
_KERNEL_MODULE = re.compile(
    r"NVRM version:\s*NVIDIA UNIX\s+(Open )?.{0,20}?Kernel Module(?: for "
    r"\S+)?\s+(\d{3,4}\.\d{2,3}(?:\.\d{2,3})?)"
)
_NVCC = re.compile(r"release\s+(\d{1,2}\.\d{1,2})(?:,\s*V(\d{1,2}\.\d{1,2}\.\d{1,4}))?")
_NVML_LIBRARY = re.compile(r"NVML library version:\s*(\d{3,4}\.\d{2,3}(?:\.\d{2,3})?)")
_DRIVER = re.compile(r"\b([3-9]\d{2}\.\d{2,3}(?:\.\d{1,3})?)\b")
_FAILURES = (
    ("Driver/library version mismatch", None),
    ("couldn't communicate with the NVIDIA driver", False),
    ("Failed to initialize NVML", None),
    ("NVIDIA-SMI couldn't find libnvidia-ml.so", None),
)
_CSV = {
    "index": "index",
    "name": "name",
    "gpu_name": "name",
    "uuid": "uuid",
    "gpu_uuid": "uuid",
    "driver_version": "driver",
    "memory.total": "memory_total",
    "memory.used": "memory_used",
    "memory.free": "",
    "compute_cap": "compute_capability",
    "pci.bus_id": "pci_bus",
    "gpu_bus_id": "pci_bus",
    "pci.device_id": "pci_id",
    "mig.mode.current": "mig_mode",
    "ecc.mode.current": "ecc_mode",
    "persistence_mode": "persistence_mode",
    "utilization.gpu": "",
    "utilization.memory": "",
    "temperature.gpu": "",
    "power.draw": "",
    "count": "",
    "timestamp": "",
    "pstate": "",
    "power.limit": "",
    "vbios_version": "",
    "serial": "",
    "ecc.errors.uncorrected.volatile.total": "ecc_uncorrected",
}
_QUERY = re.compile(r"nvidia-smi\b.{0,200}--query-gpu[= ]([\w.,\s-]{1,400}?)(?=\s+--|\s*$|\s+-\w)")


def driver_release(text: str) -> Optional[str]:
    """Return the first driver release that a text names (``535.129.03``)."""
    match = _DRIVER.search(text)
    return match.group(1) if match else None


class NvidiaReader:
    """Reads what NVIDIA's tools print."""

    def __init__(self) -> None:
        self._index: Optional[int] = None
        self._columns: Sequence[str] = ()
        self._row = 0

    @property
    def waiting(self) -> bool:
        """Whether the next line may belong to a table."""
        return bool(self._columns)

    def read(self, line: Line, draft: Draft) -> bool:
        """Take one line; False leaves it to the others."""
        raw = line.raw
        if "," in raw and (
            self._columns or "name" in raw or "driver_version" in raw or "query-gpu" in raw
        ):
            if self._read_csv(line, draft):
                return True
        elif self._columns and raw.strip() and self._read_csv(line, draft):
            return True
        else:
            self._columns = ()
        if "|" in raw and self._read_table(line, draft):
            return True
        if "GPU" in raw or "MIG" in raw:
            return self._read_list(line, draft)
        return _read_driver(line, draft)

    def _read_table(self, line: Line, draft: Draft) -> bool:
        header = _HEADER.search(line.raw)
        if header:
            self._index = None
            return _read_driver(line, draft)
        match = _ROW_NAME.search(line.raw)
        if match:
            self._index = int(match.group(1))
            persistence = {"On": True, "Off": False}.get(match.group(3))
            uncorrected = (
                int(match.group(5))
                if match.group(5).isdigit() and len(match.group(5)) < 9
                else None
            )
            device = Gpu(
                name=match.group(2),
                pci_bus=match.group(4),
                persistence_mode=persistence,
                ecc_uncorrected=uncorrected,
            )
            draft.device(self._index, device, line, EXACT + 1)
            return True
        if self._index is None:
            return _read_no_devices(line, draft)
        match = _ROW_MEMORY.search(line.raw)
        if match:
            draft.device(
                self._index,
                Gpu(memory_used=int(match.group(1)) << 20, memory_total=int(match.group(2)) << 20),
                line,
                EXACT + 1,
            )
            return True
        match = _ROW_MIG.search(line.raw)
        if match:
            draft.device(self._index, Gpu(mig_mode=match.group(1) == "Enabled"), line, EXACT + 1)
            self._index = None
            return True
        return False

    def _read_list(self, line: Line, draft: Draft) -> bool:
        if _MIG_DEVICE.match(line.text) and self._index is not None:
            draft.device(self._index, Gpu(mig_mode=True), line, EXACT)
            return True
        capability = _LISTED_CAPABILITY.match(line.text)
        if capability:
            for index in capability.group(1).split(","):
                draft.device(int(index), Gpu(compute_capability=capability.group(2)), line, EXACT)
            return True
        match = _LISTED.match(line.text)
        if (
            match
            and re.search(r"[A-Za-z]", match.group(2))
            and not match.group(2).startswith(("Could not", "No ", "N/A"))
        ):
            for index in match.group(1).split(","):
                draft.device(int(index), Gpu(name=match.group(2), uuid=match.group(3)), line, EXACT)
            self._index = int(match.group(1).split(",")[-1])
            return True
        return _read_driver(line, draft)

    def _read_csv(self, line: Line, draft: Draft) -> bool:
        query = _QUERY.search(line.text)
        if query:
            self._columns = [_CSV.get(name.strip(), "") for name in query.group(1).split(",")]
            self._row = 0
            return True
        cells = [cell.strip() for cell in line.raw.split(",")]
        names = [re.sub(r"\s*\[.*?\]$", "", cell) for cell in cells]
        if all(name in _CSV for name in names) and any(
            _CSV[name] in ("name", "driver", "memory_total") for name in names
        ):
            self._columns = [_CSV[name] for name in names]
            self._row = 0
            return True
        if not self._columns or len(cells) != len(self._columns):
            self._columns = ()
            return False
        values = dict(zip(self._columns, cells))
        if "name" in values and not re.search(r"[A-Za-z]", values["name"]):
            self._columns = ()
            return False
        if driver_release(values.get("driver", "")):
            draft.put("driver.release", values["driver"], line, EXACT)
        self._device_of(values, line, draft)
        return True

    def _device_of(self, values: Dict[str, str], line: Line, draft: Draft) -> None:
        index = (
            int(values["index"])
            if values.get("index", "").isdigit() and len(values["index"]) < 4
            else self._row
        )
        self._row += 1
        device = Gpu(
            name=values.get("name"),
            uuid=values.get("uuid"),
            pci_bus=values.get("pci_bus"),
            pci_id=_pci_id(values.get("pci_id", "")),
            compute_capability=values.get("compute_capability")
            if re.fullmatch(r"\d{1,2}\.\d", values.get("compute_capability", ""))
            else None,
            memory_total=_size(values.get("memory_total")),
            memory_used=_size(values.get("memory_used")),
            mig_mode={"Enabled": True, "Disabled": False}.get(values.get("mig_mode", "")),
            ecc_mode={"Enabled": True, "Disabled": False}.get(values.get("ecc_mode", "")),
            persistence_mode={"Enabled": True, "Disabled": False}.get(
                values.get("persistence_mode", "")
            ),
            ecc_uncorrected=int(values["ecc_uncorrected"])
            if values.get("ecc_uncorrected", "").isdigit() and len(values["ecc_uncorrected"]) < 12
            else None,
        )
        if any(value is not None for value in device):
            draft.device(index, device, line, EXACT)


def _read_driver(line: Line, draft: Draft) -> bool:
    """Read what NVIDIA's tools say about the driver and the toolkit in one line."""
    return any(
        reader(line, draft)
        for reader in (
            _read_header,
            _read_kernel_module,
            _read_no_devices,
            _read_failure,
            _read_nvml,
            _read_nvcc,
        )
    )


def _read_header(line: Line, draft: Draft) -> bool:
    """Read the header of nvidia-smi's table, also without its bars."""
    header = _HEADER.search(line.text)
    if header is None or not driver_release(header.group(2)):
        return False
    draft.put("driver.release", header.group(2), line, EXACT)
    if header.group(3) and re.fullmatch(r"\d{1,2}\.\d{1,2}", header.group(3)):
        draft.put("driver.cuda_version", header.group(3), line, EXACT)
    return True


def _read_kernel_module(line: Line, draft: Draft) -> bool:
    module = _KERNEL_MODULE.search(line.text) if "NVRM version" in line.text else None
    if module is None:
        return False
    flavor = "open" if module.group(1) else "proprietary"
    draft.put("driver.release", module.group(2), line, EXACT)
    draft.put("driver.flavor", flavor, line, EXACT)
    draft.put("driver.loaded", True, line, EXACT)
    return True


def _read_no_devices(line: Line, draft: Draft) -> bool:
    if "No devices were found" not in line.raw:
        return False
    draft.device_list_is_empty(line, "nvidia-smi: No devices were found")
    return True


def _read_failure(line: Line, draft: Draft) -> bool:
    for words, loaded in _FAILURES:
        if words in line.text:
            draft.put("driver.nvml_error", line.text[:200], line, EXACT)
            if loaded is False:
                draft.put("driver.loaded", False, line, LABEL, "nvidia-smi cannot reach it")
            return True
    return False


def _read_nvml(line: Line, draft: Draft) -> bool:
    library = _NVML_LIBRARY.search(line.text)
    if library:
        draft.put("driver.nvml_release", library.group(1), line, EXACT)
    return library is not None


def _read_nvcc(line: Line, draft: Draft) -> bool:
    text = line.text
    if "release" not in text or not ("compilation tools" in text or "nvcc" in text.lower()):
        return False
    nvcc = _NVCC.search(text)
    if nvcc:
        draft.put("toolkit.version", nvcc.group(2) or nvcc.group(1), line, EXACT)
    return nvcc is not None


def _size(text: Optional[str]) -> Optional[int]:
    """nvidia-smi counts in MiB, also where ``nounits`` drops the unit."""
    return parse_size(text, unit=1 << 20) if text else None


def _pci_id(text: str) -> Optional[str]:
    """``0x232910DE`` gives ``10de:2329``."""
    match = re.fullmatch(r"0x([0-9A-Fa-f]{4})10[Dd][Ee]", text)
    return f"10de:{match.group(1).lower()}" if match else None
