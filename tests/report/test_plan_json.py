"""The JSON of a plan against its published schema."""

import json
from pathlib import Path

import jsonschema
import pytest

from envdoctor.app import plan
from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Facts, Gpu
from envdoctor.model.memory_plan import Lever
from envdoctor.report.plan_json import dump_plan

from ..schemas import unproduced, validate

RUNS = sorted(path for path in (Path(__file__).parent.parent / "data" / "workloads").glob("*.sh"))


def dumped(run, changes=(), assumed=("memory=300GiB", "gpu=H100:8"), **fields):
    facts = Facts({**dict(parse_assumptions(assumed)), **fields})
    result = plan([str(run)], facts, load_matrix(), changes=changes)[0]
    return json.loads(json.dumps(dump_plan(result)))


@pytest.mark.parametrize("run", RUNS, ids=[run.stem for run in RUNS])
@pytest.mark.parametrize("assumed", [(), ("memory=300GiB", "gpu=H100:8")], ids=["bare", "machine"])
def test_plans_of_known_runs_fit_it(run, assumed):
    validate(dumped(run, assumed=assumed), "plan")


def test_a_changed_plan_has_all_of_it_and_no_more():
    data = dumped(
        RUNS[0].parent / "simplerl_84.sh",
        ["data.max_response_length=4096"],
        gpus=Known((Gpu(memory_total=24 << 30),) * 8, Evidence("test")),
    )
    assert data["changes"]
    # Of one whose engine is not known the host's memory hangs on that.
    total = {"memory.total": Known(60 << 30, Evidence("test"))}
    open_run = dumped(RUNS[0].parent / "prime_rl_wiki.sh", **total)
    assert unproduced("plan", [data, open_run]) == set()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data["pools"][0].update(verdict="perhaps"),
        lambda data: data["pools"][0]["terms"][0].pop("source"),
        lambda data: data["pools"][0]["phases"].pop("save"),
        lambda data: data["workload"].update({"rollout.nonsense": data["workload"]["nodes"]}),
        lambda data: data.update(extra=1),
    ],
)
def test_it_refuses_what_is_none(spoil):
    data = dumped(RUNS[0].parent / "simplerl_84.sh")
    spoil(data)
    with pytest.raises(jsonschema.ValidationError):
        validate(data, "plan")


def test_every_member_of_a_lever_but_our_own_field_names_is_there():
    data = dumped(RUNS[0].parent / "simplerl_84.sh")
    assert set(data["levers"][0]) == set(Lever._fields) - {"fields"}
