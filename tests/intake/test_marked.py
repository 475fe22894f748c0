"""Marks of expressions: whatever one of them matches holds a mark of it."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import envdoctor.intake
from envdoctor.intake.marked import Marked

DATA = Path(__file__).parents[1] / "data"


def _marked():
    for module in pkgutil.iter_modules(envdoctor.intake.__path__):
        names = vars(importlib.import_module(f"envdoctor.intake.{module.name}"))
        for name, value in sorted(names.items()):
            for number, one in enumerate(value if isinstance(value, tuple) else (value,)):
                if isinstance(one, Marked):
                    yield pytest.param(one, id=f"{module.name}.{name}.{number}")


MARKED = list(_marked())


def _texts():
    for path in sorted(DATA.glob("cases/*.jsonl")) + sorted(DATA.glob("rounds/*.jsonl")):
        for row in map(json.loads, path.read_text("utf-8").splitlines()):
            yield from (str(row.get(key) or "") for key in ("env_text", "log", "title", "error"))
    for path in sorted(DATA.glob("reports/*.txt")) + sorted(DATA.glob("logs/*.log")):
        yield path.read_text("utf-8")


def _begun(expression):
    """An expression without what looks around: a text of it holds whatever one of it all has."""
    return re.sub(r"\(\?<?[!=](?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", "", expression)


def test_they_are_found():
    assert len(MARKED) > 20


@pytest.mark.slow
@pytest.mark.parametrize("marked", MARKED)
def test_a_text_that_matches_holds_a_mark(marked):
    flags = marked.pattern.flags & (re.IGNORECASE | re.DOTALL | re.MULTILINE)
    drawn = st.from_regex(re.compile(_begun(marked.pattern.pattern), flags | re.ASCII))

    matches = []

    @settings(max_examples=100, suppress_health_check=list(HealthCheck), deadline=None)
    @given(drawn)
    def holds(text):
        if marked.pattern.search(text):
            matches.append(text)
            assert marked.may_match(text), text

    holds()
    assert matches


def test_every_line_of_the_tests_is_read_alike():
    lines = sorted({line for text in _texts() for line in text.splitlines()})
    missed = [
        (param.id, line)
        for param in MARKED
        for line in lines
        if param.values[0].pattern.search(line) and not param.values[0].may_match(line)
    ]
    assert len(lines) > 1500
    assert missed == []
