"""Launch settings of reports: what cannot work is said, and healthy ones are left alone."""

import pytest

from envdoctor.app import check, judge
from envdoctor.intake import parse_report
from envdoctor.model.facts import Gpu
from envdoctor.model.sizes import GIB

from .conftest import facts


def codes(matrix, **values):
    return {
        finding.code: finding
        for finding in judge(facts(**values), matrix)
        if finding.code.startswith("ED6")
    }


def gpu(total, used=None, name="NVIDIA H100 80GB HBM3"):
    return Gpu(
        name, memory_total=int(total * GIB), memory_used=None if used is None else int(used * GIB)
    )


@pytest.mark.parametrize(
    ("total", "used", "share", "found"),
    [
        (22.05, 2.28, "0.9", True),
        (22.05, 2.0, "0.9", False),
        (79.6, 72.0, "0.9", False),  # that is the engine itself, running
        (79.6, 30.0, "0.9", True),
        (79.6, None, "0.9", False),
        (79.6, 30.0, "90", False),
    ],
)
def test_utilization_against_what_is_free(matrix, total, used, share, found):
    result = codes(matrix, gpus=(gpu(total, used),), request={"gpu_memory_utilization": share})
    assert ("ED606" in result) is found


def test_utilization_that_is_advised_is_below_what_is_free(matrix):
    finding = codes(matrix, gpus=(gpu(22.05, 2.28),), request={"gpu_memory_utilization": "0.9"})[
        "ED606"
    ]
    assert "<=0.89" in finding.remedies[0].text


def test_engine_that_told_its_own_cache(matrix):
    result = codes(matrix, request={"kv_tokens": "23648", "max_model_len": "29000"})
    assert result["ED608"].severity == "error"
    assert codes(matrix, request={"kv_tokens": "29000", "max_model_len": "23648"}) == {}


def test_adam_without_offload_on_one_gpu(matrix):
    settings = {"zero_stage": "2", "model": "meta-llama/Meta-Llama-3-8B", "precision": "bf16"}
    assert codes(matrix, gpus=(gpu(79.6),), request=settings)["ED602"].severity == "warning"
    for more in (
        {"adam_offload": "true"},
        {"lora_rank": "8"},
        {"model": "Qwen/Qwen2.5-1.5B"},
        {"optimizer_offload": "True"},
    ):
        assert codes(matrix, gpus=(gpu(79.6),), request={**settings, **more}) == {}
    assert codes(matrix, gpus=(gpu(79.6),) * 8, request=settings) == {}


@pytest.mark.parametrize(
    ("model", "length", "split", "found"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "32768", "1", False),
        (
            "meta-llama/Llama-3.1-8B",
            "131072",
            "1",
            False,
        ),  # 16 GiB of cache beside 15 GiB of weights
        ("Qwen/Qwen2.5-72B-Instruct", "32768", "8", False),
        ("Qwen/Qwen2.5-32B-Instruct", "131072", "1", True),  # 61 GiB of weights, 32 GiB of cache
        ("Qwen/Qwen2.5-32B-Instruct-AWQ", "131072", "1", False),  # packed weights: not counted
        ("our-own", "131072", "1", False),
        ("google/gemma-3-27b-it", "131072", "1", False),  # most layers look at a window only
    ],
)
def test_cache_of_a_server(matrix, model, length, split, found):
    request = {
        "model": model,
        "max_model_len": length,
        "gpu_memory_utilization": "0.9",
        "tensor_parallel_size": split,
    }
    assert ("ED603" in codes(matrix, gpus=(gpu(79.6),) * 8, request=request)) is found


def test_swap_space_by_vllm_s_own_arithmetic(matrix):
    assert (
        codes(
            matrix,
            memory__total=64 * GIB,
            request={"swap_space": "16", "tensor_parallel_size": "4"},
        )["ED609"].severity
        == "error"
    )
    assert (
        codes(
            matrix, memory__total=64 * GIB, request={"swap_space": "4", "tensor_parallel_size": "4"}
        )
        == {}
    )


