"""Closing a resolution: uv adds everything that the chosen pins need besides, with hashes, and runs
no code of any package.

Our pins stand in the requests, so uv can add but not change; what contradicts metadata goes in as
an override. A package that has only a source archive gets the metadata that the archive states
(``sdist_metadata``), because uv would run its setup code to learn it.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from ...errors import InputError
from ...file_replacement import replace_file
from ...model.redaction import without_credentials
from ...model.request import Root
from ...model.resolution import ClosedLine, Closure, Pin, Resolution
from ...model.toml import parse_toml
from ...model.versions import canonicalize_name, parse_version
from .index_sources import IndexSources, is_local
from .refusal import advised, find_conflicts, find_holes, find_requirers
from .sdist_metadata import SdistMetadata, Unreadable, fetch_sdist, read_sdist
from .uv import Uv, UvLine, UvOutcome, find_uv, python_platform, read_lines

__all__ = ["DEADLINE", "UnknownName", "close"]

#: Seconds that closing may take in all. The largest stacks take 15.
DEADLINE = 600.0
_ROUNDS = 12  # what one run tells is given to the next; each round settles at least one package
_NEEDS_WHEEL = re.compile(r"Wheels are required for `([^`]+)`")
_FILTERED = re.compile(r"`([^`]+)` was filtered by `exclude-newer`")
_UNKNOWN = re.compile(
    r"(?:^|\s)([A-Za-z0-9][\w.-]*) was not found in the (?:package registry|provided package "
    r"locations)"
)
_NO_EXTRA = re.compile(r"package `([^`=]+)==[^`]+` does not have an extra named `([^`]+)`")
_MACOS = "14.0"  # uv presumes 13, for which torch and numpy have no wheels any more
_FAR = "2100-01-01T00:00:00Z"  # "false" says the same to newer uv alone
_UNDATED = "is missing an upload date"


class UnknownName(InputError):
    """A request that neither the matrix nor an index knows."""

    def __init__(self, root: Root) -> None:
        self.name = root.name
        super().__init__(
            f"{root.text}: neither the matrix nor an index that uv was given knows {root.name}"
        )


class _Inputs(NamedTuple):
    """What uv is given. sdists: metadata by (name, version) and, with version "", of what is not
    chosen yet.
    """

    pins: Tuple[Pin, ...]
    extra: Tuple[str, ...]
    without: FrozenSet[str]
    exact: FrozenSet[str]
    exempt: FrozenSet[str]
    sdists: Mapping[Tuple[str, str], SdistMetadata]


def close(
    resolution: Resolution,
    sources: IndexSources,
    *,
    glibc: Optional[str] = None,
    later: Sequence[str] = (),
    allow_build: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _words: None,
    deadline: float = DEADLINE,
) -> Closure:
    """Let uv find everything that a resolution needs besides its pins.

    Args:
        resolution: the core pins; its request names what nobody has judged.
        sources: where packages come from.
        glibc: the oldest one of the targets; what the pins require where no target tells.
        later: pins that are newer than the request's as-of date on purpose.
        allow_build: packages whose setup code uv may run.
        progress: is told what happens, a line at a time.
        deadline: seconds for everything.

    Raises:
        UnknownName: a request that neither the matrix nor an index knows.
    """
    requires, glibc = resolution.requires, _glibc(resolution, glibc)
    platform = python_platform(requires.platform, requires.architecture, glibc)
    path = find_uv(sources.environment)
    if path is None:
        return Closure(reason="uv is not there; 'pip install uv' brings it")
    if platform is None:
        return Closure(
            reason=f"uv has no name for {requires.platform} on {requires.architecture} with glibc "
            f"{glibc}"
        )
    foreign = [pin for pin in resolution.pins if pin.index_name != "pypi"]
    unreachable = [pin for pin in foreign if pin.index_name != "github"]
    if unreachable and not sources.further:
        pin = unreachable[0]
        return Closure(
            reason=f"{pin.name} {pin.version} comes from the index {pin.index_name}: give its "
            "address with --extra-index-url"
        )
    with tempfile.TemporaryDirectory(prefix="envdoctor-") as folder:
        uv = Uv(
            path,
            folder,
            _environment(sources, folder),
            time.monotonic() + deadline,
            progress,
            no_index=sources.no_index,
        )
        return _Closing(
            resolution, sources, uv, platform, frozenset(later), frozenset(allow_build), progress
        ).close()


def _glibc(resolution: Resolution, target: Optional[str]) -> str:
    """The glibc to close for: the targets', else what the pins require, but not below what most
    wheels of today are built for.
    """
    return target or max(resolution.requires.glibc or "2.28", "2.28", key=parse_version)


def _repeated(option: str, values: Sequence[str]) -> List[str]:
    return [word for value in values for word in (option, value)]


def _environment(sources: IndexSources, folder: str) -> Dict[str, str]:
    """The variables of uv: without a home its cache has no place of its own, and a lock for macOS
    is for the oldest that has wheels.
    """
    variables = dict(sources.environment)
    if not any(variables.get(name) for name in ("UV_CACHE_DIR", "XDG_CACHE_HOME", "HOME")):
        variables["UV_CACHE_DIR"] = os.path.join(folder, "cache")
    variables.setdefault("MACOSX_DEPLOYMENT_TARGET", _MACOS)
    return variables


class _Closing:
    """One closing: runs of uv, each told what the one before has shown to be missing."""

    def __init__(
        self,
        resolution: Resolution,
        sources: IndexSources,
        uv: Uv,
        platform: str,
        later: FrozenSet[str],
        allow_build: FrozenSet[str],
        progress: Callable[[str], None],
    ) -> None:
        self._resolution = resolution
        self._sources = sources
        self._uv = uv
        self._platform = platform
        self._allow_build = allow_build
        self._progress = progress
        self._exempt: Set[str] = set(later)
        self._exact: Set[str] = set()
        self._sdists: Dict[Tuple[str, str], SdistMetadata] = {}
        # sdist-only packages whose version, and so whose requirements, are not known yet.
        self._assumed: Set[str] = set()
        # Pins that no index at hand has: written, but not seen by uv.
        self._without: Set[str] = set()
        self._added: List[str] = []
        self._dated = True
        self._tool = "uv"
        self._extras: Tuple[str, ...] = ()

    def close(self) -> Closure:
        self._tool = self._uv.version()
        self._progress(
            f"closing {len(self._resolution.pins)} core pins with {self._tool} for {self._platform}"
        )
        foreign = [pin for pin in self._resolution.pins if pin.index_name == "github"]
        try:
            for pin in foreign:
                self._leave_out(pin)
            self._read_sdists(
                [
                    (pin.name, str(pin.version))
                    for pin in self._resolution.pins
                    if pin.from_source and pin.name not in self._allow_build
                ]
            )
            return self._settle()
        except Unreadable as error:
            return self._core(str(error))

    def _settle(self) -> Closure:
        for _ in range(_ROUNDS):
            outcome = self._compile()
            if outcome.kind == "failed":
                return self._core(_first_words(outcome.message, self._sources.offline))
            if outcome.kind == "refused":
                if self._learn(outcome.message):
                    continue
                return self._refused(outcome.message)
            lines = read_lines(outcome.output)
            chosen = {line.name: line.version for line in lines}
            local = {
                pin.name
                for pin in self._resolution.pins
                if pin.version.local is None and "+" in chosen.get(pin.name, "")
            }
            if (
                local - self._exact
            ):  # another index has the same release with a local label, which installers prefer
                self._exact |= local
                continue
            if self._assumed:
                self._read_sdists(
                    [(name, chosen[name]) for name in sorted(self._assumed) if name in chosen]
                )
                self._assumed.clear()
                continue
            self._extras = self._missing_extras(outcome.message)
            return self._closed(lines)
        return self._core("uv and the index did not come to rest")

    # ----------------------------------------------------------------------------------------------
    # runs of uv

    def _compile(self, *, pylock: bool = False) -> UvOutcome:
        arguments = self._arguments(self._inputs())
        if not pylock:
            return self._uv.compile(
                [*arguments, "--generate-hashes", "--emit-index-annotation"],
                offline=self._sources.offline,
            )
        # Everything was just read, so the cache has it; only a cache that keeps nothing needs the
        # index again.
        outcome = self._uv.compile([*arguments, "--format", "pylock.toml"], offline=True)
        if outcome.kind != "done" and not self._sources.offline:
            outcome = self._uv.compile([*arguments, "--format", "pylock.toml"])
        return outcome

    def _inputs(self) -> _Inputs:
        return _Inputs(
            self._resolution.pins,
            tuple(self._added),
            frozenset(self._without),
            frozenset(self._exact),
            frozenset(self._exempt),
            {**self._sdists, **{(name, ""): SdistMetadata(()) for name in self._assumed}},
        )

    def _arguments(self, given: _Inputs) -> List[str]:
        """Write the files of a run into uv's folder, and return its arguments."""
        overrides = self._overrides(given)
        constraints = [root.text for root in self._resolution.request.constraints]
        self._write("requests.in", self._requests(given))
        self._write("constraints.in", constraints)
        self._write("overrides.txt", overrides)
        tables = [
            _metadata_table(name, version, metadata)
            for (name, version), metadata in sorted(given.sdists.items())
        ]
        built = sorted({name for name, _ in given.sdists} | self._allow_build)
        request = self._resolution.request
        return [
            "requests.in",
            *(["--overrides", "overrides.txt"] if overrides else []),
            *(["--constraints", "constraints.in"] if constraints else []),
            "--only-binary",
            ":all:",
            *self._configure(tables),
            *_repeated("--no-binary", built),
            "--python-version",
            request.python,
            "--python-platform",
            self._platform,
            *(self._dates(request.as_of, given) if request.as_of and self._dated else []),
        ]

    def _requests(self, given: _Inputs) -> List[str]:
        lines = [root.text for root in self._resolution.request.others] + list(given.extra)
        lines += [line for pin in given.pins if pin.build is not None for line in pin.build.needs]
        lines += [
            _requirement(pin, pin.name in given.exact)
            for pin in given.pins
            if pin.name not in given.without
        ]
        return [*lines, *(f"{name}=={version}" for name, version in given.sdists if version)]

    def _overrides(self, given: _Inputs) -> List[str]:
        """Return what stands against metadata: pins, and packages that are left out."""
        overridden = {override.name for override in self._resolution.overrides}
        pins = [f"{pin.name}=={pin.version}" for pin in given.pins if pin.name in overridden]
        return pins + [f"{name} ; python_version < '0'" for name in sorted(given.without)]

    @staticmethod
    def _dates(as_of: str, given: _Inputs) -> List[str]:
        exempt = [f"{name}={_FAR}" for name in sorted(given.exempt)]
        return [
            "--exclude-newer",
            f"{as_of}T23:59:59Z",
            *_repeated("--exclude-newer-package", exempt),
        ]

    def _configure(self, tables: Sequence[str]) -> List[str]:
        """Write a configuration into uv's folder, where it goes before the user's; a file that
        UV_CONFIG_FILE names is taken in.
        """
        own = self._sources.environment.get("UV_CONFIG_FILE")
        try:
            with open(own or os.devnull, encoding="utf-8") as file:
                self._write("uv.toml", [file.read(), *tables])
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"UV_CONFIG_FILE={own}: cannot be read: {error}") from error
        return ["--config-file", os.path.join(self._uv.folder, "uv.toml")] if own else []

    def _write(self, name: str, lines: Sequence[str]) -> None:
        text = "".join(f"{line}\n" for line in lines)
        replace_file(os.path.join(self._uv.folder, name), text.encode("utf-8"), durable=False)

    # ----------------------------------------------------------------------------------------------
    # what a run tells

    def _learn(self, message: str) -> bool:
        """Take from a refusal what another run can do without; False where nothing new is in it."""
        for name in _UNKNOWN.findall(message):
            for root in self._resolution.request.others:
                if root.name == name.lower():
                    raise UnknownName(root)
        of_the_time = self._resolution.request.of_the_time
        if of_the_time and self._dated and _UNDATED in message:
            self._dated = False
            return True
        known = self._assumed | {name for name, _ in self._sdists} | self._allow_build
        if find_conflicts(message, self._resolution.pins):
            known |= find_requirers(message)  # a release that was taken back has no wheel, either
        sources_only = {canonicalize_name(name) for name in _NEEDS_WHEEL.findall(message)} - known
        late = (
            {canonicalize_name(name) for name in _FILTERED.findall(message)} - self._exempt
            if of_the_time
            else set()
        )
        self._assumed |= sources_only
        self._exempt |= late
        return bool(sources_only or late)

    def _missing_extras(self, message: str) -> Tuple[str, ...]:
        """Return what was asked for with an extra that it does not have, as uv warns."""
        request = self._resolution.request
        asked = {
            (root.name, canonicalize_name(extra))
            for root in (*request.roots, *request.others)
            for extra in root.extras
        }
        named = [(canonicalize_name(name), extra) for name, extra in _NO_EXTRA.findall(message)]
        return tuple(f"{name}[{extra}]" for name, extra in named if (name, extra) in asked)

    def _leave_out(self, pin: Pin) -> None:
        """Keep from uv a build that only a release page has; what it requires is what the source
        archive of the same release says.
        """
        metadata = self._sdist_of(pin.name, pin.version.public)
        self._without.add(pin.name)
        self._added += [line for line in metadata.requires if "extra" not in line]

    def _read_sdists(self, wanted: Sequence[Tuple[str, str]]) -> None:
        for name, version in wanted:
            self._sdists[(name, version)] = self._sdist_of(name, version)

    def _sdist_of(self, name: str, version: str) -> SdistMetadata:
        """Read a source archive that the index has; uv finds it, so that all its ways to an index
        are ours too.
        """
        self._progress(f"reading what {name} {version} requires from its source archive")
        self._write("sdist.in", [f"{name}=={version}"])
        arguments = [
            "sdist.in",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--no-binary",
            name,
            "--format",
            "pylock.toml",
        ]
        arguments += [
            *self._configure([_metadata_table(name, "", SdistMetadata(()))]),
            "--python-version",
            self._resolution.request.python,
        ]
        outcome = self._uv.compile(arguments, offline=self._sources.offline)
        if outcome.kind != "done":
            raise Unreadable(
                f"{name} {version}: {_first_words(outcome.message, self._sources.offline)}"
            )
        sdist = _sdist_entry(outcome.output, name)
        address = sdist.get("url") or (
            "file://" + os.path.join(self._uv.folder, sdist["path"]) if "path" in sdist else None
        )
        if address is None:
            raise Unreadable(f"{name} {version}: the index has no source archive")
        try:
            return read_sdist(
                fetch_sdist(address, sdist.get("hashes", {}), self._sources.environment, 60.0),
                address,
            )
        except Unreadable as error:
            raise Unreadable(
                f"{name} {version}: {error}; --allow-build {name} lets uv run its setup code to "
                "learn it"
            ) from error

    # ----------------------------------------------------------------------------------------------
    # outcomes

    def _closed(self, lines: Sequence[UvLine]) -> Closure:
        by_name = {line.name: line for line in lines}
        closed = [
            ClosedLine(
                line.name,
                line.version,
                line.hashes,
                line.via,
                "" if is_local(line.source) else line.source,
                line.name in self._exact,
            )
            for line in lines
        ]
        closed += [
            ClosedLine(
                pin.name,
                str(pin.version),
                (),
                tuple(
                    sorted(
                        other.name for other in self._resolution.pins if pin.name in other.requires
                    )
                ),
            )
            for pin in self._resolution.pins
            if pin.name not in by_name
        ]
        closed.sort(key=lambda line: line.name)
        unhashed = [line.name for line in closed if not line.hashes]
        local = tuple(line.name for line in lines if is_local(line.source))
        late = (
            tuple(sorted(self._exempt))
            if self._dated
            else (
                "everything beside the core pins, as the index does not say when it was uploaded",
            )
        )
        common: Dict[str, Any] = {
            "lines": tuple(closed),
            "late": late,
            **self._made(),
            "local": local,
            "extras": self._extras,
        }
        if not unhashed and not local:  # each file of a pylock.toml needs an address and a hash
            outcome = self._compile(pylock=True)
            if outcome.kind != "done":
                return self._core(_first_words(outcome.message, self._sources.offline))
            common["pylock"] = without_credentials(outcome.output)
        unhashed += [step.requirement for step in self._resolution.sources]
        if unhashed:
            return Closure("partial", f"no hash is to be had for {', '.join(unhashed)}", **common)
        return Closure("closed", **common)

    def _core(self, reason: str) -> Closure:
        return Closure("core", self._portable(reason), **self._made())

    def _made(self) -> Dict[str, Any]:
        """What a lock says of how it was closed, or should have been: installing needs it too."""
        return {
            "tool": self._tool,
            "platform": self._platform,
            "sources": self._sources.options,
            "strategy": self._sources.strategy,
        }

    def _portable(self, text: str) -> str:
        """A text without the folders of this machine: it goes into files that travel."""
        for place in sorted((*self._sources.local, self._uv.folder), key=len, reverse=True):
            text = text.replace(place, "a folder of this machine")
        return text

    def _refused(self, message: str) -> Closure:
        reason = f"{self._tool} finds nothing that fits these pins"
        conflicts, holes = (
            find_conflicts(message, self._resolution.pins),
            find_holes(message, self._resolution.pins),
        )
        words = self._portable(advised(message, self._resolution, holes))
        return Closure(
            "refused",
            reason,
            words,
            conflicts,
            holes=holes,
            **self._made(),
        )


