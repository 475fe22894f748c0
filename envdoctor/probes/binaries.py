"""What extension modules need of glibc, CUDA and torch, read from their ELF files.

An extension that was compiled for another torch asks for C++ symbols that the installed libtorch
does not define. Python binds all symbols when it imports an extension, so one that is missing is a
sure ImportError, and it shows here.
"""

from __future__ import annotations

import os

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from ..model.facts import Binary, Distribution
from ..model.pattern import pattern
from ..model.record import NamedTuple
from ..model.versions import canonicalize_name
from .elf import ElfError, ElfFile, cxx11_abi_of, highest, is_torch_symbol, open_elf
from .interpreter import interpreter_of, listing
from .torch_build import torch_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

    from .dynamic_loader import Loaded
    from .machine import Machine
    from .torch_build import TorchProcess

__all__ = ["foreign_python", "read_binaries"]

_MOST_FILES = 200
_MOST_DEEP = 5000
_MOST_NAMED = 8
_MOST_SYMBOLS = 20_000

# The driver's libraries come with the host; whether they are there is a question of its own.
_DRIVER = pattern(r"lib(cuda|nvidia-.*|nvcuvid|nvoptix)\.so")
_TORCH_LIBRARY = pattern(r"lib(torch\w*|c10\w*)\.so\Z")
_BITSANDBYTES = pattern(r"libbitsandbytes_(?:cuda|rocm|xpu|cpu)(\d*)")
_PYTHON_TAG = pattern(r"\.(cpython-\d+t?|pypy\d+-\w+)-")
# Files for one of several torch or CUDA releases, of which a package takes the one that fits.
_VARIANT_FILE = pattern(r"torch\d|cu(?:da)?\d\d")
# Packages whose only file may look like one of several.
_ONE_VARIANT = (
    "flash-attn",
    "flash-attn-3",
    "vllm",
    "vllm-flash-attn",
    "apex",
    "causal-conv1d",
)
# torch's libraries, those in which most symbols are found first.
_MOST_SYMBOLS_FIRST = (
    "libtorch_cpu.so",
    "libc10.so",
    "libtorch_python.so",
    "libtorch_cuda.so",
    "libc10_cuda.so",
    "libtorch_hip.so",
    "libc10_hip.so",
)


def read_binaries(machine: Machine, places: Mapping[str, Tuple[str, ...]]) -> Dict[str, Fact[Any]]:
    """Read the extension modules that matter; with ``deep`` all that link torch.

    Args:
        machine: The target.
        places: Where each distribution that matters keeps its extensions
            (:data:`~envdoctor.probes.native.PLACES`).
    """
    process = torch_process(machine)
    reader = _Reader(machine, process)
    try:
        binaries: List[Binary] = []
        seen: Set[str] = set()
        for name, path in _files(machine, places, process):
            if path not in seen and len(binaries) < _MOST_FILES:
                seen.add(path)
                binary = reader.read(name, path)
                if binary is not None:
                    binaries.append(binary)
        if machine.deep:
            binaries += reader.others(seen)
    finally:
        reader.close()
    evidence = Evidence(", ".join(interpreter_of(machine).search_path), "ELF files")
    return {
        "binaries": Known(tuple(binaries), evidence),
        "glibcxx.version": _glibcxx(machine, process),
    }


def _files(
    machine: Machine, places: Mapping[str, Tuple[str, ...]], process: Optional[TorchProcess]
) -> Iterator[Tuple[str, str]]:
    """The extension files of the installed distributions, with the name of the distribution."""
    if process is not None:
        names = machine.listdir(f"{process.folder}/lib") or ()
        for library in ("libtorch_cpu.so", "libtorch_cuda.so"):
            if library in names:
                yield "torch", f"{process.folder}/lib/{library}"
    distributions: Mapping[str, Distribution] = machine.value("distributions", {})
    for name in places:
        distribution = distributions.get(name)
        if distribution is not None and distribution.location:
            for path in _files_at(machine, _source_folder(distribution), places[name]):
                if _is_chosen(os.path.basename(path), name, process):
                    yield name, path


