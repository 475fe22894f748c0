"""What is read of sources, once each."""

from __future__ import annotations

import ast
import functools
import itertools
import json
import re
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    Optional,
    Pattern,
    Sequence,
    Set,
    Tuple,
)

from .calls import CALLS_REVISION, read_calls
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
    Function,
    Import,
    callees_of,
    functions_from,
    functions_of,
    read_called,
    read_module,
    read_started,
)
from .optional_names import Asked, read_optional_names
from .parsing import UNPARSABLE, parse_quietly, without_refusals
from .setting_checks import SettingCheck, read_setting_checks, read_switches
from .store import Sources
from .torch_checks import DeviceCheck, read_device_checks

__all__ = ["Readings"]

_ALIAS = re.compile(r"\w+\(\s*f?[\"'][^\"'\n]*\.(\w+)[\"'],\s*[\"'](\.[\w.]+)[\"']")
_TEXT = re.compile(r"[\"'.](\w+)[\"']")
#: What lies in a folder on sys.path is a module of its own, whatever the folder is called.
_ON_PATH = re.compile(r"^[ \t]*sys\.path\.(?:append|extend|insert)\(.*$", re.MULTILINE)
_OFTEN = 500  # readings after which they are kept
_MOST_DECLARED = 4000  # in memory


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
