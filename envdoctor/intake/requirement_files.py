"""Files that say what shall be installed, as the patient: requirements, locks, conda environments.

Exact pins are candidates.
"""

from __future__ import annotations

import os
import re
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from ..errors import InputError
from ..model.evidence import Evidence, Fact, Known
from ..model.facts import Distribution, Facts
from ..model.redaction import redact
from ..model.requirement import Requirement, try_requirement
from ..model.toml import parse_toml
from ..model.versions import canonicalize_name, try_version
from .names import of_conda
from .package_lists import wheel_file

__all__ = ["parse_requirements"]

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_WHEEL_INDEX = re.compile(r"/whl/(?:test/|nightly/)?(cu\d{2,3}|cpu|rocm[\d.]+)\b")
_PYTHON_COMMENT = re.compile(
    r"#.*(?:with Python|--python-version[ =]|--python[ =])\s*(3\.\d{1,2}(?:\.\d{1,2})?)\b"
)
_EGG = re.compile(r"[#&]egg=([\w.-]+)")
_INCLUDED = re.compile(r"(-r|-c|--requirement|--constraint)(?:[ =]\s*|(?<=-[rc]))(\S.*)")
_MOST_INCLUDED = 100  # files
_TORCH_FAMILY = frozenset(["torch", "torchvision", "torchaudio"])
_CONDA_FILE = re.compile(r"/([^/\s#]+?)-([^-/\s]+)-([^-/\s]+)\.(?:conda|tar\.bz2)(?:#\S*)?$")
_PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")


class _Pin(NamedTuple):
    name: str
    version: Optional[str]
    line: int = 0
    marker: str = ""
    build: str = ""
    direct_url: str = ""
    tags: Tuple[str, ...] = ()
    installer: str = ""
    constraint: str = ""


def parse_requirements(text: str, name: str, read: Optional[Callable[[str], str]] = None) -> Facts:
    """Read a requirements file, pylock.toml, uv.lock, poetry.lock, Pipfile.lock, environment.yml or
    conda's explicit list.

    Exact pins become distributions; a range becomes one whose version is not known, only where it
    lies. Only of a lock is the list complete. Raises :class:`InputError` with file and position for
    text that is broken.

    ``read`` gives the text of a file that ``-r`` and ``-c`` name; without it, and for an address,
    the list is not complete.
    """
    text = redact(_plain_ends(text))
    lowered = name.lower()
    if lowered.endswith((".json", "pipfile.lock")) or text.lstrip().startswith("{"):
        return _pipfile(text, name)
    if lowered.endswith((".toml", "uv.lock", "poetry.lock", "pdm.lock")) or re.search(
        r"^\[\[packages?\]\]\s*$", text, re.MULTILINE
    ):
        return _toml_lock(text, name)
    if lowered.endswith((".yml", ".yaml")) or re.search(r"^dependencies:\s*$", text, re.MULTILINE):
        return _environment(text, name)
    if re.search(r"^@EXPLICIT\s*$", text, re.MULTILINE):
        return _explicit(text, name)
    reader = _Plain(name, read)
    reader.take(text, name)
    return reader.facts()


def _plain_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")


def _facts(
    pins: Sequence[_Pin],
    name: str,
    *,
    complete: bool,
    python: Optional[Tuple[str, int]] = None,
    included: Sequence[str] = (),
) -> Facts:
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


def _chosen(pins: Sequence[_Pin]) -> Dict[str, Distribution]:
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


def _applies(marker: str, extras: Sequence[str] = ()) -> bool:
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


# requirements.txt


