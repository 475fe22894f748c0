"""``plan --sweep``: a table of plans, each the same as ``--what-if`` makes of that setting."""

from __future__ import annotations

import json

import pytest

from envdoctor.app import plan, plan_sweep
from envdoctor.errors import InputError
from envdoctor.matrix.loader import load_matrix
from envdoctor.report import sweep_json
from envdoctor.report.sweep_text import render
from envdoctor.report.view import View
from envdoctor.sources import Sources, gather

from ..schemas import unproduced

SCRIPT = (
    "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-32B-Instruct --tuner_type full "
    "--torch_dtype bfloat16 --deepspeed zero3 --max_length 8192\n"
)
MATRIX = load_matrix()


@pytest.fixture
def run(tmp_path):
    (facts,) = gather(Sources(assume=["gpu=H100-SXM5-80GB:8", "memory=2TB"], elsewhere=True))
    script = tmp_path / "train.sh"
    script.write_text(SCRIPT)
    return [str(script)], facts


def swept(run, *sweeps, **options):
    return plan_sweep(*run, MATRIX, sweeps=sweeps, **options)


def test_each_row_is_what_one_change_makes_of_the_run(run):
    variants, _ = swept(run, "max_length=2048,8192", "per_device_train_batch_size=1,4")
    assert len(variants) == 4
    for variant in variants:
        alone, _ = plan(*run, MATRIX, changes=variant.settings)
        pools = [pool._replace(unstated=None) for pool in alone.plan.pools]
        assert list(variant.plan.pools) == pools
    highs = [variant.plan.pool("gpu").high for variant in variants]
    assert highs == sorted(highs)


def test_the_table_is_aligned_and_falls_to_entries_where_it_is_too_wide(run):
    variants, code = swept(run, "per_device_train_batch_size=1,16")
    wide = render(variants, View(width=140)).splitlines()
    columns = [
        line.index("GPU memory") for line in wide if "GPU memory" in line and "GiB" not in line
    ]
    rows = [line for line in wide if line.startswith("per_device_train_batch_size=")]
    assert len(columns) == 1
    assert len(rows) == 2
    assert all(row[columns[0] - 1] == " " != row[columns[0]] for row in rows)
    narrow = render(variants, View(width=60))
    assert max(map(len, narrow.splitlines())) <= 60
    assert "GPU memory " in narrow
    assert code in (0, 1)


@pytest.mark.parametrize(
    ("sweeps", "message"),
    [
        (["max_length"], "expected KEY=VALUE,VALUE"),
        (["max_length=,"], "expected KEY=VALUE,VALUE"),
        (["no_such_key=1,2"], "has no key 'no_such_key'"),
        (["max_length=" + ",".join(map(str, range(1, 99)))], "at most 64 combinations, found 98"),
    ],
)
def test_what_makes_no_table_is_said(run, sweeps, message):
    with pytest.raises(InputError, match=message):
        swept(run, *sweeps)


def test_the_same_plans_as_json(run):
    variants, _ = swept(run, "max_length=2048,8192", "per_device_train_batch_size=1,4")
    document = json.loads(sweep_json.render(variants, View()))
    assert unproduced("sweep", [document]) == set()
    assert [row["settings"] for row in document["variants"]] == [
        list(variant.settings) for variant in variants
    ]
    bounds = [(pool["low"], pool["high"]) for pool in document["variants"][0]["pools"]]
    assert bounds == [(pool.low, pool.high) for pool in variants[0].plan.pools]
