"""The five situations that this model was made for: what is named, which lever is first, and what
popular advice does not do.
"""

import pytest

from envdoctor.errors import InputError
from envdoctor.model.sizes import GIB

A100 = "gpu=A100-SXM4-80GB:8"


def codes(result):
    return {finding.code for finding in result.findings}


def levers(result, pool="host"):
    return [lever for lever in result.levers if lever.pool == pool]


def host(result):
    return result.plan.pool("host")


# ----------------------------------------------------------------------------------
# hkust-nlp/simpleRL-reason#84: dies at the third generation

SIMPLERL = ("simplerl_84.sh", ["memory=1TB", A100])


def test_simplerl_names_the_swap_space_that_nobody_set(planned):
    result, code = planned(*SIMPLERL)
    finding = next(finding for finding in result.findings if finding.code == "ED604")
    assert "448 GiB" in finding.message  # 8 GPUs x 28 layers x 2 GiB
    assert any("default of simplerl" in str(evidence) for evidence in finding.evidence)
    assert host(result).verdict == "tight"
    assert (
        next(entry for entry in result.findings if entry.code == "ED601").caused_by == finding.key
    )
    assert code == 0  # a warning: that it dies is not certain, and its growth is not explained
    assert any("not explained" in note for note in result.plan.notes)


def test_simplerl_first_lever_is_swap_space_in_its_own_words(planned):
    result, _ = planned(*SIMPLERL)
    first, second = levers(result)[:2]
    assert first.text == "actor_rollout_ref.rollout.swap_space=4"
    assert first.verdict == "fits"
    assert first.after[1] < 300 * GIB
    # What the maintainer advised helps too, and costs memory of the GPU.
    assert second.text == "actor_rollout_ref.rollout.free_cache_engine=False"
    assert "GPU" in second.price
    changed, _ = planned(*SIMPLERL, changes=[second.text])
    assert (
        changed.plan.pool("gpu").bounds("update")[1] > result.plan.pool("gpu").bounds("update")[1]
    )


@pytest.mark.parametrize(
    "advice",
    [
        "actor_rollout_ref.rollout.micro_rollout_batch_size=256",
        "actor_rollout_ref.rollout.gpu_memory_utilization=0.5",
    ],
)
def test_simplerl_popular_advice_changes_nothing_on_the_host(planned, advice):
    result, _ = planned(*SIMPLERL, changes=[advice])
    before = result.before.pool("host")
    assert (before.low, before.high) == (host(result).low, host(result).high)


# ---------------------------------------------------------------------------------- OpenRLHF#187,
# #171: two 13B models with Adam on the CPU


OPENRLHF = "openrlhf==0.1.10"
# One DeepSpeed of that time: it keeps no bf16 copy of the weights on the host.
OPENRLHF_MACHINE = [A100, "deepspeed==0.13.2"]


@pytest.mark.parametrize("memory", ["468.75GiB", "500GB"])
def test_openrlhf_13b_does_not_fit(planned, memory):
    result, code = planned(
        "openrlhf_187.sh", [f"memory={memory}", *OPENRLHF_MACHINE], framework=OPENRLHF
    )
    assert host(result).verdict == "does not fit"
    assert code == 1
    state = {term.role: term for term in host(result).term("state on the host")}
    assert round(state["actor"].low / GIB, 1) == 197.7
    assert (
        state["critic"].low < state["actor"].low < state["critic"].high
    )  # the reward model is known by its name only
    sums = {term.role: term for term in host(result).term("gradients between passes")}
    assert round(sums["actor"].low / GIB, 1) == 24.7  # 128 samples over 4 GPUs in passes of 8: four
    assert not host(result).term("copy of the weights")
    first = levers(result)[0]
    assert first.text == (
        "--actor_num_nodes=2 --actor_num_gpus_per_node=2 --critic_num_nodes=2 "
        "--critic_num_gpus_per_node=1"
    )
    assert first.verdict == "fits"


