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
    from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

    from .machine import Machine

__all__ = ["LinkMap", "Loaded", "Loader", "Match", "parse_cache", "parse_list"]

_MOST_OBJECTS = 512

# What the loader does with a file: it maps it, passes over it, or gives up.
_FITS, _OTHER, _DAMAGED = "fits", "other", "damaged"

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
        # DT_RPATH counts only without DT_RUNPATH.
        self.rpath = elf.rpath if elf.runpath is None else None
        self.runpath = elf.runpath
        self.no_default = elf.no_default_path


class Match(NamedTuple):
    """Answer of one search; ``path`` is "" where the loader would fail."""

    path: str
    origin: str  # the step of the search
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
        """The glibc-hwcaps folders that this CPU may use, best first; none in an image."""
        if self._levels is None:
            self._levels = (
                _x86_levels(self.machine) if self.kind[2] == 62 and not self.machine.root else ()
            )
        return self._levels

    # searching

    def search(self, name: str, asker: Loaded, main: Optional[Loaded]) -> Match:
        """Find what the loader opens for a name that ``asker`` needs and that is not loaded yet."""
        if "/" in name:
            path = self._expand(name, asker)
            if self._state(path) == _FITS:
                return Match(path, "path")
            return Match("", "", f"{path} cannot be opened")
        for folders, origin in self._stated_folders(asker, main):
            match = self._in_folders(folders, name, origin)
            if match is not None:
                return match
        match = self._in_cache(name, asker)
        if match is None and not asker.no_default:
            match = self._in_folders(self.default_folders, name, "default")
        return match or Match("", "", "not found")

    def _stated_folders(
        self, asker: Loaded, main: Optional[Loaded]
    ) -> Iterator[Tuple[List[str], str]]:
        """Yield the folders that objects and LD_LIBRARY_PATH name: those asked before the cache."""
        if asker.runpath is None:
            for holder in _brought_in_by(asker, main):
                if holder.rpath is not None:
                    yield self._split(holder.rpath, holder), "rpath"
        yield (
            [self._expand(folder, main or asker) for folder in self.library_path],
            "LD_LIBRARY_PATH",
        )
        if asker.runpath is not None:
            yield self._split(asker.runpath, asker), "runpath"

    def _in_cache(self, name: str, asker: Loaded) -> Optional[Match]:
        for path in self.cache.get(name, ()):
            # -z nodefaultlib leaves out the default directories, in the cache too.
            if asker.no_default and path.startswith(
                tuple(folder + "/" for folder in self.default_folders)
            ):
                continue
            level = re.search(r"/glibc-hwcaps/([^/]+)/", path)
            if level is not None and level.group(1) not in self.levels:
                continue
            if self._state(path) == _FITS:
                return Match(path, "ld.so.cache")
        return None

    def _split(self, text: str, holder: Loaded) -> List[str]:
        return [self._expand(part, holder) for part in text.split(":")]

    def _expand(self, text: str, holder: Loaded) -> str:
        """Replace $ORIGIN (the folder of the path as opened, links kept), $LIB and $PLATFORM."""
        if "$" not in text:
            return text
        library = "lib64" if self.kind[0] == 2 else "lib"
        multi = _MULTIARCH.get(self.kind[2], "")
        if multi and self.machine.exists(f"/lib/{multi}"):
            library = f"lib/{multi}"
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

    def _in_folders(self, folders: Iterable[str], name: str, origin: str) -> Optional[Match]:
        for folder in folders:
            absolute = self._absolute(folder)
            match = self._in_folder(absolute, name, origin) if absolute is not None else None
            if match is not None:
                return match
        return None

    def _absolute(self, folder: str) -> Optional[str]:
        """An empty or relative entry is the working directory, which an image does not have."""
        if folder.startswith("/"):
            return folder
        return None if self.machine.root else os.path.join(_getcwd(), folder).rstrip("/")

    def _in_folder(self, folder: str, name: str, origin: str) -> Optional[Match]:
        names = self._names(folder)
        if names is None:
            return None
        for level in self.levels if "glibc-hwcaps" in names else ():
            path = f"{folder}/glibc-hwcaps/{level}/{name}"
            if self.machine.exists(path) and self._state(path) == _FITS:
                return Match(path, origin)
        if name not in names:
            return None
        path = f"{folder.rstrip('/')}/{name}"
        state = self._state(path)
        if state == _FITS:
            return Match(path, origin)
        # The loader passes over a library of another machine, but dies of one that is damaged.
        return Match("", origin, f"{path} is damaged") if state == _DAMAGED else None

    def _names(self, folder: str) -> Optional[Set[str]]:
        """The names in a folder: one listing instead of an open for each of hundreds of names."""
        key = folder.rstrip("/") or "/"
        if key not in self._folders:
            names = self.machine.listdir(key)
            self._folders[key] = None if names is None else set(names)
        return self._folders[key]

    def _state(self, path: str) -> str:
        """Tell whether the loader would map a file, go on to the next one, or give up."""
        try:
            with self.machine.use(open_elf, path) as elf:
                return _FITS if elf.kind == self.kind else _OTHER
        except OSError:
            return _OTHER
        except ElfError:
            return _DAMAGED


