"""A workload of stated launch settings: each setting is read once, and all come back as stated."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdoctor.matrix.derive import derive_target
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Facts
from envdoctor.model.serde import SCHEMA_VERSION, dump_facts, load_facts
from envdoctor.model.sizes import GIB
from envdoctor.model.workload import Workload, stated_workload

HERE = Evidence("report, line 3")
NAMES = [
    *("model", "model_path", "tensor_parallel_size", "swap_space", "gpu_memory_utilization"),
    *("engine", "enforce_eager", "nnodes", "num_nodes", "kv_cache_dtype", "n"),
]
TEXTS = ["8", "0", "0.9", "4.5", "V1", "true", "false", "Qwen/Qwen2.5-7B", "32k", "-1", "nan", ""]
SETTINGS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(TEXTS))


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("tensor_parallel_size", "8", "rollout.tensor_parallel", 8),
        ("gpu_memory_utilization", "0.90", "rollout.gpu_memory_utilization", 0.9),
        ("swap_space", "16", "rollout.swap_space", 16 * GIB),
        ("engine", "V0", "rollout.v1", False),
        ("model_path", "Qwen/Qwen2.5-7B", "actor.model", "Qwen/Qwen2.5-7B"),
        ("enforce_eager", "True", "rollout.enforce_eager", True),
        ("nnodes", "2", "nodes", 2),
    ],
)
def test_settings_are_fields(name, text, field, value):
    assert stated_workload({name: text}, HERE).get(field) == Known(value, HERE)


@pytest.mark.parametrize(
    ("name", "text"),
    [("tensor_parallel_size", "auto"), ("engine", "vllm"), ("quantization", "awq"), ("model", "")],
)
def test_what_is_no_value_of_a_field_stays_text(name, text):
    workload = stated_workload({name: text}, HERE)
    assert dict(workload.flags) == {name: text}
    assert workload.setting(name) == text
    assert list(workload) == []


@given(SETTINGS)
def test_every_setting_comes_back_under_its_name(settings):
    assert stated_workload(settings, HERE).settings() == settings


@given(SETTINGS)
def test_a_file_of_facts_keeps_them(settings):
    facts = Facts({"request": Known(stated_workload(settings, HERE), HERE)})
    assert load_facts(json.dumps(dump_facts(facts)), "file") == facts


@given(SETTINGS, SETTINGS)
def test_the_upper_of_two_holds(upper, lower):
    both = stated_workload(upper, HERE).over(stated_workload(lower, HERE))
    assert {name: both.setting(name) for name in upper} == upper
    assert all(both.setting(name) is not None for name in lower)


def test_facts_of_before_still_load():
    request = {"tensor_parallel_size": "4", "attention_backend": "FLASHINFER"}
    entry = {"value": request, "source": "report, line 3"}
    text = json.dumps({"schema_version": SCHEMA_VERSION, "facts": {"request": entry}})
    workload = load_facts(text, "file").value("request")
    assert workload.value("rollout.tensor_parallel") == 4
    assert workload.settings() == request


def test_rows_read_the_same_settings():
    """A row's term of the scope ``request`` sees a script's field as it sees a stated flag."""
    script = Workload({"rollout.tensor_parallel": Known(4, HERE), "rollout.v1": Known(True, HERE)})
    stated = stated_workload({"tensor_parallel_size": "4", "engine": "V1"}, HERE)
    seen = [
        [
            derive_target(facts, load_matrix()).request(name)
            for name in ("tensor_parallel_size", "engine", "n")
        ]
        for facts in (
            Facts({"request": Known(script, HERE)}),
            Facts({"request": Known(stated, HERE)}),
        )
    ]
    assert seen[0] == seen[1]
    assert seen[0][1].attributes["value"] == "V1"
    assert seen[0][2].present is None


@pytest.mark.parametrize("text", ["0.9", "4"])
def test_numbers(text):
    assert stated_workload({"swap_space": text, "other": text}, HERE).number("other") == float(text)
    assert stated_workload({"swap_space": text}, HERE).number("swap_space") == float(text)
    assert stated_workload({"other": "nan"}, HERE).number("other") is None
