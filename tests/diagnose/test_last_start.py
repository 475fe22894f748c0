"""A log that each start of a program was appended to: the last one counts. Programs are really run,
with Python's logging.
"""

from __future__ import annotations

import pytest

PROGRAM = """
import logging, os, signal, sys, time
logging.basicConfig(level="INFO", format="%(asctime)s - %(name)s - %(levelname)s - %(message)s")
log = logging.getLogger("trainer")
log.info("Reading the settings of the run, number %s", os.getpid())
log.info("Setting up the devices")
log.info("Loading the model into memory")
what = sys.argv[1]
if what == "interrupted":
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)
if what == "no rows":
    raise ValueError("rows must not be empty")
if what == "no key":
    {}["prompt"]
if what == "quiet":
    sys.exit(3)
for step in range(30):
    log.info("step %s loss %.3f", step, 1 / (step + 1))
if what == "late":
    raise RuntimeError("no width")
"""


@pytest.fixture
def log_of(tmp_path, printed):
    def run(*kinds):
        path = tmp_path / "train.py"
        path.write_text(PROGRAM)
        return "".join(printed(path, kind) for kind in kinds)

    return run


@pytest.mark.parametrize(
    ("kinds", "words", "past"),
    [
        (("no rows", "no key"), "KeyError: 'prompt'", "rows must not be empty"),
        (("interrupted", "no key"), "KeyError: 'prompt'", "SIGINT"),
        (("no rows", "interrupted"), "interrupted by SIGINT", "rows must not be empty"),
        (("no key", "no rows", "late"), "RuntimeError: no width", "rows must not be empty"),
        (("interrupted", "interrupted", "no rows"), "rows must not be empty", "SIGINT"),
    ],
)
def test_the_last_start_counts(said, log_of, kinds, words, past):
    traces = said(log_of(*kinds)).traces
    assert words in traces[0].finding.message
    assert "of the last one, from line" in traces[0].meaning
    assert not any(past in trace.finding.message for trace in traces)


def test_what_the_others_ended_with_is_said_in_one_line(said, log_of):
    meaning = said(log_of("no rows", "no key", "late")).traces[0].meaning
    for words in ("ValueError: rows must not be empty at", "KeyError: 'prompt' at", "train.py"):
        assert words in meaning


def test_others_that_ended_alike_are_not_told_again(said, log_of):
    meaning = said(log_of("no rows", "no rows", "no rows")).traces[0].meaning
    assert "Those before it ended with the same (line 7)." in meaning


def test_a_last_start_that_worked_leaves_nothing_of_the_ones_before(said, log_of):
    assert said(log_of("no rows", "well")).traces == ()


def test_a_last_start_of_which_nothing_is_known_takes_nothing_away(said, log_of):
    """Its first lines may be all that was written so far."""
    (trace,) = said(log_of("no rows", "quiet")).traces
    assert "rows must not be empty" in trace.finding.message
    assert "last one" not in trace.meaning


def test_one_start_has_no_others(said, log_of):
    assert "last one" not in said(log_of("late")).traces[0].meaning
    assert "last one" not in said(log_of("no rows") + "step 1\nstep 2\n").traces[0].meaning


def test_a_runner_that_tells_of_each_start_is_one_program(said, log_of, printed, tmp_path):
    """Of a sweep the failure of most runs is told."""
    log_of("well")
    runner = tmp_path / "sweep.py"
    runner.write_text(
        "import subprocess, sys, traceback\n"
        "for kind in ('no rows', 'no rows', 'no rows', 'no key'):\n"
        "    try:\n"
        f"        program = {str(tmp_path / 'train.py')!r}\n"
        "        subprocess.run([sys.executable, program, kind], check=True)\n"
        "    except subprocess.CalledProcessError:\n        traceback.print_exc()\n"
        "sys.exit(1)\n"
    )
    assert "rows must not be empty" in said(printed(runner)).traces[0].finding.message


def ended(kind, number):
    return (
        "Traceback (most recent call last):\n"
        f'  File "/srv/fit.py", line {number}, in <module>\n    go({number})\n{kind}\n'
    )


def rows(count):
    return "".join(f"row {number} read by reader {number % 7}\n" for number in range(count))


def test_ends_of_one_program_that_lie_far_apart_are_of_several_starts(said):
    first, last = ended("ValueError: no rows", 9), ended("KeyError: 'width'", 20)
    trace = said(first + rows(300) + last).traces[0]
    assert "KeyError" in trace.finding.message
    assert "this is of the last one" in trace.meaning
    assert "ValueError: no rows" in trace.meaning


def test_ranks_that_end_one_behind_the_other_are_of_one_start(said):
    deep = "".join(
        f'  File "/srv/part{n}.py", line {n}, in go\n    part{n + 1}()\n' for n in range(60)
    )
    head = (
        'Traceback (most recent call last):\n  File "/srv/fit.py", line 9, in <module>\n    go()\n'
    )
    text = "".join(f"{head}{deep}RuntimeError: cuda:{n} is wrong\n" for n in range(8))
    text += f"{head}{deep}ValueError: no rows\n"
    assert all("several starts" not in trace.meaning for trace in said(text).traces)


@pytest.mark.parametrize("between", [rows(20), ""])
def test_ends_that_lie_near_each_other_may_be_of_ranks(said, between):
    first, last = ended("ValueError: no rows", 9), ended("KeyError: 'width'", 20)
    assert all(
        "several starts" not in trace.meaning for trace in said(first + between + last).traces
    )


def test_a_program_that_could_not_begin_is_a_start_of_its_own(said):
    unparsed = '  File "/srv/fit.py", line 3\n    rows=4\n    ^\nSyntaxError: invalid syntax\n'
    text = ended("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", 9)
    (trace,) = said(text + unparsed).traces
    assert "SyntaxError: invalid syntax" in trace.finding.message
    assert "the end of the one above it: a comma" in trace.finding.remedies[0].text
    assert "of the last one, from line 5 on" in trace.meaning
    (alone,) = said("loading 4 rows\n" + unparsed).traces
    assert "several starts" not in alone.meaning
