"""The candidates of one package in order of preference, as masks: which of them a specifier or a
row's terms admit.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ...matrix.bind import Subject, truth
from ...matrix.tables import Release, SourceBuild
from ...model.row import Term
from ...model.versions import (
    InvalidSpecifier,
    Version,
    VersionSet,
    split_clauses,
    try_version,
)
from .inference import Inferred

__all__ = ["NOT_THERE", "Candidate", "CandidateTable", "bits_of", "early_versions"]


NOT_THERE = Subject(False)


class Candidate(NamedTuple):
    """One build of one release.

    ``index_name`` is "pypi" for the default one; ``from_source`` where the index has no wheel, and
    ``build`` is then how it is built, None where nothing is known of that.
    ``inferred``: attributes of the subject that were not read.
    """

    version: Version
    release: Release
    subject: Subject
    index_name: str = "pypi"
    from_source: bool = False
    build: Optional[SourceBuild] = None
    inferred: Tuple[Inferred, ...] = ()


def bits_of(mask: int) -> Iterator[int]:
    """Yield the set bits of a mask, lowest first, each as a mask."""
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


class CandidateTable:
    """The candidates of one package in order of preference; bit i is the i-th, ``absent`` the bit
    above all.
    """

    def __init__(self, name: str, candidates: Sequence[Candidate], named: bool) -> None:
        self.name = name
        self.candidates = tuple(candidates)
        self.absent = 1 << len(self.candidates)
        self.all = self.absent - 1
        order = sorted(
            range(len(self.candidates)), key=lambda number: self.candidates[number].version
        )
        self._versions = [self.candidates[number].version for number in order]
        self._sums = [0]
        early = 0
        for number in order:
            self._sums.append(self._sums[-1] | 1 << number)
            if self.candidates[number].version.is_prerelease:
                early |= 1 << number
        # A package that offers nothing but pre-releases (opentelemetry's exporters, flash-attn-4)
        # is taken as it is, as installers do.
        final = [entry for entry in self.candidates if not entry.version.is_prerelease]
        free = named or all(entry.release.yanked for entry in final)
        #: Pre-releases that only count where a requirement names them (``named``).
        self.early = 0 if free else early
        self._masks: Dict[str, int] = {}
        self._terms: Dict[Term, int] = {}
        #: Whether the facts of every candidate have its version, so that order decides.
        self._tell_version = all(
            entry.subject.attributes.get("version") is entry.version for entry in self.candidates
        )

    def mask(self, specifier: str) -> int:
        """Return the candidates that a specifier admits, pre-releases too: whether these count is
        decided over all requirements together.
        """
        bits = self._masks.get(specifier)
        if bits is None:
            try:
                bits = self._members(VersionSet.parse(specifier.replace("||", ",")))
            except InvalidSpecifier:
                bits = self.all  # a line that no tool understands binds nobody
            self._masks[specifier] = bits
        return bits

    def named(self, specifier: str) -> int:
        """Return the pre-releases that a specifier asks for: by ``==``, or by another bound that is
        one, where no final release meets it (flash-attn-4>=4.0.0b9).
        """
        versions = early_versions(specifier) if self.early else []
        if not versions:
            return 0
        admitted = self.mask(specifier)
        if not admitted & ~self.early:
            return admitted
        exact = 0
        for operator, version in versions:
            if operator in ("==", "==="):
                exact |= self._members(VersionSet.parse(f"=={version}"))
        return admitted & exact & self.early

    def _members(self, wanted: VersionSet) -> int:
        bits = 0
        for low, high in wanted.intervals:
            start = 0 if low is None else bisect_left(self._versions, low)
            end = len(self._versions) if high is None else bisect_left(self._versions, high)
            if end > start:
                bits |= self._sums[end] & ~self._sums[start]
        return bits

    def holding(self, terms: Sequence[Term]) -> int:
        """Return the values, "absent" among them, of which all these terms are true."""
        bits = self.all | self.absent
        for term in terms:
            bits &= self._holding(term)
        return bits

    def _holding(self, term: Term) -> int:
        bits = self._terms.get(term)
        if bits is None:
            bits = self.absent if truth(term, NOT_THERE) else 0
            if self._tell_version and term.attribute == "version" and term.operator != "present":
                wanted = term.argument
                inside = self._members(wanted) if isinstance(wanted, VersionSet) else 0
                bits |= self.all & ~inside if term.operator == "lacks" else inside
            else:
                for number, candidate in enumerate(self.candidates):
                    if truth(term, candidate.subject):
                        bits |= 1 << number
            self._terms[term] = bits
        return bits

    def at(self, bit: int) -> Candidate:
        """Return the candidate of a bit."""
        return self.candidates[bit.bit_length() - 1]


def early_versions(specifier: str) -> List[Tuple[str, Version]]:
    """The pre-releases that a specifier names, each with its operator."""
    clauses = [(operator, try_version(version)) for operator, version in split_clauses(specifier)]
    return [
        (operator, version)
        for operator, version in clauses
        if version is not None and version.is_prerelease
    ]
