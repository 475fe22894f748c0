"""Dynamic symbols of libraries in wheels: what torch exports, what packages leave undefined.

What was read is kept by the hash of the wheel, member by member, so that a run may be cut off.
torch's libraries are repaired with patchelf, which moves names and hash table to their end, so
that a member is inflated whole, and kept without its code. ``libtorch_cuda.so`` (500 MB packed) is
left out: what it exports is not known.
"""

from __future__ import annotations

import json
import os
import re
import struct
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from envdoctor.file_replacement import replace_file
from envdoctor.probes.elf import ElfError, ElfFile, highest, is_torch_symbol

from .zip_range import RemoteZip

__all__ = ["LINKED", "SymbolRecords", "read_consumer", "read_torch", "unpacked"]

#: Packages whose wheels on the default index are linked to torch.
LINKED = (
    *("torchvision", "torchaudio", "xformers", "vllm", "sgl-kernel", "sglang-kernel", "torchao"),
    *("auto-gptq", "autoawq-kernels", "vllm-flash-attn", "torchcodec", "tensordict", "torchdata"),
    *("fbgemm-gpu", "torch-memory-saver", "torchtext", "lmcache", "torch-tensorrt"),
    *("torch-c-dlpack-ext", "xgrammar", "flashinfer-python", "exllamav2", "gptqmodel"),
)
_FORMAT = "1"
_MOST_MEMBER = 2 << 30
_MOST_CONSUMER = 48 << 20  # packed: what is larger is machine code for GPUs, mostly
_HEAD = 24 << 20  # .dynsym lies in the first segment, of 16 MB at most
_TORCH = re.compile(r"torch/lib/lib(?:c10|c10_cuda|torch_python|torch_cpu)\.so")
_LIBRARY = re.compile(r"[^/]+(?:/[^/]+)*\.so")


class SymbolRecords:
    """Records by the hash of the wheel, packed."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.join(folder, "symbols", _FORMAT)

    def load(self, sha256: str) -> Dict[str, Any]:
        """Return the record of a wheel, an empty one where nothing was read."""
        try:
            with open(self._path(sha256), "rb") as file:
                record = json.loads(zlib.decompress(file.read()))
        except (OSError, ValueError, zlib.error):
            return {}
        return record if isinstance(record, dict) else {}

    def keep(self, sha256: str, record: Mapping[str, Any]) -> None:
        """Keep a record."""
        path = self._path(sha256)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        replace_file(path, zlib.compress(json.dumps(record, sort_keys=True).encode("ascii")))

    def _path(self, sha256: str) -> str:
        return os.path.join(self._folder, sha256[:2], f"{sha256}.z")


def read_torch(archive: RemoteZip, record: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    """Read what a record of a torch wheel lacks, yielding it after each library: ``exports``, the
    names of c10, at, torch and caffe2.
    """
    for name in sorted(archive.members, key=lambda name: archive.members[name].packed):
        library = name.rsplit("/", 1)[-1]
        if not _TORCH.fullmatch(name) or library in record.get("exports", {}):
            continue
        with unpacked(archive, name) as file:
            exported = sorted(filter(_is_of_torch, file.exported()))
        record.setdefault("exports", {})[library] = "\n".join(exported)
        yield record


def read_consumer(archive: RemoteZip, record: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    """Read what a record of a package that is linked to torch lacks, yielding it after each
    library: its NEEDED, symbol versions, and undefined symbols of torch.
    """
    for name in sorted(archive.members, key=lambda name: archive.members[name].packed):
        if not _LIBRARY.fullmatch(name) or name in record.get("libraries", {}):
            continue
        if archive.members[name].packed > _MOST_CONSUMER:
            continue
        try:
            with unpacked(archive, name) as file:
                needs = file.version_needs()
                versions = [version for names in needs.values() for version in names]
                entry: Dict[str, Any] = {
                    "needed": list(file.needed),
                    "glibc": highest(versions, "GLIBC"),
                    "glibcxx": highest(versions, "GLIBCXX"),
                    "undefined": sorted(filter(_is_of_torch, file.undefined())),
                }
        except ElfError as error:
            entry = {"fault": str(error)}
        record.setdefault("libraries", {})[name] = entry
        yield record


#: The functions of torch's stable C interface (torch/csrc/inductor/aoti_torch/c/shim.h, and
#: torch/csrc/stable/c/shim.h); those for devices may be of libtorch_cuda, which is not read.
_STABLE = re.compile(r"(?:aoti_)?torch_(?!\w*(?:cuda|guard|stream|xpu|mps))[a-z]\w*\Z")


def _is_of_torch(name: str) -> bool:
    return is_torch_symbol(name) or name.startswith("THP") or _STABLE.match(name) is not None


def unpacked(archive: RemoteZip, name: str) -> ElfFile:
    """Open a sparse copy of a library: its head, and what comes after its code and constants."""
    with tempfile.TemporaryFile(prefix="scan-wheels-") as copy:
        place, tail = 0, -1
        for piece in archive.stream(name, _MOST_MEMBER):
            if tail < 0:
                tail = _writable_from(piece)
            if place < _HEAD or place + len(piece) > tail:
                copy.seek(place)
                copy.write(piece)
            place += len(piece)
        copy.flush()
        return ElfFile(os.dup(copy.fileno()))


def _writable_from(head: bytes) -> int:
    """Return where the first writable segment of a 64-bit library begins, 0 where that is not
    known: the dynamic section lies in it, and what patchelf adds behind it.
    """
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
        return 0
    start, size, count = *struct.unpack_from("<Q", head, 32), *struct.unpack_from("<HH", head, 54)
    if size < 56 or start + size * count > len(head):
        return 0
    headers = [struct.unpack_from("<IIQ", head, start + size * place) for place in range(count)]
    return min((place for kind, flags, place in headers if kind == 1 and flags & 2), default=0)
