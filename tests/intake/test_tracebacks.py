"""Tracebacks as terminals and programs leave them."""

import importlib.util
import io
import subprocess
import sys
import textwrap
import traceback
from io import BytesIO
from pathlib import Path, PureWindowsPath

import pytest
from rich.console import Console
from rich.traceback import Traceback

from envdoctor.intake.log_reader import read_logs

LOGS = Path(__file__).parents[1] / "data" / "logs"


def _read(text):
    log = BytesIO(text.encode())
    log.name = "run.log"
    return read_logs([log], [])


def test_what_a_terminal_puts_into_a_traceback():
    """A key that was pressed, and a function whose name the width of the window broke."""
    text = (
        "Traceback (most recent call last):\n"
        '  File "/app/model/layers.py", line 66, in forward_d\n'
        "ecode\n"
        "    ops.run(\n"
        "RuntimeError: no kernel for it\n"
        "^CTraceback (most recent call last):\n"
        '  File "/app/serve.py", line 9, in <module>\n'
        "    wait()\n"
        "KeyboardInterrupt\n"
    )
    first, second = _read(text).raised
    assert (first.kind, first.message) == ("RuntimeError", "no kernel for it")
    assert first.frames[-1].function == "forward_decode"
    assert second.kind == "KeyboardInterrupt"


def test_a_warning_behind_a_message_is_none_of_it():
    text = (
        "Traceback (most recent call last):\n"
        '  File "/app/run.py", line 3, in <module>\n'
        "    stack(parts)\n"
        "TypeError: expected a tensor\n"
        "as element 0\n"
        "/venv/lib/python3.10/site-packages/gym/view.py:404: UserWarning: Please close it.\n"
    )
    (raised,) = _read(text).raised
    assert raised.message == "expected a tensor\nas element 0"


def test_an_indented_traceback_and_one_of_a_build_step():
    """As pip and uv show what they ran, and BuildKit what a step wrote."""
    traceback = (
        "Traceback (most recent call last):\n"
        '  File "<string>", line 2, in <module>\n'
        '  File "/tmp/x/setup.py", line 4, in <module>\n'
        "    check(2)\n"
        "ValueError: ('needs %s, found %s', 12, '11.8')\n"
    )
    (indented,) = _read(textwrap.indent(f"{traceback}[end of output]\n", " " * 6)).raised
    lines = (f"#9 {12.3 + n:.2f}   {line}" for n, line in enumerate(traceback.splitlines()))
    (of_step,) = _read("\n".join(lines)).raised
    for raised in (indented, of_step):
        assert (raised.kind, raised.message) == ("ValueError", "needs 12, found 11.8")
        assert raised.frames[-1].file == "/tmp/x/setup.py"


@pytest.mark.parametrize(
    "file", [r"C:\v\Lib\site-packages\torch\_ops.py", r".\v\run.py", r"\\host\share\run.py"]
)
def test_a_place_on_windows_has_the_path_that_others_have(file):
    (raised,) = _read(
        f'Traceback (most recent call last):\n  File "{file}", line 3, in <module>\nOSError: no\n'
    ).raised
    path = PureWindowsPath(file)
    assert PureWindowsPath(raised.frames[0].file) == path
    assert "\\" not in raised.frames[0].file
    assert raised.frames[0].within == path.as_posix().partition("site-packages/")[2]


@pytest.mark.parametrize("words", ["%999999999d", "%*d", "%.99999999f", "%(a)s", "50%"])
def test_a_message_with_a_place_of_any_width_stays_as_it_is(words):
    """A width is a number that a hostile log chooses: filled in, it is that much memory."""
    message = f"('{words}', 1)"
    (raised,) = _read(f"Traceback (most recent call last):\nValueError: {message}\n").raised
    assert raised.message == message


def test_a_broken_traceback_of_an_exception_that_is_called_by_no_common_ending():
    text = (
        "Traceback (most recent call last):\n"
        '  File "G:\\train.py", line 559, in <module>\n'
        "    loss = model(x, y)\n"
        '  File "G:\\lib\\site-packages\\tor\n'
        'ch\\_inductor\\scheduler.py", line 5433, in create\n'
        "    raise e.remove() from None  # see TORCHD\n"
        "YNAMO_VERBOSE=1\n"
        "torch._inductor.exc.TritonMissing: Cannot find a working t\n"
        "riton installation\n"
    )
    (raised,) = _read(text).raised
    assert raised.kind == "torch._inductor.exc.TritonMissing"


@pytest.mark.parametrize("writer", ["[rank1]: ", "(Worker pid=7) ", "2026-01-02 03:04:05,678 "])
def test_a_traceback_in_a_message_is_of_the_same_writer(writer):
    """What a worker of a DataLoader raised, as torch prints it, with a rank before each line."""
    lines = (LOGS / "torch-2.15-dataloader.log").read_text(encoding="utf-8").splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("Traceback"))
    text = "".join(f"{writer}{line}\n" for line in lines[at:])
    last = _read(text).raised[-1]
    assert last.kind == "UnicodeDecodeError"
    assert (last.frames[-1].file, last.frames[-1].function) == ("loader.py", "__getitem__")


WRITTEN = """
def create_weights(sizes, message):
    rows = list(sizes)
    raise ValueError(message)


class Layer:
    def __init__(self, message):
        create_weights([3, 4], message)
"""
MESSAGES = {
    "a sentence": "the number of heads (17) is not divisible by the tensor parallel size (4): "
    "choose another size of those that divide it",
    "lines of its own": "Errors in loading state_dict:\nsize mismatch for lm_head.weight",
    "a word longer than the box": f"no file '/data/{'checkpoints/' * 20}x.json', give another one",
}


