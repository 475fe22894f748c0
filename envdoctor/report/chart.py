"""A watched run as a drawing (SVG): use against the limit over time, what it is made of, and the
trend.
"""

from __future__ import annotations

from typing import Callable, List, Sequence, Tuple

from ..model.sizes import size_text
from ..watch.recording import Recording
from ..watch.trend import thin
from .watch_text import duration_text, outlook_parts

__all__ = ["chart_svg"]

_WIDTH, _HEIGHT = 900, 470
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 20, 40, 100
_POINTS = 600
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
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        *_grid(top, seconds, across, down),
    ]
    below = [0.0] * len(kept)
    for name, colour in _BANDS:
        above = [base + getattr(sample.use, name) for base, sample in zip(below, kept)]
        edge = [(across(sample.elapsed), down(value)) for sample, value in zip(kept, above)]
        base = [(across(sample.elapsed), down(value)) for sample, value in zip(kept, below)]
        if edge:
            parts.append(
                f'<polygon points="{_points([*edge, *reversed(base)])}" fill="{colour}" '
                'fill-opacity="0.6"/>'
            )
        below = above
    used = _points([(across(sample.elapsed), down(sample.use.used)) for sample in kept])
    parts.append(f'<polyline points="{used}" fill="none" stroke="black" stroke-width="1.5"/>')
    if limit <= top:
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{down(limit)}" y2="{down(limit)}" '
            'stroke="#d55e00" stroke-width="2"/>'
        )
    parts += _legend(recording)
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _points(points: Sequence[Tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in points)


def _grid(
    top: float, seconds: float, across: Callable[[float], float], down: Callable[[float], float]
) -> List[str]:
    parts = []
    for step in range(5):
        value, time = top * step / 4, seconds * step / 4
        y, x = down(value), across(time)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{size_text(int(value))}</text>'
        )
        parts.append(
            f'<text x="{x}" y="{_HEIGHT - _BOTTOM + 18}" '
            f'text-anchor="middle">{duration_text(time)}</text>'
        )
    return parts


def _legend(recording: Recording) -> List[str]:
    parts = [
        f'<text x="{_LEFT}" y="20">memory, limit {size_text(recording.group.limit)} (red)</text>'
    ]
    x = _LEFT + 260
    for name, colour in (*_BANDS, ("used", "black")):
        parts.append(
            f'<rect x="{x}" y="11" width="10" height="10" fill="{colour}"/><text x="{x + 14}" '
            f'y="20">{name}</text>'
        )
        x += 110
    if recording.outlook is not None:
        for index, words in enumerate(outlook_parts(recording.outlook)):
            parts.append(
                f'<text x="{_LEFT}" y="{_HEIGHT - 52 + 15 * index}" '
                f'font-size="11">{_escape(words)}</text>'
            )
    return parts


def _escape(text: str) -> str:
    safe = "".join(character if character.isprintable() else "?" for character in text)
    return safe.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
