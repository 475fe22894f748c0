"""What is asked of the resolver."""

from __future__ import annotations

import re
from typing import Mapping, NamedTuple, Optional, Tuple

from ..errors import InputError
from .requirement import try_requirement
from .versions import InvalidSpecifier

__all__ = ["Request", "Root", "SourceStep", "parse_root", "parse_source"]

_GIT = re.compile(
    r"git\+((?:https://|ssh://(?:[\w.-]+@)?)[^@/#\s]+/[^@#\s]+)(?:@([^@#\s]+))?(?:#[^@\s]*)?"
)


class Root(NamedTuple):
    """One thing that is asked for.

    ``text`` is the requirement as it is shown and written into files.
    """

    name: str
    extras: Tuple[str, ...] = ()
    specifier: str = ""

    @property
    def text(self) -> str:
        """The requirement: ``verl[vllm]>=0.9``."""
        return self.name + (f"[{','.join(self.extras)}]" if self.extras else "") + self.specifier


class SourceStep(NamedTuple):
    """What no index has: a repository that is installed at a tag or commit, after the pins and
    without its dependencies.

    requirement: as pip and uv take it (``verl @ git+https://…@v0.3.2``). reference: tag, branch or
    commit, "" where none is named. note: why it is not on the index.
    """

    name: str
    extras: Tuple[str, ...]
    url: str
    reference: str
    requirement: str
    note: str = ""


class Request(NamedTuple):
    """A request: roots in order of preference, and for what they are resolved.

    python: minor ("3.11") or full version. as_of: ISO date; nothing that was uploaded later is
    taken. allow_index: other indexes than the default one ("pytorch", "github"). prereleases: names
    of which pre-releases may be chosen. prefer: version by name that stands first (what is
    installed, what maintainers tested). profile: name of the profile's request that it comes from
    ("verl:0.7-vllm"), origin: where that stands. overrides: exact versions that replace whatever
    metadata asks of these packages. settings: environment variables that will be set.
    sources: what is installed from repositories. addresses: of wheels that are given by theirs, by
    name. constraints: what bounds versions of packages that
    take part, and asks for none. others: roots that the matrix does not know:
    nothing judges them. of_the_time: as_of is not the user's own word but follows from a pinned
    root, and does not bind packages that have no release of that day or before.
    """

    roots: Tuple[Root, ...]
    python: str
    platform: str = "linux"
    architecture: str = "x86_64"
    as_of: Optional[str] = None
    allow_index: Tuple[str, ...] = ()
    prereleases: Tuple[str, ...] = ()
    prefer: Mapping[str, str] = {}
    others: Tuple[Root, ...] = ()
    of_the_time: bool = False
    profile: str = ""
    origin: str = ""
    overrides: Tuple[Root, ...] = ()
    settings: Mapping[str, str] = {}
    sources: Tuple[SourceStep, ...] = ()
    constraints: Tuple[Root, ...] = ()
    addresses: Mapping[str, str] = {}


def parse_root(text: str) -> Root:
    """Read one requirement (``verl[vllm]>=0.9,<1``); raises :class:`InputError`."""
    requirement = try_requirement(text)
    if requirement is None or requirement.url or requirement.marker:
        raise InputError(
            f"expected a requirement such as 'vllm>=0.8' or 'verl[vllm]==0.9.1', found {text!r}"
        )
    try:
        versions = requirement.versions
    except InvalidSpecifier as error:
        raise InputError(f"{text}: {error}") from error
    if not versions:
        raise InputError(f"{text}: no version can meet this, its bounds exclude each other")
    return Root(requirement.name, requirement.extras, requirement.specifier)


def parse_source(text: str, note: str = "") -> SourceStep:
    """Read what comes from git (``verl @ git+https://github.com/hiyouga/EasyR1@v0.3.2``); raises
    :class:`InputError`.
    """
    requirement = try_requirement(text)
    match = _GIT.fullmatch(requirement.url) if requirement is not None else None
    if requirement is None or match is None or requirement.marker:
        raise InputError(
            "expected 'NAME @ git+ADDRESS@TAG' with an https or ssh address and no password, found "
            f"{text!r}"
        )
    url, reference = match.groups("")
    return SourceStep(requirement.name, requirement.extras, url, reference, text.strip(), note)
