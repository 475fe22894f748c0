"""In which releases of torch a C++ symbol is exported, and in which of CUDA's libraries and its
driver a function is: ``matrices/symbols.json``, made by ``scripts/measure_symbols`` from the wheels
for Linux. Only ``diagnose`` reads it.

It holds what some releases export and others do not, of libc10, libc10_cuda, libtorch_cpu and
libtorch_python, and of NVIDIA's wheels. A name that is not there is one that all of them have, or
that was not measured. What it says of packages was read in the wheels for x86_64; ``aarch64`` tells
of which releases those for aarch64 were read too (``versions``), and holds of packages whose wheels
differ the same tables once more.
"""

from __future__ import annotations

import re
from typing import Any, Collection, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ..model.pattern import pattern
from ..model.record import NamedTuple
from ..model.version import Version
from ..model.versions import enumerated, parse_version, releases_of
from .measured_rows import DRIVER
from .spans import (
    Span,
    are_spans,
    places_of,
    span_holds,
    spans_of,
    text_of_places,
    versions_fault,
)

__all__ = [
    "AARCH64",
    "SCHEMA",
    "TABLES",
    "Asker",
    "SymbolHistory",
    "as_read_on_aarch64",
    "askers_of",
    "histories_in_libraries",
    "history_of",
    "is_template",
    "qualified_name",
    "symbols_fault",
    "torch_of_wheels",
]

SCHEMA = 1
AARCH64 = "aarch64"
#: What is said by package, and of its releases.
TABLES = ("libraries", "asked", "fits", "links", "numpy")
_BY_PLACE = ("versions", "archives")
_NAME = pattern(r"~?[A-Za-z_]\w{0,120}")
_LENGTH = pattern(r"\d{1,3}")
_HEAD = pattern(r"_Z(?:T[ISTV]|GV)?N?[VK]*[RO]?(?=\d)")
#: ``x86_64``: where the wheels for aarch64 differ.
_PARTS = ("x86_64", "symbols", "cuda")


class SymbolHistory(NamedTuple):
    """Which of the releases of a package that were read, ``first`` to ``last``, export a symbol:
    spans.

    of_cuda: libc10_cuda exports it, which a build of torch without CUDA does not have.
    """

    symbol: str
    present: Tuple[Span, ...]
    first: str
    last: str
    versions: Tuple[str, ...]
    of_cuda: bool
    package: str = "torch"

    def has(self, version: Version) -> Optional[bool]:
        """Tell whether a release exports it; None for one that was not read."""
        return span_holds(self.present, self.versions, version.public)

    @property
    def begins(self) -> bool:
        """Whether the oldest release that was read has it: older ones may have it too."""
        return self.present[0][0] == self.first

    def releases(self) -> str:
        """Say which releases have it: "2.0.0 to 2.2.2", "2.3.0 and newer"."""
        words = [
            f"{first} and newer" if last == self.last else releases_of(first, last)
            for first, last in self.present
        ]
        return enumerated(words)

    def requirement(self, near: Optional[Version] = None) -> str:
        """Return the requirement for the span that is nearest to a release, else the newest."""
        first, last = self.present[-1]
        if near is not None and near < parse_version(self.present[0][0]):
            first, last = self.present[0]
        if first == last and self.first != first != self.last:
            return f"{self.package}=={first}"
        clauses = [f">={first}"] if first != self.first else []
        clauses += [f"<={last}"] if last != self.last else []
        return f"{self.package}{','.join(clauses)}"


class Asker(NamedTuple):
    """A package whose file needs a symbol of a library, and in which releases."""

    package: str
    file: str
    releases: Tuple[Span, ...]
    versions: Tuple[str, ...]


