"""What stops a run beside memory: an error only where nothing that was not read could refute it."""

import pytest

from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Facts, Gpu
from envdoctor.model.run_places import HubModel, RunPath, RunPlaces
from envdoctor.model.sizes import GIB
from envdoctor.model.workload import Workload
from envdoctor.rules.preflight import Preflight, preflight_findings

PLACE = Evidence("train.sh:3")
HERE = {"nodes": 1, "launch.elsewhere": "", "launch.prepares": "", "framework": "verl"}
MISSING = RunPlaces(paths=(RunPath("data.files", "/data/a.parquet", False),))


def findings(places=None, written=(0, 0), gpus=(), assumed=False, **values):
    fields = {**HERE, **{name.replace("__", "."): value for name, value in values.items()}}
    table = {name: Known(value, PLACE) for name, value in fields.items() if value is not None}
    source = Evidence("--assume" if assumed else "nvidia-smi")
    facts = Facts({"gpus": Known(tuple(gpus), source)} if gpus else {})
    findings = preflight_findings(Preflight(Workload(table), facts, places, written))
    return [(finding.code, finding.severity) for finding in findings]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "error"),
        ({"launch__prepares": "prepare.py"}, "warning"),
        ({"launch__prepares": None}, "warning"),
        ({"launch__elsewhere": "ray job submit"}, "warning"),
        ({"launch__elsewhere": None}, "warning"),
        ({"nodes": 2}, "warning"),
        ({"nodes": None}, "warning"),
        ({"container__image": "verl:latest"}, None),
        ({"launch__elsewhere": "container"}, None),
    ],
)
def test_a_missing_path(fields, expected):
    assert findings(MISSING, **fields) == ([("ED611", expected)] if expected else [])


@pytest.mark.parametrize("exists", [True, None])
def test_a_path_that_is_there_or_could_not_be_looked_up(exists):
    assert findings(RunPlaces(paths=(RunPath("data.files", "/a", exists),))) == []


@pytest.mark.parametrize(
    ("free", "fields", "expected"),
    [
        (90, {}, "error"),
        (90, {"framework": "trl"}, "warning"),
        (150, {}, "warning"),
        (700, {}, None),
        (700, {"checkpoint__limit": 3}, None),
        (700, {"checkpoint__limit": 4}, "warning"),
        (700, {"steps": 100, "checkpoint__save_freq": 50}, None),
        (700, {"steps": 100, "checkpoint__save_freq": 10}, "warning"),
    ],
)
def test_the_disk_for_checkpoints(free, fields, expected):
    places = RunPlaces(disk="/ckpt", free=free * GIB, fresh=True)
    faults = findings(places, (100 * GIB, 200 * GIB), **fields)
    assert faults == ([("ED612", expected)] if expected else [])


def test_a_disk_with_older_checkpoints_may_get_room():
    places = RunPlaces(disk="/ckpt", free=90 * GIB, fresh=False)
    assert findings(places, (100 * GIB, 200 * GIB)) == [("ED612", "warning")]


def test_a_stated_disk_counts_for_another_machine():
    assert findings(None, (100 * GIB, 200 * GIB), checkpoint__disk=GIB) == [("ED612", "error")]
    assert findings(None, (100 * GIB, 200 * GIB)) == []


def test_a_port_that_is_taken():
    assert findings(RunPlaces(ports=frozenset([8000])), port=8000) == [("ED613", "warning")]
    assert findings(RunPlaces(ports=frozenset([8001])), port=8000) == []
    assert findings(RunPlaces(), port=8000) == []


