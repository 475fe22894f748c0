"""The JSON of a plan against its published schema."""

import json
from pathlib import Path

import jsonschema
import pytest

import envdoctor
from envdoctor.app import plan
from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts
from envdoctor.model.memory_plan import Lever
from envdoctor.report.plan_json import dump_plan
from envdoctor.report.plan_schema import plan_schema

SCHEMA = Path(envdoctor.__file__).parent / "schemas" / "plan.schema.json"
RUNS = sorted(path for path in (Path(__file__).parent.parent / "data" / "workloads").glob("*.sh"))


def dumped(run, changes=(), assumed=("memory=300GiB", "gpu=H100:8")):
    return dump_plan(
        plan([str(run)], Facts(parse_assumptions(assumed)), load_matrix(), changes=changes)[0]
    )


def test_published_schema_is_the_generated_one():
    jsonschema.Draft202012Validator.check_schema(plan_schema())
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == plan_schema()


@pytest.mark.parametrize("run", RUNS, ids=[run.stem for run in RUNS])
@pytest.mark.parametrize("assumed", [(), ("memory=300GiB", "gpu=H100:8")], ids=["bare", "machine"])
def test_plans_of_known_runs_fit_it(run, assumed):
    jsonschema.Draft202012Validator(plan_schema()).validate(
        json.loads(json.dumps(dumped(run, assumed=assumed)))
    )


def test_a_changed_plan_fits_it_and_has_both():
    data = dumped(RUNS[0].parent / "simplerl_84.sh", ["actor_rollout_ref.rollout.swap_space=0"])
    jsonschema.validate(data, plan_schema())
    assert data["changes"]
    assert data["before"]["pools"]


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
        jsonschema.validate(data, plan_schema())


def test_every_member_of_a_lever_but_our_own_field_names_is_there():
    data = dumped(RUNS[0].parent / "simplerl_84.sh")
    assert set(data["levers"][0]) == set(Lever._fields) - {"fields"}
