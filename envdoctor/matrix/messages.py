"""What packages raise: texts as templates, the places that raise them, under which conditions, and
in which releases.

``matrices/messages/<package>.json`` holds what ``scripts/measure_surfaces --messages`` read from
the sources of releases, ``matrices/messages.json`` the words that the messages of each package are
found by. Only ``diagnose`` reads them, and only for the exception that a run failed with.

A template is a text with ``{expression}`` where the source fills one in, ``{{`` and ``}}`` for
braces, white space as one blank.
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..model.pattern import pattern
from ..model.record import NamedTuple
from ..model.version import Version
from ..model.versions import parse_version
from .spans import Span, are_spans, are_texts, head_fault, packages_fault, spans_of

__all__ = [
    "SCHEMA",
    "Matched",
    "PackageMessages",
    "RaisedAt",
    "index_fault",
    "literals_of",
    "messages_fault",
    "owners_of_text",
    "words_of",
]

SCHEMA = 1
_HOLE = pattern(r"\{\{|\}\}|\{([^{}]*)\}")
_WORD = pattern(r"\w{3,}")
_MOST_VALUE = 120  # characters of what was filled in


class RaisedAt(NamedTuple):
    """A place that raises a message. function: its qualified name, "" at module level. conditions:
    expressions of the source that hold there, outermost first. present: spans of releases. alike:
    how many other functions raise it under the same conditions.
    """

    raises: str
    module: str
    function: str
    line: int
    conditions: Tuple[str, ...]
    present: Tuple[Span, ...]
    alike: int

    @property
    def path(self) -> str:
        """The module's file, without its ending."""
        return self.module.replace(".", "/")


class Matched(NamedTuple):
    """A message that is the text of an exception.

    values: what stands in the text for the expressions of the template. letters: of its own text.
    share: of the text that is the template's own. places: the newest; ``more`` are left out.
    present: spans of the releases that have it, of those from ``first`` to ``last`` that were read.
    """

    package: str
    template: str
    values: Mapping[str, str]
    letters: int
    share: float
    places: Tuple[RaisedAt, ...]
    more: int
    versions: Tuple[str, ...]
    present: Tuple[Span, ...]

    def has(self, version: Version, present: Optional[Sequence[Span]] = None) -> Optional[bool]:
        """Tell whether a release has it, or one that lies between two that do; None for one that
        lies between those that have it and others, or outside of all that were read.
        """
        spans = self.present if present is None else present
        if any(parse_version(first) <= version <= parse_version(last) for first, last in spans):
            return True
        read = [parse_version(text) for text in self.versions]
        if not read[0] <= version <= read[-1]:
            return None
        if version in read:
            return False
        before = max(one for one in read if one < version)
        after = min(one for one in read if one > version)
        ends = {parse_version(text) for span in spans for text in span}
        return None if before in ends or after in ends else False

    @property
    def before(self) -> str:
        """The newest release read before those that have it, "" where the oldest read has it."""
        place = self.versions.index(self.present[0][0])
        return self.versions[place - 1] if place else ""

    @property
    def after(self) -> str:
        """The oldest release read after those that have it, "" where the newest read has it."""
        place = self.versions.index(self.present[-1][1]) + 1
        return self.versions[place] if place < len(self.versions) else ""


