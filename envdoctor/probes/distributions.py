"""Installed distributions, from the names of their folders; METADATA confirms and adds to them.

``importlib.metadata`` reads the name from METADATA, and so calls pip's leftover
``~orch-2.5.0.dist-info`` "torch 2.5.0", dies of one byte that is no UTF-8, and needs 150 ms for 340
distributions. Here each oddity is a fact of its own, and only the header of METADATA is read.
"""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache

from ..model.evidence import Evidence, Fact, Known, Unknown
from ..model.facts import Distribution, Oddity
from ..model.pattern import pattern
from ..model.record import NamedTuple
from ..model.redaction import redact, without_credentials
from ..model.versions import canonicalize_name, try_version
from .interpreter import interpreter_of, listing
from .machine import Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

    from .interpreter import Interpreter
    from .machine import Machine

__all__ = [
    "FIELDS_HERE",
    "PROBES_HERE",
    "RECORD_LIMIT",
    "Metadata",
    "parse_conda_name",
    "parse_direct_url",
    "parse_metadata",
    "parse_record",
    "parse_requires_txt",
    "probe_distributions",
    "split_name",
]

FIELDS_HERE = ("distributions", "distributions.complete", "distributions.oddities")

_FIRST_READ = 8 << 10
_HEADER_LIMIT = 512 << 10
RECORD_LIMIT = 16 << 20
_MOST_CASES = (
    50  # oddities of one kind and folder: a broken copy of an environment must not flood the report
)


class Metadata(NamedTuple):
    """The header of one METADATA or PKG-INFO file."""

    name: str = ""
    version: str = ""
    requires: Tuple[str, ...] = ()
    requires_python: Optional[str] = None
    extras: Tuple[str, ...] = ()
    fault: str = ""  # what is wrong with it; "" for nothing


def probe_distributions(machine: Machine) -> Dict[str, Fact[Any]]:
    """List the installed distributions and what is odd about them."""
    interpreter = interpreter_of(machine)
    if not interpreter.search_path:
        reason = interpreter.trouble or (
            f"no folder of distributions is known for {interpreter.executable or 'the interpreter'}"
        )
        # A root without an environment has a rule of its own.
        if not machine.root and not machine.unread:
            machine.unread.setdefault(interpreter.executable or interpreter.source, reason)
        return dict.fromkeys(FIELDS_HERE, Unknown(reason))
    search = _Search(machine, interpreter)
    for folder in interpreter.search_path:
        search.folder(folder)
    search.conda()
    evidence = Evidence(", ".join(interpreter.search_path))
    oddities = search.oddities
    if machine.deep:
        from .damaged_files import damage

        oddities += damage(machine, search.distributions, search.paths, search.record)
    oddities += _overlaps(search)
    if machine.described is None:
        oddities += _failing_imports(machine, search)
    # state.json is there from the first file that a change touches to its end (envdoctor.fix).
    change = f"{interpreter.prefix}/.envdoctor-change/state.json"
    if interpreter.prefix and machine.isfile(change):
        oddities.append(Oddity("unfinished-change", "", change))
    unread = machine.unread
    for folder in interpreter.search_path:
        if listing(machine, folder) is None:
            unread.setdefault(folder, "its names cannot be listed")
    return {
        "distributions": Known(search.distributions, evidence),
        "distributions.complete": Known(
            not unread,
            Evidence(evidence.source, f"not readable: {', '.join(unread)}" if unread else ""),
        ),
        "distributions.oddities": Known(tuple(_bounded(oddities)), evidence),
    }


class _Entry(NamedTuple):
    """One metadata folder or file, before duplicates are decided."""

    distribution: Distribution
    path: str
    good: bool  # its metadata could be read


