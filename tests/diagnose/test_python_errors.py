"""Words for exceptions of Python itself: programs that really raise them."""

from __future__ import annotations

import pytest

from envdoctor.diagnose.python_errors import of_python, remedy_of_python

FAILING = {
    "folder": ("open('.')\n", ". is a folder, and a file is opened", "the path of the file"),
    "part": ("open(__file__ + '/x')\n", "is a file, and a folder is wanted", "ls -ld"),
    "frozen": (
        (
            "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass Run:\n"
            "    rate: int = 1\nrun = Run()\nrun.rate = 2\n"
        ),
        "rate is of a frozen dataclass",
        "dataclasses.replace",
    ),
    "relative": ("from .model import Net\n", "started by its path", "python -m package.module"),
    "module": (
        "import glob\nglob('*.txt')\n",
        "is the module, and not the function",
        "from module",
    ),
    "value": ("loss = 1.0\nloss()\n", "A value of type float is called", ""),
    "bytes": (
        "print(bytes([0x61, 0xe9, 0x20]).decode('utf-8'))\n",
        "No text in UTF-8 has the byte 0xe9 there",
        "iconv",
    ),
    "exponent": ("int('1e-5')\n", "1e-5 is a number, and int() takes none", "int(float("),
    "text": ("rate = '1e-5'\nprint(rate < 1)\n", "PyYAML wants a point in it", "float(...)"),
    "empty": ("float('')\n", "is to be a number is empty", ""),
    "refused": (
        (
            "import socket\ns = socket.socket()\ns.bind(('127.0.0.1', 0))\n"
            "socket.create_connection(s.getsockname())\n"
        ),
        "Nothing listens at that address",
        "ss -ltnp",
    ),
}


@pytest.mark.parametrize(("program", "words", "fix"), FAILING.values(), ids=FAILING)
def test_what_a_program_ran_into(program, words, fix, tmp_path, printed, said):
    (tmp_path / "train.py").write_text(program)
    trace = said(printed(tmp_path / "train.py")).traces[0]
    assert words in f"{trace.finding.message} {trace.meaning}"
    assert fix in " ".join(remedy.text for remedy in trace.finding.remedies)


@pytest.mark.parametrize(
    ("kind", "message", "words"),
    [
        (
            "ArrowInvalid",
            "JSON parse error: Invalid value. in row 1",
            "A file of the data set is no JSON from row 1 on",
        ),
        (
            "CastError",
            (
                "Couldn't cast\nb: string\na: int64\nto\n{'a': Value('int64')}\n"
                "because column names don't match"
            ),
            "do not have the same columns",
        ),
        ("EmptyDataError", "No columns to parse from file", "as a table is empty"),
        (
            "ParserError",
            "Error tokenizing data. C error: Expected 2 fields in line 3, saw 4",
            "Line 3 of the table has 4 fields, and those before it 2",
        ),
    ],
)
def test_tables(kind, message, words):
    """The messages are what pandas 3.1.1 and datasets 5.2.0 printed of such files."""
    assert words in of_python(kind, message)
    assert remedy_of_python(kind, message)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("ValueError", "invalid literal for int() with base 10: 'abc'"),
        ("TypeError", "'NoneType' object is not callable"),
        ("ImportError", "libcudart.so.12: cannot open shared object file"),
        ("UnicodeDecodeError", "'ascii' codec can't decode byte 0xe9 in position 3: ordinal"),
        ("RuntimeError", "Is a directory: '/x'"),
    ],
)
def test_what_other_words_say_themselves(kind, message):
    assert of_python(kind, message) == remedy_of_python(kind, message) == ""


