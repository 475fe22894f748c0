"""Statements about a name that no release has: only where it is sure that none has it."""

import pytest
from surface_scan.measure import Measurement, statements_of

FILLED = {
    "maker/__init__.py": "from . import types, filler\n",
    "maker/types.py": "there = 1\n",
    "maker/filler.py": "def fill():\n    from maker import types\n    types.filled = 1\nfill()\n",
}
OWN = {"maker/__init__.py": "", "maker/kept.py": "x = 1\n"}
NAMESPACE = {"maker/kept/__init__.py": "x = 1\n"}


@pytest.mark.parametrize(
    ("files", "text", "fails"),
    [
        (FILLED, "from maker.types import filled", False),
        (OWN, "from maker.removed import x", True),
        (OWN, "from maker.kept import y", True),
        (NAMESPACE, "from maker.of_another import x", False),
        ({"sample/__init__.py": ""}, "from maker.sub import x", True),
    ],
    ids=["put-there-from-elsewhere", "module-removed", "never-there", "namespace", "placeholder"],
)
def test_a_name_that_no_release_has(workshop, files, text, fails):
    """Python is asked, with another distribution that shares the namespace."""
    for version in ("1.0", "2.0"):
        workshop.release("maker", files, version)
    workshop.release("user", {"user/__init__.py": text + "\n"})
    elsewhere = {"maker/of_another.py": "x = 1\n"} if files is NAMESPACE else {}
    workshop.release("third", elsewhere)
    (error,) = workshop.run(["import user"], "user-1.0", "maker-2.0", "third-1.0")
    assert bool(error) is fails
    measurement = Measurement(workshop.packages, workshop.sources, workshop.folder)
    said = [statement["id"] for statement in statements_of(measurement, "user")]
    # Of a name that may be put into its module from elsewhere nothing is said.
    assert bool(said) is (fails and "kept" not in text), said
