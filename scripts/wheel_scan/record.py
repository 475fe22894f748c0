"""What one wheel holds, member by member, and the folder that keeps it by the hash of the wheel.

A record is plain JSON. It is kept after each member, so that a run that is cut off goes on where it
was; a wheel never changes, so what was read once is never read again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from matrix_refresh.errors import Refused

from envdoctor.file_replacement import replace_file
from envdoctor.probes.elf import ElfError, ElfFile, cxx11_abi_of, highest, is_torch_symbol

from .fatbin import Stream, scan
from .members import Profile, bundled, wanted
from .zip_range import RemoteZip

__all__ = ["Records", "read_wheel"]

#: Part of the path of every record: raised when another reading of the same bytes is wanted.
_FORMAT = "1"
_MOST_MEMBER = 6 << 30
_MOST_TEXT = 1 << 20
_MOST_TOOL = 256 << 20
#: Bytes outside of fat binaries that are kept on disk for the ELF reader.
_MOST_HOST = 3 << 30
_MOST_NAMES = 40

Record = Dict[str, Any]


class Records:
    """Records by the hash of the wheel."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.join(folder, "wheels", _FORMAT)

    def load(self, sha256: str) -> Optional[Record]:
        """Return the record of a wheel, or None."""
        try:
            with open(self._path(sha256), encoding="utf-8") as file:
                record = json.load(file)
        except (OSError, ValueError):
            return None
        return (
            record
            if isinstance(record, dict)
            and record.get("sha256") == sha256
            and isinstance(record.get("members"), dict)
            else None
        )

    def keep(self, record: Record) -> None:
        """Keep a record; one of a wheel without hash is not kept."""
        if record["sha256"]:
            path = self._path(record["sha256"])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            replace_file(
                path, json.dumps(record, ensure_ascii=True, sort_keys=True).encode("ascii")
            )

    def _path(self, sha256: str) -> str:
        return os.path.join(self._folder, sha256[:2], f"{sha256}.json")


def read_wheel(
    archive: RemoteZip,
    record: Record,
    profile: Profile,
    deep: bool,
    may_read: Callable[[int], bool],
    kept: Callable[[Record], None],
) -> bool:
    """Read what a record lacks. Returns whether everything that is wanted was read.

    Args:
        archive: the wheel.
        record: what was read before, changed in place; ``{"sha256", "file", "members": {}}`` in the
            beginning.
        profile: what is wanted of it.
        deep: also what is very large.
        may_read: asked before each member with its packed size; False leaves it for another run.
        kept: called after each member.
    """
    record["size"] = archive.size
    record["bundled"] = bundled(archive.members)
    if profile.cubins:
        record["cubins"] = _cubins(list(archive.members))
    members = record["members"]
    order = sorted(
        wanted(profile, archive.members, deep), key=lambda item: archive.members[item[0]].packed
    )
    complete = True
    for name, how in order:
        if name in members:
            continue
        if not may_read(archive.members[name].packed):
            complete = False
            continue
        members[name] = {
            "how": how,
            "size": archive.members[name].size,
            "crc": archive.members[name].crc,
            **_READERS[how](archive, name),
        }
        kept(record)
    record["complete"] = complete
    kept(record)
    return complete


def _cubins(names: List[str]) -> Dict[str, int]:
    """Count machine code files by the architecture in their names ("100f"); under "" those whose
    name has none.
    """
    counts: Counter[str] = Counter()
    for name in names:
        if name.endswith(".cubin"):
            match = re.search(r"[sS][mM]_?(\d{2,3}[af]?)", name.rsplit("/", 1)[-1])
            counts[match.group(1).lower() if match else ""] += 1
    return dict(sorted(counts.items()))


# --------------------------------------------------------------------------------------------------
# readers


def _code(archive: RemoteZip, name: str) -> Record:
    """Read fat binaries, and ELF parts from a sparse copy of everything else."""
    codes: Dict[str, Dict[str, Any]] = {}
    odd: Counter[str] = Counter()
    with tempfile.TemporaryFile(prefix="scan-wheels-") as copy:
        written = 0

        def keep(offset: int, piece: bytes) -> None:
            nonlocal written
            written += len(piece)
            if written > _MOST_HOST:
                raise Refused(f"{name} has more than {_MOST_HOST} bytes outside of fat binaries")
            copy.seek(offset)
            copy.write(piece)

        for fatbin in scan(Stream(archive.stream(name, _MOST_MEMBER), keep)):
            if fatbin.odd:
                odd[fatbin.odd] += 1
            entry = codes.setdefault(
                fatbin.signature, {"count": 0, "without_kernels": 0, "kernels": Counter()}
            )
            entry["count"] += 1
            kernels = fatbin.kernels
            if kernels is not None:
                entry["without_kernels"] += not kernels
                entry["kernels"].update(_family(kernel) for kernel in kernels)
        copy.flush()
        elf = _elf_parts(copy.fileno())
    for entry in codes.values():
        entry["kernels"] = dict(sorted(entry["kernels"].most_common(_MOST_NAMES)))
    return {"elf": elf, "fatbins": dict(sorted(codes.items())), "odd": dict(sorted(odd.items()))}