def test_who_called_what_was_raised_again(tmp_path, printed, said):
    """A traceback begins where the first was caught: its callers stand in that of the second."""
    (tmp_path / "train.py").write_text(
        "def look(table, name):\n    try:\n        return deep(table, name)\n"
        "    except KeyError as error:\n        raise KeyError(name) from error\n"
        "def deep(table, name):\n    return table[name]\n"
        "def main():\n    look({'a': 1}, 'text')\nmain()\n"
    )
    trace = said(printed(tmp_path / "train.py")).traces[0]
    assert "raised at" in trace.finding.message
    assert "train.py, line 7" in trace.finding.message
    # The name of an exception is no setting that has its text as a value.
    assert "is KeyError" not in trace.finding.message


PACKAGES = "/venv/lib/python3.11/site-packages"
ROWS = f"""Traceback (most recent call last):
  File "/srv/train.py", line 13, in <module>
    main()
  File "/srv/train.py", line 9, in main
    data.map(lambda x: tokenize(x['content']))
  File "{PACKAGES}/datasets/arrow_dataset.py", line 3882, in apply_function
    processed_inputs = function(*fn_args, *additional_args, **fn_kwargs)
  File "/srv/train.py", line 9, in <lambda>
    data.map(lambda x: tokenize(x['content']))
  File "{PACKAGES}/datasets/formatting/formatting.py", line 299, in __getitem__
    value = self.data[key]
KeyError: 'content'
"""


def test_a_column_that_is_not_there(said):
    """The places are those of datasets 5.2.0, and of a folder of pandas for the other."""
    trace = said(ROWS).traces[0]
    assert "no column 'content', which /srv/train.py, line 9, asks for" in trace.meaning
    assert "rename one to 'content'" in trace.finding.remedies[0].text
    of_pandas = ROWS.replace("datasets/formatting/formatting.py", "pandas/core/indexes/base.py")
    assert "The table has no column 'content'" in said(of_pandas).traces[0].meaning
    elsewhere = ROWS.replace("datasets/formatting/formatting.py", "transformers/trainer.py")
    assert "column" not in said(elsewhere).traces[0].meaning


def test_a_package_that_says_itself_what_it_refuses(said):
    text = ROWS.replace(
        "    value = self.data[key]\nKeyError: 'content'",
        "    raise ValueError(\nValueError: You have set eval_strategy, and gave no eval_dataset",
    )
    assert not any("print type" in one.text for one in said(text).traces[0].finding.remedies)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            (
                "OSError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': "
                "'/models/Qwen2-7B'. Use `repo_type` argument if needed."
            ),
            "/models/Qwen2-7B was taken for a name on the hub",
        ),
        (
            (
                "OSError: Incorrect path_or_model_id: './out/step_1'. Please provide either the "
                "path to a local folder or the repo_id of a model on the Hub."
            ),
            "./out/step_1 was taken for a name on the hub",
        ),
        (
            "ValueError: Can't find 'adapter_config.json' at '/srv/out'",
            "/srv/out holds no adapter of peft",
        ),
        (
            "OSError: Incorrect path_or_model_id: '/srv/model.safetensors'. Please provide",
            "was given as a model, and that is one file of it",
        ),
    ],
)
def test_paths_that_hold_no_model(line, words, said):
    """The lines are those of huggingface_hub 2.4, transformers 4.44 and 5.24, and peft 0.21."""
    text = ROWS.replace("KeyError: 'content'", line)
    assert words in said(text).traces[0].finding.message
    assert len([one for one in said(text).traces if not one.finding.caused_by]) == 1


def test_what_pythons_tracker_of_shared_memory_prints_is_no_failure(said):
    """It prints what it runs into and goes on (Lib/multiprocessing/resource_tracker.py, main)."""
    tracker = "/usr/lib/python3.10/multiprocessing/resource_tracker.py"
    noise = (
        "Traceback (most recent call last):\n"
        f'  File "{tracker}", line 209, in main\n    cache[rtype].remove(name)\n'
        "KeyError: '/mp-8f_f5ecf'\n"
    )
    assert not any(trace.is_failure for trace in said(noise).traces)
    first = said(f"{ROWS}{noise}").traces[0]
    assert "no column 'content'" in first.meaning
