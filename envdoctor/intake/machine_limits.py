"""Limits and sizes of the machine, as ulimit, df, free, uname, ldd and their like print them."""

from __future__ import annotations

import re
from typing import Optional

from ..model.sizes import parse_limit, parse_size
from .clean_text import Line
from .draft import EXACT, LABEL, PROSE, Draft
from .library_paths import read_library_path
from .platforms import architecture, operating_system
from .system_packages import read_system_package

__all__ = ["LimitsReader"]

_VALUE = r"(unlimited|infinity|-1|\d{1,20})"
_BASH = re.compile(
    rf"([a-z][\w /-]{{2,40}}?)\s+\((?:([\w-]+(?:\s\w+)?),\s*)?-([a-zA-Z])\)\s+{_VALUE}\s*$"
)
_ZSH = re.compile(rf"-([a-zA-Z]):\s+[a-zA-Z][\w() -]{{3,50}}?\s+{_VALUE}\s*$")
_COMMAND = re.compile(
    rf"ulimit\s+-([SH]?)([a-z])\b\s*[:=]?\s*(?:->\s*)?{_VALUE}?\s*(?:kB|KB|kbytes)?\s*$"
)
_PROC = re.compile(
    r"Max (open files|locked memory|processes|stack size|core file size)\s+"
    r"(unlimited|\d{1,20})\s+(unlimited|\d{1,20})(?:\s+(?:files|bytes|processes))?\s*$"
)
_LIMITS = {
    "n": ("rlimit.nofile", 1),
    "l": ("rlimit.memlock", 1024),
    "u": ("rlimit.nproc", 1),
    "s": ("rlimit.stack", 1024),
    "c": ("rlimit.core", 1024),
}
_PROC_LIMITS = {
    "open files": "rlimit.nofile",
    "locked memory": "rlimit.memlock",
    "processes": "rlimit.nproc",
    "stack size": "rlimit.stack",
    "core file size": "rlimit.core",
}
_UNITS = {"bytes": 1, "kbytes": 1024, "blocks": 512, "512-byte blocks": 512}
_DF = re.compile(
    r"\S+\s+(\d[\d.]*[KMGTP]?i?B?)\s+\d[\d.]*[KMGTP]?i?B?\s+(\d[\d.]*[KMGTP]?i?B?)"
    r"\s+\d{1,3}%\s+/dev/shm\s*$"
)
_SHM_MOUNT = re.compile(r"\b(?:shm|tmpfs)\b.{0,40}\s/dev/shm\b.{0,80}\bsize=(\d{1,15}[kmg]?)\b")
_FREE = re.compile(r"(Mem|Swap):\s+(\d[\d.,]*(?:[KMGTP]i?B?|B)?)\s+\d\S*\s+\d\S*(.*)$")
_MEMINFO = re.compile(r"(MemTotal|MemAvailable|SwapTotal):\s+(\d{1,15})\s*kB")
_LDD = re.compile(r"ldd \(.{0,80}\)\s+(\d\.\d{1,2})\b|^glibc (\d\.\d{1,2})$")
_UNAME = re.compile(r"Linux\s+\S+\s+(\d+\.\d+\S*)\s+#.{1,160}?\b(x86_64|aarch64|ppc64le)\b")
_RELEASE = re.compile(
    r"(?:PRETTY_NAME=|Description:\s*|Operating System:\s*)\"?([^\"]{3,100})\"?\s*$"
)
_LDCONFIG = re.compile(
    r"(lib[\w+-]{2,60})\.so(\.[\d.]+)?\s*(?:\([^()]{0,80}\)\s*)?=>\s*(/\S{1,300})"
)
_MEMINFO_FIELDS = {
    "MemTotal": "memory.total",
    "MemAvailable": "memory.available",
    "SwapTotal": "swap.total",
}


