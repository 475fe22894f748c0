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
        ("datasets-pyarrow-21", "imports-pyarrow.PyExtensionType:datasets", "not of datasets 1."),
        ("bitsandbytes-cuda-12.8", "no-library-cuda-12.8:bitsandbytes", "a setting would do"),
        (
            "tensordict-forkingpickler-torch-2.6",
            "imports-torch.multiprocessing.reductions.ForkingPickler:tensordict",
            "its remedy is words",  # 21 packages at once: envdoctor fix lists them
        ),
    ],
)
def test_what_keeps_a_row(row_id, said_by, obstacle):
    """Its releases, its setting, its remedy."""
    (judgement,) = needless(MATRIX, only=[row_id])
    assert judgement.said_by == said_by
    assert judgement.obstacle.startswith(obstacle)


@pytest.mark.parametrize(
    ("symptom", "obstacle"),
    [
        ("", ""),
        ("; RuntimeError: the shelf of datasets is closed for good", "its text is not answered"),
    ],
)
def test_a_row_that_a_derived_one_says_whole_may_go(tmp_path, symptom, obstacle):
    """As it stood in the matrix until --needless proposed it, and with a text of its own."""
    (tmp_path / "site.toml").write_text(
        f"""
[[row]]
id = "site-datasets-hub-1"
title = "datasets 1.16.1 to 2.15 imports HfFolder, which huggingface-hub 1.0 removed"
effect = "blocks"
trust = "established"
component = "datasets"
kind = "too-old"
when = [
  {{ env = "datasets", in = ">=1.16.1,<2.16" }},
  {{ env = "huggingface-hub", in = ">=1.0" }},
]
symptom = "ImportError: cannot import name 'HfFolder' from 'huggingface_hub'{symptom}"
fix = "Install datasets 3.6 or newer."
pins = ["datasets>=3.6"]
sources = [{{ address = "published wheels of datasets 1.15.1 to 2.16.0" }}]
established_by = "measured"
date = "2026-11-26"
"""
    )
    (judgement,) = needless(load_matrix([str(tmp_path)]), only=["site-datasets-hub-1"])
    assert judgement.said_by == "imports-huggingface_hub.HfFolder:datasets"
    assert judgement.obstacle.startswith(obstacle)
    assert bool(judgement.obstacle) is bool(obstacle)
