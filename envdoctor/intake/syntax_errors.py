"""Programs that Python could not begin to run, at the end of a log: such an error has no head
(``Lib/traceback.py``, ``TracebackException.format_exception_only``), and where several ranks print
it at once, its words stand in one another.
"""

from __future__ import annotations

import re
from typing import List, Optional, Sequence, Tuple

from ..model.log import PLACES_OF_LINE, Frame, Raised
from ..model.redaction import redact
from .log_line import LogPlace, cleaned, log_line

__all__ = ["is_unparsed", "syntax_errors", "with_unparsed"]

_PLACE = re.compile(r'^\s{2,8}File "(?P<file>[^"<]{1,400}\.py)", line (?P<line>\d{1,9})$')
#: What Python, or pip, compiles of what is installed, and goes on after.
_OF_PACKAGES = re.compile(r"(?:site|dist)-packages/|/lib(?:64)?/python\d")
_MOST_BEHIND = 80  # lines: the report of a launcher, the epilogue of a job
_KIND = re.compile(r"SyntaxError|IndentationError|TabError")
_ALONE = re.compile(r"(?:SyntaxError|IndentationError|TabError): ([^\n]+)\n?\Z")
#: What stands between the messages of several ranks.
_BETWEEN = re.compile(r"[\n^]|: *(?=:|$|\n)|(?<=:) |^\s*:")
_NOISE = re.compile(r"(?:SyntaxError|IndentationError|TabError|[\s:^])+")
_HEIGHT = 12  # lines from the first place to the words of the last rank
_LINE_BYTES = 1000
_MOST_COPIES = 8
_CODE = 300


def syntax_errors(source: str, tail: bytes, number: int, earlier: int, lines: int) -> List[Raised]:
    """Return the last program that the end of a log says Python could not begin to run, if any.

    Args:
        source: The log.
        tail: Its end.
        number: How many of its lines come before that end.
        earlier: How many lines of other logs come before it.
        lines: How many lines it has.
    """
    if _KIND.search(tail.decode("utf-8", "replace")) is None:
        return []
    texts = [cleaned(raw[:_LINE_BYTES]) for raw in tail.split(b"\n")]
    places = [place for place, text in enumerate(texts) if _is_place(text)]
    firsts = _firsts(places)
    for place in reversed(firsts):
        until = _end(texts, place)
        place = _of_first_rank(texts, firsts, place)
        if until is None or _is_inner(texts, place):
            continue
        if len(list(filter(str.strip, texts[until + 1 :]))) > _MOST_BEHIND:
            return []
        raised = _raised(texts[place : (_end(texts, place) or until) + 1])
        if raised is None:
            continue
        first, line = (
            log_line(LogPlace(source, number + 1 + at, redact(texts[at]), b""))
            for at in (place, _at_kind(texts, place))
        )
        return [
            raised._replace(
                first=first,
                line=line,
                until=number + 1 + until,
                order=(earlier + first.number) * PLACES_OF_LINE,
                behind=max(0, lines - (number + 1 + until)),
            )
        ]
    return []


def with_unparsed(raised: Sequence[Raised], unparsed: Sequence[Raised]) -> Tuple[Raised, ...]:
    """Return exceptions with those of programs that did not begin, as far as they are not known."""

    def is_known(entry: Raised) -> bool:
        return any(
            known.first.source == entry.first.source
            and entry.first.number <= known.line.number + known.spread <= entry.until
            for known in raised
        )

    new = [entry for entry in unparsed if not is_known(entry)]
    return tuple(sorted([*raised, *new], key=lambda entry: entry.order))


def is_unparsed(raised: Raised) -> bool:
    """Tell whether an exception says that Python could not begin to run a program."""
    is_alone = len(raised.frames) == 1 and not raised.frames[0].function
    return raised.fate == "ended" and is_alone and _KIND.fullmatch(raised.kind) is not None


def _is_place(text: str) -> bool:
    match = _PLACE.match(text)
    return match is not None and _OF_PACKAGES.search(match.group("file")) is None


def _firsts(places: Sequence[int]) -> List[int]:
    """Return of places that stand near each other, as those of several ranks do, the first."""
    firsts: List[int] = []
    last = -_HEIGHT
    for place in places:
        if place - last > 2:
            firsts.append(place)
        last = place
    return firsts


def _of_first_rank(texts: Sequence[str], firsts: Sequence[int], place: int) -> int:
    """Return the first of the places that are written alike right above one, by other ranks."""
    for other in reversed(firsts):
        if 0 < place - other <= _HEIGHT and texts[other] == texts[place]:
            place = other
    return place


def _at_kind(texts: Sequence[str], place: int) -> int:
    window = range(place, min(place + _HEIGHT, len(texts)))
    return next((at for at in window if _KIND.search(texts[at])), place)


def _end(texts: Sequence[str], place: int) -> Optional[int]:
    """Return the last line that has words of the error, None where the kind is not among them."""
    at = _at_kind(texts, place)
    if at == place:
        return None
    while at + 1 < len(texts) and at - place < _HEIGHT and _goes_on(texts[at + 1]):
        at += 1
    return at


def _goes_on(text: str) -> bool:
    """Tell whether a line is the rest of what another rank began to print."""
    return bool(text.strip()) and (_KIND.search(text) is not None or not _NOISE.sub("", text))


def _is_inner(texts: Sequence[str], place: int) -> bool:
    """Tell whether a place is that of a traceback, whose others stand above it: of an import."""
    above = texts[place - 1] if place else ""
    return above.startswith(("    ", "Traceback (most"))


def _raised(texts: Sequence[str]) -> Optional[Raised]:
    place = _PLACE.match(texts[0])
    kinds = _KIND.findall("\n".join(texts))
    if place is None or not kinds:
        return None
    message = _message("\n".join(texts[_at_kind(texts, 0) :]))
    code = next((text.strip() for text in texts[1:] if _is_code(text)), "")
    frame = Frame(place.group("file"), int(place.group("line")), "", redact(code)[:_CODE])
    empty = log_line(LogPlace("", 0, "", b""))
    return Raised(kinds[0], redact(message), (frame,), "ended", empty, empty, 0, 0)


def _message(text: str) -> str:
    """Return what stands behind the kind, once where several ranks wrote it one in another."""
    alone = _ALONE.match(text)
    if alone is not None and _KIND.search(alone.group(1)) is None:
        return alone.group(1)
    pieces = [_once(piece.strip(" :")) for piece in _BETWEEN.split(_KIND.sub("", text))]
    return next(filter(None, pieces), "")


def _once(text: str) -> str:
    """Return a text that is written several times without a break as it is once."""
    for copies in range(_MOST_COPIES, 1, -1):
        size, rest = divmod(len(text), copies)
        if size and not rest and text == text[:size] * copies:
            return text[:size]
    return text


def _is_code(text: str) -> bool:
    stripped = text.strip()
    is_other = _PLACE.match(text) is not None or _KIND.search(text) is not None
    return bool(stripped.strip("^~ ")) and not is_other