def _requirement(pin: Pin, exact: bool) -> str:
    extras = f"[{','.join(pin.extras)}]" if pin.extras else ""
    return f"{pin.name}{extras}{'===' if exact else '=='}{pin.version}"


def _metadata_table(name: str, version: str, metadata: SdistMetadata) -> str:
    """A table of ``dependency-metadata`` for uv: of one release, or of every one where there is no
    version. A JSON string is a TOML string too.
    """
    lines = ["[[dependency-metadata]]", f"name = {json.dumps(name)}"]
    if version:
        lines.append(f"version = {json.dumps(version)}")
    lines.append(f"requires-dist = {json.dumps(list(metadata.requires))}")
    if metadata.requires_python:
        lines.append(f"requires-python = {json.dumps(metadata.requires_python)}")
    if metadata.extras:
        lines.append(f"provides-extra = {json.dumps(list(metadata.extras))}")
    return "\n".join(lines)


def _sdist_entry(text: str, name: str) -> Mapping[str, Any]:
    """Return the source archive of one package of a pylock.toml."""
    packages = parse_toml(text).get("packages", [])
    return next(
        (package.get("sdist", {}) for package in packages if package.get("name") == name), {}
    )


def _first_words(message: str, offline: bool) -> str:
    """What a failure says, in one line: uv's error, the address asked and the last cause."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if offline and "network was disabled" in message:
        return "--offline, and uv's cache does not have everything"
    errors = [line.partition("error:")[2].strip() for line in lines if line.startswith("error:")]
    causes = [line.partition("cause:")[2].strip() for line in lines if line.startswith("cause:")]
    asked = [cause for cause in causes[:-1] if cause.startswith("Failed to fetch")]
    return ": ".join([*(errors[:1] or lines[:1]), *asked[:1], *causes[-1:]])
