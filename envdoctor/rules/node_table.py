"""Many nodes as few kinds: those that are alike in all that is compared, and in what the others
differ.

It works on the JSON of the answers, so that ten thousand of them cost no facts of their own: what
is equal is counted, and only one node of each kind is judged. Cost is linear in the nodes.
"""

from __future__ import annotations

import math

from ..errors import InputError
from ..model.facts import FIELDS
from ..model.host_names import fold_names
from ..model.record import NamedTuple
from ..model.redaction import redact, redact_value
from ..model.sizes import gib_text, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

    from ..model.node_answers import NodeAnswer
    from ..model.report import Report

    # (field, entry of a list), value; the entry "" is the field itself
    Cell = Tuple[Tuple[str, str], Any]

__all__ = ["ClusterReport", "Kind", "NodeDifference", "NodeTable", "Section"]

#: Bytes that differ by less count as equal: firmware takes some of a node's memory.
_TOLERANCE = 0.01

#: What follows from the rest, or is where things lie: files, not what is in them.
_FOLLOWS = frozenset(
    [
        "binaries",
        "distributions.complete",
        "files.unread",
        "driver.nvml_error",
        "python.search_path",
        "python.working_directory",
        "shadowed_modules",
        "torch.cxx11abi",
        "variables.complete",
    ]
)
#: In names of variables that say which node or process this is.
_OWN_NAMES = ("RANK", "_PID", "_ID", "_ADDR", "_ADDRESS", "_IP", "_PORT", "HOSTNAME", "TMPDIR")
#: Set by mpirun for each process of its own.
_OWN_FAMILIES = ("OMPI_MCA_orte_", "OMPI_MCA_ess_", "OMPI_MCA_pmix", "OMPI_MCA_initial_")
_OWN = frozenset(["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_IMEX_CHANNELS"])

#: The order in which differences are told; the rest follows by name.
_FIRST = (
    "GPUs",
    "GPU faults",
    "driver.release",
    "driver.cuda_version",
    "python.version",
    "torch",
    "vllm",
    "sglang",
    "ray",
    "memory.total",
    "memory.limit",
)
_ORDER = {name: position for position, name in enumerate(_FIRST)}


class NodeDifference(NamedTuple):
    """What one kind of node has where most have something else; None: nothing."""

    name: str
    value: Optional[str]
    others: Optional[str]

    @property
    def text(self) -> str:
        """Both values in words."""
        return f"{self.name} {self.value or 'none'} (others {self.others or 'none'})"


class Kind(NamedTuple):
    """Nodes that are alike in all that is compared.

    differences: from the largest kind. judged: one answer for each state that they are in, with the
    names of those that are in it.
    """

    names: Tuple[str, ...]
    cells: Mapping[Tuple[str, str], Any]
    differences: Tuple[NodeDifference, ...]
    judged: Tuple[Tuple[NodeAnswer, Tuple[str, ...]], ...]

    @property
    def folded(self) -> str:
        """The names as one list: gpu[01-16]."""
        return fold_names(self.names)


class Section(NamedTuple):
    """What is compared with each other: the whole cluster, or a part of it that was named.

    kinds: the largest first. report: what a check of each kind finds, and what their differences
    break.
    """

    name: str
    kinds: Tuple[Kind, ...]
    report: Report

    @property
    def size(self) -> int:
        """How many nodes it has."""
        return sum(len(kind.names) for kind in self.kinds)


class ClusterReport(NamedTuple):
    """The answer about a cluster. failed: nodes without an answer, with the reason."""

    sections: Tuple[Section, ...]
    failed: Tuple[NodeAnswer, ...]

    @property
    def exit_code(self) -> int:
        """1 where a node has an error, or gave no answer."""
        return 1 if self.failed or any(one.report.exit_code for one in self.sections) else 0


