"""Of a log that several starts of a program were appended to, what the last one holds: what ended
an earlier start is past.
"""

from __future__ import annotations

from typing import Mapping, Optional, Sequence

from ..intake.syntax_errors import is_unparsed
from ..model.log import PLACES_OF_LINE, Event, Raised, Reading
from .code_owner import is_own
from .raised import form_of, program_of

__all__ = ["ends_of_earlier", "of_last_start"]

_OF_RUNNER = "CalledProcessError"
#: Lines between two ends of one program from which on they are of two starts: ranks of one run end
#: near each other.
_APART = 200
_MOST_ENDS = 3  # ends of earlier starts
_LONGEST = 200  # characters of one of them


def of_last_start(reading: Reading, lived: Mapping[str, int]) -> Reading:
    """Return what was read without what earlier starts ended with, where the last one has an end of
    its own, or is seen at work.

    Args:
        reading: What was read.
        lived: By log, the last line after which its program worked on.
    """
    split = {}
    for source in reading.sources:
        start = max(reading.restarted.get(source, 0), _behind_ends(reading.raised, source))
        raised = [entry for entry in reading.raised if entry.line.source == source]
        ends = [entry.first.number + entry.spread for entry in raised]
        ends += [event.last.number for event in reading.events if event.last.source == source]
        # What starts all of them and tells of each that failed is one program itself.
        is_sweep = any(entry.kind.endswith(_OF_RUNNER) and entry.spread for entry in raised)
        if 0 < start <= max([*ends, lived.get(source, 0)]) and not is_sweep:
            split[source] = start
    since = [_raised_since(entry, split.get(entry.line.source, 0)) for entry in reading.raised]
    events = [_since(event, split.get(event.last.source, 0)) for event in reading.events]
    return reading._replace(
        raised=tuple(entry for entry in since if entry is not None),
        events=tuple(event for event in events if event is not None),
        restarted=split,
    )


def _behind_ends(raised: Sequence[Raised], source: str) -> int:
    """Return where the last start begins by what ended the earlier ones: the same program ended
    long before already, or Python could not begin to run it, so that nothing above is of it.
    """
    ended = [entry for entry in raised if entry.fate == "ended" and entry.line.source == source]
    if len(ended) < 2:
        return 0
    last = max(ended, key=_last_line)
    begins = last.first.number + last.spread
    if is_unparsed(last):
        return begins if any(_last_line(entry) < begins for entry in ended) else 0
    own = [entry for entry in ended if program_of(last) and program_of(entry) == program_of(last)]
    own.sort(key=_last_line)
    for one, other in zip(own[-2::-1], own[:0:-1]):
        apart = other.first.number + other.spread - _last_line(one)
        if apart > _APART and form_of(one) != form_of(other):
            return _last_line(one) + 1
    return 0


def _last_line(raised: Raised) -> int:
    return raised.until + raised.spread


def ends_of_earlier(whole: Reading, source: str, start: int) -> str:
    """Say what the starts before the last one ended with; "" where nothing is seen of it.

    Args:
        whole: What was read of all starts.
        source: The log.
        start: Where its last start begins.
    """
    ends = [
        entry
        for entry in whole.raised
        if entry.fate == "ended" and entry.line.source == source and entry.line.number < start
    ]
    worded = dict.fromkeys(_end(entry, start) for entry in ends)
    if not worded:
        return ""
    more = f"; and {len(worded) - _MOST_ENDS} more" if len(worded) > _MOST_ENDS else ""
    return f"Those before it ended with {'; '.join(list(worded)[:_MOST_ENDS])}{more}."


def _end(raised: Raised, start: int) -> str:
    """Return an end of a start in words."""
    if raised.line.number + raised.spread >= start:
        return f"the same (line {raised.line.number})"
    first = raised.message.partition("\n")[0].strip().rstrip(".")
    name = raised.kind.rpartition(".")[2]
    said = f"{name}: {first}" if first else name
    said = said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"
    own = next((frame for frame in reversed(raised.frames) if is_own(frame)), None)
    place = f" at {own.file}, line {own.line}" if own is not None and own.line else ""
    again = " and later again" if raised.times > 1 else ""
    return f"{said}{place} (line {raised.line.number}{again})"


def _raised_since(raised: Raised, start: int) -> Optional[Raised]:
    """Return an exception as the last start has it, None where that has it not."""
    lines = raised.spread
    if raised.first.number >= start:
        return raised
    if raised.first.number + lines < start:
        return None
    return raised._replace(
        first=raised.first._replace(number=raised.first.number + lines),
        line=raised.line._replace(number=raised.line.number + lines),
        until=raised.until + lines,
        order=raised.order + lines * PLACES_OF_LINE,
        spread=0,
    )


def _since(event: Event, start: int) -> Optional[Event]:
    """Return an event as the last start has it, None where that has it not."""
    if event.first.source != event.last.source or event.first.number >= start:
        return event
    if event.last.number < start:
        return None
    lines = event.last.number - event.first.number
    return event._replace(first=event.last, order=event.order + lines * PLACES_OF_LINE)
