"""One order of causes: each root, and behind it what follows from it."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from envdoctor.model.cause_tree import cause_tree
from envdoctor.model.finding import Finding
from envdoctor.report.selection import Options, report_of

PACKAGE = Path(__file__).parents[2] / "envdoctor"


def tree(causes: dict[str, str | None]) -> list[tuple[str, int]]:
    return cause_tree(list(causes), str, causes.get)


def test_consequences_stand_behind_their_root() -> None:
    causes = {"leaf": "branch", "second": None, "root": None, "branch": "root", "other": "root"}
    assert tree(causes) == [
        ("second", 0),
        ("root", 0),
        ("branch", 1),
        ("leaf", 2),
        ("other", 1),
    ]


def test_what_has_no_cause_among_them_is_a_root() -> None:
    assert tree({"a": "elsewhere", "b": "b"}) == [("a", 0), ("b", 0)]


def test_the_first_of_a_circle_is_its_root() -> None:
    assert tree({"a": "b", "b": "a", "c": "b"}) == [("a", 0), ("b", 1), ("c", 2)]


def test_of_several_of_one_name_the_nearest_before_is_meant() -> None:
    entries = [("x", None), ("under", "x"), ("x", None), ("under", "x")]
    ordered = cause_tree(entries, lambda entry: entry[0], lambda entry: entry[1])
    assert [(name, depth) for (name, _), depth in ordered] == [
        ("x", 0),
        ("under", 1),
        ("x", 0),
        ("under", 1),
    ]


@given(
    st.lists(st.integers(0, 7), max_size=8).flatmap(
        lambda causes: st.permutations(list(enumerate(causes)))
    )
)
def test_nothing_is_lost_and_an_ordered_tree_stays_as_it_is(links) -> None:
    causes = dict(links)
    ordered = cause_tree(list(causes), int, causes.get)
    assert sorted(entry for entry, _ in ordered) == sorted(causes)
    above: list[int] = []
    for entry, depth in ordered:
        assert depth <= len(above)
        del above[depth:]
        assert not depth or above[-1] == causes[entry]
        above.append(entry)
    assert cause_tree([entry for entry, _ in ordered], int, causes.get) == ordered


def test_a_report_stays_in_order_where_a_root_is_left_out() -> None:
    findings = [
        Finding("ED101", "driver", "too-old", "error", "root"),
        Finding("ED301", "x", "conflict", "error", "skipped", caused_by="ED101:driver:too-old"),
        Finding("ED401", "y", "conflict", "error", "left", caused_by="ED301:x:conflict"),
        Finding("ED402", "z", "conflict", "error", "under", caused_by="ED101:driver:too-old"),
    ]
    report = report_of(findings, (), "", Options(skip=["ED301"]))
    assert [finding.message for finding in report.findings] == ["root", "under", "left"]


def test_no_other_module_walks_the_causes() -> None:
    """Reports draw what ``cause_tree`` returns; only rules and diagnose set a cause."""
    for path in [*(PACKAGE / "report").glob("*.py"), *(PACKAGE / "cli").glob("*.py")]:
        assert ".caused_by ==" not in path.read_text(encoding="utf-8"), path
