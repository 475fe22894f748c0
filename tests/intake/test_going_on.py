"""Whether a program still worked behind a line of its log."""

from __future__ import annotations

import pytest

from envdoctor.intake.going_on import at_work_behind

STEPS = "".join(f"step {number} loss {1 / number:.3f}\n" for number in range(1, 13))
BAR = "".join(
    f"\r{number:3d}%|{'#' * number:12}| {number}/12 [00:01<00:02]" for number in range(12)
)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"KeyError: 'a'\n{STEPS}", 3),  # ten of twelve stand behind the third
        (f"KeyError: 'a'\n{BAR}\n", 1),
        ("KeyError: 'a'\ndone\n", 0),
        ("KeyError: 'a'\n" + "Sending process 7 closing signal SIGTERM\n" * 16, 0),
        ("KeyError: 'a'\n" + "[rank3]:     return forward(*args)\n" * 16, 0),
        ("KeyError: 'a'\n" + "(Worker pid=7) step 3\n" * 16, 0),
        ("KeyError: 'a'\n" + "connection refused, attempt 3\n" * 16, 0),
        ("KeyError: 'a'\n" + "    return forward(*args)\n" * 16, 0),
        ("KeyError: 'a'\n" + "wandb: loss 0.3\n" * 16, 0),
        ("", 0),
    ],
)
def test_the_last_line_behind_which_work_is_seen(text, line):
    assert at_work_behind(text.encode(), 0) == line


def test_lines_before_the_tail_count():
    assert at_work_behind(STEPS.encode(), 100) == 102


@pytest.mark.parametrize(("steps", "is_claimed"), [(60, False), (2, True)])
def test_an_exception_after_which_it_worked_on_is_no_failure(tmp_path, steps, is_claimed):
    from envdoctor.app import diagnose

    log = tmp_path / "run.log"
    error = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nKeyError: 1\n'
    log.write_text(error + "".join(f"step {number}\n" for number in range(steps)))
    assert bool(diagnose([str(log)]).traces) is is_claimed
    log.write_text(log.read_text() + "./run.sh: line 3:  81 Killed   python a.py\n")
    assert diagnose([str(log)]).traces