class LimitsReader:
    """Reads one line at a time; a ``ulimit`` command may have its answer on the next line."""

    def __init__(self) -> None:
        self._asked: Optional[str] = None
        self._libcuda: Optional[Line] = None
        self._unversioned = False

    def read(self, line: Line, draft: Draft) -> bool:
        """Take one line; False leaves it to the others."""
        text = line.text
        asked, self._asked = self._asked, None
        if asked and re.fullmatch(_VALUE, text):
            return self._read_command(asked[:-1], asked[-1], text, line, draft)
        if "ulimit" in text:
            match = _COMMAND.search(text)
            if match:
                is_read = self._read_command(
                    match.group(1), match.group(2), match.group(3), line, draft
                )
                if match.start() == 0 or not is_read:
                    return is_read  # what stands before it, other readers take
        if "(" in text or text.startswith("-"):
            match = _BASH.fullmatch(text)
            if match and match.group(3) in _LIMITS:
                return _put(
                    match.group(3),
                    match.group(4),
                    line,
                    draft,
                    unit=_UNITS.get(match.group(2) or ""),
                )
            match = _ZSH.fullmatch(line.raw.strip())
            if match and match.group(1) in _LIMITS:
                return _put(match.group(1), match.group(2), line, draft)
        return self._read_files(line, draft)

    def finish(self, draft: Draft) -> None:
        """A loader cache that lists libcuda.so.1 and no libcuda.so has none for the linker."""
        if self._libcuda is not None:
            draft.put(
                "driver.unversioned_libcuda", self._unversioned, self._libcuda, LABEL, "ldconfig -p"
            )

    def _read_command(
        self, kind: str, letter: str, value: Optional[str], line: Line, draft: Draft
    ) -> bool:
        if letter not in _LIMITS:
            return False
        if value is None:
            self._asked = kind + letter
            return True
        if kind == "H":
            if letter == "n":
                limit = parse_limit(value)
                if limit is not None:
                    draft.put("rlimit.nofile_hard", limit, line)
            return True
        return _put(letter, value, line, draft, rank=LABEL)

    def _read_files(self, line: Line, draft: Draft) -> bool:
        text = line.text
        if text.startswith("Max ") and self._read_proc_limits(line, draft):
            return True
        if "/dev/shm" in text and self._read_shared_memory(line, draft):
            return True
        if text.startswith(("Mem", "Swap")):
            return self._read_memory(line, draft)
        return self._read_system(line, draft)

    def _read_proc_limits(self, line: Line, draft: Draft) -> bool:
        match = _PROC.fullmatch(line.text)
        if match is None:
            return False
        limit, hard = parse_limit(match.group(2)), parse_limit(match.group(3))
        if limit is not None:
            draft.put(_PROC_LIMITS[match.group(1)], limit, line, EXACT)
        if hard is not None and match.group(1) == "open files":
            draft.put("rlimit.nofile_hard", hard, line, EXACT)
        return True

    def _read_shared_memory(self, line: Line, draft: Draft) -> bool:
        match = _DF.search(line.text)
        if match:
            for field, size in zip(("shm.size", "shm.available"), match.groups()):
                number = parse_size(size, binary=True, unit=1024)
                if number is not None:
                    draft.put(field, number, line, EXACT)
            return True
        match = _SHM_MOUNT.search(line.text)
        if match:
            draft.put("shm.size", parse_size(match.group(1)), line, EXACT)
        return match is not None

    def _read_memory(self, line: Line, draft: Draft) -> bool:
        match = _MEMINFO.match(line.text)
        if match:
            draft.put(_MEMINFO_FIELDS[match.group(1)], int(match.group(2)) * 1024, line, EXACT)
            return True
        match = _FREE.match(line.text)
        if match is None:
            return False
        total = _free_size(match.group(2))
        if total is not None:
            draft.put(
                "memory.total" if match.group(1) == "Mem" else "swap.total", total, line, EXACT
            )
        rest = match.group(3).split()
        available = _free_size(rest[-1]) if len(rest) == 3 and match.group(1) == "Mem" else None
        if available is not None:
            draft.put("memory.available", available, line, EXACT)
        return True

    def _read_system(self, line: Line, draft: Draft) -> bool:
        text = line.text
        if "=>" in text and ".so" in text:
            return self._read_ldconfig(line, draft)
        if read_library_path(line, draft) or read_system_package(line, draft):
            return True
        if "ldd (" in text or text.startswith("glibc "):
            match = _LDD.search(text)
            if match:
                draft.put("glibc.version", match.group(1) or match.group(2), line, EXACT)
                return True
        if "Linux " in text and "#" in text:
            match = _UNAME.search(text)
            if match:
                draft.put("os.kernel", match.group(1), line, EXACT)
                draft.put("os.platform", "linux", line, EXACT)
                machine = architecture(match.group(2))
                if machine:
                    draft.put("os.architecture", machine, line, EXACT)
                if "microsoft" in match.group(1).lower():
                    draft.put("os.wsl", True, line, EXACT)
                return True
        match = _RELEASE.match(text)
        if match:
            operating_system(match.group(1), line, draft)
            return True
        return False

    def _read_ldconfig(self, line: Line, draft: Draft) -> bool:
        match = _LDCONFIG.search(line.raw)
        if match is None or (
            "libc6" not in line.raw and "ldconfig" not in line.raw
        ):  # ldd prints addresses instead
            return read_library_path(line, draft)
        name, suffix, path = match.groups()
        if name == "libcuda":
            draft.put("driver.libcuda_path", path, line, PROSE)
            release = re.search(r"\.so\.(\d{3,4}\.\d{2,3}(?:\.\d{2,3})?)$", path)
            if release:
                draft.put("driver.libcuda_release", release.group(1), line, EXACT)
            if "/wsl/" in path:
                draft.put("os.wsl", True, line)
            # Only ldconfig's whole answer for libcuda tells that something is not in it.
            self._libcuda = line
            self._unversioned |= suffix is None
        elif name == "libcudnn":
            release = re.search(r"\.so\.(\d+\.\d+\.\d+)", path)
            if release and "-packages/" not in path:
                draft.put("cudnn.system_version", release.group(1), line)
        return True


def _put(
    letter: str, value: str, line: Line, draft: Draft, rank: int = EXACT, unit: Optional[int] = None
) -> bool:
    field, default = _LIMITS[letter]
    limit = parse_limit(value, unit=unit if unit is not None and letter not in "nu" else default)
    if limit is None:
        return False
    draft.put(field, limit, line, rank)
    return True


def _free_size(text: str) -> Optional[int]:
    """A number of ``free``; without a unit its size tells KiB (the default) from bytes (-b)."""
    if text[-1:].isalpha():
        return parse_size(text.replace(",", "."), binary=True)
    number = int(text) if text.isdigit() and len(text) < 18 else 0
    if 10**7 <= number < 10**9:
        return number * 1024
    return number if number >= 10**10 else None
