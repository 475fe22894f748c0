"""The steps of a whole refresh, in their order, with what each is asked for."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from matrix_refresh import whole


@pytest.fixture
def steps(monkeypatch):
    ran = []

    def run(arguments, codes=(), measured=("peft", "torch", "trl")):
        ran.clear()
        left = list(codes)

        def called(command, check):
            ran.append([Path(command[1]).name, *command[2:]])
            return subprocess.CompletedProcess(command, left.pop(0) if left else 0)

        monkeypatch.setattr(whole.subprocess, "run", called)
        return whole.run_whole(arguments, measured, {"torch"}, {"torch", "xformers"}), list(ran)

    return run


def test_all_of_it(steps):
    code, ran = steps([])
    assert code == 0
    assert ran == [
        ["refresh_matrix"],
        ["scan_wheels", "--newest", "1"],
        ["scan_wheels", "--merge"],
        ["measure_symbols"],
        ["measure_surfaces", "--collect"],
        ["measure_surfaces", "--measure"],
        ["measure_surfaces", "--names", "--only", "peft", "torch", "trl"],
        ["measure_surfaces", "--messages", "--steps", "--only", "peft", "torch", "trl"],
        ["measure_surfaces", "--relations"],
        ["compile_matrix"],
    ]


def test_one_package_with_those_that_import_it(steps):
    ran = steps(["--only", "peft"])[1]
    assert "scan_wheels" not in {step[0] for step in ran}  # it is pure Python
    assert ran[2] == ["measure_surfaces", "--measure", "--only", "peft"]
    others = [step for step in ran if "--about" in step]
    assert 1 <= len(others) <= os.cpu_count()
    for step in others:
        assert step[:3] == ["measure_surfaces", "--measure", "--only"]
        assert step[-2:] == ["--about", "peft"]
    importers = [name for step in others for name in step[3:-2]]
    assert len(importers) == len(set(importers))
    assert "trl" in importers  # its older releases import what peft has no more


@pytest.mark.parametrize("kind", ["--names", "--messages"])
def test_names_and_messages_stay_those_of_the_packages_that_have_them(steps, kind):
    """A package without them gets none: a refresh without a new release writes no file."""
    asked = [
        step[1:]
        for step in steps(["--only", "peft", "unheard-of"], measured=["peft", "unheard-of"])[1]
    ]
    assert [words[-2:] for words in asked if kind in words] == [["--only", "peft"]]
    assert ["--measure", "--only", "peft", "unheard-of"] in asked
    assert not [
        step for step in steps(["--only", "unheard-of"], measured=["unheard-of"])[1] if kind in step
    ]


def test_a_compiled_package(steps):
    ran = steps(["--only", "torch"])[1]
    assert ran[1] == ["scan_wheels", "--newest", "1", "--only", "torch"]
    assert ran[2] == ["scan_wheels", "--merge"]
    assert ran[3] == ["measure_symbols", "--only", "torch"]


def test_a_package_whose_sources_are_not_read(steps):
    ran = steps(["--only", "nvidia-nccl-cu12"])[1]
    assert not {"measure_surfaces", "measure_symbols"} & {step[0] for step in ran}


def test_a_package_of_which_only_the_libraries_are_read(steps):
    assert ["measure_symbols", "--only", "xformers"] in steps(["--only", "xformers"])[1]


def test_a_step_that_fails_ends_it(steps):
    assert steps([], [1, 2]) == (2, [["refresh_matrix"], ["scan_wheels", "--newest", "1"]])


def test_importers(tmp_path):
    (tmp_path / "surfaces").mkdir()
    for name, provider in (("a", "x"), ("b", "y")):
        document = {"name": name, "statements": [{"provider": provider}]}
        (tmp_path / "surfaces" / f"{name}.json").write_text(json.dumps(document))
    assert whole.importers_of(["x"], tmp_path) == {"a"}


@pytest.mark.parametrize("words", [["--onyl", "peft"], ["--only"], ["peft"]])
def test_what_it_does_not_know_starts_nothing(steps, words, capsys):
    with pytest.raises(SystemExit) as stopped:
        steps(words)
    assert stopped.value.code == 2
    assert "usage: refresh_matrix --whole" in capsys.readouterr().err
