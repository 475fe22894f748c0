"""Errors that Python prints about names, answered from the histories of the names."""

import pytest

from envdoctor.app import diagnose
from envdoctor.intake.assumptions import parse_assumptions, with_assumptions
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.calls import InstallerCall
from envdoctor.model.facts import Facts

GONE = "ImportError: cannot import name 'cached_download' from 'huggingface_hub' (/x/huggingface_hub/__init__.py)\n"
NO_PART = "ModuleNotFoundError: No module named 'trl.models.auxiliary_modules'\n"
UNKNOWN = "ImportError: cannot import name 'no_such_name' from 'huggingface_hub' (/x/huggingface_hub/__init__.py)\n"


@pytest.fixture
def finding(tmp_path):
    """The finding of the line itself."""

    def run(text, *assume):
        path = tmp_path / "run.log"
        path.write_text(text, encoding="utf-8")
        facts = with_assumptions(Facts(), dict(parse_assumptions(assume))) if assume else None
        traces = diagnose([str(path)], facts, load_matrix()).traces
        return next(trace.finding for trace in traces if trace.finding.subject)

    return run


def installed(requirement):
    return [InstallerCall("install", (requirement,))]


def commands(finding):
    return [command for remedy in finding.remedies for command in remedy.commands]


def test_a_name_that_went_names_its_last_release_and_who_asks(finding):
    said = finding(GONE, "huggingface-hub==0.26.0", "diffusers==0.28.0")
    assert "0.12.0 to 0.25.2 only" in said.message
    assert "imported by diffusers 0.28.0." in said.message
    assert commands(said) == installed("huggingface-hub<=0.25.2")


def test_without_versions_it_says_who_may_ask(finding):
    said = finding(GONE)
    assert "imported by diffusers 0.12.0 to 0.28.2" in said.message
    assert commands(said) == installed("huggingface-hub<=0.25.2")


def test_a_module_that_went(finding):
    said = finding(NO_PART, "trl==0.24.0")
    assert "trl 0.24.0 is installed" in said.message
    assert commands(said) == installed("trl>=0.9.6,<=0.23.1")


@pytest.mark.parametrize(
    ("text", "assume"),
    [
        (UNKNOWN, ["huggingface-hub==0.26.0"]),
        (GONE, ["huggingface-hub==0.25.0"]),  # it has the name: something else is the matter
        (GONE, ["huggingface-hub==99.0"]),  # nothing is known of it
    ],
)
def test_what_is_not_known_is_not_said(finding, text, assume):
    assert " only" not in finding(text, *assume).message


def test_a_name_that_only_its_importers_tell_of(finding):
    """transformers was not read name by name, but what peft imports of it was."""
    line = "ImportError: cannot import name 'EncoderDecoderCache' from 'transformers' (/x)\n"
    said = finding(line, "transformers==4.40.0", "peft==0.15.2")
    assert "imported by peft 0.15.2" in said.message
    assert commands(said) == installed("transformers>=4.43.0")