def _write_module(folder: Path):
    """Make a module whose place is longer than a box of rich is wide."""
    path = folder / "python3.10/site-packages/vllm/model_executor/layers/linear.py"
    path.parent.mkdir(parents=True)
    path.write_text(WRITTEN, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("linear", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture
def module(tmp_path):
    return _write_module(tmp_path)


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
@pytest.mark.parametrize("prefix", ["", "[rank0]: "], ids=["", "of a rank"])
@pytest.mark.parametrize("locals_too", [False, True], ids=["", "with locals"])
@pytest.mark.parametrize("width", [46, 60, 80, 100, 140])
def test_what_rich_wraps_is_put_together_again(module, width, locals_too, prefix, message):
    """rich breaks a place and a message at the width of its box: the traceback is the oracle."""
    with pytest.raises(ValueError, match=message[:9]) as caught:
        module.Layer(message)
    places = traceback.extract_tb(caught.tb)[1:]
    shown = Traceback.extract(caught.type, caught.value, caught.tb.tb_next, show_locals=locals_too)
    console = Console(file=io.StringIO(), width=width)
    console.print(Traceback(shown, show_locals=locals_too, width=min(width, 100)))
    lines = console.file.getvalue().splitlines()
    (raised,) = _read("".join(f"{prefix}{line}\n" for line in lines)).raised
    assert raised.message == message
    assert [(frame.file, frame.line, frame.function) for frame in raised.frames] == [
        (place.filename, place.lineno, place.name) for place in places
    ]
    assert raised.frames[-1].code == "raise ValueError(message)"


def test_a_place_may_end_at_the_edge_of_its_box(tmp_path):
    """Whatever its length, wherever rich breaks it: before " in" no blank is lost."""
    for length in range(1, 48):
        module = _write_module(tmp_path / ("a" * length))
        with pytest.raises(ValueError, match="no") as caught:
            module.Layer("no")
        places = traceback.extract_tb(caught.tb)[1:]
        console = Console(file=io.StringIO(), width=46)
        console.print(Traceback.from_exception(caught.type, caught.value, caught.tb.tb_next))
        (raised,) = _read(console.file.getvalue()).raised
        assert [(frame.file, frame.function) for frame in raised.frames] == [
            (place.filename, place.name) for place in places
        ]


def test_a_box_whose_corner_was_cut_off():
    text = "──── Traceback (most recent call last) ────\n│ /a/b.py:3 in f │\nKeyError: 'x'\n"
    assert [raised.kind for raised in _read(text).raised] == ["KeyError"]


def test_of_the_middle_of_a_deep_traceback_the_programs_own_place_is_kept():
    places = [f"/v/lib/python3.11/site-packages/m{number}.py" for number in range(60)]
    places[0], places[20], places[30] = "/x/train.py", "/x/evaluate.py", "/x/score.py"
    lines = "".join(
        f'  File "{place}", line {number}, in f\n    call()\n'
        for number, place in enumerate(places)
    )
    text = f"Traceback (most recent call last):\n{lines}ValueError: x\n"
    (raised,) = _read(text).raised
    own = [frame.file for frame in raised.frames if frame.file.startswith("/x/")]
    assert own == ["/x/train.py", "/x/score.py"]
    assert raised.frames[-1].file == places[-1]


AT_ONCE = """
import multiprocessing, threading
def fail(number):
    raise ValueError(f"number {number}")
class Loader:
    def __del__(self):
        raise RuntimeError("deleted")
def start(worker):
    worker.start()
    worker.join()
if __name__ == "__main__":
    start(threading.Thread(target=fail, args=(1,)))
    loader = Loader()
    del loader
    start(multiprocessing.get_context("fork").Process(target=fail, args=(2,)))
    start(threading.Thread(target=fail, args=(3,)))
    raise TypeError("main")
"""


def test_tracebacks_of_others_right_below_a_message_are_their_own(tmp_path):
    """Python writes whose they are, which is no part of the message above."""
    (tmp_path / "run.py").write_text(AT_ONCE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "run.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    said = [(entry.kind, entry.message, entry.fate) for entry in _read(done.stdout).raised]
    assert said == [
        ("ValueError", "number 1", "logged"),
        ("RuntimeError", "deleted", "passed"),
        ("ValueError", "number 2", "ended"),
        ("ValueError", "number 3", "logged"),
        ("TypeError", "main", "ended"),
    ]


@pytest.mark.parametrize(
    ("between", "is_quoted"),
    [
        ("", False),
        ("2025-02-03T04:05:06.7Z ERROR gateway: no answer\n", False),
        ("The first that was tried said:\n", True),
    ],
)
def test_an_exception_pasted_below_a_blank_line_is_one_of_its_own(between, is_quoted):
    """A message may quote another one behind a colon."""
    log = (
        "Traceback (most recent call last):\n"
        '  File "/srv/run.py", line 3, in <module>\n'
        "    start()\n"
        f"RuntimeError: this device has no such kernel.\n{between}\n"
        "some_library.errors.NothingFoundError: no weights of that name\n"
    )
    first = _read(log).raised[0]
    assert first.kind == "RuntimeError"
    assert ("weights" in first.message) is is_quoted


def test_what_a_program_prints_of_its_own_end_has_ended_it():
    """Really run: pip catches what ends it, prints it and gives up; other lines follow."""
    program = (
        "from pip._internal.commands.install import InstallCommand\n"
        "from pip._internal.cli.main import main\n"
        "def run(*_):\n    return open('/no/such/cache')\n"
        "InstallCommand.run = run\nmain(['install', 'x'])\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    (raised,) = _read(textwrap.indent(done.stdout, "    ") + "PATH=/usr/bin\n" * 80).raised
    assert (raised.kind, raised.fate) == ("FileNotFoundError", "ended")
