"""Numbers that have to divide those of the model."""

import pytest

from envdoctor.plan.memory.divisions import largest_divisor

from ...time_taken import within


@pytest.mark.parametrize(
    ("heads", "ways", "expected"), [(28, 8, 7), (52, 8, 4), (32, 2**62, 32), (7, 2, 1), (1, 3, 1)]
)
def test_what_is_advised_divides_the_heads_for_any_number_of_gpus(heads, ways, expected):
    assert largest_divisor(heads, ways) == expected


@pytest.mark.parametrize("number", [10**18 - 1, 2**61 - 1, 10**300])
def test_a_number_of_any_size_is_divided_at_once(number):
    divisor = within(1, lambda: largest_divisor(number, number // 2 + 1))
    assert number % divisor == 0
    assert divisor <= number // 2
