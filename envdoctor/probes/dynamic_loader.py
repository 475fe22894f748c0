"""Where the dynamic loader of glibc would find a library: its search order, without running it.

The order is that of ld.so(8) and ``elf/dl-load.c``: what is loaded already; the DT_RPATH of the
object that asks, of the objects that brought it in and of the main program (none of these where the
asking object has a DT_RUNPATH); LD_LIBRARY_PATH; its own DT_RUNPATH; /etc/ld.so.cache; the default
directories. ``ld.so --list`` is the oracle of the tests. This module answers where nothing may run
(an unpacked image), and in 2 ms where the loader itself takes 20.
"""

from __future__ import annotations

import os
import re
import struct

from ..model.pattern import pattern
from ..model.record import NamedTuple
from .elf import ElfError, ElfFile, open_elf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

    from .machine import Machine

__all__ = ["Found", "LinkMap", "Loaded", "Loader", "parse_cache", "parse_list"]

_MOST_OBJECTS = 512

# Default directories by the place of the loader: Debian's multi-arch folders, then what other
# distributions use.
_MULTIARCH = {62: "x86_64-linux-gnu", 183: "aarch64-linux-gnu"}
_PLATFORM = {62: "x86_64", 183: "aarch64"}


class Loaded:
    """One object in the link map. ``origin`` says which step of the search found it."""

    __slots__ = (
        "file",
        "identity",
        "name",
        "needed",
        "no_default",
        "origin",
        "parent",
        "path",
        "rpath",
        "runpath",
        "soname",
    )

    def __init__(
        self,
        path: str,
        name: str,
        origin: str,
        parent: Optional[Loaded],
        elf: ElfFile,
        identity: Tuple[int, int],
    ) -> None:
        self.path = path  # the target's path, as the loader opened it
        self.name = name  # the name that was asked for
        self.origin = origin
        self.parent = parent
        self.identity = identity
        self.soname = elf.soname
        self.needed = elf.needed
        self.rpath = (
            elf.rpath if elf.runpath is None else None
        )  # DT_RPATH counts only without DT_RUNPATH
        self.runpath = elf.runpath
        self.no_default = elf.no_default_path


class Found(NamedTuple):
    """Answer of one search: where, and by which step; ``path`` is "" where the loader would
    fail.
    """

    path: str
    origin: str
    reason: str = ""


