"""What of the findings is reported, and the exit code that follows."""

import pytest

from envdoctor.errors import InputError
from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.finding import Finding, Gap
from envdoctor.model.report import Ignore, Judged
from envdoctor.report.selection import (
    FAIL_ON,
    Options,
    check_options,
    examined_of,
    report_of,
    unknown_releases,
    with_current_rows,
)

ERROR = Finding("ED304", "torch", "too-old", "error", "x")
ROW = Finding("ED390", "numpy", "too-new", "warning", "x", row="a-row")
ADVICE = Finding("ED502", "/dev/shm", "shm-too-small", "advice", "x")
OPEN = Finding(
    "ED101", "gpu", "too-old", "error", "x", verdict="undetermined", missing=Gap("driver")
)


def kept(options, *findings):
    report = report_of(findings or (ERROR, ROW, ADVICE, OPEN), (), "2026-01-01", options)
    return [finding.code for finding in (*report.findings, *report.undetermined)]


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        (Options(), ["ED304", "ED390", "ED502", "ED101"]),
        (Options(only=["ED3"]), ["ED304", "ED390"]),
        (Options(only=["ED3xx"], skip=["ED304"]), ["ED390"]),
        (Options(skip=["a-row"]), ["ED304", "ED502", "ED101"]),
        (Options(only=["a-row", "ED1"]), ["ED390", "ED101"]),
    ],
)
def test_only_and_skip(options, codes):
    assert kept(options) == codes


@pytest.mark.parametrize(
    ("fail_on", "findings", "code"),
    [
        ("error", (ERROR,), 1),
        ("error", (ROW, OPEN), 0),
        ("warning", (ROW,), 1),
        ("warning", (ADVICE,), 0),
        ("advice", (ADVICE,), 1),
        ("undetermined", (OPEN,), 1),
        ("never", (ERROR, OPEN), 0),
    ],
)
def test_exit_code(fail_on, findings, code):
    assert fail_on in FAIL_ON
    assert report_of(findings, (), "2026-01-01", Options(fail_on=fail_on)).exit_code == code


def test_an_accepted_finding_is_hidden_until_its_day_and_said_after_it():
    entry = Ignore("ED304:torch", "2026-06-30", "built here")
    for today, ignored, expired in (("2026-06-30", 1, 0), ("2026-07-01", 0, 1)):
        options = Options(ignores=[entry], today=today)
        report = report_of((ERROR,), (), "2026-01-01", options)
        assert (len(report.ignored), len(report.expired)) == (ignored, expired)
        assert report.exit_code == expired


def test_a_misspelt_pattern_is_refused():
    matrix = load_matrix()
    for options in (
        Options(skip=["ED999"]),
        Options(only=["cublas-12.1-sigfpe-h2"]),
        Options(ignores=[Ignore("ED999:torch", "2026-01-01", "x")]),
        Options(fail_on="worse"),
    ):
        with pytest.raises(InputError):
            check_options(options, matrix)
    check_options(Options(skip=["ED1", "ED3xx", "cublas-12.1-sigfpe-h20"]), matrix)


def test_an_accepted_row_that_was_deleted_stays_accepted():
    matrix = load_matrix()
    for row_id, says in matrix.retired.items():
        code = matrix.row(says).code
        said = Finding(code, "torch", "too-old", "error", "x", row=says)
        written = Options(ignores=[Ignore(row_id, "2026-06-30", "built here")], today="2026-01-01")
        for options in (written, Options(skip=[row_id])):
            with pytest.raises(InputError):
                check_options(options, matrix)
            current = with_current_rows(options, matrix)
            check_options(current, matrix)
            assert kept(options, said) == [code]
            assert kept(current, said) == []


def test_what_was_left_out_was_not_examined():
    judged = {
        Judged("ED304", "ED304"),
        Judged("ED390", "a-row", True),
        Judged("ED390", "gpu-row", True, True),
        Judged("ED502", "ED502"),
    }
    nodes = [parse_report("torch==2.6.0\nhomemade-kernels==1.2\n")]
    assert examined_of(judged, Options(), nodes, load_matrix())[:5] == (2, 2, 1, 2, 1)
    assert unknown_releases(nodes, load_matrix()) == ()
    later = [parse_report("torch==99.1\nhomemade-kernels==1.2\n")]
    assert unknown_releases(later, load_matrix()) == ("torch 99.1",)
    assert examined_of(judged, Options(skip=["ED3"]), (), load_matrix())[:5] == (1, 0, 0, 0, 0)
