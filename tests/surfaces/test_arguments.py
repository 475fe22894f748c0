"""Arguments that another package's release does not take, and methods that it calls with more than
who overrides them takes. Python itself is asked, by the same calls.
"""

import subprocess
import sys

import pytest
from surface_scan.call_statements import takes
from surface_scan.calls import read_calls
from surface_scan.measure import Measurement, statements_of

from envdoctor.matrix.measured_rows import OVERRIDES, PASSES, Surfaces, compile_surfaces

OLD = """
class Base:
    def __init__(self, model=None, old=None):
        self.model = model

    def step(self, item):
        return self.loss(item)

    def loss(self, item):
        return item

def helper(a, b=1):
    return a
"""
NEW = (
    OLD.replace("old=None", "fresh=None")
    .replace("self.loss(item)", "self.loss(item, count=1)")
    .replace("def loss(self, item)", "def loss(self, item, count=None)")
    .replace("b=1", "c=1")
)
USER = """
from maker.core import Base, helper

class Mine(Base):
    {method}

    def __init__(self, **kwargs):
        {before}
        super().__init__({passed})

def use():
    {call}
"""
PLAIN = {"method": "x = 1", "before": "pass", "passed": "model=1", "call": "return helper(1)"}


def _said(workshop, words, new=NEW):
    workshop.release("maker", {"maker/__init__.py": "", "maker/core.py": OLD}, "1.0")
    workshop.release("maker", {"maker/__init__.py": "", "maker/core.py": new}, "2.0")
    text = USER.format(**{**PLAIN, **words})
    workshop.release("user", {"user/__init__.py": text})
    measurement = Measurement(workshop.packages, workshop.sources, workshop.folder)
    return [one for one in statements_of(measurement, "user") if one.get("verb")]


def _fails(workshop, version):
    """What Python makes of it, beside a release."""
    statement = "import user; user.Mine().step(1); user.use()"
    return workshop.run([statement], "user-1.0", f"maker-{version}")[0]


@pytest.mark.parametrize(
    ("words", "name", "text"),
    [
        ({"passed": "old=1"}, "Base.__init__", "old"),
        ({"passed": "model=2"}, "", ""),
        ({"call": "return helper(1, b=2)"}, "helper", "b"),
        ({"call": "return helper(a=2)"}, "", ""),
        ({"method": "def loss(self, item): return 1"}, "Base.loss", "count"),
        ({"method": "def loss(self, item, **more): return 1"}, "", ""),
        ({"method": "def loss(self, item, count=0): return 1"}, "", ""),
        # Who overrides what calls it never comes to that call, unless it hands on.
        (
            {"method": "def loss(self, item): return 1\n    def step(self, item): return 2"},
            "",
            "",
        ),
        (
            {
                "method": "def loss(self, item): return 1\n"
                "    def step(self, item): return super().step(item)"
            },
            "Base.loss",
            "count",
        ),
    ],
)
def test_arguments(workshop, words, name, text):
    statements = _said(workshop, words)
    assert [(one["name"], one["text"]) for one in statements] == [(name, text)] * bool(name)
    assert [_fails(workshop, version) for version in ("1.0", "2.0")] == [
        "",
        "TypeError" if name else "",
    ]
    for one in statements:
        assert (one["in"], one["lacking"]) == ([["1.0", "1.0"]], [["2.0", "2.0"]])
        # Who calls a function of the package, or makes a class, is not known.
        assert (one["effect"], one["pin"]) == ("note", "maker<=1.0")


@pytest.mark.parametrize(
    "words",
    [
        # Who asks what it may pass knows of both releases.
        {
            "call": "import inspect\n"
            "    if 'b' in inspect.signature(helper).parameters: helper(1, b=2)"
        },
        {"call": "try:\n        helper(1, b=2)\n    except TypeError:\n        helper(1)"},
        {"call": "helper = print\n    helper(1, end='')"},
    ],
)
def test_what_says_nothing(workshop, words):
    assert _said(workshop, words) == []
    assert _fails(workshop, "2.0") == ""


@pytest.mark.parametrize(
    "change",
    [
        ("def helper(", "def other(f): return lambda *a, **k: 1\n@other\ndef helper("),
        ("c=1", "c=1, **more"),
        ("def helper(a, c=1)", "def helper(*a, **k)"),
    ],
)
def test_what_takes_anything_takes_it(workshop, change):
    assert _said(workshop, {"call": "return helper(1, b=2)"}, NEW.replace(*change)) == []


def test_what_nobody_takes_was_misread(workshop):
    assert _said(workshop, {"call": "return helper(1, nowhere=2)"}) == []


def test_where_a_call_hangs_on_more_it_is_a_note(workshop):
    (statement,) = _said(workshop, {"call": "if print:\n        helper(1, b=2)"})
    assert statement["effect"] == "note"


@pytest.mark.parametrize(
    ("text", "count", "fits"),
    [
        ("a,b=", 2, True),
        ("a,b=", 3, False),
        ("a,*_", 9, True),
        ("a,*,b=", 2, False),
        ("", 1, False),
    ],
)
def test_positional_arguments(text, count, fits):
    namespace = {}
    exec(f"def f({text.replace('=', '=0').replace('*_', '*rest')}): pass", namespace)
    try:
        namespace["f"](*range(count))
        accepted = True
    except TypeError as error:
        accepted = "positional" not in str(error)
    assert takes(text, [], count)[1] is fits is accepted


def test_what_python_prints_is_the_text_of_the_row(workshop):
    """The symptom is what people search for: held against the exception itself."""
    rows = {}
    for words in ({"passed": "old=1"}, {"method": "def loss(self, item): return 1"}):
        (statement,) = _said(workshop, words)
        document = {"name": "user", "date": "2026-01-01", "statements": [statement]}
        (row,) = Surfaces(compile_surfaces([document])).rows_of("user")
        done = subprocess.run(
            [sys.executable, "-c", "import user; user.Mine().step(1)"],
            env={"PYTHONPATH": f"{workshop.folder}/user-1.0:{workshop.folder}/maker-2.0"},
            capture_output=True,
            text=True,
        )
        printed = done.stderr.strip().splitlines()[-1]
        if sys.version_info >= (3, 10):  # before, without the class
            assert printed == f"TypeError: {row.symptom}"
        rows[statement["verb"]] = row.title
    assert rows == {
        PASSES: "Mine.__init__ of user 1.0 passes old= to Base.__init__, which maker 2.0 does not "
        "take",
        OVERRIDES: "Mine of user 1.0 overrides Base.loss without count, with which maker 2.0 calls "
        "it",
    }


def test_a_source_that_cannot_be_parsed():
    assert read_calls(b"def f(:\n") == {}
