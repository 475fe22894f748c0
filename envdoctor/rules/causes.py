"""Which finding explains which: one root with its consequences, rather than ten equal ones."""

from __future__ import annotations

from ..model.cause_tree import cause_tree
from ..model.finding import Finding, Gap, findings_tree, severity_rank
from ..model.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, List, Optional, Sequence, Tuple

    _Identity = Tuple[str, str]  # key and message

__all__ = ["CAUSES", "Cause", "arrange", "arrange_nodes"]

_TORCH_FAMILY = frozenset(
    ["torch", "torchvision", "torchaudio", "xformers", "triton", "torchao", "torchtext"]
)
_TIES = frozenset(["abi-mismatch", "cuda-major-mismatch", "version-mismatch"])
_NVML = "libnvidia-ml"
_NO_GAP = Gap("")
#: What shows as "no device": none exposed, capabilities left out, NVML not found.
_NOT_EXPOSED = ("ED108", "ED116", "ED117")


class Cause(NamedTuple):
    """One line of the table: ``roots`` explain those ``effects`` for which ``related`` holds."""

    roots: Tuple[str, ...]  # codes
    effects: Tuple[str, ...]  # codes, or the beginnings of codes
    why: str
    related: Optional[Callable[[Finding, Finding], bool]] = None


def _same_component(root: Finding, effect: Finding) -> bool:
    return root.component == effect.component


def _library_of(component: str) -> str:
    """``nvidia-nccl-cu12``, ``nvidia-nccl`` and ``libnccl`` are one library."""
    name = (
        component[len("nvidia-") :]
        if component.startswith("nvidia-")
        else component[3:]
        if component.startswith("lib")
        else component
    )
    return name.split("-cu1")[0].lower().replace("-", "")


def _same_library(root: Finding, effect: Finding) -> bool:
    return _library_of(root.component) == _library_of(effect.component)


def _torch_is_root(root: Finding, effect: Finding) -> bool:
    """Another torch than the engine's explains what is wrong with what is built against torch."""
    if root.component != "torch":  # a companion: torch was replaced under all of them
        return (
            effect.component != "torch"
            and effect.component in _TORCH_FAMILY
            and effect.kind in _TIES
        )
    return effect.component in _TORCH_FAMILY or effect.kind in _TIES or effect.kind == "conflict"


def _driver_effect(_root: Finding, effect: Finding) -> bool:
    return effect.component in ("nvidia-driver", "cuda-compat", "container-gpu", _NVML)


def _is_python(root: Finding, effect: Finding) -> bool:
    return root.component == "python" == effect.component


