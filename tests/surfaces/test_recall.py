"""Which written rows are said without them: machines that violate a row, judged with and without
it.
"""

import random

import pytest
from surface_scan.recall import basis_of, machines_of, recall_row

from envdoctor.matrix.bind import bind
from envdoctor.matrix.derive import derive_target
from envdoctor.matrix.loader import load_matrix

MATRIX = load_matrix()
BARE = MATRIX.without_written_rows()
WRITTEN = [row for row in MATRIX.rows() if row.origin != "derived" and row.packages]


def test_without_written_rows_the_others_stay():
    assert {row.id for row in BARE.rows()} == {
        row.id for row in MATRIX.rows() if row.origin == "derived"
    }


@pytest.mark.parametrize("row", random.Random(18).sample(WRITTEN, 12), ids=lambda row: row.id)
def test_every_machine_violates_its_row(row):
    for facts in machines_of(row, MATRIX, random.Random(1)):
        assert bind(row, derive_target(facts, MATRIX)).outcome == "violated"


@pytest.mark.parametrize(
    ("row_id", "basis", "reproduced"),
    [
        ("datasets-hub-1", "import", True),
        ("triton-ptxas-sm-120", "library", True),
        ("vllm-0.5.2-glibc-2.32", "library", True),
        ("cublas-12.1-sigfpe-h20", "other", False),  # behaviour: no wheel tells
    ],
)
def test_known_rows(row_id, basis, reproduced):
    row = MATRIX.row(row_id)
    entry = recall_row(row, MATRIX, BARE, random.Random(1))
    assert (basis_of(row), entry.machines > 0) == (basis, True)
    assert entry.reproduced is reproduced
