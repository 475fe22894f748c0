"""What DeepSpeed keeps where, by its version and by how many passes a step has (its source at the
tags that state.py names).
"""

import pytest

from envdoctor.matrix.loader import load_matrix
from envdoctor.matrix.model_sizes import ModelSize, size_of
from envdoctor.model.facts import Distribution
from envdoctor.plan.memory.estimate import make_plan, sizes_of

from .conftest import facts, workload
from .test_estimate import plan_of

P = 10**10
SIZE = {"actor": ModelSize("ten", P, P, "stated")}
RUN = {
    "framework": "deepspeed",
    "algorithm": "sft",
    "nodes": 1,
    "gpus_per_node": 4,
    "actor__strategy": "zero2",
    "actor__model": "ten",
    "actor__param_dtype": "bf16",
    "actor__offload_optimizer": True,
    "actor__pin_offload": False,
    "actor__lora_rank": 0,
}


def bounds(pool, name, version="0.13.2", **more):
    """Return low and high of the terms of a name, in bytes for each parameter."""
    machine = facts(
        distributions={"deepspeed": Distribution("deepspeed", version)} if version else {}
    )
    terms = make_plan(workload(**{**RUN, **more}), SIZE, machine).pool(pool).term(name)
    return sum(term.low for term in terms) / P, sum(term.high for term in terms) / P


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_state_on_the_host_is_16_bytes_whatever_gradients_are_summed_in(dtype):
    assert bounds("host", "state on the host", actor__grad_dtype=dtype) == (16, 16)


@pytest.mark.parametrize(("dtype", "low"), [("fp32", 20), ("bf16", 18)])
def test_zero_3_sums_in_the_type_that_is_asked_for(dtype, low):
    found = bounds(
        "host",
        "state on the host",
        actor__strategy="zero3",
        actor__offload_params=False,
        actor__grad_dtype=dtype,
    )
    assert found[0] == low <= found[1]


@pytest.mark.parametrize(("mini", "expected"), [(8, (0, 0)), (16, (2, 2)), (None, (0, 2))])
def test_sums_lie_on_the_host_where_a_step_has_several_passes(mini, expected):
    more = {} if mini is None else {"actor__mini_batch": mini}
    assert bounds("host", "gradients between passes", actor__micro_batch=2, **more) == expected


@pytest.mark.parametrize(
    ("version", "host", "gpu"),
    [
        ("0.14.0", (0, 0), (0, 0)),
        ("0.14.1", (0, 0), (1, 1)),
        ("0.16.9", (0, 0), (1, 1)),
        ("0.17.0", (2, 2), (0, 0)),
        (None, (0, 2), (0, 1)),
    ],
)
def test_copies_of_the_step_by_version(version, host, gpu):
    assert bounds("host", "copy of the weights", version) == host
    assert bounds("gpu", "copy of the master weights", version) == gpu  # 4 bytes over four GPUs


@pytest.mark.parametrize(
    "name", ["meta-llama/Llama-4-Scout-17B-16E", "our/Moe-8x7B", "Qwen1.5-MoE-A2.7B"]
)
def test_a_name_that_may_tell_active_parameters_only_is_no_size(name):
    assert size_of(name) is None


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("gemma-2-2b", 2.61e9),
        ("Qwen2.5-VL-3B", 3.75e9),
        ("gemma-7b", 8.54e9),
        ("Qwen3-30B-A3B", 30.5e9),
    ],
)
def test_a_size_from_a_name_holds_the_known_ones(name, parameters):
    size = size_of(name)
    assert size.rough
    assert size.low <= parameters <= size.high