class NodeTable:
    """Takes answers one by one, and tells the kinds."""

    def __init__(self, environments: Mapping[str, Mapping[str, Any]]) -> None:
        self._environments = environments
        self._cells_of: Dict[str, Tuple[Cell, ...]] = {}
        self._kept: Dict[Tuple[Cell, ...], Tuple[Cell, ...]] = {}
        self._sizes: Dict[str, List[int]] = {}
        # What a node is -> the state that it is in -> one answer, and the names
        self._rows: Dict[Any, Dict[Any, Tuple[NodeAnswer, List[str]]]] = {}

    def add(self, answer: NodeAnswer) -> None:
        """Take the answer of a node; raises :class:`InputError` where its facts are none."""
        host = answer.host or {}
        try:
            self._add(answer, host)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"node {answer.node}: expected facts as 'envdoctor probe --format json' writes "
                f"them, found others ({type(error).__name__}: {error})"
            ) from error

    def _add(self, answer: NodeAnswer, host: Mapping[str, Any]) -> None:
        cells = tuple(
            [
                (key, self._known_size(key[0], value))
                if key[0] in _BYTES and isinstance(value, int)
                else (key, value)
                for key, value in _cells(host)
            ]
        )
        cells = self._kept.setdefault(cells, cells)
        state = (tuple(_state(host)), _clock_class(answer.clock_offset))
        states = self._rows.setdefault((answer.environment, cells), {})
        if state not in states:
            states[state] = (answer, [])
        states[state][1].append(answer.node)

    def kinds(self) -> List[Kind]:
        """Return the kinds, the largest first."""
        groups: Dict[Any, List[Dict[Any, Tuple[NodeAnswer, List[str]]]]] = {}
        tables: Dict[Any, Mapping[Tuple[str, str], Any]] = {}
        for (environment, host_cells), states in self._rows.items():
            cells = {**dict(self._environment_cells(environment)), **dict(host_cells)}
            key = frozenset(cells.items())
            tables[key] = cells
            groups.setdefault(key, []).append(states)
        ordered = sorted(groups, key=lambda key: -_count(groups[key]))
        most = tables[ordered[0]] if ordered else {}
        kinds: Dict[Tuple[NodeDifference, ...], Kind] = {}
        for key in ordered:
            differences = tuple(_differences(tables[key], most))
            judged = tuple(
                (answer, tuple(names))
                for states in groups[key]
                for answer, names in states.values()
            )
            names = tuple(name for _, names in judged for name in names)
            known = kinds.get(differences)  # what one does not know the other may have
            kinds[differences] = (
                Kind(names, tables[key], differences, judged)
                if known is None
                else known._replace(names=known.names + names, judged=known.judged + judged)
            )
        return sorted(kinds.values(), key=lambda kind: -len(kind.names))

    def _environment_cells(self, digest: str) -> Tuple[Cell, ...]:
        if digest not in self._cells_of:
            self._cells_of[digest] = tuple(_cells(self._environments.get(digest, {})))
        return self._cells_of[digest]

    def _known_size(self, name: str, size: int) -> int:
        """Return the size for which this one counts: the first that lay within the tolerance."""
        known = self._sizes.setdefault(name, [])
        for value in known:
            if abs(size - value) <= _TOLERANCE * value:
                return value
        known.append(size)
        return size


_BYTES = frozenset(
    [name for name, field in FIELDS.items() if field.unit == "bytes" and not field.varies]
)


def _count(states: List[Dict[Any, Tuple[NodeAnswer, List[str]]]]) -> int:
    return sum(len(names) for state in states for _, names in state.values())


def _differences(
    cells: Mapping[Tuple[str, str], Any], most: Mapping[Tuple[str, str], Any]
) -> Iterator[NodeDifference]:
    """Yield where both are known and differ; what one could not read is no difference."""
    keys = {key for key in {*cells, *most} if cells.get(key) != most.get(key)}
    for field, entry in sorted(keys, key=_rank):
        # Of a list that was read, what is not there is not there.
        if (field, "") in cells and (field, "") in most:
            value, others = cells.get((field, entry)), most.get((field, entry))
            name = entry or field
            yield NodeDifference(name, _text(field, name, value), _text(field, name, others))


def _rank(key: Tuple[str, str]) -> Tuple[int, str]:
    name = key[1] or key[0]
    return _ORDER.get(name, len(_ORDER)), name


