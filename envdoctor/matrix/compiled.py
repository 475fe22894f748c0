"""The compiled form of the matrix, made from ``matrices/`` at build time and, where that folder changed since, at run time.

Three parts, so that a check reads little:

* ``core.json``: tables, GPU index, and of each row what ``bind`` needs, with an index from distribution name to rows;
* ``texts.json``: titles, symptoms, fixes and sources by row id, read when a finding needs them;
* ``packages/<name>.jsonl``: one header line, then ``key TAB release`` lines, of which only the wanted one is parsed;
* ``profiles.json``, ``models.json``, ``conda.json``, ``signatures.json`` and ``index.json`` (the listing of the package index), read only by
  those who ask for them.

``fingerprint`` in the core names the source files with size, mtime and hash. A form without mtimes (in a wheel) is always fresh where no
source lies beside it.
"""

from __future__ import annotations

# The module behind collections.abc: os has loaded it, and the package costs 2 ms.
import os
from _collections_abc import Mapping as _Mapping

from ..errors import MatrixError
from ..model.json_text import parse_json
from ..model.late import Late
from ..model.record import NamedTuple
from ..model.row import Mitigation, Row, Source, Term
from ..model.versions import VersionSet, parse_version
from .tables import Package, release_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    import json
    from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, TypeVar

    from .schema import Faults

    T = TypeVar("T")
else:
    json = Late("json")


# A check reads the compiled form alone: schema, TOML and hashlib are imported by the functions that need the source.

__all__ = [
    "KEYS",
    "Sources",
    "compile_core",
    "complete_row",
    "find_sources",
    "is_fresh",
    "load_package",
    "normalize_gpu",
    "package_lines",
    "read_conda",
    "read_listing",
    "read_models",
    "read_profiles",
    "read_signatures",
    "read_toml",
    "unpack_row",
    "write_compiled",
]

FORMAT = 2

#: TOML files of ``matrices/`` that no check needs (``curated``), or that other parts of envdoctor read.
OTHER_FILES = frozenset(("conda.toml", "models.toml", "signatures.toml"))


class Sources(NamedTuple):
    """The files of one matrices folder, as paths by name relative to it."""

    folder: str
    tables: Dict[str, str]
    packages: Dict[str, str]


def find_sources(folder: str) -> Sources:
    """List ``*.toml``, ``errata/*.toml`` and ``packages/*.json`` of a folder, in order of their names."""
    tables = {name: os.path.join(folder, name) for name in _listed(folder, ".toml") if name not in OTHER_FILES}
    errata = os.path.join(folder, "errata")
    tables.update((f"errata/{name}", os.path.join(errata, name)) for name in _listed(errata, ".toml"))
    packages = os.path.join(folder, "packages")
    return Sources(folder, tables, {name[:-5]: os.path.join(packages, name) for name in _listed(packages, ".json")})


