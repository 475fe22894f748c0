"""Judges a lock by what is not its solver: the dates and wheels of the index, uv, and ``check``.

What is judged is what was written: ``requirements.txt``, ``overrides.txt`` and
``envdoctor.lock.json``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import tempfile
import urllib.request
from datetime import date
from functools import lru_cache
from typing import (
    Any,
    Callable,
    Dict,
    Hashable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
)

from packaging.specifiers import SpecifierSet
from packaging.tags import Tag, cpython_tags
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_wheel_filename,
)
from packaging.version import Version

from envdoctor.file_replacement import replace_file
from envdoctor.intake import parse_assumptions, parse_requirements
from envdoctor.matrix.loader import Matrix
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Facts
from envdoctor.model.finding import Finding
from envdoctor.rules import judge
from scripts.matrix_refresh.index import ACCEPT, IndexFile, default_index, parse_page

T = TypeVar("T")

__all__ = ["Index", "Written", "judge_lock", "read_written"]

BOUND_DAYS = 365
"""A root may be this many days behind the newest release without a word about it."""
UV_LIMIT_S = 600

_PIN = re.compile(r"^([a-z0-9][\w.-]*)(?:\[[^]]*\])?={2,3}(\S+)", re.MULTILINE)
_NEEDS = re.compile(r"^# \S+ \S+ requires (\S+)$", re.MULTILINE)
_NOT = re.compile(r"^# not (\S+): (.*)$", re.MULTILINE)
_ROW = re.compile(r"\[row ([^\]\s]+)\]")
_SET = re.compile(r"^# set: (\w+)=(.*)$", re.MULTILINE)
_NOT_CLOSED = "# core pins"
_BUILT = "# built from source"
_WHEELS_OF = "ED401"
"""Speaks of wheels and their torch, and not of what a lock says to build beside its torch."""


class Written(NamedTuple):
    """A lock as its files say.

    roots: what was asked for, specifiers by name. comments: what stands above each pin. until: no
    later release counts, an ISO date or "".
    """

    roots: Mapping[str, str]
    pins: Mapping[str, str]
    comments: Mapping[str, str]
    header: str
    overrides: str
    python: str
    until: str

    @property
    def built(self) -> List[str]:
        """The pins that are built from source, of which uv would have to run the setup code."""
        return [name for name in self.pins if _BUILT in self.comments[name]]

    @property
    def text(self) -> str:
        """Everything that is said of it."""
        return "\n".join((self.header, self.overrides, *self.comments.values()))


def read_written(files: Mapping[str, str]) -> Written:
    """Read a lock from the texts of its files."""
    header, *paragraphs = files["requirements.txt"].split("\n\n")
    document = json.loads(files["envdoctor.lock.json"])
    pins: Dict[str, str] = {}
    comments: Dict[str, str] = {}
    for paragraph in paragraphs:
        match = _PIN.search(paragraph)
        if match:
            name = canonicalize_name(match[1])
            pins[name], comments[name] = match[2], paragraph
    request = document["request"]
    roots = {}
    for text in request["roots"]:
        match = re.match(r"([\w.-]+)(?:\[[^]]*\])?(.*)$", text)
        assert match is not None, text
        roots[str(canonicalize_name(match[1]))] = match[2].strip()
    until = min(filter(None, (request["as_of"], document["matrix"])))
    return Written(roots, pins, comments, header, files["overrides.txt"], request["python"], until)


# --------------------------------------------------------------------------------------------------
# the index


class Published(NamedTuple):
    """A release that an index has for a Python and a platform, and the day of its first file."""

    version: Version
    day: date


class Index:
    """The index that pip uses here; pages are kept in a folder, if one is given."""

    def __init__(self, folder: str = "") -> None:
        self._folder = folder
        self._address = ""
        self._pages: Dict[str, List[IndexFile]] = {}

    def files(self, name: str) -> List[IndexFile]:
        """Return all files of a project. Raises OSError where the index cannot be reached."""
        if name not in self._pages:
            self._pages[name] = parse_page(*self._page(name), name)[0]
        return self._pages[name]

    def _page(self, name: str) -> Tuple[bytes, str, str]:
        kept = os.path.join(self._folder, f"{name}.json") if self._folder else ""
        if kept and os.path.exists(kept):
            with open(kept, "rb") as file:
                return file.read(), "json", f"https://index.invalid/{name}/"
        self._address = self._address or default_index()
        address = f"{self._address}/{name}/"
        asked = urllib.request.Request(address, headers={"Accept": ACCEPT})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            content, kind = answer.read(), answer.headers.get("Content-Type", "")
        if kept and "json" in kind:
            with open(kept, "wb") as file:
                file.write(content)
        return content, kind, address

    def releases(self, name: str, python: str, glibc: str) -> List[Published]:
        """Return the releases with a wheel for a Python on x86_64 Linux with this glibc."""
        tags = _tags(python, glibc)
        days: Dict[Version, date] = {}
        for file in self.files(name):
            version = _fitting_version(file, python, tags)
            if version is not None and file.uploaded:
                day = date.fromisoformat(file.uploaded[:10])
                days[version] = min(day, days.get(version, day))
        return [Published(version, day) for version, day in sorted(days.items())]

    def day(self, name: str, version: Version) -> Optional[date]:
        """Return the day on which the first file of a release came, of whatever kind."""
        days = [
            date.fromisoformat(file.uploaded[:10])
            for file in self.files(name)
            if file.uploaded and _version_of(file.name, name) == version
        ]
        return min(days, default=None)


@lru_cache(None)
def _tags(python: str, glibc: str) -> frozenset[Tag]:
    major, minor = map(int, python.split(".")[:2])
    last = int(glibc.split(".")[1])
    platforms = [f"manylinux_2_{number}_x86_64" for number in range(last, 4, -1)]
    old = ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"]
    native = cpython_tags((major, minor), platforms=[*platforms, *old])
    pure = [f"py{major}", *(f"py{major}{older}" for older in range(minor + 1))]
    neutral = [
        Tag(name, "none", platform) for name in pure for platform in ("any", *platforms, *old)
    ]
    return frozenset((*native, *neutral))


def _version_of(file: str, name: str) -> Optional[Version]:
    try:
        if file.endswith(".whl"):
            return parse_wheel_filename(file)[1]
        if file.endswith((".tar.gz", ".zip")):
            return Version(re.sub(r"\.(tar\.gz|zip)$", "", file)[len(name) + 1 :])
    except (InvalidWheelFilename, InvalidSdistFilename, ValueError):
        return None
    return None


def _fitting_version(file: IndexFile, python: str, tags: frozenset[Tag]) -> Optional[Version]:
    """The version of a wheel that can be installed, or None."""
    if file.yanked is not None or not file.name.endswith(".whl"):
        return None
    try:
        _, version, _, own = parse_wheel_filename(file.name)
        allowed = SpecifierSet(file.requires_python or "")
    except ValueError:
        return None
    full = python if python.count(".") == 2 else f"{python}.99"
    return version if not tags.isdisjoint(own) and allowed.contains(full) else None


def stale_roots(written: Written, index: Index, glibc: str, refused: Refusals) -> Iterator[str]:
    """Yield the roots that are behind by more than the bound, and nothing says why."""
    for name, specifier in written.roots.items():
        if name not in written.pins:
            yield f"{name} was asked for and is not in the lock"
            continue
        pin = Version(written.pins[name])
        allowed = SpecifierSet(specifier)
        early = pin.is_prerelease or bool(allowed.prereleases)
        published = [
            release
            for release in index.releases(name, written.python, glibc)
            if allowed.contains(release.version, prereleases=early)
            and str(release.day) <= written.until
        ]
        own = index.day(name, Version(pin.public))
        if not published or own is None or published[-1].version <= pin:
            continue
        newest = published[-1]
        behind = (newest.day - own).days
        if behind > BOUND_DAYS and not _is_explained(name, newest, published, written, refused):
            yield f"{name} {pin} is {behind} days behind {newest.version} without a word about it"


class Refusals(NamedTuple):
    """What check says of another release of one package on the machine of a lock."""

    written: Written
    machine: Tuple[str, ...]
    matrix: Matrix

    def hold(self, name: str, version: str, row: str) -> bool:
        """Tell whether a row holds where a package has this version, the others as they are."""
        pins = {**self.written.pins, name: version}
        alone = {name: version}
        return any(
            finding.row == row
            for taken in (pins, alone)
            for finding in _violated(taken, self.machine, self.written, self.matrix)
        )


def _is_explained(
    name: str,
    newest: Published,
    published: Sequence[Published],
    written: Written,
    refused: Refusals,
) -> bool:
    """Tell whether the lock says why a root is not the newest: a requirement that excludes it, a
    note, or a row that does hold of what it would be.
    """
    comments = written.comments[name]
    for specifier in _NEEDS.findall(comments):
        if not SpecifierSet(specifier).contains(newest.version):
            return True
    if re.search(rf"^# note: {re.escape(name)} \S+ is of .* months behind", written.header, re.M):
        return True
    days = {str(release.version): release.day for release in published}
    for version, words in _NOT.findall(comments):
        day = days.get(str(Version(version).public))
        if day is None or (newest.day - day).days > BOUND_DAYS:
            continue
        rows = _ROW.findall(words)
        return not rows or any(refused.hold(name, version, row) for row in rows)
    return False


# --------------------------------------------------------------------------------------------------
# uv


def closed_by_uv(written: Written, glibc: str, folder: str) -> Tuple[Dict[str, str], str]:
    """Return what uv installs with the pins, and what it says against them.

    What is built from source is left out: uv would run its setup code. Answers are kept in a
    folder by what was asked.
    """
    kept = _kept_for(written, glibc, folder, "uv")
    taken, fault = _read(kept) or _keep(kept, _asked_uv(written, glibc))
    return taken, fault


def _kept_for(written: Written, glibc: str, folder: str, what: str) -> str:
    """The file that keeps what came of pins."""
    pins = [f"{name}=={version}" for name, version in written.pins.items()]
    key = json.dumps([pins, written.built, written.overrides, written.python, glibc])
    return os.path.join(folder, f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.{what}.json")


def _read(path: str) -> Any:
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _keep(path: str, value: T) -> T:
    """Write a value whole, since another process may ask for it."""
    replace_file(path, json.dumps(value).encode())
    return value


def _asked_uv(written: Written, glibc: str) -> Tuple[Dict[str, str], str]:
    platform = f"x86_64-manylinux_{glibc.replace('.', '_')}"
    target = ["--python-version", written.python, "--python-platform", platform]
    with tempfile.TemporaryDirectory() as folder:
        asked, overrides, closed = (
            os.path.join(folder, name) for name in ("asked.txt", "overrides.txt", "closed.txt")
        )
        lines = [
            f"{name}=={version}"
            for name, version in written.pins.items()
            if name not in written.built
        ]
        _write(asked, lines)
        never = [f"{name}; sys_platform == 'never'" for name in written.built]
        _write(overrides, [written.overrides, *never])
        compiled = [asked, "--override", overrides, "--no-header", "--no-annotate", "-o", closed]
        fault = _uv("compile", "--quiet", *compiled, *target)
        if fault:
            return {}, fault
        fault = _uv("sync", "--dry-run", "--target", os.path.join(folder, "x"), *target, closed)
        with open(closed, encoding="utf-8") as file:
            taken = dict(_PIN.findall(file.read()))
    return taken, fault


def _write(path: str, lines: Sequence[str]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def _uv(*arguments: str) -> str:
    """Run uv; return why it fails, or ""."""
    try:
        done = subprocess.run(
            ["uv", "pip", *arguments],
            capture_output=True,
            text=True,
            timeout=UV_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"uv pip {arguments[0]}: not done after {UV_LIMIT_S} s"
    return f"uv pip {arguments[0]}: {done.stderr.strip()[-600:]}" if done.returncode else ""


# --------------------------------------------------------------------------------------------------
# check


def unnamed_findings(
    taken: Mapping[str, str], machine: Tuple[str, ...], written: Written, matrix: Matrix
) -> Iterator[str]:
    """Yield what check finds in the set on the machine, and the lock does not name."""
    for finding in _violated(taken, machine, written, matrix):
        if finding.code == _WHEELS_OF and finding.component in written.built:
            continue
        if finding.severity == "error":
            yield f"check refuses it: {finding.code} {finding.message}"
        elif (
            finding.severity == "warning" and f"{finding.row or finding.code}]" not in written.text
        ):
            yield f"not named: {finding.row or finding.code}: {finding.message}"


def _violated(
    taken: Mapping[str, str], machine: Tuple[str, ...], written: Written, matrix: Matrix
) -> List[Finding]:
    """What check finds with a set of packages, beside what the machine has anyway."""
    bare = Facts(parse_assumptions([*machine, f"python={written.python}"]))
    text = "\n".join(f"{name}=={version}" for name, version in taken.items())
    here = Evidence("the lock")
    facts = bare.updated(
        {
            **dict(parse_requirements(text, "requirements.txt")),
            "distributions.complete": Known(True, here),
            "variables": Known(dict(_SET.findall(written.header)), here),
        }
    )
    return [
        finding
        for finding in judge(facts, matrix, today=str(matrix.date))
        if finding.verdict == "violated" and finding.key not in _own_keys(machine, matrix)
    ]


@lru_cache(8)
def _own_keys(machine: Tuple[str, ...], matrix: Matrix) -> frozenset[Hashable]:
    """What check finds on a machine without any package."""
    bare = Facts(parse_assumptions(machine))
    return frozenset(finding.key for finding in judge(bare, matrix, today=str(matrix.date)))


def judge_lock(
    files: Mapping[str, str],
    machine: Tuple[str, ...],
    glibc: str,
    matrix: Matrix,
    index: Index,
    folder: str,
    close: Callable[[], Mapping[str, str]],
) -> List[str]:
    """Return the faults of a lock.

    Args:
        files: its texts by name.
        machine: what it is for, as ``--assume`` takes it.
        glibc: of the machine.
        matrix: what check judges by.
        index: whose dates count.
        folder: where uv's answers are kept.
        close: gives the files of the closed lock, which is what is installed; it is asked where
            uv refuses the pins or adds what check warns of, once for the same pins on all machines.
    """
    written = read_written(files)
    refused = Refusals(written, machine, matrix)
    faults = list(stale_roots(written, index, glibc, refused))
    taken, fault = closed_by_uv(written, glibc, folder)
    unnamed = list(unnamed_findings({**taken, **written.pins}, machine, written, matrix))
    if fault or unnamed:
        kept = _kept_for(written, glibc, folder, "closed")
        closed = _read(kept) or _keep(kept, dict(close()))
        if closed["requirements.txt"].startswith(_NOT_CLOSED):
            return [*faults, *unnamed, f"it cannot be closed, and {fault}"]
        again = read_written(closed)
        written = again._replace(header=f"{written.header}\n{again.header}")
        taken, fault = closed_by_uv(again, glibc, folder)
        unnamed = list(unnamed_findings({**taken, **written.pins}, machine, written, matrix))
    return [*faults, *([fault] if fault else []), *unnamed]
