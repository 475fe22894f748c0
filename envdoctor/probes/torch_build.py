"""The installed torch, read without importing it: version, C++ ABI, and what an import loads."""

from __future__ import annotations

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from ..model.pattern import pattern
from ..model.record import NamedTuple
from .interpreter import interpreter_of, listing
from .machine import Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Sequence, Tuple

    from .dynamic_loader import LinkMap
    from .machine import Machine

__all__ = [
    "FIELDS_HERE",
    "PROBES_HERE",
    "TorchProcess",
    "parse_version_file",
    "probe_torch",
    "torch_folder",
    "torch_process",
]

FIELDS_HERE = ("torch.version", "torch.cuda", "torch.hip", "torch.cxx11abi")

# c10's check function takes a std::string in every release since 1.8, and each ABI spells it in its
# own way.
_CHECK = b"_ZN3c106detail14torchCheckFailEPKcS2_jRK"
_ERROR = b"_ZN3c105ErrorC1ENS_14SourceLocationE"
_NEW_STRING, _OLD_STRING = b"NSt7__cxx11", b"Ss\0"


def torch_folder(machine: Machine) -> Optional[str]:
    """Return the folder of the torch on the search path that an import would find, or None."""
    for folder in interpreter_of(machine).search_path:
        if "torch" in (listing(machine, folder) or ()) and machine.exists(
            f"{folder}/torch/version.py"
        ):
            return f"{folder}/torch"
    return None


def parse_version_file(text: str) -> Dict[str, Optional[str]]:
    """Return what torch/version.py assigns to the three names, without executing it."""
    values: Dict[str, Optional[str]] = {}
    for line in text.splitlines():
        name, _, value = line.partition("=")
        name, value = name.partition(":")[0].rstrip(), value.strip()
        if name not in ("__version__", "cuda", "hip"):
            continue
        if value.startswith("None"):
            values[name] = None
        elif value[:1] in ("'", '"') and value.find(value[0], 1) > 0:
            values[name] = value[1 : value.index(value[0], 1)][:200]
    return values


def probe_torch(machine: Machine) -> Dict[str, Fact[Any]]:
    """Read version, CUDA, ROCm and C++ ABI of the installed torch."""
    interpreter = interpreter_of(machine)
    if not interpreter.search_path:
        return dict.fromkeys(
            FIELDS_HERE,
            Unknown(interpreter.trouble or "the folders of the Python environment are not known"),
        )
    folder = torch_folder(machine)
    if folder is None:
        return dict.fromkeys(
            FIELDS_HERE, Absent(Evidence(", ".join(interpreter.search_path), "no torch/version.py"))
        )
    path = f"{folder}/version.py"
    assigned = parse_version_file(machine.read_text(path, 1 << 16) or "")
    evidence = Evidence(path)
    facts: Dict[str, Fact[Any]] = {}
    for field, name in (
        ("torch.version", "__version__"),
        ("torch.cuda", "cuda"),
        ("torch.hip", "hip"),
    ):
        value = assigned.get(name)
        if value:
            facts[field] = Known(value, evidence)
        elif name in assigned or (name == "hip" and "__version__" in assigned):
            facts[field] = Absent(evidence)
        else:
            facts[field] = Unknown(f"{path} does not assign {name}")
    facts["torch.cxx11abi"] = _cxx11_abi(machine, f"{folder}/lib/libc10.so")
    return facts


def _cxx11_abi(machine: Machine, path: str) -> Fact[bool]:
    from .elf import ElfError, open_elf

    try:
        with machine.use(open_elf, path) as elf:
            for stem in (_CHECK, _ERROR):
                for value, mark in ((True, _NEW_STRING), (False, _OLD_STRING)):
                    if elf.mentions(stem + mark):
                        return Known(value, Evidence(path, "symbols"))
    except (OSError, ElfError) as error:
        return Unknown(f"{path}: {error}")
    return Unknown(f"{path} has no symbol that shows its C++ ABI")


class TorchProcess(NamedTuple):
    """What ``import torch`` loads, in order, as the loader of this target would do it."""

    folder: str
    cuda: Optional[str]
    links: LinkMap
    # Sonames that torch/__init__.py loads by path before its own libraries.
    preloaded: Tuple[str, ...]


_PROCESS: List[Tuple[Any, Optional[TorchProcess]]] = []