def test_counts_of_tokens_are_kept_and_keys_are_not():
    found = (
        parse_report(
            "vllm serve Qwen/Qwen2.5-7B --max-num-batched-tokens 8192 --api-key 123456 --hf-token "
            "777777"
        )
        .value("request")
        .settings()
    )
    assert found["max_num_batched_tokens"] == "8192"
    assert not {"api_key", "hf_token"} & set(found)


@pytest.mark.parametrize(
    ("model", "share", "split", "found"),
    [
        ("Qwen/Qwen2.5-32B-Instruct", "0.7", "1", True),  # 61 GiB of weights in 55.7
        ("Qwen/Qwen2.5-32B-Instruct", "0.8", "1", False),
        ("Qwen/Qwen2.5-32B-Instruct", "0.5", "2", False),
        ("Qwen/Qwen2.5-32B-Instruct-AWQ", "0.3", "1", False),
        ("our/32b", "0.3", "1", False),  # a size from a name alone decides nothing
        ("Qwen/Qwen2.5-32B-Instruct", "7", "1", False),
    ],
)
def test_static_share_of_sglang_that_weights_alone_exceed(matrix, model, share, split, found):
    request = {
        "model_path": model,
        "mem_fraction_static": share,
        "tensor_parallel_size": split,
        "chunked_prefill_size": "8192",
    }
    result = codes(matrix, gpus=(gpu(79.6),) * 8, request=request)
    assert ("ED610" in result) is found
    if found:
        assert result["ED610"].severity == "warning"
        assert "Raise it above 0.77" in result["ED610"].remedies[0].text


def test_static_share_is_read_from_a_pasted_command(matrix):
    text = (
        "$ python -m sglang.launch_server --model-path Qwen/Qwen2.5-32B-Instruct "
        "--mem-fraction-static 0.7\n"
    )
    parsed = parse_report(text)
    result = judge(parsed.updated({"gpus": facts(gpus=(gpu(79.6),)).get("gpus")}), matrix)
    assert "ED610" in {finding.code for finding in result}


A100 = "GPU: 8x A100-SXM4-80GB\n"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.45 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.10 GiB is free.\n"


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        (f"vllm 0.6.3\n{A100}vllm serve Qwen/Qwen2-72B-Instruct -tp 1", "warning"),
        ("vllm 0.6.3\nGPU: A100 80GB\nvllm serve Qwen/Qwen2-72B-Instruct", "warning"),
        ("sglang 0.4.6\nGPU: A100 80GB\nLLM(model='meta-llama/Llama-3.1-70B-Instruct')", "warning"),
        # a whole command: vllm takes one GPU where it is told of none
        (f"vllm 0.6.3\n{A100}vllm serve Qwen/Qwen2-72B-Instruct", "warning"),
        # nothing states over how many of the GPUs
        (f"vllm 0.6.3\n{A100}vllm serve Qwen/Qwen2-72B-Instruct ...", "advice"),
        (f"vllm 0.6.3\n{A100}model: Qwen/Qwen2-72B-Instruct", "advice"),
        (f"vllm 0.6.3\n{A100}vllm serve Qwen/Qwen2-72B-Instruct -tp 4", None),
        (f"vllm 0.6.3\n{A100}vllm serve Qwen/Qwen2-72B-Instruct-AWQ -tp 1", None),
        ("vllm 0.6.3\nGPU: RTX 4090\nvllm serve Qwen/Qwen2-72B --load-in-4bit", None),
        # four bits for each parameter are 33 GiB, eight are 67
        ("GPU: 2x RTX 4090\nlmdeploy serve api_server a/Llama-3-70B-AWQ", "warning"),
        ("GPU: 2x RTX 4090\n`FOO_A=1 lmdeploy serve api_server a/Llama-3-70B-AWQ`", "warning"),
        ("GPU: 2x RTX 4090\nlmdeploy serve api_server a/Llama-3-70B-AWQ --tp 2", None),
        ("GPU: 2x RTX 4090\nlmdeploy serve api_server a/Llama-3-70B-AWQ --tp $N", "advice"),
        ("GPU: A100 40GB\nlmdeploy serve api_server a/Llama-3-70B-AWQ", None),
        ("GPU: A100 40GB\nlmdeploy serve api_server a/Llama-3-70B-FP8", "warning"),
        ("GPU: RTX 4090\nlmdeploy serve api_server a/Llama-3-70B-GPTQ", None),  # of 2 to 8 bits
        ("vllm 0.6.3\nGPU: RTX 4090\nvllm serve Qwen/Qwen2.5-7B-Instruct", None),
        ("vllm 0.6.3\nvllm serve Qwen/Qwen2-72B-Instruct -tp 1", None),  # no GPU is known
        ("peft 0.10.0\nGPU: RTX 4090\nmodel: Qwen/Qwen2-72B-Instruct", None),  # no engine
    ],
)
def test_weights_against_the_gpus_that_hold_them(matrix, text, severity):
    found = [entry for entry in judge(parse_report(text), matrix) if entry.code == "ED617"]
    assert [entry.severity for entry in found] == ([severity] if severity else [])


