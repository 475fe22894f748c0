"""Programs that Python could not begin to run, alone and printed by several ranks at once."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdoctor.intake.syntax_errors import is_unparsed, syntax_errors

PLACE = '  File "fit.py", line 12\n'
IMPORT = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    import fit\n'
CODE = "    rows=4\n    ^\n"


def read(text):
    data = text.encode()
    return syntax_errors("run.log", data, 0, 0, data.count(b"\n"))


@pytest.mark.parametrize(
    "end",
    [
        "SyntaxError: invalid syntax\n",
        "SyntaxErrorSyntaxError: : invalid syntaxinvalid syntax\n",
        "SyntaxError: SyntaxErrorinvalid syntax: \ninvalid syntax\n",
        "    SyntaxError^\n: SyntaxErrorinvalid syntax: \ninvalid syntax\n",
        "SyntaxErrorSyntaxErrorSyntaxError: : : invalid syntaxinvalid syntaxinvalid syntax\n",
    ],
)
def test_one_error_however_the_ranks_print_it(end):
    (raised,) = read(f"begin\n{PLACE}{PLACE}{CODE}{end}")
    assert (raised.kind, raised.message) == ("SyntaxError", "invalid syntax")
    (frame,) = raised.frames
    assert (frame.file, frame.line, frame.code) == ("fit.py", 12, "rows=4")
    assert is_unparsed(raised)
    assert raised.first.number == 2


def test_the_words_of_python_itself(tmp_path):
    program = tmp_path / "fit.py"
    program.write_text("rows = [\n    1\n    2]\nprint(rows\n")
    ran = subprocess.run(
        [sys.executable, str(program)], stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    (raised,) = read(ran.stderr)
    assert raised.kind == "SyntaxError"
    assert raised.frames[0].file.endswith("fit.py")
    if sys.version_info >= (3, 10):
        assert "comma" in raised.message or "never closed" in raised.message


@pytest.mark.parametrize(
    "text",
    [
        f"{PLACE}{CODE}begin\n",
        f"{IMPORT}{PLACE}{CODE}SyntaxError: invalid syntax\n",
        '  File "<string>", line 1\n    a b\n    ^\nSyntaxError: invalid syntax\n',
        f'  File "/v/site-packages/fit.py", line 2\n{CODE}SyntaxError: invalid syntax\n',
        f"{PLACE}{CODE}SyntaxError: invalid syntax\n" + "row\n" * 200,
        "SyntaxError: invalid syntax\n",
        "",
    ],
)
def test_what_is_no_program_that_could_not_begin(text):
    assert read(text) == []


@given(st.lists(st.sampled_from([PLACE, CODE, "SyntaxError", ": ", "\n", "x", "^"]), max_size=12))
def test_any_pieces_do_no_harm(pieces):
    for raised in read("".join(pieces)):
        assert raised.first.number <= raised.line.number <= raised.until
