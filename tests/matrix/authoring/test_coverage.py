"""Coverage: what is on the listing and not in the matrix is missing, by package and release."""

import json

import pytest

from envdoctor.errors import MatrixError
from envdoctor.matrix.authoring.coverage import REQUIRED, measure
from envdoctor.matrix.loader import load_builtin, load_folder
from envdoctor.model.versions import parse_version

from ..folders import SOURCE, small_matrix

WHEEL = {"platforms": ["manylinux_2_28_x86_64"], "requires": []}
READ = {**WHEEL, "builds": [{"sass": ["9.0"], "source": "the wheel"}]}
LISTING = {
    "schema": 1,
    "source": "x",
    "date": "2026-11-20",
    "packages": {"torch": {"releases": ["1.12.0", "2.5", "2.6.0"]}},
}


def coverage(tmp_path, torch, listing=LISTING, names=("torch",)):
    matrix = load_folder(str(small_matrix(tmp_path / "matrices", packages={"torch": torch})))
    return measure(matrix, listing, names)


def missing(answer):
    return {(gap["version"], gap["lacks"]) for gap in answer["missing"]}


def test_nothing_is_missing(tmp_path):
    answer = coverage(tmp_path, {"2.5.0": READ, "2.6.0": READ})
    assert missing(answer) == set()
    (entry,) = answer["packages"]
    # 1.12.0 is on the listing but not asked for; 2.5 is 2.5.0
    assert (
        entry["listed"],
        entry["in_matrix"],
        entry["with_dependencies"],
        entry["with_sm"],
        entry["with_glibc"],
    ) == (3, 2, 2, 2, 2)
    assert entry["gone_from_index"] == []


@pytest.mark.parametrize(
    ("fields", "lacks"),
    [
        (WHEEL, {"no SM list"}),
        ({**READ, "platforms": ["linux_x86_64"]}, {"no glibc floor"}),
        ({"platforms": ["linux_x86_64"]}, {"no dependencies", "no SM list", "no glibc floor"}),
        (
            {"sdist_only": True, "requires": []},
            set(),
        ),  # nothing compiled, so there is nothing to read
        ({"sdist_only": True}, {"no dependencies"}),
    ],
)
def test_what_a_release_lacks(tmp_path, fields, lacks):
    assert missing(coverage(tmp_path, {"2.5.0": READ, "2.6.0": fields})) == {
        ("2.6.0", word) for word in lacks
    }


def test_a_release_that_is_not_there(tmp_path):
    answer = coverage(tmp_path, {"2.6.0": READ, "2.6.1": READ})
    assert missing(answer) == {("2.5", "not in the matrix")}
    assert answer["packages"][0]["gone_from_index"] == ["2.6.1"]


def test_what_was_measured_is_counted_by_release():
    matrix = load_builtin()
    listing = json.loads((SOURCE / "index.json").read_text())
    for name in ("trl", "torch"):
        (entry,) = measure(matrix, listing, [name])["packages"]
        document = json.loads((SOURCE / "surfaces" / f"{name}.json").read_text())
        listed = {parse_version(text) for text in listing["packages"][name]["releases"]}
        measured = {parse_version(text) for text in document["measured"]}
        assert entry["with_imports"] == len(measured & listed) > 10
    symbols = json.loads((SOURCE / "symbols.json").read_text())
    (entry,) = measure(matrix, listing, ["torchcodec"])["packages"]
    read = {*symbols["fits"]["torchcodec"], *symbols["links"]["torchcodec"]}
    assert entry["with_symbols"] == len(read) > 10
    assert measure(matrix, listing, ["trl"])["packages"][0]["with_symbols"] == 0


def test_a_required_package_that_is_not_listed(tmp_path):
    answer = coverage(tmp_path, {"2.6.0": READ}, {**LISTING, "packages": {}}, ())
    assert ("every release", "not on the listing") in missing(answer)
    assert {gap["name"] for gap in answer["missing"]} == set(REQUIRED)


@pytest.mark.parametrize(
    "listing",
    [
        {},
        {"schema": 2, "packages": {}},
        {"schema": 1, "packages": {"torch": ["2.6.0"]}},
        {"schema": 1, "packages": {"torch": {"releases": [1]}}},
    ],
)
def test_another_listing_is_refused(tmp_path, listing):
    with pytest.raises(MatrixError, match=r"index\.json"):
        coverage(tmp_path, {"2.6.0": READ}, listing)


def test_our_own_matrix_against_its_listing():
    """Packages and ranges that have to be complete, by the committed listing."""
    matrix = load_builtin()
    listing = matrix.index_listing()
    assert listing is not None
    json.dumps(listing)
    answer = measure(matrix, listing, REQUIRED)
    lines = sorted({f"{gap['name']} {gap['version']}: {gap['lacks']}" for gap in answer["missing"]})
    assert lines == []
