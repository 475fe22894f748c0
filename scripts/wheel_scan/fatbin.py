"""Finds CUDA fat binaries in a stream of bytes and says what code each of them holds.

A fat binary is what nvcc makes of one translation unit: a header, then one entry for each
architecture, machine code (cubin) or PTX. The driver takes the machine code that fits a device,
else compiles the PTX of the highest architecture that is not above the device's; so what a device
needs can only be told for each fat binary by itself.

    header   u32 magic 0xBA55ED50, u16 version 1, u16 header size 16, u64 size of all entries
    entry    u16 kind (1 PTX, 2 machine code, others left alone), u16, u32 header size,
             u64 payload size, u32 packed size, u32,
             u16 minor, u16 major (of the PTX language where it is PTX), u32 architecture (90), u32,
             u32, u64 flags, u64, u64 unpacked size
    flags    0x2000 LZ4, 0x8000 zstd, 0x100000 architecture-specific ("90a"), 0x200000 family
             ("100f")

NVIDIA documents none of this: it was established by comparing what nvcc 13.0 makes with cuobjdump
(tests/wheels), and holds for what CUDA 11 to 13 made. The version of PTX is read from the text
itself, the header's is taken where the text cannot be unpacked.
"""

from __future__ import annotations

import re
import struct
from typing import Callable, Iterable, Iterator, List, NamedTuple, Optional, Tuple

__all__ = ["Code", "Fatbin", "Stream", "lz4_prefix", "scan"]

MAGIC = b"\x50\xed\x55\xba\x01\x00\x10\x00"
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_PTX, _CUBIN = 1, 2
_LZ4, _ZSTD, _SPECIFIC, _FAMILY = 0x2000, 0x8000, 0x100000, 0x200000
#: LLVM's EF_CUDA_ACCELERATORS_V1: set in the e_flags of a cubin of ELF ABI 7 (before CUDA 13) for
#: sm_90a and its like. cuBLAS sets it on code for 5.0 to 6.1 as well, of which there is no "a".
_ACCELERATED = 0x800
_FIRST_ACCELERATED = 90
_MOST_HEADER = 1 << 16
_MOST_ENTRIES = 4096
#: So much of a payload is looked at: one zstd block, of which the first bytes are wanted; PTX whole
#: where it is not larger.
_CUBIN_BYTES = 160 << 10
_PTX_BYTES = 32 << 20
_PTX_TEXT = 128 << 20
_VERSION = re.compile(rb"^\s*\.version\s+(\d{1,2})\.(\d{1,2})", re.MULTILINE)
_TARGET = re.compile(rb"^\s*\.target\s+sm_(\d{2,3})([af]?)", re.MULTILINE)
_KERNEL = re.compile(rb"^(?:\.visible\s+|\.weak\s+)?\.entry\s+([\w$]{1,400})", re.MULTILINE)


class Code(NamedTuple):
    """One entry: ``architecture`` as "9.0", "9.0a" or "10.0f"; of PTX also its version ("8.7",
    None: not readable) and its kernels.
    """

    kind: str
    architecture: str
    version: Optional[str] = None
    kernels: Optional[Tuple[str, ...]] = None


class Fatbin(NamedTuple):
    """One fat binary. ``odd``: why its end could not be read."""

    codes: Tuple[Code, ...]
    odd: str = ""

    @property
    def signature(self) -> str:
        """What it holds, in one line: ``sass=8.0,9.0a;ptx=9.0@8.7``."""
        sass = sorted({code.architecture for code in self.codes if code.kind == "sass"}, key=_order)
        ptx = sorted(
            {
                f"{code.architecture}@{code.version or '?'}"
                for code in self.codes
                if code.kind == "ptx"
            },
            key=_order,
        )
        parts = ([f"sass={','.join(sass)}"] if sass else []) + (
            [f"ptx={','.join(ptx)}"] if ptx else []
        )
        return ";".join(parts)

    @property
    def kernels(self) -> Optional[Tuple[str, ...]]:
        """The kernels of its PTX; None where there is no PTX, or none that could be unpacked."""
        kernels = [code.kernels for code in self.codes if code.kernels is not None]
        return None if not kernels else tuple(sorted({name for names in kernels for name in names}))