class _Plain:
    """Reads a requirements file with those that it includes, as pip does."""

    def __init__(self, name: str, read: Optional[Callable[[str], str]]) -> None:
        self.name = name  # of the file that was given; others were never asked for by their name
        self.read = read
        self.pins: List[_Pin] = []
        self.constraints: List[_Pin] = []
        self.included: Dict[str, None] = {}
        self.hashed = 0
        self.whole = True  # every file that it includes was read
        self.label = ""
        self.python: Optional[Tuple[str, int]] = None

    def take(self, text: str, name: str, *, constrains: bool = False) -> None:
        """Take all lines of one file; those of ``-c`` only narrow what others ask for."""
        for number, line in _joined_lines(text):
            comment = _PYTHON_COMMENT.search(line)
            if comment and self.python is None:
                self.python = (comment.group(1), number if name == self.name else 0)
            line = re.sub(r"(?:^|\s)#.*$", "", line).strip()
            if not line:
                continue
            if line.startswith("-") and not line.startswith(("-e ", "--editable")):
                self._take_option(line, f"{name}:{number}", constrains)
                continue
            pin = _requirement(line, number, name, quoted=name == self.name)
            if name != self.name:
                pin = pin._replace(line=0)
            self.hashed += "--hash" in line and not constrains
            (self.constraints if constrains else self.pins).append(pin)

    def _take_option(self, line: str, place: str, constrains: bool) -> None:
        index = _WHEEL_INDEX.search(line)
        if index and re.match(r"(?:-i|--index-url|--extra-index-url|-f|--find-links)\b", line):
            self.label = f"+{index.group(1)}"
        included = _INCLUDED.match(line)
        if included is None:
            return
        target = included.group(2).strip("\"'")
        if self.read is None or "://" in target:
            self.whole = False
            return
        path = os.path.normpath(os.path.join(os.path.dirname(place), target))
        if path in self.included:
            return
        if len(self.included) >= _MOST_INCLUDED:
            raise InputError(f"{place}: more than {_MOST_INCLUDED} files are included")
        if not os.path.isfile(path):
            found = "something else" if os.path.exists(path) else "no such file"
            raise InputError(f"{place}: {line[:80]}: expected a file, found {found}")
        self.included[path] = None
        text = redact(_plain_ends(self.read(path)))
        self.take(text, path, constrains=constrains or included.group(1) in ("-c", "--constraint"))

    def facts(self) -> Facts:
        """Return what all lines say together."""
        if not self.pins:
            raise InputError(
                f"{self.name}: no requirement was found; expected lines such as 'torch==2.6.0', "
                "or a lock (pylock.toml, uv.lock, poetry.lock, Pipfile.lock, environment.yml)"
            )
        limits: Dict[str, List[_Pin]] = {}
        for limit in self.constraints:
            if _applies(limit.marker):
                limits.setdefault(limit.name, []).append(limit)
        kept = [
            _limited(pin, limits.get(pin.name, ())) for pin in self.pins if _applies(pin.marker)
        ]
        return _facts(
            _labelled(kept, self.label),
            self.name,
            complete=self.hashed == len(self.pins) and self.whole,
            python=self.python,
            included=tuple(self.included),
        )


def _limited(pin: _Pin, limits: Sequence[_Pin]) -> _Pin:
    """Return a requirement with what constraints say of its version."""
    for limit in limits:
        if pin.version is not None or pin.direct_url:
            break
        ranges = ",".join(filter(None, (pin.constraint, limit.constraint)))
        pin = pin._replace(
            version=limit.version, constraint="" if limit.version is not None else ranges
        )
    return pin


def _labelled(pins: List[_Pin], label: str) -> List[_Pin]:
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


def _joined_lines(text: str) -> Iterator[Tuple[int, str]]:
    start = 0
    pending: List[str] = []
    for number, row in enumerate(text.split("\n"), 1):
        row = row.rstrip()
        start = start or number
        if row.endswith("\\") and len(pending) < 2000:
            pending.append(row[:-1])
            continue
        yield start, "".join([*pending, row])
        start, pending = 0, []
    if pending:
        yield start, "".join(pending)


