"""scripts/score_cases on cases of our own."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "data" / "cases" / "own.jsonl"


def run(*arguments, stdin=None):
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "score_cases"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        input=stdin,
    )


def test_score():
    done = run(str(CASES))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == [
        "classes 1-8: 2/2 named (100 %); classes 1-9: 2/3 named (67 %)",
        "cases: 2/3 named, 0 false alarms on 1 healthy, 0 unrelated errors",
    ]


def test_verbose_has_a_line_for_each_case():
    lines = run(str(CASES), "--verbose").stdout.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("own-")] == [
        "own-1",
        "own-2",
        "own-3",
        "own-4",
        "own-5",
    ]
    assert any(line.startswith("own-1") and "named [needs: meets]" in line for line in lines)
    assert any(line.startswith("own-5") and "silent" in line for line in lines)


def test_with_log_counts_what_needs_it():
    assert "/4 named" in run(str(CASES), "--with-log").stdout.splitlines()[-1]


def test_bad_input_is_one_line():
    done = run("-", stdin='{"id": 1}\n')
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "-:1" in done.stderr
    assert run("/nonexistent").returncode == 2


def test_an_error_on_health_is_a_false_alarm():
    case = {
        "id": "x",
        "class": 10,
        "env_kind": "report",
        "env_text": "Nvidia driver version: 470.57.02\nPyTorch version: 2.11.0+cu130",
        "expected": [{"kind": "none"}],
    }
    last = run("-", stdin=json.dumps(case) + "\n").stdout.splitlines()[-1]
    assert last.startswith("cases: 0/0 named, ")
    assert ", 0 false alarms" not in last


def test_what_a_named_cause_hides_is_counted():
    warned = {
        "id": "warned",
        "class": 10,
        "env_kind": "report",
        "env_text": "PyTorch version: 2.4.0+cu121\nGPU 0: NVIDIA H20\nPython version: 3.10.12",
        "expected": [{"kind": "none"}],
    }
    to_read = {
        "id": "to-read",
        "class": 1,
        "env_kind": "report",
        "env_text": "Nvidia driver version: 470.57.02\nPyTorch version: 2.11.0+cu130",
        "expected": [{"component": "nvidia-driver", "kind": "too-old", "needs": "a newer one"}],
    }
    wrong = {
        **to_read,
        "id": "wrong",
        "expected": [{"component": "nvidia-driver", "kind": "too-old", "needs": "<400"}],
    }
    done = run("-", stdin="".join(f"{json.dumps(case)}\n" for case in (warned, to_read, wrong)))
    line = next(line for line in done.stdout.splitlines() if "wrong remedies" in line)
    assert line.startswith("warnings on healthy cases: 1; wrong remedies: 1; named by component")
    assert "(what is needed could not be compared): 1;" in line