def torch_process(machine: Machine) -> Optional[TorchProcess]:
    """Return the link map of a process that imported torch; None where there is no torch."""
    if not _PROCESS or _PROCESS[0][0] is not machine:
        _PROCESS[:] = [(machine, _simulate(machine))]
    return _PROCESS[0][1]


def _simulate(machine: Machine) -> Optional[TorchProcess]:
    folder = torch_folder(machine)
    if folder is None:
        return None
    from .dynamic_loader import LinkMap, Loader
    from .elf import ElfError, open_elf

    library = f"{folder}/lib"
    names = machine.listdir(library) or ()
    try:
        with machine.use(open_elf, f"{library}/libc10.so") as elf:
            kind = elf.kind
    except (OSError, ElfError):
        return None
    executable = interpreter_of(machine).executable
    links = LinkMap(
        Loader(machine, kind, machine.environment),
        machine.realpath(executable) if executable else None,
    )
    cuda = parse_version_file(machine.read_text(f"{folder}/version.py", 1 << 16) or "").get("cuda")
    preloaded: Tuple[str, ...] = ()
    if "libtorch_global_deps.so" in names:
        links.load(f"{library}/libtorch_global_deps.so")
        preloaded = _preload(machine, folder, cuda, links)
    for name in ("libtorch_python.so", "libtorch_cuda.so", "libtorch_cuda_linalg.so"):
        if name in names:
            links.load(f"{library}/{name}")
    return TorchProcess(folder, cuda, links, preloaded)


_PRELOAD_CALL = pattern(
    r"(?m)^\s+_preload_cuda_(?:deps|lib)\(\s*['\"](\w+)['\"],\s*['\"](lib[\w-]+)\.so"
)
_PRELOAD_PAIR = pattern(r"(?m)^\s+\(['\"](\w+)['\"],\s*['\"](lib[\w-]+)\.so")


def _preload(machine: Machine, folder: str, cuda: Optional[str], links: LinkMap) -> Tuple[str, ...]:
    """Do what ``torch/__init__.py`` does after its global dependencies: load wheels' libraries.

    torch 2.6 began with libnvrtc and libnvJitLink where the wheel's libcudart is loaded (pytorch
    issue 138460); later releases take every wheel that is there. Read from the file, because the
    list changes with each release.
    """
    text = machine.read_text(f"{folder}/__init__.py", 1 << 20) or ""
    loaded = []
    for part, name in _preload_list(machine, text, cuda, links):
        path = _wheel_library(machine, part, name, cuda)
        if path is None and "required" not in text:
            break  # the older code stops at the first that is not there
        held = links.load(path, "preload") if path is not None else None
        if held is not None and held.soname:
            loaded.append(held.soname)
    return tuple(loaded)


def _preload_list(
    machine: Machine, text: str, cuda: Optional[str], links: LinkMap
) -> Sequence[Tuple[str, str]]:
    """Wheel and name of each library that ``torch/__init__.py`` loads in this process."""
    major = (cuda or "").split(".")[0]
    if not text or links.find(f"libcudart.so.{major}") is None:
        return ()
    if "_preload_cuda_deps(required=False)" in text:
        return _PRELOAD_PAIR.findall(text)
    if "nvidia/cuda_runtime/lib/libcudart.so" in text:
        sonames = ((held.soname or "", held.path) for held in links.objects)
        runtime = next((path for name, path in sonames if name.startswith("libcudart.so")), "")
        if "nvidia/cuda_runtime/lib/" not in machine.realpath(runtime):
            return ()
    return _PRELOAD_CALL.findall(text)


def _wheel_library(machine: Machine, part: str, name: str, cuda: Optional[str]) -> Optional[str]:
    """The file that torch's ``_get_cuda_dep_paths`` finds first on the search path."""
    for site in interpreter_of(machine).search_path:
        for place in (
            f"{site}/nvidia/{part}/lib",
            f"{site}/nvidia/cu{(cuda or '').split('.')[0]}/lib",
            f"{site}/{part}/lib",
        ):
            for entry in machine.listdir(place) or ():
                if entry.startswith(name + ".so.") and entry[-1:].isdigit():
                    return f"{place}/{entry}"
    return None


PROBES_HERE: Tuple[Probe, ...] = (
    Probe("torch", probe_torch, FIELDS_HERE, isolated=False, deadline=2.0),
)
