"""Logs made of texts, and what is diagnosed of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from envdoctor.app import diagnose
from envdoctor.intake.assumptions import parse_assumptions, with_assumptions
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts


@pytest.fixture(scope="module")
def matrix():
    return load_matrix()


@pytest.fixture
def printed():
    """Run a program, in its folder, and return what it prints, errors among it."""

    def run(path, *arguments):
        done = subprocess.run(
            [sys.executable, str(path), *arguments],
            cwd=path.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout

    return run


@pytest.fixture
def said(tmp_path, matrix):
    """Diagnose texts as logs of their own, with assumed facts."""

    def run(*texts, assume=()):
        paths = []
        for number, text in enumerate(texts):
            path = tmp_path / f"{number}.log"
            path.write_text(text, encoding="utf-8")
            paths.append(str(path))
        return diagnose(
            paths,
            with_assumptions(Facts(), dict(parse_assumptions(assume))) if assume else None,
            matrix,
        )

    return run
