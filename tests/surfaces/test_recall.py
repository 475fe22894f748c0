"""Which written rows are said without them: machines that violate a row, judged with and without
it.
"""

import random

import pytest
from surface_scan.needless import needless
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
        ("peft-0.16-transformers-5", "import", True),
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


@pytest.mark.parametrize(
    ("row_id", "said_by", "obstacle"),
    [
        ("cublas-12.1-sigfpe-h20", "", "not said"),
        (
            "sglang-cudnn-check-torch-2.9.1-0.5.6-cu13",
            "refuses-nvidia-cudnn-cu13-9.15:sglang",
            "",
        ),
        ("datasets-pyarrow-21", "imports-pyarrow.PyExtensionType:datasets", "not of datasets 1."),
        ("bitsandbytes-cuda-12.8", "no-library-cuda-12.8:bitsandbytes", "a setting would do"),
        (
            "peft-0.16-transformers-5",
            "imports-transformers.HybridCache:peft",
            "the other remedy lowers more",
        ),
        (
            "tensordict-forkingpickler-torch-2.6",
            "imports-torch.multiprocessing.reductions.ForkingPickler:tensordict",
            "its remedy changes more",
        ),
    ],
)
def test_what_keeps_a_row(row_id, said_by, obstacle):
    """Its releases, its setting, its remedy; nothing where a derived row says all of it."""
    (judgement,) = needless(MATRIX, only=[row_id])
    assert judgement.said_by == said_by
    assert judgement.obstacle.startswith(obstacle)
    assert bool(judgement.obstacle) is bool(obstacle)