class _Search:
    """Collects distributions folder by folder; the first folder wins, as for an import."""

    def __init__(self, machine: Machine, interpreter: Interpreter) -> None:
        self.machine = machine
        self.interpreter = interpreter
        self.distributions: Dict[str, Distribution] = {}
        self.paths: Dict[str, str] = {}
        self.oddities: List[Oddity] = []
        self.editable: List[str] = []  # the files of editable installs in the folder being read
        self.described = machine.described
        self._read = machine.try_read

    def folder(self, folder: str) -> None:
        """Read one folder of the search path."""
        entries: Dict[str, List[_Entry]] = {}
        for entry in self._entries(folder):
            entries.setdefault(entry.distribution.name, []).append(entry)
        for name, several in entries.items():
            best = several[0] if len(several) == 1 else self._decide(name, several)
            held = self.distributions.get(name)
            if held is None:
                self.distributions[name] = best.distribution
                self.paths[name] = best.path
            elif held.location != best.distribution.location:
                detail = (
                    f"{best.distribution.version} in {best.distribution.location} is hidden "
                    f"by {held.version} in {held.location}"
                )
                self._note("hidden", name, best.path, detail)

    def _entries(self, folder: str) -> Iterator[_Entry]:
        names = listing(self.machine, folder) or ()
        self.editable = [name for name in names if name.startswith("__editable__")]
        readers = {
            "dist-info": self._dist_info,
            "egg-info": self._egg_info,
            "egg-link": self._egg_link,
        }
        # An old setuptools egg lies on the path itself (easy-install.pth).
        entry = self._egg(folder) if folder.endswith(".egg") else None
        if entry is not None:
            yield entry
        for name in names:
            if name[:1] == "~":
                self._leftover(folder, name)
                continue
            reader = readers.get(name.rpartition(".")[2])
            entry = reader(folder, name) if reader is not None else None
            if entry is not None:
                yield entry

    def _note(self, kind: str, name: str, path: str, detail: str) -> None:
        self.oddities.append(Oddity(kind, name, path, redact(detail)))

    def _decide(self, name: str, several: Sequence[_Entry]) -> _Entry:
        """Of several entries of one name the one installed last: its files lie over the others'."""

        def rank(entry: _Entry) -> Tuple[bool, float, str]:
            try:
                changed = self.machine.use(os.stat, entry.path).st_mtime
            except OSError:
                changed = 0.0
            return entry.good, changed, entry.path

        best = max(several, key=rank)
        versions = sorted({entry.distribution.version or "no version" for entry in several})
        if len(versions) == 1 and len({os.path.splitext(entry.path)[1] for entry in several}) > 1:
            # An egg-link beside the egg-info of the same project, or a dist-info that replaced an
            # egg-info of the same version.
            return best
        detail = (
            f"{' and '.join(versions)} lie side by side; {best.distribution.version} "
            "was installed last"
        )
        for entry in several:
            if entry is not best:
                self._note("duplicate", name, entry.path, detail)
        return best

    # kinds of entries

    def _dist_info(self, folder: str, entry: str) -> Optional[_Entry]:
        path = f"{folder}/{entry}"
        name, version = split_name(entry[: -len(".dist-info")])
        canonical = canonicalize_name(name)
        if self.described is not None and canonical not in self.described:
            self._try_metadata(path + "/METADATA")
            return _Entry(Distribution(canonical, version, folder), path, True)
        content, reason = self._read(path + "/METADATA", _FIRST_READ)
        if content is None:
            return self._without_metadata(folder, path, canonical, version, reason)
        if len(content) == _FIRST_READ and _header_end(content) < 0:
            content = self._read(path + "/METADATA", _HEADER_LIMIT)[0] or content
        metadata = parse_metadata(content)
        self._compare(metadata, canonical, version, path)
        requires = metadata.requires
        if "://" in "".join(requires):
            requires = tuple(map(redact, requires))
        url, linked = self._direct_url(path)
        starts = (f"__editable__.{name}-", f"__editable___{name}_")
        linked = linked or any(file.startswith(starts) for file in self.editable)
        distribution = Distribution(
            name=canonical,
            version=version,
            location=folder,
            requires=None if metadata.fault else requires,
            requires_python=metadata.requires_python,
            tags=_wheel_tags(self._read(path + "/WHEEL", 4096)[0] or b""),
            installer=self._installer(path),
            editable=linked,
            direct_url=url,
            provides_extras=metadata.extras,
        )
        return _Entry(distribution, path, not metadata.fault)

    def _try_metadata(self, path: str) -> None:
        """Keep whether a file of which nothing decides can be read: that it cannot may decide."""
        machine = self.machine
        if machine.strict or not os.access(machine.path(path), os.R_OK):
            self._read(path, 1)

    def _installer(self, path: str) -> str:
        return _installer(self._read(path + "/INSTALLER", 64)[0] or b"")

    def _direct_url(self, path: str) -> Tuple[str, bool]:
        content = self._read(path + "/direct_url.json", _FIRST_READ)[0]
        return parse_direct_url(content) if content is not None else ("", False)

    def _without_metadata(
        self, folder: str, path: str, name: str, version: Optional[str], reason: str
    ) -> Optional[_Entry]:
        """Say why METADATA could not be opened; believe in the folder where its module is there."""
        machine = self.machine
        if path + "/METADATA" in machine.unread:  # the folder's name still says what is installed
            return _Entry(Distribution(name, version, folder), path, False)
        if self._is_dangling(path):
            target = machine.readlink(path)
            self._note("dangling-link", name, path, f"links to {target}, which does not exist")
            return None
        if machine.isfile(path):
            self._note("not-a-directory", name, path, "a plain file")
            return None
        if machine.exists(path + "/METADATA"):
            self._note("unreadable-metadata", name, path, reason)
        else:
            self._note("no-metadata", name, path, "")
            module = name.replace("-", "_")
            names = listing(machine, folder) or ()
            has_module = module in names or module + ".py" in names
            if not has_module and not machine.exists(path + "/RECORD"):
                return None  # the empty shell of something that was uninstalled
        return _Entry(Distribution(name, version, folder), path, False)

    def _is_dangling(self, path: str) -> bool:
        return self.machine.readlink(path) is not None and not self.machine.exists(path)

    def _compare(self, metadata: Metadata, name: str, version: Optional[str], path: str) -> None:
        if metadata.fault:
            self._note("unreadable-metadata", name, path + "/METADATA", metadata.fault)
        if metadata.name and canonicalize_name(metadata.name) != name:
            self._note("name-mismatch", name, path, f"METADATA names {metadata.name}")
        elif (
            metadata.version
            and metadata.version != version
            and not _same_version(metadata.version, version)
        ):
            self._note("name-mismatch", name, path, f"METADATA says version {metadata.version}")

    def _egg_info(self, folder: str, entry: str) -> Optional[_Entry]:
        path = f"{folder}/{entry}"
        name, version = _split_egg(entry[: -len(".egg-info")])
        canonical = canonicalize_name(name)
        requires: Optional[Tuple[str, ...]] = None
        if self.machine.isdir(path):
            content, reason = self._read(path + "/PKG-INFO", _FIRST_READ)
            text = self._read(path + "/requires.txt", _HEADER_LIMIT)[0]
            requires = parse_requires_txt(text or b"")
        else:
            content, reason = self._read(path, _FIRST_READ)
        if content is None:
            if self.machine.unread.keys() & {path, path + "/PKG-INFO"}:
                return _Entry(Distribution(canonical, version or None, folder), path, False)
            if self._is_dangling(path):
                target = self.machine.readlink(path)
                self._note("dangling-link", canonical, path, f"links to {target}")
                return None
            self._note("no-metadata", canonical, path, reason)
            return _Entry(Distribution(canonical, version or None, folder), path, False)
        metadata = parse_metadata(content)
        if metadata.fault:
            self._note("unreadable-metadata", canonical, path, metadata.fault)
        # A folder without a version in its name is the egg-info of a source tree: an editable
        # install.
        distribution = Distribution(
            canonical,
            version or metadata.version or None,
            folder,
            metadata.requires or requires,
            metadata.requires_python,
            editable=not version and not folder.endswith(("site-packages", "dist-packages")),
            provides_extras=metadata.extras,
        )
        return _Entry(distribution, path, not metadata.fault)

    def _egg(self, folder: str) -> Optional[_Entry]:
        content = self._read(folder + "/EGG-INFO/PKG-INFO", _FIRST_READ)[0]
        name, version = _split_egg(os.path.basename(folder)[: -len(".egg")])
        if content is None or not name:
            return None
        metadata = parse_metadata(content)
        requires = parse_requires_txt(
            self._read(folder + "/EGG-INFO/requires.txt", _HEADER_LIMIT)[0] or b""
        )
        distribution = Distribution(
            canonicalize_name(name),
            version or metadata.version or None,
            folder,
            requires,
            metadata.requires_python,
        )
        return _Entry(distribution, folder, not metadata.fault)

    def _egg_link(self, folder: str, entry: str) -> Optional[_Entry]:
        """``setup.py develop``: the file names the source folder, where the egg-info lies."""
        path = f"{folder}/{entry}"
        name = canonicalize_name(entry[: -len(".egg-link")])
        content = self._read(path, 4096)[0] or b""
        first = content.decode("utf-8", "surrogateescape").split("\n")[0]
        target = first.strip().rstrip("/")
        self.machine.packages += (target,) if target else ()
        is_folder = target.startswith("/") and "\0" not in target and self.machine.isdir(target)
        if self.machine.unread.keys() & {path, target}:
            return _Entry(Distribution(name, None, folder, editable=True), path, False)
        if not is_folder:
            detail = f"names {target or 'nothing'}, which is not a folder"
            self._note("dangling-link", name, path, detail)
            return None
        for candidate in listing(self.machine, target) or ():
            if not candidate.endswith(".egg-info"):
                continue
            stem = candidate[: -len(".egg-info")]
            is_same = canonicalize_name(_split_egg(stem)[0]) == name
            linked = self._egg_info(target, candidate) if is_same else None
            if linked is not None:
                distribution = linked.distribution._replace(name=name, editable=True)
                return linked._replace(distribution=distribution)
        self._note("no-metadata", name, path, f"no egg-info in {target}")
        return _Entry(Distribution(name, None, target, editable=True), path, False)

    def _leftover(self, folder: str, entry: str) -> None:
        """Record what an interrupted uninstall left: pip first renames what it removes."""
        stem = entry[: -len(".dist-info")] if entry.endswith(".dist-info") else entry
        name = canonicalize_name("~" + split_name(stem)[0].lstrip("~"))
        kind = "metadata" if stem != entry else "files"
        detail = f"{kind} that an interrupted uninstall left"
        self._note("leftover", name, f"{folder}/{entry}", detail)

    def conda(self) -> None:
        """Add conda's packages by their records, and to Python distributions their build string."""
        prefix = self.interpreter.prefix
        if self.interpreter.environment != "conda":
            return
        self.machine.packages += (prefix + "/conda-meta",)
        for entry in self.machine.listdir(prefix + "/conda-meta") or ():
            parsed = parse_conda_name(entry)
            if parsed is None:
                continue
            name, version, build = parsed
            name = _CONDA_NAMES.get(name, name)
            held = self.distributions.get(name)
            if held is None:
                self.distributions[name] = Distribution(
                    name, version, prefix + "/conda-meta", installer="conda", build=build
                )
                self.paths[name] = f"{prefix}/conda-meta/{entry}"
            elif held.installer == "conda" or (
                not held.installer and _same_version(version, held.version)
            ):
                self.distributions[name] = held._replace(build=build, installer="conda")

    def record(self, path: str) -> Iterable[Tuple[str, Optional[int]]]:
        """Return path and size of each file that the RECORD in a ``.dist-info`` lists."""
        return parse_record(self._read(path + "/RECORD", RECORD_LIMIT)[0] or b"")


