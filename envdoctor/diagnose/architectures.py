"""Architectures of GPUs that a compiler refuses by name: since which CUDA toolkit it knows them."""

from __future__ import annotations

import re
from typing import Sequence

from ..model.finding import Remedy
from ..model.row import Source
from .logged_run import LoggedRun
from .trace_draft import TraceDraft, groups_of

__all__ = ["tell_architectures"]

_SIGNATURES = ("nvcc-unknown-arch", "ptxas-unknown-arch")
#: ``compute_89``, ``sm_103a``: all digits but the last are the major.
_NAMED = re.compile(r"(?:sm|compute)_(\d{1,2})(\d)[af]?")
#: Of two digits before the point DeepSpeed took the first character, and the point.
_CUT = re.compile(r"(?:sm|compute)_1\.?")
_BLACKWELL = (
    "https://github.com/deepspeedai/DeepSpeed/pull/6991",
    "The SM code and architecture should be 100, but the current code generates 1.",
)


def tell_architectures(drafts: Sequence[TraceDraft], run: LoggedRun) -> None:
    """Say of an architecture that a compiler does not know which CUDA is the first, or was the
    last, that has it; and of a name that no GPU has how it came about.
    """
    for draft in drafts:
        if not draft.is_made_by(*_SIGNATURES):
            continue
        name = groups_of(draft.events[0], run.modules).get("arch", "")
        if _CUT.fullmatch(name):
            _tell_cut(draft)
            continue
        match = _NAMED.fullmatch(name)
        known = run.context.matrix.capabilities.get(".".join(match.groups())) if match else None
        if known is None:
            continue
        said = f"CUDA {known.first_cuda} is the first that knows it"
        if known.last_cuda is not None:
            said += f", and {known.last_cuda} the last"
        draft.finding = draft.finding._replace(
            message=f"{draft.finding.message.rstrip('.')}. {said}.",
            sources=(*draft.finding.sources, known.source),
        )


def _tell_cut(draft: TraceDraft) -> None:
    """Say that the name of an architecture of two digits was cut: no toolkit knows the rest."""
    draft.finding = draft.finding._replace(
        message=f"{draft.finding.message.rstrip('.')}. No GPU has it: it is what is left of one of "
        "two digits (10.0, 12.0), as DeepSpeed before 0.16.4 reads it.",
        sources=(*draft.finding.sources, Source(*_BLACKWELL)),
        remedies=(Remedy("Install deepspeed>=0.16.4, or what builds it in a newer release."),),
    )