def _requirement(line: str, number: int, name: str, *, quoted: bool) -> _Pin:
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
        return _Pin(
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
            return _Pin(
                wheel[0],
                wheel[1],
                number,
                direct_url=body if "://" in body else "",
                tags=wheel[2],
            )
        egg = _EGG.search(body)
        # A folder without a name: something is installed from it, and nobody can tell what.
        return _Pin(canonicalize_name(egg.group(1)) if egg else "", None, number, direct_url=body)
    if requirement is None:
        raise InputError(
            f"{name}:{number}: expected a requirement such as 'torch==2.6.0', found "
            f"{repr(line[:80]) if quoted else 'something else'}"
        )
    version = _pinned(requirement)
    constraint = "" if version is not None else requirement.specifier
    return _Pin(requirement.name, version, number, requirement.marker, constraint=constraint)


def _pinned(requirement: Optional[Requirement]) -> Optional[str]:
    """Return the one version that a requirement leaves, or None."""
    exact = requirement.exact if requirement is not None else None
    return exact if try_version(exact) is not None else None


# locks


def _toml_lock(text: str, name: str) -> Facts:
    try:
        data = parse_toml(text)
    except ValueError as error:
        raise InputError(f"{name}: is no TOML: {error}") from error
    entries = data.get("packages", data.get("package"))
    if not isinstance(entries, list):
        raise InputError(
            f"{name}: expected a lock with [[packages]] (pylock.toml) or [[package]] (uv.lock, "
            "poetry.lock), "
            f"found keys {', '.join(sorted(map(str, data))[:8]) or 'none'}"
        )
    pins = []
    for position, entry in enumerate(entries):
        pin = _locked(entry) if isinstance(entry, Mapping) else None
        if pin is None:
            raise InputError(
                f"{name}: package {position + 1}: expected a table with a 'name', found "
                f"{str(entry)[:60]!r}"
            )
        if _applies(pin.marker) and not _is_own(entry):
            pins.append(pin)
    return _facts(pins, name, complete=True, python=_lock_python(data))


def _locked(entry: Mapping[str, Any]) -> Optional[_Pin]:
    name, version = entry.get("name"), entry.get("version")
    if not isinstance(name, str) or not re.fullmatch(_NAME, name):
        return None
    marker = entry.get("marker", entry.get("markers", ""))
    markers = entry.get("resolution-markers")
    if isinstance(markers, list) and all(isinstance(item, str) for item in markers):
        marker = " or ".join(f"({item})" for item in markers)
    return _Pin(
        canonicalize_name(name),
        version if isinstance(version, str) else None,
        marker=marker if isinstance(marker, str) else "",
        direct_url=_url(entry),
    )


def _url(entry: Mapping[str, Any]) -> str:
    """Return where an entry of a lock comes from, if not from an index."""
    for key in ("source", "archive", "vcs"):
        source = entry.get(key)
        url = (source.get("url") or source.get("git")) if isinstance(source, Mapping) else None
        if isinstance(url, str):
            return url
    return ""


def _is_own(entry: Mapping[str, Any]) -> bool:
    """uv.lock lists the project itself; it is not installed from anywhere."""
    source = entry.get("source")
    return isinstance(source, Mapping) and ("virtual" in source or source.get("editable") == ".")


def _lock_python(data: Mapping[str, Any]) -> Optional[Tuple[str, int]]:
    """A lock for one Python minor names it; a wider range does not."""
    metadata = data.get("metadata")
    for text in (
        data.get("requires-python"),
        metadata.get("python-versions") if isinstance(metadata, Mapping) else None,
    ):
        exact = (
            re.fullmatch(r"={2,3}\s*(3\.\d{1,2})(?:\.\*|\.\d{1,2})?", text.strip())
            if isinstance(text, str)
            else None
        )
        if exact:
            return exact.group(1), 0
    return None


def _pipfile(text: str, name: str) -> Facts:
    data = _json(text, name)
    section = data.get("default") if isinstance(data, dict) else None
    if not isinstance(section, dict):
        shown = (
            "keys " + ", ".join(sorted(data)[:8]) if isinstance(data, dict) else type(data).__name__
        )
        raise InputError(f"{name}: expected a Pipfile.lock with 'default', found {shown}")
    pins = []
    for package, entry in section.items():
        if not isinstance(entry, dict):
            raise InputError(
                f"{name}: default.{package}: expected an object, found {type(entry).__name__}"
            )
        version = entry.get("version")
        marker = entry.get("markers")
        if _applies(marker if isinstance(marker, str) else ""):
            pin = (
                _pinned(try_requirement(f"{package}{version}"))
                if isinstance(version, str)
                else None
            )
            pins.append(_Pin(canonicalize_name(str(package)), pin))
    return _facts(pins, name, complete=True, python=_pipfile_python(data))


def _json(text: str, name: str) -> Any:
    import json

    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}:{error.lineno}:{error.colno}: is no JSON: {error}") from error
    except ValueError as error:
        raise InputError(f"{name}: is no JSON: {error}") from error
    except RecursionError as error:
        raise InputError(f"{name}: is nested too deeply") from error


def _pipfile_python(data: Mapping[str, Any]) -> Optional[Tuple[str, int]]:
    meta = data.get("_meta")
    requires = meta.get("requires") if isinstance(meta, dict) else None
    if not isinstance(requires, dict):
        return None
    python = requires.get("python_full_version") or requires.get("python_version")
    return (python, 0) if isinstance(python, str) and try_version(python) else None


# conda


def _environment(text: str, name: str) -> Facts:
    """Read environment.yml.

    Only its own shape is read: top-level keys, a list of dependencies, and a list under ``pip``.
    """
    pins: List[_Pin] = []
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
            index = _WHEEL_INDEX.search(value)
            label = f"+{index.group(1)}" if index else label
        else:
            pin = _requirement(value, number, name, quoted=True)
            if _applies(pin.marker):
                pins.append(pin)
    if "dependencies" not in keys:
        raise InputError(f"{name}: expected a conda environment with 'dependencies:', found none")
    # "conda env export" names every build and its prefix: nothing else is installed.
    complete = "prefix" in keys and bool(exact) and all(exact)
    return _facts(_labelled(pins, label), name, complete=complete, python=python)


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


def _conda_spec(spec: str, number: int) -> Tuple[Optional[_Pin], bool]:
    """Read ``[channel::]name=version[=build]``; behind ``=`` a full release counts as a pin."""
    match = re.fullmatch(
        r"(?:[\w./-]+::)?([A-Za-z0-9_][\w.-]*)\s*(={1,2})\s*([0-9][\w.!+]*)(?:=([\w.*]+))?", spec
    )
    if match is None:
        return None, False
    name, equals, version, build = match.groups()
    is_exact = equals == "==" or build is not None
    if name.lower() == "python":
        return _Pin("python", version, number), is_exact
    if not is_exact and version.count(".") < 2:
        return _Pin(
            of_conda(name), None, number, installer="conda", constraint=f"=={version}.*"
        ), False
    return _Pin(of_conda(name), version, number, build=build or "", installer="conda"), is_exact


def _explicit(text: str, name: str) -> Facts:
    pins: List[_Pin] = []
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
            pins.append(_Pin(of_conda(package), version, number, build=build, installer="conda"))
    if not pins and python is None:
        raise InputError(f"{name}: no package was found after @EXPLICIT")
    return _facts(pins, name, complete=True, python=python)
