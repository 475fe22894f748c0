"""What was seen to happen outranks what a table concludes.

A report may say that torch reached the device, or that it was imported at all: then a finding that
says why this cannot be is wrong about this machine, whatever the table knows. It becomes a note
that says what the table would have expected. What one sentence of a report alone tells carries no
error: its writer may speak of another machine, or of what was there before.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Mapping, Sequence

    from ..model.finding import Finding
    from .rule import Context

__all__ = ["doubted", "outranked"]

_FIELD = "torch.cuda_available"
#: What torch disproves that was imported, as whoever asks it for its devices did: its Python, its
#: glibc, its libraries and symbols are there.
_IMPORTED = frozenset(["ED205", "ED303", "ED403", "ED404", "ED405", "ED406"])
#: What torch disproves that reached a device: driver too old for its CUDA or for the GPU, compat,
#: driver or device not there, a CPU build.
_REACHED = frozenset(["ED101", "ED103", "ED104", "ED107", "ED108", "ED109", "ED115", "ED123"])
_OF_TORCH = frozenset(["torch"])


def outranked(findings: Sequence[Finding], context: Context) -> List[Finding]:
    """Return the findings, those that an observation disproves as notes.

    Only findings about no package but torch can be.
    """
    available = context.facts.value(_FIELD)
    if available is None:
        return list(findings)
    words = dict.fromkeys(_IMPORTED, "torch was imported here")
    if available is True:
        words.update(dict.fromkeys(_REACHED, "torch.cuda.is_available() was True here"))
    return [
        _as_note(finding, words[finding.code], context)
        if finding.code in words
        and finding.verdict == "violated"
        and finding.severity != "advice"
        and _OF_TORCH.issuperset(finding.packages)
        else finding
        for finding in findings
    ]


#: The fields that tell a release, by the component of a finding that rests on it.
_RELEASES = {
    "python": "python.version",
    "nvidia-driver": "driver.release",
    "glibc": "glibc.version",
    "cuda-toolkit": "toolkit.version",
}


def doubted(findings: Sequence[Finding], context: Context) -> List[Finding]:
    """Return the findings; the errors that rest on a single sentence are warnings that say so."""
    sentences = context.facts.value("report.single_sentences")
    if not sentences:
        return list(findings)
    return [
        _doubted(finding, sentences)
        if finding.severity == "error" and finding.verdict == "violated"
        else finding
        for finding in findings
    ]


def _doubted(finding: Finding, sentences: Mapping[str, str]) -> Finding:
    about = dict.fromkeys((*finding.packages, finding.component))
    read = {entry.detail.split(" = ")[0] for entry in finding.evidence}
    names = [
        *(name for name in about if name in sentences),
        *(
            field
            for component, field in _RELEASES.items()
            if field in sentences and (component in about or field in read)
        ),
    ]
    if not names:
        return finding
    return finding._replace(
        severity="warning",
        effect="may-block" if finding.effect == "blocks" else finding.effect,
        message=f"{finding.message.rstrip('.')}; this rests on one sentence of the report: "
        f"“{sentences[names[0]]}”.",
    )


def _as_note(finding: Finding, seen: str, context: Context) -> Finding:
    return finding._replace(
        severity="advice",
        message=f"By the tables: {finding.message.rstrip('.')}; but {seen}.",
        evidence=(*finding.evidence, *context.evidence(_FIELD)),
        remedies=(),
    )
