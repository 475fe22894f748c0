"""Packages that import torch and do not ask for it: they get one (see ``torch_extras``, too)."""

from __future__ import annotations

from typing import NamedTuple, Sequence, Tuple

from ...matrix.loader import Matrix
from ...model.facts import Facts
from ...model.request import Root
from ...model.resolution import Reason, Resolution
from ...model.versions import VersionSet
from .candidate_table import Candidate
from .candidates import Catalog
from .objective import Attempt, attempt, resolution_of
from .torch_extras import extras_notes

__all__ = ["Whole", "attempt_whole", "resolution_of_whole"]


class Whole(NamedTuple):
    """A search, with the torch that what it chose needs.

    catalog: of the roots that were asked for in the end. importing: what imports a torch that it
    does not ask for, and got. notes: where there is none for it.
    """

    catalog: Catalog
    search: Attempt
    notes: Tuple[str, ...] = ()
    importing: str = ""


def attempt_whole(catalog: Catalog, facts: Sequence[Facts]) -> Whole:
    """Search for what a request asks for, and for torch where a package imports it that leaves the
    choice of an index to whoever installs it (torchao).
    """
    whole = Whole(catalog, attempt(catalog, facts))
    return _with_torch(whole, facts)


def resolution_of_whole(whole: Whole, facts: Sequence[Facts]) -> Resolution:
    """Return a search that was solved in words of packages, with a note on what is old."""
    catalog, search, notes, importing = whole
    resolution = resolution_of(search, catalog, facts)
    if importing:
        words = f"{importing} imports it, and does not ask for it"
        asked = tuple(root for root in catalog.request.roots if root.name != "torch")
        resolution = resolution.with_reasons({"torch": Reason("required", words)})
        resolution = resolution._replace(request=catalog.request._replace(roots=asked))
    more = extras_notes(resolution, catalog)
    return resolution._replace(notes=(*resolution.notes, *notes, *more))


def _with_torch(whole: Whole, facts: Sequence[Facts]) -> Whole:
    catalog, chosen = whole.catalog, whole.search.chosen
    if not chosen or "torch" in chosen:
        return whole
    importing = [name for name in chosen if _imports_torch(name, chosen[name], catalog.matrix)]
    if not importing:
        return whole
    words = f"{importing[0]} {chosen[importing[0]].version}"
    own = catalog.asking((*catalog.request.roots, Root("torch")))
    search = attempt(own, facts)
    if search.chosen:
        return Whole(own, search, whole.notes, words)
    note = f"{words} imports torch, which it does not ask for, and no torch fits it here"
    return whole._replace(notes=(*whole.notes, note))


def _imports_torch(name: str, candidate: Candidate, matrix: Matrix) -> bool:
    """Tell whether no part of a package can be imported without torch: a row was measured that
    says so of this release.
    """
    for row in matrix.rows_about([name, "torch"]):
        ends = [term for term in row.terms if term.attribute == "version"]
        if row.code != "ED308" or row.effect != "blocks" or len(ends) < len(row.terms):
            continue
        versions = {term.component: term.argument for term in ends}
        own = versions.get(name)
        holds = isinstance(own, VersionSet) and candidate.version in own
        if holds and versions.keys() == {name, "torch"}:
            return True
    return False
