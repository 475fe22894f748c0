"""What was seen to happen outranks what a table concludes.

A report may say that torch reached the device, or that it was imported at all: then a finding that
says why this cannot be is wrong about this machine, whatever the table knows. It becomes a note
that says what the table would have expected.
"""

from __future__ import annotations

from ..model.evidence import Known
from ..model.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, FrozenSet, List, Sequence

    from ..model.facts import Facts
    from ..model.finding import Finding
    from .rule import Context

__all__ = ["outranked"]


class _Measurement(NamedTuple):
    """What was seen, in words; the field that tells it; and what it disproves: codes, of findings
    about no package but torch.
    """

    words: str
    field: str
    seen: Callable[[Facts], bool]
    disproves: FrozenSet[str]


_PAIRS: Sequence[_Measurement] = (
    _Measurement(
        "torch.cuda.is_available() was True here",
        "torch.cuda_available",
        lambda facts: facts.value("torch.cuda_available") is True,
        frozenset(
            # driver too old for torch's CUDA or for the GPU, compat, driver or device not there, a
            # CPU build
            ["ED101", "ED103", "ED104", "ED107", "ED108", "ED109", "ED115", "ED123"]
        ),
    ),
    _Measurement(
        "torch was imported here",
        "torch.cuda_available",
        # whoever asks torch for its devices has imported it
        lambda facts: isinstance(facts.get("torch.cuda_available"), Known),
        # its Python, its glibc, its libraries and symbols are there
        frozenset(["ED205", "ED303", "ED403", "ED404", "ED405", "ED406"]),
    ),
)
_OF_TORCH = frozenset(["torch"])


def outranked(findings: Sequence[Finding], context: Context) -> List[Finding]:
    """Return the findings, those that a measurement disproves as notes."""
    seen = [pair for pair in _PAIRS if pair.seen(context.facts)]
    return [_judged(finding, seen, context) for finding in findings] if seen else list(findings)


def _judged(finding: Finding, seen: Sequence[_Measurement], context: Context) -> Finding:
    if finding.verdict != "violated" or finding.severity == "advice":
        return finding
    if not _OF_TORCH.issuperset(finding.packages):
        return finding
    for pair in seen:
        if finding.code in pair.disproves:
            return finding._replace(
                severity="advice",
                message=f"By the tables: {finding.message.rstrip('.')}; but {pair.words}.",
                evidence=(*finding.evidence, *context.evidence(pair.field)),
                remedies=(),
            )
    return finding
