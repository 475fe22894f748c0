"""What followed from what: by what a signature says of its line, by the clock, and by what a text
says it was compared with.
"""

from __future__ import annotations

from typing import List, Optional

from ..model.signature import Signature
from ..rules.relevance import BY_WRITER
from .logged_run import LoggedRun
from .trace_draft import TraceDraft, causes_of, confirm

__all__ = ["join_comparisons", "link", "merge"]

_SLACK = 90.0  # seconds by which the clocks of two writers may differ


def link(drafts: List[TraceDraft], _run: LoggedRun) -> None:
    """Put each consequence under what can have led to it, a cause rather than an effect."""
    for draft in sorted(drafts, key=lambda entry: entry.order):
        if draft.signature is None or draft.parent is not None:
            continue
        nearest = _nearest(draft, draft.signature, drafts)
        if nearest is not None:
            draft.parent = nearest
            draft.suspects = []
            if draft.role == "cause":  # what ends that ends this
                draft.finding = draft.finding._replace(remedies=())


def _nearest(
    draft: TraceDraft, signature: Signature, drafts: List[TraceDraft]
) -> Optional[TraceDraft]:
    """Return the last thing before a draft that can have led to it, else the first cause after."""
    able = [
        other
        for other in drafts
        if other is not draft and _may_follow(signature, other) and not other.under(draft)
    ]
    before = [other for other in able if _precedes(other, draft)]
    if before:
        return max(causes_of(before) or before, key=lambda other: other.order)
    return min(causes_of(able), key=lambda other: other.order, default=None)


def _may_follow(signature: Signature, other: TraceDraft) -> bool:
    if other.signature is not None:
        names = (other.signature.id, f"{other.signature.layer}:*")
        return any(name in signature.after for name in names)
    # A finding of the check stands for the lines that it explains.
    return False


def _precedes(first: TraceDraft, second: TraceDraft) -> bool:
    one, two = first.first, second.first
    if one is None or two is None:
        return False
    if one.clock is not None and two.clock is not None and one.clock.kind == two.clock.kind:
        if abs(one.clock.seconds - two.clock.seconds) > _SLACK:
            return one.clock.seconds < two.clock.seconds
    elif one.source != two.source:
        return True  # no common clock: a record of the kernel beside a program's log
    return first.order <= second.order


def merge(drafts: List[TraceDraft], _run: LoggedRun) -> None:
    """Drop a draft that says of the same lines what its root says: one sentence is enough."""
    for draft in list(drafts):
        parent = draft.parent
        if parent is None or draft.role != "cause":
            continue
        same = (draft.finding.component, draft.finding.kind) == (
            parent.finding.component,
            parent.finding.kind,
        )
        if same and (parent.signature is None or draft.certainty == "candidate"):
            parent.events += [event for event in draft.events if event not in parent.events]
            for other in drafts:
                if other.parent is draft:
                    other.parent = parent
            drafts.remove(draft)


def join_comparisons(drafts: List[TraceDraft], run: LoggedRun) -> None:
    """Put what does not say its own cause under the releases of which a text says that one fails
    and another works: who compared them has found it. So what a line of the machine mostly comes
    of, where releases of its kernel, driver or the like were compared.
    """
    compared = next((finding for finding in run.violated if finding.code in BY_WRITER), None)
    if compared is None:
        return
    for draft in list(drafts):
        says_nothing = draft.role == "effect" or draft.finding.kind == "not-judged"
        is_guess = draft.certainty == "likely" and draft.signature is not None
        if is_guess and not (draft.finding.packages or compared.packages):
            says_nothing |= draft.finding.component != compared.component
        if draft.parent is None and says_nothing and draft.finding.code not in BY_WRITER:
            draft.parent = confirm(drafts, compared, [])
            draft.suspects = []
