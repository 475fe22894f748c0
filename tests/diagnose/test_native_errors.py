"""What the words of Python's and torch's own errors and the line of source tell together."""

from __future__ import annotations

import gzip
import hashlib
import inspect
import json
import pickle

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
        ("x = json.loads('[1,')", {"json": json}, "a value is cut off"),
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
    ("code", "words"),
    [
        ('json.loads(\'{"a": 1}\\n{"a": 2}\')', "one JSON value in each line"),
        ('json.loads(\'{"a": "xy\')', "ends within a string"),
        ("json.loads('{\"a\" 1}')", ""),
        ("gzip.compress(b'a').decode()", "a file that gzip packed"),
        ("'a'.encode('utf-16').decode()", "a text of UTF-16"),
        ("pickle.dumps(3).decode()", "a pickle"),
        ("b'abc\\xff'.decode()", "No text in UTF-8 has the byte 0xff"),
    ],
)
def test_what_was_read_instead(code, words):
    answer = of_native(really_raised(code, {"json": json, "gzip": gzip, "pickle": pickle}))
    assert words in answer
    assert bool(answer) == bool(words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"<html>", "a page of HTML"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
    ],
)
def test_a_file_that_is_no_pickle(content, words):
    try:
        pickle.loads(content)
    except (pickle.UnpicklingError, EOFError) as error:
        kind, message = type(error).__name__, str(error)
    frames = (Frame("/usr/lib/python3.11/site-packages/torch/serialization.py", 3, "load", ""),)
    entry = Raised(kind, message, frames, "ended", LINE, LINE, 1, 1)
    assert words in of_native(entry)
    assert of_native(entry._replace(frames=(Frame("/x/pipe.py", 3, "read", ""),))) == ""


def test_a_variable_that_has_no_value_yet():
    code = "def go(x):\n    if x:\n        best = 1\n    return best\ngo(0)"
    assert "gives best a value" in of_native(really_raised(code, {}))


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ('[{"text":"a"}]', "body.content: Input should be a valid string, and it was sent a list"),
        ('{"a":1}', "it was sent an object"),
        ("3", "it was sent a number"),
        ("null", "it was sent null"),
    ],
)
def test_a_request_that_a_schema_refused(sent, words):
    """As FastAPI sends on what pydantic 2 says (``ValidationError.errors``)."""
    answer = (
        '{"detail":[{"type":"string_type","loc":["body","content"],"msg":"Input should be a valid '
        f'string","input":{sent}}}]}}'
    )
    assert words in of_native(raised("Exception", f"Request failed: 422, {answer}"))
    assert of_native(raised("Exception", answer.replace('"body"', '"line"'))) == ""