def _text(field: str, name: str, value: Any) -> Optional[str]:
    """Return a value in words, without secrets."""
    if value is None:
        return None
    if field in _BYTES and isinstance(value, int) and value >= 0:
        return size_text(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value == -1:
        return "unlimited"
    return redact_value(name[1:], value) if field == "variables" else redact(str(value))


def _cells(table: Mapping[str, Any]) -> Iterator[Cell]:
    """Yield what is compared of one half of the facts; None is what is absent."""
    for name, entry in table.items():
        field = FIELDS[name]
        if field.varies or name in _FOLLOWS or field.group in ("report", "request", "lock"):
            continue
        if "unknown" in entry:
            continue
        value = entry.get("value")
        entries_of_type = _ENTRIES.get(field.type)
        if entries_of_type is not None:
            yield (name, ""), None if value is None else _READ
            for label, text in entries_of_type(value or _NO_ENTRIES[field.type]):
                yield (name, label), text
        elif field.type == "strings":
            yield (name, ""), ", ".join(map(str, value or ())) or None
        elif value is None or isinstance(value, (str, int, float)):
            yield (name, ""), value


_READ = "a list"


def _gpu_entries(devices: List[Mapping[str, Any]]) -> Iterator[Tuple[str, Any]]:
    kinds: Dict[str, int] = {}
    for device in devices:
        size = device.get("memory_total")
        words = str(device.get("name") or device.get("pci_id") or "GPU")
        if isinstance(size, int):
            words += f" {gib_text(size)} GiB"
        kinds[words] = kinds.get(words, 0) + 1
    yield "GPUs", ", ".join([f"{count} x {name}" for name, count in sorted(kinds.items())]) or None
    for name, member in _GPU_MEMBERS:
        values = sorted({str(device[member]) for device in devices if member in device})
        if values:
            yield name, ", ".join(values)


_GPU_MEMBERS = (
    ("GPU faults", "fault"),
    ("GPU compute capability", "compute_capability"),
    ("GPU MIG mode", "mig_mode"),
    ("GPU ECC mode", "ecc_mode"),
    ("GPU persistence mode", "persistence_mode"),
    ("GPU fabric state", "fabric_state"),
    ("GPU remapping failed", "remapped_failed"),
)


def _distribution_entries(distributions: List[Mapping[str, Any]]) -> Iterator[Tuple[str, Any]]:
    for entry in distributions:
        yield str(entry.get("name")), str(entry.get("version"))


def _variable_entries(variables: Mapping[str, str]) -> Iterator[Tuple[str, Any]]:
    for name, value in variables.items():
        own = name in _OWN or name.endswith(_OWN_NAMES) or name.startswith(_OWN_FAMILIES)
        if not own:
            yield f"${name}", value


def _library_entries(libraries: List[Mapping[str, Any]]) -> Iterator[Tuple[str, Any]]:
    for entry in libraries:
        if entry.get("loaded", True) and entry.get("version"):
            yield f"library {entry.get('name')}", entry["version"]


def _toolkit_entries(toolkits: List[Mapping[str, Any]]) -> Iterator[Tuple[str, Any]]:
    yield "CUDA toolkits", ", ".join(sorted({str(entry.get("version")) for entry in toolkits}))


def _oddity_entries(oddities: List[Mapping[str, Any]]) -> Iterator[Tuple[str, Any]]:
    names = sorted({f"{entry.get('name')} ({entry.get('kind')})" for entry in oddities})
    yield "packages that lie oddly", ", ".join(names) or None


_ENTRIES: Mapping[str, Callable[[Any], Iterator[Tuple[str, Any]]]] = {
    "gpus": _gpu_entries,
    "distributions": _distribution_entries,
    "variables": _variable_entries,
    "libraries": _library_entries,
    "toolkits": _toolkit_entries,
    "oddities": _oddity_entries,
}
_NO_ENTRIES: Mapping[str, Any] = {**dict.fromkeys(_ENTRIES, ()), "variables": {}}


def _state(host: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what is judged beside what is compared, coarsely: nodes that use nearly as much of
    their memory are in one state, and one of them is judged for all.
    """
    for name, entry in host.items():
        field = FIELDS[name]
        value = entry.get("value")
        if field.type == "gpus" and value is not None:
            yield tuple(
                [tuple([_class(device.get(key)) for key in _GPU_STATE]) for device in value]
            )
        elif field.type == "shared_files" and value is not None:
            yield name, _class(sum([file.get("memory_size", 0) for file in value]))
        elif field.varies and isinstance(value, int):
            yield name, _class(value) if field.unit == "bytes" else value


_GPU_STATE = ("memory_used", "ecc_uncorrected", "remapped_pending", "visible")


def _class(value: Any) -> Any:
    """Return the class of a size: each is a tenth more than the one before."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1024:
        return value
    return round(math.log2(value) * 7.27)


def _clock_class(offset: Optional[float]) -> int:
    return 0 if offset is None else round(offset)
