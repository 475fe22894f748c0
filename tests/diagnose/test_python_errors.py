"""Words for exceptions of Python itself: programs that really raise them."""

from __future__ import annotations

import pytest

from envdoctor.diagnose.python_errors import of_python, remedy_of_python

FAILING = {
    "folder": ("open('.')\n", ". is a folder, and a file is opened", "the path of the file"),
    "part": ("open(__file__ + '/x')\n", "is a file, and a folder is wanted", "ls -ld"),
    "frozen": (
        (
            "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass Run:\n    rate: int = 1\n"
            "run = Run()\nrun.rate = 2\n"
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
        ("EmptyDataError", "No columns to parse from file", "as a table is empty"),
        (
            "ParserError",
            "Error tokenizing data. C error: Expected 2 fields in line 3, saw 4",
            "Line 3 of the table has 4 fields, and those before it 2",
        ),
    ],
)
def test_tables_of_pandas(kind, message, words):
    """The messages are what pandas 3.1.1 printed of such files."""
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
