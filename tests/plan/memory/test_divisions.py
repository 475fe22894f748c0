"""Numbers that have to divide those of the model."""

import pytest

from envdoctor.plan.memory.divisions import largest_divisor


@pytest.mark.parametrize(
    ("heads", "ways", "expected"), [(28, 8, 7), (52, 8, 4), (32, 2**62, 32), (7, 2, 1), (1, 3, 1)]
)
def test_what_is_advised_divides_the_heads_for_any_number_of_gpus(heads, ways, expected):
    assert largest_divisor(heads, ways) == expected
