"""A configuration as Hydra composes it from the YAML files of a checkout; files are read, nothing
is run.

Which configuration an entry loads stands in its source (``@hydra.main(config_path=…,
config_name=…)``, read as a syntax tree), in ``--config-path`` and ``--config-name``, and in group
choices on the command line (``actor@actor_rollout_ref.actor=megatron_actor``).

Source: https://hydra.cc/docs/advanced/defaults_list/ and .../overriding_packages/ (packages are
relative to the parent's; a file without ``_self_`` counts after its defaults).
"""

from __future__ import annotations

import ast
import os
import re
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from ...errors import InputError
from ...model.record import NamedTuple
from ..shell.reader import MARK, Word
from .adapter import Run, read_small
from .key_tables import KeyTable, common_values, own_table, parents_of
from .settings import Setting, read_config
from .tree_paths import path_in_tree

__all__ = [
    "Composition",
    "compose_named",
    "compose_run",
    "composed_table",
    "entry_file",
    "named_configuration",
]

_MAX_LEVELS = 8
_MAX_FILES = 200
_PACKAGE = re.compile(r"^#\s*@package\s+(\S+)", re.MULTILINE)
_CHOICE = re.compile(r"\$\{([\w.@/-]+)\}")
_OPTIONS = {"path": ("--config-path", "-cp"), "name": ("--config-name", "-cn")}


class Composition(NamedTuple):
    """What an entry's own files say.

    keys: every key with its value and place. missing: files of defaults lists that are not at hand;
    with any of them the keys are not all that there are. source: the file composed, relative to
    ``root``, the folder that the entry's modules lie in.
    """

    keys: Mapping[str, Setting]
    missing: Tuple[str, ...]
    source: str
    root: str


def compose_run(run: Run) -> Optional[Composition]:
    """Return the configuration that a run loads, or None where its entry is not at hand or no
    configuration of Hydra's.
    """
    entry = entry_file(run)
    if entry is None:
        return _compose_beside(run)
    path, root = entry
    stated = _hydra_main(read_small(path) or "")
    if stated is None:
        return None
    folder, name = stated
    given = {what: _option(run, *names) for what, names in _OPTIONS.items()}
    if given["path"] is None:
        given["path"] = _known_rest(run, root)
    if any(text is None for text in given.values()):
        return None  # it is named, and not to be read
    main = os.path.normpath(os.path.join(os.path.dirname(path), folder))
    folders = [main]
    if given["path"]:
        folders = [
            choice
            for choice in (
                os.path.normpath(os.path.join(start, str(given["path"])))
                for start in (os.path.dirname(path), run.base, root)
            )
            if os.path.isdir(choice)
        ][:1]
    name = re.sub(r"\.ya?ml\Z", "", str(given["name"] or name))
    if not folders or not name:
        return None
    return _composed(folders, name, root, run.base, _choices(run))


def _compose_beside(run: Run) -> Optional[Composition]:
    """Return the configuration that a command names in the tree around the script, of a program
    that is installed elsewhere; None where it names none of which a folder is at hand.
    """
    name = _option(run, *_OPTIONS["name"])
    if not name or not run.at_hand:
        return None
    for root in _above(run.base):
        rest = _known_rest(run, root)
        if rest is not None:
            return compose_named(os.path.join(root, rest), name, root, run.base)
    return None


def compose_named(folder: str, name: str, root: str, base: str) -> Optional[Composition]:
    """Return the configuration of a name in a folder, for programs that compose it themselves; None
    where it is not at hand. ``base``: the folder that relative paths start from.
    """
    return _composed([folder], re.sub(r"\.ya?ml\Z", "", name), root, base, {})


def _composed(
    folders: Sequence[str], name: str, root: str, base: str, choices: Mapping[str, str]
) -> Optional[Composition]:
    composer = _Composer(folders, (root, base), dict(choices))
    if not composer.add("", name, "", ""):
        return None
    source = os.path.relpath(os.path.join(folders[0], f"{name}.yaml"), root)
    return Composition(composer.keys, tuple(composer.missing), source, root)


def composed_table(
    composition: Composition, released: KeyTable, versions: Sequence[str]
) -> KeyTable:
    """Return the keys of a composition; where files of it are missing, over those of releases."""
    keys = {key: setting.value for key, setting in composition.keys.items()}
    if composition.missing:
        keys = {**common_values(released, versions), **keys}
    return own_table(released.framework, versions, keys, composition.source)


