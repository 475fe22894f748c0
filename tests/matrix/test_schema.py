"""A fault in a row is reported with file and key, together with all the others."""

import copy
import json
import re

import pytest

from envdoctor.errors import MatrixError
from envdoctor.matrix import schema
from envdoctor.matrix.entries import Faults
from envdoctor.matrix.folder import find_sources
from envdoctor.matrix.schema import TABLES, default_code, parse_row
from envdoctor.matrix.source import compile_core

GOOD = {
    "id": "cublas-12.1-sigfpe-h20",
    "title": "cuBLAS 12.1 divides by zero on an H20",
    "effect": "blocks",
    "trust": "established",
    "component": "nvidia-cublas-cu12",
    "kind": "too-old",
    "when": [{"env": "nvidia-cublas-cu12", "in": "<12.3.4.1"}, {"gpu": "model", "any": ["H20"]}],
    "symptom": "Floating point exception (core dumped)",
    "fix": "Install nvidia-cublas-cu12 12.3.4.1 or newer.",
    "pins": ["nvidia-cublas-cu12>=12.3.4.1,<13"],
    "overrides": ["torch -> nvidia-cublas-cu12"],
    "mitigations": [{"var": "X", "value": "1"}],
    "sources": [{"address": "https://github.com/vllm-project/vllm/issues/4392", "quote": "SIGFPE"}],
    "established_by": "a maintainer",
    "date": "2026-11-21",
}


def faults_of(**changes):
    values = copy.deepcopy(GOOD)
    for key, value in changes.items():
        if value is None:
            values.pop(key)
        else:
            values[key] = value
    faults = Faults()
    row = parse_row(values, "errata/x.toml", 1, faults)
    assert (row is None) == bool(faults.found)
    return faults.found


def test_a_good_row_loads():
    assert faults_of() == []


@pytest.mark.parametrize(
    "key", ["id", "title", "effect", "trust", "component", "kind", "when", "fix", "sources", "date"]
)
def test_what_every_row_must_have(key):
    (fault,) = faults_of(**{key: None})
    assert fault.startswith("errata/x.toml: row ")
    assert f": {key}: is missing" in fault


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"colour": "red"}, "colour: no such key"),
        ({"effect": "kills"}, "effect: expected one of blocks"),
        ({"kind": "broken"}, "kind: expected one of too-old"),
        ({"trust": "sure"}, "trust: expected one of"),
        ({"date": "yesterday"}, "date: found 'yesterday'"),
        ({"id": "Has Spaces"}, "id: found 'Has Spaces'"),
        ({"code": "E1"}, "code: found 'E1'"),
        ({"title": 3}, "title: expected a string, found 3"),
        ({"pins": ["torch=>2"]}, "pins: expected a requirement"),
        ({"overrides": ["torch"]}, "overrides: expected"),
        ({"sources": ["https://x"]}, "sources: expected a list of tables"),
        ({"sources": [{"quote": "x"}]}, "sources[1]: address: is missing"),
        ({"when": [{"env": "torch", "in": "2.0"}]}, "when[1]: in: expected a version specifier"),
        ({"when": [{"env": "torch", "in": ">2,<1"}]}, "when[1]: in: '>2,<1' holds no version"),
        (
            {"when": [{"env": "torch", "gpu": "model", "in": ">2"}]},
            "when[1]: expected exactly one of env, gpu",
        ),
        ({"when": [{"env": "torch"}]}, "when[1]: expected exactly one of in, any"),
        (
            {"when": [{"env": "torch", "in": ">2", "present": True}]},
            "when[1]: expected exactly one of in, any",
        ),
        ({"when": [{"env": "torch", "any": ["2.1"]}]}, "any: does not go with a version attribute"),
        ({"when": [{"gpu": "model", "in": ">=1"}]}, "in: does not go with a label attribute"),
        ({"when": [{"gpu": "model", "any": "H20"}]}, "any: expected a list of strings"),
        ({"when": [{"gpu": "colour", "any": ["H20"]}]}, "colour: no such attribute of gpu"),
        (
            {"when": [{"env": "torch", "attribute": "speed", "in": ">1"}]},
            "speed: no such attribute of env",
        ),
        ({"when": [{"env": "torch", "present": "yes"}]}, "present: expected true or false"),
        ({"when": [{"env": "torch", "in": ">1", "unit": "x"}]}, "unit: no such key"),
    ],
)
def test_faults_name_the_key(changes, expected):
    (fault,) = faults_of(**changes)
    assert expected in fault


