"""Rows that were measured from wheels: one release imports what another does not have, or its code
refuses the other's version.

``scripts/measure_surfaces`` writes what it measured as statements, one file for each importing
package (``matrices/surfaces/<name>.json``); here they become ordinary ``Row`` values, which check,
lock, fix and diagnose share.

The compiled form is one text, of which only the lines about two packages that are both there are
parsed:

* the first line is JSON: for each package the versions at which a range begins or ends, in order,
  for each importing package the day of its measurement, and the uses that it is there for;
* every other line is ``importing TAB imported TAB statements``, a JSON list of :class:`MissingName`
  as lists, without what follows from the rest (``_shortened``). Ranges are [first, last] places in
  the versions of the first line, so that two whole numbers decide whether a statement can speak of
  what is installed.
"""

from __future__ import annotations

import json

from ..model.record import NamedTuple
from ..model.row import Row, Source, Term
from ..model.versions import VersionSet, enumerated, parse_version, releases_of, try_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (
        Any,
        Callable,
        Dict,
        Iterable,
        Iterator,
        List,
        Mapping,
        Optional,
        Sequence,
        Tuple,
    )

    from ..model.version import Version

    Span = Sequence[int]

__all__ = [
    "BUILT_FOR_NUMPY_1",
    "CANNOT_LOAD",
    "DRIVER",
    "EXCLUDED_LATER",
    "FETCHES",
    "GLIBC",
    "GPU",
    "HAS_NO_LIBRARY",
    "MACHINE",
    "NOT_IN_EXTRA",
    "OVERRIDES",
    "OVERWRITES",
    "PASSES",
    "PYTHON",
    "REFUSES_CUDA",
    "MissingName",
    "Surfaces",
    "compile_surfaces",
    "measured_pairs",
    "surface_fault",
]


class MissingName(NamedTuple):
    """What one statement says, without its two packages.

    id: of the row, without the importing package. effect: blocks, where everybody who uses the
    package imports the line, or degrades. use: what the line is for, "" where it is for all.
    module, name: what is imported; no name: the module itself. importing, lacking: releases.
    others: [package, specifier] of third packages, "" for any version, "-" for not
    there, "!" before a range for anything outside it, "cuda" for a build for CUDA, "cuda==12.4" for
    one for this CUDA, "cxx11abi=false" for one with this C++ ABI; ["machine", "x86_64"] for a
    machine; ["$NAME", "-"] for a variable that is not set; ["--name", "true"] for a setting that is
    on.
    pin: the requirement that mends it, "" where none is known. archive, path, line: the witness.
    verb: what the code does with the versions that are "lacking" ("refuses"), "" for an import;
    text: the words of its message; without a verb an attribute that is read, no import. equal: the
    importing releases, as places, that refuse any other version than their own.
    """

    id: str
    effect: str
    use: str
    module: str
    name: str
    importing: Sequence[Span]
    lacking: Sequence[Span]
    others: Sequence[Sequence[str]]
    kind: str
    component: str
    pin: str
    archive: str
    path: str
    line: int
    verb: str = ""
    text: str = ""
    equal: Sequence[int] = ()
    fix: str = ""