def test_weights_that_are_too_large_stand_behind_the_exception(matrix, tmp_path):
    text = f"vllm 0.6.3\n{A100}vllm serve Qwen/Qwen2-72B-Instruct\n{OOM}"
    path = tmp_path / "report.txt"
    path.write_text(text)
    first = check(parse_report(text), matrix, logs=[str(path)]).findings[0]
    assert (first.code, first.severity) == ("ED617", "warning")
    assert "135 GiB" in first.message
    assert "--tensor-parallel-size 2" in str(first.remedies[0].commands[0])


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("vllm 0.8.4\nvllm serve Qwen/Qwen2.5-7B-Instruct --tensor-parallel-size 3", "2 or 1"),
        ("vllm 0.8.4\nvllm serve Qwen/Qwen2.5-7B-Instruct -tp 8", "4 or 2 or 1"),
        # a command within a sentence
        (
            "vllm 0.8.4\n`vllm serve Qwen/Qwen2.5-7B-Instruct --tensor-parallel-size 3` fails here.",
            "2 or 1",
        ),
        ("vllm 0.8.4\nvllm serve Qwen/Qwen2.5-7B-Instruct --tensor-parallel-size 4", ""),
        ("vllm 0.8.4\nvllm serve acme/Unknown-7B --tensor-parallel-size 3", ""),
        (
            (
                "sglang 0.4.6\npython -m sglang.launch_server --model-path Qwen/Qwen2.5-7B-Instruct "
                "--tp 8 --enable-dp-attention"
            ),
            "",
        ),
    ],
)
def test_heads_against_the_tensor_parallel_size(matrix, text, sizes):
    entries = [entry for entry in judge(parse_report(text), matrix) if entry.code == "ED618"]
    assert [sizes in entry.remedies[0].text for entry in entries] == ([True] if sizes else [])


SGLANG_LENGTH = (
    "python -m sglang.launch_server --model-path Qwen/Qwen2.5-7B --context-length 262144"
)


