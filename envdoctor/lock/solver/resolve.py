"""A request, answered: a resolution, or an explanation of why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence, Union

from ...errors import InputError, suggest
from .alternatives import with_ages
from .candidates import Catalog
from .explanation import explain
from .torch_needed import attempt_whole, resolution_of_whole

if TYPE_CHECKING:
    from ...matrix.loader import Matrix
    from ...model.facts import Facts
    from ...model.request import Request
    from ...model.resolution import Explanation, Resolution

__all__ = ["check_request", "resolve"]


def resolve(
    request: Request, facts: Sequence[Facts], matrix: Matrix
) -> Union[Resolution, Explanation]:
    """Find the best set of packages for a request on all targets at once, or say why there is none.

    Args:
        request: what is asked, and for which Python, platform, date and indexes.
        facts: the targets; what is not known of them does not constrain, and the resolution says
            what it requires.
        matrix: what is known of versions and hardware.

    Raises:
        InputError: a root that the matrix does not know, or a target of another platform.
        GaveUp: the search limit was reached.
    """
    check_request(request, facts, matrix)
    catalog = Catalog(matrix, request)
    whole = attempt_whole(catalog, facts)
    if whole.search.outcome.model is not None:
        return with_ages(resolution_of_whole(whole, facts), whole.search, whole.catalog, facts)
    return explain(catalog, facts)


def check_request(request: Request, facts: Sequence[Facts], matrix: Matrix) -> None:
    """Raise :class:`InputError` for a root that the matrix does not know, or a target of another
    platform.
    """
    known = matrix.packages_known
    for root in request.roots:
        if root.name not in known:
            raise InputError(
                f"{root.text}: the matrix of {matrix.date} has no releases of {root.name}, so "
                f"there is nothing to choose from{suggest(root.name, known, 0.75, 1)}"
            )
    for entry in facts:
        for field, wanted in (
            ("os.platform", request.platform),
            ("os.architecture", request.architecture),
        ):
            value = entry.value(field)
            if value is not None and value != wanted:
                name = (
                    f"target {entry.value('node.name')}"
                    if entry.value("node.name")
                    else "the target"
                )
                raise InputError(
                    f"one lock is for one platform: {wanted} is asked for, but {name} has {value}"
                )
