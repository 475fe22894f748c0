"""A small reader of ELF files: what a library needs, where it looks, which symbols it has.

Only the program headers and the dynamic section are used, as the loader does (gABI chapter 5);
section headers may be stripped. Everything is read with ``pread`` in bounded pieces, so that a 700
MB kernel library costs some microseconds and a truncated or hostile file costs an
:class:`ElfError`.
"""

from __future__ import annotations

import os
import struct

from ..model.pattern import pattern
from ..model.record import NamedTuple
from ..regular_files import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, List, Mapping, Optional, Tuple

__all__ = [
    "ElfError",
    "ElfFile",
    "cxx11_abi_of",
    "highest",
    "is_torch_symbol",
    "open_elf",
]

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_NEEDED, _HASH, _STRTAB, _SYMTAB, _STRSZ, _SONAME, _RPATH = 1, 4, 5, 6, 10, 14, 15
_RUNPATH, _GNU_HASH, _FLAGS_1, _VERDEF, _VERDEFNUM, _VERNEED, _VERNEEDNUM = (
    29,
    0x6FFFFEF5,
    0x6FFFFFFB,
    0x6FFFFFFC,
    0x6FFFFFFD,
    0x6FFFFFFE,
    0x6FFFFFFF,
)
_DF_1_NODEFLIB = 0x800
_SHN_UNDEF, _STB_WEAK = 0, 2

_MAX_HEADERS = 512
_MAX_DYNAMIC = 1 << 16  # bytes
_MAX_STRINGS = 64 << 20
_MAX_SYMBOLS = 1 << 20
_MAX_CHAIN = 1 << 12
_MAX_EXPORTED = 1 << 21


class ElfError(ValueError):
    """The file is no ELF file that a loader would take."""


def open_elf(path: str) -> ElfFile:
    """Open a file on this machine; raises :class:`ElfError` or :class:`OSError`.

    Close it, or use it in ``with``.
    """
    descriptor = open_regular(path)
    try:
        return ElfFile(descriptor)
    except BaseException:
        os.close(descriptor)
        raise


