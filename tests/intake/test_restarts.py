"""Where the last start of a log begins, and what is none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from envdoctor.intake.restarts import Restarts

HEAD = b"reading the settings of the run 1\nsetting up the devices of it\nloading the model\n"
END = b"ValueError: no rows\n"


def last_of(*windows):
    search, before = Restarts(), 0
    for window in windows:
        search.look(window, len(window), before)
        before += window.count(b"\n")
    return search.last


def lines(number, word=b"step"):
    return b"".join(b"%s %d\n" % (word, place) for place in range(number))


def test_the_first_lines_come_again_behind_an_end():
    log = HEAD + lines(20) + END + HEAD + lines(20)
    assert log.split(b"\n")[last_of(log) - 1].startswith(b"reading")
    assert last_of(log) == 25


def test_the_lines_of_a_log_in_several_windows_are_counted_through():
    windows = (HEAD + lines(20), lines(9) + END + HEAD, lines(5))
    assert last_of(*windows) == 34


def test_first_lines_that_come_again_while_a_program_runs_are_no_start():
    assert last_of(HEAD + lines(20) + HEAD + lines(20)) == 0


def test_one_line_alone_is_no_start():
    assert last_of(HEAD + lines(20) + END + b"loading the model\n" + lines(9)) == 0
    assert last_of(HEAD + lines(20) + END + lines(9)) == 0


def test_what_several_processes_print_is_no_first_line():
    assert last_of(HEAD + HEAD + lines(20) + END + HEAD) == 0


def test_of_several_starts_the_last_one_is_told():
    log = 3 * (HEAD + lines(20) + END) + HEAD
    assert last_of(log) == 3 * 24 + 1


@given(st.lists(st.binary(max_size=400), max_size=5))
def test_any_bytes_do_no_harm(windows):
    assert last_of(*windows) >= 0