# conda packages whose Python distribution has another name.
_CONDA_NAMES = {
    "pytorch": "torch",
    "pytorch-cpu": "torch",
    "pytorch-gpu": "torch",
    "ray-core": "ray",
    "ray-default": "ray",
}


def _same_version(left: str, right: Optional[str]) -> bool:
    if right is None:
        return False
    first, second = try_version(left), try_version(right.replace("_", "-"))
    if first is None or second is None:
        return re.sub(r"[-_]", "", left) == re.sub(r"[-_]", "", right)
    return first == second


def _bounded(oddities: Sequence[Oddity]) -> List[Oddity]:
    counts: Dict[str, int] = {}
    kept = []
    for oddity in oddities:
        counts[oddity.kind] = counts.get(oddity.kind, 0) + 1
        if counts[oddity.kind] <= _MOST_CASES:
            kept.append(oddity)
    return kept


# Names


def split_name(stem: str) -> Tuple[str, Optional[str]]:
    """Split ``name-version`` at its last hyphen: versions hold none, old names may.

    No hyphen: no version.
    """
    name, separator, version = stem.rpartition("-")
    return (name, version or None) if separator else (version, None)


_EGG_TAG = pattern(r"-py\d(?:\.\d+)?(?:-.*)?\Z")


def _split_egg(stem: str) -> Tuple[str, str]:
    """Split ``name-version-py3.8``, ``name-version`` or ``name``."""
    name, _, version = _EGG_TAG.sub("", stem).partition("-")
    return name, version


