"""Documents of which a diagnosis reads few, packed: by LZMA, which takes a sixth less than zlib, or
by zlib where this Python was built without LZMA. The first bytes tell which it was.
"""

from __future__ import annotations

import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

__all__ = ["pack", "unpack"]

_XZ = b"\xfd7zXZ"
#: A matrix is compiled within seconds; 6 would save another tenth and take five times as long.
_PRESET = 2


def pack(content: bytes) -> bytes:
    """Return the content packed as tightly as this Python can."""
    try:
        import lzma
    except ImportError:
        return zlib.compress(content, 9)
    return lzma.compress(content, check=lzma.CHECK_CRC32, preset=_PRESET)


def unpack(packed: bytes) -> Optional[bytes]:
    """Return what was packed; None where this Python cannot unpack it, which is then not known."""
    if not packed.startswith(_XZ):
        return zlib.decompress(packed)
    try:
        import lzma
    except ImportError:
        return None
    return lzma.decompress(packed)
