"""The ``matrices/`` folder of a checkout or a site: read, checked, and compiled into what
``compiled`` reads.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import (
    AbstractSet,
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
)

from ..errors import MatrixError
from ..file_replacement import replace_file
from ..model.row import Row, Term
from ..model.toml import parse_toml
from ..model.versions import VersionSet, parse_version
from . import compiled
from .compiled import KEYS, SHARED, load_package, normalize_gpu
from .curated_files import parse_conda, parse_models, parse_profile
from .derived_rows import assembler_gaps, ptx_demands, torch_builds
from .entries import Faults
from .folder import (
    EXTRAS,
    MatrixFiles,
    find_extra,
    find_sources,
    fingerprint,
    list_files,
    read_source,
)
from .measured_rows import compile_surfaces, measured_pairs, surface_fault
from .messages import index_fault as message_index_fault
from .messages import messages_fault
from .model_rows import families_fault
from .names import index_fault, names_fault
from .package_schema import parse_package
from .schema import parse_document
from .signatures import parse_signatures
from .symbols import symbols_fault
from .tables import Package, release_key

__all__ = [
    "SourceFiles",
    "StackedFiles",
    "compile_core",
    "package_lines",
    "read_conda",
    "read_listing",
    "read_measured",
    "read_model_families",
    "read_models",
    "read_profiles",
    "read_signatures",
    "read_toml",
    "write_compiled",
]

T = TypeVar("T")

TYPE_CHECKING = False


def compile_core(sources: MatrixFiles, label: str = "") -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Read all TOML files of a folder and return (core, texts).

    Raises:
        MatrixError: with every fault of every file.
    """
    faults = Faults()
    rows, tables = _written(sources, label, faults)
    packages, dates = _packages(sources, label, faults)
    surfaces = _surface_documents(sources, label, faults)
    if faults.found:
        raise MatrixError(faults.found)
    gpus = tables.pop("gpu", {})
    entries = [entry for table in (gpus, *tables.values()) for entry in table.values()]
    dates += [row.date for row in rows]
    dates += [document["date"] for document in (*entries, *surfaces)]
    core: Dict[str, Any] = {
        "format": compiled.FORMAT,
        "date": max(dates, default=""),
        "tables": {name: list(table.values()) for name, table in tables.items()},
        "gpus": _gpu_index(gpus.values()),
        "packages": packages,
        "rows": [short_row(row) for row in rows],
        "index": _row_index(rows),
        "measured": measured_pairs(surfaces),
    }
    texts: Dict[str, Any] = {row.id: _texts(row) for row in rows}
    # A row id holds no colon, so the two cannot meet.
    texts.update(
        (f"gpu:{name}", [entry["source"], entry["date"], entry["trust"]])
        for name, entry in gpus.items()
    )
    return core, texts


#: The entries of each table, by their keys.
_Tables = Dict[str, Dict[str, Dict[str, Any]]]


def _written(sources: MatrixFiles, label: str, faults: Faults) -> Tuple[List[Row], _Tables]:
    """Return the rows and the entries of the tables; what stands twice is a fault."""
    rows: List[Row] = []
    tables: _Tables = {}
    for name, path in sources.tables.items():
        origin = label + name
        document = read_toml(path, origin, faults)
        if document is None:
            continue
        rows_here, tables_here = parse_document(document, origin, faults)
        rows += rows_here
        for table, entries in tables_here.items():
            _add_entries(table, entries, tables.setdefault(table, {}), origin, faults)
    origins: Dict[str, str] = {}
    for row in rows:
        if row.id in origins:
            taken = f"the id is taken by a row in {origins[row.id]}"
            faults.add(row.origin, f"row {row.id!r}", taken)
        if row.id in tables.get("retired", ()):
            faults.add(row.origin, f"row {row.id!r}", "the id is that of a row that was deleted")
        origins.setdefault(row.id, row.origin)
    return rows, tables


def _add_entries(
    table: str,
    entries: Iterable[Dict[str, Any]],
    known: Dict[str, Dict[str, Any]],
    origin: str,
    faults: Faults,
) -> None:
    for entry in entries:
        key = str(entry[KEYS[table]])
        if key in known:
            faults.add(origin, f"{table} {key!r}", f"stands already in {known[key]['origin']}")
        else:
            known[key] = entry


