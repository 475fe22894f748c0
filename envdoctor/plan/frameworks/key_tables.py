"""The tables of keys and defaults under ``defaults/``: which version of a framework knows which
key, and what it gives it.

``scripts/read_framework_defaults`` writes them from the frameworks' own files; each names its
sources. A key that a release does not have is missing there, so a table also tells keys of another
version from keys that nobody knows.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from ...errors import InternalFault
from ...model.versions import try_version

__all__ = ["KeyTable", "common_values", "load_table", "overlaid", "own_table", "parents_of"]

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "defaults")
_MOST_PARENTS = 30


class KeyTable:
    """One framework's keys. A version is one of ``versions``, in their order.

    own: the file of a checkout that the keys were read from, "" where they are those of releases.
    """

    def __init__(self, content: Mapping[str, Any], config: str, own: str = "") -> None:
        self.framework: str = content["framework"]
        self.own = own
        self.versions: Tuple[str, ...] = tuple(content["versions"])
        self.sources: Mapping[str, str] = content["sources"]
        self.switches = frozenset(content.get("switches", ()))
        self.rows: Dict[str, List[List[Any]]] = content["configs"][config]
        self._by_key: Dict[str, Tuple[str, ...]] = {}
        self._taking: Dict[str, Tuple[str, ...]] = {}
        self._parents: Optional[Dict[str, Set[str]]] = None

    def __contains__(self, key: str) -> bool:
        return key in self.rows

    def versions_of(self, key: str) -> Tuple[str, ...]:
        """Return the versions that know a key."""
        known = self._by_key.get(key)
        if known is None:
            known = self._by_key[key] = tuple(
                version
                for first, last, _ in self.rows.get(key, ())
                for version in self.versions[first : last + 1]
            )
        return known

    @property
    def described(self) -> Tuple[str, ...]:
        """The versions of which the table has any key."""
        known = {version for key in self.rows for version in self.versions_of(key)}
        return tuple(version for version in self.versions if version in known)

    @property
    def parents(self) -> Mapping[str, Set[str]]:
        """Keys that hold other keys, with the versions that know one of them."""
        if self._parents is None:
            self._parents = {}
            for key in self.rows:
                for parent in parents_of(key):
                    self._parents.setdefault(parent, set()).update(self.versions_of(key))
        return self._parents

    def versions_taking(self, key: str) -> Tuple[str, ...]:
        """Return the versions that take a key: they know it, what lies under it, or a parent that
        takes any key.
        """
        taking = self._taking.get(key)
        if taking is None:
            versions = {*self.versions_of(key), *self.parents.get(key, ())}
            for parent in parents_of(key):
                for first, last, value in self.rows.get(parent, ()):
                    if value is None or isinstance(value, dict):
                        versions.update(self.versions[first : last + 1])
            taking = tuple(version for version in self.versions if version in versions)
            self._taking[key] = taking
        return taking

    def keys_by_last_part(self, versions: Sequence[str]) -> Mapping[str, List[str]]:
        """Return the keys that one of ``versions`` knows, by what stands behind their last dot."""
        possible = set(versions)
        named: Dict[str, List[str]] = {}
        for key in self.rows:
            if possible.intersection(self.versions_of(key)):
                named.setdefault(key.rpartition(".")[2], []).append(key)
        return named

    def values(self, key: str, versions: Sequence[str]) -> List[Tuple[Any, Tuple[str, ...]]]:
        """Return the defaults of a key among ``versions``, each with the versions that give it."""
        values = []
        for first, last, value in self.rows.get(key, ()):
            among = tuple(
                version for version in self.versions[first : last + 1] if version in versions
            )
            if among:
                values.append((value, among))
        return values

    def match(self, text: str) -> Tuple[str, ...]:
        """Return the versions of the table that a version may be: itself, or its neighbours."""
        text = text.strip()
        for spelling in (text.lstrip("v"), text):
            if spelling in self.versions:
                return (spelling,)
        wanted = try_version(text.lstrip("v"))
        if wanted is None:
            return ()
        parsed = [(try_version(name), name) for name in self.versions]
        known = sorted((number, name) for number, name in parsed if number is not None)
        numbers = [number for number, _ in known]
        start, end = bisect_left(numbers, wanted), bisect_right(numbers, wanted)
        equal = known[start:end]
        nearest = equal[-1:] or [*known[max(start - 1, 0) : start], *known[end : end + 1]]
        return tuple(name for _, name in nearest)


def own_table(
    framework: str,
    versions: Sequence[str],
    keys: Mapping[str, Any],
    source: str,
    switches: Sequence[str] = (),
) -> KeyTable:
    """Return the table of what a checkout itself declares; ``versions`` are those that its code may
    be of, ``switches`` the options without a value.
    """
    rows = {key: [[0, len(versions) - 1, value]] for key, value in keys.items()}
    content = {
        "framework": framework,
        "versions": tuple(versions),
        "sources": {},
        "configs": {"": rows},
        "switches": switches,
    }
    return KeyTable(content, "", source)


def common_values(table: KeyTable, versions: Sequence[str]) -> Dict[str, Any]:
    """Return the defaults that all of these versions have, by key."""
    return {
        key: values[0][0]
        for key in table.rows
        for values in (table.values(key, versions),)
        if len(values) == 1 and len(values[0][1]) == len(versions)
    }


def parents_of(key: str) -> Iterator[str]:
    """Yield ``a.b`` and ``a`` for ``a.b.c``; of what is no key, as deep as it is, the nearest."""
    parent = key.rpartition(".")[0]
    for _ in range(_MOST_PARENTS):
        if not parent:
            return
        yield parent
        parent = parent.rpartition(".")[0]


@lru_cache(maxsize=16)
def _content(framework: str) -> Mapping[str, Any]:
    path = os.path.join(_FOLDER, f"{framework}.json")
    try:
        with open(path, encoding="utf-8") as file:
            content: Mapping[str, Any] = json.load(file)
    except (OSError, ValueError) as error:
        raise InternalFault(
            f"{path}: expected the table of {framework}'s keys that this package carries: {error}"
        ) from None
    return content


@lru_cache(maxsize=16)
def load_table(framework: str, config: Optional[str] = None) -> KeyTable:
    """Return the table of one of a framework's configurations (the first where none is named)."""
    content = _content(framework)
    return KeyTable(
        content,
        config
        if config is not None and config in content["configs"]
        else next(iter(content["configs"])),
    )


@lru_cache(maxsize=16)
def overlaid(framework: str, below: Optional[str], above: str) -> KeyTable:
    """Return one configuration laid over another of the same framework, version by version."""
    content = _content(framework)
    lower, upper = load_table(framework, below), load_table(framework, above)
    rows: Dict[str, List[List[Any]]] = {}
    for number, version in enumerate(lower.versions):
        for table in (lower, upper):
            for key in table.rows:
                for value, _ in table.values(key, (version,)):
                    runs = rows.setdefault(key, [])
                    if runs and runs[-1][0] == number:
                        runs.pop()
                    runs.append([number, number, value])
    return KeyTable({**content, "configs": {"": rows}}, "")
