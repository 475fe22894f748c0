"""A packed log (gzip, bzip2, xz) as a stream that goes as far as the file does.

A log is packed while it is written, copied while it grows, and cut where a disk is full: what
stands before the cut is what somebody wants to know. ``damage`` says why the stream ends early.
"""

from __future__ import annotations

from typing import Any, BinaryIO, Callable, Optional, Tuple

__all__ = ["PackedLog", "open_packed"]

#: Bytes read at once. A packed file may consist of a million tiny ones, and what stands behind the
#: first is copied for each: little has to stand there.
_PIECE = 4096
#: A log shrinks to a twentieth, one of the same line to a two hundredth. What unpacks to more than
#: that, and to more than so many bytes, was made to keep somebody busy.
_RATIO = 200
_MOST = 1 << 30
_MEMORY = 128 << 20  # bytes; what ``xz -9`` packs needs 65 MiB to unpack


class PackedLog:
    """Reads what a packed file holds; nothing is raised for what is damaged."""

    def __init__(self, file: BinaryIO, make: Callable[[], Any], errors: Tuple[Any, ...]) -> None:
        self._file = file
        self._make = make
        self._errors = errors
        self._unpacker = make()
        self._packed = b""  # read, and not unpacked yet
        self._in = self._out = 0  # bytes
        self.damage = ""

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes; fewer at the end, or before what is damaged."""
        pieces = []
        while size and not self.damage and (not self._unpacker.eof or self._goes_on()):
            try:
                content = self._unpacked(size)
            except self._errors as error:
                self.damage = f"it is damaged: {error}"
                break
            pieces.append(content)
            size -= len(content)
            self._out += len(content)
            if self._out > _MOST and self._out > _RATIO * self._in:
                self.damage = f"it unpacks to more than {_RATIO} times its size"
        return b"".join(pieces)

    def _unpacked(self, size: int) -> bytes:
        """Unpack one piece. ``zlib`` gives back what it did not take, the others keep it."""
        unpacker = self._unpacker
        if not self._packed and getattr(unpacker, "needs_input", True):
            self._packed = self._next_piece()
        content: bytes = unpacker.decompress(self._packed, size)
        if not (self._packed or content or unpacker.eof):
            self.damage = "it was cut, or is still being written"
        self._packed = unpacker.unused_data or getattr(unpacker, "unconsumed_tail", b"")
        return content

    def _goes_on(self) -> bool:
        """Tell whether one more packed file follows; zero bytes are padding."""
        self._packed = self._packed.lstrip(b"\0")
        while not self._packed:
            piece = self._next_piece()
            if not piece:
                return False
            self._packed = piece.lstrip(b"\0")
        self._unpacker = self._make()
        return True

    def _next_piece(self) -> bytes:
        try:
            piece = self._file.read(_PIECE)
        except OSError as error:
            self.damage = f"it cannot be read: {error.strerror or error}"
            return b""
        self._in += len(piece)
        return piece

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def open_packed(file: BinaryIO, magic: bytes) -> Optional[PackedLog]:
    """Return a file that begins with these bytes as a stream, or None where it is not packed."""
    if magic[:2] == b"\x1f\x8b":
        import zlib

        return PackedLog(file, lambda: zlib.decompressobj(16 + zlib.MAX_WBITS), (zlib.error,))
    if magic[:3] == b"BZh":
        import bz2

        return PackedLog(file, bz2.BZ2Decompressor, (OSError,))
    if magic[:6] == b"\xfd7zXZ\x00":
        import lzma

        return PackedLog(
            file, lambda: lzma.LZMADecompressor(memlimit=_MEMORY), (lzma.LZMAError, MemoryError)
        )
    return None