@pytest.mark.parametrize(
    ("component", "kind", "code"),
    [
        ("nvidia-driver", "too-old", "ED190"),
        ("torch", "arch-missing", "ED190"),
        ("nvidia-cublas-cu12", "too-old", "ED290"),
        ("nccl", "bad-version", "ED290"),
        ("transformers", "too-new", "ED390"),
        ("nvidia-ml-py", "too-new", "ED390"),
        ("flash-attn", "abi-mismatch", "ED490"),
        ("glibc", "too-old", "ED490"),
        ("memlock", "too-small", "ED590"),
    ],
)
def test_default_codes(component, kind, code):
    assert default_code(component, kind) == code


def test_all_faults_of_all_files_come_at_once(tmp_path):
    (tmp_path / "errata").mkdir()
    (tmp_path / "packages").mkdir()
    row = (
        '[[row]]\nid = "same"\ntitle = "t"\neffect = "blocks"\ntrust = "reported"\ncomponent = '
        '"torch"\nkind = "too-old"\n'
    )
    row += (
        'when = [{ env = "torch", in = "<2" }]\nfix = "f"\nsources = [{ address = "a" }]\ndate '
        '= "2026-01-01"\n'
    )
    (tmp_path / "errata" / "a.toml").write_text(row)
    (tmp_path / "errata" / "b.toml").write_text(
        row + "\n" + row.replace('"same"', '"other"').replace('"<2"', '"x"')
    )
    (tmp_path / "errata" / "c.toml").write_text("not = toml = at all")
    (tmp_path / "gpus.toml").write_text(
        '[[gpu]]\nname = "X1"\npci_ids = ["zz"]\nkind = "toaster"\narchitecture = '
        '"x"\ncompute_capability = "9.0"\n'
    )
    (tmp_path / "drivers.toml").write_text('[[brunch]]\nbranch = "570"\n')
    (tmp_path / "packages" / "torch.json").write_text("{")
    (tmp_path / "packages" / "ray.json").write_text(
        json.dumps(
            {
                "schema": 1,
                "name": "vllm",
                "source": "s",
                "date": "2026-01-01",
                "trust": "reported",
                "releases": [{"version": "one", "size": 1}],
            }
        )
    )
    with pytest.raises(MatrixError) as caught:
        compile_core(find_sources(str(tmp_path)))
    text = str(caught.value)
    for expected in [
        "errata/b.toml: row 'same': the id is taken by a row in errata/a.toml",
        "errata/b.toml: row 'other': when[1]: in: expected a version specifier",
        "errata/c.toml: is not TOML",
        "gpus.toml: gpu 'X1': pci_ids: expected four hexadecimal digits",
        "gpus.toml: gpu 'X1': kind: expected one of datacenter",
        "gpus.toml: gpu 'X1': source: is missing",
        "gpus.toml: gpu 'X1': date: is missing",
        "gpus.toml: gpu 'X1': trust: is missing",
        "drivers.toml: brunch: no such table",
        "packages/torch.json: is not JSON",
        "packages/ray.json: name: expected 'ray'",
        "packages/ray.json: release 'one': version: expected a PEP 440 version",
        "packages/ray.json: release 'one': size: no such key",
    ]:
        assert expected in text
    assert f"{len(caught.value.faults)} faults" in text


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00",
        b"[" * 100000,
        b'{"schema": 1',
        b"[]",
        b'{"schema": 2, "name": "torch"}',
        b'{"schema": 1, "releases": 3}',
    ],
)
def test_a_hostile_package_file_is_refused_by_name(tmp_path, content):
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "torch.json").write_bytes(content)
    with pytest.raises(MatrixError, match=r"packages/torch\.json"):
        compile_core(find_sources(str(tmp_path)))


def test_each_table_has_a_line_of_its_own():
    """Where a formatter joins them, keys of different tables stand in one sentence."""
    heads = re.findall(r"^    \[+(\w+)\]+(?= |$)", schema.__doc__, re.MULTILINE)
    assert heads == ["defaults", "row", *TABLES]
    for key in GOOD:
        assert re.search(rf"\b{key}\b", schema.__doc__.split("[[branch]]")[0]), key
