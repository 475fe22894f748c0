"""Data types that an exception refuses, of programs that really raise it."""

import subprocess
import sys

import pytest

from envdoctor.app import diagnose
from envdoctor.intake.assumptions import parse_assumptions, with_assumptions
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts

SITE = "venv/lib/python3.11/site-packages"


@pytest.fixture
def finding(tmp_path):
    """The finding of a program that calls code of a package, which raises."""

    def run(file, code, *assume, program="import acme_run\n"):
        files = {file: code, "acme_run.py": f"import {file[:-3].replace('/', '.')}\n"}
        for name, text in files.items():
            path = tmp_path / SITE / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        (tmp_path / "run.py").write_text(program, encoding="utf-8")
        lines = f"import sys, runpy; sys.path[:0] = [{str(tmp_path / SITE)!r}]; "
        done = subprocess.run(
            [sys.executable, "-I", "-c", lines + "runpy.run_path('run.py')"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1
        log = tmp_path / "run.log"
        log.write_text(done.stderr, encoding="utf-8")
        facts = with_assumptions(Facts(), dict(parse_assumptions(assume))) if assume else None
        (finding,) = [trace.finding for trace in diagnose([str(log)], facts, load_matrix()).traces]
        return finding

    return run


@pytest.mark.parametrize(
    ("message", "sentence", "fix"),
    [
        (
            "\"paged_attention_xpu_v1_impl\" not implemented for 'BFloat16'",
            "What runs there on Intel's GPUs (XPU) does not take bfloat16",
            "in float16",
        ),
        (
            "unsupported dtype, only fp32 and fp16 are supported",
            "Of the types that models are loaded in only bfloat16 is left that it does not take",
            "in float16",
        ),
        (
            "Operation 'sign_out_mps()' does not support input type 'int64' in MPS backend.",
            "What runs there on Apple's GPU (MPS) does not take int64",
            "on the CPU",
        ),
    ],
)
def test_a_data_type_that_is_not_taken(finding, message, sentence, fix):
    said = finding("acme/kernels.py", f"raise RuntimeError({message!r})\n")
    assert sentence in said.message
    assert fix in said.remedies[0].text


@pytest.mark.parametrize(
    "message",
    [
        "unsupported dtype, only int8 and uint8 are supported",
        "unsupported dtype, only fp32, fp16 and bf16 are supported",
        "unsupported dtype: see the manual",
    ],
)
def test_of_types_nothing_follows_where_more_than_one_is_left(finding, message):
    assert "is left" not in finding("acme/kernels.py", f"raise ValueError({message!r})\n").message


def test_a_message_without_such_words_gets_none(finding):
    said = finding("acme/kernels.py", "raise RuntimeError('the support of this beam is gone')\n")
    assert " lacks " not in said.message
    assert not said.remedies


def test_what_a_handler_met_that_has_no_word_of_its_own(finding):
    """The first exception is what failed; the second only carries it on."""
    code = (
        "class HTTPException(Exception):\n    pass\n\n\ntry:\n"
        "    raise TypeError('a beam is not a plate')\n"
        "except TypeError:\n    raise HTTPException\n"
    )
    assert "TypeError: a beam is not a plate" in finding("acme/serve.py", code).message
    said = finding("acme/serve.py", code.replace("HTTPException\n", "HTTPException('no plate')\n"))
    assert "failed with HTTPException: no plate" in said.message
