"""Resolutions of the matrix as it is, for what writes them."""

from __future__ import annotations

import functools

import pytest

from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.solver import resolve
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts
from envdoctor.model.request import Request, parse_root
from envdoctor.model.resolution import Resolution


@functools.cache
def resolved(
    *requirements: str,
    python: str = "3.11",
    assume: tuple = ("gpu=H100", "nvidia-driver=550.54.15"),
    as_of: str = "2025-06-30",
):
    resolution = resolve(
        Request(tuple(map(parse_root, requirements)), python, as_of=as_of),
        (Facts(parse_assumptions(assume)),),
        load_matrix(),
    )
    assert isinstance(resolution, Resolution), resolution
    return resolution


@pytest.fixture(scope="session")
def resolution():
    """Return the resolution of some requirements."""
    return resolved


@pytest.fixture(scope="session")
def matrix():
    return load_matrix()
