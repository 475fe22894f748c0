"""Extension modules, read from their ELF files: what they need of glibc, of CUDA and of torch,
without importing them.

An extension that was compiled for another torch asks for C++ symbols that the installed libtorch
does not define. Python binds all symbols when it imports an extension, so one that is missing is a
sure ImportError, and it shows here.
"""

from __future__ import annotations

import os

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from ..model.facts import Binary, Distribution
from ..model.pattern import pattern
from ..model.versions import canonicalize_name
from .elf import ElfError, ElfFile, cxx11_abi_of, highest, is_torch_symbol, open_elf
from .interpreter import interpreter_of, listing
from .native import BINARY_FIELDS, PLACES
from .torch_build import torch_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

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


def read_binaries(machine: Machine) -> Dict[str, Fact[Any]]:
    """Read the extension modules of the distributions that matter (all that link torch with
    ``deep``).
    """
    interpreter = interpreter_of(machine)
    listed: Mapping[str, Distribution] = machine.value("distributions", {})
    if not interpreter.search_path:
        return dict.fromkeys(BINARY_FIELDS, Unknown("no folder of distributions is known"))
    process = torch_process(machine)
    reader = _Reader(machine, process)
    try:
        found: List[Binary] = []
        seen: Set[str] = set()
        for name, path in _files(machine, listed, process):
            if path not in seen and len(found) < _MOST_FILES:
                seen.add(path)
                binary = reader.read(name, path)
                if binary is not None:
                    found.append(binary)
        if machine.deep:
            found += reader.others(seen)
    finally:
        reader.close()
    evidence = Evidence(", ".join(interpreter.search_path), "ELF files")
    return {
        "binaries": Known(tuple(found), evidence),
        "glibcxx.version": _glibcxx(machine, process),
    }


def _files(
    machine: Machine, listed: Mapping[str, Distribution], process: Optional[TorchProcess]
) -> Iterator[Tuple[str, str]]:
    """The extension files of the installed distributions, with the name of the distribution."""
    if process is not None:
        names = machine.listdir(f"{process.folder}/lib") or ()
        yield from (
            ("torch", f"{process.folder}/lib/{name}")
            for name in ("libtorch_cpu.so", "libtorch_cuda.so")
            if name in names
        )
    for name, places in PLACES.items():
        distribution = listed.get(name)
        if distribution is None or not distribution.location:
            continue
        root = distribution.location
        if distribution.editable and distribution.direct_url.startswith("file:///"):
            root = distribution.direct_url[len("file://") :]
        for place in places:
            folder, _, stem = place.rpartition("/")
            folder = f"{root}/{folder}" if folder else root
            for entry in listing(machine, folder) or ():
                if (
                    entry.endswith(".so")
                    and entry.startswith(stem)
                    and _chosen(entry, name, process)
                ):
                    yield name, f"{folder}/{entry}"


def _chosen(entry: str, name: str, process: Optional[TorchProcess]) -> bool:
    """Whether the package takes this of several files: bitsandbytes ships one for each CUDA."""
    if name == "bitsandbytes":
        match = _BITSANDBYTES.match(entry)
        return (
            process is not None
            and match is not None
            and bool(process.cuda)
            and match.group(1) == (process.cuda or "").replace(".", "")
        )
    return name in (
        "flash-attn",
        "flash-attn-3",
        "vllm",
        "vllm-flash-attn",
        "apex",
        "causal-conv1d",
    ) or not _VARIANT_FILE.search(entry)


