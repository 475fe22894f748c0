"""Against which NumPy a module is built, as its bytes say: modules that are really compiled, and
imported with both.
"""

import json
import shutil
import subprocess
import sys
import sysconfig

import pytest
from surface_scan.links import write_links
from surface_scan.numpy_links import numpy_statements
from wheel_scan.numpy_abi import numpy_of, read_numpy

from envdoctor.matrix.measured_rows import Surfaces, compile_surfaces, surface_fault
from envdoctor.model.versions import parse_version

SOURCE = """
#include <Python.h>
#include <numpy/arrayobject.h>
static struct PyModuleDef def = {PyModuleDef_HEAD_INIT, "native", NULL, -1, NULL};
PyMODINIT_FUNC PyInit_native(void) { import_array(); return PyModule_Create(&def); }
"""
PLAIN = """
#include <Python.h>
static struct PyModuleDef def = {PyModuleDef_HEAD_INIT, "native", NULL, -1, NULL};
PyMODINIT_FUNC PyInit_native(void) {
  PyObject *module = PyImport_ImportModule("numpy.core.multiarray");
  Py_XDECREF(module);
  PyErr_Clear();
  return PyModule_Create(&def);
}
"""
NUMPY = {"1": "1.26.4", "2": "2.0.2"}


class Folder:
    """The members of an archive, from a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.members = {path.name: path for path in folder.iterdir()}

    def content(self, name, limit):
        content = self.members[name].read_bytes()
        assert len(content) <= limit
        return content


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def numpys(tmp_path_factory):
    """Folders with NumPy 1 and NumPy 2, really installed."""
    folders = {}
    for major, version in NUMPY.items():
        folders[major] = tmp_path_factory.mktemp(f"numpy-{major}")
        done = run(
            *("uv", "pip", "install", "-q", "--only-binary", ":all:", "--python", sys.executable),
            *("--target", str(folders[major]), f"numpy=={version}"),
        )
        assert not done.returncode, done.stderr
    return folders


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="NumPy 1.26 has no wheel for it")
@pytest.mark.parametrize(("source", "major"), [(SOURCE, "1"), (SOURCE, "2"), (PLAIN, "1")])
def test_a_module_that_is_compiled(tmp_path, request, prerequisite, source, major):
    compiler = shutil.which("cc") or shutil.which("gcc")
    prerequisite(compiler, "a C compiler")
    prerequisite(shutil.which("uv"), "uv")
    numpys = request.getfixturevalue("numpys")
    (tmp_path / "native.c").write_text(source)
    core = "core" if major == "1" else "_core"
    built = tmp_path / "wheel"
    built.mkdir()
    done = run(
        *(compiler, "-shared", "-fPIC", "-O2", f"-I{sysconfig.get_paths()['include']}"),
        *(f"-I{numpys[major]}/numpy/{core}/include", str(tmp_path / "native.c")),
        *("-o", str(built / "native.so")),
    )
    assert not done.returncode, done.stderr
    (record,) = read_numpy("*.so", Folder(built), {})
    said = {"path": "native.so", "major": major if source is SOURCE else ""}
    assert record["numpy"] == said
    for other, folder in numpys.items():
        code = f"import sys; sys.path[:0] = [{str(folder)!r}, {str(built)!r}]; import native"
        fails = bool(run(sys.executable, "-S", "-c", code).returncode)
        assert fails is (said["major"] == "1" and other == "2"), other
    (record,) = read_numpy("other*.so", Folder(built), {})
    assert record["numpy"] == {}


@pytest.fixture
def matrices(tmp_path):
    """A folder with NumPy, and releases of a package of which the last keeps NumPy 2 out."""
    releases = {
        "numpy": [("1.26.4", []), ("2.0.0", []), ("2.4.1", [])],
        "user": [("1.0", ["numpy>=1.20"]), ("1.1", ["numpy>=1.20,<2"]), ("2.0", ["numpy"])],
        "careful": [("1.0", ["numpy<2"])],
    }
    (tmp_path / "packages").mkdir()
    for name, versions in releases.items():
        entries = [{"version": version, "requires": lines} for version, lines in versions]
        (tmp_path / "packages" / f"{name}.json").write_text(json.dumps({"releases": entries}))
    return tmp_path


def built(major):
    return {"path": "user/native.so", "major": major, "archive": "user.whl"}


def test_from_wheels_to_rows(matrices):
    records = {
        "user": {
            "1.0": {"numpy": built("1")},
            "2.0": {"numpy": built("2")},
            "3.0": {"numpy": built("")},
        },
        "careful": {"1.0": {"numpy": built("1")}},
        "silent": {"1.0": {"numpy": {}}},
    }
    earlier = {"user": {"1.1": built("1")}}
    document = {"versions": [], "numpy": numpy_of(records, earlier)}
    assert list(document["numpy"]) == ["careful", "user"]
    assert list(document["numpy"]["user"]) == ["1.0", "1.1", "2.0", "3.0"]
    assert document["numpy"]["user"]["2.0"] == {"major": "2"}  # there is nothing to witness
    (matrices / "symbols.json").write_text(json.dumps(document))
    assert numpy_statements(matrices, document, "careful") == []
    write_links(matrices, ["user"])
    written = json.loads((matrices / "surfaces" / "user.json").read_text())
    assert not surface_fault(written, "user")
    write_links(matrices, ["user"])  # once more: each statement once
    assert json.loads((matrices / "surfaces" / "user.json").read_text()) == written
    surfaces = Surfaces(compile_surfaces([written]))
    for version, numpy, said in (
        *(("1.0", "2.1.0", True), ("1.1", "2.0.0", True), ("1.0", "1.26.4", False)),
        *(("2.0", "2.0.0", False), ("2.0", "1.26.4", False), ("3.0", "2.0.0", False)),
    ):
        there = {"user": parse_version(version), "numpy": parse_version(numpy)}
        rows = [
            row
            for row in surfaces.rows(there, there.get)
            if all(there[term.component] in term.argument for term in row.terms)
        ]
        assert bool(rows) is said, (version, numpy)
        for row in rows:
            assert (row.effect, row.code, row.symptom) == ("blocks", "ED309", "")
            assert "is built against numpy 1 and cannot be imported with numpy 2.0.0" in row.title


def test_nothing_is_said_where_the_wheel_for_aarch64_is_built_otherwise(matrices):
    table = {"user": {"1.0": built("1"), "1.1": built("1")}}
    own = {
        "versions": {"user": "1.0 1.1"},
        "numpy": {"user": {"1.0": built("1"), "1.1": built("2")}},
    }
    (statement,) = numpy_statements(matrices, {"numpy": table, "aarch64": own}, "user")
    assert statement["in"] == [["1.0", "1.0"]]
