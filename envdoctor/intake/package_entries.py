"""Packages as files name them, with or without their versions, and what they say together."""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..errors import InputError
from ..model.evidence import Evidence, Fact, Known
from ..model.facts import Distribution, Facts
from ..model.requirement import Requirement, try_requirement
from ..model.versions import canonicalize_name, try_version
from .package_lists import wheel_file

__all__ = [
    "WHEEL_INDEX",
    "PackageEntry",
    "applies",
    "facts_of_entries",
    "labelled",
    "pinned",
    "read_entry",
]

WHEEL_INDEX = re.compile(r"/whl/(?:test/|nightly/)?(cu\d{2,3}|cpu|rocm[\d.]+)\b")
_EGG = re.compile(r"[#&]egg=([\w.-]+)")
_TORCH_FAMILY = frozenset(["torch", "torchvision", "torchaudio"])
_PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")


class PackageEntry(NamedTuple):
    """One entry of a file: a package with its version, its range, or where it comes from.

    ``line``: 0 where it says nothing to a reader. ``build``: as conda writes it.
    """

    name: str
    version: Optional[str]
    line: int = 0
    marker: str = ""
    build: str = ""
    direct_url: str = ""
    tags: Tuple[str, ...] = ()
    installer: str = ""
    constraint: str = ""


def facts_of_entries(
    pins: Sequence[PackageEntry],
    name: str,
    *,
    complete: bool,
    python: Optional[Tuple[str, int]] = None,
    included: Sequence[str] = (),
) -> Facts:
    """Return what the entries of the file ``name`` say together.

    ``complete``: nothing else is installed. ``python``: its version, and the line that says so.
    ``included``: other files that were read for this one.
    """
    chosen = _chosen(pins)
    with_others = f"with {', '.join(included[:5])}" if included else ""
    where = Evidence(_place(name, [pin.line for pin in pins if pin.line]), with_others)
    table: Dict[str, Fact[Any]] = {
        "distributions": Known({key: chosen[key] for key in sorted(chosen)}, where),
        "distributions.complete": Known(
            complete, Evidence(name, "a lock" if complete else "requirements, no lock")
        ),
    }
    unpinned = tuple(
        key for key in sorted(chosen) if chosen[key].version is None and not chosen[key].direct_url
    )
    if unpinned:
        table["requirements.unpinned"] = Known(unpinned, where)
    if python is not None:
        version, line = python
        table["python.version"] = Known(version, Evidence(_place(name, [line] if line else [])))
    torch = chosen.get("torch")
    if torch is not None and torch.version is not None:
        table["torch.version"] = Known(torch.version, where)
        cuda = re.search(r"cuda_?(\d{2})\.?(\d)", torch.build)
        if cuda:
            table["torch.cuda"] = Known(f"{cuda.group(1)}.{cuda.group(2)}", where)
    return Facts(table)


def _chosen(pins: Sequence[PackageEntry]) -> Dict[str, Distribution]:
    """Return one distribution for each name: the last entry, with what all agree on."""
    chosen: Dict[str, Distribution] = {}
    for pin in pins:
        if not pin.name:
            continue
        entry = Distribution(
            pin.name,
            pin.version,
            tags=pin.tags,
            installer=pin.installer,
            direct_url=pin.direct_url,
            build=pin.build,
            constraint=pin.constraint,
        )
        old = chosen.get(pin.name)
        if old is not None and old.version != entry.version:
            entry = entry._replace(version=_same_release(old.version, entry.version), constraint="")
        chosen[pin.name] = entry
    return chosen


def _place(name: str, lines: Sequence[int]) -> str:
    if not lines:
        return name
    if len(set(lines)) == 1:
        return f"{name}, line {lines[0]}"
    return f"{name}, lines {min(lines)}-{max(lines)}"


def _same_release(first: Optional[str], second: Optional[str]) -> Optional[str]:
    """Entries for several platforms: what they agree on, which may be nothing."""
    if first is None or second is None:
        return None
    public = first.split("+")[0]
    if public != second.split("+")[0]:
        return None
    return next((version for version in (first, second) if "+cu" in version), public)


def applies(marker: str, extras: Sequence[str] = ()) -> bool:
    """Tell whether a marker may hold on x86_64 Linux under some Python; an unreadable one may."""
    if not marker.strip():
        return True
    from packaging.markers import (
        InvalidMarker,
        Marker,
        UndefinedComparison,
        UndefinedEnvironmentName,
    )

    try:
        parsed = Marker(marker)
        for python in _PYTHONS:
            environment = {
                "python_version": python,
                "python_full_version": f"{python}.9",
                "sys_platform": "linux",
                "platform_system": "Linux",
                "platform_machine": "x86_64",
                "os_name": "posix",
                "implementation_name": "cpython",
                "platform_python_implementation": "CPython",
            }
            if any(parsed.evaluate({**environment, "extra": extra}) for extra in (*extras, "")):
                return True
    except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName, RecursionError):
        return True
    # An extra may have been asked for: only platform and Python rule an entry out.
    return "extra" in marker


def labelled(pins: List[PackageEntry], label: str) -> List[PackageEntry]:
    """Give torch and its kin the local label of the index of CUDA builds that they come from."""
    if not label:
        return pins
    return [
        pin._replace(version=pin.version + label)
        if pin.name in _TORCH_FAMILY
        and pin.version is not None
        and not pin.installer
        and "+" not in pin.version
        else pin
        for pin in pins
    ]


def read_entry(line: str, number: int, name: str, *, quoted: bool) -> PackageEntry:
    """Read one requirement. Raises :class:`InputError` for what pip would not read either.

    ``quoted``: the message may quote the line. A file that another one includes may be any file of
    this machine.
    """
    editable = re.match(r"(?:-e|--editable)[ =]+", line)
    body = line[editable.end() :] if editable else line
    body = re.split(r"\s+--[a-z]", body, maxsplit=1)[0].strip()
    requirement = None if editable else try_requirement(body)
    if requirement is not None and requirement.url:
        wheel = wheel_file(requirement.url)
        return PackageEntry(
            requirement.name,
            wheel[1] if wheel else None,
            number,
            requirement.marker,
            direct_url=requirement.url,
            tags=wheel[2] if wheel else (),
        )
    if (
        editable
        or re.match(r"(?:[a-z+]{2,12}://|git\+|\.{0,2}/|file:|[A-Za-z]:\\)", body)
        or body.endswith((".whl", ".tar.gz", ".zip"))
    ):
        wheel = wheel_file(body)
        if wheel:
            return PackageEntry(
                wheel[0],
                wheel[1],
                number,
                direct_url=body if "://" in body else "",
                tags=wheel[2],
            )
        egg = _EGG.search(body)
        # A folder without a name: something is installed from it, and nobody can tell what.
        return PackageEntry(
            canonicalize_name(egg.group(1)) if egg else "", None, number, direct_url=body
        )
    if requirement is None:
        raise InputError(
            f"{name}:{number}: expected a requirement such as 'torch==2.6.0', found "
            f"{repr(line[:80]) if quoted else 'something else'}"
        )
    version = pinned(requirement)
    constraint = "" if version is not None else requirement.specifier
    return PackageEntry(
        requirement.name, version, number, requirement.marker, constraint=constraint
    )


def pinned(requirement: Optional[Requirement]) -> Optional[str]:
    """Return the one version that a requirement leaves, or None."""
    exact = requirement.exact if requirement is not None else None
    return exact if try_version(exact) is not None else None
