"""What ``import PACKAGE`` runs into that is not there, read from the sources without running them.

Of a distribution that lacks something which it requires, the modules that its import executes are
followed: statements at the top level of a module, outside ``if``, ``try``, ``with`` and functions.
An import of the package itself leads on; one of a module that is on no folder of the search path
fails. What cannot be followed for certain (lazy modules, hooks of editable installs) says nothing.
"""

from __future__ import annotations

import os
import sys

from ..model.facts import Distribution, Oddity
from ..model.versions import canonicalize_name
from .interpreter import listing
from .modules import DISTRIBUTION_OF

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

    from .machine import Machine

    Missing = Dict[str, Tuple[str, int]]

__all__ = ["failing_imports", "lacking"]

_NAME_SIGNS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
_MOST_FILES = 300
_MOST_BYTES = 2 << 20  # of one file
#: Modules that newer Pythons left out of the standard library: an older target has them.
_REMOVED_TEXT = """
aifc asynchat asyncore audioop cgi cgitb chunk crypt distutils imghdr imp lib2to3 msilib nis nntplib
ossaudiodev pipes smtpd sndhdr spwd sunau telnetlib uu xdrlib
"""
_REMOVED = frozenset(_REMOVED_TEXT.split())


def lacking(distributions: Mapping[str, Distribution]) -> Dict[str, Set[str]]:
    """Return by distribution the names that it requires without a marker and that are not there."""
    known: Dict[str, str] = {}
    missing: Dict[str, Set[str]] = {}
    for name, distribution in distributions.items():
        for line in distribution.requires or ():
            if ";" in line:
                continue
            written = line[: len(line) - len(line.lstrip(_NAME_SIGNS))]
            if written not in known:
                known[written] = canonicalize_name(written)
            if known[written] not in distributions:
                missing.setdefault(name, set()).add(known[written])
    return missing


def failing_imports(
    machine: Machine,
    search_path: Sequence[str],
    wanted: Mapping[str, Set[str]],
    tops: Mapping[str, Sequence[str]],
    locations: Mapping[str, str],
) -> Iterator[Oddity]:
    """Yield which missing requirements the import of a distribution runs into.

    Args:
        machine: what is read.
        search_path: the folders of the environment, in order.
        wanted: by distribution the requirements that are not there.
        tops: by distribution its top-level modules.
        locations: by distribution the folder that it lies in.
    """
    if any(_has_hooks(machine, folder) for folder in search_path):
        return
    folders = [*search_path, *machine.environment.get("PYTHONPATH", "").split(":")]
    for name, missing in sorted(wanted.items()):
        module = _module_of(name, tops.get(name, ()))
        if module is None:
            continue
        walk = _Walk(machine, locations[name], module, [folder for folder in folders if folder])
        walk.follow((module,))
        for absent, (path, line) in walk.missing.items():
            required = DISTRIBUTION_OF.get(absent, canonicalize_name(absent))
            if required in missing:
                yield Oddity("failing-import", name, f"{path}:{line}", required)


def _has_hooks(machine: Machine, folder: str) -> bool:
    return any(
        file.startswith("__editable__") and file.endswith("finder.py")
        for file in listing(machine, folder) or ()
    )


def _module_of(name: str, tops: Sequence[str]) -> Optional[str]:
    """Return the module that is meant where somebody imports a distribution."""
    alike = [top for top in tops if canonicalize_name(top) == name]
    return alike[0] if alike else tops[0] if len(tops) == 1 else None


class _Walk:
    """Follows what the import of one package executes."""

    def __init__(self, machine: Machine, location: str, top: str, folders: Sequence[str]) -> None:
        self.machine = machine
        self.location = location
        self.top = top
        self.folders = folders
        self.seen: Set[Tuple[str, ...]] = set()
        self.missing: Missing = {}

    def follow(self, module: Tuple[str, ...]) -> None:
        """Read a module of the package after the packages above it."""
        waiting = [module[: place + 1] for place in reversed(range(len(module)))]
        while waiting and len(self.seen) < _MOST_FILES:
            name = waiting.pop()
            if name in self.seen:
                continue
            self.seen.add(name)
            path, is_package = self._file(name)
            if path is None:
                continue
            later = list(self._imports(name if is_package else name[:-1], path))
            for module in reversed(later):
                waiting += [module[: place + 1] for place in reversed(range(len(module)))]

    def _file(self, name: Tuple[str, ...]) -> Tuple[Optional[str], bool]:
        base = "/".join((self.location, *name))
        if self.machine.isfile(f"{base}/__init__.py"):
            return f"{base}/__init__.py", True
        return (f"{base}.py", False) if self.machine.isfile(f"{base}.py") else (None, False)

    def _imports(self, package: Tuple[str, ...], path: str) -> Iterator[Tuple[str, ...]]:
        """Yield the modules of the package that a file imports; note what is not there."""
        import ast

        source = self.machine.read_bytes(path, _MOST_BYTES)
        try:
            tree = ast.parse(source or b"")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        for node in tree.body:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from self._named(tuple(alias.name.split(".")), path, node.lineno)
            elif isinstance(node, ast.ImportFrom):
                yield from self._from(node, package, path)

    def _from(
        self, node: ast.ImportFrom, package: Tuple[str, ...], path: str
    ) -> Iterator[Tuple[str, ...]]:
        above = package[: len(package) - node.level + 1] if node.level else ()
        module = (*above, *(node.module or "").split(".")) if node.module else above
        if not module or (node.level and not above):
            return
        yield from self._named(module, path, node.lineno)
        if module[0] != self.top:
            return
        base, is_package = self._file(module)
        if base is None or not is_package or self._is_lazy(base):
            return
        for alias in node.names:
            if self._file((*module, alias.name))[0] is not None:
                yield (*module, alias.name)

    def _is_lazy(self, path: str) -> bool:
        """Tell whether names of a package need not be what its files are called."""
        source = self.machine.read_bytes(path, _MOST_BYTES) or b""
        return b"__getattr__" in source or b"sys.modules" in source

    def _named(self, module: Tuple[str, ...], path: str, line: int) -> Iterator[Tuple[str, ...]]:
        if module[0] == self.top:
            yield module
        elif not self._is_there(module[0]):
            self.missing.setdefault(module[0], (path, line))

    def _is_there(self, module: str) -> bool:
        if module in _standard():
            return True
        return any(
            name == module or name.startswith(f"{module}.")
            for folder in self.folders
            for name in listing(self.machine, folder) or ()
        )


def _standard() -> Set[str]:
    """Return the modules of the standard library, of any version that may be judged."""
    if not _STANDARD:
        folder = os.path.dirname(os.__file__)
        names: List[str] = [*sys.builtin_module_names, *os.listdir(folder)]
        _STANDARD.update(getattr(sys, "stdlib_module_names", ()), _REMOVED)
        _STANDARD.update(name.partition(".")[0] for name in names)
    return _STANDARD


_STANDARD: Set[str] = set()