def _files_at(machine: Machine, root: str, places: Sequence[str]) -> Iterator[str]:
    for place in places:
        inner, _, stem = place.rpartition("/")
        folder = os.path.join(root, inner).rstrip("/")
        for entry in listing(machine, folder) or ():
            if entry.startswith(stem) and entry.endswith(".so"):
                yield f"{folder}/{entry}"


def _source_folder(distribution: Distribution) -> str:
    """Where the modules of a distribution lie: its location, or what an editable install names."""
    if distribution.editable and distribution.direct_url.startswith("file:///"):
        return distribution.direct_url[len("file://") :]
    return distribution.location


def _is_chosen(entry: str, name: str, process: Optional[TorchProcess]) -> bool:
    """Whether the package takes this of several files: bitsandbytes ships one for each CUDA."""
    if name == "bitsandbytes":
        match = _BITSANDBYTES.match(entry)
        cuda = (process.cuda or "") if process is not None else ""
        return match is not None and bool(cuda) and match.group(1) == cuda.replace(".", "")
    return name in _ONE_VARIANT or not _VARIANT_FILE.search(entry)


def foreign_python(path: str, abi: str) -> Optional[str]:
    """Return the tag of another Python that a file's name holds (``cpython-310`` under ``cp311``).

    None where it holds none: files for the stable ABI and libraries suit every Python.
    """
    match = _PYTHON_TAG.search(os.path.basename(path))
    if match is None or not abi.startswith("cp"):
        return None
    return None if match.group(1) == "cpython-" + abi[2:] else match.group(1)


