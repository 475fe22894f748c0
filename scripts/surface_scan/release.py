"""One release as its archive shows it: which modules and names it has, and what its entry modules
import.
"""

from __future__ import annotations

import ast
import functools
import heapq
import itertools
import json
import re
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Pattern,
    Sequence,
    Set,
    Tuple,
)

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from envdoctor.matrix.measured_rows import BEGINS_OTHERWISE

from .calls import CALLS_REVISION, read_calls
from .collect import NATIVE
from .conditions import (
    AS_TEXT,
    NEGATED,
    NEVER,
    Condition,
    Limits,
    LookUp,
    available_name,
    clause_holds,
    evaluate,
)
from .declared import (
    DECLARED_REVISION,
    LISTED,
    BlockCache,
    listed_names,
    read_declared,
    read_registries,
)
from .gates import GATES_REVISION, read_gates
from .methods import Refusal, read_backends, read_members, read_methods, read_refusals
from .module import (
    REVISION,
    Call,
    Function,
    Import,
    Use,
    callees_of,
    functions_from,
    functions_of,
    read_called,
    read_module,
    read_started,
)
from .optional_names import Asked, read_optional_names
from .packages import Entry, Packages
from .parsing import UNPARSABLE, parse_quietly, without_refusals
from .setting_checks import SettingCheck, read_setting_checks, read_switches
from .store import Archive, Sources
from .torch_checks import DeviceCheck, read_device_checks

__all__ = ["EQUAL_KINDS", "Demand", "Readings", "Release"]

_ALIAS = re.compile(r"\w+\(\s*f?[\"'][^\"'\n]*\.(\w+)[\"'],\s*[\"'](\.[\w.]+)[\"']")
_TEXT = re.compile(r"[\"'.](\w+)[\"']")
#: What lies in a folder on sys.path is a module of its own, whatever the folder is called.
_ON_PATH = re.compile(r"^[ \t]*sys\.path\.(?:append|extend|insert)\(.*$", re.MULTILINE)


_ALWAYS = Limits()
_OFTEN = 500  # readings after which they are kept
_MOST_DECLARED = 4000  # in memory
_MOST_STEPS = 4  # from where a function is imported to where it is defined


class Demand(NamedTuple):
    """An import of another package's name that runs whenever an entry module is imported.

    name: "" for a module. alternatives: it runs where one of these (module, name) of the same
    package was missing; empty where it always runs. used: it is no import, but an attribute of an
    imported module.
    """

    provider: str
    module: str
    name: str
    limits: Limits
    entry: Entry
    path: str
    line: int
    alternatives: Tuple[Tuple[str, str], ...]
    used: bool = False


#: Gates that ask for the own version of who asks.
EQUAL_KINDS = ("equal", "begins")


class Gate(NamedTuple):
    """What a release's code does about versions of another package.

    kind: as in ``gates``. package: as the source names it. specifier: what it accepts, with "||"
    between alternatives; "" for an equal version. at_import: it stops the import.
    """

    kind: str
    package: str
    specifier: str
    limits: Limits
    at_import: bool
    known: bool
    main: bool
    use: str
    message: str

    @property
    def effect(self) -> str:
        """What becomes of it: blocks, degrades or note."""
        if self.kind in ("window", "absent", "skips") or not self.known:
            return "note"
        if self.kind == "disable" or not self.at_import or not self.main:
            return "degrades"
        return "blocks"

    @property
    def verb(self) -> str:
        """What the package does with what it does not accept."""
        return {
            "window": "warns of",
            "disable": "disables",
            "absent": "goes on as if there were no",
            "skips": "leaves a part out with",
            "begins": BEGINS_OTHERWISE,
        }.get(self.kind, "refuses")

    @property
    def identity(self) -> str:
        """The id of a row without the package that it is about."""
        word = {
            "window": "supports",
            "disable": "disables",
            "equal": "equals",
            "begins": "equals",
            "absent": "passes-over",
            "skips": "skips",
        }
        specifier = re.sub(r"[^\w.]+", "-", self.specifier).strip("-")
        parts = [word.get(self.kind, "refuses"), self.package, specifier]
        return "-".join(filter(None, parts))

    def refuses(self, version: Version) -> bool:
        """Tell whether a release is not accepted, whoever asks."""
        return bool(self.specifier) and not any(
            all(clause_holds(*_clause(clause), version) for clause in part.split(","))
            for part in self.specifier.split("||")
        )


