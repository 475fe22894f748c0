"""What trials show: each outcome once, and the interval against a table."""

from pathlib import Path

import pytest

from scripts.pair_trials.draw import Statements
from scripts.pair_trials.tally import judge, summary, wilson

STATEMENTS = Statements(Path(__file__).resolve().parents[2] / "matrices")
ROW = "imports-huggingface_hub.errors.HFValidationError:peft"


def finding(**changed):
    return {
        "code": "ED308",
        "rule": ROW,
        "severity": "error",
        "verdict": "violated",
        "packages": ["peft", "huggingface-hub"],
        "component": "huggingface-hub",
        "message": "peft imports what huggingface-hub does not have.",
        "effect": "blocks",
        **changed,
    }


def record(lines, findings, module="peft", kind="blocks"):
    return {
        "key": f"{kind} {module} {lines}",
        "kind": kind,
        "state": "tried",
        "row": ROW,
        "before": "2024-04-04",
        "requirements": ["peft==0.13.0", "huggingface-hub==0.22.0"],
        "installed": {"peft": "0.13.0", "huggingface-hub": "0.22.0", "transformers": "4.38.0"},
        "errors": {module: lines},
        "findings": findings,
    }


AS_SAID = ["ImportError: cannot import name 'HFValidationError' from 'huggingface_hub.errors'"]
OTHER = ["ImportError: cannot import name 'Cache' from 'transformers'"]


@pytest.mark.parametrize(
    ("lines", "findings", "module", "outcome"),
    [
        (AS_SAID, [finding()], "peft", "fails"),
        (AS_SAID, [finding()], "peft.tuners", "fails"),
        (AS_SAID, [], "peft", "miss"),
        (AS_SAID, [finding()], "transformers", "miss"),
        ([], [finding()], "peft", "false alarm"),
        ([], [finding(severity="warning")], "peft", "false alarm"),
        ([], [finding(verdict="undetermined")], "peft", "works"),
        ([], [], "peft", "works"),
        (OTHER, [finding()], "peft", "masked"),
        (
            OTHER,
            [finding(code="ED390", rule="x", packages=["peft", "transformers"])],
            "peft",
            "fails",
        ),
        (["ModuleNotFoundError: No module named 'cv2'"], [], "peft", "incomplete"),
        (["ModuleNotFoundError: No module named 'transformers.x'"], [], "peft", "miss"),
        (["RuntimeError: Found no NVIDIA driver on your system"], [finding()], "peft", "gpu"),
        (["ValueError: expected 3"], [], "peft", "masked"),
    ],
)
def test_outcomes(lines, findings, module, outcome):
    verdict = judge(record(lines, findings, module), STATEMENTS)
    assert [item.outcome for item in verdict] == [outcome]


def test_what_was_not_tried_has_no_verdict():
    assert judge({"state": "uninstallable"}, STATEMENTS) == []


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(0, 0, 0.0, 1.0), (10, 10, 0.722, 1.0), (9, 10, 0.596, 0.982), (50, 100, 0.404, 0.596)],
)
def test_wilson(successes, trials, low, high):
    assert wilson(successes, trials) == (
        pytest.approx(low, abs=6e-4),
        pytest.approx(high, abs=6e-4),
    )


def test_disagreements_are_work_to_do():
    lines = list(summary([record([], [finding()]), record(AS_SAID, [finding()])], STATEMENTS))
    assert lines[0].startswith("blocks: 1 of 2 as said, 50.0 %")
    assert lines[1].startswith("false alarm  peft  ")
    assert "peft==0.13.0" in lines[1]
    assert len(lines) == 2


def test_a_neighbour_with_another_fault_does_not_count():
    other = finding(code="ED390", rule="x", packages=["peft", "transformers"])
    lines = list(summary([record(OTHER, [other], kind="allowed")], STATEMENTS))
    assert lines == ["allowed: 0 of 0 as said, - (0.0 to 100.0); of 1 drawn: 1 fails"]
