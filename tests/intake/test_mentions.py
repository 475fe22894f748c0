"""Releases that running text names: what is there, and what is asked for, advised or denied."""

from __future__ import annotations

from typing import Optional

import pytest

from envdoctor.errors import NothingRecognised
from envdoctor.intake.pasted_report import parse_report
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.evidence import Known
from envdoctor.model.facts import Facts


def read(text: str) -> Facts:
    """Read a text with the known releases; the empty facts where nothing is recognised."""
    try:
        return parse_report(text, load_matrix().package)
    except NothingRecognised:
        return Facts({})


@pytest.mark.parametrize(
    "brackets", ["(e.g. torch 2.3.1)", "[e.g. torch 2.3.1]", "[如 torch 2.3.1]"]
)
def test_what_a_template_gives_as_an_example_is_not_here(brackets: str) -> None:
    assert version_of(f"numpy 1.26.4\n4. ML framework version(s) {brackets}:\n", "torch") is None
    assert version_of(f"numpy 1.26.4\n4. torch version {brackets}: 2.6.0\n", "torch") == "2.6.0"


def test_one_sign_stands_between_a_name_and_its_release_as_conda_writes_it() -> None:
    text = "I keep getting errors with their latest version (peft=0.14.0, lr=0.01)" + " at all" * 60
    assert version_of(text, "peft") == "0.14.0"
    assert version_of(text.replace("keep getting errors with", "need"), "peft") is None
    assert version_of(text.replace("peft=", "--peft="), "peft") is None


def version_of(text: str, name: str) -> Optional[str]:
    """Return the version that a text states of a distribution, of Python or the driver."""
    facts = read(text)
    field = {"python": "python.version", "driver": "driver.release"}.get(name)
    if field is not None:
        fact = facts.get(field)
        return str(fact.value) if isinstance(fact, Known) else None
    table = facts.get("distributions")
    distribution = table.value.get(name) if isinstance(table, Known) else None
    return None if distribution is None else distribution.version


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("I got a new card and tried to run vllm 0.7.3 in a fresh env.", "vllm", "0.7.3"),
        ("vllm 0.7.3 does not start on our node.", "vllm", "0.7.3"),
        ("Serving with sglang 0.4.6 also hangs.", "sglang", "0.4.6"),
        ("My own build isn't affected, the container with torch 2.6.0 crashes.", "torch", "2.6.0"),
        ("It does not work with peft 0.15.2", "peft", "0.15.2"),
        ("transformers 4.51.3 cannot load the checkpoint, please help", "transformers", "4.51.3"),
        ("Not sure why accelerate 1.6.0 asks for it", "accelerate", "1.6.0"),
        ("Past version 2.5 of PyTorch, `overwrite` will default to False.", "torch", None),
        ("trl 0.17.0 requires a newer accelerate, it says", "trl", "0.17.0"),
        ("I could not import deepspeed 0.16.4.", "deepspeed", "0.16.4"),
        ("Why does vllm 0.8.5 fail here?", "vllm", "0.8.5"),
        ("tried it in a conda env with python 3.10 and got this", "python", "3.10"),
        ("It isn't working with driver 535.104.05 here", "driver", "535.104.05"),
    ],
)
def test_a_release_that_somebody_runs_is_there(text: str, name: str, version: str) -> None:
    assert version_of(text, name) == version


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("This needs torch 2.6.0", "torch"),
        ("It works fine with torch 2.5.1", "torch"),
        ("It ran without errors on vllm 0.6.3", "vllm"),
        ("Does vllm 0.8.5 support this model?", "vllm"),
        ("Please upgrade to transformers 4.51.3", "transformers"),
        ("You should install peft 0.15.2", "peft"),
        ("vllm 0.8.5 works, though", "vllm"),
        ("accelerate 1.6.0 or newer", "accelerate"),
        ("This was fixed in deepspeed 0.16.4", "deepspeed"),
        ("It doesn't happen with sglang 0.4.6", "sglang"),
        ("The README says trl 0.17.0", "trl"),
        ("Someone else runs vllm 0.8.5", "vllm"),
        ("wheels for torch 2.6.0 are missing", "torch"),
        ("instead of ray 2.40.0", "ray"),
        ("vllm 0.6.3 depends on torch 2.4.0", "vllm"),
        ("Is there a plan for python 3.13?", "python"),
        ("numpy older than numpy 1.26.4", "numpy"),
        ("升级到 transformers 4.51.3", "transformers"),
    ],
)
def test_a_release_that_is_asked_for_advised_or_denied_is_not(text: str, name: str) -> None:
    assert version_of(text, name) is None


def test_of_several_releases_the_one_that_fails_is_there() -> None:
    text = "On one node vllm 0.8.4 starts. On this one vllm 0.8.5 crashes at once."
    assert version_of(text, "vllm") == "0.8.5"


def test_of_several_releases_of_which_none_fails_the_statement_holds() -> None:
    text = "* vllm 0.6.3, torch 2.4.0\nIt says vllm 0.7.0 has another layout."
    assert version_of(text, "vllm") == "0.6.3"


def test_what_a_list_states_is_not_taken_from_a_sentence() -> None:
    text = "Somehow vllm 0.8.4 came back.\n\n[pip3] vllm==0.8.5\n"
    assert version_of(text, "vllm") == "0.8.5"


def test_a_release_that_was_never_made_is_not_believed() -> None:
    assert version_of("I tried to run vllm 0.7.77 here.", "vllm") is None


@pytest.mark.parametrize(
    "words",
    [
        "transformers 4.49 does not have this issue.",
        "transformers 4.49 doesn't show this error",
        "transformers 4.49 has no such problem",
        "transformers 4.49 is not affected.",
    ],
)
def test_a_release_that_does_not_have_the_issue_is_the_one_that_works(words):
    facts = parse_report(f"It fails with transformers 4.50.\n\n{words}\n")
    assert facts.value("distributions")["transformers"].version == "4.50"
    assert facts.value("report.works_with") == {"transformers": "4.49"}


def test_of_two_tellings_the_one_with_more_numbers_holds():
    facts = parse_report("transformers 4.50 does not work\n\npip install transformers==4.50.3\n")
    assert facts.value("distributions")["transformers"].version == "4.50.3"


def test_a_build_of_nvidia_s_is_read_whole():
    version = "2.6.0a0+ecf3bae40a.nv25.01"
    for text in (f"torch {version}\nvllm 0.8.5\n", f"I use torch {version} here.\n"):
        assert parse_report(text).version_of("torch") == version