#: Read from top to bottom: the first line that fits names the root, and a root may itself be an
#: effect of a line above.
CAUSES: Tuple[Cause, ...] = (
    Cause(
        ("ED107",),
        ("ED101", "ED102", "ED103", "ED104", "ED105", "ED106", "ED113", "ED115", *_NOT_EXPOSED),
        "without a driver nothing else about it can work",
    ),
    Cause(
        ("ED105",),
        ("ED106", "ED901", *_NOT_EXPOSED),
        "NVML and CUDA refuse to start while library and module differ",
        _driver_effect,
    ),
    Cause(
        ("ED104",),
        ("ED105", *_NOT_EXPOSED),
        "the compat library in front makes cuInit fail",
        _driver_effect,
    ),
    Cause(
        ("ED101", "ED115"),
        ("ED102", "ED103", "ED109"),
        "the driver is older than what the CUDA runtime needs",
    ),
    Cause(("ED103",), _NOT_EXPOSED, "cuInit fails, so no device is seen"),
    Cause(("ED106",), _NOT_EXPOSED, "cuInit fails with 802, so no device is seen"),
    Cause(("ED110",), _NOT_EXPOSED, "a device that fell off the bus is not listed"),
    Cause(
        ("ED114",),
        _NOT_EXPOSED,
        "the variable hides the devices",
        lambda _root, effect: effect.component == "container-gpu",
    ),
    Cause(
        ("ED120",),
        ("ED120",),
        "what its CUDA does not compile for, no release of such a build has code for",
        lambda root, effect: not root.row and root.component == effect.component,
    ),
    Cause(
        ("ED801",),
        ("ED301", "ED302", "ED304", "ED401", "ED804"),
        "two copies of a distribution: which one is imported decides",
        _same_component,
    ),
    Cause(("ED802",), ("ED801", "ED804"), "a broken uninstall left both behind", _same_component),
    Cause(
        ("ED709",),
        ("ED709",),
        "a process that joins a cluster is refused once for both",
        lambda root, effect: (root.component, effect.component) == ("ray", "python"),
    ),
    Cause(
        ("ED303",),
        ("ED305", "ED390"),
        "the Python version is outside what the release supports",
        _is_python,
    ),
    Cause(
        ("ED304",),
        (
            "ED304",
            "ED301",
            "ED205",
            "ED203",
            "ED401",
            "ED402",
            "ED404",
            "ED405",
            "ED407",
            "ED390",
            "ED490",
        ),
        "the engine is built for another torch",
        _torch_is_root,
    ),
    Cause(
        ("ED203",),
        ("ED404", "ED407", "ED401", "ED405", "ED290", "ED490", "ED390"),
        "the CUDA majors differ",
        _same_component,
    ),
    Cause(
        ("ED201", "ED207"),
        ("ED202", "ED208", "ED203", "ED205", "ED405", "ED290", "ED804"),
        "one copy overwrote the other",
        _same_library,
    ),
    Cause(
        ("ED202", "ED208"),
        ("ED205", "ED405", "ED290"),
        "another copy of the library is found first",
        _same_library,
    ),
    Cause(("ED409",), ("ED205",), "it lacks a symbol that torch needs", _same_component),
    Cause(("ED490",), ("ED203",), "the row says the same", _same_component),
    Cause(
        ("ED102",),
        ("ED102",),
        "rows name the packages; the rule speaks of any",
        lambda root, effect: bool(root.row) and not effect.row,
    ),
    Cause(("ED401",), ("ED402", "ED405", "ED490"), "built against another torch", _same_component),
    Cause(("ED402",), ("ED405", "ED490"), "built with another C++ ABI", _same_component),
    Cause(("ED403",), ("ED490",), "glibc is older than what the binary asks for", _same_component),
)


def arrange(findings: Sequence[Finding]) -> List[Finding]:
    """Merge duplicates and link consequences to their root, each root followed by its own.

    The order is total and does not depend on the order of the input: violated before undetermined,
    errors first, then by code and key.
    """
    unique = _unique(findings)
    linked = _linked([finding for finding in unique if finding.verdict == "violated"])
    ordered = [finding for finding, _ in findings_tree(linked)]
    open_questions = [finding for finding in unique if finding.verdict != "violated"]
    return ordered + sorted(
        open_questions, key=lambda finding: (finding.missing or _NO_GAP, *_weight(finding))
    )


def arrange_nodes(findings_of_nodes: Sequence[Tuple[str, Sequence[Finding]]]) -> List[Finding]:
    """Join the findings of several nodes: one where they are alike, which names its nodes.

    The order is that of :func:`arrange`, among findings of one severity that of the nodes.

    Args:
        findings_of_nodes: The name of each node and its arranged findings.
    """
    merged, roots = _joined_nodes(findings_of_nodes)
    by_severity = sorted(merged, key=lambda finding: severity_rank(finding.severity))
    ordered = cause_tree(
        [finding for finding in by_severity if finding.verdict == "violated"],
        _identity,
        lambda finding: roots[_identity(finding)],
    )
    open_questions = [finding for finding in by_severity if finding.verdict != "violated"]
    open_questions.sort(key=lambda finding: finding.missing or _NO_GAP)
    return [*(finding for finding, _ in ordered), *open_questions]