def parse_conda_name(entry: str) -> Optional[Tuple[str, str, str]]:
    """Split conda's ``<name>-<version>-<build>.json``; neither version nor build holds a hyphen."""
    parts = entry[:-5].rsplit("-", 2) if entry.endswith(".json") else ()
    if len(parts) != 3 or not all(parts):
        return None
    return canonicalize_name(parts[0]), parts[1], parts[2]


# Contents

_OTHER_CASE = pattern(r"(?i)\n(Name|Version|Requires-Dist|Requires-Python|Provides-Extra)[ \t]*:")
_FOLD = pattern(r"\n[ \t]+")


def _header_end(content: bytes) -> int:
    """The place of the empty line that ends the header, or -1."""
    # The second form only where the first line ends so: a search through the whole text costs more
    # than all the rest.
    first = content.find(b"\n")
    return content.find(b"\n\r\n" if first > 0 and content[first - 1] == 13 else b"\n\n")


def parse_metadata(content: bytes) -> Metadata:
    """Parse the header of METADATA, PKG-INFO or an egg-info file; never raises.

    As the core metadata specification has it. Bytes that are no UTF-8 are replaced and named in
    ``fault``: importlib.metadata, and with it pip, dies of them.
    """
    end = _header_end(content)
    header = content if end < 0 else content[:end]
    fault = ""
    try:
        text = header.decode("utf-8")
    except UnicodeDecodeError as error:
        text = header.decode("utf-8", "replace")
        # A header that was cut at the limit may end in the middle of a character.
        if end >= 0 or error.start < len(header) - 4:
            fault = f"byte {error.start} is not UTF-8"
    text = _plain_header(text)
    name = _value(text, "Name") or ""
    return Metadata(
        name,
        _value(text, "Version") or "",
        tuple(_values(text, "Requires-Dist")),
        _value(text, "Requires-Python"),
        tuple(_values(text, "Provides-Extra")),
        fault if name or fault else _without_name(header, text),
    )


