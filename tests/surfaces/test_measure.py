"""Statements about names that no release has, where it is sure; what a refresh leaves alone."""

import json

import pytest
from surface_scan.measure import Measurement, measure, statements_of
from surface_scan.names import is_unnamed
from surface_scan.store import Sources

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


def test_what_is_said_of_other_packages_stays(workshop):
    """A new release of one package changes what is said of it, and nothing else."""
    workshop.release("maker", OWN)
    workshop.release("third", {"third/__init__.py": "", "third/old.py": ""})
    workshop.release("user", {"user/__init__.py": "import maker.gone\nimport third.old\n"})
    where = workshop.folder / "surfaces" / "user.json"

    def run(about=()):
        measure(workshop.packages, ["user"], workshop.sources, workshop.folder, str, about)
        statements = json.loads(where.read_text("utf-8"))["statements"]
        return {statement["provider"]: statement["lacking"] for statement in statements}

    before = run()
    workshop.release("third", {"third/__init__.py": ""}, "2.0")
    after = run(["third"])
    assert after == run() == {**before, "third": [["2.0", "2.0"]]}
    assert before.keys() == {"maker"}


def test_what_was_read_on_another_machine_stays(workshop, tmp_path):
    """A new release enters where the readings of the others are not kept."""
    workshop.release("maker", OWN)
    workshop.release("third", {"third/__init__.py": ""})
    workshop.release("user", {"user/__init__.py": "import maker.gone\nimport third.old\n"})
    where = workshop.folder / "surfaces" / "user.json"
    said = []

    def run(sources, names=("user",)):
        measure(workshop.packages, names, sources, workshop.folder, said.append)
        return json.loads(where.read_text("utf-8"))["statements"]

    before = run(workshop.sources, ("maker", "third", "user"))
    assert [statement["provider"] for statement in before] == ["maker", "third"]
    text = where.read_bytes()
    assert run(Sources(str(tmp_path / "empty"))) == before
    assert where.read_bytes() == text
    assert said[-1] == "user: not read on this machine, statements as before"
    own = Sources(str(tmp_path / "own"))
    for archive in workshop.sources.archives("user"):
        own.keep(
            archive,
            [(key, workshop.sources.source(key)) for key in archive.members.values() if key],
        )
    assert run(own) == before
    assert where.read_bytes() == text
    assert "user: as before, not read on this machine: maker, third" in said[-2]


@pytest.mark.parametrize(
    ("module", "unnamed"),
    [
        ("transformers.utils.dummy_pt_objects", True),
        ("transformers.utils.dummies", False),
        ("flashinfer.data.cutlass", True),
        ("flashinfer.database", False),
    ],
)
def test_modules_whose_names_nobody_asks_for(module, unnamed):
    assert is_unnamed(module, ["transformers.utils.dummy_*", "flashinfer.data"]) is unnamed


ON_PATH = """import os, sys
sys.path.extend(((parts := os.path.join(os.path.dirname(__file__), "gone")) not in sys.path) * [parts])
"""
IN_PATH = """import os, sys
__path__.append(os.path.join(os.path.dirname(__file__), "other"))
sys.modules[__name__ + ".gone"] = sys
"""


@pytest.mark.parametrize(("text", "fails"), [(ON_PATH, True), (IN_PATH, False)])
def test_a_folder_on_the_path_is_no_module(workshop, text, fails):
    """Python is asked: the folder's name stands in the source, and no module has it."""
    workshop.release("maker", {"maker/__init__.py": "", "maker/gone.py": "x = 1\n"}, "1.0")
    workshop.release("maker", {"maker/__init__.py": text, "maker/other/y.py": ""}, "2.0")
    workshop.release("user", {"user/__init__.py": "import maker.gone\n"})
    (error,) = workshop.run(["import user"], "user-1.0", "maker-2.0")
    assert bool(error) is fails
    measurement = Measurement(workshop.packages, workshop.sources, workshop.folder)
    lacking = [one["lacking"] for one in statements_of(measurement, "user")]
    assert lacking == ([[["2.0", "2.0"]]] if fails else [])


OPTIONAL = """try:
    from maker.deep import Gone as _Gone
except {error}:
    {fallback}
{test}
    class Own:
        pass
"""


@pytest.mark.parametrize(
    ("error", "fallback", "test", "fails"),
    [
        ("Exception", "_Gone = None", "if _Gone is not None:", True),
        ("ImportError", "_Gone = None", "if _Gone:", True),
        ("Exception", "from maker import kept as _Gone", "if _Gone is not None:", False),
        ("Exception", "_Gone = None", "Own = 1\nif _Gone is not None:", False),
        ("Exception", "_Gone = None", "if _Gone is None:", False),
        ("Exception", "_Gone = None", "if _Gone is None:\n    Own = 1\nelse:", False),
    ],
)
def test_a_name_that_is_bound_where_an_import_works(workshop, error, fallback, test, fails):
    """Python is asked: the module can be imported, the name cannot be taken from it."""
    kept = {"maker/__init__.py": "", "maker/kept.py": ""}
    workshop.release("maker", {**kept, "maker/deep.py": "Gone = 1\n"}, "1.0")
    workshop.release("maker", {**kept, "maker/deep.py": ""}, "2.0")
    optional = OPTIONAL.format(error=error, fallback=fallback, test=test)
    workshop.release(
        "user", {"user/__init__.py": "from .own import Own\n", "user/own.py": optional}
    )
    both = ["import user.own" if not fails else "import maker", "import user"]
    errors = workshop.run(both, "user-1.0", "maker-2.0")
    assert [bool(text) for text in errors] == [False, fails], errors
    measurement = Measurement(workshop.packages, workshop.sources, workshop.folder)
    said = [(one["name"], one["lacking"]) for one in statements_of(measurement, "user")]
    assert said == ([("Gone", [["2.0", "2.0"]])] if fails else [])


def test_nobody_comes_to_a_use_of_what_is_not_there(workshop):
    """A patch of a model is of no use to who has no such model."""
    for version, files in (
        ("1.0", {}),
        ("2.0", {"maker/model.py": "Output = 1\n"}),
        ("3.0", {"maker/model.py": ""}),
    ):
        workshop.release("maker", {"maker/__init__.py": "", **files}, version)
    patch = "def patch():\n    from maker.model import Output\n"
    workshop.release("user", {"user/__init__.py": patch})

    def lacking(packages):
        measurement = Measurement(packages, workshop.sources, workshop.folder)
        return [one["lacking"] for one in statements_of(measurement, "user")]

    started = workshop.packages._replace(starts={"user": {"user:patch": "the patch"}})
    assert lacking(started) == [[["1.0", "1.0"], ["3.0", "3.0"]]]
    about = {"user": {"the patch": "maker.model"}}
    assert lacking(started._replace(of=about)) == [[["3.0", "3.0"]]]
    # What the use takes of others is not about that module.
    assert lacking(started._replace(of={"user": {"the patch": "third.model"}})) == [
        [["1.0", "1.0"], ["3.0", "3.0"]]
    ]
