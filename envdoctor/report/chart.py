"""A watched run as a drawing (SVG): use against the limit over time, what it is made of, and the
trend.
"""

from __future__ import annotations

from typing import Callable, Iterable, List, Sequence, Tuple

from ..model.sizes import size_text
from ..watch.recording import Recording
from ..watch.trend import thin
from .watch_text import course_parts, duration_text

__all__ = ["chart_svg"]

_WIDTH, _HEIGHT = 900, 470
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 20, 40, 100
_POINTS = 600
_MOST_TICKS = 7
#: Seconds, minutes, hours and days between two labels of an axis.
_ROUND_TIMES = tuple(
    unit * step
    for unit, steps in (
        (1, (1, 2, 5, 10, 15, 30)),
        (60, (1, 2, 5, 10, 15, 30)),
        (3600, (1, 2, 3, 6, 12)),
        (86400, (1, 2, 5, 10, 30, 100, 365)),
    )
    for step in steps
)
_KILL = "#cc0000"
#: Beside the colours of the elements, for a reader that prefers a dark ground.
_DARK = (
    "<style>@media(prefers-color-scheme:dark){.ground{fill:#0d1117}text,.used{fill:#e6edf3}"
    ".line{stroke:#e6edf3}.grid{stroke:#3d444d}}</style>"
)
#: Colours of Okabe and Ito, which colour-blind readers can tell apart (jfly.uni-koeln.de/color).
_BANDS = (("anonymous", "#56b4e9"), ("shared", "#e69f00"), ("kernel", "#999999"))


def chart_svg(recording: Recording) -> str:
    """Return the drawing as an SVG document of its own, without scripts or fonts from elsewhere."""
    samples = thin(
        [(sample.elapsed, index) for index, sample in enumerate(recording.samples)], _POINTS
    )
    kept = [recording.samples[int(index)] for _, index in samples]
    limit = recording.group.limit
    seconds = max(recording.duration, 1.0)
    top = max(limit * 1.05 if recording.peak > 0.2 * limit else recording.peak * 1.25, 1.0)

    def across(time: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * min(time, seconds) / seconds, 1)

    def down(value: float) -> float:
        return round(
            _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * min(max(value, 0.0), top) / top, 1
        )

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            'font-family="sans-serif" font-size="12">'
        ),
        _DARK,
        f'<rect class="ground" width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        *_grid(top, seconds, across, down),
    ]
    below = [0.0] * len(kept)
    for name, colour in _BANDS:
        above = [base + getattr(sample.own, name) for base, sample in zip(below, kept)]
        edge = [(across(sample.elapsed), down(value)) for sample, value in zip(kept, above)]
        base = [(across(sample.elapsed), down(value)) for sample, value in zip(kept, below)]
        if edge:
            parts.append(
                f'<polygon points="{_points([*edge, *reversed(base)])}" fill="{colour}" '
                'fill-opacity="0.6"/>'
            )
        below = above
    used = _points([(across(sample.elapsed), down(sample.own.used)) for sample in kept])
    parts.append(
        f'<polyline class="line" points="{used}" fill="none" stroke="black" stroke-width="1.5"/>'
    )
    if limit <= top:
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{down(limit)}" y2="{down(limit)}" '
            'stroke="#d55e00" stroke-width="2"/>'
        )
    parts += _kills(recording, across)
    parts += _legend(recording)
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _points(points: Sequence[Tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in points)


def _grid(
    top: float, seconds: float, across: Callable[[float], float], down: Callable[[float], float]
) -> List[str]:
    parts = []
    for value in _ticks(top, _round_sizes(top)):
        y = down(value)
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}" '
            'stroke="#ddd"/>'
        )
        parts.append(
            f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{size_text(int(value))}</text>'
        )
    parts += [
        f'<text x="{across(time)}" y="{_HEIGHT - _BOTTOM + 18}" '
        f'text-anchor="middle">{duration_text(time)}</text>'
        for time in _ticks(seconds, _ROUND_TIMES)
    ]
    return parts


def _round_sizes(end: float) -> Sequence[float]:
    """Return steps of an axis of bytes; below ``end`` their multiples are written exactly."""
    unit = 1024.0 ** max(0, (int(end).bit_length() - 1) // 10)
    return [unit * step for step in (0.5, 1, 2, 5, 10, 20, 50, 100, 200)]


def _ticks(end: float, steps: Iterable[float]) -> List[float]:
    """Return where an axis from 0 to ``end`` is labelled: at multiples of the smallest step of
    which it needs few.
    """
    step = next((step for step in steps if end / step <= _MOST_TICKS), end)
    return [step * index for index in range(int(end / step) + 1)]


def _kills(recording: Recording, across: Callable[[float], float]) -> List[str]:
    """Mark when the kernel killed, and when the run was killed without its counter moving."""
    where = ", somewhere on this machine" if recording.group.directory is None else ""
    marks = [(elapsed, f"killed for lack of memory{where}") for elapsed in recording.killed_at]
    if recording.exit_code == 128 + 9 and not recording.oom_kills:
        marks.append((recording.duration, "ended by SIGKILL"))
    parts = []
    for elapsed, words in marks:
        x = across(elapsed)
        parts.append(
            f'<line x1="{x}" x2="{x}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}" stroke="{_KILL}" '
            f'stroke-width="2" stroke-dasharray="5 3"><title>{words} at '
            f"{duration_text(elapsed)}</title></line>"
        )
    if marks:
        x, words = across(marks[0][0]), marks[0][1]
        anchor = "end" if x > _WIDTH / 2 else "start"
        parts.append(
            f'<text x="{x}" y="{_TOP - 6}" text-anchor="{anchor}" fill="{_KILL}" '
            f'font-size="11">{words}</text>'
        )
    return parts


def _legend(recording: Recording) -> List[str]:
    parts = [
        f'<text x="{_LEFT}" y="20">memory, limit {size_text(recording.group.limit)} (red)</text>'
    ]
    x = _LEFT + 260
    looks = [(name, f'fill="{colour}"') for name, colour in _BANDS]
    for name, look in [*looks, ("used", 'class="used" fill="black"')]:
        parts.append(
            f'<rect x="{x}" y="11" width="10" height="10" {look}/><text x="{x + 14}" '
            f'y="20">{name}</text>'
        )
        x += 110
    parts += [
        f'<text x="{_LEFT}" y="{_HEIGHT - 52 + 15 * index}" font-size="11">{_escape(words)}</text>'
        for index, words in enumerate(course_parts(recording))
    ]
    return parts


def _escape(text: str) -> str:
    safe = "".join(character if character.isprintable() else "?" for character in text)
    return safe.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
