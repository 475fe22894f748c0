"""The matrix row: a nogood with its source, "these terms must not all hold at once".

``matrix.bind`` gives rows their meaning, for check and for the solver alike.
"""

from __future__ import annotations

from .record import NamedTuple
from .versions import VersionSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, FrozenSet, Tuple, Union

    Argument = Union[VersionSet, FrozenSet[str], bool]

__all__ = ["EFFECTS", "OPERATORS", "SCOPES", "TRUSTS", "Mitigation", "Row", "Source", "Term"]

SCOPES = ("env", "gpu", "host", "var", "request")
OPERATORS = ("in", "any", "has", "lacks", "present")
EFFECTS = ("blocks", "degrades", "wrong-results", "note")
TRUSTS = ("established", "reported")


class Term(NamedTuple):
    """One condition on one subject.

    scope: ``env`` (a distribution; ``component`` is its canonical name), ``gpu`` (one device),
    ``host``, ``var`` (``component`` is the variable's name) or ``request``.
    operator: ``in`` (a version is in a set), ``any`` (a string is one of these), ``has`` (a set of
    strings contains one of these), ``lacks`` (the contrary of in/any/has; true of an absent
    distribution too), ``present`` (there or not).
    """

    scope: str
    component: str
    attribute: str
    operator: str
    argument: Argument

    def __str__(self) -> str:
        subject = (
            self.component
            if self.attribute == "version"
            else f"{self.component} {self.attribute}".strip()
        )
        if self.operator == "present":
            return f"{subject} is {'present' if self.argument else 'absent'}"
        if isinstance(self.argument, VersionSet):
            return f"{subject} {'not in ' if self.operator == 'lacks' else ''}{self.argument}"
        values = (
            ", ".join(sorted(self.argument))
            if isinstance(self.argument, frozenset)
            else str(self.argument)
        )
        return f"{subject} {self.operator} {values}"


class Source(NamedTuple):
    """Where a row comes from: an address or a named document, and how it was established (quote or
    measurement).
    """

    address: str
    quote: str = ""


class Mitigation(NamedTuple):
    """A setting with which the row no longer applies: ``scope`` var, its name and its value."""

    scope: str
    component: str
    value: str


class Row(NamedTuple):
    """One piece of knowledge. ``component`` and ``kind`` are the words that findings carry."""

    id: str
    effect: str
    trust: str
    terms: Tuple[Term, ...]
    component: str
    kind: str
    code: str
    title: str
    symptom: str
    fix: str
    pins: Tuple[str, ...]
    overrides: Tuple[str, ...]  # metadata edges that the fix breaks, "torch -> nvidia-cublas-cu12"
    mitigations: Tuple[Mitigation, ...]
    sources: Tuple[Source, ...]
    date: str
    established_by: str = ""
    origin: str = ""  # file that holds the row
    #: It breaks what a package is for, though not all that can be done with it.
    purpose: bool = False

    @property
    def binds(self) -> bool:
        """Whether no lock takes what violates it."""
        return self.trust == "established" and (self.effect == "blocks" or self.purpose)

    @property
    def packages(self) -> Tuple[str, ...]:
        """The distributions that its terms speak of, installed or absent."""
        return tuple(dict.fromkeys(term.component for term in self.terms if term.scope == "env"))

    def __hash__(self) -> int:
        return hash(self.id)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Row) and tuple(self) == tuple(other)

    def __ne__(self, other: Any) -> bool:
        return not self == other
