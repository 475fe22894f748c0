"""Findings: what is wrong, why, and what to do."""

from __future__ import annotations

from .cause_tree import cause_tree
from .evidence import Evidence
from .record import NamedTuple
from .row import EFFECTS, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Sequence, Tuple

    from .calls import Call

__all__ = [
    "FINDING_EFFECTS",
    "KINDS",
    "SEVERITIES",
    "Finding",
    "Gap",
    "Remedy",
    "findings_tree",
    "hint",
    "severity_rank",
]

SEVERITIES = ("error", "warning", "advice")

#: The words of ``effect``: those of rows, and what only may fail: users report it, or it hangs on
#: what was presumed.
FINDING_EFFECTS = (*EFFECTS, "may-block")

#: The words of ``kind``, and what each says of ``component``.
KINDS = {
    "too-old": "version below the range that works",
    "too-new": "version above the range that works",
    "bad-version": "a release to avoid",
    "arch-missing": "no code for this GPU",
    "abi-mismatch": "binary built against another torch, Python or C++ ABI",
    "version-mismatch": "two versions that must be equal or paired are not",
    "version-mismatch-across-nodes": "differs between cluster and process, or between nodes",
    "cuda-major-mismatch": "CUDA majors differ",
    "cuda-minor-mixed": "toolkit pieces of different minors are mixed",
    "shadowed": "another copy is found first",
    "two-copies": "two packages write or ship the same library",
    "missing": "not installed or not found",
    "not-exposed": "present on the host but not visible here",
    "shm-too-small": "/dev/shm is too small",
    "too-small": "a limit is too low",
    "too-large": "a setting asks for more than there is",
    "host-oom": "host memory does not suffice",
    "gpu-oom": "device memory does not suffice",
    "kv-cache-too-small": "the KV cache does not hold the asked-for length",
    "swap-space-too-large": "swap space per GPU does not fit the host",
    "exceeds-gpu-count": "more devices asked for than there are",
    "forward-compat-unsupported": "cuda-compat cannot work on this GPU or driver",
    "p2p-blocked": "peer traffic is redirected by ACS or the IOMMU",
    "unsupported": "not supported by this version or platform",
    "unbuildable": "cannot be built from source, which an installed build need not have been",
    "misconfigured": "a setting that the program refuses or passes over",
    "damaged": "files of a distribution are missing, altered or duplicated",
    "conflict": "metadata of installed distributions contradict each other",
    "limit-misread": "a program will believe another limit than the kernel enforces",
    "hardware-fault": "the device reports a fault",
    "probe-failed": "envdoctor could not read this",
    "not-judged": "outside what envdoctor judges",
    "stale-matrix": "the matrix is old",
}


def severity_rank(severity: str) -> int:
    """Return 0 for error, 1 for warning, 2 for advice."""
    return SEVERITIES.index(severity)


class Remedy(NamedTuple):
    """What to do. ``safety``: safe (changes only what is wrong), changes-environment, changes-host
    (said, never done), refused (what would be done were it not for what the text names: no remedy),
    hint (where to look, or what the program itself says: nothing that is known to cure).
    """

    text: str
    commands: Tuple[Call, ...] = ()
    safety: str = "changes-environment"

    @property
    def is_refused(self) -> bool:
        """Whether it says why nothing is to be done, rather than what."""
        return self.safety == "refused"

    @property
    def is_cure(self) -> bool:
        """Whether what it says is to be done, and is known to cure."""
        return self.safety not in ("hint", "refused")

    @property
    def label(self) -> str:
        """What it is in a report: "fix", "hint" or "no fix"."""
        return {"hint": "hint", "refused": "no fix"}.get(self.safety, "fix")


def hint(text: str, commands: Tuple[Call, ...] = ()) -> Remedy:
    """Return what helps to find a cure and is none."""
    return Remedy(text, commands, "hint")


#: Kinds of facts that a verdict may wait for, in words; {} is a package, a variable, a setting, an
#: attribute or a field.
_GAPS = {
    "driver": "the NVIDIA driver release",
    "glibc": "the glibc version",
    "python": "the Python version",
    "toolkit": "the CUDA toolkit version",
    "host": "the host's {}",
    "gpu": "the GPU",
    "environment": "the Python environment",
    "version": "the version of {}",
    "build": "the build of {}",
    "pins": "the pins of {}",
    "variable": "the environment variable {}",
    "setting": "the launch setting {}",
    "field": "{}",
    "steps": "{}",
}


class Gap(NamedTuple):
    """The one fact that would decide an undetermined finding: its kind (``_GAPS``) and, where there
    are many of that kind, which.
    """

    kind: str
    name: str = ""

    def __str__(self) -> str:
        return _GAPS[self.kind].format(self.name)


class Finding(NamedTuple):
    """One result. ``message`` is one sentence with both values; ``row`` is the id of the matrix row
    behind it; ``packages`` are the normalised names of the distributions that it is about.
    """

    code: str
    component: str
    kind: str
    severity: str
    message: str
    verdict: str = "violated"  # or "undetermined"
    subject: str = ""  # what it is about where component is not enough: a GPU, a path, a node
    evidence: Tuple[Evidence, ...] = ()
    sources: Tuple[Source, ...] = ()
    remedies: Tuple[Remedy, ...] = ()
    row: str = ""
    trust: str = "established"
    missing: Optional[Gap] = None  # undetermined: the one fact that would decide
    caused_by: Optional[str] = None  # ``key`` of the finding that is the root
    nodes: Tuple[
        str, ...
    ] = ()  # names of the nodes it holds for, where several targets were judged
    rows: Tuple[
        str, ...
    ] = ()  # ids of further rows of the same severity that this finding speaks for
    packages: Tuple[str, ...] = ()
    presumed: bool = False  # rests on what nobody said; never the headline of a report
    effect: str = ""  # what follows from it, one of FINDING_EFFECTS; "" where nothing says so
    gpus: Tuple[int, ...] = ()  # the only devices it holds for, as places in the fact ``gpus``
    title: str = ""  # what is wrong, without the values of this machine: the title of its row

    @property
    def breaks(self) -> bool:
        """Whether something fails for certain: it does not import, start or run."""
        return self.severity == "error" or self.effect == "blocks"

    @property
    def rule(self) -> str:
        """The id of the rule behind this finding: that of its row, else its code."""
        return self.row or self.code

    @property
    def key(self) -> str:
        """A name for this finding that is stable between runs: what ignore files and ``caused_by``
        use.
        """
        return ":".join(
            part
            for part in (self.code, self.component, self.row or self.kind, self.subject)
            if part
        )


def findings_tree(findings: Sequence[Finding]) -> List[Tuple[Finding, int]]:
    """Return findings as they are shown: each root at depth 0, behind it what follows from it."""
    return cause_tree(findings, lambda finding: finding.key, lambda finding: finding.caused_by)
