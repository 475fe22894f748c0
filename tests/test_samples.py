"""The outputs that README.md and docs/ show are those that their commands print."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "run_samples"))
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SAMPLES = {path: SCRIPT["find_samples"](path.read_text(encoding="utf-8")) for path in FILES}


@pytest.mark.parametrize(
    "path", [path for path in FILES if SAMPLES[path]], ids=lambda path: path.name
)
def test_every_sample_is_what_its_commands_print(path):
    assert SCRIPT["check_file"](path, update=False) == []


def test_every_marked_output_is_a_sample():
    for path, samples in SAMPLES.items():
        assert path.read_text(encoding="utf-8").count("<!-- sample") == len(samples), path.name


def test_another_output_is_reported(tmp_path):
    page = tmp_path / "page.md"
    block = "```sh\nenvdoctor --version\n```\n\n<!-- sample -->\n```\n{}```\n"
    page.write_text(block.format("envdoctor 0.0\n"))
    (fault,) = SCRIPT["check_file"](page, update=False)
    assert "envdoctor --version: shown otherwise" in fault
    assert SCRIPT["check_file"](page, update=True) == []
    assert SCRIPT["check_file"](page, update=False) == []
    page.write_text(block.format("x\n").replace("sample", "sample: exit=7"))
    assert "expected exit code 7, got 0" in SCRIPT["check_file"](page, update=False)[0]
