"""The trials of ``tests/data/trials`` belong to the rows as they stand, and the light ones are run;
``scripts/try_rows`` runs them all.
"""

from __future__ import annotations

import re
import runpy
import shutil
from pathlib import Path
from typing import Any, List

import pytest

from envdoctor.matrix.loader import load_matrix
from envdoctor.model.versions import VersionSet

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "try_rows"))
MATRIX = load_matrix()
ROWS = {row.id: MATRIX.complete(row) for row in MATRIX.rows() if row.origin != "derived"}
TRIALS: List[Any] = [trial for trials in SCRIPT["read_trials"]().values() for trial in trials]
NAMED = [pytest.param(trial, id=f"{trial.row}-{number}") for number, trial in enumerate(TRIALS)]


@pytest.mark.parametrize("trial", NAMED)
def test_a_trial_is_of_a_row_and_within_its_ranges(trial: Any) -> None:
    row = ROWS[trial.row]
    assert trial.breaks, "a trial shows what breaks"
    assert not (trial.light and trial.python), "CI has one Python"
    re.compile(trial.fails)
    for line in trial.breaks:
        versions = SCRIPT["versions_of"](line)
        for term in row.terms:
            if (
                term.scope == "env"
                and term.attribute == "version"
                and isinstance(term.argument, VersionSet)
                and term.component in versions
            ):
                version = versions[term.component]
                assert (version in term.argument) is (term.operator != "lacks"), (
                    f"{line}: {term.component} {term.operator} {term.argument}"
                )


@pytest.mark.slow
@pytest.mark.parametrize("trial", [param for param in NAMED if param.values[0].light])
def test_what_a_row_says_happens(trial: Any, prerequisite: Any) -> None:
    prerequisite(shutil.which("uv"), "uv (pip install uv)")
    assert list(SCRIPT["try_trial"](trial, ROWS[trial.row])) == []
