"""Which CUDA libraries ``import torch`` loads, from where, and which further copies lie on the
loader's ways.

The own reading of the loader's rules (``loader``) answers in 4 ms; where LD_LIBRARY_PATH or
LD_PRELOAD could change the answer, the target's own loader is asked too (``ld.so --list``, which
runs no constructor), and what it says wins. An environment without torch pays nothing.
"""

from __future__ import annotations

import os
import re

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from ..model.facts import Distribution, Library
from ..model.pattern import pattern
from ..model.record import NamedTuple
from .dynamic_loader import LinkMap, Loaded, parse_list
from .elf import ElfError, open_elf
from .interpreter import interpreter_of, listing
from .isolation import run_command
from .torch_build import torch_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

    from .machine import Machine
    from .torch_build import TorchProcess

__all__ = ["read_libraries", "version_of_file", "wheel_names"]

_DEADLINE = 1.5
_MOST_COPIES = 200

# Library name -> the part of NVIDIA's distribution name ("nvidia-cublas-cu12", "nvidia-cublas").
_PARTS = {
    "libcublas": "cublas",
    "libcublasLt": "cublas",
    "libcudart": "cuda-runtime",
    "libcufft": "cufft",
    "libcufile": "cufile",
    "libcupti": "cuda-cupti",
    "libcurand": "curand",
    "libcusolver": "cusolver",
    "libcusparse": "cusparse",
    "libcusparseLt": "cusparselt",
    "libnccl": "nccl",
    "libnvJitLink": "nvjitlink",
    "libnvToolsExt": "nvtx",
    "libnvrtc": "cuda-nvrtc",
    "libnvshmem_host": "nvshmem",
}
_NAME = pattern(
    r"(libcudnn\w*|"
    + "|".join(sorted(_PARTS, key=len, reverse=True))
    + r")(?:-[0-9a-f]{8})?\.so(?:\.(\d[\d.]*))?\Z"
)


def read_libraries(machine: Machine) -> Dict[str, Fact[Any]]:
    """List the CUDA libraries that torch loads, and other copies of them."""
    process = torch_process(machine)
    if process is None:
        search_path = ", ".join(interpreter_of(machine).search_path)
        nothing = Absent(Evidence(search_path, "torch is not installed"))
        return {"libraries": nothing, "cudnn.system_version": nothing}
    judged = _Judged(machine, process, machine.value("distributions", {}))
    corrections, note = _ask_loader(machine, process)
    loaded: List[Library] = []
    for held in process.links.objects:
        match = _NAME.match(held.soname or os.path.basename(held.path))
        if match is not None:
            loaded.append(judged.library(held, match, corrections))
    copies = _copies(machine, judged, loaded)
    evidence = Evidence(f"{process.folder}/lib", note)
    return {
        "libraries": Known((*loaded, *copies), evidence),
        "cudnn.system_version": _system_cudnn(machine, [*loaded, *copies], evidence),
    }


class _Judged(NamedTuple):
    """What is needed to say whose a file is."""

    machine: Machine
    process: TorchProcess
    distributions: Mapping[str, Distribution]

    def library(
        self, held: Loaded, match: re.Match[str], corrections: Mapping[str, str]
    ) -> Library:
        soname = held.soname or held.name
        origin, path = held.origin, os.path.normpath(held.path)
        corrected = corrections.get(soname)
        if corrected and held.origin != "preload":
            path, origin = (
                os.path.normpath(corrected),
                "LD_LIBRARY_PATH" if _below_library_path(self.machine, corrected) else "ld.so",
            )
        wheel = self.wheel(path, match.group(1))
        return Library(
            match.group(1),
            soname,
            path,
            self.version(path, wheel),
            f"wheel:{wheel}" if wheel is not None else origin,
            True,
            _asker(held),
        )

    def wheel(self, path: str, name: str) -> Optional[str]:
        """The distribution whose file this is: "" where two own it, None where it is in no
        wheel.
        """
        if path.startswith(self.process.folder + "/"):
            return "torch"
        if "/nvidia/" not in path or not any(
            path.startswith(folder + "/") for folder in interpreter_of(self.machine).search_path
        ):
            return None
        candidates = [
            known for known in wheel_names(name, self.process.cuda) if known in self.distributions
        ]
        # Wheels of CUDA 13 lie in nvidia/cu13, the others' folder names the part only: two of them
        # write the same file.
        major = re.search(r"/nvidia/cu(\d\d)/", path)
        if major is not None:
            candidates = [known for known in candidates if not known.endswith(("-cu11", "-cu12"))]
        return candidates[0] if candidates else ""

    def version(self, path: str, wheel: Optional[str]) -> Optional[str]:
        if wheel and wheel != "torch":
            return self.distributions[wheel].version
        if wheel == "":
            return None
        return version_of_file(self.machine.realpath(path))


def _asker(held: Loaded) -> str:
    if held.origin == "preload":
        return "torch/__init__.py"
    return (
        held.parent.soname or os.path.basename(held.parent.path) if held.parent is not None else ""
    )


def wheel_names(library: str, cuda: Optional[str]) -> Tuple[str, ...]:
    """Return the names under which NVIDIA distributes a library, the one for torch's CUDA major
    first.
    """
    part = "cudnn" if library.startswith("libcudnn") else _PARTS.get(library)
    if part is None:
        return ()
    major = (cuda or "").split(".")[0]
    names = [
        f"nvidia-{part}-cu{major}",
        f"nvidia-{part}",
        *(f"nvidia-{part}-cu{other}" for other in ("13", "12", "11")),
    ]
    return tuple(dict.fromkeys(names))


