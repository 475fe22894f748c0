"""What came of trying things, as text: what does not work, or contradicts the check, first."""

from __future__ import annotations

from .blocks import Block, heading, paragraph
from .findings_text import finding_blocks
from .text import clean, clip, fold
from .view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, Iterator, List, Sequence, Tuple

    from ..model.proof import Comparison, Proof, TrialStep

__all__ = ["lay_out", "render", "verdict_of"]

_BLANK = Block("")
_SAID = {
    "agrees": "the check agrees:",
    "contradicts": "the check says that this cannot work:",
}
_KEPT_LINES = 12


def render(proof: Proof, view: View) -> str:
    """Return the proof as text."""
    from .console import draw

    return draw(lay_out(proof, view), view)


def verdict_of(proof: Proof) -> str:
    """Return the first line."""
    steps = [entry.step for entry in proof.compared]
    bad = [step for step in steps if step.outcome != "works"]
    wrong = sum(entry.verdict == "contradicts" for entry in proof.compared)
    words = f"{len(steps) - len(bad)} of {len(steps)} steps work" if steps else "nothing was tried"
    if bad:
        words += f"; {_name(bad[0])} {bad[0].outcome}: {bad[0].error}"
    if wrong:
        words += f"; {wrong} of them against what the check says"
    return clip(f"envdoctor: {fold(clean(words))}", 200)


def lay_out(proof: Proof, view: View) -> List[Block]:
    """Return the whole answer."""
    blocks = [heading(verdict_of(proof))]
    blocks += [paragraph(text, head="not tried") for text in proof.skipped]
    for entry, count in _distinct(proof.compared, view.verbose):
        blocks += [_BLANK, *_compared(entry, count, view.verbose)]
    working = [entry.step for entry in proof.compared if entry.step.outcome == "works"]
    if working:
        blocks += [_BLANK, heading("Works:"), *_working(working, view.verbose)]
    ours = [entry for entry in proof.compared if entry.verdict in ("contradicts", "unexplained")]
    if ours:
        blocks += [_BLANK, *_report(ours)]
    return blocks


def _name(step: TrialStep) -> str:
    subject = "" if step.name == step.subject else f" of {step.subject}" if step.subject else ""
    rank = f" (rank {step.rank}{f' on {step.node}' if step.node else ''})" if step.rank else ""
    return f"{step.trial}{subject}: {step.name}{rank}"


def _distinct(compared: Sequence[Comparison], verbose: bool) -> Iterable[Tuple[Comparison, int]]:
    """Return what is to be shown, and for how many steps of a subject it stands: those that end
    alike, unless every step is asked for.
    """
    kinds: Dict[object, List[Comparison]] = {}
    for number, entry in enumerate(compared):
        step = entry.step
        if entry.verdict or step.outcome != "works":
            keys = tuple([finding.key for finding in entry.findings])
            alike = (step.trial, step.subject, step.outcome, step.error, entry.verdict, keys)
            kinds.setdefault(number if verbose else alike, []).append(entry)
    return [(same[0], len(same)) for same in kinds.values()]


def _compared(entry: Comparison, count: int, verbose: bool) -> Iterator[Block]:
    step = entry.step
    head = f"{step.outcome}:" if step.outcome != "works" else "works, against the check:"
    more = f" and {count - 1} more" if count > 1 else ""
    text = f"{_name(step)}{more}{': ' if step.error else ''}{step.error}"
    yield Block(fold(clean(text)), head, "error", 0, 2)
    lines = [line for line in step.said.split("\n") if line.strip()]
    for line in lines[-_KEPT_LINES:] if verbose else []:
        yield Block(clean(line), indent=4, verbatim=True)
    if entry.findings:
        yield Block(_SAID[entry.verdict], indent=2)
    else:
        yield Block("the check finds nothing that would explain it", indent=2)
    for finding in entry.findings:
        yield from finding_blocks(finding, verbose, 4)


def _measured(step: TrialStep) -> str:
    """Return what was measured, and beside it what the hardware carries at most."""
    words = f"{step.value:.4g} {step.unit}"
    if step.expected is None:
        return words
    return f"{words} (at most {step.expected:.4g}: {step.expected_by})"


def _working(steps: List[TrialStep], verbose: bool) -> Iterator[Block]:
    """Yield what works: each step, or how many of each subject."""
    if verbose:
        for step in steps:
            value = f": {_measured(step)}" if step.value is not None else ""
            yield Block(fold(clean(f"{_name(step)}{value}")), indent=2)
        return
    counts: Dict[str, List[TrialStep]] = {}
    for step in steps:
        key = f"{step.trial} of {step.subject}"
        counts.setdefault(key, []).append(step)
    for key, same in counts.items():
        speed = max(
            (step for step in same if step.unit.startswith("GB/s")),
            default=None,
            key=lambda step: step.value or 0,
        )
        words = f", up to {_measured(speed)}" if speed is not None else ""
        count = f" ({len(same)} steps)" if len(same) > 1 else ""
        yield Block(fold(clean(f"{key}{count}{words}")), indent=2)


def _report(entries: List[Comparison]) -> Iterator[Block]:
    """Yield what is to be reported: what ours does not know, or says wrongly."""
    yield heading("Please report this: envdoctor does not know it, or gets it wrong")
    for entry in entries:
        step = entry.step
        codes = ", ".join(finding.key for finding in entry.findings) or "no finding"
        text = f"{entry.verdict}: {_name(step)}: {step.outcome} {step.error}".rstrip()
        yield Block(clean(f"{text} [{codes}]"), indent=2, verbatim=True)
    yield paragraph("with the output of 'envdoctor check --verbose --format markdown'.", 2)