#: The interpreter, where it stands for a package.
PYTHON = "python"
#: NVIDIA's driver, where it does: its versions are the newest CUDA that it serves.
DRIVER = "cuda-driver"
#: Any GPU of NVIDIA, where it does: its versions are compute capabilities, those before the first
#: that code is asked of like this.
GPU = "cuda-gpu"
#: The C library of the machine, where it stands for a package.
GLIBC = "glibc"
#: The architecture whose wheels alone were read, where it stands for a third package.
MACHINE = "machine"
#: What a statement about a library says that has no symbol which it needs of torch.
CANNOT_LOAD = "cannot be loaded with"
#: What a statement about a package says that has no file for the CUDA of torch.
HAS_NO_LIBRARY = "has no library for"
#: What a statement says of a build whose code raises beside a torch for another CUDA.
REFUSES_CUDA = "refuses the CUDA of"
#: What a statement says of two packages that install the same file.
OVERWRITES = "overwrites files of"
#: What a statement says of a check that the version of a partner begins with the own one.
BEGINS_OTHERWISE = "refuses, where it begins otherwise,"
#: What a statement says of extension modules that hold import_array() of NumPy 1.
BUILT_FOR_NUMPY_1 = "is built against numpy 1 and cannot be imported with"
#: What a statement says of releases that the next release excludes, by its metadata.
EXCLUDED_LATER = "is followed by a release that excludes"
#: What a statement says of releases outside of what the extra of that name asks for.
NOT_IN_EXTRA = "has an extra that does not take"
#: What a statement says of an argument that a function of another package does not take.
PASSES = "passes an argument that is unknown to"
#: What a statement says of a method that another package calls with more than it takes.
OVERRIDES = "overrides a method otherwise than it is called by"
#: What a statement says of a release whose setup.py takes a wheel of the project's release page.
FETCHES = "fetches, instead of building,"
#: What is said aloud, with the text of the statement.
_SAID = (
    "refuses",
    "disables",
    "leaves a part out with",
    "warns of",
    CANNOT_LOAD,
    REFUSES_CUDA,
    OVERWRITES,
    BEGINS_OTHERWISE,
)
_CODES = {
    "": "ED308",
    CANNOT_LOAD: "ED409",
    HAS_NO_LIBRARY: "ED411",
    OVERWRITES: "ED390",
    EXCLUDED_LATER: "ED313",
    PASSES: "ED308",
    OVERRIDES: "ED308",
    NOT_IN_EXTRA: "ED313",
    FETCHES: "ED409",
}


def measured_pairs(documents: Iterable[Mapping[str, Any]]) -> Dict[str, List[str]]:
    """Return for each importing package those of which it imports what they do not always have."""
    return {
        str(document["name"]): sorted({entry["provider"] for entry in document["statements"]})
        for document in documents
    }


