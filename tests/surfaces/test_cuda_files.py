"""Statements about a package that takes its library by torch's CUDA."""

import json

import pytest
from surface_scan.cuda_files import cuda_check_statements, cuda_file_statements

from envdoctor.matrix.bind import Subject, truth
from envdoctor.matrix.measured_rows import Surfaces, compile_surfaces, surface_fault
from envdoctor.model.versions import parse_version

TORCH = {
    "releases": [
        {"version": "2.0.0", "builds": [{"cuda": "11.8"}, {"cuda": "12.1"}]},
        {"version": "2.4.0", "builds": [{"cuda": "12.4"}, {"cuda": "13"}, {"cuda": "13.0"}]},
    ]
}


def _statements(workshop):
    folder = workshop.folder / "packages"
    folder.mkdir(exist_ok=True)
    (folder / "torch.json").write_text(json.dumps(TORCH))
    packages = workshop.packages._replace(
        by_cuda={
            "maker": {"library": "maker/lib_cuda{}.so", "since": "1.1", "variable": "OWN_CUDA"}
        }
    )
    releases = [
        workshop.release("maker", {f"maker/lib_cuda{cuda}.so": "" for cuda in cudas}, version)
        for version, cudas in (
            ("1.0", ()),  # before "since": chosen otherwise
            ("1.1", ("118",)),
            ("1.2", ("118", "121")),
            ("1.3", ("118", "121", "124")),
            ("1.4", ("118", "124")),  # what is left out later may be served by another
        )
    ]
    return cuda_file_statements(packages, releases, workshop.folder)


def test_what_older_releases_lack_and_a_newer_one_has(workshop):
    found = {entry["id"]: (entry["in"], entry["pin"]) for entry in _statements(workshop)}
    assert found == {
        "no-library-cuda-12.1": ([["1.1", "1.1"]], "maker>=1.2"),
        "no-library-cuda-12.4": ([["1.1", "1.2"]], "maker>=1.3"),
    }


def test_they_become_rows_about_the_build_of_torch(workshop):
    document = {
        "schema": 1,
        "name": "maker",
        "date": "2026-01-01",
        "statements": _statements(workshop),
    }
    assert surface_fault(document, "maker") == ""
    row = next(
        row
        for row in Surfaces(compile_surfaces([document])).rows_of("maker")
        if row.id == "no-library-cuda-12.4:maker"
    )
    assert [str(term) for term in row.terms] == [
        "maker >=1.1, <=1.2",
        "torch >=2.0.0, <=2.4.0",
        "torch cuda ==12.4",
        "OWN_CUDA value is absent",
    ]
    assert (row.code, row.symptom) == ("ED411", "lib_cuda124.so")


@pytest.mark.parametrize(
    ("text", "own", "torch", "refused"),
    [
        ("different CUDA versions", "12.8", "12.6", True),
        ("different CUDA versions", "12.8", "12.8", False),
        ("different CUDA versions", "12.8", None, False),
        ("different CUDA major versions", "12.8", "12.6", False),
        ("different CUDA major versions", "12.8", "13.0", True),
    ],
)
def test_a_torch_for_another_cuda(workshop, text, own, torch, refused):
    """Asked of ``check`` with builds of that CUDA, torch's none where it is None."""
    folder = workshop.folder / "packages"
    folder.mkdir()
    (folder / "torch.json").write_text(json.dumps(TORCH))
    builds = {"releases": [{"version": "1.0", "builds": [{"cuda": "12.6"}, {"cuda": "12.8"}]}]}
    (folder / "maker.json").write_text(json.dumps(builds))
    packages = workshop.packages._replace(compares_cuda={"maker": text})
    release = workshop.release("maker", {"maker/check.py": f"raise RuntimeError('{text}')\n"})
    statements = cuda_check_statements(packages, [release], workshop.folder)
    document = {"schema": 1, "name": "maker", "date": "2026-01-01", "statements": statements}
    assert surface_fault(document, "maker") == ""

    def subject(cuda):
        held = {"version": parse_version("2.4.0"), "cuda": cuda and parse_version(cuda)}
        return Subject(True, {name: value for name, value in held.items() if value})

    said = [
        row
        for row in Surfaces(compile_surfaces([document])).rows_of("maker")
        if all(
            term.scope == "host"
            or truth(term, subject(own if term.component == "maker" else torch))
            for term in row.terms
            if term.attribute == "cuda"
        )
    ]
    assert bool(said) is refused
