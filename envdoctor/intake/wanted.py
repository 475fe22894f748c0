"""What is wanted of a lock, as people have it: words, requirements files, constraints,
``pyproject.toml``, wheels and addresses.

A requirements file is read as pip reads it
(https://pip.pypa.io/en/stable/reference/requirements-file-format/), a project's table as PEP 621
and PEP 735 say.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Set, Tuple
from urllib.parse import unquote, urlsplit

from ..errors import InputError, suggest
from ..model.redaction import without_credentials
from ..model.requirement import (
    InvalidRequirement,
    Requirement,
    joined_lines,
    line_with_extras,
    parse_requirement,
    try_requirement,
)
from ..model.toml import parse_toml
from ..model.versions import canonicalize_name
from ..text_files import read_text
from .package_lists import wheel_file

__all__ = ["Wanted", "read_wanted"]

_EDITABLE = re.compile(r"(?:-e|--editable)[ =]*")
_OPTION = re.compile(r"(--?[A-Za-z][\w-]*)(?:[ =]+|(?<=-[a-z])(?=\S))?(.*)", re.DOTALL)
_LONG = {"-r": "--requirement", "-c": "--constraint", "-i": "--index-url", "-f": "--find-links"}
_BEHIND = re.compile(r"\s+--(?:hash|config-settings?|global-option|no-binary)\b")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_FILE = re.compile(r"(.+\.whl)((?:\[[\w.,\s-]*\])?)")
_PROJECT = "pyproject.toml"


class Wanted(NamedTuple):
    """What was asked for.

    requirements: lines with their markers, in order. constraints: the same of what only bounds
    versions. direct: what comes from git. pythons: what projects ask of Python. index_url,
    extra_index_url, find_links: what files say of where packages come from. notes: what was read
    otherwise than an installer would. wheels: the file names of the wheels that are given, by path
    or by address. addresses: of those that are given so, ``name @ address`` without credentials.
    """

    requirements: Tuple[str, ...] = ()
    constraints: Tuple[str, ...] = ()
    direct: Tuple[str, ...] = ()
    pythons: Tuple[str, ...] = ()
    index_url: Tuple[str, ...] = ()
    extra_index_url: Tuple[str, ...] = ()
    find_links: Tuple[str, ...] = ()
    notes: Tuple[str, ...] = ()
    wheels: Tuple[str, ...] = ()
    addresses: Tuple[str, ...] = ()


def read_wanted(
    words: Sequence[str] = (),
    files: Sequence[str] = (),
    constraints: Sequence[str] = (),
    extras: Sequence[str] = (),
    groups: Sequence[str] = (),
) -> Wanted:
    """Read what is wanted.

    Args:
        words: requirements, wheels (``./x-1.0-py3-none-any.whl``) or addresses.
        files: requirements files or ``pyproject.toml``; "-" is standard input.
        constraints: files that bound versions.
        extras: extras of the project.
        groups: dependency groups of the project.

    Raises:
        InputError: what is no requirement, with file and line, or a file that is not there.
    """
    reader = _Reader(extras, groups)
    for word in words:
        reader.take(word, "", os.curdir)
    for path in files:
        reader.read(path, "--requirement", "")
    for path in constraints:
        reader.read(path, "--constraint", "")
    reader.check_options()
    return Wanted(**{name: tuple(dict.fromkeys(lines)) for name, lines in reader.entries.items()})


class _Reader:
    """Collects what files and words ask for, each file once."""

    def __init__(self, extras: Sequence[str], groups: Sequence[str]) -> None:
        self.entries: Dict[str, List[str]] = {name: [] for name in Wanted._fields}
        self._extras = tuple(map(canonicalize_name, extras))
        self._groups = tuple(map(canonicalize_name, groups))
        self._seen: Set[Tuple[str, str]] = set()
        self._projects = 0

    def check_options(self) -> None:
        """Raise :class:`InputError` for options that say something of a project that nobody
        named.
        """
        if (self._extras or self._groups) and not self._projects:
            raise InputError(f"--extra and --group are about a project: give -r {_PROJECT}")

    def read(self, path: str, kind: str, where: str) -> None:
        """Read a file; ``where`` names the file and line that asked for it."""
        key = (kind, path if path == "-" else os.path.realpath(path))
        if key in self._seen:
            return
        self._seen.add(key)
        if os.path.isdir(path):
            path = os.path.join(path, _PROJECT)
        if where and not os.path.isfile(path):
            raise InputError(f"{where}: expected a file, found nothing at {path}")
        text = read_text(path)
        if os.path.basename(path).endswith(".toml"):
            self._read_project(text, path)
        else:
            self._read_lines(text, path, kind)

    def _read_lines(self, text: str, path: str, kind: str) -> None:
        folder = os.curdir if path == "-" else os.path.dirname(path)
        shown = "standard input" if path == "-" else path
        for number, line in _lines(text):
            where = f"{shown}:{number}"
            if line.startswith("-") and not line.startswith(("-e", "--editable")):
                self._take_option(line, where, folder, kind)
            elif kind == "--constraint":
                self.entries["constraints"].append(_checked(line, where).line)
            else:
                self.take(line, where, folder)

    def _take_option(self, line: str, where: str, folder: str, kind: str) -> None:
        _refuse_null(line, where)
        match = _OPTION.fullmatch(line)
        option, value = match.groups() if match is not None else (line, "")
        option, value = _LONG.get(option, option), value.strip().strip("\"'")
        if option in ("--requirement", "--constraint"):
            inside = "--constraint" if kind == "--constraint" else option
            self.read(_beside(value, folder), inside, where)
        elif option in ("--index-url", "--extra-index-url"):
            self.entries[option[2:].replace("-", "_")].append(value)
        elif option == "--find-links":
            self.entries["find_links"].append(value if "://" in value else _beside(value, folder))
        else:
            self.entries["notes"].append(f"{option} of {os.path.basename(where)} is passed over")

    def take(self, line: str, where: str, folder: str) -> None:
        """Take one requirement, wheel, project or address; ``where`` is "" for a word."""
        _refuse_null(line, where)
        editable = _EDITABLE.match(line)
        body = line[editable.end() :].strip() if editable else line
        requirement = None if editable else try_requirement(body)
        file = _FILE.fullmatch(body)
        if requirement is not None and requirement.url:
            self._take_address(requirement, where)
        elif requirement is not None and not _is_path(body):
            self.entries["requirements"].append(requirement.line)
        elif file is not None and "://" not in body:
            self._take_wheel(_beside(file.group(1), folder), where, file.group(2))
        elif os.path.isdir(_beside(body.partition("[")[0], folder)):
            self._take_folder(body, where, folder)
        elif wheel_file(body) is not None:
            name, version, _ = wheel_file(body) or ("", "", ())
            self._note_address(name, body, where)
            self.entries["requirements"].append(f"{name}=={version}")
        elif body.startswith("git+"):
            self._take_address(_named_repository(body, where), where)
        else:
            _checked(body, where)  # says what was expected
            raise InputError(_fault(where, f"cannot be read: {body[:80]!r}"))

    def _take_address(self, requirement: Requirement, where: str) -> None:
        url = requirement.url
        wheel = wheel_file(url)
        extras = f"[{','.join(requirement.extras)}]" if requirement.extras else ""
        if url.startswith("git+"):
            self.entries["direct"].append(requirement.line)
            words = f"{requirement.name} comes from a repository; what it requires was not read"
            if "@" not in _path_of(url, where):
                words += "; no tag or commit is named, so another day may bring another release"
            self.entries["notes"].append(words)
        elif url.startswith("file:") and wheel is not None:
            self._take_wheel(unquote(_path_of(url, where)), where, extras)
        elif wheel is not None:
            self._note_address(requirement.name, url, where)
            marker = f" ; {requirement.marker}" if requirement.marker else ""
            self.entries["requirements"].append(f"{requirement.name}{extras}=={wheel[1]}{marker}")
        else:
            raise InputError(
                _fault(where, f"expected a wheel or git+ADDRESS@TAG behind the @, found {url!r}")
            )

    def _note_address(self, name: str, address: str, where: str) -> None:
        self.entries["wheels"].append(unquote(_path_of(address, where)).rpartition("/")[2])
        shown = without_credentials(address)
        self.entries["addresses"].append(f"{name} @ {shown}")
        self.entries["notes"].append(f"{name} is given as {shown}: what it requires was not read")

    def _take_wheel(self, path: str, where: str, extras: str = "") -> None:
        """Read a wheel: what it is, and what it requires. extras: "[gpu]"."""
        from email.parser import HeaderParser
        from zipfile import BadZipFile, ZipFile

        try:
            with ZipFile(path) as archive:
                names = [name for name in archive.namelist() if name.count("/") == 1]
                metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
                described = HeaderParser().parsestr(archive.read(metadata).decode("utf-8"))
        except (OSError, BadZipFile, StopIteration, UnicodeDecodeError, KeyError) as error:
            reason = getattr(error, "strerror", None) or "is no wheel with metadata"
            raise InputError(_fault(where, f"{path}: {reason}")) from error
        name, version = described.get("Name", ""), described.get("Version", "")
        own = _checked(f"{name}{extras}=={version}", where or path)
        self.entries["wheels"].append(os.path.basename(path))
        self.entries["requirements"].append(own.line)
        for line in described.get_all("Requires-Dist") or ():
            requirement = try_requirement(" ".join(line.split()))
            if requirement is not None:
                line = line_with_extras(requirement, own.extras)
                self.entries["requirements"] += [line] if line else []
        self.entries["find_links"].append(os.path.dirname(os.path.abspath(path)))
        self.entries["notes"].append(
            f"{own.name} {version} is given as a file, {os.path.basename(path)}, which was read"
        )

    def _take_folder(self, body: str, where: str, folder: str) -> None:
        """A project by its folder: what it requires; itself it is not in the lock."""
        path, _, inside = body.partition("[")
        self._extras += tuple(map(canonicalize_name, filter(None, inside.rstrip("]").split(","))))
        self.read(os.path.join(_beside(path, folder), _PROJECT), "--requirement", where or body)
        self.entries["notes"].append(
            "a project that is given by its folder is not in the lock, only what it requires"
        )

    # ----------------------------------------------------------------------------------------------
    # projects

    def _read_project(self, text: str, path: str) -> None:
        try:
            data = parse_toml(text)
        except ValueError as error:
            raise InputError(f"{path}: is no TOML: {error}") from error
        self._projects += 1
        project = data.get("project")
        if not isinstance(project, Mapping) and not self._groups:
            raise InputError(f"{path}: expected a table [project] (PEP 621), found none")
        project = project if isinstance(project, Mapping) else {}
        dynamic = project.get("dynamic")
        if isinstance(dynamic, list) and "dependencies" in dynamic:
            raise InputError(f"{path}: its dependencies are dynamic: only a build can tell them")
        optional = _table(project, "optional-dependencies", path)
        own = canonicalize_name(str(project.get("name", "")))
        wanted = list(_strings(project.get("dependencies", []), "dependencies", path))
        wanted += _of_extras(self._extras, optional, own, path)
        for line in wanted:
            self.take(line, path, os.path.dirname(path))
        python = project.get("requires-python")
        if isinstance(python, str) and python.strip():
            self.entries["pythons"].append(python.replace(" ", ""))
        groups = _table(data, "dependency-groups", path)
        for group in self._groups:
            for line in _group_lines(group, groups, path, ()):
                self.take(line, path, os.path.dirname(path))


def _table(data: Mapping[str, Any], key: str, path: str) -> Dict[str, Any]:
    value = data.get(key, {})
    if not isinstance(value, Mapping):
        raise InputError(f"{path}: {key}: expected a table")
    return {canonicalize_name(str(name)): entry for name, entry in value.items()}


def _strings(value: Any, key: str, path: str) -> Sequence[str]:
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise InputError(f"{path}: {key}: expected a list of requirements")
    return value


def _of_extras(
    extras: Sequence[str], optional: Mapping[str, Any], own: str, path: str
) -> Iterator[str]:
    """Yield the lines of extras; a project may name its own extras in them."""
    waiting, done = list(extras), set()
    while waiting:
        extra = waiting.pop(0)
        if extra in done:
            continue
        done.add(extra)
        if extra not in optional:
            raise InputError(
                f"{path}: expected one of the extras {', '.join(sorted(optional)) or '(none)'}, "
                f"found {extra!r}{suggest(extra, optional)}"
            )
        for line in _strings(optional[extra], f"optional-dependencies.{extra}", path):
            requirement = try_requirement(line)
            if requirement is not None and own and requirement.name == own:
                waiting += requirement.extras
            else:
                yield line


def _group_lines(
    group: str, groups: Mapping[str, Any], path: str, within: Tuple[str, ...]
) -> Iterator[str]:
    if group in within:
        raise InputError(f"{path}: dependency-groups.{group} includes itself")
    if group not in groups:
        raise InputError(
            f"{path}: expected one of the groups {', '.join(sorted(groups)) or '(none)'}, "
            f"found {group!r}{suggest(group, groups)}"
        )
    entries = groups[group]
    for entry in entries if isinstance(entries, list) else [entries]:
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, Mapping) and isinstance(entry.get("include-group"), str):
            other = canonicalize_name(entry["include-group"])
            yield from _group_lines(other, groups, path, (*within, group))
        else:
            raise InputError(f"{path}: dependency-groups.{group}: expected a list of requirements")


# --------------------------------------------------------------------------------------------------
# lines


def _lines(text: str) -> Iterator[Tuple[int, str]]:
    """Yield the lines of a requirements file with their numbers, without comments and hashes."""
    for number, row in joined_lines(text):
        line = _BEHIND.split(_COMMENT.sub("", row), maxsplit=1)[0].strip()
        if line:
            yield number, line


def _checked(line: str, where: str) -> Requirement:
    try:
        return parse_requirement(line)
    except InvalidRequirement as error:
        raise InputError(_fault(where, str(error))) from error


def _path_of(address: str, where: str) -> str:
    """Return the path of an address.

    Raises:
        InputError: it is none, as with a bracket that opens no IPv6 address.
    """
    try:
        return urlsplit(address).path
    except ValueError as error:
        raise InputError(_fault(where, f"names an address that cannot be read: {error}")) from None


def _fault(where: str, words: str) -> str:
    return f"{where}: {words}" if where else words


def _named_repository(body: str, where: str) -> Requirement:
    """Read ``git+ADDRESS@TAG#egg=NAME``, the older form of ``NAME @ git+ADDRESS@TAG``."""
    address, space, marker = body.partition(" ")
    base, _, fragment = address.partition("#")
    parts = fragment.split("&") if fragment else []
    name = next((part[4:] for part in parts if part.startswith("egg=")), "")
    if not name:
        expected = "expected 'NAME @ git+ADDRESS@TAG' or '#egg=NAME' behind the address"
        raise InputError(
            _fault(where, f"{expected}, found no name in {without_credentials(body)!r}")
        )
    kept = "&".join(part for part in parts if not part.startswith("egg="))
    line = f"{unquote(name)} @ {base}{'#' * bool(kept)}{kept}{space}{marker}"
    return _checked(line, where)


def _refuse_null(line: str, where: str) -> None:
    """Raise :class:`InputError` for what no name of a file holds: the system would say so."""
    if "\0" in line:
        raise InputError(_fault(where, f"expected text, found a null byte in {line[:80]!r}"))


def _is_path(body: str) -> bool:
    return body.startswith((".", "/", "~")) or _FILE.fullmatch(body) is not None


def _beside(path: str, folder: str) -> str:
    return os.path.normpath(os.path.join(folder, os.path.expanduser(path)))
