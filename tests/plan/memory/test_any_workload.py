"""Whatever an adapter may bring, sensible or not: bounds in order, texts that render, no
exception.
"""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.model.evidence import Known
from envdoctor.model.facts import Facts, Gpu
from envdoctor.model.sizes import GIB
from envdoctor.model.workload import WORKLOAD_FIELDS, Workload
from envdoctor.plan.memory.result import plan_run
from envdoctor.report import plan_json, plan_text
from envdoctor.report.view import View

from .conftest import PLACE

VALUES = {
    "int": [-1, 0, 1, 2, 8, 4096, 16 * GIB, 10**12],
    "float": [-1.0, 0.0, 0.5, 1.0, 60.0],
    "bool": [True, False],
}
WORDS = {
    "strategy": ["fsdp", "zero1", "zero2", "zero3", "megatron", "ddp", "none", "unheard-of"],
    "model": ["Qwen2.5-7B", "meta-llama/Meta-Llama-3-8B", "google/gemma-2-27b", "our-7B", "ours"],
    "engine": ["vllm", "hf", "sglang", "megatron"],
    "param_dtype": ["fp32", "bf16", "odd"],
    "grad_dtype": ["fp32", "bf16"],
    "optimizer": ["adamw", "adamw_bf16", "none"],
    "gather": ["full", "sharded", "full_bf16", "odd"],
    "version": ["0.6.3", "0.7.3", "0.9.1", "odd"],
    "algorithm": ["grpo", "ppo", "sft", "dpo", "serve"],
    "framework": ["verl", "openrlhf", "easyr1", "trl", "tinyzero", "simplerl"],
    "utilization_of": ["total", "free"],
}


def values_of(field):
    kind = WORKLOAD_FIELDS[field].type
    return st.sampled_from(VALUES.get(kind) or WORDS.get(field.rpartition(".")[2], ["text"]))


FIELDS = [field for field, record in WORKLOAD_FIELDS.items() if record.type != "variables"]
WORKLOADS = st.fixed_dictionaries({}, optional={field: values_of(field) for field in FIELDS})
DEVICES = st.lists(
    st.builds(
        Gpu,
        st.sampled_from(["H100", "A100 80GB", None]),
        memory_total=st.sampled_from([None, 0, 80 * GIB]),
    ),
    max_size=8,
).map(tuple)
MACHINES = st.fixed_dictionaries(
    {},
    optional={
        "memory.total": st.sampled_from([0, 64 * GIB, 1000 * GIB]),
        "gpus": DEVICES,
        "shm.size": st.just(64 << 20),
    },
)


@settings(max_examples=150)
@given(WORKLOADS, MACHINES, st.booleans())
def test_any_workload(matrix, run, machine, named):
    workload = Workload(
        {name: Known(value, PLACE) for name, value in run.items()},
        {name: name for name in FIELDS} if named else {},
    )
    result = plan_run(
        workload, Facts({name: Known(value, PLACE) for name, value in machine.items()}), matrix
    )
    for pool in result.plan.pools:
        assert all(0 <= term.low <= term.high for term in pool.terms)
        assert pool.limit is not None or pool.verdict == "cannot tell"
    for lever in result.levers:
        assert lever.after[0] <= lever.after[1]
    assert plan_text.render(result, View(60, True)).isascii()
    assert json.loads(plan_json.render(result, View()))["verdict"] == result.plan.verdict
