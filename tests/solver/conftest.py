"""What the solver's tests share."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Callable

import pytest

from envdoctor.matrix.loader import Matrix, load_matrix


@pytest.fixture(scope="session")
def matrix() -> Matrix:
    return load_matrix()


@pytest.fixture
def require_module() -> Callable[[str], None]:
    """Skip where a module is missing; in CI that is a failure."""

    def require(name: str) -> None:
        if find_spec(name) is None:
            if os.environ.get("CI") == "true":
                pytest.fail(f"{name} is not installed (python-sat, extra dev)")
            pytest.skip(f"{name} is not installed")

    return require
