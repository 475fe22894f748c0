"""CUDA toolkits on disk, and the ptxas that Triton would call.

Versions come from ``version.json``, ``version.txt`` or ``cuda.h``; nvcc is run only where none of
them is there.
"""

from __future__ import annotations

import json
import os

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from ..model.facts import Toolkit
from ..model.pattern import pattern
from ..model.record import NamedTuple
from ..model.versions import try_version
from .machine import Machine, Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

__all__ = [
    "PROBES_HERE",
    "parse_cuda_header",
    "parse_tool_version",
    "parse_version_json",
    "parse_version_text",
    "probe_toolkits",
]

_TOOL_DEADLINE = 1.0
_HEADER_LIMIT = 1 << 18
_TOOL_VERSION = pattern(
    rb"Cuda compilation tools, release \d{1,2}\.\d{1,2}, V(\d{1,2}\.\d{1,2}\.\d{1,5})"
)
_TEXT_VERSION = pattern(r"(?a)CUDA Version (\d{1,2}\.\d{1,2}(?:\.\d{1,5})?)")
_IMAGE_VERSION = pattern(r"(?a)\d{1,2}\.\d{1,2}(?:\.\d{1,5})*")


class _Versions(NamedTuple):
    """The version of a toolkit and of its nvcc: 12.4.1 holds nvcc 12.4.131."""

    toolkit: Optional[str]
    nvcc: Optional[str]
    source: str


def parse_version_json(text: str) -> Tuple[Optional[str], Optional[str]]:
    """Return the versions of toolkit and nvcc from a toolkit's ``version.json``."""
    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        return None, None
    return _version_in(table, "cuda"), _version_in(table, "cuda_nvcc")


def _version_in(table: Any, key: str) -> Optional[str]:
    entry = table.get(key) if isinstance(table, dict) else None
    version = entry.get("version") if isinstance(entry, dict) else None
    return (
        version
        if isinstance(version, str) and len(version) < 40 and try_version(version) is not None
        else None
    )


def parse_version_text(text: str) -> Optional[str]:
    """Return the version in ``version.txt`` (``CUDA Version 10.2.89``; toolkits before 11.1)."""
    match = _TEXT_VERSION.search(text[:4096])
    return match.group(1) if match else None


def parse_cuda_header(text: str) -> Optional[str]:
    """Return ``12.4`` from ``#define CUDA_VERSION 12040`` in ``cuda.h``."""
    place = text.find("CUDA_VERSION")
    while place >= 0:
        end = text.find("\n", place)
        end = len(text) if end < 0 else end
        words = text[text.rfind("\n", 0, place) + 1 : end].replace("#", "# ", 1).split()
        if words[:3] == ["#", "define", "CUDA_VERSION"] and words[3:]:
            number = words[3]
            if _is_number(number, 4, 6):
                return f"{int(number) // 1000}.{int(number) % 1000 // 10}"
        place = text.find("CUDA_VERSION", end)  # one line is looked at once, however long it is
    return None


def _is_number(text: str, least: int, most: int) -> bool:
    return least <= len(text) <= most and text.isascii() and text.isdigit()


def parse_tool_version(output: bytes) -> Optional[str]:
    """Return ``12.4.131`` from what nvcc and ptxas print (``… release 12.4, V12.4.131``)."""
    match = _TOOL_VERSION.search(output)
    return match.group(1).decode() if match else None


def probe_toolkits(machine: Machine) -> Dict[str, Fact[Any]]:
    """Find toolkits where builds look for them; the first is the one that a build would use.

    The order is that of torch.utils.cpp_extension: CUDA_HOME, CUDA_PATH, nvcc on PATH,
    /usr/local/cuda.
    """
    toolkits: List[Toolkit] = []
    versions: Dict[str, _Versions] = {}
    for path, how in _folders(machine):
        real = machine.realpath(path)
        if real in versions or not machine.isdir(real):
            continue
        nvcc = machine.isfile(f"{real}/bin/nvcc")
        if (
            not nvcc
            and not machine.isfile(f"{real}/version.json")
            and not machine.isfile(f"{real}/version.txt")
        ):
            continue
        versions_here = versions[real] = _versions_of(machine, real, nvcc)
        toolkits.append(Toolkit(real, versions_here.toolkit or versions_here.nvcc, how, nvcc))
    facts: Dict[str, Fact[Any]] = {
        "toolkits": Known(tuple(toolkits), Evidence("CUDA_HOME, PATH, /usr/local, /opt"))
    }
    facts["toolkit.version"] = _used(toolkits, versions)
    facts["ptxas.version"] = _ptxas(machine)
    facts["image.cuda_version"] = _image(machine.environment)
    return facts