def entry_file(run: Run) -> Optional[Tuple[str, str]]:
    """Return the file of a run's entry and the folder that its path starts from, where it lies in
    the tree around the script.
    """
    if "\0" in run.entry or not run.entry or not run.at_hand:
        return None
    if run.entry.endswith(".py"):
        tails = [os.path.normpath(run.entry)]
        if os.path.isabs(run.entry) and not os.path.isfile(run.entry):
            path = path_in_tree(run.base, run.entry)
            return (path, os.path.dirname(path)) if path else None
    elif re.fullmatch(r"\w+(?:\.\w+)*", run.entry):
        parts = run.entry.split(".")
        # A repository of recipes is mounted as a package: recipe.dapo.main_dapo is its dapo/….
        tails = [os.path.join(*parts[first:]) + ".py" for first in range(max(len(parts) - 1, 1))]
    else:
        return None
    for tail in tails:
        for root in _roots(run.base, tail.partition(os.sep)[0]):
            path = os.path.join(root, tail)
            if os.path.isfile(path):
                return path, root
    return None


def named_configuration(run: Run) -> Tuple[str, str]:
    """Return folder and name of the configuration that a run's entry loads, as its source has them;
    "" where it is not at hand or loads none.
    """
    entry = entry_file(run)
    return (_hydra_main(read_small(entry[0]) or "") if entry is not None else None) or ("", "")


def _roots(base: str, top: str) -> Iterator[str]:
    """Yield the folders that hold a package: those above the script up to its repository's, their
    ``src``, and a folder of the package's name, as a repository within a repository has it.
    """
    for here in _above(base):
        yield here
        yield os.path.join(here, "src")
        yield os.path.join(here, top)


def _above(base: str) -> Iterator[str]:
    """Yield a folder and those above it, up to its repository's."""
    here = os.path.abspath(base)
    for _ in range(_MAX_LEVELS):
        yield here
        parent = os.path.dirname(here)
        if parent == here or os.path.exists(os.path.join(here, ".git")):
            return
        here = parent


