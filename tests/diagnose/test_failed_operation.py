"""Which operand of a line an exception of Python speaks of: Python itself raises, and what the
answer says of an expression is held against its value.
"""

import subprocess
import sys

import pytest

from envdoctor.app import diagnose
from envdoctor.diagnose.failed_operation import of_operation
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts
from envdoctor.model.log import Frame, LogLine, Raised

MATRIX = load_matrix()
LINE = LogLine("run.log", 1, "")


class Settings:
    lr = None
    path = 3
    name = "a"


NAMES = {
    "args": Settings(),
    "cfg": {"model": "tall", "none": None, "rate": "5e-5"},
    "table": {"a": 1},
    "rows": [],
    "three": [1, 2, 3],
    "text": "auto",
    "number": 7,
    "place": 9,
    "pair": (1,),
    "nested": [{"a"}],
}


def raised(kind, message, code):
    frames = (Frame("/x/train.py", 3, "main", code.partition("\n")[0]),)
    return Raised(kind, message, frames, "ended", LINE, LINE, 1, 1)


def really_raised(code):
    """Run a line that fails and return what it raised, without marks."""
    try:
        exec(code, dict(NAMES))
    except Exception as error:  # noqa: BLE001 - whatever it is
        return raised(type(error).__name__, str(error), code)
    raise AssertionError(f"{code} works")


@pytest.mark.parametrize(
    ("code", "expression", "says"),
    [
        ("x = args.lr * 0.1", "args.lr", "is None"),
        ("x = args.path + '/model'", "args.path", "is of type int"),
        ("x = 'a' + args.path", "args.path", "is of type int"),
        ("if cfg['rate'] <= 0.0: pass", "cfg['rate']", "is of type str"),
        ("for row in args.lr:\n    pass", "args.lr", "is None"),
        ("x = [row for row in args.path]", "args.path", "is of type int"),
        ("x = list(number)", "number", "is of type int"),
        ("x = 'a' in number", "number", "is of type int"),
        ("x = len(number)", "number", "is of type int"),
        ("args.name[0] = 'b'", "args.name", "is of type str"),
        ("x = cfg['none'].items()", "cfg['none']", "is None"),
        ("x = number(3)", "number", "is of type int"),
        ("x = number.to('cuda')", "number", "is of type int"),
        ("x = number / len(rows)", "len(rows)", "is 0"),
        ("x = rows[0]", "rows", "is empty"),
        ("x = rows.pop()", "rows", "is empty"),
        ("x = table[rows]", "rows", "is of type list"),
        ("x = cfg in table", "cfg", "is of type dict"),
        ("x = cfg[:2]", "cfg", "is a dict"),
    ],
)
def test_what_is_said_of_an_expression_is_so(code, expression, says):
    if "[:2]" in code and sys.version_info >= (3, 12):
        pytest.skip("a slice has a hash since Python 3.12")
    answer = of_operation(really_raised(code))
    assert answer.startswith(f"{expression} {says}")
    value = eval(expression, dict(NAMES))
    said = {
        "is None": value is None,
        "is 0": value == 0,
        "is empty": value == [],
        "is a dict": isinstance(value, dict),
    }
    assert said.get(says, says == f"is of type {type(value).__name__}")


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("x = three[5]", "three has no element 5 there: it is shorter."),
        ("x = three[place]", "place is no index of three there: it lies behind its end."),
        ("a, b = pair", "pair has 1 part there, and the line takes 2."),
        ("a, b = three", "three has "),
        ("for a, b in [pair]:\n    pass", ""),
        ("x = int(text)", "text is 'auto' there, which is no number."),
        ("x = float(text)", "text is 'auto' there, which is no number."),
        ("x = table['b']", "table has no 'b' there."),
        ("x = set(table.keys()) == set(nested)", "An element of nested is of type set there"),
        ("x = {rows: 1}", ""),
        ("x = table[cfg['model']]", "cfg['model'] is 'tall' there, and table has no such key."),
    ],
)
def test_what_a_line_did_not_get(code, answer):
    said = of_operation(really_raised(code))
    assert said.startswith(answer)
    assert bool(said) == bool(answer)


