"""Sizes as text and back: known spellings, and what was written reads back as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdoctor.model.sizes import GIB, MIB, gib_text, parse_limit, parse_size, size_text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (GIB, "1 GiB"),
        (3 << 29, "1.5 GiB"),
        (2 << 40, "2 TiB"),
        (5 << 50, "5120 TiB"),
        (-1, "unlimited"),
        (1.5 * MIB, "1.5 MiB"),
    ],
)
def test_text(size, text):
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0"),
        (480 * GIB, "480"),
        (62.14 * GIB, "62.1"),
        (4 * GIB, "4"),
        (int(0.355 * GIB), "0.35"),
        (-2 * GIB, "-2"),
    ],
)
def test_gib(size, text):
    assert gib_text(size) == text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64", 64),
        (" 64 b ", 64),
        ("64 bytes", 64),
        ("64g", 64 * GIB),
        ("64 GiB", 64 * GIB),
        ("64Gi", 64 * GIB),
        ("64GB", 64 * 10**9),
        ("1.5T", 3 << 39),
        ("0.5 MB", 500_000),
        ("8 kbytes", 8000),
        ("123456789012345678", 123456789012345678),
        ("", None),
        ("g", None),
        ("64i", None),
        ("64 GX", None),
        ("6.4.2g", None),
        ("6.g", None),
        ("-1", None),
        ("٣", None),
        ("1" * 19, None),
    ],
)
def test_parse(text, size):
    assert parse_size(text) == size


def test_what_a_tool_means():
    assert parse_size("64GB", binary=True) == 64 * GIB  # docker run --shm-size
    assert parse_size("64G", decimal=True) == 64 * 10**9  # a quantity of Kubernetes
    assert parse_size("64Gi", decimal=True) == 64 * GIB
    assert parse_size("64", unit=MIB) == 64 * MIB  # nvidia-smi
    assert parse_size("64B", unit=MIB) == 64
    assert parse_limit("unlimited") == parse_limit("-1") == parse_limit("max") == -1
    assert parse_limit("64", unit=1024) == 64 << 10


@given(st.integers(0, 1 << 60))
def test_a_printed_size_reads_back(size):
    again = parse_size(size_text(size))
    assert again is not None
    assert abs(again - size) <= max(size * 0.06, 0)


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_none(text):
    size = parse_size(text)
    assert size is None or size >= 0