def _packages(
    sources: MatrixFiles, label: str, faults: Faults
) -> Tuple[Dict[str, List[Any]], List[str]]:
    """Return the summaries of the packages, and the days on which they were read."""
    packages: Dict[str, List[Any]] = {}
    dates: List[str] = []
    for name, path in sources.packages.items():
        document = read_package(path, name, f"{label}packages/{name}.json", faults)
        if document is not None:
            packages[name] = _package_summary(name, document)
            dates.append(document["date"])
    return packages, dates


def read_toml(path: str, origin: str, faults: Faults) -> Optional[Mapping[str, Any]]:
    """Read a TOML file, or add a fault and return None."""
    try:
        return parse_toml(read_source(path))
    except UnicodeDecodeError as error:
        faults.add(origin, "", f"is not UTF-8: {error}")
    except ValueError as error:
        faults.add(origin, "", f"is not TOML: {error}")
    except OSError as error:
        faults.add(origin, "", f"cannot be read: {error.strerror or error}")
    return None


def read_package(path: str, name: str, origin: str, faults: Faults) -> Optional[Mapping[str, Any]]:
    """Read and check one ``packages/<name>.json``."""
    try:
        document = json.loads(read_source(path))
    except (ValueError, RecursionError) as error:
        faults.add(origin, "", f"is not JSON in UTF-8: {error}")
        return None
    except OSError as error:
        faults.add(origin, "", f"cannot be read: {error.strerror or error}")
        return None
    return parse_package(document, name, origin, faults)


def _surface_documents(sources: MatrixFiles, label: str, faults: Faults) -> List[Dict[str, Any]]:
    documents = []
    for name, path in sources.surfaces.items():
        origin = f"{label}surfaces/{name}.json"
        try:
            document = json.loads(read_source(path))
        except (ValueError, RecursionError) as error:
            faults.add(origin, "", f"is not JSON in UTF-8: {error}")
            continue
        except OSError as error:
            faults.add(origin, "", f"cannot be read: {error.strerror or error}")
            continue
        fault = surface_fault(document, name)
        if fault:
            faults.add(origin, "", fault)
        else:
            documents.append(document)
    return documents


def read_surfaces(sources: MatrixFiles) -> str:
    """Return the compiled form of ``surfaces/*.json`` of a folder, "" where it has none; raises
    :class:`MatrixError`.
    """
    faults = Faults()
    documents = _surface_documents(sources, "", faults)
    if faults.found:
        raise MatrixError(faults.found)
    return compile_surfaces(documents) if documents else ""


def read_profiles(folder: str) -> Dict[str, Any]:
    """Return the checked documents of ``profiles/*.toml`` by file name without ending; raises
    :class:`MatrixError`.
    """
    faults = Faults()
    profiles = os.path.join(folder, "profiles")
    by_name: Dict[str, Any] = {}
    for name in list_files(profiles, ".toml"):
        document = read_toml(os.path.join(profiles, name), f"profiles/{name}", faults)
        if document is not None:
            by_name[name[:-5]] = parse_profile(document, f"profiles/{name}", faults)
    if faults.found:
        raise MatrixError(faults.found)
    return by_name


def read_models(folder: str) -> List[Dict[str, Any]]:
    """Return the models of ``models.toml``; raises :class:`MatrixError`."""
    return _read_table(folder, "models.toml", parse_models) or []


def read_conda(folder: str) -> List[Dict[str, Any]]:
    """Return the conda names of ``conda.toml``; raises :class:`MatrixError`."""
    return _read_table(folder, "conda.toml", parse_conda) or []


def read_signatures(folder: str) -> Dict[str, Any]:
    """Return what ``signatures.toml`` says of lines of logs; raises :class:`MatrixError`."""
    return _read_table(folder, "signatures.toml", parse_signatures) or {}


def _read_table(folder: str, name: str, parse: Callable[[Any, str, Any], T]) -> Optional[T]:
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return None
    faults = Faults()
    document = read_toml(path, name, faults)
    table = None if document is None else parse(document, name, faults)
    if faults.found:
        raise MatrixError(faults.found)
    return table


def read_listing(folder: str) -> Optional[Dict[str, Any]]:
    """Return ``index.json`` of a folder, the listing of the package index that its packages were
    made from, or None.
    """
    return _read_json(os.path.join(folder, "index.json"))


def read_model_families(folder: str) -> Optional[Dict[str, Any]]:
    """Return ``model_families.json`` of a folder, which releases know which families of models, or
    None; raises :class:`MatrixError`.
    """
    return _read_checked(os.path.join(folder, "model_families.json"), families_fault)


