"""The dynamic symbols of a library of which only the beginning was read.

The linkers put .dynsym, and .dynstr behind it, into the first pages of a file; what says where they
are (the dynamic section, the section headers) lies at its end, behind hundreds of megabytes of
machine code for GPUs. So the table is looked for by its form: entry 0 is all zeros (gABI, "Symbol
Table"), the others have known bindings and types, and each name lies in one table of strings.
patchelf moves the names away: of a library that it touched this finds nothing.
"""

from __future__ import annotations

import re
import struct
from typing import Iterator, List, NamedTuple, Optional, Tuple

__all__ = ["HeadSymbols", "symbols_in_head"]

_ENTRY = struct.Struct("<IBBHQQ")
#: STB_GLOBAL, WEAK, GNU_UNIQUE: .symtab has local names and those of files as well.
_BINDINGS = frozenset((1, 2, 10))
#: STT_NOTYPE, OBJECT, FUNC, COMMON, TLS, GNU_IFUNC.
_TYPES = frozenset((0, 1, 2, 5, 6, 10))
_WEAK = 2
#: Of a section, which GNU ld leaves in .dynsym where it links for aarch64: STT_SECTION, LOCAL.
_SECTION = 3
_LEAST = 8
_LONGEST_NAME = 1 << 15
#: What patchelf leaves of a table that it moved.
_WIPED = b"X" * 16
_NAME = re.compile(rb"[\w.$@]+\Z")
_LIBRARY = re.compile(r"lib[\w+-]+\.so(?:\.\d+)*\Z")


class HeadSymbols(NamedTuple):
    """Names that a library defines and that it leaves to others (weak ones left out), and what its
    table of strings names as a library: those that it needs, its own name, and of versions.
    """

    exported: Tuple[str, ...]
    undefined: Tuple[str, ...]
    libraries: Tuple[str, ...]


def symbols_in_head(head: bytes) -> Optional[HeadSymbols]:
    """Return the dynamic symbols of a 64-bit little-endian library, None where the table or its
    names are not whole in these bytes.
    """
    if head[:6] != b"\x7fELF\x02\x01":
        return None
    for start in _candidates(head):
        entries = _entries(head, start)
        if len(entries) < _LEAST:
            continue
        end = start + (len(entries) + 1) * _ENTRY.size
        for strings in _string_tables(head, end):
            symbols = _named(head, strings, entries)
            if symbols is not None:
                return symbols
    return None


def _candidates(head: bytes) -> Iterator[int]:
    """Places of 24 zero bytes, 8 bytes aligned, behind which a symbol may stand."""
    empty = bytes(_ENTRY.size)
    place = head.find(empty, 64)
    while place >= 0:
        aligned = place + -place % 8
        if head[aligned : aligned + _ENTRY.size] == empty and _is_symbol(head, aligned + 24):
            yield aligned
        following = re.compile(rb"[^\0]").search(head, place)
        if following is None:
            return
        # The null entry is the last 24 zero bytes before the first symbol.
        last = (following.start() - _ENTRY.size) // 8 * 8
        if last > aligned and _is_symbol(head, last + 24):
            yield last
        place = head.find(empty, following.start())


def _is_symbol(head: bytes, place: int) -> bool:
    if place + _ENTRY.size > len(head):
        return False
    name, info, other, section, value, _ = _ENTRY.unpack_from(head, place)
    if info == _SECTION:
        return not name and not other and section != 0
    if not name or info >> 4 not in _BINDINGS or info & 15 not in _TYPES or other > 3:
        return False
    return section != 0 or value == 0


def _entries(head: bytes, start: int) -> List[Tuple[int, int, int]]:
    """Return (name, info, section) of the symbols behind a null entry."""
    entries = []
    place = start + _ENTRY.size
    while _is_symbol(head, place):
        name, info, _, section, _, _ = _ENTRY.unpack_from(head, place)
        entries.append((name, info, section))
        place += _ENTRY.size
    return entries


def _string_tables(head: bytes, end: int) -> Iterator[int]:
    """Where the names may begin: behind the symbols (GNU ld), or behind what lld puts between."""
    place = head.find(b"\0", end)
    for _ in range(4096):
        if place < 0:
            return
        if head[place + 1 : place + 2].isalnum() or head[place + 1 : place + 2] == b"_":
            yield place
        place = head.find(b"\0", place + 1)


def _named(head: bytes, strings: int, entries: List[Tuple[int, int, int]]) -> Optional[HeadSymbols]:
    exported, undefined = [], []
    last = 0
    for name, info, section in entries:
        if info == _SECTION:
            continue
        place = strings + name
        end = head.find(b"\0", place, place + _LONGEST_NAME)
        text = head[place:end] if end > place else b""
        if not _NAME.match(text) or _WIPED in text:
            return None
        last = max(last, end)
        if section:
            exported.append(text.decode("ascii"))
        elif info >> 4 != _WEAK:
            undefined.append(text.decode("ascii"))
    return HeadSymbols(
        tuple(sorted(exported)), tuple(sorted(undefined)), tuple(_libraries(head, strings, last))
    )


def _libraries(head: bytes, start: int, end: int) -> List[str]:
    """Names of libraries between and shortly behind the names of symbols."""
    texts = head[start : end + 4096].split(b"\0")
    names = {text.decode("ascii", "replace") for text in texts}
    return sorted(name for name in names if _LIBRARY.match(name))