def _folders(machine: Machine) -> Iterator[Tuple[str, str]]:
    """Yield folders that may hold a toolkit, and what led there."""
    for name in ("CUDA_HOME", "CUDA_PATH"):
        folder = machine.environment.get(name, "")
        if folder.startswith("/"):
            yield folder, name
    for folder in machine.environment.get("PATH", "").split(":"):
        if folder.startswith("/") and machine.isfile(f"{folder}/nvcc"):
            # A wrapper or link such as Debian's /usr/bin/nvcc leads to the toolkit's own bin.
            nvcc = machine.realpath(f"{folder}/nvcc")
            yield os.path.dirname(os.path.dirname(nvcc)) or "/", "PATH"
    conda = machine.environment.get("CONDA_PREFIX", "")
    if conda.startswith("/") and machine.isfile(f"{conda}/bin/nvcc"):
        yield conda, "CONDA_PREFIX"
    yield from _usual_folders(machine)


def _usual_folders(machine: Machine) -> Iterator[Tuple[str, str]]:
    for parent in ("/usr/local", "/opt"):
        for name in machine.listdir(parent) or ():
            if _is_toolkit_name(name):
                yield f"{parent}/{name}", parent
    yield "/usr/lib/cuda", "/usr/lib/cuda"
    yield "/usr/lib/nvidia-cuda-toolkit", "/usr/lib/nvidia-cuda-toolkit"


def _is_toolkit_name(name: str) -> bool:
    """Tell whether a folder is called ``cuda``, ``cuda-12`` or ``cuda-12.4``."""
    first, dash, number = name.partition("-")
    if first != "cuda":
        return False
    return not dash or all(_is_number(part, 1, 2) for part in number.split(".", 1))


def _versions_of(machine: Machine, folder: str, nvcc: bool) -> _Versions:
    """The versions of a toolkit, from the first file that names one."""
    toolkit, compiler = parse_version_json(machine.read_text(f"{folder}/version.json") or "")
    if toolkit or compiler:
        return _Versions(toolkit, compiler, f"{folder}/version.json")
    text = machine.read_text(f"{folder}/version.txt", 4096)
    version = parse_version_text(text) if text else None
    if version:
        return _Versions(version, version, f"{folder}/version.txt")
    for header in _headers(machine, folder, nvcc):
        version = parse_cuda_header(machine.read_text(header, _HEADER_LIMIT) or "")
        if version:
            return _Versions(version, version, header)
    version = _reported_version(machine, f"{folder}/bin/nvcc") if nvcc else None
    if version:
        return _Versions(version, version, f"{folder}/bin/nvcc --version")
    return _Versions(None, None, folder)


def _headers(machine: Machine, folder: str, nvcc: bool) -> Iterator[str]:
    target = _wrapped(machine, f"{folder}/bin/nvcc") if nvcc else None
    for place in dict.fromkeys((folder, target or folder)):
        yield f"{place}/include/cuda.h"
        yield f"{place}/targets/{os.uname().machine}-linux/include/cuda.h"


def _reported_version(machine: Machine, path: str) -> Optional[str]:
    """What a tool answers to ``--version``; nothing is run in an unpacked image."""
    if machine.root:
        return None
    from .isolation import run_command

    outcome = run_command(
        [path, "--version"], machine.remaining(_TOOL_DEADLINE), machine.environment, 65536
    )
    return None if outcome.reason else parse_tool_version(outcome.output)