@pytest.mark.parametrize("framework", ["trl", "llamafactory", "transformers"])
@pytest.mark.parametrize(
    ("dtype", "rank", "low", "high"),
    [
        # https://huggingface.co/docs/transformers/model_memory_anatomy: 6 for weights in mixed
        # precision, 4 for gradients, 8 for AdamW
        ("fp32", 0, 16, 18),
        ("bf16", 0, 8, 8),  # loaded in bf16, so are gradients and moments
        (None, 0, 8, 18),
        ("bf16", 8, 2, 3.3),  # adapters; without dimensions they count a tenth at most
        (None, None, 2, 18),
    ],
)
def test_the_trainer_without_deepspeed_has_all_on_each_gpu(framework, dtype, rank, low, high):
    run = {
        "framework": framework,
        "algorithm": "sft",
        "nodes": 1,
        "gpus_per_node": 4,
        "actor__strategy": "ddp",
        "actor__model": "ten",
        "actor__optimizer": "adamw",
    }
    stated = {"actor__param_dtype": dtype, "actor__lora_rank": rank}
    known = {name: value for name, value in stated.items() if value is not None}
    pool = make_plan(workload(**run, **known), SIZE, facts()).pool("gpu")
    held = [
        term
        for name in ("weights", "gradients", "optimizer")
        for term in pool.term(name)
        if "update" in term.phases
    ]
    assert sum(term.low for term in held) / P == pytest.approx(low)
    assert sum(term.high for term in held) / P == pytest.approx(high, abs=0.15)


def terms_of(**values):
    """Return the actor's terms in training and generation by pool and name."""
    base = {
        "framework": "megatron",
        "algorithm": "sft",
        "nodes": 1,
        "gpus_per_node": 8,
        "colocated": True,
        "actor__model": "Qwen3-30B-A3B",
        "actor__strategy": "megatron",
        "actor__optimizer": "adamw",
        "actor__offload_params": False,
        "actor__offload_optimizer": False,
        "actor__lora_rank": 0,
        **values,
    }
    run = workload(**base)
    matrix = load_matrix()
    plan = make_plan(run, sizes_of(run, matrix), facts(memory__total=2 << 40), matrix)
    return {
        (pool.name, term.name): term
        for pool in plan.pools
        for term in pool.terms
        if term.role == "actor" and {"update", "rollout"} & set(term.phases)
    }


def test_experts_are_cut_by_their_own_parallelism():
    # 128 experts of 3 x 2048 x 768 in each of 48 layers; the rest is cut by tensor parallelism.
    experts = 48 * 128 * 3 * 2048 * 768
    whole = 30_532_122_624
    cut = terms_of(actor__tensor_parallel=4, actor__expert_parallel=8)["gpu", "weights"]
    assert cut.low == pytest.approx(2 * (experts / 8 + (whole - experts) / 4), rel=1e-6)
    together = terms_of(actor__tensor_parallel=4)["gpu", "weights"]
    assert together.low == pytest.approx(2 * whole / 4, rel=1e-6)


def test_the_optimizer_on_the_host_is_not_on_the_gpu():
    away = terms_of(actor__host_optimizer=True)
    assert ("gpu", "optimizer") not in away
    assert away["host", "optimizer on the host"].low == pytest.approx(12 * 30_532_122_624, rel=1e-6)
    assert ("host", "optimizer on the host") not in terms_of()


def test_quantised_weights_below_adapters_keep_their_embedding():
    fields = {
        "framework": "trl",
        "actor__model": "Llama-3-8B",
        "actor__strategy": "ddp",
        "actor__param_dtype": "bf16",
        "actor__lora_rank": 16,
    }
    plain = terms_of(**fields)["gpu", "weights"]
    packed = terms_of(**fields, actor__quantization="int4")["gpu", "weights"]
    embedding = 2 * 128256 * 4096
    expected = 0.5 * (8_030_261_248 - embedding) + 2 * embedding
    assert packed.low == pytest.approx(expected, rel=1e-3)
    assert packed.high < plain.low
    # Without adapters nothing that is packed can be trained.
    full = terms_of(**{**fields, "actor__lora_rank": 0}, actor__quantization="int4")
    assert full["gpu", "weights"].low == plain.low


def test_a_step_inside_of_the_backward_pass_keeps_one_layers_gradients():
    fields = {"framework": "torchtune", "actor__model": "Llama-3-8B", "actor__strategy": "ddp"}
    assert terms_of(**fields)["gpu", "gradients"].low > 0
    assert terms_of(**fields, actor__fused_backward=True)["gpu", "gradients"].low == 0