def as_read_on_aarch64(document: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the document with what it says of the wheels for aarch64 in the place of those for
    x86_64, and without releases of which no wheel for aarch64 was read. The driver is the same.
    """
    own: Mapping[str, Any] = document.get(AARCH64, {})
    read = {name: text.split() for name, text in own.get("versions", {}).items()}
    changed: Dict[str, Any] = {}
    for table in TABLES:
        values = document.get(table, {})
        changed[table] = {
            name: values[name] if name not in read else _restricted(values[name], read[name])
            for name in values
            if name in read or name == DRIVER
        }
        changed[table].update(own.get(table, {}))
    return {**document, **changed}


def _restricted(values: Mapping[str, Any], read: Collection[str]) -> Dict[str, Any]:
    """What a table says of some releases of a package: a value for each, or spans of places in
    their list, and texts that stand in the same order.
    """
    versions: Optional[Sequence[str]] = values.get("versions")
    if versions is None:
        return {version: values[version] for version in values if version in read}
    kept = [place for place, version in enumerate(versions) if version in read]
    lists = {key: [values[key][place] for place in kept] for key in _BY_PLACE if values.get(key)}
    places = {place: new for new, place in enumerate(kept)}
    return {**values, **lists, "symbols": _moved(values["symbols"], places)}


def _moved(by_span: Mapping[str, Any], places: Mapping[int, int]) -> Dict[str, Any]:
    """Objects by span with the places that are kept, in objects by anything else; what is of none
    of them is left out.
    """
    moved: Dict[str, Any] = {}
    for key, value in by_span.items():
        if isinstance(value, dict):
            inner = _moved(value, places)
            if inner:
                moved[key] = inner
            continue
        span = text_of_places(places[place] for place in places_of(key) if place in places)
        if span:
            moved[span] = f"{moved[span]} {value}" if span in moved else value
    return moved


def histories_in_libraries(document: Mapping[str, Any], symbol: str) -> List[SymbolHistory]:
    """Return the history of a function, or of a file (``libcudnn.so.9``), in each package of CUDA's
    libraries that has it in some releases and not in others.
    """
    histories = []
    for package, library in document.get("libraries", {}).items():
        versions: Sequence[str] = library["versions"]
        for spans, words in library["symbols"].items():
            if symbol in words and f" {symbol} " in f" {words} ":
                present = spans_of(spans, versions)
                ends = versions[0], versions[-1]
                histories.append(
                    SymbolHistory(symbol, present, *ends, tuple(versions), True, package)
                )
    return histories


def askers_of(document: Mapping[str, Any], provider: str, symbol: str) -> List[Asker]:
    """Return which packages have a file that needs a symbol of a library which varies."""
    askers = []
    for package, asked in document.get("asked", {}).items():
        for file, by_span in asked["symbols"].get(provider, {}).items():
            spans = [span for span, words in by_span.items() if symbol in words.split()]
            versions = tuple(asked["versions"])
            if spans:
                askers.append(Asker(package, file, spans_of(spans[0], versions), versions))
    return askers


def history_of(
    document: Mapping[str, Any], symbol: str, all_wheels: bool = False
) -> Optional[SymbolHistory]:
    """Return the history of a symbol, mangled or as a person reads it; None where none is known.

    Args:
        document: what was measured.
        symbol: its name, ``_ZN3c104cuda9SetDeviceEi`` or ``c10::cuda::SetDevice(int)``.
        all_wheels: those for aarch64 count in any case; they have the new C++ ABI from 2.6 on,
            those for x86_64 from 2.7 on.
    """
    if "::" in symbol:
        return _history_of_demangled(document, symbol, all_wheels)
    versions: Sequence[str] = document["versions"]
    mark = f" {symbol} "
    for part in _PARTS[all_wheels:]:
        for spans, words in document[part].items():
            if symbol in words and mark in f" {words} ":
                return SymbolHistory(
                    symbol,
                    spans_of(spans, versions),
                    versions[0],
                    versions[-1],
                    tuple(versions),
                    part == "cuda",
                )
    return None


def _history_of_demangled(
    document: Mapping[str, Any], symbol: str, all_wheels: bool
) -> Optional[SymbolHistory]:
    """Return the history of ``c10::cuda::SetDevice(int)``, where all functions of that name whose
    parameters may be these came and went together.
    """
    expression = _mangled(symbol)
    if expression is None:
        return None
    histories = [
        history
        for part in _PARTS[all_wheels:]
        for words in document[part].values()
        for mangled in expression.findall(words)
        if (history := history_of(document, mangled, all_wheels)) is not None
    ]
    return histories[0] if len({history.present for history in histories}) == 1 else None


#: Parameters as c++filt prints them and as they are encoded (itanium-cxx-abi, Mangling); what is
#: not here may be anything.
_ENCODED = {
    "int": "i", "bool": "b", "char": "c", "signed char": "a", "long": "l", "unsigned int": "j",
    "unsigned long": "m", "short": "s", "float": "f", "double": "d", "": "v",
    "char const*": r"(?:PKc|S\d?_)", "std::string": "Ss", "std::string const&": "RKSs",
    "c10::SourceLocation": r"NS\d?_14SourceLocationE",
}  # fmt: skip
_NEW_STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
_ENCODED[_NEW_STRING] = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
_ENCODED[f"{_NEW_STRING} const&"] = "RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"


def _mangled(symbol: str) -> Optional[re.Pattern[str]]:
    """Return the expression of the mangled names that a function may have; None for operators and
    templates.
    """
    path, bracket, rest = symbol.partition("(")
    names = path.split("::")
    if not all(_NAME.fullmatch(name) for name in names):
        return None
    last = f"{len(names[-1])}{names[-1]}"
    if len(names) > 1 and names[-1] in (names[-2], f"~{names[-2]}"):
        last = "D[012]" if names[-1].startswith("~") else "C[12]"
    whole = "".join(f"{len(name)}{name}" for name in names[:-1]) + last
    parameters = "[^ ]*"
    if bracket:
        parts = _split_parameters(rest.rpartition(")")[0])
        parameters = "".join(_ENCODED.get(part, "[^ ]+") for part in parts)
    return re.compile(rf"(?<![^ ])_ZNK?{whole}E{parameters}(?![^ ])")


def _split_parameters(text: str) -> List[str]:
    """Split at the commas outside of angle brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "<") - (letter == ">")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def torch_of_wheels(document: Mapping[str, Any], package: str) -> Mapping[str, FrozenSet[str]]:
    """Return by release of a package the releases of torch that export what its wheel needs: with
    others it cannot be loaded, with these it may.
    """
    versions: Sequence[str] = document["versions"]
    return {
        release: frozenset(versions[place] for place in places_of(spans))
        for release, spans in document["fits"].get(package, {}).items()
    }


