"""The one setting that would narrow a pool most: what is said of it is what the plan makes of it."""

from __future__ import annotations

import pytest

from envdoctor.app import plan
from envdoctor.report import plan_text
from envdoctor.report.view import View
from envdoctor.sources import Sources, gather

from .test_monotony import RUNS, written

MACHINE = ["memory=60GiB", "gpu=A100-SXM4-40GB:8"]
#: Runs of which something is not stated, and the fields that this is about.
OPEN = {
    "prime-rl.toml": {"rollout.v1", "actor.gradient_checkpointing"},
    "megatron-bridge.sh": {"actor.sequence_split"},
}


def planned_run(matrix, tmp_path, name, *changes):
    path = written(name, tmp_path)
    (facts,) = gather(Sources(assume=MACHINE, elsewhere=True))
    return plan([str(path)], facts, matrix, changes=list(changes))[0]


@pytest.mark.parametrize("name", sorted(OPEN))
def test_ranges_are_those_of_the_plan_with_each_value(matrix, tmp_path, name):
    result = planned_run(matrix, tmp_path, name)
    named = [pool for pool in result.plan.pools if pool.unstated is not None]
    assert {pool.unstated.field for pool in named} == OPEN[name]
    for pool in named:
        ranges = pool.unstated.ranges
        assert len(ranges) > 1
        for text, low, high in ranges:
            changed = planned_run(matrix, tmp_path, name, text)
            (same,) = [
                one
                for one in changed.plan.pools
                if (one.name, one.subject) == (pool.name, pool.subject)
            ]
            assert (same.low, same.high) == (low, high), text
            # Once it is stated, something else is named, or nothing.
            assert same.unstated is None or same.unstated.field != pool.unstated.field
        mean = sum(high - low for _, low, high in ranges) / len(ranges)
        assert mean < 0.9 * (pool.high - pool.low)


@pytest.mark.parametrize("name", sorted(RUNS))
def test_something_is_named_only_of_what_is_open(matrix, tmp_path, name):
    result = planned_run(matrix, tmp_path, name)
    text = " ".join(plan_text.render(result, View(100, True)).split())
    tight = 0
    for pool in result.plan.pools:
        assert pool.unstated is None or pool.verdict in ("tight", "cannot tell")
        tight += pool.verdict == "tight" and pool.unstated is None
        for setting, _, _ in pool.unstated.ranges if pool.unstated is not None else ():
            assert setting in text
    assert text.count("no setting that is not stated narrows it much; widest is ") == tight
