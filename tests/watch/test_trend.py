"""Shapes that are made by a rule are told apart, and the moment at which that rule meets a limit is
predicted.
"""

from __future__ import annotations

import random

import pytest

from envdoctor.watch.trend import find_trend, predict, thin

MIB = float(1 << 20)


def measured(rule, seconds, seed, noise=0.5):
    random_numbers = random.Random(seed)
    return [
        (float(time), rule(time) * MIB + random_numbers.uniform(-noise, noise) * MIB)
        for time in range(seconds)
    ]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("rule", "shape"),
    [
        (lambda time: 800, "level"),
        (lambda time: min(800, 40 * time), "step"),  # loads for 20 s, then stands
        (lambda time: 500 if time < 60 else 900, "step"),
        (lambda time: 300 + 3 * time, "steady"),
        (lambda time: min(600, 60 * time) + 2 * time, "steady"),  # loads, then leaks
        (lambda time: min(600, 60 * time) + 0.2 * time, "steady"),
        (lambda time: 400 + 100 * (time // 20), "stairs"),
        (lambda time: 400 + 100 * min(4, time // 20), "settled"),
        (lambda time: 400 + (300 if time % 20 < 8 else 0), "cycles"),
        (lambda time: 400 + 3 * time + (300 if time % 20 < 8 else 0), "rising-cycles"),
    ],
)
def test_tells_shapes_apart(rule, shape, seed):
    assert find_trend(measured(rule, 180, seed)).shape == shape


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("rule", "limit"),
    [
        (lambda time: 300 + 3 * time, 2100),  # at 600 s
        (lambda time: min(600, 60 * time) + 2 * time, 1800),
        (lambda time: 400 + 100 * (time // 20), 3400),
        (lambda time: 400 + 3 * time + (300 if time % 20 < 8 else 0), 2500),
    ],
)
def test_predicts_from_the_first_third(rule, limit, seed):
    truth = next(time for time in range(10_000) if rule(time) > limit)
    points = measured(rule, truth // 3, seed)
    arrival = predict(find_trend(points), limit * MIB)
    assert points[-1][0] + arrival.likely == pytest.approx(truth, rel=0.1)
    assert arrival.earliest <= arrival.likely <= arrival.latest


def test_says_nothing_of_what_does_not_grow():
    assert predict(find_trend(measured(lambda time: 800, 180, 1)), 900 * MIB) is None
    assert (
        predict(
            find_trend(measured(lambda time: 400 + (300 if time % 20 < 8 else 0), 180, 1)),
            900 * MIB,
        )
        is None
    )
    assert predict(find_trend([]), 900 * MIB) is None
    assert predict(find_trend([(0.0, 1.0)] * 20), 900 * MIB) is None


def test_over_the_limit_is_now():
    assert predict(find_trend(measured(lambda time: 300 + 3 * time, 100, 1)), 200 * MIB) == (
        0,
        0,
        0,
    )


def test_thin_keeps_both_ends():
    points = [(float(index), 0.0) for index in range(1000)]
    assert (thin(points, 10)[0], thin(points, 10)[-1], len(thin(points, 10))) == (
        points[0],
        points[-1],
        10,
    )