#: What is wrong with a document that was measured, by the first part of its name.
_FAULTS_OF_MEASURED: Mapping[str, Callable[[Any], str]] = {
    "messages": message_index_fault,
    "messages/": messages_fault,
    "names": index_fault,
    "names/": names_fault,
    "symbols": symbols_fault,
}
#: The releases whose imports and checks of versions were measured, by package: from ``surfaces``.
_MEASURED_RELEASES = "measured"


def read_measured(folder: str, name: str) -> Optional[Dict[str, Any]]:
    """Return ``<name>.json`` of a folder, a document of what was measured in the wheels, such as
    ``names/vllm`` or ``symbols``, or None; ``measured``: which releases were. Raises
    :class:`MatrixError`.
    """
    if name == _MEASURED_RELEASES:
        files = list_files(os.path.join(folder, "surfaces"), ".json")
        documents = [_read_json(os.path.join(folder, "surfaces", file)) or {} for file in files]
        return {document["name"]: document["measured"] for document in documents}
    kind, slash, _ = name.partition("/")
    return _read_checked(os.path.join(folder, f"{name}.json"), _FAULTS_OF_MEASURED[kind + slash])


def _read_checked(path: str, fault_of: Callable[[Any], str]) -> Optional[Dict[str, Any]]:
    document = _read_json(path)
    fault = fault_of(document) if document is not None else ""
    if fault:
        raise MatrixError([f"{path}: {fault}"])
    return document


def _read_json(path: str) -> Optional[Dict[str, Any]]:
    try:
        document: Dict[str, Any] = json.loads(read_source(path))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError, OSError) as error:
        raise MatrixError([f"{path}: is not JSON in UTF-8: {error}"]) from error
    return document


def _package_summary(name: str, document: Mapping[str, Any]) -> List[Any]:
    """What the core says of a package: does a build tell its CUDA version, does one tell its code,
    the PTX that builds rely on, the GPUs that its assemblers do not know, and for which kinds of
    torch it is built.
    """
    builds = [build for release in document["releases"] for build in release.get("builds", ())]
    return [
        any("cuda" in build for build in builds),
        any("sass" in build for build in builds),
        ptx_demands(builds),
        assembler_gaps(document["releases"]),
        *torch_builds(name, document["releases"]),
    ]


def _row_index(rows: Iterable[Row]) -> Dict[str, List[int]]:
    """Row numbers by the distributions that a violation needs; under "" those of rows that need
    none.
    """
    index: Dict[str, List[int]] = {}
    for number, row in enumerate(rows):
        names = {
            term.component
            for term in row.terms
            if term.scope == "env"
            and (term.operator != "lacks" if term.operator != "present" else term.argument)
        }
        for name in names or {""}:
            index.setdefault(name, []).append(number)
    return index


def _gpu_index(entries: Iterable[Mapping[str, Any]]) -> Dict[str, Any]:
    """Models, their numbers by PCI id (several share one), and by normalised name.

    The first entry of a name or alias wins.
    """
    models: List[List[Any]] = []
    by_id: Dict[str, List[int]] = {}
    by_name: Dict[str, int] = {}
    aliases: Dict[str, int] = {}
    for number, entry in enumerate(entries):
        models.append(
            [
                entry["name"],
                entry["compute_capability"],
                entry["kind"],
                entry["architecture"],
                entry["memory"],
            ]
        )
        for pci_id in entry["pci_ids"]:
            by_id.setdefault(pci_id, []).append(number)
        by_name.setdefault(normalize_gpu(entry["name"]), number)
        for alias in entry["aliases"]:
            aliases.setdefault(normalize_gpu(alias), number)
    return {"models": models, "pci": by_id, "names": {**aliases, **by_name}}


def short_row(row: Row) -> str:
    """Return of a row what ``bind`` and a heading need, as JSON."""
    terms = [
        [term.scope, term.component, term.attribute, term.operator, _packed(term)]
        for term in row.terms
    ]
    mitigations = [list(mitigation) for mitigation in row.mitigations]
    return _dumps(
        [row.id, row.effect, row.trust, row.component, row.kind, row.code, terms, mitigations]
    )


def _packed(term: Term) -> Any:
    """A version set as [low, high] pairs, labels as a sorted list, a bool as itself."""
    if isinstance(term.argument, VersionSet):
        return [
            [None if end is None else str(end) for end in interval]
            for interval in term.argument.intervals
        ]
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