def test_openrlhf_13b_fits_the_machine_beneath_the_container(planned):
    result, _ = planned("openrlhf_187.sh", ["memory=1TB", *OPENRLHF_MACHINE], framework=OPENRLHF)
    assert "script" in host(result).limit.reason  # its own -m 500g
    assert host(result).high < 931 * 0.95 * GIB


@pytest.mark.parametrize("version", ["0.1.1", "0.1.10", "0.6.0", "0.10.2"])
def test_openrlhf_gradients_in_bf16_change_nothing_on_the_host_with_zero_2(planned, version):
    """DeepSpeed's gradients on the host have the type of the master weights, whatever
    --grad_accum_dtype says.
    """
    machine = ["memory=468.75GiB", *OPENRLHF_MACHINE]
    result, _ = planned(
        "openrlhf_187.sh",
        machine,
        ["actor.grad_dtype=bf16", "critic.grad_dtype=bf16"],
        f"openrlhf=={version}",
    )
    before = result.before.pool("host")
    assert (before.low, before.high) == (host(result).low, host(result).high)
    assert not [lever for lever in result.levers if "grad_accum_dtype" in lever.text]
    assert any(
        "grad_accum_dtype" in note and "nothing on the host" in note for note in result.plan.notes
    )


def test_openrlhf_gradients_in_bf16_are_a_lever_of_zero_3_where_the_version_has_the_key(planned):
    texts = {}
    for version in ("0.1.1", "0.1.5", "0.5.4", "0.10.2"):
        result, _ = planned(
            "openrlhf_187.sh",
            ["memory=500GB", *OPENRLHF_MACHINE],
            ["actor.strategy=zero3", "critic.strategy=zero3"],
            f"openrlhf=={version}",
        )
        texts[version] = [lever.text for lever in result.levers if "grad_accum_dtype" in lever.text]
    # Before 0.1.5 there is no such option; from 0.5.4 on DeepSpeed takes bf16 unless it is told
    # otherwise.
    assert texts == {"0.1.1": [], "0.1.5": ["--grad_accum_dtype=bf16"], "0.5.4": [], "0.10.2": []}


@pytest.mark.parametrize(
    "advice", ["--zero_stage=3", "--micro_train_batch_size=1", "actor.gradient_checkpointing=false"]
)
def test_openrlhf_levers_of_the_gpu_do_not_lower_the_host(planned, advice):
    result, _ = planned(
        "openrlhf_187.sh", ["memory=500GB", *OPENRLHF_MACHINE], changes=[advice], framework=OPENRLHF
    )
    before = result.before.pool("host")
    assert host(result).low >= before.low
    assert host(result).high >= before.high


# ---------------------------------------------------------------------------------- EasyR1#50: vllm
# 0.7.3, n > 1, offload


def test_easyr1_50_names_the_leak_that_no_arithmetic_covers(planned):
    result, _ = planned("easyr1_50_config.sh", ["memory=503.52GiB", "gpu=H100 80GB:8"])
    assert [finding.row for finding in result.findings if finding.row] == ["vllm-0.7-host-leak"]
    assert result.findings[0].row  # before what an arithmetic that leaves it out has to say
    assert host(result).verdict == "tight"


def test_easyr1_50_offload_off_lowers_the_base_and_keeps_the_leak(planned):
    result, _ = planned(
        "easyr1_50_config.sh",
        ["memory=503.52GiB", "gpu=H100 80GB:8"],
        changes=["worker.actor.offload.offload_params=false"],
    )
    assert host(result).high < result.before.pool("host").high
    assert "vllm-0.7-host-leak" in {finding.row for finding in result.findings}


# ---------------------------------------------------------------------------------- EasyR1#261:
# prompt 22000, offload, images

# The thread does not say how much memory the node has: at any size, these are the terms and the
# levers.
EASYR1 = ("easyr1_261_config.sh", ["memory=400GiB", "gpu=H100 80GB:8", "vllm==0.8.3"])


def test_easyr1_261_is_host_memory_with_the_offload_switches_as_levers(planned):
    result, _ = planned(*EASYR1)
    assert "ED601" in codes(result)
    assert levers(result)[0].text == "worker.actor.offload.offload_optimizer=False"
    assert levers(result)[0].verdict == "fits"
    assert {"images", "state on the host", "engine's weights, asleep"} <= {
        term.name for term in host(result).terms
    }


