"""Calibration on health: stacks that uv resolves, on machines that NVIDIA's tables allow, give no
error finding.

The stacks under ``tests/data/health`` are outputs of ``uv pip compile`` (exact pins, as of the date
in the first line); ``scripts/resolve_health`` writes them. The machines below are chosen by hand
from NVIDIA's published tables, not from the matrix: a CUDA 12 build wants R525 or newer, a CUDA 13
build R580, and the device must be one that the stack's maintainers support.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from envdoctor.intake import parse_assumptions, parse_requirements
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.finding import Finding
from envdoctor.rules import judge

MATRIX = load_matrix()
STACKS = sorted((Path(__file__).parent.parent / "data" / "health").glob("*.txt"))

#: By CUDA major: (driver release, GPU, count, glibc). Every one is within NVIDIA's minor-version
#: compatibility.
MACHINES = {
    12: [
        ("535.129.03", "NVIDIA A100-SXM4-80GB", 8, "2.35"),
        ("550.54.15", "NVIDIA H100 80GB HBM3", 8, "2.35"),
        ("570.86.15", "NVIDIA GeForce RTX 4090", 1, "2.39"),
        ("580.95.05", "NVIDIA L40S", 4, "2.36"),
    ],
    13: [
        ("580.65.06", "NVIDIA H100 80GB HBM3", 8, "2.35"),
        ("580.95.05", "NVIDIA A100-SXM4-80GB", 8, "2.35"),
        ("595.45.04", "NVIDIA B200", 8, "2.39"),
        ("615.71.09", "NVIDIA GeForce RTX 5090", 1, "2.39"),
    ],
}


def read_stack(path: Path) -> tuple[str, str, int]:
    """Return the pins, the Python version and the CUDA major of a stack (12 where it has no
    torch).
    """
    text = path.read_text()
    python = text.split("Python ", 1)[1].split(",", 1)[0]
    return text, python, 13 if "\nnvidia-cublas==13" in text else 12


def judge_stack(path: Path, machine: tuple[str, str, int, str]) -> list[Finding]:
    """Return the findings of one stack on one machine."""
    text, python, _ = read_stack(path)
    driver, gpu, count, glibc = machine
    facts = parse_requirements(text, path.name)
    facts = facts.updated(
        parse_assumptions(
            [
                f"nvidia-driver={driver}",
                f"gpu={gpu}:{count}",
                f"glibc={glibc}",
                f"python={python}",
                "os.platform=linux",
                "os.architecture=x86_64",
            ]
        )
    )
    return judge(facts, MATRIX)


def test_there_are_at_least_thirty_stacks() -> None:
    assert len(STACKS) >= 30


@pytest.mark.parametrize(
    "step",
    [pytest.param(3, id="two machines"), pytest.param(1, id="all", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.stem)
def test_a_resolved_stack_on_a_plausible_machine_has_no_error(path: Path, step: int) -> None:
    _, _, major = read_stack(path)
    for machine in MACHINES[major][::step]:
        errors = [finding for finding in judge_stack(path, machine) if finding.severity == "error"]
        assert not errors, f"{machine}: " + "; ".join(
            f"{finding.key}: {finding.message}" for finding in errors
        )


def test_the_same_stacks_on_a_driver_below_their_major_are_refused() -> None:
    """The calibration can fail: one driver too old for the stack's CUDA major is an error for every
    stack with torch.
    """
    for path in STACKS:
        text, _, major = read_stack(path)
        if "\ntorch==" not in text:
            continue
        old = ("515.105.01" if major == 12 else "570.86.15", "NVIDIA A100-SXM4-80GB", 8, "2.35")
        assert any(finding.code == "ED101" for finding in judge_stack(path, old)), path.name
