"""Files of a project and what their metadata says → releases as the matrix holds them. No I/O.

Which releases: every final one. Pre-releases only where they are what people install:

* all alphas, betas and candidates of a project without any final release, its development releases
  only where it has nothing else;
* all of them of a project that the list names under ``prereleases``, because its final ones are
  placeholders (``flash-attn-4``);
* one that a release in the matrix asks for by ``==``, or that somebody put into the matrix.

Which files: what speaks for Linux. Metadata is that of the x86_64 wheels (or of those for any
platform); where wheels of one release differ, the group with most wheels is the release, and the
others stand under ``differs``. Wheels for macOS and Windows count where there is nothing else; the
source archive where there is no wheel. Yanked files count only where all are yanked. PyPy, musl and
Python 2 are left out of ``pythons``. Of wheels that differ in nothing but the build number the
newest counts, as for installers.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename
from packaging.version import InvalidVersion, Version

from .errors import Refused
from .index import IndexFile
from .metadata import Metadata, malformed_line, requirement_meaning

__all__ = ["Release", "Wheel", "describe", "group_files", "pinned_prereleases", "taken"]

_PYTHON = re.compile(r"cp3\d*t?|py3\d*")
_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_(\w+)")
_LEGACY = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}


class Wheel(NamedTuple):
    """A wheel: its file and its tags.

    ``pythons`` as the matrix writes them: "cp310", "cp38-abi3", "cp313t", "py3". ``build``: build
    number.
    """

    file: IndexFile
    pythons: Tuple[str, ...]
    platform: str
    build: Tuple[int, str] = (0, "")

    @property
    def tags(self) -> Tuple[str, ...]:
        """What wheels that replace each other have in common."""
        return tuple(self.file.name[:-4].rsplit("-", 3)[1:])

    @property
    def architecture(self) -> str:
        """``x86_64``, ``aarch64``, ``any``, or "" for what is not Linux with glibc."""
        if self.platform == "any":
            return "any"
        if "linux" not in self.platform or "musllinux" in self.platform:
            return ""
        return next((name for name in ("x86_64", "aarch64") if self.platform.endswith(name)), "")


class Release(NamedTuple):
    """The files of one version."""

    version: Version
    wheels: Tuple[Wheel, ...]
    sdists: Tuple[IndexFile, ...]
    yanked: Optional[str]
    released: str

    @property
    def main(self) -> Tuple[Wheel, ...]:
        """The wheels whose metadata is the release's: x86_64 and any; else aarch64; else whatever
        there is.
        """
        for wanted in (("x86_64", "any"), ("aarch64",), ("",)):
            fitting = tuple(wheel for wheel in self.wheels if wheel.architecture in wanted)
            usable = tuple(wheel for wheel in fitting if wheel.pythons)
            if fitting:
                return usable or fitting
        return ()

    @property
    def to_read(self) -> Tuple[IndexFile, ...]:
        """The files whose metadata decides: every wheel for Linux, or one of another platform, or
        the source archive.
        """
        wheels = self.main
        if not wheels:
            return self.sdists[:1]
        if not wheels[0].architecture or not wheels[-1].pythons:
            return (wheels[-1].file,)
        others = tuple(
            wheel
            for wheel in self.wheels
            if wheel.architecture == "aarch64" and wheel.pythons and wheel not in wheels
        )
        return tuple(wheel.file for wheel in (*wheels, *others))


def group_files(
    project: str, files: Iterable[IndexFile]
) -> Tuple[Dict[Version, Release], List[str]]:
    """Return the releases of a project, and the files that are none of its, with the reason."""
    wheels: Dict[Version, List[Wheel]] = {}
    sdists: Dict[Version, List[IndexFile]] = {}
    every: Dict[Version, List[IndexFile]] = {}
    left_out: List[str] = []
    for file in files:
        try:
            if file.name.endswith(".whl"):
                version, wheel = _wheel(project, file)
                wheels.setdefault(version, []).append(wheel)
            elif file.name.endswith((".tar.gz", ".zip", ".tar.bz2")):
                version = _sdist_version(project, file.name)
                sdists.setdefault(version, []).append(file)
            else:
                continue  # eggs and installers of the past
        except Refused as fault:
            left_out.append(f"{file.name}: {fault}")
            continue
        every.setdefault(version, []).append(file)
    releases = {}
    for version, files_of_version in every.items():
        kept = [file for file in files_of_version if file.yanked is None]
        names = {file.name for file in (kept or files_of_version)}
        reasons = [file.yanked for file in files_of_version if file.yanked]
        releases[version] = Release(
            version,
            _newest_builds(wheel for wheel in wheels.get(version, []) if wheel.file.name in names),
            tuple(
                sorted(
                    (file for file in sdists.get(version, []) if file.name in names),
                    key=lambda file: (not file.name.endswith(".tar.gz"), file.name),
                )
            ),
            None if kept else (reasons[0] if reasons else ""),
            min(
                (
                    file.uploaded[:10]
                    for file in files_of_version
                    if re.match(r"\d{4}-\d\d-\d\d", file.uploaded)
                ),
                default="",
            ),
        )
    return releases, left_out


def _wheel(project: str, file: IndexFile) -> Tuple[Version, Wheel]:
    # Not parse_wheel_filename: it makes every tag of a compressed set, and refuses names that pip
    # takes.
    parts = file.name[:-4].split("-")
    if len(parts) not in (5, 6):
        raise Refused("it is no name of a wheel")
    if canonicalize_name(parts[0]) != project:
        raise Refused("it is a wheel of another project")
    try:
        version = Version(parts[1].replace("_", "+", 1) if "_" in parts[1] else parts[1])
    except InvalidVersion as error:
        raise Refused("its name has no version") from error
    if version.local is not None:
        raise Refused("its version has a local label")
    python, abi, platform = parts[-3:]
    pythons = tuple(dict.fromkeys(_python(tag, abi) for tag in python.split(".")))
    number = re.match(r"(\d+)(.*)", parts[2]) if len(parts) == 6 else None
    if len(parts) == 6 and number is None:
        raise Refused("its name has no build number where one belongs")
    build = (int(number.group(1)), number.group(2)) if number is not None else (0, "")
    return version, Wheel(file, tuple(tag for tag in pythons if tag), platform, build)


def _newest_builds(wheels: Iterable[Wheel]) -> Tuple[Wheel, ...]:
    newest: Dict[Tuple[str, ...], Wheel] = {}
    for wheel in wheels:
        known = newest.get(wheel.tags)
        if known is None or known.build < wheel.build:
            newest[wheel.tags] = wheel
    return tuple(sorted(newest.values(), key=_wheel_order))


def _python(tag: str, abi: str) -> str:
    """Return an interpreter tag as the matrix writes it, "" for those that it leaves out."""
    if not _PYTHON.fullmatch(tag):
        return ""
    if tag.startswith("py"):
        return tag
    abis = abi.split(".")
    if "abi3" in abis:
        return f"{tag}-abi3"
    return f"{tag}t" if f"{tag}t" in abis and not tag.endswith("t") else tag


def _sdist_version(project: str, name: str) -> Version:
    try:
        stem = f"{name[: -len('.tar.bz2')]}.tar.gz" if name.endswith(".tar.bz2") else name
        stem_project, version = parse_sdist_filename(stem)
    except (InvalidSdistFilename, InvalidVersion) as error:
        raise Refused("it is no name of a source archive") from error
    if stem_project != project:
        raise Refused("it is a source archive of another project")
    if version.local is not None:
        raise Refused("its version has a local label")
    return version


def _python_order(tag: str) -> Tuple[str, int, str]:
    match = re.match(r"([a-z]+)(\d)(\d*)(.*)", tag)
    return (
        (match.group(1), int(match.group(2)) * 1000 + int(match.group(3) or 0), match.group(4))
        if match
        else (tag, 0, "")
    )


def _wheel_order(wheel: Wheel) -> Tuple[Any, ...]:
    newest = max((_python_order(tag) for tag in wheel.pythons), default=("", 0, ""))
    return (newest, wheel.platform, wheel.file.name)


def taken(
    releases: Mapping[Version, Release], wanted: Set[Version], early: bool = False
) -> List[Version]:
    """Return the versions that the matrix takes, oldest first.

    Args:
        releases: those of the index.
        wanted: pre-releases that are pinned, or in the matrix already.
        early: alphas, betas and candidates count like final ones.
    """
    final = {version for version in releases if not version.is_prerelease}
    if early or not final:
        final.update(
            version for version in releases if version.pre is not None and version.dev is None
        )
    return sorted({*(final or releases), *(version for version in wanted if version in releases)})


def pinned_prereleases(lines: Iterable[str]) -> Dict[str, Set[Version]]:
    """Return the pre-releases that requirement lines ask for by ``==``, by project."""
    prereleases: Dict[str, Set[Version]] = {}
    for line in lines:
        if "==" not in line:
            continue
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        for specifier in requirement.specifier:
            if specifier.operator not in ("==", "===") or specifier.version.endswith(".*"):
                continue
            try:
                version = Version(specifier.version)
            except InvalidVersion:
                continue
            if version.is_prerelease:
                prereleases.setdefault(canonicalize_name(requirement.name), set()).add(version)
    return prereleases


def describe(release: Release, read: Mapping[str, Metadata], prune: Any) -> Dict[str, Any]:
    """Return the JSON form of a release (``envdoctor.matrix.tables.Release``) without builds.

    Args:
        release: its files.
        read: metadata by file name; a file that is missing was refused or not reached.
        prune: requirement lines → those that are kept.
    """
    entry: Dict[str, Any] = {"version": str(release.version), "released": release.released}
    if release.yanked is not None:
        entry["yanked"] = True
        if release.yanked:
            entry["yanked_reason"] = release.yanked[:500]
    groups = _groups(release, read, prune)
    main = _main_group(release, groups)
    if main is not None:
        python, requires = main.requires_python, main.requires
    else:
        python, requires = (
            next((file.requires_python for file in release.to_read if file.requires_python), None),
            None,
        )
    if python:
        entry["requires_python"] = python
    if requires is not None:
        entry["requires"] = list(requires)
    if main is not None and main.malformed:
        entry["malformed"] = main.malformed
    linux = [wheel for wheel in release.wheels if wheel.architecture]
    pythons = sorted({tag for wheel in linux for tag in wheel.pythons}, key=_python_order)
    if pythons:
        entry["pythons"] = pythons
    platforms = sorted({wheel.platform for wheel in release.wheels})
    if platforms:
        entry["platforms"] = platforms
    floor = _glibc(wheel for wheel in release.main if wheel.architecture in ("x86_64", "aarch64"))
    if floor is not None:
        entry["glibc"] = floor
    if release.sdists:
        entry["sdist"] = True
    if not release.wheels:
        entry["sdist_only"] = True
    differs = [
        item
        for group in groups
        if main is not None and group is not main
        for item in _difference(group, main)
    ]
    if differs:
        entry["differs"] = sorted(
            differs,
            key=lambda item: (item["platforms"], [_python_order(tag) for tag in item["pythons"]]),
        )
    return entry


class _Group(NamedTuple):
    """Wheels (none for a source archive) that ask for the same of the stack, with the lines of the
    last of them. malformed: a line that no installer of today understands, or "".
    """

    requires_python: Optional[str]
    requires: Optional[Tuple[str, ...]]
    wheels: Tuple[Wheel, ...]
    malformed: str


def _groups(release: Release, read: Mapping[str, Metadata], prune: Any) -> List[_Group]:
    # Neither order nor spelling make a difference: ray's wheels list their extras in a new order
    # each time.
    wheels = {wheel.file.name: wheel for wheel in release.wheels}
    groups: Dict[Any, _Group] = {}
    for file in release.to_read:
        metadata = read.get(file.name)
        if metadata is None:
            continue
        python = metadata.requires_python or file.requires_python
        requires = None if metadata.requires is None else prune(metadata.requires)
        malformed = malformed_line(metadata.requires or ())
        meaning = None if requires is None else frozenset(map(requirement_meaning, requires))
        key = (python, meaning, malformed)
        before = groups[key].wheels if key in groups else ()
        serving = (*before, wheels[file.name]) if file.name in wheels else before
        groups[key] = _Group(python, requires, serving, malformed)
    return list(groups.values())


def _main_group(release: Release, groups: Sequence[_Group]) -> Optional[_Group]:
    """The group with most of the main wheels; of equal ones that with the newest Python."""
    main = set(release.main)

    def weight(group: _Group) -> Tuple[int, Any]:
        members = [wheel for wheel in group.wheels if wheel in main]
        return len(members), max((_wheel_order(wheel) for wheel in members), default=())

    return max(groups, key=weight, default=None)


def _difference(group: _Group, main: _Group) -> List[Dict[str, Any]]:
    """The wheels of a group as products of Pythons and platforms, so that no other wheel is
    meant.
    """
    by_platform: Dict[str, Set[str]] = {}
    for wheel in group.wheels:
        by_platform.setdefault(wheel.platform, set()).update(wheel.pythons)
    by_pythons: Dict[Tuple[str, ...], List[str]] = {}
    for platform, pythons in sorted(by_platform.items()):
        by_pythons.setdefault(tuple(sorted(pythons, key=_python_order)), []).append(platform)
    items = []
    for tags, platforms in by_pythons.items():
        item: Dict[str, Any] = {"pythons": list(tags), "platforms": platforms}
        if group.requires_python and group.requires_python != main.requires_python:
            item["requires_python"] = group.requires_python
        item["requires"] = list(group.requires or ())
        items.append(item)
    return items


def _glibc(wheels: Iterable[Wheel]) -> Optional[str]:
    """The oldest glibc that any of these wheels serves, by its tags."""
    floors = []
    for wheel in wheels:
        for tag in wheel.platform.split("."):
            match = _MANYLINUX.fullmatch(tag)
            if match is not None:
                floors.append((int(match.group(1)), int(match.group(2))))
            elif tag.split("_", 1)[0] in _LEGACY:
                floors.append(_LEGACY[tag.split("_", 1)[0]])
    return "{}.{}".format(*min(floors)) if floors else None
