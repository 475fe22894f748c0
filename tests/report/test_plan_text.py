"""The plan's bar: ASCII, of the width asked for, with the limit where it is."""

import pytest

from envdoctor.model.memory_plan import PHASES, Limit, MemoryTerm, Pool
from envdoctor.model.sizes import GIB
from envdoctor.report.plan_text import bar


def draw(low, high, usable=95, size=100, width=50):
    return bar(
        Pool(
            "host",
            (MemoryTerm("x", low * GIB, high * GIB, "", "", PHASES),),
            Limit(size * GIB, usable * GIB, ""),
        ),
        width,
    )


@pytest.mark.parametrize("width", [12, 30, 56])
@pytest.mark.parametrize(
    ("low", "high"), [(0, 0), (1, 2), (50, 90), (90, 99), (120, 500), (5000, 90000)]
)
def test_shape(low, high, width):
    text = draw(low, high, width=width)
    assert len(text) == width
    assert text.isascii()
    assert text.count("|") == 1


def test_what_it_says():
    text = draw(40, 80)
    assert text.index("|") > text.rindex("=") > text.rindex("#")
    over = draw(60, 130)
    assert over.rindex("=") > over.index("|") > over.rindex("#")
    assert draw(10, 500).endswith(">")
    assert "#" in draw(120, 500)[draw(120, 500).index("|") :]  # surely above the limit


def test_without_a_limit_there_is_nothing_to_draw():
    assert bar(Pool("host", ()), 40) == ""
