"""Fixtures of other rooms that these tests use."""

from tests.probes.conftest import fakes
from tests.report.conftest import golden

__all__ = ["fakes", "golden"]
