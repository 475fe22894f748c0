"""Findings that say the same of several subjects, as one: forty packages that are missing need one
list and one command.
"""

from __future__ import annotations

from ..model.finding import Finding, Remedy
from ..model.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Hashable, List, Sequence, Tuple, Union

    from ..model.calls import Call

__all__ = ["Repeated", "repeated"]

_FEW_NAMES = 4
_SUBJECT = "\0"  # stands in a remedy's text for the component that it names


class Repeated(NamedTuple):
    """Findings of one code with the same remedy: what they have in common, and what cures all."""

    title: str
    findings: Tuple[Finding, ...]
    remedies: Tuple[Remedy, ...]


def repeated(
    tree: Sequence[Tuple[Finding, int]], least: int
) -> List[Tuple[Union[Finding, Repeated], int]]:
    """Return the tree with findings of one kind joined, where the first of them stands.

    Only findings from which nothing follows are joined, and only under the same cause.

    Args:
        tree: findings with their depth, as ``findings_tree`` gives them.
        least: how many make a group; 0 joins nothing.
    """
    groups: Dict[Hashable, List[Finding]] = {}
    place: Hashable
    places: List[Hashable] = []
    path: List[str] = []
    for index, (finding, depth) in enumerate(tree):
        path[depth:] = [finding.key]
        explains = index + 1 < len(tree) and tree[index + 1][1] > depth
        place = (index,) if explains else (*path[:depth], _kind_of(finding))
        places.append(place)
        groups.setdefault(place, []).append(finding)
    shown: List[Tuple[Union[Finding, Repeated], int]] = []
    for place, (finding, depth) in zip(places, tree):
        group = groups[place]
        if not least or len(group) < least:
            shown.append((finding, depth))
        elif finding is group[0]:
            shown.append((_joined(group), depth))
    return shown


def _kind_of(finding: Finding) -> Hashable:
    remedies = tuple(
        (_template(remedy.text, finding), remedy.safety) for remedy in finding.remedies
    )
    return (
        finding.code,
        finding.severity,
        finding.trust,
        finding.kind,
        finding.row,
        finding.nodes,
        remedies,
    )


def _template(text: str, finding: Finding) -> str:
    return text.replace(finding.component, _SUBJECT) if finding.component else text


def _joined(group: Sequence[Finding]) -> Repeated:
    first = group[0]
    names = list(dict.fromkeys(finding.component for finding in group))
    more = f" and {len(names) - _FEW_NAMES} more" if len(names) > _FEW_NAMES else ""
    subjects = ", ".join(names[:_FEW_NAMES]) + more
    remedies = []
    for number, remedy in enumerate(first.remedies):
        calls = [call for finding in group for call in finding.remedies[number].commands]
        text = _template(remedy.text, first).replace(_SUBJECT, subjects)
        remedies.append(remedy._replace(text=text, commands=_joined_calls(calls)))
    return Repeated(_title(first), tuple(group), tuple(remedies))


def _title(finding: Finding) -> str:
    from ..rules import all_rules

    if finding.row:
        return finding.title or finding.message
    titles = {rule.code: rule.summary for rule in all_rules()}
    return titles.get(finding.code, finding.message)


def _joined_calls(calls: Sequence[Call]) -> Tuple[Call, ...]:
    """Return one call where an installer is called alike for each, else all of them, each once."""
    from ..model.calls import InstallerCall

    calls = tuple(dict.fromkeys(calls))
    installs = [call for call in calls if isinstance(call, InstallerCall)]
    if len(installs) == len(calls) and len({call._replace(packages=()) for call in installs}) == 1:
        packages = [package for call in installs for package in call.packages]
        return (installs[0]._replace(packages=tuple(dict.fromkeys(packages))),)
    return calls
