"""``plan --fit``: what is found makes the run fit, by the same plan."""

from __future__ import annotations

import pytest

from envdoctor.app import plan
from envdoctor.sources import Sources, gather

from .conftest import RUNS


@pytest.fixture
def fitted(matrix, tmp_path):
    empty = tmp_path / "facts.json"
    empty.write_text('{"schema_version": 1, "facts": {}}')

    def run(words, assume, framework=None, **more):
        (facts,) = gather(Sources(facts=[str(empty)], assume=assume))
        return plan(words, facts, matrix, framework=framework, **more)[0]

    return run


@pytest.mark.parametrize(
    ("name", "framework", "assume"),
    [
        ("simplerl_84.sh", "simplerl", ["memory=931GiB", "gpu=A100-SXM4-80GB:8"]),
        ("tinyzero_61.sh", "tinyzero", ["memory=200GB", "gpu=A100-SXM4-40GB:2"]),
    ],
)
def test_what_is_found_makes_it_fit_when_it_is_pasted(fitted, name, framework, assume):
    words = [str(RUNS / name)]
    before = fitted(words, assume, framework)
    fitted_plan = fitted(words, assume, framework, fit=True)
    assert before.plan.verdict != "fits" == fitted_plan.plan.verdict
    assert fitted_plan.before.verdict == before.plan.verdict
    again = fitted(words, assume, framework, changes=fitted_plan.changes)
    assert again.plan.verdict == "fits"
    assert fitted_plan.plan.notes[0] == f"To paste: {' '.join(fitted_plan.changes)}"
    assert fitted_plan.plan.notes[1].startswith("Price: ")
    assert not any("length" in setting for setting in fitted_plan.changes)


def test_a_server_is_spread_as_little_as_fits(fitted):
    words = ["vllm", "serve", "Qwen/Qwen2.5-72B-Instruct", "--max-model-len", "16384"]
    fitted_plan = fitted(words, ["memory=1TB", "gpu=H100-SXM5-80GB:8"], fit=True)
    assert fitted_plan.changes == ("--tensor-parallel-size=4",)


def test_a_run_that_fits_is_left_alone(fitted):
    words = ["vllm", "serve", "Qwen/Qwen2.5-7B-Instruct", "--max-model-len", "16384"]
    fitted_plan = fitted(words, ["memory=1TB", "gpu=H100-SXM5-80GB:8"], fit=True)
    assert fitted_plan.changes == ()
    assert fitted_plan.plan.notes[0] == "Nothing has to be changed."


def test_shorter_texts_are_never_the_way(fitted):
    words = ["vllm", "serve", "Qwen/Qwen2.5-7B-Instruct", "--max-model-len", "900000"]
    fitted_plan = fitted(words, ["memory=1TB", "gpu=A100-SXM4-40GB:1"], fit=True)
    assert fitted_plan.plan.verdict != "fits"
    assert not any("max-model-len" in setting for setting in fitted_plan.changes)