class Loader:
    """The search rules of one target: its environment variables, cache and default directories.

    Args:
        machine: The target.
        kind: Class, byte order and machine of the files to be linked; others are passed over, as
            the loader does.
        variables: LD_LIBRARY_PATH and LD_PRELOAD are read from here.
    """

    def __init__(
        self, machine: Machine, kind: Tuple[int, int, int], variables: Mapping[str, str]
    ) -> None:
        self.machine = machine
        self.kind = kind
        text = variables.get("LD_LIBRARY_PATH", "")
        self.library_path = re.split(r"[:;]", text) if text else []
        self.preload = [
            name for name in re.split(r"[:\s]+", variables.get("LD_PRELOAD", "")) if name
        ]
        self._cache: Optional[Dict[str, List[str]]] = None
        self._defaults: Optional[List[str]] = None
        self._levels: Optional[Tuple[str, ...]] = None
        self._folders: Dict[str, Optional[Set[str]]] = {}

    @property
    def cache(self) -> Mapping[str, Sequence[str]]:
        """/etc/ld.so.cache: paths by soname, the loader's first choice first."""
        if self._cache is None:
            content = self.machine.read_bytes("/etc/ld.so.cache", 16 << 20)
            self._cache = parse_cache(content or b"", self.kind[2])
        return self._cache

    @property
    def default_folders(self) -> Sequence[str]:
        """The directories that are compiled into the target's loader."""
        if self._defaults is None:
            multi = _MULTIARCH.get(self.kind[2], "")
            folders = ["/lib", "/usr/lib"] if self.kind[0] == 1 else ["/lib64", "/usr/lib64"]
            if multi and self.machine.exists(f"/lib/{multi}"):
                folders = [f"/lib/{multi}", f"/usr/lib/{multi}", "/lib", "/usr/lib"]
            self._defaults = folders
        return self._defaults

    @property
    def levels(self) -> Tuple[str, ...]:
        """The glibc-hwcaps folders that this CPU may use, best first (empty for a folder, whose CPU
        is not known).
        """
        if self._levels is None:
            self._levels = (
                _x86_levels(self.machine) if self.kind[2] == 62 and not self.machine.root else ()
            )
        return self._levels

    # searching

    def search(self, name: str, asker: Loaded, main: Optional[Loaded]) -> Found:
        """Find what the loader opens for a name that ``asker`` needs and that is not loaded yet."""
        if "/" in name:
            path = self._expand(name, asker)
            return (
                Found(path, "path")
                if self._fits(path) == ""
                else Found("", "", f"{path} cannot be opened")
            )
        if asker.runpath is None:
            holder: Optional[Loaded] = asker
            reached_main = False
            while holder is not None:
                if holder.rpath is not None:
                    found = self._in(self._split(holder.rpath, holder), name, "rpath")
                    if found is not None:
                        return found
                reached_main = reached_main or holder is main
                holder = holder.parent
            if main is not None and not reached_main and main.rpath is not None:
                found = self._in(self._split(main.rpath, main), name, "rpath")
                if found is not None:
                    return found
        start = main or asker
        if self.library_path:
            found = self._in(
                [self._expand(folder, start) for folder in self.library_path],
                name,
                "LD_LIBRARY_PATH",
            )
            if found is not None:
                return found
        if asker.runpath is not None:
            found = self._in(self._split(asker.runpath, asker), name, "runpath")
            if found is not None:
                return found
        defaults = self.default_folders
        for path in self.cache.get(name, ()):
            # -z nodefaultlib leaves out the default directories, in the cache too.
            if asker.no_default and any(path.startswith(folder + "/") for folder in defaults):
                continue
            level = re.search(r"/glibc-hwcaps/([^/]+)/", path)
            if level is not None and level.group(1) not in self.levels:
                continue
            if self._fits(path) == "":
                return Found(path, "ld.so.cache")
        if not asker.no_default:
            found = self._in(defaults, name, "default")
            if found is not None:
                return found
        return Found("", "", "not found")

    def _split(self, text: str, holder: Loaded) -> List[str]:
        return [self._expand(part, holder) for part in text.split(":")]

    def _expand(self, text: str, holder: Loaded) -> str:
        """Replace $ORIGIN, $LIB and $PLATFORM; the origin is the folder under which the file was
        opened, links unresolved.
        """
        if "$" not in text:
            return text
        multi = _MULTIARCH.get(self.kind[2], "")
        library = (
            f"lib/{multi}"
            if multi and self.machine.exists(f"/lib/{multi}")
            else "lib64"
            if self.kind[0] == 2
            else "lib"
        )
        values = {
            "ORIGIN": os.path.dirname(holder.path) or "/",
            "LIB": library,
            "PLATFORM": _PLATFORM.get(self.kind[2], ""),
        }
        return re.sub(
            r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM)\b)",
            lambda match: values[match.group(1) or match.group(2)],
            text,
        )

    def _in(self, folders: Iterable[str], name: str, origin: str) -> Optional[Found]:
        for folder in folders:
            if not folder.startswith("/"):
                # An empty or relative entry is the working directory.
                if self.machine.root:
                    continue
                folder = os.path.join(_getcwd(), folder) if folder else _getcwd()
            names = self._names(folder)
            if names is None:
                continue
            if "glibc-hwcaps" in names:
                for level in self.levels:
                    path = f"{folder}/glibc-hwcaps/{level}/{name}"
                    if self.machine.exists(path) and self._fits(path) == "":
                        return Found(path, origin)
            if name in names:
                path = f"{folder.rstrip('/') or ''}/{name}"
                reason = self._fits(path)
                if reason == "":
                    return Found(path, origin)
                if reason == "damaged":
                    # The loader passes over a library of another machine, but dies of one that is
                    # damaged.
                    return Found("", origin, f"{path} is damaged")
        return None

    def _names(self, folder: str) -> Optional[Set[str]]:
        """The names in a folder: one listing instead of an open for each of hundreds of
        look-ups.
        """
        key = folder.rstrip("/") or "/"
        if key not in self._folders:
            listed = self.machine.listdir(key)
            self._folders[key] = None if listed is None else set(listed)
        return self._folders[key]

    def _fits(self, path: str) -> str:
        """Return nothing where the loader would map the file, "other" where it goes on, "damaged"
        where it gives up.
        """
        try:
            with open_elf(self.machine.path(path)) as elf:
                return "" if elf.kind == self.kind else "other"
        except ElfError as error:
            return "other" if "regular" in str(error) else "damaged"
        except OSError:
            return "other"


