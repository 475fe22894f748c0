"""The machine that is looked at: this one, or a folder with an unpacked image.

Every file that a probe reads goes through :class:`Machine`, so that ``--root`` and the tests need
no second code path. With a root, every path and every symbolic link is resolved inside it: a link
``/etc/x -> /etc/shadow`` of an image names the image's file, never the host's.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from ..model.evidence import Fact, Known
from ..model.record import NamedTuple
from ..regular_files import NotRegularError, read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Tuple, TypeVar

    T = TypeVar("T")

__all__ = ["FOLDER_ONLY", "READ_LIMIT", "Machine", "Probe", "reason_of"]

READ_LIMIT = 1 << 20
FOLDER_ONLY = "a folder is judged, not a machine"
"""The reason of host facts (driver, devices, limits) under ``--root``."""

_MISSING = f"ENOENT: {os.strerror(errno.ENOENT)}"
_LINKS = 40  # as the kernel's MAXSYMLINKS
_ENTRIES = 100_000

# What only says that a name is not there, or is something else than was asked for.
_PLAIN = frozenset(
    (None, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.ENAMETOOLONG)
)
# A refusal: where it matters, in the folders of distributions, the judged program may get it too.
_REFUSED = frozenset((errno.EACCES, errno.EPERM, errno.ELOOP))


class Machine:
    """What a probe may ask: files below a root, the environment, and what earlier probes found.

    Attributes:
        root: Folder that stands for ``/``; "" is this machine. Without a trailing slash.
        environment: Environment variables of the process that is judged; empty with a root, where
            nothing runs.
        python: The interpreter that is judged, where it is not the one that runs this code.
        deep: The user asked for slow probes too (hashes, version calls).
        described: Distributions whose metadata is read, by canonical name; None is all. Of the
            others name and version of the folder count, and whether it can be read.
        facts: Facts of the probes that ran before, by field name. Probes run in the order of
            ``probes.MODULES``.
        strict: What cannot be read stops the job: metadata that nobody needs is opened too, where
            else only its permissions are looked at.
        brief: A container starts: what only tells nodes apart is not asked.
        packages: The folders and files that say which distributions there are: a refusal there is
            kept.
        unread: Paths that could not be read although they are there, or may be, and the reasons.
        end: ``time.monotonic()`` at which all probes must be done.
    """

    __slots__ = (
        "brief",
        "deadline",
        "deep",
        "described",
        "end",
        "environment",
        "facts",
        "packages",
        "python",
        "root",
        "strict",
        "unread",
    )

    def __init__(
        self,
        root: str = "",
        environment: Optional[Mapping[str, str]] = None,
        python: Optional[str] = None,
        deep: bool = False,
        deadline: float = 5.0,
    ) -> None:
        self.root = os.path.realpath(root).rstrip("/") if root else ""
        if environment is None:
            environment = {} if self.root else os.environ
        self.environment: Mapping[str, str] = environment
        self.python = python
        self.deep = deep
        self.described: Optional[FrozenSet[str]] = None
        self.strict = False
        self.brief = False
        self.deadline = deadline
        self.end = time.monotonic() + deadline
        self.facts: Dict[str, Fact[Any]] = {}
        self.packages: Tuple[str, ...] = ()
        self.unread: Dict[str, str] = {}

    def remaining(self, most: float) -> float:
        """Return the seconds that a probe may wait for a child: ``most``, or less near the end."""
        return max(0.05, min(most, self.end - time.monotonic()))

    def value(self, field: str, default: Any = None) -> Any:
        """Return what an earlier probe found, where it is known."""
        fact = self.facts.get(field)
        return fact.value if isinstance(fact, Known) else default

    def keep_unread(self, path: str, error: Exception) -> None:
        """Keep that something could not be read, where that is more than that it is not there.

        An I/O error, a mount whose server is gone, or a pipe hides what may well be there;
        permissions hide it from this user, which matters in the folders of distributions.
        """
        number = getattr(error, "errno", None)
        if number in _PLAIN and not isinstance(error, NotRegularError):
            return
        if path.startswith(("/proc/", "/sys/", "/dev/")):
            return
        if number in _REFUSED and not self._is_of_packages(path):
            return
        self.unread.setdefault(path, reason_of(error))

    def _is_of_packages(self, path: str) -> bool:
        return any(
            path == folder or path.startswith(folder.rstrip("/") + "/") for folder in self.packages
        )

    def realpath(self, path: str) -> str:
        """Resolve every symbolic link and return the path as the target sees it (inside the root).

        Names that do not exist are kept. A loop of links returns the path up to the loop, which
        then does not open.
        """
        if not self.root:
            return os.path.realpath(path)
        pending = _reversed_parts(path)
        resolved: List[str] = []
        links = 0
        while pending:
            part = pending.pop()
            if part == "..":
                # ".." of "/" is "/", as inside a chroot.
                del resolved[-1:]
                continue
            target, exists = self._link_at("/".join([self.root, *resolved, part]))
            if target is None:
                resolved.append(part)
                if exists:
                    continue
                # As the kernel sees it: ".." behind what is not there leads nowhere.
                resolved += [part for part in reversed(pending) if part != ".."]
                break
            links += 1
            if links > _LINKS:
                resolved.append(part)
                break
            if target.startswith("/"):
                resolved = []
            pending += _reversed_parts(target)
        return "/" + "/".join(resolved)

    @staticmethod
    def _link_at(host_path: str) -> Tuple[Optional[str], bool]:
        """Return what a link names, or None, and whether there is anything."""
        try:
            return os.readlink(host_path), True
        except (OSError, ValueError) as error:
            # EINVAL: there, and no link.
            return None, getattr(error, "errno", None) == errno.EINVAL

    def path(self, path: str) -> str:
        """Return where a path of the target lies on this host, links resolved inside the root."""
        return self.root + self.realpath(path) if self.root else path

    def inside(self, host_path: str) -> str:
        """Return a path of this host as the target sees it: the reverse of :meth:`path`."""
        if self.root and (host_path == self.root or host_path.startswith(self.root + "/")):
            return host_path[len(self.root) :] or "/"
        return host_path

    def use(self, function: Callable[[str], T], path: str) -> T:
        """Return what a function makes of a path of this host, such as an open file; raises what it
        raises.
        """
        try:
            return function(self.path(path))
        except OSError as error:
            self.keep_unread(path, error)
            raise

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> Optional[bytes]:
        """Return at most ``limit`` bytes of a regular file, or None where it cannot be read.

        Never waits for a pipe, a terminal or a device.
        """
        return self.try_read(path, limit)[0]

    def try_read(self, path: str, limit: int = READ_LIMIT) -> Tuple[Optional[bytes], str]:
        """Like :meth:`read_bytes`, with the reason where nothing could be read ("" otherwise)."""
        try:
            if not self.root:
                return read_regular(path, limit), ""
            # A link that changes between path() and open() could leave the root; O_NOFOLLOW closes
            # the last step.
            return read_regular(self.path(path), limit, os.O_NOFOLLOW), ""
        except FileNotFoundError:  # most of them, and quickly
            return None, _MISSING
        except (OSError, ValueError) as error:
            self.keep_unread(path, error)
            return None, reason_of(error)

    def read_text(self, path: str, limit: int = READ_LIMIT) -> Optional[str]:
        """Return at most ``limit`` bytes of a file as text (bad bytes replaced), or None."""
        content = self.read_bytes(path, limit)
        return None if content is None else content.decode("utf-8", "replace")

    def listdir(self, path: str) -> Optional[List[str]]:
        """Return the sorted names in a folder (at most 100 000), or None if it cannot be read."""
        names: List[str] = []
        try:
            with os.scandir(self.path(path)) as entries:
                for entry in entries:
                    names.append(entry.name)
                    if len(names) >= _ENTRIES:
                        break
        except (OSError, ValueError) as error:
            self.keep_unread(path, error)
            return None
        names.sort()
        return names

    def exists(self, path: str) -> bool:
        """Tell whether something lies at a path (a dangling link does not count)."""
        return self._test(path, None)

    def isfile(self, path: str) -> bool:
        """Tell whether a regular file lies at a path."""
        return self._test(path, stat.S_ISREG)

    def isdir(self, path: str) -> bool:
        """Tell whether a folder lies at a path."""
        return self._test(path, stat.S_ISDIR)

    def _test(self, path: str, kind: Optional[Callable[[int], bool]]) -> bool:
        try:
            status = (os.lstat if self.root else os.stat)(self.path(path))
        except (OSError, ValueError) as error:
            self.keep_unread(path, error)
            return False
        if self.root and stat.S_ISLNK(status.st_mode):
            return False  # path() left a link: a loop
        return kind is None or kind(status.st_mode)

    def readlink(self, path: str) -> Optional[str]:
        """Return the text of a symbolic link, or None where there is none."""
        try:
            if not self.root:
                return os.readlink(path)
            folder, _, name = path.rstrip("/").rpartition("/")
            return os.readlink(f"{self.path(folder or '/').rstrip('/')}/{name}")
        except (OSError, ValueError) as error:
            self.keep_unread(path, error)
            return None


class Probe(NamedTuple):
    """One probe: a function from a machine to facts, and what to do with it when it fails.

    ``isolated`` probes run in a forked child and may load foreign code; the others run in this
    process and may only read files. ``fields`` become ``Unknown(reason, probe)`` when the
    probe raises, crashes or hangs. A field that the probe leaves out of its result stays as it was.
    """

    name: str
    function: Callable[[Machine], Dict[str, Fact[Any]]]
    fields: Tuple[str, ...]
    isolated: bool = False
    deadline: float = 2.0


def _reversed_parts(path: str) -> List[str]:
    """The names in a path, the last one first."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def reason_of(error: Exception) -> str:
    """Return what an error of the kernel says, with its name: ``EIO: Input/output error``."""
    number = getattr(error, "errno", None)
    if number is None:
        return str(error)
    return f"{errno.errorcode.get(number, number)}: {os.strerror(number)}"
