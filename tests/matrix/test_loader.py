"""The loader: compiled and source forms are one matrix, a site adds rows, what is asked for is what
is read.
"""

import json
import os
import shutil
from pathlib import Path

import pytest

from envdoctor.errors import InputError, InternalFault, MatrixError
from envdoctor.matrix import loader
from envdoctor.matrix import source as matrix_source
from envdoctor.matrix.compiled import unpack_row
from envdoctor.matrix.loader import load_matrix
from envdoctor.matrix.source import write_compiled
from envdoctor.model.versions import parse_version

SOURCE = Path(__file__).resolve().parents[2] / "matrices"

ROW = """
[[row]]
id = "site-{0}"
title = "Our {0}"
effect = "blocks"
trust = "reported"
component = "{0}"
kind = "too-old"
when = [{{ env = "{0}", in = "<2" }}, {{ host = "driver", in = "<570" }}]
fix = "Ask the site's people."
sources = [{{ address = "ticket 1" }}]
date = "2026-11-01"
"""


@pytest.fixture(autouse=True)
def no_site(monkeypatch):
    monkeypatch.delenv("ENVDOCTOR_MATRIX", raising=False)


@pytest.fixture
def source(tmp_path):
    """A small matrices folder of its own."""
    folder = tmp_path / "matrices"
    (folder / "errata").mkdir(parents=True)
    (folder / "packages").mkdir()
    for name in ("drivers.toml", "cuda.toml", "gpus.toml"):
        shutil.copy(SOURCE / name, folder)
    for name in ("torch", "vllm", "flash-attn"):
        shutil.copy(SOURCE / "packages" / f"{name}.json", folder / "packages")
    (folder / "errata" / "x.toml").write_text(ROW.format("torch") + ROW.format("vllm"))
    return folder


@pytest.fixture
def forms(source, tmp_path, monkeypatch):
    """The same folder, loaded from source and compiled."""
    monkeypatch.setattr(loader, "_SOURCE", str(source))
    monkeypatch.setattr(loader, "_COMPILED", str(tmp_path / "none"))
    from_source = load_matrix()
    compiled = tmp_path / "compiled"
    write_compiled(str(source), str(compiled), times=True)
    monkeypatch.setattr(loader, "_COMPILED", str(compiled))
    return from_source, load_matrix()


def is_compiled(matrix):
    return type(matrix._files).__name__ == "CompiledFiles"


def test_compiled_is_source(forms):
    from_source, compiled = forms
    assert not is_compiled(from_source)
    assert is_compiled(compiled)
    assert compiled.rows() == from_source.rows()
    for table in (
        "date",
        "driver_branches",
        "cuda_majors",
        "toolkits",
        "forward_compat",
        "capabilities",
        "code_demands",
        "gpus",
        "package_names",
    ):
        assert getattr(compiled, table) == getattr(from_source, table), table
    for name in compiled.package_names:
        one, other = compiled.package(name), from_source.package(name)
        assert one.versions == other.versions
        assert len(one.versions) > 10
        for version in one.versions:
            assert one.release(version) == other.release(version)


def test_the_whole_matrix_compiles_to_itself(tmp_path, monkeypatch):
    write_compiled(str(SOURCE), str(tmp_path / "compiled"), times=True)
    monkeypatch.setattr(loader, "_COMPILED", str(tmp_path / "compiled"))
    compiled = load_matrix()
    monkeypatch.setattr(loader, "_COMPILED", str(tmp_path / "none"))
    source = load_matrix()
    assert is_compiled(compiled)
    assert not is_compiled(source)
    assert compiled.rows() == source.rows()


def test_a_changed_source_wins_over_the_compiled_form(forms, source):
    path = source / "errata" / "x.toml"
    path.write_text(path.read_text().replace("Our torch", "Your torch"))
    matrix = load_matrix()
    assert not is_compiled(matrix)
    assert matrix.row("site-torch").title == "Your torch"


@pytest.mark.parametrize("change", ["add", "remove"])
def test_a_source_with_other_files_wins_too(forms, source, change):
    if change == "add":
        (source / "errata" / "y.toml").write_text(ROW.format("ray"))
    else:
        (source / "packages" / "vllm.json").unlink()
    assert not is_compiled(load_matrix())