class LinkMap:
    """The objects that a process has loaded, in the loader's order: a sequence of loads as ``import
    torch`` makes it.
    """

    def __init__(self, loader: Loader, main: Optional[str] = None) -> None:
        self.loader = loader
        self.objects: List[Loaded] = []
        self.missing: Dict[str, str] = {}  # name -> path of the object that asked
        self._place = 0  # the first object whose needs were not looked at yet
        self.main: Optional[Loaded] = None
        if main is not None:
            self.main = self._map(main, main, "main", None)
        for name in loader.preload if self.main is not None else ():
            self._need(name, self.main, "LD_PRELOAD")
        self._finish()

    def load(self, path: str, origin: str = "path") -> Optional[Loaded]:
        """Load one file and all that it needs, breadth first; None where it is no library of this
        kind.
        """
        first = self._map(path, path, origin, self.main)
        self._finish()
        return first

    def find(self, name: str) -> Optional[Loaded]:
        """Return the loaded object that answers to a soname."""
        for held in self.objects:
            if name in (held.soname, held.name) or name == held.path:
                return held
        return None

    def trial(self, path: str) -> Tuple[Tuple[str, ...], Tuple[Loaded, ...]]:
        """Load a file as :meth:`load` does, but keep nothing: the names that were not found, and
        the objects that came with it.
        """
        count, place, missing = len(self.objects), self._place, self.missing
        self.missing = {}
        try:
            self.load(path)
            return tuple(sorted(self.missing)), tuple(self.objects[count:])
        finally:
            del self.objects[count:]
            self._place, self.missing = place, missing

    def _finish(self) -> None:
        while self._place < len(self.objects) < _MOST_OBJECTS:
            held = self.objects[self._place]
            self._place += 1
            for name in held.needed:
                self._need(name, held)

    def _need(self, name: str, asker: Optional[Loaded], origin: str = "") -> None:
        if asker is None or self.find(name) is not None:
            return
        found = self.loader.search(name, asker, self.main or self.objects[0])
        if not found.path or self._map(found.path, name, origin or found.origin, asker) is None:
            self.missing.setdefault(name, asker.path)

    def _map(self, path: str, name: str, origin: str, parent: Optional[Loaded]) -> Optional[Loaded]:
        host = self.loader.machine.path(path)
        try:
            status = os.stat(host)
            identity = (status.st_dev, status.st_ino)
            for held in self.objects:
                if held.identity == identity:
                    return held
            with open_elf(host) as elf:
                if elf.kind != self.loader.kind:
                    return None
                held = Loaded(path, name, origin, parent, elf, identity)
        except (OSError, ElfError):
            return None
        self.objects.append(held)
        return held


def _getcwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"


# ld.so.cache

_NEW_MAGIC = b"glibc-ld.so.cache1.1"
_OLD_MAGIC = b"ld.so-1.7.0"
# Flags of libc6 libraries (sysdeps/generic/ldconfig.h): ELF_LIBC6 | architecture.
_FLAGS = {62: 0x0303, 183: 0x0A03}


def parse_cache(content: bytes, machine: int = 62) -> Dict[str, List[str]]:
    """Parse /etc/ld.so.cache (glibc's format 1.1, alone or behind the old one): paths by soname in
    the loader's order.

    Anything else gives an empty table; never raises.
    """
    found: Dict[str, List[str]] = {}
    start = 0
    if content.startswith(_OLD_MAGIC) and len(content) >= 16:
        start = content.find(_NEW_MAGIC)
    if (
        start < 0
        or content[start : start + len(_NEW_MAGIC)] != _NEW_MAGIC
        or len(content) < start + 48
    ):
        return found
    wanted = _FLAGS.get(machine)
    order = ">" if content[start + 28] & 3 == 3 else "<"
    count = struct.unpack_from(order + "I", content, start + 20)[0]
    count = min(count, (len(content) - start - 48) // 24)
    ranked: List[Tuple[int, str, str]] = []
    for place in range(count):
        flags, key, value, _, hardware = struct.unpack_from(
            order + "iIIIQ", content, start + 48 + place * 24
        )
        if wanted is not None and flags != wanted:
            continue
        name, path = _text(content, start + key), _text(content, start + value)
        if name and path:
            # The file is sorted by name downwards; of one name the entries with hardware
            # capabilities come first.
            ranked.append((0 if hardware else 1, name, path))
    for _, name, path in sorted(ranked, key=lambda entry: entry[0]):
        found.setdefault(name, []).append(path)
    return found


def _text(content: bytes, place: int) -> str:
    end = content.find(b"\0", place, place + 4096)
    return content[place:end].decode("utf-8", "surrogateescape") if 0 < place < end else ""


_LINE = pattern(r"\s*(\S+) => (?:(not found)|(.+?)) ?(?:\(0x[0-9a-f]+\))?\s*\Z")
_DIRECT = pattern(r"\s*(/.+?) \(0x[0-9a-f]+\)\s*\Z")


def parse_list(text: str) -> Dict[str, str]:
    """Parse the output of ``ld.so --list``: path by soname; "" for what was not found."""
    found: Dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is not None:
            found[match.group(1)] = "" if match.group(2) else match.group(3)
            continue
        match = _DIRECT.match(line)
        if match is not None:
            found[match.group(1)] = match.group(1)
    return found


def _x86_levels(machine: Machine) -> Tuple[str, ...]:
    """The x86-64 micro-architecture levels of this CPU (System V ABI, chapter 3.1.1), as
    glibc-hwcaps names them.
    """
    text = machine.read_text("/proc/cpuinfo", 1 << 14) or ""
    match = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    flags = set(match.group(1).split()) if match else set()
    found: List[str] = []
    for level, needed in (
        ("x86-64-v2", {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}),
        ("x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}),
        ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    ):
        if not needed <= flags:
            break
        found.insert(0, level)
    return tuple(found)