class Readings:
    """Readings of sources, kept in memory for the packages at hand and in the store for good."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._memory: Dict[str, Dict[str, Any]] = {}
        self._listed: Dict[str, Set[str]] = {}
        self._gates: Dict[str, List[List[Any]]] = {}
        self._texts: Dict[str, FrozenSet[str]] = {}
        #: What is to be kept, by the revision of its reader.
        self._new: Dict[str, List[Tuple[str, str]]] = {}
        self._declared: Dict[str, Dict[str, Any]] = {}
        self._aliases: Dict[str, Dict[str, str]] = {}
        self._registries: Dict[str, Dict[str, Any]] = {}
        self._blocks: BlockCache = {}
        self._methods: Dict[str, List[Tuple[str, Any, int]]] = {}
        self._says: Dict[Tuple[str, bytes], bool] = {}
        self._members: Dict[str, Dict[str, str]] = {}
        self._starts: Dict[Tuple[str, str], List[Import]] = {}
        self._called: Dict[str, Dict[str, List[List[Any]]]] = {}
        self._optional: Dict[str, Dict[str, Asked]] = {}
        self._backends: Dict[str, List[Tuple[str, FrozenSet[str], int]]] = {}
        self._calls: Dict[str, Dict[str, Any]] = {}
        self._words: Dict[Tuple[str, bytes], FrozenSet[str]] = {}
        self._refusals: Dict[str, List[Refusal]] = {}
        self._parsed: Tuple[str, ast.Module] = ("", ast.Module([], []))
        self._functions: Dict[Tuple[str, str], Optional[Function]] = {}
        self._setting_checks: Dict[
            Tuple[str, str], Tuple[Sequence[SettingCheck], Mapping[str, bool]]
        ] = {}

    def declared(self, key: str) -> Dict[str, Any]:
        """Return what a source declares."""
        reading = self._declared.get(key)
        if reading is None:
            reader = functools.partial(read_declared, blocks=self._blocks)
            reading = self._kept(f"declared {key}", DECLARED_REVISION, key, reader)
            self._declared[key] = reading
            self._listed[key] = set(reading.get("listed", ()))
        return reading

    def _kept(self, name: str, revision: str, key: str, read: Callable[[bytes], Any]) -> Any:
        """Return what is kept under a name, else what a reader of this revision reads of a source
        now: many are kept at once, since each time the disk is waited for.
        """
        text = self._sources.reading(name, revision)
        if text is not None:
            return json.loads(text)
        reading = read(self._sources.source(key))
        new = self._new.setdefault(revision, [])
        new.append((name, json.dumps(reading, separators=(",", ":"))))
        if len(new) > _OFTEN:
            self.flush()
        return reading

    def methods(self, key: str) -> List[Tuple[str, Any, int]]:
        """Return the quantisation methods that a source defines."""
        if key not in self._methods:
            self._methods[key] = read_methods(self._sources.source(key))
        return self._methods[key]

    def started(self, key: str, function: str) -> List[Import]:
        """Return what a function of a source imports when it runs."""
        if (key, function) not in self._starts:
            self._starts[key, function] = read_started(self._sources.source(key), function)
        return self._starts[key, function]

    def called(self, key: str) -> Dict[str, List[List[Any]]]:
        """Return what the functions of a source do for sure when they are called."""
        called = self._called.get(key)
        if called is None:
            called = self._called[key] = self._kept(f"called {key}", REVISION, key, read_called)
        return called

    def optional_names(self, key: str) -> Dict[str, Asked]:
        """Return the names that a source binds only where an import works."""
        if key not in self._optional:
            self._optional[key] = read_optional_names(self._sources.source(key))
        return self._optional[key]

    def calls(self, key: str) -> Dict[str, Any]:
        """Return how a source calls what it imports, and its classes their own methods."""
        calls = self._calls.get(key)
        if calls is None:
            calls = self._calls[key] = self._kept(f"calls {key}", CALLS_REVISION, key, read_calls)
        return calls

    def members(self, key: str, names: Iterable[str]) -> Dict[str, str]:
        """Return the members of the enumerations of these names in a source, with their values."""
        if key not in self._members:
            source = self._sources.source(key)
            found = (read_members(source, name).items() for name in names)
            self._members[key] = dict(itertools.chain.from_iterable(found))
        return self._members[key]

    def backends(self, key: str) -> List[Tuple[str, FrozenSet[str], int]]:
        """Return the attention backends that a source defines, with the GPUs that they refuse."""
        if key not in self._backends:
            self._backends[key] = read_backends(self._sources.source(key))
        return self._backends[key]

    def refusals(self, key: str) -> List[Refusal]:
        """Return the checks of the GPU in a source that stand under the choice of a word."""
        if key not in self._refusals:
            self._refusals[key] = read_refusals(self._sources.source(key))
        return self._refusals[key]

    def function(self, key: str, name: str) -> Optional[Function]:
        """Return a function of a source, or a method ``Class.f``; None where there is none."""
        if (key, name) not in self._functions:
            self._functions[key, name] = functions_of(self._tree(key)).get(name)
        return self._functions[key, name]

    def setting_checks(
        self, key: str, method: str
    ) -> Tuple[Sequence[SettingCheck], Mapping[str, bool]]:
        """Return what a method of a source raises where a setting is on, itself or in one that it
        comes to, and the switches of its class with their defaults.
        """
        if (key, method) not in self._setting_checks:
            tree, owner = self._tree(key), method.rpartition(".")[0]
            functions = functions_of(tree)
            reached = functions_from(callees_of(functions), method) if owner else []
            checks = [
                check
                for name in reached
                if name.startswith(f"{owner}.")
                for check in read_setting_checks(functions[name].body)
            ]
            classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
            body = [part for node in classes if node.name == owner for part in node.body]
            self._setting_checks[key, method] = checks, read_switches(body)
        return self._setting_checks[key, method]

    def _tree(self, key: str) -> ast.Module:
        """The tree of a source; the last one is kept, an empty one of what cannot be parsed."""
        if self._parsed[0] != key:
            try:
                self._parsed = key, parse_quietly(self._sources.source(key))
            except UNPARSABLE:
                self._parsed = key, ast.Module([], [])
        return self._parsed[1]

    def device_check(self, key: str) -> Optional[DeviceCheck]:
        """Return what a source in C++ refuses by the GPU alone."""
        return read_device_checks(self._sources.source(key))

    def words(self, key: str, text: Pattern[bytes]) -> FrozenSet[str]:
        """Return what of a source matches."""
        if (key, text.pattern) not in self._words:
            found = text.findall(self._sources.source(key))
            self._words[key, text.pattern] = frozenset(word.decode() for word in found)
        return self._words[key, text.pattern]

    def says(self, key: str, text: Pattern[bytes]) -> bool:
        """Tell whether a source holds a text."""
        if (key, text.pattern) not in self._says:
            self._says[key, text.pattern] = bool(text.search(self._sources.source(key)))
        return self._says[key, text.pattern]

    def registries(self, key: str) -> Dict[str, Any]:
        """Return the registries and options of a source, without the rest of what it declares."""
        if key not in self._registries:
            reading = self._declared.get(key)
            self._registries[key] = (
                read_registries(self._sources.source(key)) if reading is None else reading
            )
        return self._registries[key]

    def forget_declared(self) -> None:
        """Free the memory of what sources declare where it grew large."""
        if len(self._declared) > _MOST_DECLARED:
            self._declared.clear()

    def module(self, key: str) -> Dict[str, Any]:
        """Return the reading of a source."""
        reading = self._memory.get(key)
        if reading is None:
            reading = self._kept(key, REVISION, key, read_module)
            reading["bound"] = frozenset(reading["bound"])
            self._memory[key] = reading
        return reading

    def gates(self, key: str) -> List[List[Any]]:
        """Return the gates of a source."""
        gates = self._gates.get(key)
        if gates is None:
            gates = self._gates[key] = self._kept(f"gates {key}", GATES_REVISION, key, read_gates)
        return gates

    def listed(self, key: str) -> Set[str]:
        """Return the names in a source's ``__all__`` and those that a decorator exports."""
        names = self._listed.get(key)
        if names is None:
            text = self._sources.source(key).decode("utf-8", "replace")
            names = listed_names(text)
            self._listed[key] = names
        return names

    def mentions(self, key: str, word: str) -> bool:
        """Tell whether a source holds a word as (the end of) a text outside of its ``__all__``,
        which lists what it offers and makes no module, and of the folders that it puts on sys.path.
        """
        words = self._texts.get(key)
        if words is None:
            source = self._sources.source(key).decode("utf-8", "replace")
            text = _ON_PATH.sub("", LISTED.sub("", without_refusals(source)))
            words = self._texts[key] = frozenset(_TEXT.findall(text))
        return word in words

    def line_of(self, key: str, text: str) -> int:
        """Return the first line of a source that begins with a text, 1 where none does."""
        lines = self._sources.source(key).decode("utf-8", "replace").splitlines()
        start = text.rstrip("()")
        return next((n for n, line in enumerate(lines, 1) if line.startswith(start)), 1)

    def line_behind(self, key: str, text: str, after: str) -> int:
        """Return the first line of a source that has a text behind a line with another one; 0 where
        none has.
        """
        behind = not after
        lines = self._sources.source(key).decode("utf-8", "replace").splitlines()
        for number, line in enumerate(lines, 1):
            behind = behind or after in line
            if behind and f"{text}(" in line:
                return number
        return 0

    def line_with(self, key: str, word: str) -> int:
        """Return the first line of a source that holds a word, in quotes where one does; 0 where
        none holds it.
        """
        text = self._sources.source(key).decode("utf-8", "replace")
        if word not in text:
            return 0
        found = re.search(rf"[\"']{re.escape(word)}[\"']", text)
        found = found or re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)
        return text.count("\n", 0, found.start()) + 1 if found else 0

    def aliases(self, key: str) -> Dict[str, str]:
        """Return the modules that a source registers under another name."""
        if key not in self._aliases:
            text = self._sources.source(key).decode("utf-8", "replace")
            self._aliases[key] = dict(_ALIAS.findall(text))
        return self._aliases[key]

    def flush(self) -> None:
        """Keep what was read."""
        for revision, readings in self._new.items():
            self._sources.keep_readings(readings, revision)
        self._new.clear()

    def forget(self) -> None:
        """Free the memory; what was read is kept."""
        self.flush()
        self._memory.clear()
        self._listed.clear()
        self._texts.clear()
        self._gates.clear()
        self._called.clear()
        self._optional.clear()
        self._calls.clear()
        self._declared.clear()
        self._registries.clear()
        self._blocks.clear()
        self._functions.clear()
        self._setting_checks.clear()


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
        self._packages = packages
        self._readings = readings
        self._from_source = not archive.file.endswith(".whl")
        self._entered: Dict[str, Tuple[Limits, Entry]] = {}
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

    # what it has

    @property
    def modules(self) -> Iterable[str]:
        """Its modules, in dots."""
        return self._layout.modules

    def source_key(self, module: str) -> str:
        """Return the key of a module's source, "" where there is none to read."""
        path = self._layout.modules.get(module)
        return self.archive.members[path] if path is not None else ""

    @property
    def entered(self) -> Mapping[str, Tuple[Limits, Entry]]:
        """The modules that ``demands`` reached: what must be installed for it, and from where."""
        return self._entered

    def owners(self, module: str) -> Tuple[str, ...]:
        """Return the packages that install a module."""
        return self._packages.owners(module)

    def declared(self, module: str) -> Optional[Dict[str, Any]]:
        """Return what a module declares, None where there is no source to read."""
        key = self.source_key(module)
        return self._readings.declared(key) if key else None

    def calls(self, module: str) -> Dict[str, Any]:
        """Return how a module calls what it imports, and its classes their own methods."""
        key = self.source_key(module)
        return self._readings.calls(key) if key else {}

    def line_of(self, module: str, text: str, after: str = "") -> int:
        """Return the first line of a module with a text behind another one, 0 where there is
        none.
        """
        key = self.source_key(module)
        return self._readings.line_behind(key, text, after) if key else 0

    def limits_of(
        self, module: str, conditions: List[Condition], foreign: Foreign
    ) -> Optional[Limits]:
        """Return what must be installed for conditions in a module to hold; None where that cannot
        be said.
        """
        return self._limits(module, conditions, foreign)

    def path_of(self, module: str) -> str:
        """Return the path of a module below site-packages, "" where it has no file."""
        return self._layout.modules.get(module, "")

    def place_of(self, text: str) -> Optional[Tuple[str, int]]:
        """Return path and line of the first source that says a text, None where none does."""
        for path, key in sorted(self.archive.members.items()):
            line = self._readings.line_with(key, text) if key else 0
            if line:
                return path, line
        return None

    def reading(self, module: str) -> Optional[Dict[str, Any]]:
        """Return the reading of a module, None where there is none to read."""
        key = self.source_key(module)
        return self._readings.module(key) if key else None

    def has_module(self, module: str) -> Optional[bool]:
        """Tell whether there is such a module; None where it cannot be said."""
        if module in self._layout.modules or module in self._layout.folders:
            return True
        parent, _, last = module.rpartition(".")
        if not parent:
            # What it is known to install in other releases.
            return False if self.archive.package in self._packages.modules.get(module, ()) else None
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
            if path is not None and (not key or self._readings.mentions(key, last)):
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
        if not key or not self._readings.mentions(key, last):
            return ""
        target = self._readings.aliases(key).get(last, "")
        found = f"{parent}{target}"
        return found if target and found in self._layout.modules else ""

    def _by_star(
        self, module: str, level: int, target: str, name: str, above: FrozenSet[str]
    ) -> Optional[bool]:
        source = self.absolute(module, level, target)
        if self.archive.package not in self._packages.owners(source):
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
                    names |= self._readings.listed(key)
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

    # what it imports

    def demands(self, entries: Tuple[Entry, ...], foreign: Foreign) -> List[Demand]:
        """Return what importing the entry modules imports of other packages."""
        found: Dict[Tuple[Any, ...], Demand] = {}
        # What an earlier entry always runs needs no second look: entries of everybody come first.
        always: Set[str] = set()
        for entry in entries:
            reached = self._reached(entry.module, foreign, always)
            always.update(module for module, limits in reached.items() if limits == Limits())
            for module, limits in reached.items():
                self._entered.setdefault(module, (limits, entry))
            for module, limits in reached.items():
                for demand in self._of_module(module, limits, entry, foreign):
                    found.setdefault(_key(demand), demand)
        for demand in self._started(foreign):
            found.setdefault(_key(demand), demand)
        return list(found.values())

    def _started(self, foreign: Foreign) -> Iterator[Demand]:
        """Yield what the functions import that people's runs come to, and the modules of their own
        that these import.
        """
        for start, use in self._packages.starts.get(self.archive.package, {}).items():
            module, _, function = start.partition(":")
            if module not in self._layout.modules or not self.source_key(module):
                continue
            entry = Entry(module, use, False)
            imports = self._readings.started(self.source_key(module), function)
            yield from self._of_imports(module, imports, Limits(), entry, foreign)
            for target, limits in list(self._own_targets(module, imports, Limits(), foreign)):
                for name, own in self._reached(target, foreign, set(self._entered), limits).items():
                    self._entered.setdefault(name, (own, entry))
                    yield from self._of_module(name, own, entry, foreign)

    def gates(self, foreign: Foreign) -> Iterator[Tuple[Gate, str, int]]:
        """Yield what the modules that ``demands`` reached do about versions of other packages, with
        path and line.
        """
        for module, (limits, entry) in self._entered.items():
            path = self._layout.modules[module]
            key = self.archive.members[path]
            for name, package, specifier in self._floors(module, foreign):
                gate = Gate(
                    "absent",
                    package,
                    specifier,
                    Limits(),
                    True,
                    True,
                    entry.main,
                    "",
                    f"{name} is false",
                )
                yield gate, path, self._readings.line_of(key, f"def {name}")
            for raw in self._readings.gates(key) if key else ():
                for gate, line in self._gates_of(raw, module, limits, entry, foreign):
                    yield gate, path, line

    def _gates_of(
        self, raw: List[Any], module: str, limits: Limits, entry: Entry, foreign: Foreign
    ) -> Iterator[Tuple[Gate, int]]:
        """Yield what one gate of a module that is reached under limits accepts, with its line."""
        kind, what, line, at_import, conditions, function, message, callers = raw
        uses = [condition[1] for condition in conditions if condition[0] == "use"]
        if kind == "floor":  # who has the package chose, mostly, what is named after it
            uses += [f"{part[1]} {part[2]}" for part in conditions if _is_choice_of(part, what[0])]
        conditions = [
            condition
            for condition in conditions
            if condition[0] != "use" and not (kind == "floor" and _is_choice_of(condition, what[0]))
        ]
        own = self._limits(module, conditions, foreign)
        if own == NEVER or (own is None and kind != "floor"):
            return
        started = self._packages.start_of(self.archive.package, module, callers)
        use = uses[0] if uses else started
        if not use:
            use = entry.use if at_import else f"{function}()"
        for package, specifier, more in self._accepted(kind, what, module, foreign):
            asked = available_name(function)
            is_asked = asked and self._packages.distribution(asked) == (
                self._packages.distribution(package)
            )
            if kind == "if" and not (at_import or is_asked or started):
                continue  # who calls it is not known; is_x_available is called by many
            for provider in self._packages.alike(package):
                gate = Gate(
                    "skips" if kind == "pairs" else kind,
                    provider,
                    specifier,
                    limits.joined(own or Limits()).joined(more),
                    at_import and not uses,
                    own is not None,
                    entry.main,
                    use,
                    message,
                )
                yield gate, line

    def _floors(self, module: str, foreign: Foreign) -> Iterator[Tuple[str, str, str]]:
        """Yield (function, package, specifier) for each ``is_x_available`` of a module that asks
        for versions of x.
        """
        reading = self.reading(module) or {}
        for key, condition in reading.get("names", {}).items():
            package = available_name(key[:-2]) if key.endswith("()") else None
            distribution = self._packages.distribution(package) if package else None
            if distribution is None or distribution == self.archive.package:
                continue
            limits = self._limits(module, [condition], foreign)
            versions = limits.versions if limits is not None else ()
            if versions and {name for name, _, _ in versions} == {distribution}:
                clauses = ",".join(f"{operator}{text}" for _, operator, text in versions)
                yield f"{key}", distribution, clauses

    def _accepted(
        self, kind: str, what: Any, module: str, foreign: Foreign
    ) -> Iterator[Tuple[str, str, Limits]]:
        """Yield (package, specifier that is accepted, what else has to hold)."""
        if kind in EQUAL_KINDS:
            yield what[0], "", Limits()
        elif kind == "pairs":
            fitting = [Version(other) for own, other in what[1] if Version(own) == self.version]
            released = [f"=={other}" for other in fitting if not other.is_prerelease]
            if released:
                yield what[0], "||".join(released), Limits()
        elif kind != "if":
            try:
                [SpecifierSet(part) for part in what[1].split("||")]
            except InvalidSpecifier:
                return
            yield what[0], what[1], Limits()
        else:
            refused = self._refused(module, what[1:], foreign)
            clauses = refused.versions if refused is not None else ()
            if refused is None or refused == NEVER or not clauses:
                return
            # What is asked for last is refused; the rest has to hold as well.
            package = clauses[-1][0]
            accepted = [
                f"{_negated(operator)}{bound}"
                for name, operator, bound in clauses
                if name == package
            ]
            others = tuple(clause for clause in clauses if clause[0] != package)
            present = tuple(name for name in refused.present if name != package)
            yield package, "||".join(accepted), Limits(others, present, refused.absent)

    def _refused(
        self, module: str, conditions: List[Condition], foreign: Foreign
    ) -> Optional[Limits]:
        """What must be installed for conditions to hold together. Of ``not is_x_available()`` the
        case that x is there, and too old; where it asks for no version that it is not there.
        """
        joined = Limits()
        for condition in conditions:
            found = self._limits(module, [condition], foreign)
            inner = condition[1] if condition[0] == "not" else [""]
            word = available_name(inner[1]) if inner[0] in ("call", "name") else None
            package = self._packages.distribution(word) if word else None
            if package and (found is None or not found.versions):
                old = self._limits(module, [condition], foreign, frozenset([package]))
                found = old if old and old.versions else Limits(absent=(package,))
            if found is None or found == NEVER:
                return found
            joined = joined.joined(found)
        return NEVER if set(joined.present) & set(joined.absent) else joined

    def _reached(
        self, entry: str, foreign: Foreign, known: Set[str], limits: Limits = _ALWAYS
    ) -> Dict[str, Limits]:
        """The modules of this release, but those ``known``, that importing one under limits runs,
        with what must be installed for it.
        """
        reached: Dict[str, Limits] = {}
        if entry not in self._layout.modules:
            return reached
        # Those that always run first: the way with the fewest conditions counts; of equal ones the
        # last that was come to.
        waiting: List[Tuple[int, int, str, Limits]] = [(0, 0, entry, limits)]
        serial = itertools.count(-1, -1)
        while waiting:
            _, _, module, limits = heapq.heappop(waiting)
            for name in _with_parents(module):
                if name in reached or name in known or name not in self._layout.modules:
                    continue
                reached[name] = limits
                for target, joined in self._edges(name, limits, foreign):
                    conditions = sum(map(len, joined))
                    heapq.heappush(waiting, (conditions, next(serial), target, joined))
        return reached

    def _edges(self, module: str, limits: Limits, foreign: Foreign) -> Iterator[Tuple[str, Limits]]:
        imports = [Import(*raw) for raw in (self.reading(module) or {}).get("imports", ())]
        yield from self._own_targets(module, imports, limits, foreign)

    def _own_targets(
        self, module: str, imports: List[Import], limits: Limits, foreign: Foreign
    ) -> Iterator[Tuple[str, Limits]]:
        """Yield the modules of the package itself that imports in one of them run."""
        for item in imports:
            target = self.absolute(module, item.level, item.module)
            if item.guarded or item.after or target.split(".")[0] != module.split(".")[0]:
                continue
            own = self._limits(module, item.conditions, foreign)
            if own is None or own == NEVER:
                continue
            joined = limits.joined(own)
            yield target, joined
            places = (self.reading(target) or {}).get("places", {})
            for name in item.names or ():
                if f"{target}.{name}" in self._layout.modules:
                    yield f"{target}.{name}", joined
                elif name in places:
                    yield f"{target}.{places[name]}", joined

    def _of_module(
        self, module: str, limits: Limits, entry: Entry, foreign: Foreign
    ) -> Iterator[Demand]:
        reading = self.reading(module) or {}
        imports = [Import(*raw) for raw in reading.get("imports", ())]
        yield from self._of_imports(module, imports, limits, entry, foreign)
        for use in (Use(*raw) for raw in reading.get("used", ())):
            yield from self._of_use(module, use, limits, entry, foreign)
        for call in (Call(*raw) for raw in reading.get("calls", ())):
            yield from self._of_call(module, call, limits, entry, foreign)

    def _of_call(
        self, module: str, call: Call, limits: Limits, entry: Entry, foreign: Foreign
    ) -> Iterator[Demand]:
        """Yield what a function of the package itself needs that a module calls when it is
        imported; what that function calls in turn is not followed.
        """
        own = self._limits(module, call.conditions, foreign)
        if own is None or own == NEVER:
            return
        place, (imports, uses) = self._function(module, call.name)
        joined = limits.joined(own)
        items = [Import(*raw) for raw in imports]
        yield from self._of_imports(place, items, joined, entry, foreign)
        for use in (Use(*raw) for raw in uses):
            yield from self._of_use(place, use, joined, entry, foreign)

    def _function(self, module: str, name: str) -> Tuple[str, List[List[Any]]]:
        """Return the module of the package in which a function is defined that another module of it
        has under a name, and what it does when it is called; nothing where that is not known.
        """
        place = self.definition(module, name)
        if not place:
            return module, [[], []]
        return place, self._readings.called(self.source_key(place)).get(name, [[], []])

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
                own = self.archive.package in self._packages.owners(target)
                return self.definition(target, name, depth + 1) if own else ""
        return module

    def _of_use(
        self, module: str, use: Use, limits: Limits, entry: Entry, foreign: Foreign
    ) -> Iterator[Demand]:
        """Yield what must be in a module of another package for its attributes to be read: the
        first that is no module.
        """
        providers = self._packages.owners(use.module)
        own = self._limits(module, use.conditions, foreign) if len(providers) == 1 else None
        newest = foreign(providers[0]) if providers and own not in (None, NEVER) else None
        if newest is None or own is None or self.archive.package in providers:
            return
        parts = [*use.module.split("."), *use.chain.split(".")]
        place = 1
        while place < len(parts) and newest.has_module(".".join(parts[: place + 1])):
            place += 1
        if place < len(parts) and not parts[place].startswith("__"):
            yield Demand(
                providers[0],
                ".".join(parts[:place]),
                parts[place],
                limits.joined(own),
                entry,
                self._layout.modules[module],
                use.line,
                (),
                True,
            )

    def _of_imports(
        self,
        module: str,
        imports: List[Import],
        limits: Limits,
        entry: Entry,
        foreign: Foreign,
    ) -> Iterator[Demand]:
        for item in imports:
            target = self.absolute(module, item.level, item.module)
            providers = self._packages.owners(target)
            if not providers or item.guarded:
                continue
            own = self._limits(module, item.conditions, foreign)
            if own is None or own == NEVER:
                continue
            if self.archive.package in providers:
                if not item.after:
                    yield from self._of_own_names(target, item, limits.joined(own), entry)
                continue
            alternatives = self._tried(item, imports, providers)
            if alternatives is None:
                continue
            for provider, name in itertools.product(providers, item.names or [""]):
                yield Demand(
                    provider,
                    item.module,
                    "" if name == "*" else name,
                    limits.joined(own),
                    entry,
                    self._layout.modules[module],
                    item.line,
                    alternatives,
                )

    def _of_own_names(
        self, target: str, item: Import, limits: Limits, entry: Entry
    ) -> Iterator[Demand]:
        """Yield what must be in another package for a module of this one to have what is imported
        from it.
        """
        if not item.names or target not in self._layout.modules or not self.source_key(target):
            return
        optional = self._readings.optional_names(self.source_key(target))
        for name in item.names:
            asked = optional.get(name)
            providers = self._packages.owners(asked.module) if asked is not None else ()
            if asked is not None and self.archive.package not in providers:
                path = self._layout.modules[target]
                for provider in providers:
                    what = (provider, asked.module, asked.name, limits, entry)
                    yield Demand(*what, path, asked.line, ())

    def _tried(
        self, item: Import, imports: List[Import], providers: Tuple[str, ...]
    ) -> Optional[Tuple[Tuple[str, str], ...]]:
        """What was tried before an import in a handler; None where that is not only names of the
        same package.
        """
        tried: List[Tuple[str, str]] = []
        for number in item.after:
            if number < 0:
                return None
            other = imports[number]
            if other.level or self._packages.owners(other.module) != providers:
                return None
            tried += [(other.module, name) for name in other.names or [""]]
        return tuple(tried)

    def _limits(
        self,
        module: str,
        conditions: List[Condition],
        foreign: Foreign,
        there: FrozenSet[str] = frozenset(),
    ) -> Optional[Limits]:
        """What must be installed for conditions to hold, where the packages that are ``there`` are;
        None where that cannot be said.
        """
        joined = Limits()
        for condition in conditions:
            found = evaluate(
                condition,
                True,
                self.look_up_in(module, foreign),
                self._packages.distribution,
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
            owners = self._packages.owners(target)
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


def _key(demand: Demand) -> Tuple[Any, ...]:
    """What demands share that say the same."""
    return (
        *(demand.provider, demand.module, demand.name, demand.limits),
        *(demand.entry.main, demand.used),
    )


def _is_choice_of(condition: Condition, package: str) -> bool:
    return condition[0] == "chosen" and condition[2] in package


_CLAUSE = re.compile(rf"((?:{AS_TEXT})?(?:!?\^=|[<>=!~]=?))\s*(.*)")


def _clause(text: str) -> Tuple[str, str]:
    match = _CLAUSE.fullmatch(text.strip())
    return (match.group(1), match.group(2)) if match else ("==", text)


def _negated(operator: str) -> str:
    is_text = operator.startswith(AS_TEXT)
    return AS_TEXT + NEGATED[operator[len(AS_TEXT) :]] if is_text else NEGATED[operator]


def _with_arguments(name: str, words: List[str], answer: Condition) -> Optional[Condition]:
    """What a function answers to arguments: ``is_x_available("0.19")`` asks for a version."""
    package = available_name(name)
    if not words:
        return answer
    if package is None or len(words) != 1 or not re.fullmatch(r"\d[\w.]*", words[0]):
        return None
    return ["and", answer, ["version", package, ">=", words[0]]]


Foreign = Callable[[Optional[str]], Optional[Release]]


def _with_parents(module: str) -> Iterator[str]:
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        yield ".".join(parts[:depth])