def compile_surfaces(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return the compiled form of the documents of ``matrices/surfaces``."""
    ends: Dict[str, Dict[str, None]] = {}
    ordered = sorted(documents, key=lambda document: str(document["name"]))
    for document in ordered:
        for entry in document["statements"]:
            for name, spans in (
                (document["name"], entry["in"]),
                (entry["provider"], entry["lacking"]),
            ):
                ends.setdefault(name, {}).update(
                    (version, None) for span in spans for version in span
                )
            ends[document["name"]].update((version, None) for version in entry.get("equal", ()))
    blocked = {
        document["name"]
        for document in ordered
        if any(_stops_import(entry["id"], entry["effect"]) for entry in document["statements"])
    }
    importers: Dict[str, Dict[str, Any]] = {}
    for document in ordered:
        for provider, spans in document.get("imports", {}).items():
            if provider in blocked:
                importers.setdefault(provider, {})[document["name"]] = spans
                ends.setdefault(document["name"], {}).update(
                    (version, None) for span in spans for version in span
                )
    versions = {name: sorted(ends[name], key=parse_version) for name in sorted(ends)}
    places = {
        name: {version: place for place, version in enumerate(ordered_ends)}
        for name, ordered_ends in versions.items()
    }
    head = {
        "versions": versions,
        "dates": {document["name"]: document["date"] for document in ordered},
        "purposes": {
            document["name"]: document["purpose"] for document in ordered if "purpose" in document
        },
        "importers": {
            provider: {
                consumer: [[places[consumer][end] for end in span] for span in spans]
                for consumer, spans in by_consumer.items()
            }
            for provider, by_consumer in sorted(importers.items())
        },
    }
    lines = [_dumps(head)]
    for document in ordered:
        by_provider: Dict[str, List[Any]] = {}
        for entry in document["statements"]:
            statement = _compiled(document["name"], entry, places)
            by_provider.setdefault(entry["provider"], []).append(
                _shortened(statement, document["name"], entry["provider"])
            )
        lines += [
            f"{document['name']}\t{provider}\t{_dumps(by_provider[provider])}"
            for provider in sorted(by_provider)
        ]
    return "\n".join(lines) + "\n"


_REQUIRED = {
    "id": str,
    "provider": str,
    "module": str,
    "name": str,
    "effect": str,
    "in": list,
    "lacking": list,
    "kind": str,
    "component": str,
    "archive": str,
    "path": str,
    "line": int,
}


def surface_fault(document: Any, name: str) -> str:
    """Tell what is wrong with a file of ``matrices/surfaces``, "" for nothing."""
    if not isinstance(document, dict) or document.get("schema") != 1:
        return "expected an object with schema 1"
    if document.get("name") != name or not isinstance(document.get("date"), str):
        return f"expected name {name!r} and a date, found {document.get('name')!r}"
    purpose, statements = document.get("purpose", []), document.get("statements")
    if not isinstance(purpose, list) or not all(isinstance(use, str) for use in purpose):
        return "expected a list of uses as purpose"
    if not isinstance(statements, list):
        return "expected a list of statements"
    for number, entry in enumerate(statements, 1):
        fault = _statement_fault(entry)
        if fault:
            return f"statement {number}: {fault}"
    return ""


def _statement_fault(entry: Any) -> str:
    """Tell what is wrong with a statement of such a file, "" for nothing."""
    for key, kind in _REQUIRED.items():
        if not isinstance(entry, dict) or not isinstance(entry.get(key), kind):
            return f"expected {key} to be of type {kind.__name__}"
    if entry["effect"] not in ("blocks", "degrades", "note"):
        return f"expected blocks, degrades or note, found {entry['effect']!r}"
    spans = [*entry["in"], *entry["lacking"]]
    others = entry.get("with", [])
    if not isinstance(others, list) or not all(_is_pair(pair) for pair in [*spans, *others]):
        return "expected pairs of texts in in, lacking and with"
    versions = [version for span in spans for version in span]
    wrong = next((version for version in versions if try_version(version) is None), None)
    return "" if wrong is None else f"{wrong!r} is no version"


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, list) and len(value) == 2 and all(isinstance(text, str) for text in value)
    )


def _compiled(
    consumer: str, entry: Mapping[str, Any], places: Mapping[str, Mapping[str, int]]
) -> MissingName:
    own, others = places[consumer], places[entry["provider"]]
    return MissingName(
        entry["id"],
        entry["effect"],
        entry.get("use", ""),
        entry["module"],
        entry["name"],
        [[own[first], own[last]] for first, last in entry["in"]],
        [[others[first], others[last]] for first, last in entry["lacking"]],
        entry.get("with", []),
        entry["kind"],
        entry["component"],
        entry.get("pin", ""),
        entry["archive"],
        entry["path"],
        entry["line"],
        entry.get("verb", ""),
        entry.get("text", ""),
        [own[version] for version in entry.get("equal", ())],
        entry.get("fix", ""),
    )


_PLACE_OF = {name: place for place, name in enumerate(MissingName._fields)}
_STARTS = ("imports", "uses")
_WHEEL = "-py3-none-any.whl"
#: Words that stand in many statements, by field: written as their place here.
_WORDS: Mapping[str, Sequence[str]] = {
    "effect": ("blocks", "degrades", "note"),
    "kind": ("too-old", "too-new", "version-mismatch", "abi-mismatch", "bad-version"),
    "verb": (EXCLUDED_LATER, NOT_IN_EXTRA, PASSES, OVERRIDES, CANNOT_LOAD, "refuses", "disables"),
}


def _shortened(statement: MissingName, consumer: str, provider: str) -> List[Any]:
    """A statement as it is written: words that many have as numbers, of an import its id as well,
    of the two packages the one that is to change, and of a wheel for every platform its version
    alone; without defaults at its end.
    """
    values: List[Any] = list(statement)
    for name, words in _WORDS.items():
        word = getattr(statement, name)
        values[_PLACE_OF[name]] = words.index(word) if word in words else word
    what = f"{statement.module}.{statement.name}" if statement.name else statement.module
    ids = [f"{start}-{what}" for start in _STARTS]
    values[0] = ids.index(statement.id) if statement.id in ids else statement.id
    both = (consumer, provider)
    if statement.component in both:
        values[_PLACE_OF["component"]] = both.index(statement.component)
    start = f"{consumer.replace('-', '_')}-"
    if statement.archive.startswith(start) and statement.archive.endswith(_WHEEL):
        version = statement.archive[len(start) : -len(_WHEEL)]
        values[_PLACE_OF["archive"]] = version if "-" not in version else statement.archive
    while values[-1] in ("", []):
        values.pop()
    return values


def _in_full(values: List[Any], consumer: str, provider: str) -> MissingName:
    """A statement from how it is written."""
    statement = MissingName(*values)
    full: Dict[str, Any] = {}
    for name, words in _WORDS.items():
        word = getattr(statement, name)
        if not isinstance(word, str):
            full[name] = words[word]
    if not isinstance(statement.id, str):
        what = f"{statement.module}.{statement.name}" if statement.name else statement.module
        full["id"] = f"{_STARTS[statement.id]}-{what}"
    if not isinstance(statement.component, str):
        full["component"] = (consumer, provider)[statement.component]
    if "-" not in statement.archive and " " not in statement.archive:
        full["archive"] = f"{consumer.replace('-', '_')}-{statement.archive}{_WHEEL}"
    return statement._replace(**full)


def _stops_import(row_id: str, effect: str) -> bool:
    """Tell whether a statement is about the import of the package itself, whatever it is used
    for.
    """
    return effect == "blocks" or row_id.startswith("imports-")


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _merged(spans: Iterable[Tuple[str, str]]) -> List[Tuple[str, str]]:
    """Return spans of releases in their order, those that overlap as one."""
    merged: List[Tuple[str, str]] = []
    for first, last in sorted(spans, key=lambda span: parse_version(span[0])):
        if merged and parse_version(first) <= parse_version(merged[-1][1]):
            before, ends = merged.pop()
            first, last = before, max(ends, last, key=parse_version)
        merged.append((first, last))
    return merged


class Surfaces:
    """The statements of a compiled text."""

    def __init__(self, text: str) -> None:
        self._text, _, body = text.partition("\n")
        self._parsed: Optional[Mapping[str, Any]] = None  # when a statement is asked for
        self._lines: Dict[str, List[Tuple[str, str]]] = {}
        self._made: Dict[Tuple[str, str], List[Row]] = {}
        for line in body.splitlines():
            consumer, provider, statements = line.split("\t", 2)
            self._lines.setdefault(consumer, []).append((provider, statements))

    @property
    def _head(self) -> Mapping[str, Any]:
        if self._parsed is None:
            self._parsed = json.loads(self._text or '{"versions":{},"dates":{}}')
        return self._parsed

    @property
    def consumers(self) -> Tuple[str, ...]:
        """The packages whose imports were measured and do not always meet what they ask for."""
        return tuple(self._lines)

    @property
    def date(self) -> str:
        """The day of the newest measurement, "" where there is none."""
        return max(self._head["dates"].values(), default="")

    def rows(
        self, names: Iterable[str], version_of: Callable[[str], Optional[Version]] = lambda _: None
    ) -> Iterator[Row]:
        """Yield the rows about two of these packages.

        Args:
            names: Packages that are there.
            version_of: Gives the version of one where it is known: rows that speak of other
                releases are left out.
        """
        there = frozenset(names)
        places: Dict[str, Optional[int]] = {}
        for consumer in there:
            for provider, text in self._lines.get(consumer, ()):
                if provider not in there and provider not in _OF_HOST:
                    continue
                own = self._place(consumer, version_of, places)
                other = self._place(provider, version_of, places)
                if own is None and other is None:
                    yield from self._rows_of_pair(consumer, provider, text)
                    continue
                for values in json.loads(text):
                    statement = _in_full(values, consumer, provider)
                    if statement.equal:
                        yield from self._equal_rows(consumer, provider, statement, own)
                    elif _holds(statement.importing, own) and _holds(statement.lacking, other):
                        yield self._row(consumer, provider, statement)

    def importers(
        self, row: Row, names: Iterable[str], version_of: Callable[[str], Optional[Version]]
    ) -> List[str]:
        """Return which of these packages, of the releases that are there, import the one whose
        import a row stops whenever they are used.
        """
        if not _stops_import(row.id, row.effect):
            return []
        return self.importers_of(row.terms[0].component, names, version_of)

    def importers_of(
        self, package: str, names: Iterable[str], version_of: Callable[[str], Optional[Version]]
    ) -> List[str]:
        """Return which of these packages, of the releases that are there, import a package whenever
        they are used.
        """
        by_name = self._head.get("importers", {}).get(package, {})
        importing = []
        for name in names:
            version = version_of(name) if name in by_name else None
            if version is not None and version in VersionSet.spanning(
                self._spans(name, by_name[name])
            ):
                importing.append(name)
        return importing

    def rows_of(self, consumer: str) -> Iterator[Row]:
        """Yield all rows about what one package imports."""
        for provider, text in self._lines.get(consumer, ()):
            yield from self._rows_of_pair(consumer, provider, text)

    def missing_name(
        self, module: str, name: str
    ) -> Optional[Tuple[str, str, List[Tuple[str, str]], Dict[str, List[Tuple[str, str]]]]]:
        """Return which package lacks a name in some releases, its oldest that was read, which lack
        it, and which releases of others import it; None where nobody was seen to.
        """
        lacking: Tuple[str, List[Tuple[str, str]]] = ("", [])
        importers: Dict[str, List[Tuple[str, str]]] = {}
        for consumer, pairs in self._lines.items():
            for provider, text in pairs:
                if f'"{module}"' not in text or lacking[0] not in ("", provider):
                    continue
                for values in json.loads(text):
                    statement = _in_full(values, consumer, provider)
                    same = (statement.module, statement.name) == (module, name)
                    if same and not statement.verb and not statement.equal:
                        lacking = provider, self._spans(provider, statement.lacking)
                        importers.setdefault(consumer, []).extend(
                            self._spans(consumer, statement.importing)
                        )
        provider, spans = lacking
        if not spans:
            return None
        merged = {consumer: _merged(own) for consumer, own in importers.items()}
        return provider, self._head["versions"][provider][0], spans, merged

    def _rows_of_pair(self, consumer: str, provider: str, text: str) -> List[Row]:
        """All rows about what one package imports of another, made once."""
        rows = self._made.get((consumer, provider))
        if rows is None:
            rows = self._made[consumer, provider] = []
            for values in json.loads(text):
                statement = _in_full(values, consumer, provider)
                if statement.equal:
                    rows += self._equal_rows(consumer, provider, statement, None)
                else:
                    rows.append(self._row(consumer, provider, statement))
        return rows

    def _place(
        self,
        name: str,
        version_of: Callable[[str], Optional[Version]],
        places: Dict[str, Optional[int]],
    ) -> Optional[int]:
        """The last end of a range that is not above what is installed; None where that is not
        known.
        """
        if name not in places:
            version = version_of(name)
            ends = self._head["versions"][name]
            places[name] = None if version is None else _last_not_above(version, ends)
        return places[name]

    def _equal_rows(
        self, consumer: str, provider: str, statement: MissingName, own: Optional[int]
    ) -> Iterator[Row]:
        """Yield for each release of a package that it takes no other release of its partner."""
        for place in statement.equal:
            if own is not None and place != own:
                continue
            version = self._head["versions"][consumer][place]
            same = VersionSet.parse(f"=={version}")
            if statement.verb == BEGINS_OTHERWISE and version.replace(".", "").isdigit():
                same = VersionSet.parse(
                    "||".join(f"=={version}{more}.*" for more in ("", *map(str, range(10))))
                )
            row = self._row(consumer, provider, statement)
            yield row._replace(
                id=f"{statement.id}-{version}:{consumer}",
                terms=(
                    Term("env", consumer, "version", "in", same),
                    Term("env", provider, "version", "lacks", same),
                    Term("env", provider, "version", "present", True),
                    *row.terms[2:],
                ),
                title=f"{consumer} {version} takes no {provider} of another version",
                fix=f"Install {provider}=={version}.",
                pins=(f"{provider}=={version}",),
            )

    def _row(self, consumer: str, provider: str, statement: MissingName) -> Row:
        importing = self._spans(consumer, statement.importing)
        lacking = self._spans(provider, statement.lacking)
        terms = [
            Term("env", consumer, "version", "in", VersionSet.spanning(importing)),
            _OF_HOST[provider](lacking)
            if provider in _OF_HOST
            else Term("env", provider, "version", "in", VersionSet.spanning(lacking)),
        ]
        terms += [_other_term(name, asked) for name, asked in statement.others]
        if statement.verb in (CANNOT_LOAD, FETCHES):  # the wheels that were read are for Linux
            terms.append(Term("host", "host", "platform", "any", frozenset(["linux"])))
        what = f"{statement.module}.{statement.name}" if statement.name else statement.module
        who = f"{consumer} {_words(importing)}"
        used = f"{statement.use} of {who}" if statement.use else who
        title = f"{used} "
        if statement.verb:
            quote = statement.text
            # The bound of a check, or the answer of a function, is no line of a log.
            symptom = quote if statement.verb in _SAID and " " in quote else ""
            if statement.verb == CANNOT_LOAD and provider != "torch":
                symptom = ""  # signatures know each of these lines, and who else may be behind it
            other = _NAMES_OF_HOST.get(provider, provider)
            title, symptom = _of_verb(who, used, statement, provider, lacking) or (
                f"{title}{statement.verb} {other} {_words(lacking)}",
                symptom,
            )
        elif statement.text:  # an attribute of a module
            title += f"uses {what}, which {provider} {_words(lacking)} does not have"
            quote = statement.text
            symptom = f"module '{statement.module}' has no attribute '{statement.name}'"
        elif statement.name:
            title += f"imports {what}, which {provider} {_words(lacking)} does not have"
            quote = f"from {statement.module} import {statement.name}"
            symptom = f"cannot import name '{statement.name}' from '{statement.module}'"
        else:
            title += f"imports {what}, which {provider} {_words(lacking)} does not have"
            quote = f"import {statement.module}"
            symptom = f"No module named '{statement.module}'"
        return Row(
            id=f"{statement.id}:{consumer}",
            effect=statement.effect,
            trust="established",
            terms=tuple(terms),
            component=statement.component,
            kind=statement.kind,
            code="ED190" if provider == GPU else _CODES.get(statement.verb, "ED309"),
            title=title,
            symptom=symptom,
            fix=_fix(consumer, provider, statement, lacking),
            pins=(statement.pin,) if statement.pin else (),
            overrides=(),
            mitigations=(),
            sources=(
                Source(
                    f"{statement.archive}: {statement.path}"
                    + (f", line {statement.line}" if statement.line else ""),
                    "" if statement.verb == FETCHES else quote,
                ),
            ),
            date=self._head["dates"][consumer],
            established_by="read from what builds and fetches the wheels of all these releases"
            if statement.verb == FETCHES
            else "read from the wheels of all these releases",
            origin="derived",
            purpose=not statement.verb
            and statement.use in self._head.get("purposes", {}).get(consumer, ()),
        )

    def _spans(self, name: str, spans: Sequence[Span]) -> List[Tuple[str, str]]:
        versions = self._head["versions"][name]
        return [(versions[first], versions[last]) for first, last in spans]


def _of_verb(
    who: str,
    used: str,
    statement: MissingName,
    provider: str,
    lacking: Sequence[Tuple[str, str]],
) -> Optional[Tuple[str, str]]:
    """Title and symptom of a statement whose verb does not say it all."""
    quote, consumer = statement.text, who.split()[0]
    if provider == GPU:
        return _of_gpu(used, statement, lacking), quote
    if statement.verb == HAS_NO_LIBRARY:
        return f"{who} {statement.verb} the CUDA of this torch, {quote}", quote
    if statement.verb == REFUSES_CUDA:
        title = (
            f"This {consumer} is built for CUDA {statement.name}, and torch for another: "
            f"import {consumer} fails"
        )
        return title, quote if " " in quote else ""
    if statement.verb == FETCHES:
        return f"{who} {statement.verb} {quote}", statement.name
    if statement.verb in (PASSES, OVERRIDES):
        return _of_argument(statement, used, f"{provider} {_words(lacking)}")
    if statement.verb == OVERWRITES:
        title = f"{consumer} and {provider} both install {statement.name}: who came last has it"
        return title, quote if " " in quote else ""
    return None


def _of_gpu(who: str, statement: MissingName, lacking: Sequence[Tuple[str, str]]) -> str:
    """The title of a statement about GPUs, with the setting and the packages that it asks for."""
    asked = [name[2:] for name, _ in statement.others if name.startswith("--")]
    beside = [name for name, _ in statement.others if not name.startswith("--")]
    words = f" with {asked[0]}" if asked else ""
    words += f" and this {beside[0]}" if beside else ""
    gpus = [
        f"up to {last}" if first == _FIRST_CAPABILITY else releases_of(first, last)
        for first, last in lacking
    ]
    return f"{who}{words} refuses GPUs of compute capability {enumerated(gpus)}"


def _of_argument(statement: MissingName, who: str, releases: str) -> Tuple[str, str]:
    """The title of a statement about an argument, and what Python 3.10 and newer print."""
    name, text = statement.name, statement.text
    last = name.rpartition(".")[2]
    if statement.verb == PASSES:
        error = f"{name}() got an unexpected keyword argument '{text}'"
        if last[:1].isupper():
            error = f"{last}.__init__() got an unexpected keyword argument '{text}'"
        return f"{who} passes {text}= to {name}, which {releases} does not take", error
    method = f"{statement.use}.{last}()"
    error = f"{method} got an unexpected keyword argument '{text}'"
    if " " in text:
        error = f"{method} takes … positional arguments but"
    return f"{who} overrides {name} without {text}, with which {releases} calls it", error


def _fix(
    consumer: str, provider: str, statement: MissingName, lacking: Sequence[Tuple[str, str]]
) -> str:
    if statement.fix:
        return statement.fix
    if statement.verb == REFUSES_CUDA:
        return f"Install {consumer} and {provider} from one index, built for the same CUDA."
    if statement.verb == OVERWRITES:
        return f"Uninstall both, then install one of {consumer} and {provider}."
    if provider == PYTHON and (statement.kind, statement.component) == ("too-old", consumer):
        older = f"a Python before {lacking[0][0]}"
        return f"Install {statement.pin}, or take {older}." if statement.pin else f"Take {older}."
    if provider == DRIVER and statement.pin:
        return f"Update the driver to {statement.pin.rpartition('>=')[2]} or newer."
    if not statement.pin and statement.verb in (PASSES, OVERRIDES):
        return f"No releases of {consumer} and {provider} are known that go together in this."
    return f"Install {statement.pin}." if statement.pin else ""


def _last_not_above(version: Version, ends: Sequence[str]) -> int:
    """Return the place of the last of some versions, in order, that is not above one; -1 for none.

    By bisection, which parses a few of them only.
    """
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        if version < parse_version(ends[middle]):
            high = middle
        else:
            low = middle + 1
    return low - 1


def _holds(spans: Sequence[Span], place: Optional[int]) -> bool:
    """Whether a range may hold what is at a place; ``bind`` decides what is above its last end."""
    return place is None or any(first <= place <= last for first, last in spans)


def _python_term(spans: Sequence[Tuple[str, str]]) -> Term:
    """A release of the interpreter, 3.12, is all its patches."""
    ends = [(first, last.split(".")) for first, last in spans]
    ranges = [f">={first},<{major}.{int(minor) + 1}" for first, (major, minor) in ends]
    return Term("host", "host", "python", "in", VersionSet.parse("||".join(ranges)))


def _driver_term(spans: Sequence[Tuple[str, str]]) -> Term:
    """Drivers before the first that serves a CUDA: what came with that is in every newer one."""
    first, (major, minor) = spans[0][0], spans[-1][1].split(".")
    newer = f"{major}.{int(minor) + 1}"
    return Term("host", "host", "ptx", "in", VersionSet.parse(f">={first},<{newer}"))


def _gpu_term(spans: Sequence[Tuple[str, str]]) -> Term:
    """GPUs of these compute capabilities, those before the first that is ever asked for too."""
    ranges = [
        f"<={last}" if first == _FIRST_CAPABILITY else f">={first},<={last}"
        for first, last in spans
    ]
    return Term("gpu", "gpu", "compute_capability", "in", VersionSet.parse("||".join(ranges)))


def _glibc_term(spans: Sequence[Tuple[str, str]]) -> Term:
    """Any glibc up to the newest of these: what came with a later one is in none before."""
    return Term("host", "host", "glibc", "in", VersionSet.parse(f"<={spans[-1][1]}"))


_FIRST_CAPABILITY = "6.0"
_OF_HOST = {PYTHON: _python_term, DRIVER: _driver_term, GPU: _gpu_term, GLIBC: _glibc_term}
_NAMES_OF_HOST = {PYTHON: "Python", DRIVER: "a driver that serves CUDA"}


def _other_term(name: str, asked: str) -> Term:
    if name == PYTHON:
        return Term("host", "host", "python", "in", VersionSet.parse(asked))
    if name == MACHINE:
        return Term("host", "host", "architecture", "any", frozenset((asked,)))
    if name.startswith("--"):
        return Term("request", name[2:], "value", "any", frozenset((asked, asked.capitalize())))
    if name.startswith("$"):
        return Term("var", name[1:], "value", "present", asked != "-")
    if asked in ("", "-"):
        return Term("env", name, "version", "present", not asked)
    if asked.startswith("cuda"):
        cuda = VersionSet.parse(asked[4:]) if asked != "cuda" else VersionSet.all()
        return Term("env", name, "cuda", "in", cuda)
    if asked.startswith("cxx11abi="):
        return Term("env", name, "cxx11abi", "any", frozenset((asked[9:],)))
    operator = "lacks" if asked.startswith("!") else "in"
    return Term("env", name, "version", operator, VersionSet.parse(asked.lstrip("!")))


def _words(spans: Sequence[Tuple[str, str]]) -> str:
    return enumerated([releases_of(*span) for span in spans])
