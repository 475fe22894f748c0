"""Why the hub did not let a run read a gated repository: the status of its answer tells whether it
knew who asked.
"""

from __future__ import annotations

from typing import Sequence

from ..model.finding import Remedy
from ..model.pattern import pattern
from .logged_run import LoggedRun
from .trace_draft import TraceDraft

__all__ = ["tell_hub_access"]

_GATED = "gated-model"
#: What huggingface_hub says with 401 and with 403 (``utils/_http.py`` of 0.17 to 1.0; the last
#: sentences are the hub's own).
_UNKNOWN = pattern(r"\b401 Client Error|\bmust (?:have access to it and )?be authenticated\b")
_REFUSED = pattern(r"\b403 Client Error|\bnot in the authorized list\b|\bawaiting a review\b")
_NOT_KNOWN = "and the hub did not know who asked (401): no token was sent, or none that is valid."
_LOG_IN = Remedy(
    "Ask for access on the repository's page, then log in where the run is (hf auth login, or "
    "HF_TOKEN for every process that downloads).",
    (),
)


def tell_hub_access(drafts: Sequence[TraceDraft], run: LoggedRun) -> None:
    """Say of a gated repository whether the run was not logged in at all, or not granted it."""
    for draft in drafts:
        if not draft.is_made_by(_GATED):
            continue
        links = [link for entry in run.raised for link in entry.chain()]
        messages = [link.message for link in links if any(map(link.has, draft.events))]
        text = "\n".join((draft.text(None), *messages))
        if _REFUSED.search(text) or not _UNKNOWN.search(text):
            continue  # what its signature says is of a refusal
        lead = draft.finding.message.partition(", and ")[0]
        draft.finding = draft.finding._replace(message=f"{lead}, {_NOT_KNOWN}", remedies=(_LOG_IN,))