@pytest.mark.parametrize(
    ("name", "cached", "offline", "token", "expected"),
    [
        ("Qwen/Qwen2.5-7B", False, "HF_HUB_OFFLINE", None, "error"),
        ("Qwen/Qwen2.5-7B", True, "HF_HUB_OFFLINE", None, None),
        ("Qwen/Qwen2.5-7B", None, "HF_HUB_OFFLINE", None, None),
        ("Qwen/Qwen2.5-7B", False, "", False, None),
        ("meta-llama/Llama-3.1-8B", False, "", False, "warning"),
        ("meta-llama/Llama-3.1-8B", False, "", True, None),
        ("meta-llama/Llama-3.1-8B", False, "", None, None),
        ("meta-llama/Llama-3.1-8B", True, "", False, None),
    ],
)
def test_models_of_the_hub(name, cached, offline, token, expected):
    models = (HubModel("actor.model", name, cached),)
    faults = findings(RunPlaces(hub=models, offline=offline, token=token))
    assert faults == ([("ED614", expected)] if expected else [])


@pytest.mark.parametrize(
    ("asked", "there", "assumed", "expected"),
    [(8, 8, False, []), (8, 4, False, ["warning"]), (8, 1, True, []), (8, 2, True, ["warning"])],
)
def test_gpus_of_a_node(asked, there, assumed, expected):
    gpus = [Gpu("H100")] * there
    faults = findings(RunPlaces(), gpus=gpus, assumed=assumed, gpus_per_node=asked)
    assert faults == [("ED615", severity) for severity in expected]


@pytest.mark.parametrize(
    ("shown", "key", "expected"),
    [
        ("0,1", "--nproc_per_node", ["error"]),
        ("0,1,2,3", "--nproc_per_node", []),
        ("0,1", "--num_processes", []),
        ("GPU-5f,GPU-6a", "--nproc_per_node", []),
        ("", "--nproc_per_node", []),
    ],
)
def test_processes_against_the_gpus_that_a_script_shows_them(shown, key, expected):
    variables = Known({"CUDA_VISIBLE_DEVICES": shown}, PLACE)
    run = Workload(
        {"gpus_per_node": Known(4, PLACE), "variables": variables}, {"gpus_per_node": key}
    )
    found = preflight_findings(Preflight(run, Facts({})))
    assert [(one.code, one.severity) for one in found] == [("ED615", one) for one in expected]


def test_processes_that_have_no_gpu_are_an_error_on_this_machine_alone():
    asked = Known(8, Evidence("train.sh:4"))
    stated = {name: Known(value, PLACE) for name, value in HERE.items()}
    facts = Facts({"gpus": Known((Gpu("H100"),) * 4, Evidence("nvidia-smi"))})
    run = Workload({**stated, "gpus_per_node": asked}, {"gpus_per_node": "--nproc_per_node"})
    for places, severity in ((RunPlaces(), "error"), (None, "warning")):
        findings = preflight_findings(Preflight(run, facts, places))
        assert [finding.severity for finding in findings] == [severity]


@pytest.mark.parametrize(
    ("resume", "step", "steps", "expected"),
    [
        ("/ckpt/global_step_200", None, 200, True),
        ("/ckpt/global_step_200", None, 300, False),
        ("/ckpt/checkpoint-500/", None, 400, True),
        ("/ckpt/of-step-500", None, 400, False),  # no framework's name of a checkpoint
        ("auto", 100, 100, True),
        ("auto", None, 100, False),
        ("disable", 100, 100, False),
        ("auto", 100, None, False),
    ],
)
def test_the_step_that_a_run_goes_on_from(resume, step, steps, expected):
    faults = findings(RunPlaces(step=step), checkpoint__resume=resume, steps=steps)
    assert faults == ([("ED616", "warning")] if expected else [])


@pytest.mark.parametrize(
    ("key", "expected"), [("--tp-size", []), ("--nproc_per_node", [("ED615", "warning")])]
)
def test_stages_of_an_engine_may_stand_on_other_nodes_and_processes_do_not(key, expected):
    stated = {"gpus_per_node": 16, "rollout.pipeline_parallel": 2}
    table = {name: Known(value, PLACE) for name, value in stated.items()}
    facts = Facts({"gpus": Known((Gpu("H100"),) * 8, Evidence("nvidia-smi"))})
    run = Workload(table, {"gpus_per_node": key})
    found = preflight_findings(Preflight(run, facts))
    assert [(one.code, one.severity) for one in found] == expected
