"""The list of packages, and which dependencies are kept: ``packages.toml``."""

from __future__ import annotations

import fnmatch
import os
import re
from typing import FrozenSet, Iterable, List, NamedTuple, Tuple

from packaging.utils import canonicalize_name

from envdoctor.model.requirement import is_for_extra

from .documents import read_toml
from .errors import UsageFault
from .metadata import requirement_name, tidy

__all__ = ["DEFAULT_LIST", "Selection", "load_selection"]

DEFAULT_LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "packages.toml")


class Selection(NamedTuple):
    """The list.

    names: what is read, in order. kept: names of dependencies that touch the stack. elsewhere: may
    be missing on the index.
    prereleases: taken like final releases. pinned: requirement lines whose pre-releases are taken.
    patterns: of families.
    unreadable: files that are known to have no metadata of their own. without_extras: packages of
    which only what they always ask for is kept.
    """

    names: Tuple[str, ...]
    kept: FrozenSet[str]
    elsewhere: FrozenSet[str]
    prereleases: FrozenSet[str]
    patterns: Tuple[str, ...]
    unreadable: FrozenSet[str]
    pinned: Tuple[str, ...] = ()
    without_extras: FrozenSet[str] = frozenset()

    def prune(self, name: str, requires: Iterable[str]) -> Tuple[str, ...]:
        """Return the requirement lines of a package that touch the stack, tidied, in their order,
        each once; without those that no installer understands.
        """
        always = name in self.without_extras
        lines = (
            tidy(line)
            for line in requires
            if requirement_name(line) in self.kept and not (always and is_for_extra(line))
        )
        return tuple(dict.fromkeys(filter(None, lines)))

    def undiscovered(self, on_index: Iterable[str]) -> List[str]:
        """Return the names that a family's pattern has and its list has not."""
        wanted = re.compile(
            "|".join(fnmatch.translate(pattern) for pattern in self.patterns) or "(?!)"
        )
        return sorted({name for name in on_index if wanted.match(name)} - set(self.names))


def load_selection(path: str = DEFAULT_LIST) -> Selection:
    """Read the list.

    Raises:
        UsageFault: it cannot be read, or a name in it is none.
    """
    document = read_toml(path)
    families = document.get("family", [])
    elsewhere = document.get("elsewhere", [])
    groups = [
        document.get("packages", []),
        elsewhere,
        *(family.get("names", []) for family in families),
    ]
    names = [name for group in groups for name in group]
    also, early = document.get("also", []), document.get("prereleases", [])
    for name in [*names, *also, *early]:
        if (
            not isinstance(name, str)
            or not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", name)
            or canonicalize_name(name) != name
        ):
            raise UsageFault(
                f"{path}: expected canonical names such as 'flash-attn', found {name!r}"
            )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageFault(f"{path}: stands twice: {', '.join(twice)}")
    patterns = tuple(family["pattern"] for family in families if "pattern" in family)
    kept = frozenset([*names, *also])
    return Selection(
        tuple(sorted(names)),
        kept,
        frozenset(elsewhere),
        frozenset(early),
        patterns,
        frozenset(document.get("unreadable", [])),
        tuple(document.get("pinned", [])),
        frozenset(document.get("without_extras", [])),
    )
