"""Rows about families of models, and values of launch settings, that a release of transformers or
of an engine does not know, about GPUs on which it does not take them, and about variables that a
release does not name anywhere.

``scripts/measure_surfaces`` writes what it found in the registries of the wheels
(``matrices/model_families.json``); here it becomes ordinary ``Row`` values. Only where a launch
names a family or such a setting, or a variable of an engine is set, is the file read.

A family in a text or a name of a model is no proof of a launch, so these do not block; what code
refuses by a check that raises does. Releases of an engine that hand what they do not know to
transformers are worth a note only.
"""

from __future__ import annotations

from itertools import chain

from ..model.record import NamedTuple
from ..model.row import Row, Source, Term
from ..model.versions import VersionSet, releases_of, try_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

    Spans = Sequence[Sequence[str]]

__all__ = ["CHOICES", "SETTING", "ModelFamilies", "families_fault"]

#: The launch setting that names a family.
SETTING = "model_family"
#: Launch settings whose values stand in registries.
CHOICES = ("quantization", "attention_backend", "dtype")
_CHOICE_WORDS = {
    "quantization": "the quantization",
    "attention_backend": "the attention backend",
    "dtype": "the data type",
}
#: Settings that frameworks of training have as well: said of an engine only where it serves.
_OF_ALL = frozenset(["dtype"])
_OTHER_CHOICE = {
    "attention_backend": "Leave the choice of the attention backend to the engine.",
    "dtype": "Start it with another data type (half), or use a newer GPU.",
}
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
        self._choices: Mapping[str, Any] = document.get("choices", {})
        self._states: Mapping[str, Sequence[str]] = document.get("states", {})
        self._variables: Dict[str, Dict[str, Spans]] = {
            engine: {
                name: [span.split() for span in spans.split(",")]
                for spans, names in by_spans.items()
                for name in names.split()
            }
            for engine, by_spans in document.get("variables", {}).items()
        }
        self._date = document.get("date", "")
        self._made: Dict[str, List[Row]] = {}

    def rows(self, family: str, names: Iterable[str]) -> List[Row]:
        """Return the rows about a family and one of these packages."""
        there = frozenset(names)
        return [row for row in self._rows_of(family) if row.terms[0].component in there]

    def rows_of_choice(self, setting: str, word: str, names: Iterable[str]) -> List[Row]:
        """Return the rows about a value of a launch setting and one of these packages."""
        there = frozenset(names)
        return [
            row
            for engine, words in self._choices.get(setting, {}).items()
            if engine in there and word in words
            for row in self._rows_about_choice(setting, word, engine, words[word])
        ]

    def rows_of_variable(self, variable: str, value: str, names: Iterable[str]) -> List[Row]:
        """Return the rows about a variable that is set and one of these packages: releases that do
        not name it, and what its value states to those that do.
        """
        there = frozenset(names)
        rows = [
            row
            for engine, of_engine in self._variables.items()
            if engine in there and variable in of_engine
            for row in self._rows_without_variable(variable, engine, of_engine[variable])
        ]
        setting, engine = self._states.get(variable, ("", ""))
        words = self._choices.get(setting, {}).get(engine, {})
        if engine in there and value in words:
            stated = Term("var", variable, "value", "any", frozenset((value,)))
            read = VersionSet.spanning(self._variables[engine][variable])
            about = self._rows_about_choice(setting, value, engine, words[value])
            rows += [_stated_by(row, stated, read) for row in about]
        return rows

    def _rows_without_variable(self, variable: str, engine: str, named: Spans) -> Iterator[Row]:
        """Yield the rows about releases before the first and after the last that name a variable;
        of those between nothing is said.
        """
        title = self._engines[engine]["title"]
        first, last = named[0][0], named[-1][1]
        newest = self._engines[engine]["newest"]
        sides = [("-unread", f"<{first}", f"before {first} does not read", "too-old")]
        if last != newest:
            spans = f">{last},<={newest}"
            sides.append(("-ignored", spans, f"after {last} does not read", "too-new"))
        for suffix, releases, words, kind in sides:
            yield self._choice_row(
                f"{variable.lower().replace('_', '-')}-{engine}{suffix}",
                (
                    Term("env", engine, "version", "in", VersionSet.parse(releases)),
                    Term("var", variable, "value", "present", True),
                ),
                effect="note",
                component=engine,
                kind=kind,
                title=f"{title} {words} {variable}",
                fix=f"Leave {variable} out: nothing follows from it.",
                sources=(Source(f"wheels of {engine}", f"{variable} stands in {_words(named)}"),),
                established_by="the text of all Python sources of these releases",
            )

    def all_rows(self) -> List[Row]:
        """Return the rows about all families, all values of settings and all variables."""
        families = [row for family in self._families for row in self._rows_of(family)]
        variables = [
            row
            for engine, of_engine in self._variables.items()
            for variable in of_engine
            for value in self._values_of(variable)
            for row in self.rows_of_variable(variable, value, (engine,))
        ]
        return [*families, *{row.id: row for row in variables}.values()] + [
            row
            for setting, engines in self._choices.items()
            for engine, words in engines.items()
            for word, entry in words.items()
            for row in self._rows_about_choice(setting, word, engine, entry)
        ]

    def _values_of(self, variable: str) -> Iterator[str]:
        yield ""
        setting, engine = self._states.get(variable, ("", ""))
        yield from self._choices.get(setting, {}).get(engine, {})

    def _rows_about_choice(
        self, setting: str, word: str, engine: str, entry: Mapping[str, Any]
    ) -> Iterator[Row]:
        """Yield the rows about one value: releases before the first and after the last that take
        it, and GPUs below the least that it takes.
        """
        title = self._engines[engine]["title"]
        asked = [Term("request", setting, "value", "any", frozenset((word,)))]
        if setting in _OF_ALL:
            asked.append(Term("request", "served_by", "value", "any", frozenset((engine,))))
        what = f"{_CHOICE_WORDS[setting]} {word}"
        place = (
            f"{entry['archive']}: {entry['path']}, line {entry['line']}" if "path" in entry else ""
        )
        source = Source(
            place or f"registries in the wheels of {engine}", f"{word} in {_words(entry['in'])}"
        )
        base = f"{setting.replace('_', '-')}-{word}-{engine}"
        first, last = entry["in"][0][0], entry["in"][-1][1]
        for suffix, spans, words, kind, pin in (
            ("", entry["before"], f"before {first} does not know", "too-old", f">={first}"),
            ("-removed", entry["after"], f"after {last} knows no more", "too-new", f"<={last}"),
        ):
            if spans:
                yield self._choice_row(
                    base + suffix,
                    (Term("env", engine, "version", "in", VersionSet.spanning(spans)), *asked),
                    component=engine,
                    kind=kind,
                    title=f"{title} {words} {what}",
                    fix=f"Install {engine}{pin}.",
                    pins=(f"{engine}{pin}",),
                    sources=(source,),
                )
        for capability, spans in entry.get("least", {}).items():
            yield self._choice_row(
                f"{base}-{capability}",
                (
                    Term("env", engine, "version", "in", VersionSet.spanning(spans)),
                    *asked,
                    Term(
                        "gpu",
                        "gpu",
                        "compute_capability",
                        "in",
                        VersionSet.parse(f"<{capability}"),
                    ),
                ),
                component=engine,
                kind="arch-missing",
                title=f"{title} takes {what} on GPUs of compute capability {capability} and newer",
                symptom=f"The quantization method {word} is not supported for the current GPU",
                fix=f"Use a GPU of compute capability {capability} or newer, or weights in another "
                "form.",
                sources=(source,),
            )

        for capabilities, spans in entry.get("refused", {}).items():
            gpus = capabilities.split()
            yield self._choice_row(
                f"{base}-on-{gpus[0]}" if len(gpus) == 1 else f"{base}-on-{gpus[0]}-{gpus[-1]}",
                (
                    Term("env", engine, "version", "in", VersionSet.spanning(spans)),
                    *asked,
                    Term("gpu", "gpu", "sm", "any", frozenset(gpus)),
                ),
                component=engine,
                kind="arch-missing",
                # A check that raises is met by whoever starts the engine so.
                effect="blocks" if "says" in entry else "degrades",
                title=f"{title} does not take {what} on GPUs of compute capability "
                f"{', '.join(gpus)}",
                symptom=entry.get("says")
                or f"Selected backend {word} is not valid for this configuration",
                fix=_OTHER_CHOICE.get(setting, "Leave the choice to the engine."),
                sources=(source,),
            )

    def _choice_row(self, row_id: str, terms: Tuple[Term, ...], **values: Any) -> Row:
        fields: Dict[str, Any] = {
            "effect": "degrades",
            "trust": "established",
            "code": "ED390",
            "symptom": "",
            "pins": (),
            "overrides": (),
            "mitigations": (),
            "date": self._date,
            "established_by": "read from registries and classes in the wheels of these releases",
            "origin": "derived",
        }
        return Row(id=row_id, terms=terms, **{**fields, **values})

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
        stand_in = VersionSet.spanning(known.stand_in) & ~VersionSet.spanning(known.refused)
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
            Term("env", other, "version", "lacks", VersionSet.spanning(spans))
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