def _wrapped(machine: Machine, path: str) -> Optional[str]:
    """Return the toolkit that a script calls (``exec /usr/local/cuda-13.0/bin/nvcc "$@"``)."""
    content = machine.read_bytes(path, 4096) or b""
    if not content.startswith(b"#!"):
        return None
    for word in content.replace(b'"', b" ").replace(b"'", b" ").split():
        if word.startswith(b"/") and word.endswith(b"/bin/nvcc"):
            return os.fsdecode(word[: -len(b"/bin/nvcc")])
    return None


def _used(toolkits: List[Toolkit], versions: Mapping[str, _Versions]) -> Fact[Any]:
    first = next((entry for entry in toolkits if entry.nvcc), None)
    if first is None:
        return Absent(Evidence("CUDA_HOME, PATH, /usr/local, /opt", "no nvcc"))
    toolkit, nvcc, source = versions[first.path]
    version = nvcc or toolkit
    if version is None:
        return Unknown(f"{first.path} names no version")
    return Known(version, Evidence(source, f"found by {first.found_via}"))


def _ptxas(machine: Machine) -> Fact[Any]:
    """The version of Triton's ptxas, of which Blackwell has its own: as named, or in the wheel."""
    tools = list(_ptxas_paths(machine))
    if not tools:
        if machine.value("python.search_path") is None:
            return Unknown("the folders of the Python environment are not known")
        return Absent(Evidence("the Python environment", "no Triton with a ptxas"))
    for path in tools:
        version = _tool_version(machine, path)
        if version:
            return Known(version, Evidence(path))
    return Unknown(f"{tools[0]} names no version")


def _ptxas_paths(machine: Machine) -> Iterator[str]:
    names = ("ptxas-blackwell", "ptxas") if _has_blackwell(machine) else ("ptxas",)
    for name in names:
        stated = machine.environment.get("TRITON_" + name.replace("-", "_").upper() + "_PATH", "")
        if stated.startswith("/") and machine.isfile(stated):
            yield stated
        for folder in machine.value("python.search_path", ()):
            for inner in _PTXAS_FOLDERS:
                path = f"{folder}/{inner}/{name}"
                if machine.isfile(path):
                    yield path


_PTXAS_FOLDERS = (
    "triton/backends/nvidia/bin",
    "triton/third_party/cuda/bin",
    "triton/common/../third_party/cuda/bin",
)


def _has_blackwell(machine: Machine) -> bool:
    """Whether a device that is not hidden has compute capability 10 or more."""
    capabilities = [
        try_version(gpu.compute_capability)
        for gpu in machine.value("gpus", ())
        if gpu.visible is not False
    ]
    return any(version is not None and version.major >= 10 for version in capabilities)


def _tool_version(machine: Machine, path: str) -> Optional[str]:
    may_run = machine.use(lambda host: os.access(host, os.X_OK), path)
    version = _reported_version(machine, path) if may_run else None
    return version or machine.use(_search_file, path)


def _search_file(path: str) -> Optional[str]:
    """Look for the version in a tool that cannot be run here (30-50 MB: 10 ms warm)."""
    import mmap

    try:
        with (
            open(path, "rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            start = 0
            while True:
                start = content.find(b"Cuda compilation tools, release ", start)
                if start < 0:
                    return None
                version = parse_tool_version(content[start : start + 96])
                if version:
                    return version
                start += 1
    except (OSError, ValueError):
        return None


def _image(environment: Mapping[str, str]) -> Fact[Any]:
    """NVIDIA's images set CUDA_VERSION with others; alone the variable may mean anything."""
    version = environment.get("CUDA_VERSION", "")
    if (
        version
        and _IMAGE_VERSION.fullmatch(version)
        and ("NVIDIA_REQUIRE_CUDA" in environment or "NVARCH" in environment)
    ):
        return Known(version, Evidence("environment variable CUDA_VERSION"))
    return Unknown("no variables of an NVIDIA image")


PROBES_HERE: Tuple[Probe, ...] = (
    Probe(
        "toolkits",
        probe_toolkits,
        ("toolkits", "toolkit.version", "ptxas.version", "image.cuda_version"),
        False,
        3.0,
    ),
)
