"""Numbers that have to divide those of the model."""

import pytest

from envdoctor.matrix.model_sizes import size_of
from envdoctor.plan.memory.divisions import largest_divisor

from ...time_taken import within


@pytest.mark.parametrize(
    ("heads", "ways", "expected"), [(28, 8, 7), (52, 8, 4), (32, 2**62, 32), (7, 2, 1), (1, 3, 1)]
)
def test_what_is_advised_divides_the_heads_for_any_number_of_gpus(heads, ways, expected):
    assert largest_divisor(heads, ways) == expected


@pytest.mark.parametrize(
    ("name", "ways"), [("Qwen/Qwen2.5-7B", 4), ("Qwen/Qwen2.5-0.5B", 2), ("Qwen/Qwen2.5-14B", 8)]
)
def test_what_is_advised_divides_keys_and_values_too(matrix, name, ways):
    """As vllm's models assert: 28 heads of 4 for keys and values are not to be had on 7 GPUs."""
    size = size_of(name, matrix)
    assert largest_divisor(size.shared_heads, ways + 1) == ways
    for one in (ways, largest_divisor(size.shared_heads, 10**6)):
        assert size.heads % one == 0
        assert size.kv_heads % one == 0


@pytest.mark.parametrize("number", [10**18 - 1, 2**61 - 1, 10**300])
def test_a_number_of_any_size_is_divided_at_once(number):
    divisor = within(1, lambda: largest_divisor(number, number // 2 + 1))
    assert number % divisor == 0
    assert divisor <= number // 2