@pytest.mark.parametrize(
    "code",
    [
        "x = cfg['none']['a']",  # without marks either of two may be None
        "x = number(3) + text(5)",
        "x = [1, 2, 3][5]",
        "x = {'a': 1}['b']",
        "x = (1 / number) / (number - 7)",
    ],
)
def test_of_several_expressions_none_is_named(code):
    assert of_operation(really_raised(code)) == ""


def test_of_several_operands_of_a_kind_each_may_be_none():
    answer = of_operation(really_raised("x = 0.5 * number + 0.5 * cfg['none']"))
    assert answer == "number or cfg['none'] is None there."
    assert of_operation(really_raised("x = 0.5 * 2 + 0.5 * args.lr")) == "args.lr is None there."
    assert of_operation(really_raised("x = args.lr * (args.lr * 2)")) == "args.lr is None there."


def test_a_line_of_a_dict():
    message = "'builtin_function_or_method' object is not subscriptable"
    answer = of_operation(raised("TypeError", message, '"height": data["video"][0].size[1],'))
    assert answer.startswith("data['video'][0] is a tensor there, whose size is a method")
    answer = of_operation(raised("TypeError", message, '"height": data[0].shape[1],'))
    assert answer == "data[0].shape is of type builtin_function_or_method there."


@pytest.mark.parametrize("code", ["", "**kwargs)", "x = (", '"""', "elif", "x = cfg['a", "\\", "("])
def test_what_is_no_whole_line(code):
    for kind, message in (("KeyError", "'a'"), ("TypeError", "'int' object is not callable")):
        assert of_operation(raised(kind, message, code)) == ""


def answer_of(program, tmp_path):
    """Run a program and return what is said of why it failed."""
    path = tmp_path / "train.py"
    path.write_text(program, encoding="utf-8")
    command = [sys.executable, str(path)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    log = tmp_path / "run.log"
    log.write_text(done.stderr, encoding="utf-8")
    return diagnose([str(log)], Facts(), MATRIX).traces[0].meaning


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python marks parts of a line since 3.11")
@pytest.mark.parametrize(
    ("line", "expression"),
    [
        ("    x = cfg['a']['b'] + cfg['c']['d']", "cfg['a'] is None"),
        ("    x = cfg['c']['e']['f'] + cfg['a']", "cfg['c']['e'] is None"),
        ("    x = 1 / cfg['n'] / cfg['z']", "cfg['z'] is 0"),
        ("    if False: pass\n    elif cfg['c']['e']['f']: pass", "cfg['c']['e'] is None"),
    ],
)
def test_the_part_that_python_marks_is_meant(line, expression, tmp_path):
    values = "{'a': None, 'c': {'e': None}, 'n': 2, 'z': 0}"
    program = f"cfg = {values}\ndef go():\n{line}\ngo()\n"
    assert answer_of(program, tmp_path).startswith(expression)


def test_a_variable_that_is_not_set(tmp_path):
    program = "import os\nworld = int(os.environ['NODES_OF_JOB'])\n"
    assert answer_of(program, tmp_path) == (
        "The environment variable NODES_OF_JOB is not set, and the line takes it to be."
    )


def test_the_line_that_wrote_a_key_out_is_told(tmp_path):
    program = (
        "class Rows:\n    rows = {'prompt': 1}\n"
        "    def __getitem__(self, key):\n        return self.rows[key]\n"
        "def tokenize(row):\n    return row['text']\ntokenize(Rows())\n"
    )
    answer = answer_of(program, tmp_path)
    assert answer.startswith("row has no 'text' there. That is of the program itself")


@pytest.mark.parametrize("maker", ["list(three)", "str(three)", "dict(pair=1)"])
def test_what_the_line_makes_itself_comes_from_nowhere_else(maker, tmp_path):
    program = f"three, pair = [1, 2, 3], (1,)\nx = {maker}.to('cuda')\n"
    path = tmp_path / "train.py"
    answer = answer_of(program, tmp_path)
    kind = maker.partition("(")[0]
    assert answer.startswith(f"{maker} makes a {kind} in that line itself, and a {kind} has no .to")
    assert "handed on" not in answer
    (trace,) = diagnose([str(tmp_path / "run.log")], Facts(), MATRIX).traces
    assert "Make something with .to (a tensor" in trace.finding.remedies[0].text
    assert path.exists()
