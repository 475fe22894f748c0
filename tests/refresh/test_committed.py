"""The matrix as it is committed: complete by its own listing, and in the form that the refresh
writes.
"""

import json

from envdoctor.matrix.loader import load_matrix

from .conftest import ROOT

MATRICES = ROOT / "matrices"
#: Nothing may be missing from these releases on.
COMPLETE_SINCE = {
    "torch": "1.13",
    "vllm": "0.2",
    "ray": "2.0",
    "verl": "0",
    "openrlhf": "0",
    "sglang": "0.4",
    "flash-attn": "2.0",
    "transformers": "4.30",
    "deepspeed": "0.9",
}


def listing():
    return json.loads((MATRICES / "index.json").read_text(encoding="utf-8"))["packages"]


def test_every_release_on_the_committed_listing_is_in_the_matrix():
    matrix = load_matrix()
    missing = []
    for name, entry in listing().items():
        package = matrix.package(name)
        known = set() if package is None else {str(version) for version in package.versions}
        missing += [f"{name} {version}" for version in entry["releases"] if version not in known]
    assert missing == []


def test_the_stack_has_dependencies_and_dates_for_every_release():
    from envdoctor.model.version import Version

    matrix = load_matrix()
    missing = []
    for name, since in COMPLETE_SINCE.items():
        package = matrix.package(name)
        versions = [version for version in package.versions if version >= Version(since)]
        assert versions
        for version in versions:
            release = package.release(version)
            if (
                release.requires is None
                or not release.released
                or not (release.sdist_only or release.platforms)
            ):
                missing.append(f"{name} {version}")
    assert missing == []


def test_every_package_of_the_list_is_on_the_listing():
    from matrix_refresh.selection import load_selection

    selection = load_selection()
    assert sorted(set(selection.names) - set(listing()) - selection.elsewhere) == []


def test_the_files_are_as_the_refresh_writes_them():
    from matrix_refresh.documents import load_document, load_listing, render, render_listing

    for name in listing():
        path = MATRICES / "packages" / f"{name}.json"
        if path.exists():
            assert render(load_document(str(path), name)) == path.read_bytes(), (
                f"{path.name} was edited by hand; put it as the refresh writes it"
            )
    date, packages = load_listing(str(MATRICES / "index.json"))
    assert render_listing(packages, date) == (MATRICES / "index.json").read_bytes()


def test_the_matrix_stays_small():
    size = sum(
        path.stat().st_size
        for path in [*(MATRICES / "packages").iterdir(), MATRICES / "index.json"]
    )
    assert size < 12_000_000
