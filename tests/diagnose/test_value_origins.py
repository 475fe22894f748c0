"""What gave a run the value that a message is about: programs that print their settings and fail
with one of them.
"""

import subprocess
import sys

import pytest

from envdoctor.app import diagnose
from envdoctor.diagnose.value_origins import meant
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts

MATRIX = load_matrix()
ARGUMENTS = """
import argparse, json, os, sys
parser = argparse.ArgumentParser()
parser.add_argument("--train_file", default="data/rows.jsonl")
parser.add_argument("--model-family", default="tall_video")
parser.add_argument("--max_length", type=int, default=2560)
args = parser.parse_args()
"""
FAIL = """
def build(args):
    return {"short_video": 1}[args.model_family]
def read(args):
    return open(args.train_file)
def attend(args):
    raise ValueError(f"sequence of 2851 is longer than {args.max_length}")
"""


def message(tmp_path, shown, call, arguments=()):
    path = tmp_path / "train.py"
    path.write_text(f"{ARGUMENTS}{FAIL}{shown}\nsys.stdout.flush()\n{call}(args)\n", "utf-8")
    done = subprocess.run(
        [sys.executable, str(path), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        cwd=tmp_path,
        check=False,
    )
    log = tmp_path / "run.log"
    log.write_text(done.stdout, encoding="utf-8")
    finding = diagnose([str(log)], Facts(), MATRIX).traces[0].finding
    return finding.message, [str(entry) for entry in finding.evidence]


@pytest.mark.parametrize(
    "shown",
    [
        "print(args)",
        "print(vars(args))",
        "print(json.dumps(vars(args), indent=1))",
        "print('config:', *(f'  {name}: {value}' for name, value in vars(args).items()), sep='\\n')",
        "print('+ python train.py', *(f'--{n} {v}' for n, v in vars(args).items()))",
        "print('+ python train.py', *(f'--{n}={v}' for n, v in vars(args).items()))",
    ],
)
@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("build", "tall_video is model_family"),
        ("read", "data/rows.jsonl is train_file"),
        ("attend", "2560 is max_length"),
    ],
)
def test_the_setting_that_has_the_value(tmp_path, shown, call, said):
    words, evidence = message(tmp_path, shown, call)
    assert f"Here {said}." in words
    assert any("run.log:" in entry for entry in evidence)


@pytest.mark.parametrize(
    ("shown", "call", "arguments"),
    [
        ("print('loss=2560 step 2560')", "attend", ()),
        ("print('tall_video')", "build", ()),
        ("print('consider passing --max_length 2560')", "attend", ()),
        ("print('a_size=2560', 'b_size=2560', 'c_size=2560')", "attend", ()),
        ("print('hidden=25601')", "attend", ()),
    ],
)
def test_what_is_no_setting_or_one_of_many(tmp_path, shown, call, arguments):
    assert "Here" not in message(tmp_path, shown, call, arguments)[0]


def test_a_command_of_many_words_is_no_value(tmp_path):
    shown = "print(args); import subprocess"
    command = '["false", "--train_file", args.train_file, "ab c", "de f", "gh i", "jk l"]'
    call = f"(lambda args: subprocess.run({command}, check=True))"
    assert "Here" not in message(tmp_path, shown, call)[0]


def test_what_stands_below_the_failure_gave_it_nothing(tmp_path):
    log = tmp_path / "run.log"
    log.write_text(
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    x[y]\n'
        "KeyError: 'tall_video'\nmodel_family=tall_video\n"
    )
    assert "Here" not in diagnose([str(log)], Facts(), MATRIX).traces[0].finding.message


@pytest.mark.parametrize(
    ("value", "names", "about", "kept"),
    [
        ("2048", ("hidden_size", "out_hidden_size"), "shape mismatch: [3, 2048]", []),
        ("2048", ("hidden_size", "cutoff_len"), "shape mismatch: [3, 2048]", ["cutoff_len"]),
        ("2048", ("hidden_size", "cutoff_len"), "h = hidden.view(2048)", ["hidden_size"]),
        ("4096", ("hidden_size",), "rows 4096 of 3", []),
        ("4097", ("hidden_size",), "rows 4097 of 3", ["hidden_size"]),
        ("4097", ("hidden_size", "vocab"), "rows 4097 of 3", []),
        ("rows.bin", ("a", "b"), "no rows.bin", ["a", "b"]),
    ],
)
def test_a_number_that_settings_have_by_chance(value, names, about, kept):
    assert list(meant(value, names, about)) == kept
