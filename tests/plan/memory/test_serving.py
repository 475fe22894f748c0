"""What an engine that serves has room for. Published figures: ``scripts/validate_memory``."""

from __future__ import annotations

import shlex

import pytest

from envdoctor.app import plan
from envdoctor.matrix.model_sizes import size_of
from envdoctor.plan.memory.inputs import Inputs
from envdoctor.plan.memory.rollout_engine import cache_per_token, engine_weights
from envdoctor.sources import Sources, gather

from .conftest import workload

LLAMA = "vllm serve meta-llama/Llama-3.1-8B-Instruct"


@pytest.fixture
def served(matrix, tmp_path):
    empty = tmp_path / "facts.json"
    empty.write_text('{"schema_version": 1, "facts": {}}')

    def run(command, gpu="H100-SXM5-80GB:8"):
        facts = gather(Sources(facts=[str(empty)], assume=[f"gpu={gpu}", "memory=1TB"]))[0]
        return plan(shlex.split(command), facts, matrix)[0]

    return run


def test_a_cache_that_holds_the_length_fits(served):
    result = served(f"{LLAMA} --max-model-len 32768")
    assert result.plan.verdict == "fits"
    least, most = result.plan.cache.tokens
    assert 3e5 < least < most < 5e5


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        (f"{LLAMA} --max-model-len 600000", "does not fit"),
        (f"{LLAMA} --max-model-len 600000 --kv-cache-dtype fp8", "fits"),
        (f"{LLAMA} --max-model-len 600000 -tp 2", "fits"),
        (f"{LLAMA} --max-model-len 600000 -pp 2", "fits"),
        (f"{LLAMA} --max-model-len 600000 --num-gpu-blocks-override 9", "tight"),
        (LLAMA, "cannot tell"),
        ("vllm serve Qwen/Qwen2.5-72B-Instruct", "does not fit"),
        ("vllm serve Qwen/Qwen2.5-72B-Instruct-GPTQ", "cannot tell"),
    ],
)
def test_verdicts_of_the_cache(served, command, verdict):
    assert served(command).plan.cache.verdict == verdict


def test_without_room_the_first_lever_is_the_narrowest_that_surely_fits(served):
    result = served("vllm serve Qwen/Qwen2.5-72B-Instruct --max-model-len 16384")
    assert result.levers[0].settings == ("--tensor-parallel-size=4",)
    assert [finding.code for finding in result.findings] == ["ED603"]


def weights_of(size, **fields):
    return engine_weights(Inputs(workload(**fields), {"actor": size}), size)


def test_weights_by_how_they_are_spread_and_packed(matrix):
    size = size_of("Qwen/Qwen2.5-72B", matrix)
    whole = weights_of(size)
    for tensor, stages in ((2, 1), (1, 2), (8, 1), (4, 5)):
        low, high = weights_of(
            size, rollout__tensor_parallel=tensor, rollout__pipeline_parallel=stages
        )
        assert low == pytest.approx(whole[0] / tensor / stages, rel=1e-6)
        assert low < high < 1.5 * low
    assert weights_of(size, rollout__offload_weights=10 << 30)[0] == whole[0] - (10 << 30)
    assert weights_of(size, rollout__quantization="int4")[1] < 0.45 * whole[0]


def test_bytes_for_a_token(matrix):
    size = size_of("meta-llama/Llama-3.1-8B", matrix)
    assert cache_per_token(Inputs(workload(), {}), size) == 2 * 32 * 2 * 8 * 128
    assert cache_per_token(Inputs(workload(rollout__kv_dtype="fp8_e4m3"), {}), size) == 65536
    assert cache_per_token(Inputs(workload(rollout__tensor_parallel=16), {}), size) == 16384


def test_a_latent_cache_is_whole_on_each_gpu(matrix):
    """There is nothing in it to split by heads; an indexer's key has a type of its own."""
    size = size_of("deepseek-ai/DeepSeek-V3", matrix)
    for ways in (1, 8):
        inputs = Inputs(workload(rollout__tensor_parallel=ways), {})
        assert cache_per_token(inputs, size) == 61 * 576 * 2
    packed = Inputs(workload(rollout__kv_dtype="fp8", rollout__tensor_parallel=8), {})
    sparse = size._replace(indexed=61 * 132)
    assert cache_per_token(packed, sparse) == 61 * (576 + 132)
