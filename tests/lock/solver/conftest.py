"""What the solver's tests share."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Callable

import pytest

from envdoctor.matrix.loader import Matrix, load_matrix


@pytest.fixture(scope="session")
def matrix() -> Matrix:
    return load_matrix()


@pytest.fixture
def require_module(prerequisite: Callable[[object, str], None]) -> Callable[[str], None]:
    """Return a function that ends a test where a module is missing."""
    return lambda name: prerequisite(find_spec(name), f"{name} (extra dev)")
