"""What trials show: each outcome once, and the interval against a table."""

import json
from pathlib import Path

import pytest

from scripts.pair_trials.draw import Statements
from scripts.pair_trials.tally import (
    judge,
    judged,
    kept_entry,
    kept_verdicts,
    summary,
    tally,
    wilson,
)

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
        "statements": {ROW: STATEMENTS.of_row(ROW)},
        "imports": [module],
    }


AS_SAID = ["ImportError: cannot import name 'HFValidationError' from 'huggingface_hub.errors'"]
ALIKE = [
    "ImportError: cannot import name 'new' from 'huggingface_hub.file_download' (/x/y.py)",
    "peft/utils/hub_utils.py:15 from huggingface_hub.file_download import new",
]
ELSEWHERE = [ALIKE[0], "transformers/utils/hub.py:34 from huggingface_hub.file_download import new"]
PAIR = ["peft", "huggingface-hub"]
HIDDEN = "ModuleNotFoundError: Could not import module 'PreTrainedModel'."
OTHER = ["ImportError: cannot import name 'Cache' from 'transformers'"]


@pytest.mark.parametrize(
    ("lines", "findings", "module", "outcome"),
    [
        (AS_SAID, [finding()], "peft", "fails"),
        (AS_SAID, [finding()], "peft.tuners", "fails"),
        (AS_SAID, [], "peft", "miss"),
        (ALIKE, [finding()], "peft", "alike"),
        (AS_SAID, [finding()], "transformers", "miss"),
        (AS_SAID, [finding(packages=[*PAIR, "trl"])], "trl", "fails"),  # trl imports peft
        ([], [finding(packages=[*PAIR, "trl"])], "trl", "false alarm"),
        ([], [finding()], "peft", "false alarm"),
        ([], [finding(severity="warning")], "peft", "false alarm"),
        ([], [finding(verdict="undetermined")], "peft", "works"),
        ([], [], "peft", "works"),
        (OTHER, [finding()], "peft", "masked"),
        (ELSEWHERE, [finding()], "peft", "masked"),
        (
            OTHER,
            [finding(code="ED390", rule="x", packages=["peft", "transformers"])],
            "peft",
            "fails",
        ),
        (["ModuleNotFoundError: No module named 'cv2'"], [], "peft", "incomplete"),
        (
            [
                "ImportError: transformers is not installed. Please install it.",
                "after ModuleNotFoundError: No module named 'torch'",
            ],
            [],
            "peft",
            "incomplete",
        ),
        (["NotImplementedError: Unsloth currently only works on NVIDIA GPUs"], [], "peft", "gpu"),
        (["ModuleNotFoundError: No module named 'transformers.x'"], [], "peft", "miss"),
        (["RuntimeError: Found no NVIDIA driver on your system"], [finding()], "peft", "gpu"),
        (
            [
                HIDDEN,
                "after RuntimeError: Cannot access accelerator device when none is available.",
            ],
            [],
            "peft",
            "gpu",
        ),
        ([HIDDEN], [], "peft", "miss"),
        (["ValueError: expected 3"], [], "peft", "masked"),
    ],
)
def test_outcomes(lines, findings, module, outcome):
    verdict = judge(record(lines, findings, module))
    assert [item.outcome for item in verdict] == [outcome]


def test_what_was_not_tried_has_no_verdict():
    assert judge({"state": "uninstallable"}) == []


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
    lines = list(summary([record([], [finding()]), record(AS_SAID, [finding()])]))
    assert lines[0].startswith("blocks: 1 of 2 as said, 50.0 %")
    assert lines[0].endswith("; 1 statements")
    assert lines[1].startswith("blocks, without torch: 1 of 2")
    assert lines[2].startswith("false alarm  peft  ")
    assert "peft==0.13.0" in lines[2]
    assert len(lines) == 3


def test_a_neighbour_with_another_fault_does_not_count():
    other = finding(code="ED390", rule="x", packages=["peft", "transformers"])
    lines = list(summary([record(OTHER, [other], kind="allowed")]))
    assert lines[0].startswith("allowed: 0 of 0 as said, - (0.0 to 100.0); of 1 drawn: 1 fails")
    assert len(lines) == 2


@pytest.mark.parametrize(("lines", "outcome"), [(ALIKE, "miss"), (ELSEWHERE, "masked")])
def test_a_neighbour_is_missed_where_the_two_packages_meet(lines, outcome):
    verdict = judge(record(lines, [], kind="allowed"))
    assert [item.outcome for item in verdict] == [outcome]


def test_a_pair_of_which_nothing_was_said_shows_nothing_of_the_range():
    lines = list(summary([record([], [])]))
    assert lines[0].startswith("blocks: 0 of 0 as said, - (0.0 to 100.0); of 1 drawn: 1 works")


def test_pairs_against_metadata_are_told_apart():
    forced = {**record(AS_SAID, [finding()]), "forced": True}
    lines = list(summary([forced, record(AS_SAID, [finding()])]))
    assert [line.partition(":")[0] for line in lines] == [
        "blocks",
        "blocks, without torch",
        "blocks, without torch, against metadata",
    ]


def test_what_is_kept_gives_the_same_figures():
    records = [
        {**record([], [finding()]), "seed": "1", "torch": ""},
        {**record(AS_SAID, [finding()]), "seed": "1", "torch": ""},
        {**record([], []), "seed": "1", "torch": "", "state": "uninstallable"},
    ]
    entries = [json.loads(json.dumps(kept_entry(one))) for one in records]
    assert not any("findings" in entry or "installed" in entry for entry in entries)
    assert [one._replace(work=()) for one in map(judged, records)] == kept_verdicts(entries)
    figures = [line for line in summary(records) if not line.startswith("false alarm")]
    assert list(tally(kept_verdicts(entries))) == figures


def test_the_kept_trials():
    path = Path(__file__).resolve().parents[1] / "data" / "import_trials.jsonl"
    entries = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    drawn = [
        (entry["kind"], *entry["requirements"], entry["before"], entry["row"]) for entry in entries
    ]
    assert len(set(drawn)) == len(drawn) > 0
    assert all(entry["seed"] and entry["stratum"] for entry in entries)