class _Reader:
    """Reads files against one torch, whose libraries stay open between look-ups."""

    def __init__(self, machine: Machine, process: Optional[TorchProcess]) -> None:
        self.machine = machine
        self.process = process
        self.abi = interpreter_of(machine).abi
        self.open: Dict[str, Optional[ElfFile]] = {}
        self.defined: Dict[str, bool] = {}
        self.torch: List[ElfFile] = self._torch_libraries(process) if process is not None else []

    def close(self) -> None:
        for elf in self.open.values():
            if elf is not None:
                elf.close()

    def _torch_libraries(self, process: TorchProcess) -> List[ElfFile]:
        folder = f"{process.folder}/lib"
        names = self.machine.listdir(folder) or ()
        ordered = [name for name in _MOST_SYMBOLS_FIRST if name in names]
        ordered += [name for name in names if _TORCH_LIBRARY.match(name) and name not in ordered]
        return self._libraries(f"{folder}/{name}" for name in ordered)

    def _libraries(self, paths: Iterable[str]) -> List[ElfFile]:
        """Those of these files that can be read; they stay open."""
        return [elf for elf in map(self._library, paths) if elf is not None]

    def _library(self, path: str) -> Optional[ElfFile]:
        if path not in self.open:
            try:
                self.open[path] = self.machine.use(open_elf, path)
            except (OSError, ElfError):
                self.open[path] = None
        return self.open[path]

    def read(self, distribution: str, path: str) -> Optional[Binary]:
        """Read one file; None where it is no ELF file."""
        try:
            with self.machine.use(open_elf, path) as elf:
                return self._judge(distribution, path, elf)
        except (OSError, ElfError):
            return None

    def _judge(self, distribution: str, path: str, elf: ElfFile) -> Binary:
        needs = _Needs()
        process = self.process
        if (
            process is not None
            and process.links.loader.kind == elf.kind
            and foreign_python(path, self.abi) is None
        ):
            needs = self._unmet(process, path, elf)
        versions = [version for several in elf.version_needs().values() for version in several]
        return Binary(
            path,
            distribution,
            elf.needed,
            highest(versions, "GLIBC"),
            highest(versions, "GLIBCXX"),
            cxx11_abi_of(needs.symbols),
            needs.missing,
            needs.undefined,
        )

    def _unmet(self, process: TorchProcess, path: str, elf: ElfFile) -> _Needs:
        """Load a file as torch's process would, and say what is not there then."""
        symbols: Sequence[str] = ()
        undefined: Tuple[str, ...] = ()
        missing: Iterable[str]
        if path.startswith(process.folder + "/lib/"):
            missing = sorted(
                name
                for name, asker in process.links.missing.items()
                if os.path.normpath(asker) == path
            )
        else:
            missing, came = process.links.trial(path)
            if _links_torch(elf.needed):
                symbols = list(filter(is_torch_symbol, elf.undefined()[:_MOST_SYMBOLS]))
                undefined = self._undefined(symbols, came)
        # What lies beside a file is loaded by its package first (torchaudio, transformer-engine).
        beside = listing(self.machine, os.path.dirname(path)) or ()
        missing = tuple(name for name in missing if not _DRIVER.match(name) and name not in beside)
        return _Needs(symbols, missing, undefined)

    def _undefined(self, symbols: Sequence[str], came: Sequence[Loaded]) -> Tuple[str, ...]:
        """The symbols that neither torch nor what comes with the file defines."""
        if not self.torch:
            return ()
        names: List[str] = []
        for name in symbols:
            if name not in self.defined:
                self.defined[name] = _may_define(self.torch, name)
            if self.defined[name]:
                continue
            if not _may_define(self._libraries(held.path for held in came[1:]), name):
                names.append(name)
                if len(names) >= _MOST_NAMED:
                    break
        return tuple(sorted(names))

    def others(self, seen: Set[str]) -> List[Binary]:
        """Every further extension below the search path that links torch (``deep``)."""
        binaries: List[Binary] = []
        count = 0
        for site in interpreter_of(self.machine).search_path:
            for path in self._extensions_below(site):
                if count >= _MOST_DEEP:
                    return binaries
                if path in seen or path.startswith(f"{site}/torch/"):
                    continue
                count += 1
                package = path[len(site) + 1 :].split("/")[0].split(".")[0]
                binary = self.read(canonicalize_name(package), path)
                if binary is not None and _links_torch(binary.needed):
                    binaries.append(binary)
        return binaries

    def _extensions_below(self, site: str) -> Iterator[str]:
        pending = [site]
        while pending:
            folder = pending.pop()
            for entry in self.machine.listdir(folder) or ():
                path = f"{folder}/{entry}"
                if entry.endswith(".so"):
                    if not _VARIANT_FILE.search(entry):
                        yield path
                elif "." not in entry and entry != "__pycache__" and self._is_own_folder(path):
                    pending.append(path)

    def _is_own_folder(self, path: str) -> bool:
        return self.machine.isdir(path) and self.machine.readlink(path) is None


class _Needs(NamedTuple):
    """What a file asks of torch, and what of all that it asks for is not there."""

    symbols: Sequence[str] = ()
    missing: Tuple[str, ...] = ()
    undefined: Tuple[str, ...] = ()


def _links_torch(needed: Iterable[str]) -> bool:
    return any(_TORCH_LIBRARY.match(name) for name in needed)


def _may_define(libraries: Iterable[ElfFile], name: str) -> bool:
    """Whether one of these defines a symbol; one without a hash table cannot be asked, and may."""
    return any(library.defines(name) is not False for library in libraries)


def _glibcxx(machine: Machine, process: Optional[TorchProcess]) -> Fact[str]:
    if process is None:
        return Absent(
            Evidence(", ".join(interpreter_of(machine).search_path), "torch is not installed")
        )
    held = process.links.find("libstdc++.so.6")
    if held is None:
        return Unknown("torch's process would load no libstdc++.so.6")
    try:
        with machine.use(open_elf, held.path) as elf:
            version = highest(elf.version_definitions(), "GLIBCXX")
    except (OSError, ElfError) as error:
        return Unknown(f"{held.path}: {error}")
    if not version:
        return Unknown(f"{held.path} defines no GLIBCXX version")
    return Known(version, Evidence(held.path, held.origin))
