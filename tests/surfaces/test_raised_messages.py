"""What a source raises, held against what Python raises when the source is run."""

import ast
import textwrap

import pytest
from surface_scan.raised_messages import negated, read_messages

from envdoctor.matrix.messages import PackageMessages, words_of

#: Ways in which sources make the text of an exception; each function is called with 8.
SHAPES = {
    "f-string": 'raise ValueError(f"length {n} is larger than the {4} allowed")',
    "joined lines": 'raise ValueError("length "\n    f"{n!r} is larger "\n    "than allowed")',
    "percent": 'raise ValueError("length %d is larger than %s (%5.1f%%)" % (n, "allowed", 0.5))',
    "percent, one value": 'raise ValueError("length %s is larger than allowed" % n)',
    "percent, by name": 'raise ValueError("length %(n)s is larger than allowed" % {"n": n})',
    "format": 'raise ValueError("length {} is larger than {most:>3}".format(n, most=4))',
    "format, by number": 'raise ValueError("length {1} exceeds {0} allowed".format(4, n))',
    "concatenation": 'raise ValueError("length " + str(n) + " is larger than allowed")',
    "join": 'raise ValueError(" ".join(["length", str(n), "is larger", "than allowed"]))',
    "dedent": 'raise ValueError(textwrap.dedent("""\n        length is larger\n'
    '          than allowed\n        """).strip())',
    "a local name": 'text = f"length {n} is larger than allowed"\nraise ValueError(text)',
    "a local name that grows": 'text = f"length {n} is larger"\ntext += " than allowed"\n'
    "raise ValueError(text)",
    "a constant": "raise ValueError(TEXT.format(n))",
    "a constant within": 'raise ValueError(f"length {n} {WORDS} is larger than allowed")',
    "a constant that a branch changes": 'raise ValueError(f"length {n} {UNIT} is larger")',
    "a constant that a function changes": 'set_kind()\nraise ValueError(f"length {n} {KIND}")',
    "keyword": "raise Refused(detail=f'length {n} is larger than allowed')",
    "error number": 'raise OSError(22, f"length {n} is larger than allowed")',
    "assertion": 'assert n < 4, f"length {n} is larger than allowed"',
    "from another": 'try:\n    {}["x"]\nexcept KeyError as error:\n'
    '    raise ValueError(f"length {n} is larger than allowed") from error',
    "braces": 'raise ValueError(f"length {{{n}}} is larger than {{}} allowed")',
    "constructor": "raise TooLong(n)",
    "its own text over lines": 'raise ValueError(f"""length {n}\n    is larger\nthan allowed""")',
}
HEAD = """
import textwrap
TEXT = "length {} is larger than allowed"
WORDS = "of the sequence"
UNIT = "tokens"
if WORDS:
    UNIT = "words"
KIND = "is as usual"
def set_kind():
    global KIND
    KIND = "is larger than allowed"
class Refused(Exception):
    def __init__(self, detail):
        self.detail = detail
    def __str__(self):
        return self.detail
class TooLong(Exception):
    def __init__(self, n):
        super().__init__(f"length {n} is larger than allowed")
"""


def document(messages):
    return {
        "name": "maker",
        "versions": ["1.0"],
        "modules": ["maker"],
        "messages": {
            word: [
                [m.template, "0", [[m.raises, 0, m.function, m.line, [*m.conditions], "", 0]], 0]
            ]
            for m in messages
            for word in sorted(words_of(m.template))[:1]
        },
    }


@pytest.mark.parametrize("shape", SHAPES)
def test_what_python_raises_is_found_by_what_was_read(shape):
    source = f"{HEAD}\ndef check(n):\n{textwrap.indent(SHAPES[shape], '    ')}\n"
    space = {}
    exec(source, space)
    with pytest.raises(Exception, match="length") as caught:
        space["check"](8)
    text = caught.value.strerror if isinstance(caught.value, OSError) else str(caught.value)
    found = PackageMessages(document(read_messages(source.encode()))).find(text)
    function = "TooLong.__init__" if shape == "constructor" else "check"
    match = next(match for match in found if match.places[0].function == function)
    assert match.places[0].raises == type(caught.value).__name__
    assert shape in ("dedent",) or "8" in match.values.values()


CONDITIONS = """
def check(a, b, c=None):
    if a > b:
        raise ValueError("one two three four")
    elif a == b and not c:
        raise ValueError("one two three four")
    else:
        if c:
            assert c in (1, 2), "one two three four"
            return
    for n in range(b):
        if n == 3:
            break
    else:
        raise ValueError("one two three four")
    if a is None:
        return
    raise ValueError("one two three four")
"""
CALLS = [(5, 4), (4, 4), (1, 2, 7), (1, 2), (1, 9)]


@pytest.mark.parametrize("call", CALLS)
def test_the_conditions_hold_where_python_raises(call):
    space = {}
    exec(CONDITIONS, space)
    with pytest.raises(Exception, match="one two") as caught:
        space["check"](*call)
    trace = caught.value.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    found = {m.line: m for m in read_messages(CONDITIONS.encode())}[trace.tb_lineno]
    for condition in found.conditions:
        values = {"a": call[0], "b": call[1], "c": [*call, None][2], "n": 3}
        assert eval(condition, values), condition


@pytest.mark.parametrize(
    "test",
    ["a", "not a", "a == b", "a in (b, 1)", "a and not b", "a < b or b is None", "a < b < 3"],
)
def test_a_negation_is_true_where_the_test_is_not(test):
    node = ast.parse(test, mode="eval").body
    for a in (0, 1, 2):
        for b in (0, 1, 3):
            values = {"a": a, "b": b}
            positive = bool(eval(test, values))
            assert bool(eval(ast.unparse(negated(node)), values)) is not positive


def test_handlers_matches_and_early_ends_are_conditions():
    source = b"""
class Engine:
    def start(self, kind, path):
        try:
            import flash_attn
        except ImportError as error:
            raise ImportError("flash attention is wanted here") from error
        if kind == "plain":
            return path
        raise NotImplementedError(f"no engine of kind {kind} is known")

def check(x):
    torch._check(x > 0, lambda: f"x has to be positive, found {x}")
"""
    found = read_messages(source)
    assert [(m.raises, m.function, m.conditions) for m in found] == [
        ("ImportError", "Engine.start", ("except ImportError: import flash_attn",)),
        ("NotImplementedError", "Engine.start", ("kind != 'plain'",)),
        ("RuntimeError", "check", ("not x > 0",)),
    ]


@pytest.mark.parametrize(
    "source", [b"\xff\xfe", b"raise (", b"raise x\x00", b"(" * 5000 + b"raise", b"print 'raise'"]
)
def test_what_is_no_python_says_nothing(source):
    assert read_messages(source) == []


def test_long_conditions_are_left_out_and_said_to_be():
    source = f"def f(a):\n    if {' and '.join(['a'] * 90)}:\n        raise ValueError('one two')\n"
    assert read_messages(source.encode())[0].conditions == ("…",)
