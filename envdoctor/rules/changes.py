"""What changed of targets since a file of answers was written: in their facts and findings."""

from __future__ import annotations

from ..errors import InputError
from ..model.differences import Since
from ..model.host_names import unfold_all
from ..model.node_answers import Answers, facts_of
from ..model.record import NamedTuple
from .node_table import NodeTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Mapping, Sequence, Tuple

    from ..model.facts import Facts
    from ..model.finding import Finding
    from ..model.node_answers import NodeAnswer, Snapshot
    from ..model.report import Report

__all__ = ["TargetChanges", "changes_of_tables", "changes_of_targets", "with_findings"]


class TargetChanges(NamedTuple):
    """What changed of targets that are judged, and what each was, by its name."""

    since: Since
    before: Mapping[str, Facts]


def changes_of_targets(nodes: Sequence[Facts], since: Snapshot) -> TargetChanges:
    """Compare targets with what they were.

    One target is compared with the one that the file has, whatever both are called: a container has
    another name at each start.

    Raises:
        InputError: the file has many nodes, and this one is none of them.
    """
    names = [node.value("node.name", "") for node in nodes]
    answers = {answer.node: answer for answer in since.answers}
    if len(nodes) == 1 and len(answers) == 1:
        (answer,) = answers.values()
        answers = {names[0]: answer._replace(node=names[0])}
    elif len(nodes) == 1 and names[0] not in answers:
        raise InputError(
            f"--since {since.where}: has {len(answers)} nodes, and none is called "
            f"{names[0] or '(no name is known)'}"
        )
    before = NodeTable(since.environments)
    for name in names if len(nodes) == 1 else answers:
        before.add(answers[name])
    store = Answers()
    table = NodeTable(store.environments, before)
    for name, node in zip(names, nodes):
        table.add(store.answer_of_facts(name, node))
    compared = [answer for name, answer in answers.items() if name in names]
    facts = {answer.node: facts_of(answer, since.environments) for answer in compared}
    return TargetChanges(changes_of_tables(since.where, {"": table}, {"": before}, {}), facts)


def changes_of_tables(
    where: str,
    tables: Mapping[str, NodeTable],
    earlier: Mapping[str, NodeTable],
    failed: Mapping[str, NodeAnswer],
) -> Since:
    """Return what changed in all parts; a node that gives no answer is not gone."""
    changes = [table.changes() for table in tables.values()]
    now = _names_in(tables)
    then = _names_in(earlier)
    return Since(
        where,
        tuple([entry for changed, _ in changes for entry in changed]),
        sum(same for _, same in changes),
        tuple([name for name in now if name not in then]),
        tuple([name for name in then if name not in now and name not in failed]),
        silent=tuple([name for name in then if name in failed]),
    )


def _names_in(tables: Mapping[str, NodeTable]) -> Dict[str, None]:
    return dict.fromkeys(name for table in tables.values() for name in table.names)


def with_findings(since: Since, now: Sequence[Report], then: Sequence[Report]) -> Since:
    """Add the findings that only one of both times has; where nodes have names, on these nodes."""
    present, past = _by_node(now), _by_node(then)
    return since._replace(
        appeared=_only_in(present, past),
        cured=_only_in(past, present),
    )


def _by_node(reports: Sequence[Report]) -> Dict[Tuple[str, str], Finding]:
    """Return findings by their key and each node that they name, "" where they name none."""
    return {
        (finding.key, node): finding
        for report in reports
        for finding in report.findings
        for node in unfold_all(finding.nodes) or ("",)
    }


def _only_in(
    findings: Mapping[Tuple[str, str], Finding], others: Mapping[Tuple[str, str], Finding]
) -> Tuple[Finding, ...]:
    return tuple(dict.fromkeys(finding for key, finding in findings.items() if key not in others))