def package_lines(document: Mapping[str, Any]) -> str:
    """Return the compiled form of a package file."""
    header = {key: document[key] for key in ("name", "source", "date", "trust")}
    places: Dict[str, int] = {}
    releases = []
    for release in document["releases"]:
        packed = dict(release)
        if "requires" in release:
            # Among those apart by tabs no tab stands, and no end of a line.
            texts = [" ".join(text.split()) for text in release["requires"]]
            packed["requires"] = [places.setdefault(text, len(places)) for text in texts]
        releases.append(packed)
    shared = _share(releases)
    lines = [_dumps(header), "\t".join(_with_markers_once(places)), "\t".join(shared)]
    lines += [f"{release_key(parse_version(each['version']))}\t{_dumps(each)}" for each in releases]
    return "\n".join(lines) + "\n"


def _share(releases: Sequence[Dict[str, Any]]) -> List[str]:
    """Put the place of a value that several releases have in its stead, where that is shorter;
    return these values.
    """
    held = [(release, field) for release in releases for field in SHARED if field in release]
    counts = Counter(_dumps(release[field]) for release, field in held)
    shared: Dict[str, int] = {}
    for release, field in held:
        text = _dumps(release[field])
        if counts[text] > 1 and len(text) > len(str(len(shared))):
            release[field] = shared.setdefault(text, len(shared))
    return list(shared)


def _with_markers_once(lines: Iterable[str]) -> Iterator[str]:
    """Yield requirement lines, of those whose marker an earlier one has with its place instead."""
    first: Dict[str, int] = {}
    for place, line in enumerate(lines):
        requirement, has_marker, marker = line.partition("; ")
        other = first.setdefault(marker, place)
        repeated = has_marker and other != place
        yield f"{requirement}{compiled.SAME_MARKER}{other}" if repeated else line


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write_compiled(source: str, destination: str, times: bool) -> None:
    """Compile a matrices folder into ``destination``; whatever was there is replaced.

    ``times`` records mtimes, for a checkout whose source stays beside the compiled form.
    """
    sources = find_sources(source)
    core, texts = compile_core(sources)
    folder = os.path.join(destination, "packages")
    os.makedirs(folder, exist_ok=True)
    wanted = {f"{name}.jsonl" for name in sources.packages}
    for name in os.listdir(folder):
        if name not in wanted:
            os.unlink(os.path.join(folder, name))
    for name, path in sources.packages.items():
        lines = package_lines(json.loads(read_source(path)))
        _write(os.path.join(folder, f"{name}.jsonl"), lines)
    extras = {
        "profiles": read_profiles(source),
        "models": read_models(source),
        "model_families": read_model_families(source),
        "conda": read_conda(source),
        "signatures": read_signatures(source),
        "index": read_listing(source),
    }
    contents = {f"{name}.z": _zipped(extra) if extra else b"" for name, extra in extras.items()}
    contents["surfaces.txt"] = read_surfaces(sources).encode("utf-8")
    for name, content in contents.items():
        if content:
            replace_file(os.path.join(destination, name), content, durable=False)
        elif os.path.exists(os.path.join(destination, name)):
            os.unlink(os.path.join(destination, name))
    _write_measured(source, destination)
    _write(os.path.join(destination, "texts.json"), _dumps(texts))
    _write(os.path.join(destination, "core.json"), _dumps(core))
    extra_files = {
        name: path for extra in EXTRAS.values() for name, path in find_extra(source, extra).items()
    }
    _write(os.path.join(destination, "extras.json"), _dumps(fingerprint(extra_files, times)))
    # Last: it declares the rest fresh.
    _write(os.path.join(destination, "fingerprint.json"), _dumps(fingerprint(sources.all, times)))


def _write(path: str, text: str) -> None:
    # What a power cut leaves of a compiled matrix is compiled again, or the update had no end.
    replace_file(path, text.encode("utf-8"), durable=False)


def _zipped(value: Any) -> bytes:
    """Return what is unpacked soon: what every diagnosis reads, or every plan."""
    import zlib

    return zlib.compress(_dumps(value).encode("utf-8"), 9)