def test_what_is_read_on_demand_is_compiled_again_where_it_changed_alone(
    forms, source, tmp_path, monkeypatch
):
    (source / "profiles").mkdir()
    shutil.copy(SOURCE / "profiles" / "verl.toml", source / "profiles")
    shutil.copy(SOURCE / "models.toml", source)
    write_compiled(str(source), str(tmp_path / "compiled"), times=True)
    read = []
    for name in ("read_profiles", "read_models"):
        whole = getattr(matrix_source, name)
        monkeypatch.setattr(
            matrix_source,
            name,
            lambda folder, name=name, whole=whole: read.append(name) or whole(folder),
        )

    def profiles():
        matrix = load_matrix()
        assert is_compiled(matrix)
        assert matrix.models
        return set(matrix.profiles)

    assert (profiles(), read) == ({"verl"}, [])
    shutil.copy(SOURCE / "profiles" / "openrlhf.toml", source / "profiles")
    assert (profiles(), read) == ({"verl", "openrlhf"}, ["read_profiles"])
    (source / "profiles" / "verl.toml").unlink()
    assert profiles() == {"openrlhf"}
    (tmp_path / "compiled" / "extras.json").unlink()
    read.clear()
    assert (profiles(), sorted(read)) == ({"openrlhf"}, ["read_models", "read_profiles"])


def test_a_touched_source_is_still_fresh(forms, source):
    os.utime(source / "gpus.toml", (1, 1))
    assert is_compiled(load_matrix())


@pytest.mark.parametrize("recorded", ["", "{", "{}", None])
def test_what_does_not_say_what_it_was_compiled_from_is_not_fresh(forms, tmp_path, recorded):
    path = tmp_path / "compiled" / "fingerprint.json"
    if recorded is None:
        path.unlink()
    else:
        path.write_text(recorded)
    assert not is_compiled(load_matrix())


def test_rows_of_others_are_not_parsed(forms, monkeypatch):
    """A start is about few of the rows, and would parse them all."""
    matrix = forms[1]
    texts = dict(zip(loader._ids_of(matrix._core), matrix._core["rows"]))
    parsed = []
    monkeypatch.setattr(
        loader.compiled, "unpack_row", lambda text: parsed.append(text) or unpack_row(text)
    )
    assert "site-torch" in {row.id for row in matrix.rows_about(["torch"])}
    assert texts["site-torch"] in parsed
    assert texts["site-vllm"] not in parsed


def test_without_source_the_compiled_form_serves(forms, source, tmp_path, monkeypatch):
    monkeypatch.setattr(loader, "_SOURCE", str(tmp_path / "elsewhere"))
    assert is_compiled(load_matrix())


@pytest.mark.parametrize("damage", ["", "{", '{"format": 0}'])
def test_a_damaged_compiled_form_is_passed_over(forms, tmp_path, monkeypatch, damage):
    (tmp_path / "compiled" / "core.json").write_text(damage)
    assert not is_compiled(load_matrix())
    monkeypatch.setattr(loader, "_SOURCE", str(tmp_path / "elsewhere"))
    with pytest.raises(InternalFault, match="install envdoctor again"):
        load_matrix()


def test_rewriting_drops_what_is_gone_and_repeats_byte_for_byte(source, tmp_path):
    folder = tmp_path / "compiled"
    write_compiled(str(source), str(folder), times=False)
    before = {path.name: path.read_bytes() for path in folder.rglob("*.json*")}
    write_compiled(str(source), str(folder), times=False)
    assert {path.name: path.read_bytes() for path in folder.rglob("*.json*")} == before
    (source / "packages" / "vllm.json").unlink()
    write_compiled(str(source), str(folder), times=False)
    assert sorted(path.name for path in (folder / "packages").iterdir()) == [
        "flash-attn.jsonl",
        "torch.jsonl",
    ]


# --------------------------------------------------------------------------------------------------
# rows


def test_rows_about_some_names(forms):
    _, matrix = forms
    about_torch = {row.id for row in matrix.rows_about(["torch"])}
    assert {
        "site-torch",
        "driver-for-cuda-13:torch",
        "code-for-7.0:torch",
        "driver-since-10.0",
    } <= about_torch
    assert not any(row_id.endswith(":vllm") for row_id in about_torch)
    assert "site-vllm" not in about_torch
    nothing = {row.id for row in matrix.rows_about([])}
    assert nothing == {
        row_id for row_id in about_torch if row_id.startswith(("driver-since", "driver-until"))
    }
    assert {row.id for row in matrix.rows_about(["no-such-thing"])} == nothing


def test_rows_of_rows_about_are_whole_but_for_their_texts(forms):
    _, matrix = forms
    for row in matrix.rows_about(["torch", "vllm"]):
        whole = matrix.row(row.id)
        assert whole == matrix.complete(row)
        assert whole.title
        assert whole.fix
        assert whole.sources
        assert whole.date
        assert (row.terms, row.effect, row.component, row.kind, row.code, row.mitigations) == (
            whole.terms,
            whole.effect,
            whole.component,
            whole.kind,
            whole.code,
            whole.mitigations,
        )
    assert matrix.row("nothing-of-the-kind") is None
    assert matrix.row("driver-for-cuda-99:torch") is None


