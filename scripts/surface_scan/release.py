"""One release as its archive shows it: which modules and names it has, and under which conditions
these are there.
"""

from __future__ import annotations

import functools
import re
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Set,
    Tuple,
)

from packaging.version import Version

from .collect import NATIVE
from .conditions import NEVER, Condition, Limits, LookUp, available_name, evaluate
from .module import Import
from .packages import Entry, Packages
from .readings import Readings
from .store import Archive

__all__ = ["Foreign", "Release"]

_MOST_STEPS = 4  # from where a function is imported to where it is defined


class _Layout(NamedTuple):
    """modules: dotted name → path. folders, inits: dotted names of folders, of those that are
    packages.
    """

    modules: Dict[str, str]
    folders: Set[str]
    inits: Set[str]


class Release:
    """The modules of one archive."""

    def __init__(self, archive: Archive, packages: Packages, readings: Readings) -> None:
        self.archive = archive
        self.version = Version(archive.version)
        self.packages = packages
        self.readings = readings
        self._from_source = not archive.file.endswith(".whl")
        #: The modules that ``demands_of`` reached: what must be installed for it, and from where.
        self.entered: Dict[str, Tuple[Limits, Entry]] = {}
        self._trees: Dict[str, Set[str]] = {}
        self._defined: Dict[Tuple[str, str], Optional[bool]] = {}

    @functools.cached_property
    def _layout(self) -> _Layout:
        """Made when it is asked for: of most releases only the version is."""
        layout = _Layout({}, set(), set())
        for path in self.archive.members:
            if path.endswith(NATIVE):
                continue
            parts = path.split("/")
            stem = parts[-1].split(".", 1)[0]
            for depth in range(1, len(parts)):
                layout.folders.add(".".join(parts[:depth]))
            if stem == "__init__":
                dotted = ".".join(parts[:-1])
                layout.inits.add(dotted)
            else:
                dotted = ".".join([*parts[:-1], stem])
            # A source wins over an extension module of the same name.
            if dotted not in layout.modules or path.endswith(".py"):
                layout.modules[dotted] = path
        return layout

    @property
    def modules(self) -> Mapping[str, str]:
        """The paths of its modules, by their names in dots."""
        return self._layout.modules

    def source_key(self, module: str) -> str:
        """Return the key of a module's source, "" where there is none to read."""
        path = self._layout.modules.get(module)
        return self.archive.members[path] if path is not None else ""

    def owners(self, module: str) -> Tuple[str, ...]:
        """Return the packages that install a module."""
        return self.packages.owners(module)

    def declared(self, module: str) -> Optional[Dict[str, Any]]:
        """Return what a module declares, None where there is no source to read."""
        key = self.source_key(module)
        return self.readings.declared(key) if key else None

    def calls(self, module: str) -> Dict[str, Any]:
        """Return how a module calls what it imports, and its classes their own methods."""
        key = self.source_key(module)
        return self.readings.calls(key) if key else {}

    def line_of(self, module: str, text: str, after: str = "") -> int:
        """Return the first line of a module with a text behind another one, 0 where there is
        none.
        """
        key = self.source_key(module)
        return self.readings.line_behind(key, text, after) if key else 0

    def path_of(self, module: str) -> str:
        """Return the path of a module below site-packages, "" where it has no file."""
        return self._layout.modules.get(module, "")

    def place_of(self, text: str) -> Optional[Tuple[str, int]]:
        """Return path and line of the first source that says a text, None where none does."""
        for path, key in sorted(self.archive.members.items()):
            line = self.readings.line_with(key, text) if key else 0
            if line:
                return path, line
        return None

    def reading(self, module: str) -> Optional[Dict[str, Any]]:
        """Return the reading of a module, None where there is none to read."""
        key = self.source_key(module)
        return self.readings.module(key) if key else None

    def has_module(self, module: str) -> Optional[bool]:
        """Tell whether there is such a module; None where it cannot be said."""
        if module in self._layout.modules or module in self._layout.folders:
            return True
        parent, _, last = module.rpartition(".")
        if not parent:
            # What it is known to install in other releases.
            return False if self.archive.package in self.packages.modules.get(module, ()) else None
        above = self.has_module(parent)
        if above is not True:
            return above
        if self._from_source and (last.startswith("_") or "version" in last):
            return None  # made by the build
        if self._alias(module):
            return True
        names = module.split(".")[:-1]
        for depth in range(1, len(names) + 1):
            ancestor = ".".join(names[:depth])
            path = self._layout.modules.get(ancestor)
            key = self.archive.members[path] if path is not None else ""
            if path is not None and (not key or self.readings.mentions(key, last)):
                return None
        if parent not in self._layout.folders:
            return None if self.reading(parent) is None else False
        return False

    def defines(self, module: str, name: str) -> Optional[bool]:
        """Tell whether ``from module import name`` finds something; None where it cannot be
        said.
        """
        key = (module, name)
        if key not in self._defined:
            self._defined[key] = self._define(module, name, frozenset())
        return self._defined[key]

    def _define(self, module: str, name: str, above: FrozenSet[str]) -> Optional[bool]:
        if module in above:  # a circle of star imports brings nothing new
            return False
        there = self.has_module(module)
        if there is not True:
            return there
        if module not in self._layout.modules and module not in self._layout.folders:
            return self._define(self._alias(module), name, above | {module})
        reading = self.reading(module)
        if name.startswith("__") or (
            reading and (name in reading["bound"] or name in (reading.get("all") or ()))
        ):
            return True
        if f"{module}.{name}" in self._layout.modules or f"{module}.{name}" in self._layout.folders:
            return True
        if reading is None:
            return None if module in self._layout.modules else False
        answers: List[Optional[bool]] = [
            self._by_star(module, level, target, name, above | {module})
            for level, target in reading.get("stars", ())
        ]
        answers += [self._in_tree(module, tree, name) for tree in reading.get("trees", ())]
        if True in answers:
            return True
        if None in answers or reading.get("dynamic") or name in reading.get("typed", ()):
            return None
        return False

    def _alias(self, module: str) -> str:
        """The module that a package registers under another name: a call such as
        ``alias(f"{__name__}.old", ".new")`` in its ``__init__``; "" where there is none.
        """
        parent, _, last = module.rpartition(".")
        path = self._layout.modules.get(parent)
        key = self.archive.members[path] if path is not None else ""
        if not key or not self.readings.mentions(key, last):
            return ""
        target = self.readings.aliases(key).get(last, "")
        found = f"{parent}{target}"
        return found if target and found in self._layout.modules else ""

    def _by_star(
        self, module: str, level: int, target: str, name: str, above: FrozenSet[str]
    ) -> Optional[bool]:
        source = self.absolute(module, level, target)
        if self.archive.package not in self.packages.owners(source):
            return None
        reading = self.reading(source)
        if reading is None:
            return None
        if reading.get("all") is not None and not reading.get("dynamic"):
            return name in reading["all"] or (None if reading.get("stars") else False)
        return False if name.startswith("_") else self._define(source, name, above)

    def _in_tree(self, module: str, tree: str, name: str) -> bool:
        return name in self.names_in_tree(module, tree)

    def names_in_tree(self, module: str, tree: str) -> Set[str]:
        """Return the names that the modules below a folder of a module list as theirs."""
        below = "" if tree == "__file__" else tree.strip("/")
        folder = "/".join([*module.split("."), *filter(None, [below])]) + "/"
        if folder not in self._trees:
            names: Set[str] = set()
            for path, key in self.archive.members.items():
                if key and path.startswith(folder):
                    names |= self.readings.listed(key)
            self._trees[folder] = names
        return self._trees[folder]

    def absolute(self, module: str, level: int, target: str) -> str:
        """Return the full name of a module that a statement in ``module`` names."""
        if not level:
            return target
        parts = module.split(".")
        drop = level - 1 if module in self._layout.inits else level
        base = parts[: len(parts) - drop]
        return ".".join([*base, target] if target else base)

    def definition(self, module: str, name: str, depth: int = 0) -> str:
        """Return the module of the package in which something is defined that another module of it
        has under a name, "" where that is not known.
        """
        reading = self.reading(module)
        if reading is None or depth > _MOST_STEPS:
            return ""
        for item in (Import(*raw) for raw in reading["imports"]):
            if name in (item.names or ()):
                target = self.absolute(module, item.level, item.module)
                own = self.archive.package in self.packages.owners(target)
                return self.definition(target, name, depth + 1) if own else ""
        return module

    def limits_of(
        self,
        module: str,
        conditions: List[Condition],
        foreign: Foreign,
        there: FrozenSet[str] = frozenset(),
    ) -> Optional[Limits]:
        """Return what must be installed for conditions in a module to hold, where the packages that
        are ``there`` are; None where that cannot be said.
        """
        joined = Limits()
        for condition in conditions:
            found = evaluate(
                condition,
                True,
                self.look_up_in(module, foreign),
                self.packages.distribution,
                there,
            )
            if found is None or found == NEVER:
                return found
            joined = joined.joined(found)
        return NEVER if set(joined.present) & set(joined.absent) else joined

    def look_up_in(self, module: str, foreign: Foreign) -> LookUp:
        """Return the look-up of names as a module sees them."""
        return lambda name, words: self._look_up(module, name, words, foreign)

    def _look_up(
        self, module: str, name: str, words: List[str], foreign: Foreign, depth: int = 0
    ) -> Optional[Tuple[Condition, LookUp]]:
        """Return the condition behind a name or a function in a module, followed through
        imports.
        """
        reading = self.reading(module)
        if reading is None or depth > 6:
            return None
        names: Mapping[str, Condition] = reading.get("names", {})
        here = self.look_up_in(module, foreign)
        if f"{name}()" in names:
            answer = _with_arguments(name, words, names[f"{name}()"])
            return None if answer is None else (answer, here)
        if name in names:
            return names[name], here
        for raw in reading["imports"]:
            item = Import(*raw)
            if name not in (item.names or ()):
                continue
            target = self.absolute(module, item.level, item.module)
            owners = self.packages.owners(target)
            own = self.archive.package in owners
            release = self if own else foreign(owners[0] if owners else None)
            if release is not None:
                return release._look_up(target, name, words, foreign, depth + 1)
        for level, star in reading.get("stars", ()):
            target = self.absolute(module, level, star)
            found = self._look_up(target, name, words, foreign, depth + 1)
            if found is not None:
                return found
        package = available_name(name)
        defined_here = name in reading["bound"]
        if package is not None and not words and not defined_here:
            return ["present", package], here
        return None


def _with_arguments(name: str, words: List[str], answer: Condition) -> Optional[Condition]:
    """What a function answers to arguments: ``is_x_available("0.19")`` asks for a version."""
    package = available_name(name)
    if not words:
        return answer
    if package is None or len(words) != 1 or not re.fullmatch(r"\d[\w.]*", words[0]):
        return None
    return ["and", answer, ["version", package, ">=", words[0]]]


#: The newest release of a package, by its name.
Foreign = Callable[[Optional[str]], Optional[Release]]