def version_of_file(path: str) -> Optional[str]:
    """Return the version in a library's file name, where it has more than the major:
    ``libcublas.so.12.4.5.8``.
    """
    version = os.path.basename(path).partition(".so.")[2]
    return version if re.match(r"\d+\.\d+(?:\.\d+)*\Z", version) else None


def _below_library_path(machine: Machine, path: str) -> bool:
    folders = machine.environment.get("LD_LIBRARY_PATH", "").split(":")
    return os.path.dirname(path) in [folder.rstrip("/") for folder in folders if folder]


def _ask_loader(machine: Machine, process: TorchProcess) -> Tuple[Dict[str, str], str]:
    """Compare with the target's own loader; return the paths where it differs, and a note for the
    evidence.
    """
    contested = machine.environment.get("LD_LIBRARY_PATH") or machine.environment.get("LD_PRELOAD")
    if machine.root or not (contested or machine.deep) or process.links.main is None:
        return {}, "loader rules"
    names = listing(machine, f"{process.folder}/lib") or ()
    target = f"{process.folder}/lib/" + next(
        (name for name in ("libtorch_cuda.so", "libtorch_cpu.so") if name in names), "libtorch.so"
    )
    try:
        with open_elf(process.links.main.path) as elf:
            interpreter = elf.interpreter
    except (OSError, ElfError):
        interpreter = None
    if not interpreter or "musl" in interpreter:
        return {}, "loader rules"
    answer = run_command(
        [interpreter, "--list", target], deadline=_DEADLINE, environment=machine.environment
    )
    if answer.status != 0:
        return (
            {},
            f"loader rules; {interpreter} --list gave no answer ({answer.reason or answer.status})",
        )
    # The same question to both: the program is the library itself there, not Python.
    own = LinkMap(process.links.loader, target)
    corrections = {}
    for soname, path in parse_list(answer.output.decode("utf-8", "surrogateescape")).items():
        held = own.find(soname)
        if path and held is not None and machine.realpath(held.path) != machine.realpath(path):
            corrections[soname] = path
    return corrections, f"loader rules, checked with {interpreter} --list"


# Other copies


def _copies(machine: Machine, judged: _Judged, loaded: Sequence[Library]) -> List[Library]:
    """Every further file of these libraries on LD_LIBRARY_PATH, in the loader's cache, in conda's
    folder and in wheels.
    """
    seen = {machine.realpath(library.path) for library in loaded}
    copies: List[Library] = []

    def add(path: str, name: str, soname: str, origin: str) -> None:
        real = machine.realpath(path)
        if real in seen or len(copies) >= _MOST_COPIES or not machine.isfile(real):
            return
        seen.add(real)
        wheel = judged.wheel(os.path.normpath(path), name)
        origin = f"wheel:{wheel}" if wheel is not None else origin
        copies.append(
            Library(
                name,
                soname,
                os.path.normpath(path),
                judged.version(os.path.normpath(path), wheel),
                origin,
                False,
            )
        )

    def folder(place: str, origin: str) -> None:
        for entry in listing(machine, place) or ():
            match = _NAME.match(entry)
            # The short name is the one that is searched for; the long one is what it links to.
            if match is not None and match.group(2) and match.group(2).count(".") == 0:
                add(f"{place}/{entry}", match.group(1), entry, origin)

    for place in machine.environment.get("LD_LIBRARY_PATH", "").split(":"):
        if place.startswith("/"):
            folder(place.rstrip("/") or "/", "LD_LIBRARY_PATH")
    for soname, paths in judged.process.links.loader.cache.items():
        match = _NAME.match(soname) if soname.startswith(("libcu", "libn")) else None
        if match is not None:
            for path in paths:
                add(path, match.group(1), soname, "ld.so.cache")
    interpreter = interpreter_of(machine)
    if interpreter.environment == "conda":
        folder(f"{interpreter.prefix}/lib", "conda")
    for site in interpreter.search_path:
        if "nvidia" in (listing(machine, site) or ()):
            for part in listing(machine, f"{site}/nvidia") or ():
                folder(f"{site}/nvidia/{part}/lib", "wheel")
    return copies


_CUDNN_HEADERS = (
    "/usr/include/cudnn_version.h",
    "/usr/include/x86_64-linux-gnu/cudnn_version_v9.h",
    "/usr/include/x86_64-linux-gnu/cudnn_version_v8.h",
    "/usr/include/aarch64-linux-gnu/cudnn_version_v9.h",
)
_CUDNN_PART = pattern(r"(?m)^#define\s+CUDNN_(MAJOR|MINOR|PATCHLEVEL)\s+(\d+)")


def _system_cudnn(machine: Machine, libraries: Sequence[Library], evidence: Evidence) -> Fact[str]:
    for library in libraries:
        if library.name != "libcudnn" or library.origin.startswith(("wheel", "rpath", "runpath")):
            continue
        if library.version is not None:
            return Known(library.version, Evidence(library.path, library.origin))
        for header in _CUDNN_HEADERS:
            parts = dict(_CUDNN_PART.findall(machine.read_text(header, 1 << 16) or ""))
            if len(parts) == 3:
                return Known(
                    "{MAJOR}.{MINOR}.{PATCHLEVEL}".format(**parts), Evidence(header, library.path)
                )
        return Unknown(f"{library.path} does not tell its version")
    return Absent(Evidence(evidence.source, "no cuDNN outside the wheels on the loader's path"))