def test_texts_are_read_for_findings_only(forms, tmp_path):
    _, matrix = forms
    (tmp_path / "compiled" / "texts.json").unlink()
    row = next(row for row in matrix.rows_about(["torch"]) if row.id == "site-torch")
    with pytest.raises(FileNotFoundError):
        matrix.complete(row)


def test_a_rule_about_every_distribution_comes_applied(source, tmp_path, monkeypatch):
    (source / "errata" / "all.toml").write_text(
        ROW.format("any")
        .replace('env = "any", in = "<2"', 'env = "*", attribute = "cuda", in = ">=12,<13"')
        .replace("Our any", "Our * is old")
    )
    monkeypatch.setattr(loader, "_SOURCE", str(source))
    monkeypatch.setattr(loader, "_COMPILED", str(tmp_path / "none"))
    matrix = load_matrix()
    row = next(
        row for row in matrix.rows_about(["torch", "requests"]) if row.id == "site-any:torch"
    )
    assert row.terms[0].component == "torch"
    assert matrix.complete(row).title == "Our torch is old"
    assert matrix.row("site-any:torch") == matrix.complete(row)
    assert not any(row.id == "site-any:requests" for row in matrix.rows_about(["requests"]))


# --------------------------------------------------------------------------------------------------
# site rows


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    (folder / "errata").mkdir(parents=True)
    (folder / "own.toml").write_text(ROW.format("ray"))
    (folder / "errata" / "more.toml").write_text(ROW.format("deepspeed"))
    (folder / "gpus.toml").write_text(
        '[[gpu]]\nname = "X9000"\npci_ids = ["ffff"]\ncompute_capability = "9.0"\nkind = '
        '"datacenter"\narchitecture = "Hopper"\n'
        'source = "our rack"\ndate = "2026-11-01"\ntrust = "established"\n'
    )
    (folder / "packages").mkdir()
    (folder / "packages" / "our-engine.json").write_text(
        json.dumps(
            {
                "schema": 1,
                "name": "our-engine",
                "source": "our index",
                "date": "2026-11-01",
                "trust": "established",
                "releases": [
                    {"version": "1.0", "released": "2026-11-01", "builds": [{"cuda": "13.0"}]}
                ],
            }
        )
    )
    return folder


@pytest.mark.parametrize("way", ["argument", "variable"])
def test_a_site_adds_rows_tables_and_packages(forms, site, monkeypatch, way):
    _, plain = forms
    if way == "variable":
        monkeypatch.setenv("ENVDOCTOR_MATRIX", f"{site}{os.pathsep}")
    matrix = load_matrix([] if way == "variable" else [str(site)])
    assert {row.id for row in matrix.rows_about(["ray", "deepspeed"])} >= {
        "site-ray",
        "site-deepspeed",
    }
    assert matrix.row("site-ray").origin == str(site / "own.toml")
    assert matrix.row("site-torch") == plain.row("site-torch")
    assert matrix.gpu("NVIDIA X9000", None).name == "X9000"
    assert matrix.gpu(None, "10de:ffff").name == "X9000"
    assert matrix.gpu("NVIDIA H20", None) == plain.gpu("NVIDIA H20", None)
    assert matrix.package("our-engine").release(parse_version("1.0+cu130")).version == "1.0"
    assert any(
        row.id == "driver-for-cuda-13:our-engine" for row in matrix.rows_about(["our-engine"])
    )
    assert matrix.package("torch").versions == plain.package("torch").versions
    assert plain.row("site-ray") is None


def test_an_id_that_is_taken_names_both_files(forms, site):
    (site / "own.toml").write_text(ROW.format("torch"))
    with pytest.raises(MatrixError) as caught:
        load_matrix([str(site)])
    assert (
        f"{site / 'own.toml'}: row 'site-torch': the id is taken by a row in errata/x.toml"
        in str(caught.value)
    )


def test_a_table_entry_that_is_there_already(forms, site):
    shutil.copy(SOURCE / "drivers.toml", site)
    with pytest.raises(MatrixError, match=r"branch '570': stands already in drivers\.toml"):
        load_matrix([str(site)])


def test_a_site_folder_that_is_none(forms, tmp_path):
    with pytest.raises(InputError, match="found none at"):
        load_matrix([str(tmp_path / "nowhere")])