def qualified_name(symbol: str) -> str:
    """Return ``c10::cuda::SetDevice`` of ``_ZN3c104cuda9SetDeviceEi``, as far as names follow one
    another; "" of a symbol that begins otherwise.
    """
    names, place = _names_of(symbol)
    rest = symbol[place : place + 2]
    if names and rest[:1] in ("C", "D") and rest[1:].isdigit():
        names.append(f"{'~' if rest[0] == 'D' else ''}{names[-1]}")
    return "::".join(names)


def is_template(symbol: str) -> bool:
    """Tell whether a mangled symbol is an instance of a template, or a member of one."""
    names, place = _names_of(symbol)
    return bool(names) and symbol[place : place + 1] == "I"


def _names_of(symbol: str) -> Tuple[List[str], int]:
    """Return the names that a mangled symbol begins with, and where they end."""
    match = _HEAD.match(symbol)
    place = match.end() if match is not None else len(symbol)
    names: List[str] = []
    number = _LENGTH.match(symbol, place)
    while number is not None:
        place = number.end() + int(number[0])
        names.append(symbol[number.end() : place])
        number = _LENGTH.match(symbol, place)
    return names, place


def symbols_fault(document: Any) -> str:
    """Tell what is wrong with ``symbols.json``, "" for nothing."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        return f"expected an object with schema {SCHEMA}"
    versions: Any = document.get("versions")
    fault = versions_fault(versions)
    if fault:
        return fault
    texts = []
    for part in _PARTS:
        spans = document.get(part)
        if not isinstance(spans, dict) or not _are_texts(spans):
            return f"expected an object of texts as {part}"
        texts += [(part, text) for text in spans]
    own: Any = document.get(AARCH64, {"versions": {}})
    if not isinstance(own, dict) or not _are_texts(own.get("versions")):
        return f"expected an object with texts as versions as {AARCH64}"
    fault = next(filter(None, map(_tables_fault, (document, {"fits": {}, **own}))), "")
    if fault:
        return fault
    texts += [
        ("fits", text)
        for tables in (document, own)
        for spans in tables.get("fits", {}).values()
        for text in spans.values()
    ]
    for part, text in texts:
        if not text or not are_spans(text, len(versions)):
            return f"{part}: expected spans of places below {len(versions)}, found {text!r}"
    return ""


def _are_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _tables_fault(tables: Mapping[str, Any]) -> str:
    """Tell what is wrong with the tables by package, "" for nothing."""
    fits = tables.get("fits")
    if not isinstance(fits, dict) or not all(isinstance(value, dict) for value in fits.values()):
        return "expected an object of objects as fits"
    return _libraries_fault(tables.get("libraries", {}), tables.get("asked", {}))


def _libraries_fault(libraries: Any, asked: Any) -> str:
    """Tell what is wrong with ``libraries`` and ``asked``, "" for nothing."""
    if not isinstance(libraries, dict) or not isinstance(asked, dict):
        return "expected objects as libraries and asked"
    for name, values in (*libraries.items(), *asked.items()):
        versions: Any = values.get("versions") if isinstance(values, dict) else None
        fault = versions_fault(versions)
        if fault:
            return f"{name}: {fault}"
        by_span = [values.get("symbols")]
        if name in asked and values is asked[name]:
            by_span = [
                spans
                for by_file in _values_of(values.get("symbols"))
                for spans in _values_of(by_file)
            ]
        for spans in by_span:
            if not isinstance(spans, dict) or not all(
                isinstance(words, str) and are_spans(text, len(versions))
                for text, words in spans.items()
            ):
                return f"{name}: expected texts by spans of places below {len(versions)}"
    return ""


def _values_of(value: Any) -> List[Any]:
    """The values of an object, one that is none of anything else."""
    return list(value.values()) if isinstance(value, dict) else [None]
