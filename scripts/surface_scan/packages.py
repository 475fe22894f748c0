"""Which packages are measured, and where people enter them: ``packages.toml``."""

from __future__ import annotations

import os
from typing import Any, Dict, FrozenSet, Iterable, Mapping, NamedTuple, Optional, Tuple

from matrix_refresh.documents import read_toml
from matrix_refresh.errors import UsageFault
from packaging.utils import canonicalize_name

__all__ = ["PYTHON", "Entry", "Packages", "Patch", "load_packages"]

#: The interpreter among packages.
PYTHON = "python"

_LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "packages.toml")


class Entry(NamedTuple):
    """A module that people start a package by.

    use: what it is for, in words ("GRPO training"). main: everybody who uses the package imports
    it (the top-level module, the engine's server): what fails there blocks.
    """

    module: str
    use: str
    main: bool


class Patch(NamedTuple):
    """Releases of a package that put a name into another one; where ``beside`` is not "", only
    beside that requirement.
    """

    by: str
    releases: str
    beside: str


class Packages(NamedTuple):
    """The list. modules: top-level module → the packages that
    install it. entries: by package. patched: names that a
    third package puts into another, by (provider, name).
    purposes: by package, the uses that it is installed for. loads: by package, patterns of the
    libraries without which it cannot be imported, linked to torch. tables_only: those of whose
    names only modules, registries and options are measured. by_cuda: by package, the library that
    is chosen by torch's CUDA, since which release, and the variable that chooses another.
    optional: packages without which others go on. messages: those of which is measured what they
    raise, but in their ``quiet`` modules. starts: by package, "module:function" that people's runs
    come to, and for what. of: by package and use, the module of another one without which nobody
    comes to it. compares_cuda: by package, what it raises where torch has another CUDA
    than the build. overwrites: by package, those that install the same files, with what its code
    says then. built_with_numpy: by package, a pattern of the extension modules that each import
    of it loads and that use NumPy's C API. unnamed: by package, patterns of modules of which no
    names are measured. refused_gpu: by package and setting, "" for none, what to do on a GPU that
    its code refuses. public_names: packages of whose private modules no classes are, and below the
    first level only names that others import.
    """

    names: Tuple[str, ...]
    early: FrozenSet[str]
    elsewhere: FrozenSet[str]
    modules: Mapping[str, Tuple[str, ...]]
    entries: Mapping[str, Tuple[Entry, ...]]
    patched: Mapping[Tuple[str, str], Tuple[Patch, ...]] = {}
    purposes: Mapping[str, Tuple[str, ...]] = {}
    loads: Mapping[str, Tuple[str, ...]] = {}
    tables_only: FrozenSet[str] = frozenset()
    by_cuda: Mapping[str, Mapping[str, str]] = {}
    optional: FrozenSet[str] = frozenset()
    messages: FrozenSet[str] = frozenset()
    quiet: Mapping[str, Tuple[str, ...]] = {}
    starts: Mapping[str, Mapping[str, str]] = {}
    compares_cuda: Mapping[str, str] = {}
    overwrites: Mapping[str, Mapping[str, str]] = {}
    built_with_numpy: Mapping[str, str] = {}
    unnamed: Mapping[str, Tuple[str, ...]] = {}
    public_names: FrozenSet[str] = frozenset()
    of: Mapping[str, Mapping[str, str]] = {}
    refused_gpu: Mapping[str, Mapping[str, str]] = {}

    def owners(self, module: str) -> Tuple[str, ...]:
        """Return the packages that install a module, none for those that are not measured."""
        while module:
            if module in self.modules:
                return self.modules[module]
            module = module.rpartition(".")[0]
        return ()

    def start_of(self, package: str, module: str, functions: Iterable[str]) -> str:
        """Return what a run is for that comes to one of these functions of a module, or ""."""
        starts = self.starts.get(package, {})
        found = (starts.get(f"{module}:{function}", "") for function in functions)
        return next(filter(None, found), "")

    def alike(self, package: str) -> Tuple[str, ...]:
        """Return a package with those that stand in its place with another CUDA, of which only
        versions are known.
        """
        owners = [names for names in self.modules.values() if package in names]
        known = next((names for names in owners if set(names) <= self.elsewhere), ())
        return known or (package,)

    def distribution(self, word: str) -> Optional[str]:
        """Return the package that a source means by a word: a module or a distribution."""
        if word == PYTHON:
            return PYTHON
        found = self.modules.get(word) or self.modules.get(word.lower())
        name = str(canonicalize_name(word))
        return found[0] if found else (name if name in self.entries else None)


def load_packages(path: str = _LIST) -> Packages:
    """Read the list; raises :class:`UsageFault`."""
    document = read_toml(path)
    names = []
    modules: Dict[str, Tuple[str, ...]] = {}
    entries = {}
    for name, values in document["package"].items():
        if canonicalize_name(name) != name:
            raise UsageFault(f"{path}: expected a canonical name, found {name!r}")
        names.append(name)
        for module in values.get("modules", [name.replace("-", "_")]):
            modules[module] = (*modules.get(module, ()), name)
        main = values.get("modules", [name.replace("-", "_")])[:1]
        entries[name] = tuple(
            [Entry(module, "", True) for module in values.get("enter", main)]
            + [Entry(module, use, False) for module, use in values.get("uses", {}).items()]
        )
    patched: Dict[Tuple[str, str], Tuple[Patch, ...]] = {}
    for patch in document.get("patch", ()):
        key = (patch["provider"], patch["name"])
        made = Patch(patch["by"], patch["in"], patch.get("beside", ""))
        patched[key] = (*patched.get(key, ()), made)
    return Packages(
        tuple(names),
        frozenset(document.get("prereleases", ())),
        frozenset(document.get("elsewhere", ())),
        modules,
        entries,
        patched,
        _words_of(document, "purpose"),
        _words_of(document, "loads"),
        frozenset(
            name for name, values in document["package"].items() if values.get("tables_only")
        ),
        {
            name: values["by_cuda"]
            for name, values in document["package"].items()
            if "by_cuda" in values
        },
        frozenset(name for name, values in document["package"].items() if values.get("optional")),
        frozenset(document.get("messages", ())),
        _words_of(document, "quiet"),
        {name: values.get("starts", {}) for name, values in document["package"].items()},
        {
            name: values["compares_cuda"]
            for name, values in document["package"].items()
            if "compares_cuda" in values
        },
        {name: values.get("overwrites", {}) for name, values in document["package"].items()},
        {
            name: values["built_with_numpy"]
            for name, values in document["package"].items()
            if "built_with_numpy" in values
        },
        _words_of(document, "unnamed"),
        frozenset(
            name for name, values in document["package"].items() if values.get("public_names")
        ),
        {name: values["of"] for name, values in document["package"].items() if "of" in values},
        {name: values.get("refused_gpu", {}) for name, values in document["package"].items()},
    )


def _words_of(document: Mapping[str, Any], key: str) -> Dict[str, Tuple[str, ...]]:
    """Return the values of a key by package, where it has one."""
    return {
        name: tuple(values[key]) for name, values in document["package"].items() if key in values
    }
