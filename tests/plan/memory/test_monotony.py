"""A run that asks for more never loses a warning."""

import pytest

A100 = "gpu=A100-SXM4-80GB:8"
#: Runs, their machines, and what makes each of them need more.
SEEDS = {
    "simplerl_84.sh": (["memory=1TB", A100], "simplerl"),
    "easyr1_50.sh": (["memory=500GiB", A100], "easyr1"),
    "openrlhf_187.sh": (["memory=1TB", A100, "deepspeed==0.13.2"], None),
    "tinyzero_58.sh": (["memory=500GiB", "gpu=A100-SXM4-80GB:4"], "tinyzero"),
    "verl_lora.sh": (["memory=500GiB", A100], None),
    "trl_grpo.sh": (["memory=200GiB", A100], None),
}
NUMBERS = {
    "data.max_response_length": [1024, 4096, 16384, 32768, 131072],
    "data.max_prompt_length": [1024, 16384, 131072],
    "actor.micro_batch": [1, 8, 64],
    "rollout.n": [1, 8, 64],
}
_RANK = {"fits": 0, "cannot tell": 0, "tight": 1, "does not fit": 2}


@pytest.mark.parametrize("field", sorted(NUMBERS))
@pytest.mark.parametrize("name", sorted(SEEDS))
def test_getting_worse_takes_no_warning_away(planned, name, field):
    machine, framework = SEEDS[name]
    worst = {}
    for value in NUMBERS[field]:
        result, _ = planned(name, machine, [f"{field}={value}"], framework)
        for pool in result.plan.pools:
            where = (pool.name, pool.subject)
            assert _RANK[pool.verdict] >= worst.get(where, 0), (where, field, value)
            worst[where] = _RANK[pool.verdict]