def _stated_by(row: Row, stated: Term, read: VersionSet) -> Row:
    """Return a row about a setting for who sets a variable: of releases that read it."""
    engine, _, *others = row.terms
    releases = VersionSet.parse(str(engine.argument)) & read
    return row._replace(
        id=f"{row.id}-by-variable",
        terms=(engine._replace(argument=releases), stated, *others),
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
    faults = chain(
        _engine_faults(engines),
        _family_faults(families, engines),
        _choice_faults(document.get("choices", {})),
    )
    return next(faults, "")


def _engine_faults(engines: Mapping[str, Any]) -> Iterator[str]:
    for name, engine in engines.items():
        if not isinstance(engine, dict) or not {"title", "newest"} <= set(engine):
            yield f"{name}: expected title and newest"


def _family_faults(families: Mapping[str, Any], engines: Mapping[str, Any]) -> Iterator[str]:
    for family, entry in families.items():
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            yield f"{family}: expected a name"
            continue
        for engine in engines:
            fault = _entry_fault(entry[engine]) if engine in entry else ""
            if fault:
                yield f"{family}, {engine}: {fault}"


def _choice_faults(choices: Mapping[str, Any]) -> Iterator[str]:
    for setting, of_engines in choices.items():
        if setting not in CHOICES:
            yield f"choices: expected {', '.join(CHOICES)}, found {setting!r}"
            continue
        for engine, words in of_engines.items():
            for word, entry in words.items():
                if not entry.get("in") or not {"before", "after"} <= set(entry):
                    yield f"{setting}, {engine}, {word}: expected in, before and after"


def _entry_fault(entry: Any) -> str:
    keys = {"word", "in", "archive", "path", "line"}
    if not isinstance(entry, dict) or not keys <= set(entry):
        return f"expected {', '.join(sorted(keys))}"
    for spans in (entry["in"], entry.get("refused", ())):
        for span in spans:
            if len(span) != 2 or not all(try_version(text) for text in span):
                return f"expected the first and the last of releases, found {span!r}"
    return "" if entry["in"] else "expected releases that have it"


def _words(spans: Spans) -> str:
    return ", ".join(releases_of(*span) for span in spans)