def _joined_nodes(
    findings_of_nodes: Sequence[Tuple[str, Sequence[Finding]]],
) -> Tuple[List[Finding], Dict[_Identity, Optional[_Identity]]]:
    """Return each finding once with its nodes, and the roots.

    The root of a finding is that of the node where it was met first: another node may have other
    words for the same key. What compares nodes names its nodes already, and comes once.
    """
    merged: Dict[_Identity, Finding] = {}
    roots: Dict[_Identity, Optional[_Identity]] = {}
    for node, findings in findings_of_nodes:
        violated = {
            finding.key: _identity(finding) for finding in findings if finding.verdict == "violated"
        }
        for finding in findings:
            identity = _identity(finding)
            known = merged.get(identity)
            if known is None:
                merged[identity] = finding._replace(nodes=finding.nodes or (node,))
                roots[identity] = violated.get(finding.caused_by or "")
            elif node not in known.nodes and not finding.nodes:
                merged[identity] = known._replace(nodes=(*known.nodes, node))
    return list(merged.values()), roots


def _identity(finding: Finding) -> _Identity:
    return finding.key, finding.message


def _weight(finding: Finding) -> Tuple[int, bool, str, str, str]:
    rank = severity_rank(finding.severity)
    return (rank, finding.presumed, finding.code, finding.key, finding.message)


def _unique(findings: Sequence[Finding]) -> List[Finding]:
    """Keep one finding per key, the gravest, with the evidence and remedies of all."""
    kept: Dict[Tuple[str, str], Finding] = {}
    for finding in findings:
        identity = (finding.key, finding.verdict)
        known = kept.get(identity)
        kept[identity] = finding if known is None else _joined(known, finding)
    return list(kept.values())


def _joined(known: Finding, other: Finding) -> Finding:
    """Return the graver of two findings of one key, with what the other knows beside it."""
    first, second = (other, known) if _weight(other) < _weight(known) else (known, other)
    rows = dict.fromkeys((*first.rows, second.row, *second.rows))
    return first._replace(
        evidence=tuple(dict.fromkeys((*first.evidence, *second.evidence))),
        sources=tuple(dict.fromkeys((*first.sources, *second.sources))),
        rows=tuple(row for row in rows if row and row != first.row),
        packages=tuple(dict.fromkeys((*first.packages, *second.packages))),
        remedies=tuple(dict.fromkeys((*first.remedies, *second.remedies))),
    )


def _linked(findings: List[Finding]) -> List[Finding]:
    """Set ``caused_by`` by the table: never under a root of less weight, and never in a circle."""
    ordered = sorted(findings, key=_weight)
    parent: Dict[str, str] = {
        finding.key: finding.caused_by for finding in ordered if finding.caused_by is not None
    }
    keys = {finding.key for finding in ordered}
    for finding in ordered:
        if finding.key in parent:
            continue
        root = _root_of(finding, ordered, parent)
        if root is not None:
            parent[finding.key] = root
    return [
        finding._replace(
            caused_by=parent.get(finding.key) if parent.get(finding.key) in keys else None
        )
        for finding in ordered
    ]


def _root_of(effect: Finding, findings: List[Finding], parent: Dict[str, str]) -> Optional[str]:
    for cause in CAUSES:
        if not effect.code.startswith(cause.effects):
            continue
        for root in findings:
            if (
                root.code not in cause.roots
                or root.key == effect.key
                or severity_rank(root.severity) > severity_rank(effect.severity)
            ):
                continue
            if cause.related is not None and not cause.related(root, effect):
                continue
            if not _descends(root.key, effect.key, parent):
                return root.key
    return _twin(effect, findings, parent)


def _twin(effect: Finding, findings: List[Finding], parent: Dict[str, str]) -> Optional[str]:
    """Return the rule's finding that a known-bad row (EDn90) repeats about the same component."""
    if not effect.code.endswith("90"):
        return None
    for root in findings:
        same = (
            root.code[:3] == effect.code[:3]
            and root.component == effect.component
            and root.kind == effect.kind
        )
        graver = not root.code.endswith("90") and severity_rank(root.severity) <= severity_rank(
            effect.severity
        )
        if same and graver and not _descends(root.key, effect.key, parent):
            return root.key
    return None


def _descends(key: str, ancestor: str, parent: Dict[str, str]) -> bool:
    """Tell whether ``ancestor`` is above ``key``."""
    seen = set()
    current: Optional[str] = key
    while current is not None and current not in seen:
        if current == ancestor:
            return True
        seen.add(current)
        current = parent.get(current)
    return False
