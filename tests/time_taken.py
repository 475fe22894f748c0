"""How long something takes, so that other work on the machine and other tests do not count."""

from __future__ import annotations

import gc
import math
import time
from typing import Callable, TypeVar

Result = TypeVar("Result")


def least_seconds(
    function: Callable[[], object],
    bound: float = 0.0,
    *,
    tries: int = 3,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Return the least seconds of processor time that a call takes; the first try within the
    bound is the last.

    What the function keeps from one call to the next must not be what its time is about.
    """
    least = math.inf
    for number in range(tries):
        if number:
            # A collection in the middle would look through all that the tests before have left.
            gc.collect()
            gc.freeze()
        start = clock()
        function()
        least = min(least, clock() - start)
        if least < bound:
            break
    return least


def within(
    bound: float, function: Callable[[], Result], clock: Callable[[], float] = time.process_time
) -> Result:
    """Return what a function returns; raises AssertionError where no try of it stays within the
    bound, in seconds.
    """
    results = []
    seconds = least_seconds(lambda: results.append(function()), bound, clock=clock)
    assert seconds < bound, f"takes {seconds:.2f} s"
    return results[-1]