def test_a_loss_in_pieces_holds_fewer_logits():
    fields = {
        "framework": "torchtune",
        "actor__model": "Llama-3-8B",
        "actor__strategy": "ddp",
        "actor__micro_batch": 2,
        "data__max_length": 4096,
    }
    whole = terms_of(**fields)["gpu", "logits"]
    assert terms_of(**fields, actor__loss_chunks=8)["gpu", "logits"].high < whole.high / 3


def test_texts_that_nobody_cuts_are_as_long_as_the_model_takes():
    term = terms_of(
        framework="trl", actor__model="Llama-3.1-8B", actor__strategy="ddp", actor__micro_batch=1
    )["gpu", "activations"]
    assert term.low == 0
    assert "up to 131072 tokens" in term.formula


def test_the_optimizer_is_spread_over_all_gpus_however_experts_are_cut():
    # Eight GPUs, each with other experts: 12 bytes of every parameter lie on one of them.
    for tensor, experts in ((1, 1), (2, 8), (4, 8)):
        fields = {"actor__tensor_parallel": tensor, "actor__expert_parallel": experts}
        optimizer = terms_of(**fields)["gpu", "optimizer"]
        assert optimizer.low == pytest.approx(12 * 30_532_122_624 / 8, rel=1e-6)
        assert optimizer.high >= optimizer.low
    alone = terms_of(actor__tensor_parallel=2, actor__shard_ranks=2)["gpu", "optimizer"]
    assert alone.low == pytest.approx(12 * 30_532_122_624 / 2, rel=1e-6)


def test_a_frozen_tower_of_images_has_no_gradients_and_no_moments(matrix):
    def optimizer(frozen):
        changes = {} if frozen is None else {"actor__frozen_vision": frozen}
        run = plan_of(matrix, actor__model="Qwen/Qwen2.5-VL-7B-Instruct", **changes)
        return next(
            (term.low, term.high)
            for term in run.pool("gpu").terms
            if term.name == "optimizer" and term.role == "actor"
        )

    trained, frozen, unknown = optimizer(False), optimizer(True), optimizer(None)
    assert frozen[0] < trained[0]
    assert frozen[1] < trained[1]
    assert unknown == (frozen[0], trained[1])


def test_logits_of_a_fused_head_are_of_one_piece(matrix):
    def logits(**changes):
        changes = {"actor__micro_batch": 8, **changes}
        terms = plan_of(matrix, **changes).pool("gpu").terms
        return next(term.high for term in terms if term.name == "logits")

    assert logits(actor__loss_piece=512) == pytest.approx(512 * 152_064 * 24, rel=0.01)
    assert logits(actor__loss_piece=512) < logits() / 10
    # However many texts are asked for probabilities at once, they go piece by piece.
    assert logits(actor__loss_piece=512, actor__scored_batch=64) == logits(actor__loss_piece=512)


def test_what_a_reward_model_judges_at_once_counts(matrix):
    def activations(**changes):
        run = plan_of(matrix, reward__model="Qwen2.5-7B", reward__present=True, **changes)
        return next(t.high for t in run.pool("gpu").terms if t.name == "activations")

    few, many = (activations(reward__scored_batch=count) for count in (1, 64))
    assert few == activations() < many


@pytest.mark.parametrize(
    ("kept", "update", "rollout"),
    [(True, (2, 4), (0, 4)), (False, (0, 0), (0, 0)), (None, (0, 0), (0, 0))],
)
def test_weights_stay_gathered_until_the_backward_pass(kept, update, rollout):
    """Of torch 2.13 on four processes of gloo (tensors that live, as a share of the parameters):
    with SHARD_GRAD_OP and with reshard_after_forward=False 1.0 more after a forward pass, none
    after the backward pass, and 1.0 that stays after a pass without gradients; with FULL_SHARD and
    NO_SHARD none.
    """
    more = {} if kept is None else {"actor__keeps_gathered": kept}
    run = workload(**{**RUN, "actor__strategy": "fsdp2", "actor__param_dtype": "fp32", **more})
    pool = make_plan(run, SIZE, facts()).pool("gpu")
    terms = pool.term("gathered weights")
    for phase, expected in (("update", update), ("rollout", rollout)):
        held = [term for term in terms if phase in term.phases]
        assert (sum(one.low for one in held) / P, sum(one.high for one in held) / P) == expected
