"""ED9xx: failed probes, an old matrix, other platforms, a rule that raises."""

from __future__ import annotations

import datetime
from typing import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdoctor import rules
from envdoctor.matrix.loader import Matrix
from envdoctor.model.evidence import Evidence, Known, Unknown
from envdoctor.model.finding import Finding
from envdoctor.rules.registry import CHECKS
from envdoctor.rules.rule import Context, Rule
from envdoctor.rules.tool import _days

from .conftest import Judge, by_code, codes, distribution, facts_of


def test_one_finding_for_a_failed_probe(judged: Judge) -> None:
    reason = Unknown("no answer within 2 s", "nvml")
    finding = by_code(
        judged(
            facts_of(
                gpus_expected=Unknown("not read"),
                driver_nvml_error=reason,
                driver_nvml_release=reason,
            )
        ),
        "ED901",
    )
    assert (finding.component, finding.kind, finding.severity) == (
        "probe-nvml",
        "probe-failed",
        "warning",
    )
    assert "driver.nvml_release" in finding.message
    assert "2 s" in finding.message


def test_matrix_age(judged: Judge, matrix: Matrix) -> None:
    day = datetime.date.fromisoformat(matrix.date)
    assert "ED902" not in codes(judged(facts_of(), today=str(day + datetime.timedelta(90))))
    assert (
        by_code(judged(facts_of(), today=str(day + datetime.timedelta(91))), "ED902").severity
        == "advice"
    )
    assert "ED902" not in codes(judged(facts_of(), today="no date"))


@given(st.dates(), st.dates())
def test_days(first: datetime.date, second: datetime.date) -> None:
    assert _days(first.isoformat()) - _days(second.isoformat()) == (first - second).days


def test_not_judged(judged: Judge) -> None:
    assert by_code(judged(facts_of(os_platform="darwin")), "ED903").subject == "darwin"
    assert by_code(judged(facts_of(["torch 2.6.0+xpu"])), "ED903").subject == "intel"
    assert codes(judged(facts_of(os_platform="linux"))) == []


def test_what_a_file_does_not_pin_is_an_open_question(judged: Judge) -> None:
    packages = [
        "torch 2.6.0",
        "transformers",
        distribution("ray", constraint=">=2.40"),
        "no-such-package",
        "verl 0.4.1",
    ]
    facts = facts_of(
        packages,
        complete=False,
        requirements_unpinned=("no-such-package", "ray", "transformers", "verl"),
    )
    assert [str(found.missing) for found in judged(facts) if found.code == "ED904"] == [
        "the pins of ray (>=2.40), transformers"
    ]
    assert "ED904" in codes(judged(facts), "undetermined")
    assert "ED904" not in [found.code for found in judged(facts_of(packages))]


def test_a_root_without_packages_is_an_open_question(judged: Judge) -> None:
    root = Known("/image", Evidence("--root"))
    empty = facts_of().updated(
        {
            "node.name": root,
            "distributions": Unknown("no Python interpreter was found in the image"),
        }
    )
    assert [(found.code, found.verdict, str(found.missing)) for found in judged(empty)] == [
        ("ED905", "undetermined", "the Python environment")
    ]
    assert "ED905" not in codes(
        judged(facts_of(["torch 2.6.0"]).updated({"node.name": root})), "undetermined"
    )
    assert judged(facts_of(node_name="host")) == []  # a report may tell of the driver alone


def test_a_rule_that_raises_hides_nothing(monkeypatch: pytest.MonkeyPatch, matrix: Matrix) -> None:
    def broken(_context: Context) -> Iterator[Finding]:
        raise ZeroDivisionError("one\ntwo")

    here = (Rule("ED199", "broken", "too-old", "", broken), *rules.load_rules(CHECKS))
    monkeypatch.setattr(rules, "load_rules", lambda _families: here)
    found = rules.judge(facts_of(os_platform="darwin"), matrix)
    assert by_code(found, "ED906").subject == "broken"
    assert "ED903" in codes(found)
    with pytest.raises(ZeroDivisionError):
        rules.judge(facts_of(), matrix, propagate=True)


def test_reasons_that_a_report_tells_are_repeated_as_its_words(judged: Judge) -> None:
    found = judged(
        facts_of(report_reasons={"3": "X is too old"}, report_guesses={"9": "Y is too new"})
    )
    told = [finding for finding in found if finding.code == "ED908"]
    assert [finding.severity for finding in told] == ["advice", "advice"]
    assert "says why: “X is too old”" in told[0].message
    assert "supposes why: “Y is too new”" in told[1].message
    assert [entry.source for entry in told[1].evidence] == ["report, line 9"]


def test_a_report_that_states_nothing_is_asked_for_more(judged: Judge) -> None:
    finding = by_code(judged(facts_of(report_named=("vllm",))), "ED909")
    assert "it names vllm, and no release as installed" in finding.message
    assert "'nvidia-smi'" in finding.message
    other = facts_of(report_named=("vllm",), report_for_npu="torch_npu/lib")
    message = by_code(judged(other), "ED909").message
    assert "'npu-smi info'" in message
    assert "nvidia-smi" not in message
    assert "collect_env" in finding.message
    assert "ED909" not in codes(judged(facts_of(python_version="3.11.4")))