class PackageMessages:
    """What one package raises, from its document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self.package: str = document["name"]
        self._versions: Tuple[str, ...] = tuple(document["versions"])

    def find(self, message: str) -> List[Matched]:
        """Return the messages that are the text of an exception, or its first lines; those with
        more text of their own first.
        """
        text, ends = _normalized(message)
        by_word = self._document["messages"]
        matches = []
        for word in dict.fromkeys(_WORD.findall(text)):
            for entry in by_word.get(word, ()):
                values = _values(entry[0], text, ends)
                if values is not None:
                    matches.append(self._matched(entry, *values))
        return sorted(matches, key=lambda match: -match.letters)

    def _matched(self, entry: Sequence[Any], values: Dict[str, str], length: int) -> Matched:
        template, spans, places, more = entry
        own = "".join(literals_of(template))
        return Matched(
            self.package,
            template,
            values,
            sum(map(str.isalpha, own)),
            len(own) / max(1, length),
            tuple(self._place(place, spans) for place in places),
            more,
            self._versions,
            spans_of(spans, self._versions),
        )

    def _place(self, place: Sequence[Any], every: str) -> RaisedAt:
        raises, module, function, line, conditions, spans, alike = place
        name = self._document["modules"][module]
        present = spans_of(spans or every, self._versions)
        return RaisedAt(raises, name, function, line, tuple(conditions), present, alike)


def owners_of_text(index: Mapping[str, Any], message: str) -> List[str]:
    """Return the packages that may raise a text, by the words that their messages are found by."""
    words = {f" {word} " for word in _WORD.findall(message)}
    return [
        package
        for package, keys in index.get("packages", {}).items()
        if any(word in f" {keys} " for word in words)
    ]


def literals_of(template: str) -> List[str]:
    """Return the texts between, before and after the holes of a template."""
    return [literal for literal, _ in _parts(template)]


def words_of(template: str) -> FrozenSet[str]:
    """Return the words of a template that stand whole in each text that it makes."""
    words = set()
    parts = list(_parts(template))
    for number, (literal, _) in enumerate(parts):
        for match in _WORD.finditer(literal):
            joins_before = number > 0 and match.start() == 0
            joins_after = number < len(parts) - 1 and match.end() == len(literal)
            if not joins_before and not joins_after and not match.group().isdigit():
                words.add(match.group())
    return frozenset(words)


def _parts(template: str) -> Iterator[Tuple[str, str]]:
    """Yield each text with the hole behind it, the last with ""."""
    literal = ""
    end = 0
    for match in _HOLE.finditer(template):
        literal += template[end : match.start()]
        end = match.end()
        if match.group(1) is None:
            literal += match.group()[0]
        else:
            yield literal, match.group(1)
            literal = ""
    yield literal + template[end:], ""


def _normalized(message: str) -> Tuple[str, List[int]]:
    """Return a text with white space as one blank, and where in it lines end."""
    text = ""
    ends = []
    for line in message.split("\n"):
        text = f"{text} {' '.join(line.split())}".strip()
        ends.append(len(text))
    return text, ends


def _values(template: str, text: str, ends: Sequence[int]) -> Optional[Tuple[Dict[str, str], int]]:
    """Return what a text has in the holes of a template, and how much of it that is: up to the end
    of one of its lines. None where it is another text.

    Each part is looked for from where the one before ends, as for a pattern of a file's name: no
    text takes longer than its length times the number of parts.
    """
    values: Dict[str, str] = {}
    position = 0
    hole = None
    parts = list(_parts(template))
    for number, (literal, next_hole) in enumerate(parts):
        is_last = number == len(parts) - 1
        start = _place_of(literal, text, position, ends, hole is None, is_last)
        if start < 0:
            return None
        if hole is not None and hole != "…":
            values[hole] = text[position:start][:_MOST_VALUE]
        position = start + len(literal)
        hole = next_hole
    return values, position


def _place_of(
    literal: str, text: str, position: int, ends: Sequence[int], is_first: bool, is_last: bool
) -> int:
    """Return where a part of a template stands, -1 for nowhere."""
    if is_last:
        for start in (end - len(literal) for end in ends):
            fits = start == position if is_first else start >= position
            if fits and text.startswith(literal, start):
                return start
        return -1
    if is_first:
        return position if text.startswith(literal, position) else -1
    return text.find(literal, position)


def index_fault(document: Any) -> str:
    """Tell what is wrong with ``messages.json``, "" for nothing."""
    return packages_fault(document, SCHEMA)


def messages_fault(document: Any) -> str:
    """Tell what is wrong with a file of ``messages/``, "" for nothing."""
    fault = head_fault(document, SCHEMA)
    if fault:
        return fault
    modules: Any = document.get("modules")
    if not are_texts(modules):
        return "expected names of modules"
    messages = document.get("messages")
    if not isinstance(messages, dict) or not all(isinstance(m, list) for m in messages.values()):
        return "expected lists of messages by word"
    for entries in messages.values():
        for entry in entries:
            if not _is_message(entry, len(document["versions"]), len(modules)):
                return f"expected [template, spans, places, more], found {str(entry)[:80]}"
    return ""


def _is_message(entry: Any, versions: int, modules: int) -> bool:
    return (
        isinstance(entry, list)
        and list(map(type, entry)) == [str, str, list, int]
        and are_spans(entry[1], versions)
        and bool(entry[1])
        and bool(entry[2])
        and all(_is_place(place, versions, modules) for place in entry[2])
    )


def _is_place(place: Any, versions: int, modules: int) -> bool:
    return (
        isinstance(place, list)
        and list(map(type, place)) == [str, int, str, int, list, str, int]
        and 0 <= place[1] < modules
        and are_texts(place[4])
        and are_spans(place[5], versions)
    )