def _write_measured(source: str, destination: str) -> None:
    """Pack each document that was measured by itself: of few a diagnosis reads one."""
    from .packed import pack

    for kind in (*_FAULTS_OF_MEASURED, _MEASURED_RELEASES):
        folder, slash, _ = kind.partition("/")
        names = [folder]
        if slash:
            files = list_files(os.path.join(source, folder), ".json")
            names = [f"{folder}/{file[:-5]}" for file in files]
            _keep_only(os.path.join(destination, folder), {f"{file[:-5]}.z" for file in files})
        for name in names:
            document = read_measured(source, name)
            if document:
                packed = pack(_dumps(document).encode("utf-8")) if slash else _zipped(document)
                replace_file(os.path.join(destination, f"{name}.z"), packed, durable=False)


def _keep_only(folder: str, names: AbstractSet[str]) -> None:
    """Make a folder, and remove files of another name from it."""
    os.makedirs(folder, exist_ok=True)
    for file in os.listdir(folder):
        if file not in names:
            os.unlink(os.path.join(folder, file))


class SourceFiles:
    """Texts and packages of a matrices folder."""

    def __init__(self, sources: MatrixFiles, texts: Mapping[str, Any]) -> None:
        self._sources = sources
        self._texts = texts

    def texts(self) -> Mapping[str, Any]:
        """Return the texts of all rows by id."""
        return self._texts

    def surfaces(self) -> str:
        """Return what releases import and others do not have, compiled."""
        return read_surfaces(self._sources)

    def package(self, name: str) -> Optional[Package]:
        """Return one package, or None where the folder has none of that name."""
        path = self._sources.packages.get(name)
        if path is None:
            return None
        return load_package(package_lines(json.loads(read_source(path))))

    def profiles(self) -> Mapping[str, Any]:
        """Return the framework profiles by name."""
        return read_profiles(self._sources.folder)

    def models(self) -> Sequence[Mapping[str, Any]]:
        """Return the models in their checked form."""
        return read_models(self._sources.folder)

    def model_families(self) -> Mapping[str, Any]:
        """Return which releases know which families of models."""
        return read_model_families(self._sources.folder) or {}

    def conda(self) -> Sequence[Mapping[str, Any]]:
        """Return the conda names in their checked form."""
        return read_conda(self._sources.folder)

    def signatures(self) -> Mapping[str, Any]:
        """Return the signatures of logs and the modules' distributions in their checked form."""
        return read_signatures(self._sources.folder)

    def index_listing(self) -> Optional[Mapping[str, Any]]:
        """Return the listing of the package index that the folder was made from."""
        return read_listing(self._sources.folder)

    def measured(self, name: str) -> Optional[Mapping[str, Any]]:
        """Return a document of what was measured in the wheels."""
        return read_measured(self._sources.folder, name)


class StackedFiles:
    """Those of a site before those of envdoctor."""

    def __init__(self, first: Any, second: Any) -> None:
        self._first = first
        self._second = second

    def texts(self) -> Mapping[str, Any]:
        """Return the texts of all rows by id, the first's over the second's."""
        return {**self._second.texts(), **self._first.texts()}

    def surfaces(self) -> str:
        """Return the compiled statements of the second: a site has none."""
        text: str = self._second.surfaces()
        return text

    def package(self, name: str) -> Optional[Package]:
        """Return one package, the first's where both have it."""
        package: Optional[Package] = self._first.package(name)
        return package if package is not None else self._second.package(name)

    def profiles(self) -> Mapping[str, Any]:
        """Return the framework profiles by name."""
        return {**self._second.profiles(), **self._first.profiles()}

    def models(self) -> Sequence[Mapping[str, Any]]:
        """Return the models of both."""
        return [*self._first.models(), *self._second.models()]

    def model_families(self) -> Mapping[str, Any]:
        """Return the families of models of the second: a site has none."""
        families: Mapping[str, Any] = self._second.model_families()
        return families

    def conda(self) -> Sequence[Mapping[str, Any]]:
        """Return the conda names of both."""
        return [*self._first.conda(), *self._second.conda()]

    def signatures(self) -> Mapping[str, Any]:
        """Return the signatures of both."""
        first, second = self._first.signatures(), self._second.signatures()
        return {
            "signatures": [*first.get("signatures", ()), *second.get("signatures", ())],
            "modules": {**second.get("modules", {}), **first.get("modules", {})},
        }

    def index_listing(self) -> Optional[Mapping[str, Any]]:
        """Return the listing of the second: a site has none."""
        listing: Optional[Mapping[str, Any]] = self._second.index_listing()
        return listing

    def measured(self, name: str) -> Optional[Mapping[str, Any]]:
        """Return a document of the second: a site has none."""
        document: Optional[Mapping[str, Any]] = self._second.measured(name)
        return document