@pytest.mark.parametrize(
    ("text", "severities"),
    [
        ("vllm 0.8.4\nvllm serve Qwen/Qwen2.5-7B --max-model-len 262144", ["warning"]),
        ("vllm 0.8.4\nvllm serve Qwen/Qwen2.5-7B --max-model-len 131072", []),
        ("vllm 0.8.4\nvllm serve acme/Qwen2.5-7B-1M --max-model-len 262144", []),
        ("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve Qwen/Qwen2.5-7B --max-model-len 262144", []),
        (f"sglang 0.3.4.post2\n{SGLANG_LENGTH}", ["warning"]),
        (f"sglang 0.3.4.post1\n{SGLANG_LENGTH}", []),
        (SGLANG_LENGTH, ["warning"]),
    ],
)
def test_a_length_against_what_the_model_takes(matrix, text, severities):
    entries = judge(parse_report(text), matrix)
    assert [entry.severity for entry in entries if entry.code == "ED620"] == severities


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Full fine-tuning of Llama-2-70B with DeepSpeed ZeRO-3 on 8x A100 80GB crashes", "ED602"),
        # a sentence may name the GPUs of one of several nodes: what a whole node holds is not said
        ("Full fine-tuning of Llama-3.1-8B with DeepSpeed ZeRO-3 on 4x A100 40GB crashes", None),
        ("Full fine-tuning of Llama-3.1-8B with DeepSpeed ZeRO-3 on 8x A100 80GB crashes", None),
        (
            (
                "Fine-tuning Llama-2-70B, ZeRO-3 with CPU offload of optimizer and parameters, on "
                "8x A100 80GB with 256GB host memory"
            ),
            "ED601",
        ),
        (
            (
                "Fine-tuning Llama-2-70B, ZeRO-3 with CPU offload of optimizer and parameters, on "
                "8x A100 80GB with 2TB host memory"
            ),
            None,
        ),
        ("LoRA fine-tuning of Llama-2-70B with ZeRO-3 on 8x A100 80GB crashes", None),
    ],
)
def test_a_training_run_that_only_sentences_state(matrix, text, code):
    findings = judge(parse_report(text, matrix.package), matrix)
    found = [one for one in findings if one.code in ("ED601", "ED602")]
    assert [one.code for one in found] == ([code] if code else [])
    assert all(one.severity == "warning" for one in found)


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        # tensor 8 x pipeline 2 on the one node of 8 that a report shows: of two, perhaps
        ("GPUs: 8x H100 80GB\ntensor_parallel_size=8, pipeline_parallel_size=2", "advice"),
        ("I run vllm 0.8.5 on 8 H100 GPUs with TP=8 PP=2", "advice"),
        ("GPUs: 8x H100 80GB\ntensor_parallel_size=8", None),
        ("GPU 0: NVIDIA H100 80GB HBM3\nGPU 1: NVIDIA H100 80GB HBM3\nTP=8", "warning"),
        ("I use a single node with 4 A100 80GB and TP=8", "warning"),
        # a sentence names one for all of a node
        ("I use A100 80GB and TP=8", None),
        ("vllm 0.8.5, two nodes with 8x H100 80GB each, TP=8 PP=2", None),
        ("vllm 0.8.5, 2 nodes with 8x H100 80GB each, TP=8 PP=4", "warning"),
        ("multi-node vllm 0.8.5, GPUs: 8x H100, TP=8 PP=2", None),
    ],
)
def test_parallel_sizes_against_the_gpus(matrix, text, severity):
    judged = [entry for entry in judge(parse_report(text), matrix) if entry.code == "ED619"]
    assert [entry.severity for entry in judged] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        # 16 bytes for each parameter: 70e9 x 16 / 8 = 140 GB of each GPU, 7.6e9 x 16 / 8 = 15 GB
        ("We full fine-tune a 70B llama on 8x A100 80GB with deepspeed", False),
        ("全参微调 Qwen2.5-72B, 8卡 A100 80G", False),
        ("full-parameter fine-tuning of Qwen2.5-7B on 8x A100 80GB", True),
        ("We full fine-tune a 70B llama on 4 nodes of 8x A100 80GB", True),
    ],
)
def test_all_parameters_of_a_model_against_the_gpus(matrix, text, fits):
    judged = [entry for entry in judge(parse_report(text), matrix) if entry.code == "ED602"]
    assert [entry.severity for entry in judged] == ([] if fits else ["warning"])
    assert all("even where ZeRO 3 shards everything" in entry.message for entry in judged)


def test_a_size_before_the_family_names_the_model(matrix):
    text = "running a 70B llama on 2 x A100 40GB with vllm 0.8.5"
    assert [entry.code for entry in judge(parse_report(text), matrix) if entry.code == "ED617"]