def _listed(folder: str, ending: str) -> List[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(ending) and not name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []


# ---------------------------------------------------------------------------------------------------------------- from source


def compile_core(sources: Sources, label: str = "") -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Read all TOML files of a folder and return (core, texts).

    Raises:
        MatrixError: with every fault of every file.
    """
    from .schema import Faults, parse_document

    faults = Faults()
    rows: List[Row] = []
    tables: Dict[str, Dict[str, Dict[str, Any]]] = {}
    for name, path in sources.tables.items():
        origin = label + name
        document = read_toml(path, origin, faults)
        if document is None:
            continue
        found_rows, found_tables = parse_document(document, origin, faults)
        rows += found_rows
        for table, entries in found_tables.items():
            known = tables.setdefault(table, {})
            for entry in entries:
                key = str(entry[KEYS[table]])
                if key in known:
                    faults.add(origin, f"{table} {key!r}", f"stands already in {known[key]['origin']}")
                else:
                    known[key] = entry
    origins: Dict[str, str] = {}
    for row in rows:
        if row.id in origins:
            faults.add(row.origin, f"row {row.id!r}", f"the id is taken by a row in {origins[row.id]}")
        origins.setdefault(row.id, row.origin)
    packages: Dict[str, List[Any]] = {}
    dates = [row.date for row in rows] + [entry["date"] for entries in tables.values() for entry in entries.values()]
    for name, path in sources.packages.items():
        document = read_package(path, name, f"{label}packages/{name}.json", faults)
        if document is not None:
            packages[name] = _package_summary(document)
            dates.append(document["date"])
    if faults.found:
        raise MatrixError(faults.found)
    core: Dict[str, Any] = {
        "format": FORMAT,
        "date": max(dates, default=""),
        "tables": {name: list(entries.values()) for name, entries in tables.items() if name != "gpu"},
        "gpus": _gpu_index(tables.get("gpu", {}).values()),
        "packages": packages,
        "rows": [short_row(row) for row in rows],
        "index": _row_index(rows),
    }
    texts: Dict[str, Any] = {row.id: _texts(row) for row in rows}
    # A row id holds no colon, so the two cannot meet.
    texts.update((f"gpu:{name}", [entry["source"], entry["date"], entry["trust"]]) for name, entry in tables.get("gpu", {}).items())
    return core, texts


KEYS = {
    "branch": "branch",
    "major": "major",
    "toolkit": "version",
    "forward_compat": "cuda",
    "capability": "capability",
    "gpu": "name",
    "code": "package",
}


def read_toml(path: str, origin: str, faults: Faults) -> Optional[Mapping[str, Any]]:
    """Read a TOML file, or add a fault and return None."""
    import sys
    from importlib import import_module

    tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        with open(path, "rb") as file:
            document: Mapping[str, Any] = tomllib.load(file)
            return document
    except tomllib.TOMLDecodeError as error:
        faults.add(origin, "", f"is not TOML: {error}")
    except UnicodeDecodeError as error:
        faults.add(origin, "", f"is not UTF-8: {error}")
    except OSError as error:
        faults.add(origin, "", f"cannot be read: {error.strerror}")
    return None


def read_package(path: str, name: str, origin: str, faults: Faults) -> Optional[Mapping[str, Any]]:
    """Read and check one ``packages/<name>.json``."""
    from .schema import parse_package

    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (ValueError, RecursionError) as error:
        faults.add(origin, "", f"is not JSON in UTF-8: {error}")
        return None
    except OSError as error:
        faults.add(origin, "", f"cannot be read: {error.strerror}")
        return None
    return parse_package(document, name, origin, faults)


def read_profiles(folder: str) -> Dict[str, Any]:
    """Return the checked documents of ``profiles/*.toml`` by file name without ending; raises :class:`MatrixError`."""
    from .curated import parse_profile
    from .schema import Faults

    faults = Faults()
    profiles = os.path.join(folder, "profiles")
    found: Dict[str, Any] = {}
    for name in _listed(profiles, ".toml"):
        document = read_toml(os.path.join(profiles, name), f"profiles/{name}", faults)
        if document is not None:
            found[name[:-5]] = parse_profile(document, f"profiles/{name}", faults)
    if faults.found:
        raise MatrixError(faults.found)
    return found


def read_models(folder: str) -> List[Dict[str, Any]]:
    """Return the models of ``models.toml``; raises :class:`MatrixError`."""
    from .curated import parse_models

    return _read_table(folder, "models.toml", parse_models) or []


def read_conda(folder: str) -> List[Dict[str, Any]]:
    """Return the conda names of ``conda.toml``; raises :class:`MatrixError`."""
    from .curated import parse_conda

    return _read_table(folder, "conda.toml", parse_conda) or []


def read_signatures(folder: str) -> Dict[str, Any]:
    """Return what ``signatures.toml`` says of lines of logs; raises :class:`MatrixError`."""
    from .signatures import parse_signatures

    return _read_table(folder, "signatures.toml", parse_signatures) or {}


def _read_table(folder: str, name: str, parse: Callable[[Any, str, Any], T]) -> Optional[T]:
    from .schema import Faults

    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return None
    faults = Faults()
    document = read_toml(path, name, faults)
    found = None if document is None else parse(document, name, faults)
    if faults.found:
        raise MatrixError(faults.found)
    return found


def read_listing(folder: str) -> Optional[Dict[str, Any]]:
    """Return ``index.json`` of a folder, the listing of the package index that its packages were made from, or None."""
    try:
        with open(os.path.join(folder, "index.json"), encoding="utf-8") as file:
            found: Dict[str, Any] = json.load(file)
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError, OSError) as error:
        raise MatrixError([f"{os.path.join(folder, 'index.json')}: is not JSON in UTF-8: {error}"]) from error
    return found


def _package_summary(document: Mapping[str, Any]) -> List[Any]:
    """What the core says of a package: does a build tell its CUDA version, does one tell its code, and the PTX that builds rely on."""
    from .derived_rows import ptx_demands

    builds = [build for release in document["releases"] for build in release.get("builds", ())]
    return [
        any("cuda" in build for build in builds),
        any("sass" in build for build in builds),
        ptx_demands(builds),
    ]


def _row_index(rows: Iterable[Row]) -> Dict[str, List[int]]:
    """Row numbers by the distributions that a violation needs; under "" those of rows that need none."""
    index: Dict[str, List[int]] = {}
    for number, row in enumerate(rows):
        names = {
            term.component
            for term in row.terms
            if term.scope == "env" and (term.operator != "lacks" if term.operator != "present" else term.argument)
        }
        for name in names or {""}:
            index.setdefault(name, []).append(number)
    return index


# ---------------------------------------------------------------------------------------------------------------- GPUs

_NOISE = frozenset(("gpu", "graphics", "card", "sxm", "sxm2", "sxm3", "sxm4", "sxm5", "sxm6", "pcie", "hbm2", "hbm2e", "hbm3", "hbm3e", "nvlink"))


def normalize_gpu(name: str, reduced: bool = False) -> str:
    """Return a device name as the index holds it: ``NVIDIA A100-SXM4-80GB`` gives ``a100 sxm4 80gb``, ``reduced`` gives ``a100``.

    A reduced name has lost form factor, memory size, count and MIG profile, nothing that tells models apart.
    """
    text = name.lower().split("(", 1)[0]
    for sign in ("®", "™", "-", "_", "/", ",", ":"):
        text = text.replace(sign, " ")
    tokens = [token for token in text.split() if token not in ("nvidia", "corporation")]
    if "mig" in tokens:
        tokens = tokens[: tokens.index("mig")]
    if not reduced:
        return " ".join(tokens)
    kept = []
    for token in tokens:
        size = token[:-2] if token.endswith("gb") else token[:-1] if token.endswith("g") else ""
        count = token.strip("x")
        if token in _NOISE or size.isdigit() or (count.isdigit() and len(count) < 3 and count != token):
            continue
        kept.append(token)
    return " ".join(kept)


def _gpu_index(entries: Iterable[Mapping[str, Any]]) -> Dict[str, Any]:
    """Models, their numbers by PCI id (several share one), and by normalised name. The first entry of a name or alias wins."""
    models: List[List[Any]] = []
    by_id: Dict[str, List[int]] = {}
    by_name: Dict[str, int] = {}
    aliases: Dict[str, int] = {}
    for number, entry in enumerate(entries):
        models.append([entry["name"], entry["compute_capability"], entry["kind"], entry["architecture"], entry["memory"]])
        for pci_id in entry["pci_ids"]:
            by_id.setdefault(pci_id, []).append(number)
        by_name.setdefault(normalize_gpu(entry["name"]), number)
        for alias in entry["aliases"]:
            aliases.setdefault(normalize_gpu(alias), number)
    return {"models": models, "pci": by_id, "names": {**aliases, **by_name}}


# ---------------------------------------------------------------------------------------------------------------- rows


def short_row(row: Row) -> List[Any]:
    """Return of a row what ``bind`` and a heading need, as JSON values."""
    terms = [[term.scope, term.component, term.attribute, term.operator, _packed(term)] for term in row.terms]
    mitigations = [list(mitigation) for mitigation in row.mitigations]
    return [row.id, row.effect, row.trust, row.component, row.kind, row.code, terms, mitigations]


def _packed(term: Term) -> Any:
    """A version set as [low, high] pairs, labels as a sorted list, a bool as itself."""
    if isinstance(term.argument, VersionSet):
        return [[None if end is None else str(end) for end in interval] for interval in term.argument.intervals]
    return sorted(term.argument) if isinstance(term.argument, frozenset) else term.argument


def _texts(row: Row) -> Dict[str, Any]:
    return {
        "title": row.title,
        "symptom": row.symptom,
        "fix": row.fix,
        "pins": list(row.pins),
        "overrides": list(row.overrides),
        "sources": [list(source) for source in row.sources],
        "date": row.date,
        "established_by": row.established_by,
        "origin": row.origin,
    }


def unpack_row(short: List[Any]) -> Row:
    """Make a row of its short form; its texts are empty."""
    row_id, effect, trust, component, kind, code, terms, mitigations = short
    made = tuple([Term(scope, subject, attribute, operator, _unpacked(value)) for scope, subject, attribute, operator, value in terms])
    return Row(row_id, effect, trust, made, component, kind, code, "", "", "", (), (), tuple([Mitigation(*item) for item in mitigations]), (), "")


def _unpacked(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value[0], str):
        return frozenset(value)
    return VersionSet([(None if low is None else parse_version(low), None if high is None else parse_version(high)) for low, high in value])


def complete_row(row: Row, texts: Mapping[str, Any]) -> Row:
    """Return a row with its texts."""
    found = texts[row.id]
    return row._replace(
        title=found["title"],
        symptom=found["symptom"],
        fix=found["fix"],
        pins=tuple(found["pins"]),
        overrides=tuple(found["overrides"]),
        sources=tuple(Source(*source) for source in found["sources"]),
        date=found["date"],
        established_by=found["established_by"],
        origin=found["origin"],
    )


# ---------------------------------------------------------------------------------------------------------------- packages


class _Lines(_Mapping[str, object]):
    """The releases of a compiled package: one line each, parsed when asked for."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __getitem__(self, key: str) -> Any:
        mark = f"\n{key}\t"
        start = self._text.find(mark)
        if start < 0:
            raise KeyError(key)
        end = self._text.find("\n", start + 1)
        return parse_json(self._text[start + len(mark) : end])

    def __iter__(self) -> Iterator[str]:
        for line in self._text.split("\n")[1:-1]:
            yield line.split("\t", 1)[0]

    def __len__(self) -> int:
        return self._text.count("\n") - 1

    def items(self) -> Any:
        """Return all (key, release) pairs in one pass: a search for each key would read the text as often as there are releases."""
        pairs = [line.split("\t", 1) for line in self._text.split("\n")[1:-1]]
        return list(zip([key for key, _ in pairs], parse_json(f"[{','.join([entry for _, entry in pairs])}]")))


def package_lines(document: Mapping[str, Any]) -> str:
    """Return the compiled form of a package file."""
    header = {key: document[key] for key in ("name", "source", "date", "trust")}
    lines = [_dumps(header)]
    lines += [f"{release_key(parse_version(release['version']))}\t{_dumps(release)}" for release in document["releases"]]
    return "\n".join(lines) + "\n"


def load_package(text: str) -> Package:
    """Make a package of its compiled form."""
    header = parse_json(text[: text.index("\n")])
    return Package(header["name"], _Lines(text), header["source"], header["date"], header["trust"])


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# ---------------------------------------------------------------------------------------------------------------- to and from disk


def fingerprint(sources: Sources, times: bool) -> Dict[str, List[Any]]:
    """Return [size, mtime or None, hash] of every source file."""
    found: Dict[str, List[Any]] = {}
    for name, path in _files(sources):
        status = os.stat(path)
        found[name] = [status.st_size, status.st_mtime_ns if times else None, _hash(path)]
    return found


def is_fresh(recorded: Mapping[str, List[Any]], sources: Sources) -> bool:
    """Tell whether the source files are those that were compiled; a file is read only where size says yes and time says no."""
    files = _files(sources)
    if len(files) != len(recorded):
        return False
    for name, path in files:
        entry = recorded.get(name)
        if entry is None:
            return False
        status = os.stat(path)
        if status.st_size != entry[0] or (status.st_mtime_ns != entry[1] and _hash(path) != entry[2]):
            return False
    return True


def _files(sources: Sources) -> List[Tuple[str, str]]:
    return [*sources.tables.items(), *((f"packages/{name}", path) for name, path in sources.packages.items())]


def _hash(path: str) -> str:
    import hashlib

    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:32]


def write_compiled(source: str, destination: str, times: bool) -> None:
    """Compile a matrices folder into ``destination``; whatever was there is replaced.

    ``times`` records mtimes, for a checkout whose source stays beside the compiled form.
    """
    sources = find_sources(source)
    core, texts = compile_core(sources)
    core["fingerprint"] = fingerprint(sources, times)
    folder = os.path.join(destination, "packages")
    os.makedirs(folder, exist_ok=True)
    wanted = {f"{name}.jsonl" for name in sources.packages}
    for name in os.listdir(folder):
        if name not in wanted:
            os.unlink(os.path.join(folder, name))
    for name, path in sources.packages.items():
        with open(path, encoding="utf-8") as file:
            _write(os.path.join(folder, f"{name}.jsonl"), package_lines(json.load(file)))
    extras = {
        "profiles.json": read_profiles(source),
        "models.json": read_models(source),
        "conda.json": read_conda(source),
        "signatures.json": read_signatures(source),
        "index.json": read_listing(source),
    }
    for name, extra in extras.items():
        if extra:
            _write(os.path.join(destination, name), _dumps(extra))
        elif os.path.exists(os.path.join(destination, name)):
            os.unlink(os.path.join(destination, name))
    _write(os.path.join(destination, "texts.json"), _dumps(texts))
    # The core last: it carries the fingerprint that declares the rest fresh.
    _write(os.path.join(destination, "core.json"), _dumps(core))


def _write(path: str, text: str) -> None:
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    os.replace(temporary, path)