def _order(text: str) -> Tuple[float, str]:
    number = re.match(r"[\d.]+", text)
    return (float(number.group()) if number else 0.0, text)


class Stream:
    """Bytes of an iterator as they are asked for.

    ``keep`` gets all bytes but those that are skipped, each with its offset.
    """

    def __init__(
        self, pieces: Iterable[bytes], keep: Optional[Callable[[int, bytes], None]] = None
    ) -> None:
        self._pieces = iter(pieces)
        self._buffer = b""
        self._keep = keep
        self.offset = 0

    def _more(self) -> bool:
        for piece in self._pieces:
            if piece:
                self._buffer += piece
                return True
        return False

    def _drop(self, count: int, keep: bool) -> bytes:
        dropped, self._buffer = self._buffer[:count], self._buffer[count:]
        if keep and self._keep is not None and dropped:
            self._keep(self.offset, dropped)
        self.offset += len(dropped)
        return dropped

    def read(self, count: int, keep: bool = False) -> bytes:
        """Return that many bytes, fewer at the end."""
        if len(self._buffer) < count:
            parts = [self._buffer]
            have = len(self._buffer)
            for piece in self._pieces:
                parts.append(piece)
                have += len(piece)
                if have >= count:
                    break
            self._buffer = b"".join(parts)
        return self._drop(count, keep)

    def skip(self, count: int) -> int:
        """Leave bytes out; return how many there were."""
        done = 0
        while done < count:
            if not self._buffer and not self._more():
                break
            done += len(self._drop(count - done, keep=False))
        return done

    def find(self, sign: bytes) -> bool:
        """Go to just behind the next occurrence; False at the end.

        What lies before it is kept, the sign is not.
        """
        while True:
            place = self._buffer.find(sign)
            if place >= 0:
                self._drop(place, keep=True)
                self._drop(len(sign), keep=False)
                return True
            self._drop(max(0, len(self._buffer) - len(sign) + 1), keep=True)
            if not self._more():
                self._drop(len(self._buffer), keep=True)
                return False


def scan(stream: Stream) -> Iterator[Fatbin]:
    """Yield every fat binary of a stream, in order."""
    while stream.find(MAGIC):
        size = stream.read(8)
        if len(size) < 8:
            yield Fatbin((), "cut off")
            return
        yield _fatbin(stream, struct.unpack("<Q", size)[0])


def _fatbin(stream: Stream, left: int) -> Fatbin:
    codes: List[Code] = []
    for _ in range(_MOST_ENTRIES):
        if left < _ENTRY.size:
            return Fatbin(tuple(codes), "" if left == 0 else "bytes left over")
        head = stream.read(_ENTRY.size)
        if len(head) < _ENTRY.size:
            return Fatbin(tuple(codes), "cut off")
        (
            kind,
            _,
            header,
            payload,
            packed,
            _,
            minor,
            major,
            architecture,
            _,
            _,
            flags,
            _,
            unpacked,
        ) = _ENTRY.unpack(head)
        left -= _ENTRY.size
        # An entry that does not fit is no entry; what follows is searched for the next header, not
        # skipped on its word.
        if (
            not _ENTRY.size <= header <= _MOST_HEADER
            or header - _ENTRY.size + payload > left
            or not 0 < kind <= 0x400
            or architecture > 999
        ):
            return Fatbin(tuple(codes), "an entry that does not fit")
        stream.skip(header - _ENTRY.size)
        left -= header - _ENTRY.size + payload
        looked = min(payload, _PTX_BYTES if kind == _PTX else _CUBIN_BYTES)
        data = stream.read(looked)
        if len(data) < looked or stream.skip(payload - looked) < payload - looked:
            return Fatbin(tuple(codes), "cut off")
        if packed and packed < len(data):
            data = data[:packed]
        whole = looked == payload
        if kind == _PTX:
            codes.append(_ptx(data, whole, architecture, flags, unpacked, (major, minor)))
        elif kind == _CUBIN:
            codes.append(_cubin(data, architecture, flags))
    return Fatbin(tuple(codes), "too many entries")