class LinkMap:
    """The objects that a process has loaded, in the loader's order."""

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
        """Load a file and all it needs, breadth first; None if it is no library of this kind."""
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
        """Load a file and keep nothing: the names not found, and the objects that came with it."""
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
        match = self.loader.search(name, asker, self.main or self.objects[0])
        if not match.path or self._map(match.path, name, origin or match.origin, asker) is None:
            self.missing.setdefault(name, asker.path)

    def _map(self, path: str, name: str, origin: str, parent: Optional[Loaded]) -> Optional[Loaded]:
        machine = self.loader.machine
        try:
            status = machine.use(os.stat, path)
            identity = (status.st_dev, status.st_ino)
            for held in self.objects:
                if held.identity == identity:
                    return held
            with machine.use(open_elf, path) as elf:
                if elf.kind != self.loader.kind:
                    return None
                held = Loaded(path, name, origin, parent, elf, identity)
        except (OSError, ElfError):
            return None
        self.objects.append(held)
        return held


def _brought_in_by(asker: Loaded, main: Optional[Loaded]) -> Iterator[Loaded]:
    """Yield the object that asks, those that brought it in, and the main program, each once."""
    holder: Optional[Loaded] = asker
    reached_main = main is None
    while holder is not None:
        yield holder
        reached_main = reached_main or holder is main
        holder = holder.parent
    if main is not None and not reached_main:
        yield main


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
    """Parse /etc/ld.so.cache: paths by soname, in the loader's order.

    glibc's format 1.1, alone or behind the old one. Anything else gives an empty table; never
    raises.
    """
    start = content.find(_NEW_MAGIC) if content.startswith(_OLD_MAGIC) else 0
    if start < 0 or not content.startswith(_NEW_MAGIC, start) or len(content) < start + 48:
        return {}
    flags = _FLAGS.get(machine)
    entries = [entry for entry in _cache_entries(content, start) if flags in (None, entry.flags)]
    # The file is sorted by name downwards; of one name the entries with hardware capabilities come
    # first.
    entries.sort(key=lambda entry: not entry.hardware)
    paths: Dict[str, List[str]] = {}
    for entry in entries:
        if entry.name and entry.path:
            paths.setdefault(entry.name, []).append(entry.path)
    return paths


class _CacheEntry(NamedTuple):
    flags: int
    name: str
    path: str
    hardware: int


def _cache_entries(content: bytes, start: int) -> Iterator[_CacheEntry]:
    order = ">" if content[start + 28] & 3 == 3 else "<"
    count = struct.unpack_from(order + "I", content, start + 20)[0]
    for place in range(min(count, (len(content) - start - 48) // 24)):
        flags, name, path, _, hardware = struct.unpack_from(
            order + "iIIIQ", content, start + 48 + place * 24
        )
        yield _CacheEntry(
            flags, _text(content, start + name), _text(content, start + path), hardware
        )


def _text(content: bytes, place: int) -> str:
    end = content.find(b"\0", place, place + 4096)
    return content[place:end].decode("utf-8", "surrogateescape") if 0 < place < end else ""


_LINE = pattern(r"\s*(\S+) => (?:(not found)|(.+?)) ?(?:\(0x[0-9a-f]+\))?\s*\Z")
_DIRECT = pattern(r"\s*(/.+?) \(0x[0-9a-f]+\)\s*\Z")


def parse_list(text: str) -> Dict[str, str]:
    """Parse the output of ``ld.so --list``: path by soname; "" for what was not found."""
    paths: Dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is not None:
            paths[match.group(1)] = "" if match.group(2) else match.group(3)
            continue
        match = _DIRECT.match(line)
        if match is not None:
            paths[match.group(1)] = match.group(1)
    return paths


def _x86_levels(machine: Machine) -> Tuple[str, ...]:
    """The micro-architecture levels of this CPU (System V ABI of x86-64, 3.1.1), best first."""
    text = machine.read_text("/proc/cpuinfo", 1 << 14) or ""
    match = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    flags = set(match.group(1).split()) if match else set()
    levels: List[str] = []
    for level, needed in (
        ("x86-64-v2", {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}),
        ("x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}),
        ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    ):
        if not needed <= flags:
            break
        levels.insert(0, level)
    return tuple(levels)