def test_easyr1_261_popular_advice_does_not_help_the_host(planned):
    result, _ = planned(*EASYR1, changes=["worker.rollout.gpu_memory_utilization=0.4"])
    assert host(result).high == result.before.pool("host").high
    result, _ = planned(*EASYR1, changes=["worker.actor.fsdp.enable_cpu_offload=true"])
    assert host(result).high > result.before.pool("host").high
    with pytest.raises(InputError, match=r"no key 'torch\.cuda\.empty_cache'"):
        planned(*EASYR1, changes=["torch.cuda.empty_cache=true"])


# ---------------------------------------------------------------------------------- TinyZero#58,
# #61


def test_tinyzero_58_object_store_is_named_against_dev_shm_and_no_cause_is_claimed(planned):
    result, code = planned(
        "tinyzero_58.sh",
        ["memory=500GiB", "gpu=A100-SXM4-80GB:4", "shm=32GiB"],
        framework="tinyzero",
    )
    assert code == 1
    # ED607: the "export a.b.c=0.6" of the article, which the shell refuses.
    assert [finding.code for finding in result.findings if finding.severity == "error"] == [
        "ED605",
        "ED607",
    ]
    assert "gpu_memory_utilization" in next(
        finding.message for finding in result.findings if finding.code == "ED607"
    )
    result, _ = planned(
        "tinyzero_58.sh",
        ["memory=500GiB", "gpu=A100-SXM4-80GB:4", "shm=251GiB"],
        framework="tinyzero",
    )
    assert [finding.code for finding in result.findings if finding.severity == "error"] == ["ED607"]


def test_tinyzero_58_without_the_machine_is_not_judged(planned):
    result, _ = planned("tinyzero_58.sh", framework="tinyzero")
    assert "script" in host(result).limit.reason  # what sbatch asks for
    assert result.plan.pool("gpu").verdict == "cannot tell"
    assert result.plan.verdict == "cannot tell"


def test_tinyzero_58_article_is_refused_or_makes_it_worse(planned):
    machine = ["memory=500GiB", "gpu=A100-SXM4-80GB:4", "shm=55GiB"]
    key = "actor_rollout_ref.rollout.gpu_memory_utilization"
    with pytest.raises(InputError, match="not a valid identifier"):
        planned("tinyzero_58.sh", machine, changes=[f"export {key}=0.6"], framework="tinyzero")
    result, _ = planned("tinyzero_58.sh", machine, changes=[f"{key}=0.6"], framework="tinyzero")
    assert (
        result.plan.pool("gpu").bounds("rollout")[0]
        > result.before.pool("gpu").bounds("rollout")[0]
    )
    result, code = planned(
        "tinyzero_58.sh", machine, changes=["ray.object_store=64424509440"], framework="tinyzero"
    )
    assert code == 1
    assert (
        "Ray refuses to start"
        in next(finding for finding in result.findings if finding.code == "ED605").message
    )


def test_tinyzero_61_cublas_of_an_h20_is_cured_by_its_pin_and_no_matter_on_an_a100(planned):
    stack = [
        "torch==2.4.0",
        "vllm==0.6.3",
        "nvidia-cublas-cu12==12.1.3.1",
        "memory=500GiB",
        "shm=251GiB",
    ]
    result, _ = planned("tinyzero_58.sh", [*stack, "gpu=H20:8"], framework="tinyzero")
    rows = {finding.row: finding for finding in result.findings if finding.row}
    assert "cublas-12.1-sigfpe-h20" in rows
    assert any(
        "nvidia-cublas-cu12" in str(command)
        for remedy in rows["cublas-12.1-sigfpe-h20"].remedies
        for command in remedy.commands
    )
    result, _ = planned("tinyzero_58.sh", [*stack, "gpu=A100-SXM4-80GB:4"], framework="tinyzero")
    assert "cublas-12.1-sigfpe-h20" not in {finding.row for finding in result.findings}
