"""The trend of a memory measurement: level, one step, stairs, cycles or a steady rise, and when it
meets a limit.

The slope is Theil's and Sen's: the median of the slopes of all pairs of points, which up to 29 % of
outliers do not move (P. K. Sen, Estimates of the Regression Coefficient Based on Kendall's Tau,
JASA 63, 1968). Its range is that of the middle 80 % of these slopes between points far from each
other, so it is wide where the measurement bends.
"""

from __future__ import annotations

from itertools import groupby
from typing import List, Optional, Sequence, Tuple

from ..model.record import NamedTuple

__all__ = ["SHAPES", "Arrival", "Point", "Trend", "find_trend", "predict", "thin"]

Point = Tuple[float, float]
"""Seconds, bytes."""

#: Shape -> what it says of the run.
SHAPES = {
    "unknown": "too few samples",
    "level": "no growth",
    "step": "one rise, level since",
    "stairs": (
        "rises by steps: each costs once (offload that keeps its pinned memory, a cache that "
        "is filled per step)"
    ),
    "settled": "rose by steps that have ended",
    "cycles": "goes up and down, its peaks are level",
    "rising-cycles": "goes up and down, and its peaks rise",
    "steady": "rises steadily: a leak, or a load that is still going on",
}

_FEWEST = 8
_FEWEST_FOR_STEPS = 24
_BUCKETS = 96


class Trend(NamedTuple):
    """What a series of measurements does.

    Slopes are bytes per second; ``slope_low`` may be negative.
    """

    shape: str
    slope: float = 0.0
    slope_low: float = 0.0
    slope_high: float = 0.0
    level: float = 0.0  # bytes that the trend gives for the last sample; of cycles, their peak
    end: float = 0.0  # time of the last sample, seconds
    step_height: float = 0.0  # stairs: bytes of a step
    step_interval: float = 0.0  # stairs: seconds between two
    last_step: float = 0.0  # when the last step came, seconds

    @property
    def grows(self) -> bool:
        """Tell whether it will meet a limit if it goes on."""
        return self.shape in ("stairs", "rising-cycles", "steady")


class Arrival(NamedTuple):
    """When a limit will be met: seconds from the last sample, likely, at the earliest, at the
    latest (None: maybe never).
    """

    likely: float
    earliest: float
    latest: Optional[float]


def thin(points: Sequence[Point], count: int) -> List[Point]:
    """Return about ``count`` of the points, evenly spaced, the first and the last among them."""
    if len(points) <= count:
        return list(points)
    last = len(points) - 1
    return [points[round(index * last / (count - 1))] for index in range(count)]


def find_trend(points: Sequence[Point], noise: float = 1 << 20) -> Trend:
    """Return what the points do.

    Args:
        points: in the order of time.
        noise: bytes that a healthy process moves by without meaning.
    """
    last_time, last_value = points[-1] if points else (0.0, 0.0)
    if len(points) < _FEWEST or last_time <= points[0][0]:
        return Trend("unknown", level=last_value, end=last_time)
    window = thin(points, _BUCKETS)
    highest, lowest = _highest(window), min(value for _, value in window)
    if highest - lowest <= max(noise, 0.005 * highest):
        return Trend("level", level=highest, end=last_time)
    return _moving(points, window, noise)


def _moving(points: Sequence[Point], window: List[Point], noise: float) -> Trend:
    """Tell cycles, stairs and a steady rise apart, where the points are not level."""
    changes = [later[1] - earlier[1] for earlier, later in zip(window, window[1:])]
    rises = [max(0.0, change) for change in changes]
    falls = sum(max(0.0, -change) for change in changes)
    if falls > 0.4 * sum(rises):
        return _cycles(window, noise)
    stairs = _stairs(window, rises)
    if stairs is None:
        return _steady(_representative(window), noise)
    if stairs.shape != "stairs":
        # Nothing is stepping any more: what came after the last step says how it goes on.
        after = find_trend([point for point in points if point[0] > stairs.last_step], noise)
        return after if after.grows else stairs
    return stairs


