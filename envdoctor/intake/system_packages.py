"""Packages of the operating system, as dpkg, apt and rpm list them: what is there of the driver,
CUDA, its libraries and glibc outside of Python's environments.
"""

from __future__ import annotations

import re
from typing import Callable, Optional, Tuple

from ..model.facts import Library
from .clean_text import Line
from .draft import EXACT, INTENT, LABEL, PROSE, Draft

__all__ = ["read_system_package"]

_NAME = r"(?P<name>[A-Za-z0-9][\w.+-]{1,80}?)"
#: A row of each tool; dpkg's first two letters are what was wanted, and what is.
_ROWS = (
    re.compile(
        rf"(?P<state>[uirph][ncHUFWti])R?\s+{_NAME}(?::\w+)?\s+(?:\d+:)?(?P<version>\d\S*)(?:\s|$)"
    ),
    re.compile(
        rf"{_NAME}/\S+\s+(?:\d+:)?(?P<version>\d\S*)\s+(?:amd64|arm64|all)\s+"
        r"\[(?:installed|upgradable)\b.*\]$"
    ),
    re.compile(
        r"(?P<name>[A-Za-z0-9][\w.+-]{1,80})-(?P<version>\d[^-\s]*)-[^-\s]+"
        r"\.(?:x86_64|aarch64|noarch)$"
    ),
)
_MAY_BE_ROW = re.compile(
    r"[uirph][ncHUFWti]R?\s|.*(?:\[(?:installed|upgradable)|\.(?:x86_64|aarch64|noarch)$)"
)
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")

_Writer = Callable[[Draft, "re.Match[str]", str, Line], None]


def _put(field: str, rank: int, parts: Optional[int] = None) -> _Writer:
    def write(draft: Draft, _: re.Match[str], version: str, line: Line) -> None:
        draft.put(field, ".".join(version.split(".")[:parts]), line, rank)

    return write


def _put_toolkit(draft: Draft, name: re.Match[str], version: str, line: Line) -> None:
    draft.toolkit(f"/usr/local/cuda-{name.group(1)}.{name.group(2)}", version, line, "package")
    draft.put("toolkit.version", version, line, INTENT, f"its package {name.group()}")


def _put_compat(draft: Draft, name: re.Match[str], version: str, line: Line) -> None:
    draft.put("compat.cuda_version", f"{name.group(1)}.{name.group(2)}", line, LABEL)
    draft.put("compat.release", version, line, LABEL)


def _put_nccl(draft: Draft, _: re.Match[str], version: str, line: Line) -> None:
    soname = "libnccl.so.2"
    draft.library_copy(Library("libnccl", soname, soname, version, "ld.so.cache", False), line)


#: By the name of a package: what is there with it.
_STATING: Tuple[Tuple[re.Pattern[str], _Writer], ...] = (
    (re.compile(r"libnccl2?"), _put_nccl),
    (re.compile(r"libcudnn\d(?:-cuda-\d+)?"), _put("cudnn.system_version", EXACT, 3)),
    (re.compile(r"libc6|glibc"), _put("glibc.version", EXACT, 2)),
    (
        re.compile(r"nvidia-driver(?:-\w+)*|kmod-nvidia\S*"),
        _put("driver.release", PROSE),
    ),
    (re.compile(r"nvidia-fabric-?manager(?:-\d{3})?"), _put("driver.fabric_manager", LABEL)),
    (re.compile(r"cuda-(?:toolkit|nvcc)-(\d{2})-(\d)"), _put_toolkit),
    (re.compile(r"cuda-compat-(\d{2})-(\d)"), _put_compat),
)


def read_system_package(line: Line, draft: Draft) -> bool:
    """Read a row of ``dpkg -l``, ``apt list`` or ``rpm -qa``; of a package that was removed, too:
    it states nothing.
    """
    text = line.text
    if not _MAY_BE_ROW.match(text):
        return False
    row = next(filter(None, (pattern.match(text) for pattern in _ROWS)), None)
    if row is None:
        return False
    state = row.groupdict().get("state", "ii")
    numbers = _NUMBERS.match(row.group("version"))
    if state[1] in "iHUFWt" and numbers is not None:
        for pattern, write in _STATING:
            name = pattern.fullmatch(row.group("name"))
            if name is not None:
                write(draft, name, numbers.group(), line)
    return True
