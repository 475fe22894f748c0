"""CUDA libraries by their files: ldd, LD_DEBUG, ldconfig -p, and the copies that bitsandbytes
finds.
"""

from __future__ import annotations

import re

from ..model.facts import Library
from .clean_text import Line
from .draft import Draft

__all__ = ["read_library_path"]

_CORE = r"lib(?:cu(?:blas(?:Lt)?|dnn\w*|dart|sparse(?:Lt)?|solver|fft|rand)|nccl|nvrtc|nvJitLink)"
_FILE = re.compile(rf"(/\S{{0,300}}/({_CORE})\.so(?:\.(\d+(?:\.\d+)*))?)(?=[\s:,;)]|$)")
#: ``libX.so.1 => /usr/lib/libX.so.1 (0x7f…)``, and what ldd says of one that is not there.
_OF_LDD = re.compile(
    r"(?:/?\S+\.so\S* => (?:/\S+ \(0x[0-9a-f]+\)|not found)"
    r"|(?:linux-vdso\S+|/\S*/ld-linux\S+) \(0x[0-9a-f]+\)$)"
)
#: What the loader says of its search, behind the number of the process.
_OF_LOADER = re.compile(
    r"\d{1,8}:\s+(?:find library=|search cache=|trying file=|calling (?:init|fini): (?P<init>/\S+)"
    r"|search path=(?P<path>\S+)\s+\((?P<whose>\w+))"
)
_OF_BITSANDBYTES = re.compile(r"Found CUDA runtime at: /|CUDA runtime path found: /")
_SONAME_11 = ("libcudart", "11.0")  # the name of every runtime of CUDA 11
_TOOLKIT = re.compile(r"/[\w/.-]*/cuda-(\d{2}\.\d)(?=/)")
_EXPANDED = re.compile(r"/(?:glibc-hwcaps|tls|haswell|avx512_1|x86_64|x86-64-v\d)(?:/|$)")


def read_library_path(line: Line, draft: Draft) -> bool:
    """Read a line that names the file of a library as the loader sees it, or could."""
    text = line.text
    if ".so" not in text and "search path=" not in text:
        return False
    loader = _OF_LOADER.match(text)
    if loader is None:
        is_read = _OF_LDD.match(text) is not None or _OF_BITSANDBYTES.search(text) is not None
        return is_read and (_put_file(text, line, draft) or True)
    if loader.group("whose") == "LD_LIBRARY_PATH":
        folders = loader.group("path").split(":")
        kept = [folder for folder in folders if not _EXPANDED.search(folder)]
        draft.variable("LD_LIBRARY_PATH", ":".join(kept), line)
    elif loader.group("init"):
        _put_file(loader.group("init"), line, draft, loaded=True)
    return True


def _put_file(text: str, line: Line, draft: Draft, *, loaded: bool = False) -> bool:
    match = _FILE.search(text)
    if match is None:
        return False
    path, name, number = match.groups()
    version = number if number and "." in number and (name, number) != _SONAME_11 else None
    soname = f"{name}.so{'.' + number.split('.')[0] if number else ''}"
    draft.library_copy(Library(name, soname, path, version, _origin(path), loaded), line)
    toolkit = _TOOLKIT.match(path)
    if toolkit:
        draft.toolkit(toolkit.group(), toolkit.group(1), line, "the path of a library")
    return True


def _origin(path: str) -> str:
    if "-packages/" in path:
        return "wheel"
    return "conda" if re.search(r"conda\d?/|/envs/[^/]+/lib/|forge\d?/", path) else "ld.so.cache"