class ElfFile:
    """One open ELF file with its dynamic section.

    ``kind`` is (class, byte order, machine), which has to be equal for two files to be linked.
    ``rpath`` and ``runpath`` are None where the tag is missing.
    """

    __slots__ = (
        "_big",
        "_descriptor",
        "_loads",
        "_place",
        "_strings",
        "_table",
        "_tags",
        "_wide",
        "interpreter",
        "kind",
        "needed",
        "rpath",
        "runpath",
        "soname",
    )

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._strings: Optional[bytes] = None
        self._table: Optional[_HashTable] = None
        head = self._read(0, 64)
        _check_header(head)
        self._wide = head[4] == 2
        self._big = ">" if head[5] == 2 else "<"
        self.kind = (head[4], head[5], self._unpack("H", head, 18)[0])
        if self._wide:
            start, size, count = *self._unpack("Q", head, 32), *self._unpack("HH", head, 54)
        else:
            start, size, count = *self._unpack("I", head, 28), *self._unpack("HH", head, 42)
        self._loads: List[Tuple[int, int, int]] = []
        dynamic = self._segments(start, size, min(count, _MAX_HEADERS))
        self._tags: Dict[int, int] = {}
        names = self._dynamic(*dynamic) if dynamic is not None else []
        self._place = self._offset(self._tags.get(_STRTAB, -1))
        self.needed: Tuple[str, ...] = tuple(self._string(offset) for offset in names)
        self.soname = self._named(_SONAME)
        self.rpath = self._named(_RPATH)
        self.runpath = self._named(_RUNPATH)

    def __enter__(self) -> ElfFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; reading afterwards is an error."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def no_default_path(self) -> bool:
        """Whether ``-z nodefaultlib`` keeps the loader from its cache and default directories."""
        return bool(self._tags.get(_FLAGS_1, 0) & _DF_1_NODEFLIB)

    # reading

    def _read(self, offset: int, size: int) -> bytes:
        if offset < 0 or size <= 0 or offset > 1 << 62:
            return b""
        return os.pread(self._descriptor, size, offset)

    def _unpack(self, layout: str, data: bytes, offset: int) -> Tuple[int, ...]:
        try:
            return struct.unpack_from(self._big + layout, data, offset)
        except struct.error as error:
            raise ElfError("header is cut short") from error

    def _segments(self, start: int, size: int, count: int) -> Optional[Tuple[int, int]]:
        """Read the program headers; return place and size of the dynamic section."""
        layout, width = ("IIQQQQQQ", 56) if self._wide else ("IIIIIIII", 32)
        if size < width or size > 4096:
            raise ElfError("odd program headers")
        table = self._read(start, size * count)
        dynamic = None
        self.interpreter: Optional[str] = None
        for place in range(0, len(table) - width + 1, size):
            values = self._unpack(layout, table, place)
            if self._wide:
                kind, _, offset, address, _, length, memory, _ = values
            else:
                kind, offset, address, _, length, memory, _, _ = values
            if kind == _PT_LOAD:
                self._loads.append((address, min(length, memory), offset))
            elif kind == _PT_DYNAMIC:
                dynamic = (offset, length)
            elif kind == _PT_INTERP:
                self.interpreter = (
                    self._read(offset, min(length, 4096))
                    .split(b"\0", 1)[0]
                    .decode("utf-8", "surrogateescape")
                )
        return dynamic

    def _offset(self, address: int) -> int:
        """The place in the file of an address, or -1."""
        for start, size, offset in self._loads:
            if start <= address < start + size:
                return address - start + offset
        return -1

    def _dynamic(self, offset: int, size: int) -> List[int]:
        table = self._read(offset, min(size, _MAX_DYNAMIC))
        layout, width = ("qQ", 16) if self._wide else ("iI", 8)
        names = []
        for tag, value in struct.iter_unpack(
            self._big + layout, table[: len(table) // width * width]
        ):
            if tag == 0:
                break
            if tag == _NEEDED:
                names.append(value)
            else:
                self._tags.setdefault(tag & 0xFFFFFFFF, value)
        return names

    def _string(self, offset: int) -> str:
        """One string of the table, read by itself: torch's libraries have megabytes of them."""
        if self._place < 0:
            raise ElfError("no string table")
        data = self._read(self._place + offset, 256)
        end = data.find(b"\0")
        if end < 0:
            data = self._read(self._place + offset, 65536)
            end = data.find(b"\0")
            if end < 0:
                raise ElfError("a string has no end")
        return data[:end].decode("utf-8", "surrogateescape")

    def _named(self, tag: int) -> Optional[str]:
        offset = self._tags.get(tag)
        return None if offset is None else self._string(offset)

    # versions

    def version_needs(self) -> Mapping[str, Tuple[str, ...]]:
        """Return the symbol versions by library: ``{"libc.so.6": ("GLIBC_2.17", …)}``."""
        versions: Dict[str, Tuple[str, ...]] = {}
        base = self._offset(self._tags.get(_VERNEED, -1))
        count = min(self._tags.get(_VERNEEDNUM, 0), 512)
        if base < 0 or not count:
            return versions
        block = self._read(base, 1 << 16)
        place = 0
        for _ in range(count):
            if place + 16 > len(block):
                break
            _, entries, file_name, first, following = self._unpack("HHIII", block, place)
            inner = place + first
            names = []
            for _ in range(min(entries, _MAX_CHAIN)):
                if inner + 16 > len(block):
                    break
                _, _, _, name, step = self._unpack("IHHII", block, inner)
                names.append(self._string(name))
                if not step:
                    break
                inner += step
            library = self._string(file_name)
            versions[library] = versions.get(library, ()) + tuple(names)
            if not following:
                break
            place += following
        return versions

    def version_definitions(self) -> Tuple[str, ...]:
        """Return the symbol versions that this library defines: ``("GLIBCXX_3.4", …)``."""
        base = self._offset(self._tags.get(_VERDEF, -1))
        count = min(self._tags.get(_VERDEFNUM, 0), _MAX_CHAIN)
        if base < 0 or not count:
            return ()
        block = self._read(base, 1 << 16)
        place = 0
        names = []
        for _ in range(count):
            if place + 20 > len(block):
                break
            *_, first, following = self._unpack("HHHHIII", block, place)
            if place + first + 8 <= len(block):
                names.append(self._string(self._unpack("I", block, place + first)[0]))
            if not following:
                break
            place += following
        return tuple(names)

    # symbols

    def _symbols(self) -> int:
        """How many entries of the symbol table must be read to see every undefined symbol."""
        place = self._offset(self._tags.get(_GNU_HASH, -1))
        if place >= 0:
            head = self._read(place, 16)
            if len(head) == 16:
                # All linkers sort the undefined symbols before the hashed ones; an empty table says
                # nothing.
                first = self._unpack("I", head, 4)[0]
                if first > 1:
                    return int(min(first, _MAX_SYMBOLS))
        place = self._offset(self._tags.get(_HASH, -1))
        if place >= 0:
            head = self._read(place, 8)
            if len(head) == 8:
                return int(min(self._unpack("I", head, 4)[0], _MAX_SYMBOLS))
        # .dynstr follows .dynsym where neither table tells.
        gap = self._offset(self._tags.get(_STRTAB, -1)) - self._offset(self._tags.get(_SYMTAB, -1))
        return max(0, min(gap // (24 if self._wide else 16), _MAX_SYMBOLS))

    def undefined(self) -> List[str]:
        """Return the names that another library must define; weak ones are left out."""
        start = self._offset(self._tags.get(_SYMTAB, -1))
        strings = self._all_strings()
        if start < 0 or not strings:
            return []
        if self._wide:
            layout, width, name_at, info_at, section_at = "IBBHQQ", 24, 0, 1, 3
        else:
            layout, width, name_at, info_at, section_at = "IIIBBH", 16, 0, 3, 5
        table = self._read(start, self._symbols() * width)
        names = []
        for entry in struct.iter_unpack(self._big + layout, table[: len(table) // width * width]):
            name = entry[name_at]
            if name and entry[section_at] == _SHN_UNDEF and entry[info_at] >> 4 != _STB_WEAK:
                end = strings.find(b"\0", name)
                if end > name:
                    names.append(strings[name:end].decode("utf-8", "surrogateescape"))
        return names

    def exported(self) -> List[str]:
        """Return the names that DT_GNU_HASH has, which are those that this library defines; of an
        older library, which has DT_HASH alone, the defined ones of all that are in it.
        """
        table = self._hash_table()
        start = self._offset(self._tags.get(_SYMTAB, -1))
        if not self._wide or start < 0:
            return []
        if table is None:
            count = self._symbols() if _HASH in self._tags else 0
            return self._defined(self._read(start, count * 24))
        buckets = self._read(table.buckets, table.size * 4)
        last = max(
            (bucket for (bucket,) in struct.iter_unpack(f"{self._big}I", buckets)), default=0
        )
        chains = self._read(table.buckets + table.size * 4, _MAX_EXPORTED * 4)
        place = max(0, last - table.first)
        while place < len(chains) // 4 and not self._unpack("I", chains, place * 4)[0] & 1:
            place += 1
        return self._defined(self._read(start + table.first * 24, (place + 1) * 24))

    def _defined(self, symbols: bytes) -> List[str]:
        strings = self._all_strings()
        return [
            strings[entry[0] : strings.find(b"\0", entry[0])].decode("utf-8", "surrogateescape")
            for entry in struct.iter_unpack(
                f"{self._big}IBBHQQ", symbols[: len(symbols) // 24 * 24]
            )
            if entry[0] and entry[3] != _SHN_UNDEF
        ]

    def _all_strings(self) -> bytes:
        if self._strings is None:
            self._strings = self._read(self._place, min(self._tags.get(_STRSZ, 0), _MAX_STRINGS))
        return self._strings

    def mentions(self, text: bytes) -> bool:
        """Tell whether a string occurs in the string table of the dynamic symbols."""
        return text in self._all_strings()

    def defines(self, name: str) -> Optional[bool]:
        """Tell through the hash table whether this library defines a symbol; None without one."""
        return self._look_up(name.encode("utf-8", "surrogateescape"))

    def _look_up(self, name: bytes) -> Optional[bool]:
        """Look a symbol up as the loader does: Bloom filter, bucket, chain (DT_GNU_HASH)."""
        table = self._hash_table()
        if table is None:
            return None
        code = gnu_hash(name)
        may_be_there = self._passes_filter(table, code)
        if not may_be_there:
            return may_be_there
        entry = self._read(table.buckets + code % table.size * 4, 4)
        if len(entry) < 4:
            return None
        index = self._unpack("I", entry, 0)[0]
        if index < table.first:
            return False
        chain = self._read(table.buckets + table.size * 4 + (index - table.first) * 4, 256)
        for step in range(len(chain) // 4):
            value = self._unpack("I", chain, step * 4)[0]
            # The lowest bit marks the end of a chain.
            is_this = self._is_defined(index + step, name) if value | 1 == code | 1 else False
            if is_this is not False:
                return is_this
            if value & 1:
                return False
        return None

    def _hash_table(self) -> Optional[_HashTable]:
        if self._table is not None:
            return self._table
        place = self._offset(self._tags.get(_GNU_HASH, -1))
        head = self._read(place, 16) if place >= 0 else b""
        if len(head) < 16 or self._offset(self._tags.get(_SYMTAB, -1)) < 0:
            return None
        count, first, blooms, shift = self._unpack("IIII", head, 0)
        if not count or not blooms:
            return None
        words = place + 16
        buckets = words + blooms * self._word[1]
        self._table = _HashTable(count, first, words, blooms, shift, buckets)
        return self._table

    @property
    def _word(self) -> Tuple[str, int]:
        """Format and size of an address."""
        return ("Q", 8) if self._wide else ("I", 4)

    def _passes_filter(self, table: _HashTable, code: int) -> Optional[bool]:
        layout, size = self._word
        bits = size * 8
        word = self._read(table.words + (code // bits) % table.blooms * size, size)
        if len(word) < size:
            return None
        mask = self._unpack(layout, word, 0)[0]
        second = code >> min(table.shift, 63)
        return bool(mask >> (code % bits) & mask >> (second % bits) & 1)

    def _is_defined(self, index: int, name: bytes) -> Optional[bool]:
        """Whether an entry of the symbol table defines this name; None where it cannot be read."""
        width = 24 if self._wide else 16
        symbols = self._offset(self._tags.get(_SYMTAB, -1))
        entry = self._read(symbols + index * width, width)
        if len(entry) < width:
            return None
        start = self._unpack("I", entry, 0)[0]
        section = self._unpack("H", entry, 6 if self._wide else 14)[0]
        if section == _SHN_UNDEF:
            return False
        return self._read(self._place + start, len(name) + 1) == name + b"\0"


class _HashTable(NamedTuple):
    """The head of DT_GNU_HASH; ``words`` and ``buckets`` are places in the file."""

    size: int  # how many buckets
    first: int  # symbol in the table
    words: int
    blooms: int
    shift: int
    buckets: int


def _check_header(head: bytes) -> None:
    if len(head) < 52 or head[:4] != b"\x7fELF":
        raise ElfError("no ELF header")
    if head[4] not in (1, 2) or head[5] not in (1, 2):
        raise ElfError("unknown ELF class or byte order")
    if head[4] == 2 and len(head) < 64:
        raise ElfError("header is cut short")


def gnu_hash(name: bytes) -> int:
    """Return the hash of a symbol name as DT_GNU_HASH uses it (Bernstein's, 32 bits)."""
    code = 5381
    for byte in name:
        code = (code * 33 + byte) & 0xFFFFFFFF
    return code


_NUMBER = pattern(r"_(\d+(?:\.\d+)*)$")


def highest(versions: Iterable[str], prefix: str) -> Optional[str]:
    """Return the greatest number of one family: ``2.34`` of ``GLIBC_2.17, GLIBC_2.34``."""
    best: Optional[Tuple[int, ...]] = None
    for version in versions:
        match = _NUMBER.search(version) if version.startswith(prefix + "_") else None
        if match is None or version[: match.start()] != prefix:
            continue
        number = tuple(int(part[:9]) for part in match.group(1).split(".")[:6])
        if best is None or number > best:
            best = number
    return None if best is None else ".".join(map(str, best))


# Itanium C++ ABI names of entities in the namespaces of libtorch, and its C shims for extensions
# with a stable ABI.
_TORCH_SYMBOL = pattern(
    r"_Z(?:TI|TS|TV|TT|GV|Th\w+?_)?N?[KVr]*(?:3c10|2at|5torch|6caffe2|4c10d)|aoti_torch_"
    r"|torch_library_|torch_call_dispatcher"
)
# Behind it may stand the codes of a few arguments of built-in types, to the end of the name.
_OLD_STRING = pattern(r"(?:RKSs|ESs|jSs)(?:$|[^a-z_0-9]|[bdfhijlmtxy]{1,3}$)")


def is_torch_symbol(name: str) -> bool:
    """Tell whether a mangled name belongs to libtorch or libc10."""
    return _TORCH_SYMBOL.match(name) is not None


def cxx11_abi_of(symbols: Iterable[str]) -> Optional[bool]:
    """Tell from libtorch's symbols for which ABI of ``std::string`` a binary was compiled, or None.

    The new ABI's string is spelt ``NSt7__cxx1112basic_string…``, the old one's ``Ss``
    (gcc.gnu.org/onlinedocs/libstdc++/manual/using_dual_abi.html).
    """
    old = False
    for name in symbols:
        if "NSt7__cxx11" in name:
            return True
        old = old or _OLD_STRING.search(name) is not None
    return False if old else None
