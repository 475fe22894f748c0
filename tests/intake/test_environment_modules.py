"""Environment modules that a report loads."""

import pytest

from envdoctor.intake.pasted_report import parse_report


@pytest.mark.parametrize(
    ("line", "toolkit", "cudnn"),
    [
        ("module load cuda/12.4.1", "12.4.1", None),
        ("ml load gcc/12.1.0 CUDA/12.4 cuDNN/9.1.0.70-12.x", "12.4", "9.1.0.70"),
        ("module purge; module load cudatoolkit/11.8", "11.8", None),
        ("module load cuda", None, None),
    ],
)
def test_what_modules_bring(line, toolkit, cudnn):
    facts = parse_report(f"torch 2.6.0\n{line}\n")
    assert facts.value("toolkit.version") == toolkit
    assert facts.value("cudnn.system_version") == cudnn
    assert facts.value("report.unread") == ()


def test_a_module_that_is_advised_is_not_loaded():
    facts = parse_report("torch 2.6.0\nYou should run: module load cuda/12.4.1\n")
    assert facts.value("toolkit.version") is None
