"""Rows about families of models that a release of transformers or of an engine does not know.

``scripts/measure_surfaces`` writes what it found in the registries of the wheels
(``matrices/model_families.json``); here it becomes ordinary ``Row`` values. Only where a launch
names a family is the file read.

A family in a text or a name of a model is no proof of a launch, so none of these blocks. Releases
of an engine that hand what they do not know to transformers are worth a note only.
"""

from __future__ import annotations

from ..model.record import NamedTuple
from ..model.row import Row, Source, Term
from ..model.versions import VersionSet, try_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence

    Spans = Sequence[Sequence[str]]

__all__ = ["SETTING", "ModelFamilies", "families_fault"]

#: The launch setting that names a family.
SETTING = "model_family"
_SCHEMA = 1


class _Known(NamedTuple):
    """Where one package has a family. word: what its registry calls it. present: releases that have
    it, refused: that say that they had it; own: releases of others that bring its configuration.
    """

    package: str
    title: str
    newest: str
    word: str
    present: Spans
    refused: Spans
    stand_in: Spans
    own: Mapping[str, Spans]
    source: Source


class ModelFamilies:
    """What is known of families of models, from the document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._engines: Mapping[str, Any] = document.get("engines", {})
        self._families: Mapping[str, Any] = document.get("families", {})
        self._date = document.get("date", "")
        self._made: Dict[str, List[Row]] = {}

    def rows(self, family: str, names: Iterable[str]) -> List[Row]:
        """Return the rows about a family and one of these packages."""
        there = frozenset(names)
        return [row for row in self._rows_of(family) if row.terms[0].component in there]

    def all_rows(self) -> List[Row]:
        """Return the rows about all families."""
        return [row for family in self._families for row in self._rows_of(family)]

    def _rows_of(self, family: str) -> List[Row]:
        if family not in self._made:
            entry = self._families.get(family, {})
            self._made[family] = [
                row
                for package in self._engines
                if package in entry
                for row in self._rows_about(family, entry["name"], self._known(package, entry))
            ]
        return self._made[family]

    def _known(self, package: str, family: Mapping[str, Any]) -> _Known:
        engine, entry = self._engines[package], family[package]
        return _Known(
            package,
            engine["title"],
            engine["newest"],
            entry["word"],
            entry["in"],
            entry.get("refused", ()),
            engine.get("stand_in", {}).get(entry.get("stand_in"), ()),
            entry.get("own", {}),
            Source(
                f"{entry['archive']}: {entry['path']}, line {entry['line']}",
                f"{entry['word']} in {_words(entry['in'])}",
            ),
        )

    def _rows_about(self, family: str, name: str, known: _Known) -> Iterator[Row]:
        """Yield the rows about one package: its releases before the first that has the family, and
        those after the last; each apart where a stand-in may load it.
        """
        first, last = known.present[0][0], known.present[-1][1]
        stand_in = _set_of(known.stand_in) & ~_set_of(known.refused)
        lower = VersionSet.parse(f"<{first}")
        mend = f"{known.package}>={first}"
        before = f"{known.title} before {first} does not know {name}"
        yield from self._two(
            f"{family}-{known.package}", known, family, lower, stand_in, before, "too-old", mend
        )
        if last != known.newest:
            upper = VersionSet.parse(f">{last},<={known.newest}")
            after = f"{known.title} after {last} knows {name} no more"
            mend = f"{known.package}>={known.present[-1][0]},<={last}"
            row_id = f"{family}-removed-{known.package}"
            yield from self._two(row_id, known, family, upper, stand_in, after, "too-new", mend)

    def _two(
        self,
        row_id: str,
        known: _Known,
        family: str,
        lacking: VersionSet,
        stand_in: VersionSet,
        title: str,
        kind: str,
        pin: str,
    ) -> Iterator[Row]:
        own = [
            Term("env", other, "version", "lacks", _set_of(spans))
            for other, spans in known.own.items()
        ]
        helped = lacking & stand_in
        for suffix, effect, releases, words in (
            ("", "degrades", lacking & ~stand_in, ""),
            ("-through-transformers", "note", helped, ": it may run through transformers' code"),
        ):
            if releases:
                yield Row(
                    id=row_id + suffix,
                    effect=effect,
                    trust="established",
                    terms=(
                        Term("env", known.package, "version", "in", releases),
                        Term("request", SETTING, "value", "any", frozenset((family,))),
                        *own,
                    ),
                    component=known.package,
                    kind=kind,
                    code="ED390",
                    title=title + words,
                    symptom="",
                    fix=f"Install {pin}.",
                    pins=(pin,),
                    overrides=(),
                    mitigations=(),
                    sources=(known.source,),
                    date=self._date,
                    established_by="read from the registries in the wheels of all these releases",
                    origin="derived",
                )


def families_fault(document: Any) -> str:
    """Tell what is wrong with ``model_families.json``, "" for nothing."""
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        return f"expected an object with schema {_SCHEMA}"
    engines, families = document.get("engines"), document.get("families")
    if not isinstance(engines, dict) or not isinstance(families, dict):
        return "expected objects of engines and of families"
    if not isinstance(document.get("date"), str):
        return "expected a date"
    for name, engine in engines.items():
        if not isinstance(engine, dict) or not {"title", "newest"} <= set(engine):
            return f"{name}: expected title and newest"
    for family, entry in families.items():
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            return f"{family}: expected a name"
        for engine in engines:
            fault = _entry_fault(entry[engine]) if engine in entry else ""
            if fault:
                return f"{family}, {engine}: {fault}"
    return ""


def _entry_fault(entry: Any) -> str:
    keys = {"word", "in", "archive", "path", "line"}
    if not isinstance(entry, dict) or not keys <= set(entry):
        return f"expected {', '.join(sorted(keys))}"
    for spans in (entry["in"], entry.get("refused", ())):
        for span in spans:
            if len(span) != 2 or not all(try_version(text) for text in span):
                return f"expected the first and the last of releases, found {span!r}"
    return "" if entry["in"] else "expected releases that have it"


def _set_of(spans: Spans) -> VersionSet:
    if not spans:
        return VersionSet([])
    return VersionSet.parse("||".join(f">={first},<={last}" for first, last in spans))


def _words(spans: Spans) -> str:
    return ", ".join(first if first == last else f"{first} to {last}" for first, last in spans)