def _plain_header(text: str) -> str:
    """One line for each value, keys as the specification spells them, a line feed in front."""
    text = "\n" + text.lstrip("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if "\n " in text or "\n\t" in text:
        text = _FOLD.sub(" ", text)
    if "\nName:" not in text:
        text = _OTHER_CASE.sub(lambda match: f"\n{match.group(1).title()}:", text)
    return text


def _without_name(header: bytes, text: str) -> str:
    if not header:
        return "it is empty"
    return "it has no Name" if text.strip("\0 \t\r\n") else "it contains no text"


def _value(header: str, key: str) -> Optional[str]:
    """The value of the first line of a key."""
    start = header.find(f"\n{key}:") + len(key) + 2
    if start < len(key) + 2:
        return None
    end = header.find("\n", start)
    return header[start : end if end >= 0 else len(header)].strip()


def _values(header: str, key: str) -> List[str]:
    """The values of all lines of a key."""
    return [part.partition("\n")[0].strip() for part in header.split(f"\n{key}:")[1:]]


@lru_cache(maxsize=64)
def _installer(content: bytes) -> str:
    return redact(content.strip().decode("ascii", "replace"))


@lru_cache(maxsize=256)  # the same few texts, again and again
def _wheel_tags(content: bytes) -> Tuple[str, ...]:
    tags = []
    for line in content.split(b"\n"):
        key, _, value = line.partition(b":")
        if key.rstrip() == b"Tag" and value.count(b"-") == 2:
            tags.append(value.strip().decode("ascii", "replace"))
    return tuple(tags)


_SECTION = pattern(r"\[([^:\]]*)(?::(.*))?\]\Z")


def parse_requires_txt(content: bytes) -> Tuple[str, ...]:
    """Turn setuptools' requires.txt (sections ``[extra:marker]``) into requirement lines."""
    requirements = []
    marker = ""
    for line in content.decode("utf-8", "replace").splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        section = _SECTION.match(line)
        if section is not None:
            conditions = [f"({section.group(2)})"] if section.group(2) else []
            if section.group(1):
                conditions.append(f'extra == "{section.group(1)}"')
            marker = " and ".join(conditions)
        else:
            requirements.append(f"{line} ; {marker}" if marker else line)
    return tuple(requirements)


def parse_direct_url(content: bytes) -> Tuple[str, bool]:
    """Return address and editable flag of a direct_url.json (PEP 610), without credentials."""
    try:
        data = json.loads(content.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return "", False
    if not isinstance(data, dict) or not isinstance(data.get("url"), str):
        return "", False
    url = data["url"].partition("#")[0]
    url = without_credentials(url.partition("?")[0])
    source = data.get("vcs_info")
    if isinstance(source, dict) and isinstance(source.get("commit_id"), str):
        url = f"{source.get('vcs', 'git')}+{url}@{source['commit_id']}"
    folder = data.get("dir_info")
    return url, isinstance(folder, dict) and folder.get("editable") is True


def parse_record(content: bytes) -> Iterable[Tuple[str, Optional[int]]]:
    """Yield path and size of each row of RECORD; None where the row has no size.

    Odd rows are passed over.

    RECORD is CSV (PEP 376); quoted paths hold commas or quotes. The csv module costs 3 ms to
    import.
    """
    for line in content.decode("utf-8", "surrogateescape").replace("\r\n", "\n").split("\n"):
        if line.startswith('"'):
            end = line.rfind('",')
            path, rest = line[1:end].replace('""', '"'), line[end + 2 :]
            if end < 1:
                continue
        else:
            path, _, rest = line.partition(",")
        size = rest.rpartition(",")[2].strip()
        if path and "\0" not in path:
            yield path, int(size) if size.isascii() and size.isdigit() and len(size) < 16 else None


def _failing_imports(machine: Machine, search: _Search) -> Iterator[Oddity]:
    """Yield what the import of a distribution runs into because a requirement is not there."""
    from .imports import failing_imports, lacking

    wanted = lacking(search.distributions)
    if not wanted:
        return
    tops = {
        name: _top_modules(search.record(search.paths[name]))
        for name in wanted
        if search.paths[name].endswith(".dist-info") and not search.distributions[name].editable
    }
    locations = {name: search.distributions[name].location for name in wanted}
    yield from failing_imports(machine, search.interpreter.search_path, wanted, tops, locations)


def _top_modules(record: Iterable[Tuple[str, Optional[int]]]) -> List[str]:
    """Return the modules and packages that stand directly in the folder of the environment."""
    tops: Dict[str, None] = {}
    for file, _ in record:
        top, _, rest = file.partition("/")
        if rest == "__init__.py":
            tops[top] = None
        elif not rest and top.endswith(".py"):
            tops[top[:-3]] = None
    return [top for top in tops if top.isidentifier() and not top.startswith("_")]


def _overlaps(search: _Search) -> List[Oddity]:
    """NVIDIA's wheels of different CUDA majors that write the same files: the last one won.

    ``nvidia/nccl`` is one of those folders. RECORD is read only where two such wheels are there.
    """
    stems: Dict[str, List[str]] = {}
    for name in search.distributions:
        if name.startswith("nvidia-"):
            stem, _, suffix = name.rpartition("-")
            stems.setdefault(stem if suffix in ("cu11", "cu12", "cu13") else name, []).append(name)
    return [
        oddity
        for names in stems.values()
        if len(names) > 1
        for oddity in _shared_files(search, sorted(names))
    ]


def _shared_files(search: _Search, names: Sequence[str]) -> Iterator[Oddity]:
    owner: Dict[str, str] = {}
    for name in names:
        path = search.paths[name]
        location = search.distributions[name].location
        shared = []
        for file, _ in search.record(path):
            if ".so" in os.path.basename(file):
                other = owner.setdefault(f"{location}/{file}", name)
                if other != name:
                    shared.append((other, file))
        if shared:
            files = ", ".join(file for _, file in shared[:3])
            detail = f"{shared[0][0]} and {name} both own {files}"
            yield Oddity("overlapping-files", name, path, detail)


PROBES_HERE: Tuple[Probe, ...] = (
    Probe("distributions", probe_distributions, FIELDS_HERE, isolated=False, deadline=4.0),
)
