"""Diff: every difference once, none where there is none, and the reverse is the mirror."""

import pytest

from envdoctor.matrix.authoring.diff import compare
from envdoctor.matrix.loader import load_builtin, load_folder

from ..folders import package_text, row_text, small_matrix

OLD = '{ env = "torch", in = "<2.6" }'


def changes(old, new):
    answer = compare(load_folder(str(old)), load_folder(str(new)), "a", "b")
    return {
        (
            " of ".join(filter(None, (change["table"], change["package"]))),
            change["change"],
            change["key"],
        ): change["fields"]
        for change in answer["changes"]
    }


@pytest.fixture
def pair(tmp_path):
    return small_matrix(tmp_path / "old"), small_matrix(tmp_path / "new")


def test_a_matrix_is_itself():
    ours = load_builtin()
    assert compare(ours, ours, "a", "b")["changes"] == []


def test_source_and_compiled_do_not_differ(pair):
    assert changes(*pair) == {}


def test_rows(pair):
    old, new = pair
    (old / "errata" / "x.toml").write_text(
        row_text("same", OLD) + row_text("gone", OLD) + row_text("other", OLD)
    )
    (new / "errata" / "y.toml").write_text(
        row_text("same", OLD)
    )  # in another file, which says nothing
    (new / "errata" / "x.toml").write_text(
        row_text("come", OLD) + row_text("other", '{ env = "torch", in = "<2.7" }', fix="Wait.")
    )
    found = changes(old, new)
    assert set(found) == {
        ("rows", "removed", "gone"),
        ("rows", "added", "come"),
        ("rows", "changed", "other"),
    }
    assert {
        field["name"]: (field["old"], field["new"]) for field in found["rows", "changed", "other"]
    } == {
        "when": (["env: torch <2.6"], ["env: torch <2.7"]),
        "fix": ("Ask.", "Wait."),
    }


def test_releases_and_packages(pair):
    old, new = pair
    (new / "packages" / "torch.json").write_text(
        package_text("torch", {"2.6.0": {"requires": ["triton==3.2.1"]}, "2.7.0": {}})
    )
    (new / "packages" / "ray.json").write_text(package_text("ray", {"2.40.0": {}}))
    found = changes(old, new)
    assert set(found) == {
        ("packages", "added", "ray"),
        ("releases of torch", "removed", "2.5.0"),
        ("releases of torch", "added", "2.7.0"),
        ("releases of torch", "changed", "2.6.0"),
    }
    assert found["releases of torch", "changed", "2.6.0"] == [
        {"name": "requires", "old": ["triton==3.2.0"], "new": ["triton==3.2.1"]}
    ]
    mirrored = {
        (table, {"added": "removed", "removed": "added"}.get(change, change), key)
        for table, change, key in changes(new, old)
    }
    assert mirrored == set(found)


def test_tables_and_gpus(pair):
    old, new = pair
    for name, before, after in (
        ("drivers.toml", 'cuda = "12.8"', 'cuda = "12.9"'),
        ("gpus.toml", 'name = "H20"', 'name = "H21"'),
    ):
        text = (new / name).read_text()
        assert before in text
        (new / name).write_text(text.replace(before, after, 1))
    found = changes(old, new)
    assert ("gpu", "removed", "H20") in found
    assert ("gpu", "added", "H21") in found
    assert [key for key in found if key[0] == "branch"] == [("branch", "changed", "570")]


MODEL = """
[[model]]
name = "Small-1B"
repository = "small/Small-1B"
parameters = 1_000_000_000
layers = {layers}
hidden = 1024
heads = 16
kv_heads = 4
head_dim = 64
vocabulary = 32000
intermediate = 4096
source = "config.json of small/Small-1B"
date = "2026-11-01"
trust = "established"
"""
CONDA = """
[[conda]]
distribution = "{name}"
package = "{package}"
channel = "conda-forge"
source = "conda-forge/pytorch-cpu-feedstock, which makes the package"
date = "2026-11-01"
trust = "reported"
"""


def test_models_and_conda_names(pair):
    old, new = pair
    (old / "models.toml").write_text(MODEL.format(layers=16))
    (new / "models.toml").write_text(MODEL.format(layers=18))
    (old / "conda.toml").write_text(CONDA.format(name="torch", package="pytorch"))
    (new / "conda.toml").write_text(
        CONDA.format(name="torch", package="pytorch-gpu")
        + CONDA.format(name="vllm", package="vllm")
    )
    found = changes(old, new)
    assert set(found) == {
        ("models", "changed", "Small-1B"),
        ("conda", "changed", "torch"),
        ("conda", "added", "vllm"),
    }
    assert found["models", "changed", "Small-1B"] == [{"name": "layers", "old": 16, "new": 18}]
    assert found["conda", "changed", "torch"] == [
        {"name": "package", "old": "pytorch", "new": "pytorch-gpu"}
    ]
