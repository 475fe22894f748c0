"""Two releases of one thing in a report: what holds of one of them alone is no error."""

from __future__ import annotations

import pytest

from envdoctor.intake.pasted_report import parse_report
from envdoctor.rules import judge

OLD = "torch 2.6.0\nxformers 0.0.29.post2\n"
NEW = "torch 2.7.1\n"


def _grave(text, matrix):
    found = judge(parse_report(text), matrix, today="2026-11-27")
    return {one.code for one in found if one.severity != "advice" and one.verdict == "violated"}


@pytest.mark.parametrize("order", [(OLD, NEW), (NEW, OLD)])
def test_a_pair_of_two_environments_is_no_pair(order, matrix):
    lists = [f"$ pip list\nPackage Version\n------- -------\n{part}\n" for part in order]
    assert _grave("\n".join(lists), matrix) == set()


def test_a_pair_that_is_told_once_is_one(matrix):
    text = "Package Version\n------- -------\ntorch 2.7.1\nxformers 0.0.29.post2\n"
    assert "ED401" in _grave(text, matrix)


def test_what_holds_with_both_releases_stays(matrix):
    """Neither of the two torches is the one that this xformers was compiled for."""
    text = "Package Version\n------- -------\n{}"
    lists = [text.format("torch 2.7.1\nxformers 0.0.29.post2\n"), text.format("torch 2.8.0\n")]
    assert "ED401" in _grave("\n\n".join(lists), matrix)
