"""What conda installs, as the patient: environment.yml and its explicit lists."""

from __future__ import annotations

import re
from typing import Iterator, List, Optional, Tuple

from ..errors import InputError
from ..model.facts import Facts
from .distribution_names import of_conda
from .package_entries import (
    WHEEL_INDEX,
    PackageEntry,
    applies,
    facts_of_entries,
    labelled,
    read_entry,
)

__all__ = ["read_environment", "read_explicit"]

_CONDA_FILE = re.compile(r"/([^/\s#]+?)-([^-/\s]+)-([^-/\s]+)\.(?:conda|tar\.bz2)(?:#\S*)?$")


def read_environment(text: str, name: str) -> Facts:
    """Read environment.yml.

    Only its own shape is read: top-level keys, a list of dependencies, and a list under ``pip``.
    """
    pins: List[PackageEntry] = []
    python: Optional[Tuple[str, int]] = None
    keys = set()
    exact: List[bool] = []  # of each conda package, whether it is pinned to a build
    label = ""
    for number, kind, value in _entries(text, name):
        if kind == "key":
            keys.add(value)
        elif kind == "conda":
            pin, is_exact = _conda_spec(value, number)
            exact.append(is_exact)
            if pin is not None and pin.name == "python":
                python = (pin.version or "", number)
            elif pin is not None:
                pins.append(pin)
        elif value.startswith("-") and not value.startswith("-e "):
            index = WHEEL_INDEX.search(value)
            label = f"+{index.group(1)}" if index else label
        else:
            pin = read_entry(value, number, name, quoted=True)
            if applies(pin.marker):
                pins.append(pin)
    if "dependencies" not in keys:
        raise InputError(f"{name}: expected a conda environment with 'dependencies:', found none")
    # "conda env export" names every build and its prefix: nothing else is installed.
    complete = "prefix" in keys and bool(exact) and all(exact)
    return facts_of_entries(labelled(pins, label), name, complete=complete, python=python)


def _entries(text: str, name: str) -> Iterator[Tuple[int, str, str]]:
    """Yield each top-level key, and each entry under ``dependencies``, with its line and kind."""
    section = ""
    pip_indent: Optional[int] = None
    for number, indent, line in _yaml_rows(text, name):
        key = re.fullmatch(r"([A-Za-z_][\w-]*)\s*:\s*(.*)", line) if indent == 0 else None
        if key:
            section, pip_indent = key.group(1), None
            yield number, "key", section
        elif section == "dependencies":
            value = _item(line, number, name)
            if re.fullmatch(r"pip\s*:", value):
                pip_indent = indent
            elif pip_indent is not None and indent > pip_indent:
                yield number, "pip", value
            else:
                pip_indent = None
                yield number, "conda", value


def _yaml_rows(text: str, name: str) -> Iterator[Tuple[int, int, str]]:
    """Yield number, indentation and text of the lines that hold more than a comment."""
    for number, row in enumerate(text.split("\n"), 1):
        line = re.sub(r"(?:^|\s)#.*$", "", row).rstrip()
        if line.strip() in ("", "---", "..."):
            continue
        if line.lstrip(" ").startswith("\t"):
            raise InputError(f"{name}:{number}: YAML is not indented with tabs")
        yield number, len(line) - len(line.lstrip(" ")), line


def _item(line: str, number: int, name: str) -> str:
    item = re.fullmatch(r"\s*-\s*(.+?)\s*", line)
    if item is None:
        raise InputError(
            f"{name}:{number}: expected a list entry '- NAME=VERSION' under 'dependencies', "
            f"found {line.strip()[:60]!r}"
        )
    return item.group(1).strip("\"'")


def _conda_spec(spec: str, number: int) -> Tuple[Optional[PackageEntry], bool]:
    """Read ``[channel::]name=version[=build]``; behind ``=`` a full release counts as a pin."""
    match = re.fullmatch(
        r"(?:[\w./-]+::)?([A-Za-z0-9_][\w.-]*)\s*(={1,2})\s*([0-9][\w.!+]*)(?:=([\w.*]+))?", spec
    )
    if match is None:
        return None, False
    name, equals, version, build = match.groups()
    is_exact = equals == "==" or build is not None
    if name.lower() == "python":
        return PackageEntry("python", version, number), is_exact
    if not is_exact and version.count(".") < 2:
        return PackageEntry(
            of_conda(name), None, number, installer="conda", constraint=f"=={version}.*"
        ), False
    return PackageEntry(
        of_conda(name), version, number, build=build or "", installer="conda"
    ), is_exact


def read_explicit(text: str, name: str) -> Facts:
    """Read the addresses of ``conda list --explicit``."""
    pins: List[PackageEntry] = []
    python: Optional[Tuple[str, int]] = None
    for number, row in enumerate(text.split("\n"), 1):
        line = row.strip()
        if not line or line.startswith(("#", "@EXPLICIT")):
            continue
        match = _CONDA_FILE.search(line)
        if match is None:
            raise InputError(
                f"{name}:{number}: expected the address of a conda package, found {line[:80]!r}"
            )
        package, version, build = match.groups()
        if package == "python":
            python = (version, number)
        else:
            pins.append(
                PackageEntry(of_conda(package), version, number, build=build, installer="conda")
            )
    if not pins and python is None:
        raise InputError(f"{name}: no package was found after @EXPLICIT")
    return facts_of_entries(pins, name, complete=True, python=python)