def _named(architecture: int, suffix: str) -> str:
    return f"{architecture // 10}.{architecture % 10}{suffix}"


def _suffix(flags: int) -> str:
    return "a" if flags & _SPECIFIC else "f" if flags & _FAMILY else ""


def _cubin(data: bytes, architecture: int, flags: int) -> Code:
    suffix = _suffix(flags)
    if not suffix:
        head = _unpack(data, flags, 64, 64) if architecture >= _FIRST_ACCELERATED else None
        # ELF ABI 7 with the old layout of e_flags: the architecture stands in the lowest byte.
        if head is not None and len(head) >= 52 and head[:4] == b"\x7fELF" and head[8] == 7:
            own = struct.unpack_from("<I", head, 48)[0]
            if own & 0xFF == architecture & 0xFF and own & _ACCELERATED:
                suffix = "a"
    return Code("sass", _named(architecture, suffix))


def _ptx(
    data: bytes, whole: bool, architecture: int, flags: int, unpacked: int, header: Tuple[int, int]
) -> Code:
    wanted = unpacked if whole and 0 < unpacked <= _PTX_TEXT else 4096
    text = _unpack(data, flags, wanted, unpacked if whole else 0)
    suffix = _suffix(flags)
    version = ".".join(map(str, header)) if 3 <= header[0] <= 30 else None
    kernels = None
    if text is not None:
        match = _VERSION.search(text[:8192])
        if match is not None:
            version = f"{int(match.group(1))}.{int(match.group(2))}"
        target = _TARGET.search(text[:8192])
        if target is not None and not suffix and int(target.group(1)) == architecture:
            suffix = target.group(2).decode()
        if whole and (not flags & (_LZ4 | _ZSTD) or len(text) >= unpacked - 8 > 0):
            kernels = tuple(name.decode() for name in _KERNEL.findall(text))
    return Code("ptx", _named(architecture, suffix), version, kernels)


def _unpack(data: bytes, flags: int, wanted: int, unpacked: int) -> Optional[bytes]:
    """Return at least ``wanted`` bytes of a payload where it has so many; None where it cannot be
    unpacked.
    """
    if flags & _ZSTD:
        import zstandard

        try:
            # A piece of the input at a time: an honest frame gives 128 KiB for each block, a bomb
            # is cut at what is wanted.
            unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
                data, read_across_frames=False
            )
            return bytes(unpacker.read(wanted))
        except zstandard.ZstdError:
            return None
    if flags & _LZ4:
        if wanted > 4096 and unpacked <= _PTX_TEXT:
            import lz4.block

            try:
                return bytes(lz4.block.decompress(data, uncompressed_size=unpacked))
            except (lz4.block.LZ4BlockError, ValueError, MemoryError, OverflowError):
                pass
        return lz4_prefix(data, min(wanted, 4096))
    return data


def _lz4_length(data: bytes, at: int, length: int) -> Tuple[int, int]:
    """Return a length of which 15 says that bytes follow, the last of them below 255, and where
    the next byte stands; raises :class:`IndexError` at the end of the data.
    """
    if length < 15:
        return length, at
    while True:
        length += data[at]
        at += 1
        if data[at - 1] != 255:
            return length, at


def lz4_prefix(data: bytes, wanted: int) -> Optional[bytes]:
    """Return the first bytes of an LZ4 block (the library unpacks whole blocks only); None where it
    is damaged before.
    """
    out = bytearray()
    at = 0
    try:
        while at < len(data) and len(out) < wanted:
            token = data[at]
            at += 1
            length, at = _lz4_length(data, at, token >> 4)
            out += data[at : at + min(length, wanted)]
            at += length
            if at >= len(data) or len(out) >= wanted:
                break
            distance = data[at] | data[at + 1] << 8
            at += 2
            length, at = _lz4_length(data, at, token & 15)
            if not 0 < distance <= len(out):
                return None
            for _ in range(min(length + 4, wanted - len(out))):
                out.append(out[-distance])
    except IndexError:
        return None
    return bytes(out[:wanted]) if out else None
