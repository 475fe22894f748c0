"""What the words of Python's and torch's own errors and the line of source tell together."""

from __future__ import annotations

import hashlib
import inspect
import json
import subprocess

import pytest

from envdoctor.diagnose.native_errors import of_native
from envdoctor.model.log import Frame, LogLine, Raised

LINE = LogLine("run.log", 1, "")


def raised(kind, message, code=""):
    frames = (Frame("/x/train.py", 3, "main", code),)
    return Raised(kind, message, frames, "ended", LINE, LINE, 1, 1)


def really_raised(code, names):
    """Run a line that fails and return what it raised."""
    try:
        exec(code, names)
    except Exception as error:  # noqa: BLE001 - whatever it is
        return raised(type(error).__name__, str(error), code)
    raise AssertionError(f"{code} works")


class Version:
    cuda = None

    def read(self):
        return None


NAMES = {"version": Version(), "sizes": None, "call": None, "table": {"a": None}, "text": "3"}


@pytest.mark.parametrize(
    ("code", "expression"),
    [
        ("major, minor = map(int, version.cuda.split('.'))", "version.cuda is None"),
        ("x = sizes[0]", "sizes is None"),
        ("x = version.read().strip()", "version.read() is None"),
        ("x = table['a'].upper()", "table['a'] is None"),
        ("x = call(3)", "call is None"),
        ("x = text.upper() + version.cuda.upper()", ""),  # one of two: not told
    ],
)
def test_which_expression_is_none(code, expression):
    answer = of_native(really_raised(code, dict(NAMES)))
    assert answer.startswith(expression)
    assert bool(answer) == bool(expression)


@pytest.mark.parametrize(
    ("code", "names", "words"),
    [
        ("x = batch['text']", {"batch": {}}, "batch has no 'text' there."),
        ("x = total / len(loader)", {"total": 1, "loader": []}, "len(loader) is 0 there."),
        ("x = (1 / total) / 2", {"total": 0}, ""),
        ("x = json.loads('')", {"json": json}, "What was read is empty"),
        ("x = json.loads('[1,')", {"json": json}, ""),
        ("f(row['text'])", {"row": "a", "f": str}, "row is a string there"),
        ("f(rows['text'])", {"rows": [1], "f": str}, "rows is a list there"),
        ("x = text.strip[0]", {"text": "a"}, "text.strip is of type builtin_function_or_method"),
        ("x = steps(3)", {"steps": 3}, "steps is of type int there."),
        ("inspect.getargs(len.__call__)", {"inspect": inspect}, ""),
        ("inspect.getargs(f)", {"inspect": inspect, "f": json.loads}, "inspect.getfullargspec"),
        (
            "x = config.hidden_size",
            {"config": type("TwoPartsConfig", (), {})()},
            "keeps hidden_size in the configuration of one of them",
        ),
    ],
)
def test_what_a_line_asked_for(code, names, words):
    answer = of_native(really_raised(code, names))
    assert words in answer
    assert bool(answer) == bool(words)


def test_a_torch_that_is_not_built_for_cuda():
    line = 'major, minor = map(int, torch.version.cuda.split("."))'
    answer = of_native(raised("AttributeError", "'NoneType' object has no attribute 'split'", line))
    assert answer.startswith("torch.version.cuda is None there: the torch that runs here is not")


@pytest.mark.parametrize("name", ["md5", "sha1", "sha256"])
def test_the_digest_of_an_empty_file(name):
    digest = hashlib.new(name, b"").hexdigest()
    other = hashlib.new(name, b"1").hexdigest()
    assert "the file is empty" in of_native(raised("X", f"computed={digest}, expected={other}"))
    assert of_native(raised("X", f"computed={other}, expected={other}")) == ""


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("\"normal_kernel_cuda\" not implemented for 'Char'", "on a GPU for tensors of torch.int8"),
        ("\"addmm_impl_cpu_\" not implemented for 'Half'", "torch.float16: the tensor has to be"),
        ("\"tril\" not implemented for 'BFloat16'", "torch has no tril for tensors of torch.bfl"),
        ("\"x\" not implemented for 'Anything'", ""),
        ("Tensor on device cuda:0 is not on the expected device meta!", "was never loaded"),
        ("masked_fill only supports boolean masks, but got dtype Byte", ".bool() in place of"),
        ("masked_fill_ only supports boolean masks, but got mask with dtype Byte", ".bool()"),
    ],
)
def test_of_which_type_a_tensor_is(message, words):
    answer = of_native(raised("RuntimeError", message))
    assert words in answer
    assert bool(answer) == bool(words)


def test_the_names_of_types_are_torchs(torch_python):
    """A torch that is installed says what it has no code for, and which type that is."""
    program = """
import torch
for kind in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool):
    try:
        torch.randn_like(torch.zeros(2, dtype=kind))
    except (RuntimeError, NotImplementedError) as error:
        print(kind, error, sep="\\t")
"""
    done = subprocess.run(
        [torch_python, "-c", program], stdout=subprocess.PIPE, text=True, timeout=300, check=True
    )
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(lines) == 6
    for kind, message in lines:
        assert f"on the CPU for tensors of {kind}:" in of_native(raised("RuntimeError", message))
