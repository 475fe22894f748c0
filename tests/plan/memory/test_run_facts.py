"""What a run asks of its engine, for the rows of the matrix: who samples, the framework or the
engine, was read in their published wheels.
"""

import pytest

from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Facts
from envdoctor.model.workload import Workload
from envdoctor.plan.memory.run_facts import with_workload

HERE = Evidence("test")


@pytest.mark.parametrize(
    ("framework", "version", "asked"),
    [
        (
            "verl",
            "0.4.1",
            "8",
        ),  # vllm_rollout_spmd takes n of the configuration into SamplingParams
        ("verl", "0.5.0", None),  # ray_trainer repeats the batch before it is generated
        ("verl", None, None),
        ("trl", "0.15.2", None),
        ("trl", "0.16.0", "8"),  # grpo_trainer sends n=num_generations
        ("openrlhf", "0.6.0", None),
        ("easyr1", None, "8"),
    ],
)
def test_n_is_the_engines_only_where_the_framework_leaves_it_to_it(framework, version, asked):
    run = {"framework": framework, "framework.version": version, "rollout.n": 8}
    workload = Workload(
        {name: Known(value, HERE) for name, value in run.items() if value is not None}
    )
    assert with_workload(Facts(), workload).value("request").setting("n") == asked
