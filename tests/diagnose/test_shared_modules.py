"""Names that a module lacks since several distributions wrote it."""

from __future__ import annotations

import pytest

from envdoctor.app import diagnose
from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix

_TYPING = """Traceback (most recent call last):
  File "/srv/app/serve.py", line 4, in <module>
    import cv2
  File "/opt/venv/lib/python3.10/site-packages/cv2/__init__.py", line 175, in bootstrap
    load_extra()
  File "/opt/venv/lib/python3.10/site-packages/cv2/typing/__init__.py", line 168, in <module>
    LayerId = cv2.dnn.DictValue
AttributeError: module 'cv2.dnn' has no attribute 'DictValue'
"""
_OWN = """Traceback (most recent call last):
  File "/srv/app/serve.py", line 4, in <module>
    cv2.blend()
AttributeError: module 'cv2' has no attribute 'blend'
"""
_BOTH = "opencv-python 4.8.0.74\nopencv-python-headless 4.11.0.86\n"


def told(tmp_path, log, packages):
    matrix = load_matrix()
    path = tmp_path / "run.log"
    path.write_text(log, encoding="utf-8")
    facts = parse_report(f"torch 2.5.1\n{packages}", matrix.package)
    return diagnose([str(path)], facts, matrix).traces[0]


@pytest.mark.parametrize(("log", "sure"), [(_TYPING, "established"), (_OWN, "likely")])
def test_two_distributions_of_one_module(tmp_path, log, sure):
    trace = told(tmp_path, log, _BOTH)
    assert (trace.finding.kind, trace.certainty) == ("two-copies", sure)
    assert "opencv-python-headless and opencv-python write the same module" in trace.finding.message
    assert "Uninstall them all" in trace.finding.remedies[0].text


def test_python_files_that_do_not_go_with_their_library(tmp_path):
    trace = told(tmp_path, _TYPING, "opencv-python-headless 4.11.0.86\n")
    assert (trace.finding.kind, trace.certainty) == ("two-copies", "established")
    assert "are of two releases" in trace.finding.message


@pytest.mark.parametrize("packages", ["opencv-python-headless 4.11.0.86\n", ""])
def test_what_a_program_asks_of_one_alone(tmp_path, packages):
    assert told(tmp_path, _OWN, packages).finding.kind != "two-copies"
