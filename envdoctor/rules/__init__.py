"""Pure rules from facts to findings.

``judge`` runs the matrix rows and every rule, and orders what they found.
"""

from __future__ import annotations

from ..matrix.derive import derive_target
from ..model.facts import Facts
from ..model.finding import Finding
from ..model.report import Judged
from .causes import arrange
from .matrix_rows import findings_of_rows
from .observations import doubted, outranked
from .registry import CHECKS, Context, Rule, all_rules, load_rules
from .tool import fault_finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable, List, Optional, Sequence, Set

    from ..matrix.loader import Matrix

__all__ = ["Context", "Rule", "all_rules", "judge"]


def judge(
    facts: Facts,
    matrix: Matrix,
    *,
    nodes: Sequence[Facts] = (),
    today: Optional[str] = None,
    propagate: bool = False,
    families: Optional[Sequence[str]] = None,
    also: Iterable[Finding] = (),
    examined: Optional[Set[Judged]] = None,
    before: Optional[Facts] = None,
) -> List[Finding]:
    """Return what is wrong with one target, roots first, errors before warnings before advice.

    Args:
        facts: What is known of the target.
        matrix: What is known of versions and hardware.
        nodes: All targets where several were given, for what has to be equal on all of them.
        today: ISO date against which the age of the matrix is taken; the clock's where left out.
        families: Only the rules of these families (``registry.CHECKS``), beside the rows of the
            matrix.
        propagate: Let an exception of a rule through; by default it becomes one ED906 finding and
            the others still run.
        also: Findings from elsewhere (the memory plan), to be ordered with the others.
        examined: Gets every rule that ran and every row that was held against the target.
        before: The same target at an earlier time, for what must not become less.
    """
    if today is None:
        import time

        today = time.strftime("%Y-%m-%d")
    context = Context(
        facts, matrix, derive_target(facts, matrix), tuple(nodes), today, {}, examined, before
    )
    findings: List[Finding] = []
    rules = load_rules(CHECKS if families is None else families)
    steps = [("matrix-rows", findings_of_rows), *((rule.name, rule.function) for rule in rules)]
    for name, step in steps:
        findings.extend(step(context) if propagate else _guarded(name, step, context))
    if examined is not None:
        examined.update(Judged(rule.code, rule.code) for rule in rules)
    if facts.value("report.disputed"):
        from .disputed_releases import held_by_both, with_other_releases

        other = with_other_releases(facts)
        if other is not None:
            others = judge(
                other,
                matrix,
                nodes=nodes,
                today=today,
                families=families,
                propagate=propagate,
            )
            findings = held_by_both(findings, others, facts)
    findings.extend(also)
    return arrange(doubted(outranked(findings, context), context))


def _guarded(
    name: str, step: Callable[[Context], Iterable[Finding]], context: Context
) -> List[Finding]:
    """Run one step; what it raises becomes a finding, so that the other rules still speak."""
    try:
        return list(step(context))
    except Exception as error:  # noqa: BLE001 - any fault of any rule, see above
        return [fault_finding(name, error)]