def _hydra_main(text: str) -> Optional[Tuple[str, str]]:
    """Return config_path and config_name of the function that ``hydra.main`` decorates."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "hydra.main":
                named = {one.arg: one.value for one in decorator.keywords}
                path, name = named.get("config_path"), named.get("config_name")
                if isinstance(path, ast.Constant) and isinstance(name, ast.Constant):
                    return str(path.value or ""), str(name.value or "")
    return None


def _known_rest(run: Run, root: str) -> Optional[str]:
    """Return ``--config-path`` of which only the first folder is not known (``$PWD/examples/…``):
    what follows, where the tree has such a folder.
    """
    words = run.arguments
    for word, following in zip(words, (*words[1:], Word("", 0))):
        name, equals, value = word.text.partition("=")
        if name not in _OPTIONS["path"]:
            continue
        text = (value if equals else following.text).strip("'\"")
        unknown, slash, rest = text.partition("/")
        if unknown == MARK and slash and MARK not in rest:
            return rest if os.path.isdir(os.path.join(root, rest)) else None
    return None


def _option(run: Run, *names: str) -> Optional[str]:
    """Return the value of an option of Hydra's own; "" where it is not given, None where its value
    is not known.
    """
    words = run.arguments
    for word, following in zip(words, (*words[1:], None)):
        name, equals, value = word.text.partition("=")
        if name in names:
            given = word if equals else following
            if given is None or not given.known:
                return None
            return (value if equals else given.text).strip("'\"")
    return ""


def _choices(run: Run) -> Dict[str, str]:
    """Return the group choices and plain settings that a command makes, by group."""
    pairs = (word.text.lstrip("+").partition("=") for word in run.arguments if word.known)
    return {name: value.strip("'\"") for name, equals, value in pairs if equals}


class _Composer:
    """Follows defaults lists; later files win."""

    def __init__(
        self, folders: Sequence[str], bases: Sequence[str], choices: Mapping[str, str]
    ) -> None:
        self.folders = list(folders)
        self.bases = bases  # that paths of a search path are relative to
        self.choices = dict(choices)
        self.keys: Dict[str, Setting] = {}
        self.missing: List[str] = []
        self._below: Dict[str, Set[str]] = {}  # the keys under each parent
        self._files = 0

    def add(self, group: str, name: str, package: str, default: Optional[str] = None) -> bool:
        """Merge a file and what it is made of; False where it is not at hand.

        package: where it belongs; ``default``: where, unless its own header says another place
        (what a defaults list says comes before the header).
        """
        self._files += 1
        text = self._read(group, name) if self._files <= _MAX_FILES else None
        if text is None:
            return False
        where = "/".join(filter(None, (group, f"{name}.yaml")))
        try:
            settings = read_config(text, where)
        except InputError:
            return False
        header = _PACKAGE.search(text)
        if default is not None:
            package = default if header is None else _under(package, header.group(1))
        own = {setting.key: setting for setting in settings}
        self._search(own.pop("hydra.searchpath", None))
        composed = own.pop("defaults", None)
        defaults = list(composed.value) if composed and isinstance(composed.value, list) else []
        if "_self_" not in defaults:
            defaults.append("_self_")
        self._override(defaults)
        for entry in defaults:
            if entry == "_self_":
                self._merge(own.values(), package)
            else:
                self._follow(entry, group, package)
        return True

    def _read(self, group: str, name: str) -> Optional[str]:
        for folder in self.folders:
            text = read_small(os.path.join(folder, group, f"{name}.yaml"))
            if text is not None:
                return text
        return None

    def _search(self, path: Optional[Setting]) -> None:
        """Take ``hydra.searchpath`` in: files below a base, and packages as folders of it."""
        for place in path.value if path is not None and isinstance(path.value, list) else ():
            kind, _, name = str(place).rpartition("://")
            name = name.replace(".", os.sep) if kind == "pkg" else name
            self.folders += [
                folder
                for folder in (os.path.normpath(os.path.join(base, name)) for base in self.bases)
                if os.path.isdir(folder) and folder not in self.folders
            ]

    def _override(self, defaults: Sequence[Any]) -> None:
        """Note what ``override group: name`` chooses for the lists that follow."""
        for entry in defaults:
            for group, name in entry.items() if isinstance(entry, dict) else ():
                if group.startswith("override "):
                    self.choices.setdefault(group[len("override ") :].strip().lstrip("/"), name)

    def _follow(self, entry: Any, group: str, package: str) -> None:
        if isinstance(entry, str):
            path, at, under = entry.partition("@")
            place = (_under(package, under), None) if at else (package, package)
            self._load(_joined(group, path.strip()), *place, optional=False)
            return
        if not isinstance(entry, dict):
            return
        for words, chosen in entry.items():
            if words.startswith("override "):
                continue
            optional = words.startswith("optional ")
            choice = words.rpartition(" ")[2]
            path, at, under = choice.partition("@")
            name = self.choices.get(choice.lstrip("/"), chosen)
            self.choices.setdefault(choice, str(chosen))
            inside = _under(package, under if at else path.lstrip("./").replace("/", "."))
            place = (inside, None) if at else (package, inside)
            for one in name if isinstance(name, list) else [name]:
                if one not in (None, "null"):
                    folder = _joined(group, f"{path}/{self._chosen(str(one))}")
                    self._load(folder, *place, optional=optional)

    def _chosen(self, name: str) -> str:
        """Return a file's name with the choices that it is made of."""
        return _CHOICE.sub(lambda match: self.choices.get(match.group(1), match.group()), name)

    def _load(self, path: str, package: str, default: Optional[str], *, optional: bool) -> None:
        folder, _, name = path.rpartition("/")
        if not self.add(folder, re.sub(r"\.ya?ml\Z", "", name), package, default) and not optional:
            self.missing.append(f"{path}.yaml")

    def _merge(self, settings: Iterable[Setting], package: str) -> None:
        """Lay settings over what is there; an empty mapping takes nothing away."""
        for setting in settings:
            key = f"{package}.{setting.key}" if package else setting.key
            parents = list(parents_of(key))
            for parent in parents:
                self.keys.pop(parent, None)
            below = self._below.get(key)
            if below and setting.value == {}:
                continue
            for one in self._below.pop(key, ()):
                self.keys.pop(one, None)
            self.keys[key] = setting._replace(key=key)
            for parent in parents:
                self._below.setdefault(parent, set()).add(key)


def _joined(group: str, path: str) -> str:
    """Return the path of a file that stands in the defaults list of a file of ``group``."""
    if path.startswith("/"):
        return path.lstrip("/")
    return os.path.normpath(os.path.join(group, path)).replace(os.sep, "/")


def _under(package: str, name: str) -> str:
    """Return the package that ``name`` is inside of ``package``."""
    if name.startswith("_global_"):
        return name[len("_global_") :].lstrip(".")
    if name == "_here_":
        return package
    return ".".join(filter(None, (package, name)))