def foreign_python(path: str, abi: str) -> Optional[str]:
    """Return the tag of a file that another Python's name says it is for: ``cpython-310`` under
    ``cp311``; else None.

    Files for the stable ABI and libraries without a tag suit every Python.
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
        self.own: List[ElfFile] = []
        if process is not None:
            folder = f"{process.folder}/lib"
            names = machine.listdir(folder) or ()
            # The libraries in which most symbols are found come first.
            order = (
                "libtorch_cpu.so",
                "libc10.so",
                "libtorch_python.so",
                "libtorch_cuda.so",
                "libc10_cuda.so",
                "libtorch_hip.so",
                "libc10_hip.so",
            )
            more = [name for name in names if _TORCH_LIBRARY.match(name) and name not in order]
            for name in (*(name for name in order if name in names), *more):
                elf = self._library(f"{folder}/{name}")
                if elf is not None:
                    self.own.append(elf)

    def close(self) -> None:
        for elf in self.open.values():
            if elf is not None:
                elf.close()

    def _library(self, path: str) -> Optional[ElfFile]:
        if path not in self.open:
            try:
                self.open[path] = open_elf(self.machine.path(path))
            except (OSError, ElfError):
                self.open[path] = None
        return self.open[path]

    def read(self, distribution: str, path: str) -> Optional[Binary]:
        """Read one file; None where it is no ELF file."""
        try:
            with open_elf(self.machine.path(path)) as elf:
                return self._judge(distribution, path, elf)
        except (OSError, ElfError):
            return None

    def _judge(self, distribution: str, path: str, elf: ElfFile) -> Binary:
        versions = [version for several in elf.version_needs().values() for version in several]
        symbols: Sequence[str] = ()
        missing: Tuple[str, ...] = ()
        undefined: Tuple[str, ...] = ()
        process = self.process
        links_torch = any(_TORCH_LIBRARY.match(name) for name in elf.needed)
        if (
            process is not None
            and process.links.loader.kind == elf.kind
            and foreign_python(path, self.abi) is None
        ):
            if path.startswith(process.folder + "/lib/"):
                missing = tuple(
                    sorted(
                        name
                        for name, asker in process.links.missing.items()
                        if os.path.normpath(asker) == path
                    )
                )
            else:
                missing, came = process.links.trial(path)
                if links_torch:
                    symbols = [
                        name for name in elf.undefined()[:_MOST_SYMBOLS] if is_torch_symbol(name)
                    ]
                    undefined = self._undefined(symbols, came)
            beside = listing(self.machine, os.path.dirname(path)) or ()
            # What lies beside a file is loaded by its package first (torchaudio,
            # transformer-engine).
            missing = tuple(
                name for name in missing if not _DRIVER.match(name) and name not in beside
            )
        return Binary(
            path,
            distribution,
            elf.needed,
            highest(versions, "GLIBC"),
            highest(versions, "GLIBCXX"),
            cxx11_abi_of(symbols),
            missing,
            undefined,
        )

    def _undefined(self, symbols: Sequence[str], came: Sequence[Loaded]) -> Tuple[str, ...]:
        """The symbols that neither torch nor what comes with the file defines."""
        found = []
        companions: Optional[List[ElfFile]] = None
        for name in symbols:
            known = self.defined.get(name)
            if known is None:
                # A library without a hash table cannot be asked: no verdict from it.
                known = any(library.defines(name) is not False for library in self.own)
                self.defined[name] = known
            if known:
                continue
            if companions is None:
                opened = [self._library(held.path) for held in came[1:]]
                companions = [library for library in opened if library is not None]
            if not any(library.defines(name) is not False for library in companions):
                found.append(name)
                if len(found) >= _MOST_NAMED:
                    break
        return tuple(sorted(found)) if self.own else ()

    def others(self, seen: Set[str]) -> List[Binary]:
        """Every further extension below the search path that links torch (``deep``)."""
        found: List[Binary] = []
        count = 0
        for site in interpreter_of(self.machine).search_path:
            pending = [site]
            while pending and count < _MOST_DEEP:
                folder = pending.pop()
                for entry in self.machine.listdir(folder) or ():
                    path = f"{folder}/{entry}"
                    if ".so" not in entry:
                        if (
                            "." not in entry
                            and entry != "__pycache__"
                            and self.machine.isdir(path)
                            and self.machine.readlink(path) is None
                        ):
                            pending.append(path)
                        continue
                    if (
                        path in seen
                        or not entry.endswith(".so")
                        or _VARIANT_FILE.search(entry)
                        or path.startswith(f"{site}/torch/")
                    ):
                        continue
                    count += 1
                    binary = self.read(
                        canonicalize_name(path[len(site) + 1 :].split("/")[0].split(".")[0]), path
                    )
                    if binary is not None and any(
                        _TORCH_LIBRARY.match(name) for name in binary.needed
                    ):
                        found.append(binary)
        return found


def _glibcxx(machine: Machine, process: Optional[TorchProcess]) -> Fact[str]:
    if process is None:
        return Absent(
            Evidence(", ".join(interpreter_of(machine).search_path), "torch is not installed")
        )
    held = process.links.find("libstdc++.so.6")
    if held is None:
        return Unknown("libstdc++.so.6 is not found")
    try:
        with open_elf(machine.path(held.path)) as elf:
            version = highest(elf.version_definitions(), "GLIBCXX")
    except (OSError, ElfError) as error:
        return Unknown(f"{held.path}: {error}")
    return (
        Known(version, Evidence(held.path, held.origin))
        if version
        else Unknown(f"{held.path} defines no GLIBCXX version")
    )