def _family(kernel: str) -> str:
    """Return what tells kernels of one source apart from others: ``_ZN6marlin6MarlinILl…`` gives
    ``marlin::Marlin``.
    """
    match = re.match(r"_Z(?:L?N[KVr]*)?(.*)", kernel)
    rest = match.group(1) if match else ""
    parts: List[str] = []
    while len(parts) < 2:
        number = re.match(r"L?(\d{1,3})", rest)
        if number is None:
            break
        end = number.end() + int(number.group(1))
        part = rest[number.end() : end]
        rest = rest[end:]
        if not part.startswith(("_GLOBAL__N_", "_INTERNAL_")):
            parts.append(part)
    return "::".join(parts) or kernel[:60]


def _elf_parts(descriptor: int) -> Optional[Record]:
    """Return what the loader would want of a library; None where it is no ELF file."""
    try:
        with ElfFile(os.dup(descriptor)) as file:
            needs = file.version_needs()
            versions = [version for names in needs.values() for version in names]
            undefined = file.undefined()
            symbols = sorted(symbol for symbol in undefined if is_torch_symbol(symbol))
            return {
                "needed": list(file.needed),
                "soname": file.soname,
                "glibc": highest(versions, "GLIBC"),
                "glibcxx": highest(versions, "GLIBCXX"),
                "cxx11abi": cxx11_abi_of(symbols),
                "torch_symbols": len(symbols),
                "torch_digest": hashlib.sha256(
                    "\n".join(symbols).encode("utf-8", "surrogateescape")
                ).hexdigest()[:16]
                if symbols
                else None,
            }
    except ElfError as error:
        return {"fault": str(error)}


def _elf(archive: RemoteZip, name: str) -> Record:
    with tempfile.TemporaryFile(prefix="scan-wheels-") as copy:
        for piece in archive.stream(name, _MOST_HOST):
            copy.write(piece)
        copy.flush()
        return {"elf": _elf_parts(copy.fileno())}


#: What lies before it need not end in a zero byte: a docstring of known length does not.
_ARCHITECTURES = re.compile(rb"((?:(?:sm|compute)_\d{2,3}[af]? ?){2,40})\0")


def _archs(archive: RemoteZip, name: str) -> Record:
    with tempfile.TemporaryFile(prefix="scan-wheels-") as copy:
        tail = b""
        lists: List[str] = []
        for piece in archive.stream(name, _MOST_HOST):
            copy.write(piece)
            data = tail + piece
            lists += [match.group(1).decode() for match in _ARCHITECTURES.finditer(data)]
            tail = data[-1024:]
        copy.flush()
        # The list of torch.cuda.get_arch_list is the longest of such strings.
        return {
            "elf": _elf_parts(copy.fileno()),
            "archs": max(lists, key=len).split() if lists else [],
        }


_TOOL_VERSION = re.compile(rb"Cuda compilation tools, release [0-9.]+, V(\d+\.\d+\.\d+)")
# The virtual architectures that ``ptxas --help`` lists under --gpu-name; its "sm_" strings name
# long gone ones as well.
_TOOL_TARGET = re.compile(rb"compute_(\d{2,3}[af]?)(?=\0)")


def _tool(archive: RemoteZip, name: str) -> Record:
    version = None
    targets = set()
    tail = b""
    for piece in archive.stream(name, _MOST_TOOL):
        data = tail + piece
        match = _TOOL_VERSION.search(data)
        if match is not None:
            version = match.group(1).decode()
        targets |= {target.decode() for target in _TOOL_TARGET.findall(data)}
        tail = data[-256:]
    return {
        "version": version,
        "targets": sorted(targets, key=lambda text: (int(text.rstrip("af")), text)),
    }


_VALUES: Mapping[str, Tuple[Tuple[str, str], ...]] = {
    "version.py": (
        ("cuda", r"^cuda\b[^=\n]*=\s*'([0-9.]+)'"),
        ("version", r"^__version__\s*=\s*'([^'\n]{1,80})'"),
    ),
    "TorchConfig.cmake": (("cxx11abi", r"_GLIBCXX_USE_CXX11_ABI=([01])"),),
    "cpp_lib.json": (
        ("cuda", r'"cuda":\s*"?(\d+)'),
        ("torch", r'"torch":\s*"([^"\n]{1,40})"'),
        ("archs", r'"TORCH_CUDA_ARCH_LIST":\s*"([^"\n]{1,200})"'),
    ),
}


def _text(archive: RemoteZip, name: str) -> Record:
    content = archive.content(name, _MOST_TEXT).decode("utf-8", "replace")
    values = {}
    for key, pattern in _VALUES.get(name.rsplit("/", 1)[-1], ()):
        match = re.search(pattern, content, re.MULTILINE)
        if match is not None:
            values[key] = match.group(1)
    return {"values": values}


_READERS: Mapping[str, Callable[[RemoteZip, str], Record]] = {
    "code": _code,
    "elf": _elf,
    "archs": _archs,
    "tool": _tool,
    "text": _text,
}
