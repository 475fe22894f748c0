"""Verdicts, bounds and phases: what may be claimed from what is known."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.matrix.model_sizes import ModelSize, size_of
from envdoctor.model.facts import Facts, Gpu
from envdoctor.model.memory_plan import PHASES, Limit, MemoryTerm, Pool
from envdoctor.model.sizes import GIB
from envdoctor.plan.memory.estimate import make_plan, sizes_of
from envdoctor.plan.memory.pinned import rounded, rounded_shards

from .conftest import facts, workload


def pool(low, high, usable=100, missing=()):
    limit = None if usable is None else Limit(usable, usable, "test")
    return Pool("host", (MemoryTerm("x", low, high, "", "", PHASES),), limit, "", missing)


@pytest.mark.parametrize(
    ("low", "high", "usable", "missing", "verdict"),
    [
        (10, 20, 100, (), "fits"),
        (10, 100, 100, (), "fits"),
        (101, 500, 100, (), "does not fit"),
        (101, 500, 100, ("a size",), "does not fit"),  # what is missing only adds
        (60, 120, 100, (), "tight"),
        (10, 1000, 100, (), "tight"),  # however far the bounds lie apart
        (10, 20, 100, ("a size",), "cannot tell"),
        (10, 20, None, (), "cannot tell"),  # an unknown limit is not "unlimited"
    ],
)
def test_verdict(low, high, usable, missing, verdict):
    assert pool(low, high, usable, missing).verdict == verdict


def test_the_share_of_the_range_that_does_not_fit():
    assert pool(60, 120).share_above == pytest.approx(1 / 3)
    assert (pool(10, 90).share_above, pool(110, 200).share_above) == (0, 1)
    assert (pool(100, 100).share_above, pool(101, 101).share_above) == (0, 1)
    assert pool(10, 20, None).share_above is None


def test_phases_are_not_added_up():
    terms = (
        MemoryTerm("a", 10, 10, "", "", ("load",)),
        MemoryTerm("b", 7, 30, "", "", ("update",)),
        MemoryTerm("c", 1, 1, "", "", PHASES),
    )
    held = Pool("host", terms)
    assert (held.low, held.high, held.peak, held.floor) == (11, 31, "update", "load")


BASE = {
    "framework": "verl",
    "nodes": 1,
    "gpus_per_node": 8,
    "colocated": True,
    "actor__model": "Qwen2.5-7B",
    "actor__strategy": "fsdp",
    "actor__param_dtype": "fp32",
    "actor__optimizer": "adamw",
    "actor__offload_params": False,
    "actor__offload_optimizer": False,
    "actor__gradient_checkpointing": True,
    "actor__micro_batch": 2,
    "actor__padding_free": False,
    "ref__present": True,
    "ref__strategy": "fsdp",
    "ref__cpu_offload": True,
    "rollout__engine": "vllm",
    "rollout__v1": True,
    "rollout__tensor_parallel": 2,
    "rollout__gpu_memory_utilization": 0.5,
    "rollout__utilization_of": "total",
    "rollout__sleep_level": 1,
    "rollout__n": 4,
    "data__train_batch_size": 256,
    "data__max_prompt_length": 1024,
    "data__max_response_length": 2048,
    "checkpoint__save_freq": 0,
}
MACHINE = facts(memory__total=1000 * GIB, gpus=(Gpu("H100", memory_total=80 * GIB),) * 8)


def plan_of(matrix, machine=MACHINE, **changes):
    run = workload(**{**BASE, **changes})
    return make_plan(run, sizes_of(run, matrix), machine, matrix)


def test_fsdp_state_is_sixteen_bytes_spread_over_all_ranks(matrix):
    terms = {
        term.name: term
        for term in plan_of(matrix).pool("gpu").terms
        if term.role == "actor" and "update" in term.phases
    }
    state = sum(terms[name].high for name in ("weights", "gradients", "optimizer"))
    assert state == pytest.approx(16 * 7_615_616_512 / 8, rel=1e-6)
    for name in ("weights", "optimizer"):
        assert terms[name].low == terms[name].high


def test_what_a_backward_pass_begins_and_ends_with_is_not_surely_there_at_once(matrix):
    """Gradients of a step come while activations go; the larger of both counts for sure. All of it
    may be there where gradients of an earlier pass are kept.
    """
    for micro, larger in ((1, "gradients"), (64, "activations")):
        plan = plan_of(matrix, actor__micro_batch=micro, actor__padding_free=False)
        terms = {
            term.name: term
            for term in plan.pool("gpu").terms
            if term.role == "actor" and "update" in term.phases
        }
        pair = {name: terms[name].low for name in ("gradients", "activations")}
        assert [name for name, low in pair.items() if low] == [larger]
        assert all(terms[name].high for name in pair)


def test_texts_that_are_packed_fill_half_for_sure(matrix):
    lows = []
    for way in ({}, {"actor__packed": True}, {"actor__filled": True}):
        plan = plan_of(matrix, actor__micro_batch=64, **{"actor__padding_free": True, **way})
        (low,) = (
            term.low
            for term in plan.pool("gpu").terms
            if (term.role, term.name) == ("actor", "activations")
        )
        lows.append(low)
    nothing, half, whole = lows
    assert nothing == 0 < whole
    assert half == pytest.approx(whole / 2, rel=0.01)


def test_offload_moves_state_to_the_host_between_phases_only(matrix):
    plain, offloaded = (
        plan_of(matrix),
        plan_of(matrix, actor__offload_params=True, actor__offload_optimizer=True),
    )
    gpu, host = offloaded.pool("gpu"), offloaded.pool("host")
    assert gpu.bounds("rollout")[1] < plain.pool("gpu").bounds("rollout")[1]
    assert gpu.bounds("update") == plain.pool("gpu").bounds("update")
    state = host.term("state on the host")
    assert max(term.low for term in state) == pytest.approx(12 * 7_615_616_512, rel=1e-6)
    assert max(term.high for term in state) / max(term.low for term in state) == pytest.approx(
        1.27, abs=0.005
    )


def test_a_model_that_nobody_knows_is_no_upper_bound(matrix):
    plan = plan_of(matrix, actor__model="our-own-model")
    assert plan.pool("host").verdict == "cannot tell"
    assert "our-own-model" in plan.pool("host").missing[0]


def test_a_size_from_the_name_is_said_to_be_rough(matrix):
    plan = plan_of(matrix, actor__model="/models/our-7B")
    assert "rough" in plan.notes[0]
    # Dimensions are the largest that models of that size have: upper bounds alone.
    terms = {term.name: term for term in plan.pool("gpu").terms if term.role == "actor"}
    assert terms["activations"].low == 0 < terms["activations"].high
    assert plan.pool("gpu").verdict != "does not fit"


def test_without_facts_no_limit_is_known(matrix):
    assert {pool.verdict for pool in plan_of(matrix, Facts()).pools} == {"cannot tell"}


def test_ray_monitor_counts_unless_it_is_off(matrix):
    assert plan_of(matrix).pool("host").limit.usable == int(0.95 * 1000 * GIB)
    assert (
        plan_of(matrix, variables={"RAY_memory_monitor_refresh_ms": "0"}).pool("host").limit.usable
        == 1000 * GIB
    )
    assert plan_of(matrix, variables={"RAY_memory_usage_threshold": "0.9"}).pool(
        "host"
    ).limit.usable == int(0.9 * 1000 * GIB)


def test_the_smallest_limit_counts(matrix):
    machine = facts(
        memory__total=1000 * GIB, memory__limit=300 * GIB, memory__scheduler_limit=200 * GIB
    )
    assert plan_of(matrix, machine).pool("host").limit.size == 200 * GIB
    assert (
        plan_of(matrix, machine, container__memory=100 * GIB).pool("host").limit.size == 100 * GIB
    )


def test_host_state_of_several_nodes_is_shared(matrix):
    one, two = (
        plan_of(matrix, nodes=nodes, actor__offload_params=True, actor__offload_optimizer=True)
        for nodes in (1, 2)
    )
    low = [
        max(term.low for term in plan.pool("host").term("state on the host")) for plan in (one, two)
    ]
    assert low[0] == pytest.approx(2 * low[1], rel=1e-6)


def test_config_json_counts_before_the_name(matrix):
    config = {
        "num_hidden_layers": 28,
        "hidden_size": 3584,
        "vocab_size": 152064,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
    }
    config.update(
        {"intermediate_size": 18944, "tie_word_embeddings": False, "torch_dtype": "bfloat16"}
    )
    found = size_of("/models/mine-3B", matrix, config)
    assert found.low < 7_615_616_512 < found.high
    assert found.cache_values == 28 * 2 * 4 * 128
    exact = size_of(
        "/models/mine-3B", matrix, config, {"metadata": {"total_size": 2 * 7_615_616_512}}
    )
    assert exact.low == exact.high == 7_615_616_512


@pytest.mark.parametrize(
    ("config", "longest"),
    [
        ({"max_position_embeddings": 4096}, 4096),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 4}}, 16384),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "dynamic", "factor": 2}}, 8192),
        (
            {
                "max_position_embeddings": 32768,
                "rope_scaling": {
                    "rope_type": "yarn",
                    "factor": 4.0,
                    "original_max_position_embeddings": 32768,
                },
            },
            131072,
        ),
        (
            {
                "max_position_embeddings": 131072,
                "rope_parameters": {
                    "rope_type": "llama3",
                    "factor": 8.0,
                    "original_max_position_embeddings": 8192,
                },
            },
            131072,
        ),
        ({"max_position_embeddings": 8192, "model_max_length": 131072}, 131072),
        ({"n_positions": 1024}, 0),  # vllm takes 1,024 tokens, and SGLang 2,048
        ({"max_position_embeddings": 8192, "rope_parameters": {"full": {"factor": 8}}}, 0),
        ({"max_position_embeddings": 8192, "rope_scaling": {"factor": "auto"}}, 0),
        ({}, 0),
    ],
)
def test_the_longest_sequence_is_what_the_most_lenient_engine_derives(matrix, config, longest):
    """Figures of their own functions, run on 2026-11-28: of 62 releases of vllm from 0.2.0 to
    0.13.0, of scaled positions 60 to 0.11.2, and of 151 of SGLang from 0.1.3 to 0.5.23; but llama3,
    which vllm before 0.5.3.post1 and SGLang before 0.1.24 multiplied.
    """
    shape = {
        "num_hidden_layers": 4,
        "hidden_size": 64,
        "vocab_size": 100,
        "num_attention_heads": 4,
        "intermediate_size": 128,
    }
    size = size_of("/models/mine", matrix, {**shape, **config})
    assert size is not None
    assert size.longest == longest


def test_only_a_model_of_its_own_name_is_known_to_go_so_far(matrix):
    sizes = [size_of(name, matrix) for name in ("Qwen/Qwen2.5-7B", "acme/Qwen2.5-7B-Long")]
    assert [size and size.longest for size in sizes] == [131072, 0]


@settings(max_examples=60)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "actor__offload_params": st.booleans(),
            "actor__offload_optimizer": st.booleans(),
            "actor__param_dtype": st.sampled_from(["fp32", "bf16"]),
            "actor__strategy": st.sampled_from(
                ["fsdp", "ddp", "zero1", "zero2", "zero3", "megatron"]
            ),
            "actor__lora_rank": st.sampled_from([0, 8, 64]),
            "actor__rank0_init": st.booleans(),
            "actor__padding_free": st.booleans(),
            "critic__present": st.booleans(),
            "critic__strategy": st.just("fsdp"),
            "rollout__v1": st.booleans(),
            "rollout__swap_space": st.sampled_from([0, 4 * GIB, 40 * GIB]),
            "rollout__free_cache_engine": st.booleans(),
            "rollout__sleep_level": st.sampled_from([0, 1, 2]),
            "data__multimodal": st.booleans(),
            "data__max_pixels": st.just(1 << 20),
            "checkpoint__save_freq": st.sampled_from([0, 10]),
            "checkpoint__gather": st.sampled_from(["sharded", "full", "full_bf16"]),
        },
    ),
    st.sets(
        st.sampled_from(
            sorted(
                name for name in BASE if not name.startswith(("actor__model", "gpus", "framework"))
            )
        ),
        max_size=6,
    ),
)
def test_knowing_less_never_narrows_the_bounds(matrix, changes, forgotten):
    """What is left out may be anything: the bounds hold those of the run that says it."""
    whole = {**BASE, "ref__model": "Qwen2.5-7B", **changes}
    known = make_plan(workload(**whole), sizes_of(workload(**whole), matrix), MACHINE, matrix)
    for plan in (
        known,
        make_plan(workload(**whole), sizes_of(workload(**whole), matrix), None, matrix),
    ):
        for entry in plan.pools:
            assert all(0 <= term.low <= term.high for term in entry.terms), [
                term for term in entry.terms if term.low > term.high
            ]
    less = {
        name: value
        for name, value in whole.items()
        if name not in forgotten and name not in ("actor__strategy", "colocated")
    }
    less.update({name: whole[name] for name in ("actor__strategy", "colocated")})
    guessed = make_plan(workload(**less), sizes_of(workload(**less), matrix), MACHINE, matrix)
    assert not (
        known.pool("host").verdict == "fits" and guessed.pool("host").verdict == "does not fit"
    )


@given(st.integers(1, 1 << 45))
def test_rounding_is_the_next_power_of_two(size):
    result = rounded(size)
    assert result & (result - 1) == 0
    assert size <= result < 2 * size


@given(st.integers(10**8, 10**12), st.sampled_from([1, 2, 8, 64]), st.sampled_from([2, 4]))
def test_rounded_shards_lie_between_once_and_twice(parameters, ranks, width):
    size = ModelSize(
        "x",
        parameters,
        parameters,
        "",
        layers=28,
        hidden=3584,
        intermediate=18944,
        vocabulary=15206,
        tied=False,
    )
    assert (
        parameters * width
        <= rounded_shards(size, ranks, width)
        <= 2 * (parameters * width + 4 * ranks * 30)
    )


def test_a_share_that_is_none_is_not_multiplied(matrix):
    gpu = plan_of(matrix, rollout__gpu_memory_utilization=60.0).pool("gpu")
    assert gpu.high < 80 * GIB
    assert gpu.verdict == "cannot tell"


def test_windows_of_attention_are_a_value_of_the_matrix(matrix):
    assert size_of("google/gemma-2-9b", matrix).windowed
    assert not size_of("Qwen/Qwen2.5-7B", matrix).windowed


def test_the_key_of_an_indexer_is_part_of_the_cache():
    """132 bytes for each token and layer, beside 576 values of latent attention."""
    config = {
        "num_hidden_layers": 61,
        "hidden_size": 7168,
        "vocab_size": 129280,
        "num_attention_heads": 128,
        "intermediate_size": 18432,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128,
    }
    plain, sparse = (
        size_of("x", None, {**config, **more}) for more in ({}, {"index_head_dim": 128})
    )
    assert plain.cache_values == 61 * 576
    assert (sparse.cache_values, sparse.indexed) == (61 * 576, 61 * 132)
    assert plain.latent
    assert not plain.indexed
    assert plain.attention_width == 128 * 192


def gpu_high(matrix, name, **changes):
    """Return the upper bound of a term of the GPU, in bytes."""
    return sum(term.high for term in plan_of(matrix, **changes).pool("gpu").term(name))


def test_a_pass_that_asks_for_probabilities_may_be_the_larger_one(matrix):
    lengths = {"data__max_length": 1024}
    alone = gpu_high(matrix, "logits", **lengths)
    assert gpu_high(matrix, "logits", **lengths, actor__scored_batch=2) == alone
    larger = gpu_high(matrix, "logits", **lengths, actor__scored_batch=64)
    assert larger == 64 * 1024 * 152064 * 14
    assert gpu_high(matrix, "logits", **lengths, ref__scored_tokens=64 * 1024) == larger
    absent = {"ref__scored_tokens": 64 * 1024, "ref__present": False}
    assert gpu_high(matrix, "logits", **lengths, **absent) == alone


def test_what_is_sent_to_experts_lies_once_more_for_each(matrix):
    moe = size_of("Qwen/Qwen3-30B-A3B", matrix)
    assert moe.active == 8
    run = {"actor__model": "Qwen/Qwen3-30B-A3B", "actor__gradient_checkpointing": False}
    high = gpu_high(matrix, "activations", **run, data__max_length=1000)
    attention = 12 * (moe.hidden + moe.attention_width)
    dense = 2 * 1000 * moe.layers * (attention + 8 * moe.intermediate)
    assert high - dense == 2 * 1000 * moe.layers * 6 * 8 * moe.hidden


def test_heads_that_are_together_wider_than_the_hidden_size_are_counted(matrix, tmp_path):
    wide = size_of("zai-org/GLM-4.5-Air", matrix)
    assert wide.attention_width == 96 * 128 == 3 * wide.hidden
    assert size_of("Qwen/Qwen2.5-7B", matrix).attention_width == 3584
    latent = size_of("deepseek-ai/DeepSeek-V3", matrix)
    assert latent.attention_width == 128 * (128 + 64)
    config = {
        "num_hidden_layers": 2,
        "hidden_size": 1024,
        "vocab_size": 1000,
        "num_attention_heads": 16,
        "intermediate_size": 3072,
    }
    assert size_of("x", None, {**config, "head_dim": 128}).attention_width == 2048
    assert size_of("x", None, config).attention_width == 1024


def test_an_engine_that_sleeps_keeps_some_of_the_gpu(matrix):
    name = "engine, asleep"
    assert gpu_high(matrix, name, rollout__tensor_parallel=1) == 2 * GIB
    assert gpu_high(matrix, name) == 3 * GIB
    assert gpu_high(matrix, name, rollout__sleep_level=0) == 0


def test_a_model_that_nobody_understood_leaves_no_upper_bound(matrix):
    made = plan_of(matrix, others="teacher_model=Qwen/Qwen3-32B")
    assert made.pool("host").verdict == "cannot tell"
    assert any("teacher_model=Qwen/Qwen3-32B" in text for text in made.pool("gpu").missing)


@pytest.mark.parametrize(("name", "published"), [("3B", 5.54), ("7B", 10.73)])
def test_a_model_that_speaks_has_more_than_its_name_says(name, published):
    size = size_of(f"Qwen/Qwen2.5-Omni-{name}")
    assert size.low < published * 10**9 < size.high


@pytest.mark.parametrize(
    ("framework", "kept", "width", "file"),
    [
        ("trl", "bf16", 2, 0),
        ("openrlhf", "bf16", 2, 10**10),  # releases of it load with a transformers that maps none
        ("axolotl", "fp32", 4, 0),
        ("trl", None, 4, 0),  # transformers loads fp32 where no type is stated
        ("deepspeed-chat", "fp16", 4, 0),  # which loads fp32 and has DeepSpeed make it smaller
    ],
)
def test_a_load_takes_the_type_that_it_is_told(matrix, framework, kept, width, file):
    changes = {"actor__param_dtype": kept} if kept else {}
    plan = plan_of(
        matrix, framework=framework, actor__strategy="ddp", actor__gpus_per_node=8, **changes
    )
    (loading,) = [
        term for term in plan.pool("host").terms if (term.name, term.role) == ("loading", "actor")
    ]
    assert loading.high == pytest.approx(8 * (width * 7_615_616_512 + file), rel=1e-6)


@pytest.mark.parametrize(
    ("framework", "strategy", "settings", "bytes_each"),
    [
        ("verl", "fsdp", {}, 4),  # rank 0 loads, the others get it
        ("nemo-rl", "fsdp2", {}, 4),
        ("axolotl", "fsdp2", {"actor__param_dtype": "bf16"}, 8 * 2),  # each rank by itself
        ("axolotl", "fsdp2", {"actor__rank0_init": True}, 4),
        ("axolotl", "fsdp2", {"actor__rank0_init": True, "actor__quantization": "int4"}, 8 * 4),
        ("areal", "fsdp2", {"actor__param_dtype": "bf16"}, 8 * 2),
        ("torchtune", "fsdp2", {}, 8 * 1),  # mapped; queries and keys are copied
        ("nemo-rl", "megatron", {"actor__tensor_parallel": 4}, 4 * (2 + 1)),
        ("megatron-bridge", "megatron", {"actor__pipeline_parallel": 8}, None),
    ],
)
def test_who_loads_is_the_framework_s(matrix, framework, strategy, settings, bytes_each):
    plan = plan_of(
        matrix,
        framework=framework,
        actor__strategy=strategy,
        actor__gpus_per_node=8,
        **{"actor__rank0_init": None, **settings},
    )
    (loading,) = [term for term in plan.pool("host").term("loading") if term.role == "actor"]
    if bytes_each is None:  # the fullest stage has the embedding or the head besides
        assert 4 * 2 * 7_615_616_512 < loading.high < 4 * 4 * 7_615_616_512
    else:
        assert loading.high == pytest.approx(bytes_each * 7_615_616_512, rel=1e-6)


def test_tied_embeddings_are_loaded_on_every_rank_by_verl_alone(matrix):
    """get_init_weight_context_manager is verl's; NeMo-RL's rank 0 loads whatever the model is."""
    high = {}
    for framework in ("verl", "nemo-rl"):
        plan = plan_of(
            matrix,
            framework=framework,
            actor__model="Qwen/Qwen2.5-0.5B",
            actor__strategy="fsdp",
            actor__rank0_init=None,
            actor__gpus_per_node=8,
        )
        (loading,) = [term for term in plan.pool("host").term("loading") if term.role == "actor"]
        high[framework] = loading.high
    assert high["verl"] == 8 * high["nemo-rl"]


@pytest.mark.parametrize(("rank", "least", "most"), [(0, 1, 8), (8, 0.0001, 0.1)])
def test_the_first_process_alone_writes_what_all_have(matrix, rank, least, most):
    """With adapters only these are written (peft save_pretrained)."""
    plan = plan_of(
        matrix,
        framework="axolotl",
        actor__strategy="ddp",
        actor__lora_rank=rank,
        actor__gpus_per_node=8,
        actor__param_dtype=None,
        checkpoint__save_freq=100,
    )
    (written,) = [term for term in plan.pool("host").term("checkpoint") if term.role == "actor"]
    assert least * 7_615_616_512 < written.high <= most * 7_615_616_512


def test_the_engine_s_release_is_asked_for_only_where_an_engine_may_lie(matrix):
    """GPUs of a trainer alone do not hang on it."""
    asked = {}
    for together in (True, False):
        plan = plan_of(matrix, rollout__v1=None, rollout__engines=2, colocated=together)
        for pool in plan.pools:
            asked[together, pool.name, pool.subject] = any(
                doubt.startswith("the release of vllm") for doubt in pool.doubts
            )
    assert asked[True, "gpu", ""]
    assert not asked[False, "gpu", "actor"]
    assert asked[False, "gpu", "rollout"]
    assert asked[False, "host", ""]