def predict(trend: Trend, limit: float) -> Optional[Arrival]:
    """Return when a trend meets ``limit`` (bytes), or None where it does not grow."""
    if not trend.grows:
        return None
    room = limit - trend.level
    if room <= 0:
        return Arrival(0.0, 0.0, 0.0)
    if trend.shape == "stairs":
        steps = int(room // trend.step_height) + 1
        wait = max(0.0, trend.last_step + trend.step_interval - trend.end)
        likely = wait + (steps - 1) * trend.step_interval
        return Arrival(likely, max(0.0, likely - trend.step_interval), likely + trend.step_interval)
    latest = room / trend.slope_low if trend.slope_low > 0 else None
    return Arrival(room / trend.slope, room / trend.slope_high, latest)


def _value_of(point: Point) -> float:
    return point[1]


def _highest(points: Sequence[Point]) -> float:
    return max(value for _, value in points)


def _representative(points: List[Point]) -> List[Point]:
    """Leave out a beginning that is unlike the rest: loading a model is no leak."""
    half = points[len(points) // 2 :]
    if len(half) < _FEWEST:
        return points
    _, low, high = _slope(half)
    margin = 0.15 * max(abs(low), abs(high))
    for start in (0, len(points) // 6, len(points) // 3):
        whole = points[start:]
        if low - margin <= _slope(whole)[0] <= high + margin:
            return whole
    return half


def _slope(points: Sequence[Point]) -> Tuple[float, float, float]:
    """Return Theil's and Sen's slope and the range of the middle 80 % of the slopes over at least a
    third of the window.
    """
    apart = (points[-1][0] - points[0][0]) / 3
    slopes = sorted(
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for index, earlier in enumerate(points)
        for later in points[index + 1 :]
        if later[0] - earlier[0] >= apart and later[0] > earlier[0]
    )
    if not slopes:
        return 0.0, 0.0, 0.0
    last = len(slopes) - 1
    return slopes[last // 2], slopes[round(0.1 * last)], slopes[round(0.9 * last)]


def _steady(window: Sequence[Point], noise: float) -> Trend:
    slope, low, high = _slope(window)
    end = window[-1][0]
    level = _quantile(sorted(value - slope * (time - end) for time, value in window), 0.5)
    if slope <= 0 or slope * (end - window[0][0]) <= max(noise, 0.005 * level):
        return Trend("level", level=_highest(window), end=end)
    return Trend("steady", slope, low, high, level, end)


def _stairs(window: Sequence[Point], rises: Sequence[float]) -> Optional[Trend]:
    """Return stairs, where a few intervals hold nearly all of the rise and the others hold none."""
    steps = _rising_most(rises)
    if len(rises) < _FEWEST_FOR_STEPS or len(steps) > len(rises) // 5:
        return None
    groups = _grouped(steps)
    end, level = window[-1][0], _highest(window)
    times = [window[group[-1] + 1][0] for group in groups]
    heights = [sum(rises[index] for index in group) for group in groups]
    # One rise at the very end may be the first of many.
    if len(groups) == 1 and end - times[0] > 0.25 * (end - window[0][0]):
        return Trend("step", level=level, end=end, last_step=times[0])
    if len(groups) <= 2:
        return None
    interval = (times[-1] - times[0]) / (len(times) - 1)
    if end - times[-1] > 2.5 * interval:
        return Trend("settled", level=level, end=end, last_step=times[-1])
    return Trend(
        "stairs",
        slope=(sum(heights) / len(heights)) / interval,
        level=level,
        end=end,
        step_height=sum(heights) / len(heights),
        step_interval=interval,
        last_step=times[-1],
    )


def _rising_most(rises: Sequence[float]) -> List[int]:
    """Return the fewest intervals that hold 85 % of the rise, in the order of time."""
    steps: List[int] = []
    held, total = 0.0, sum(rises)
    for index in sorted(range(len(rises)), key=lambda index: -rises[index]):
        if held >= 0.85 * total:
            break
        steps.append(index)
        held += rises[index]
    return sorted(steps)


def _grouped(steps: Sequence[int]) -> List[List[int]]:
    """Join the intervals of one step: of several, some fell short of the share."""
    groups: List[List[int]] = []
    for index in steps:
        if groups and index - groups[-1][-1] <= 3:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def _cycles(window: Sequence[Point], noise: float) -> Trend:
    """Return cycles by their peaks: what counts against a limit is the highest moment of each."""
    end, highest = window[-1][0], _highest(window)
    middle = (highest + min(value for _, value in window)) / 2
    runs = groupby(window, key=lambda point: point[1] > middle)
    peaks = [max(run, key=_value_of) for is_above, run in runs if is_above]
    if len(peaks) < 3:
        # Too few ups and downs to speak of cycles: the upper edge decides.
        slices = [window[index : index + 6] for index in range(0, len(window), 6)]
        if len(slices) < 3:
            return Trend("level", level=highest, end=end)
        return _steady([max(points, key=_value_of) for points in slices], noise)
    slope, low, high = _slope(peaks)
    rise = slope * (peaks[-1][0] - peaks[0][0])
    if low <= 0 or rise <= max(noise, 0.02 * highest):
        return Trend("cycles", level=highest, end=end)
    level = _quantile(sorted(value - slope * (time - end) for time, value in peaks), 0.75)
    return Trend("rising-cycles", slope, low, high, level, end)


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[round(share * (len(ordered) - 1))]
