"""Attention that makes all of its scores: what the plan counts, held against what torch keeps."""

import json
import os
import subprocess

import pytest

from envdoctor.model.facts import Distribution, Gpu
from envdoctor.model.sizes import GIB
from envdoctor.plan.memory.estimate import make_plan, sizes_of

from .conftest import facts, workload
from .test_estimate import plan_of

LAYERS, HEADS, TOKENS, BATCH = 3, 4, 192, 2
_KEPT = f"""
import json, torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
LAYERS, HEADS, TOKENS, BATCH = {LAYERS}, {HEADS}, {TOKENS}, {BATCH}
SIZES = dict(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=LAYERS,
             num_attention_heads=HEADS)
GPT2 = dict(vocab_size=64, n_embd=32, n_layer=LAYERS, n_head=HEADS, n_positions=TOKENS,
            attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)
def kept(model, recomputes):
    model.train()
    if recomputes:
        model.gradient_checkpointing_enable(dict(use_reentrant=False))
    storages = {{}}
    def keep(tensor):
        if tensor.shape[-2:] == (TOKENS, TOKENS) and tensor.numel() >= BATCH * HEADS * TOKENS ** 2:
            storage = tensor.storage()
            storages[storage.data_ptr()] = storage.nbytes(), tensor  # held, so that none is reused
        return tensor
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        words = torch.zeros(BATCH, TOKENS, dtype=torch.long)
        model(input_ids=words, labels=words, use_cache=False)
    return sum(count for count, _ in storages.values())
print(json.dumps({{
    f"{{name}} {{kind}} {{recomputes}}": kept(make().to(kind), recomputes)
    for name, make in (
        ("llama", lambda: LlamaForCausalLM(LlamaConfig(**SIZES, attn_implementation="eager"))),
        ("gpt2", lambda: GPT2LMHeadModel(GPT2Config(**GPT2))),
    )
    for kind in (torch.bfloat16, torch.float32)
    for recomputes in (False, True)
}}))
"""
#: The newest that works with torch 1.13, whose wheels the distribution has.
_TRANSFORMERS = ("transformers==4.40.2", "tokenizers==0.19.1", "huggingface-hub==0.23.0")
_REST = ("safetensors", "regex", "filelock", "tqdm", "packaging", "requests", "pyyaml", "fsspec")


@pytest.fixture(scope="module")
def transformers_python(torch_python, tmp_path_factory, run_pip):
    """An interpreter with torch for CPUs and transformers."""
    folder = tmp_path_factory.mktemp("transformers")
    make = [torch_python, "-m", "venv", "--system-site-packages", "--without-pip", str(folder)]
    subprocess.run(make, check=True)
    python = folder / "bin" / "python"
    run_pip("--python", str(python), "install", "-q", "--no-deps", *_TRANSFORMERS, *_REST)
    return str(python)


def scores(matrix, machine=None, **changes):
    """Return the bounds of attention's scores in a plan of the usual run; none where it has no
    such term.
    """
    terms = [
        term
        for term in plan_of(matrix, machine, **changes).pool("gpu").terms
        if term.name == "attention scores"
    ]
    return (terms[0].low, terms[0].high) if terms else None


@pytest.mark.slow
def test_what_the_graph_of_torch_keeps_lies_between_the_bounds(transformers_python):
    """The saved tensors of small models of transformers in training."""
    kept = json.loads(
        subprocess.run(
            [transformers_python, "-W", "ignore", "-c", _KEPT],
            stdout=subprocess.PIPE,
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            timeout=300,
        ).stdout
    )
    assert len(kept) == 8
    for name, count in kept.items():
        recomputes = name.endswith("True")
        config = {
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "vocab_size": 64,
        }
        run = workload(
            framework="trl",
            algorithm="sft",
            nodes=1,
            gpus_per_node=1,
            actor__model="/models/own",
            actor__strategy="ddp",
            actor__param_dtype="bf16" if "bfloat16" in name else "fp32",
            actor__attention="eager",
            actor__micro_batch=BATCH,
            actor__padding_free=False,
            actor__gradient_checkpointing=recomputes,
            data__max_prompt_length=TOKENS,
        )
        sizes = sizes_of(run, None, {"/models/own": config})
        (term,) = [
            one for one in make_plan(run, sizes).pool("gpu").terms if one.name == "attention scores"
        ]
        # What is recomputed is kept of one layer at a time, in the backward pass alone.
        least, most = (0, 0) if recomputes else (term.low, term.high)
        assert least <= count <= most, (name, count, term)
        if not recomputes:
            assert count >= 2 * LAYERS * BATCH * HEADS * TOKENS**2 > 0, (name, count)


def test_scores_grow_with_the_square_of_the_texts(matrix):
    lengths = {"data__max_response_length": 1024, "actor__attention": "eager"}
    short = scores(matrix, data__max_prompt_length=1024, **lengths)
    long = scores(matrix, data__max_prompt_length=3072, **lengths)
    assert long[1] / short[1] == pytest.approx(4, rel=0.01)


def test_stored_scores_make_a_run_that_fitted_tight_or_worse(matrix):
    machine = facts(gpus=(Gpu(memory_total=80 * GIB),) * 8)
    fused = plan_of(matrix, machine, actor__attention="fused").pool("gpu")
    eager = plan_of(
        matrix, machine, actor__attention="eager", actor__gradient_checkpointing=False
    ).pool("gpu")
    assert fused.verdict == "fits"
    assert eager.high > eager.limit.usable


def test_what_is_recomputed_counts_one_layer(matrix):
    kept = scores(matrix, actor__attention="eager", actor__gradient_checkpointing=False)
    once = scores(matrix, actor__attention="eager", actor__gradient_checkpointing=True)
    assert kept[0] == 28 * once[0] > 0  # Qwen2.5-7B's layers
    assert once[1] < kept[1] / 10


def test_fused_attention_keeps_none(matrix):
    assert scores(matrix, actor__attention="fused") is None
    assert scores(matrix) is None  # verl asks for flash attention by itself


@pytest.mark.parametrize(
    ("framework", "installed", "model", "counted"),
    [
        ("transformers", None, "meta-llama/Llama-2-7b-hf", True),  # nothing tells the release
        ("transformers", None, "Qwen2.5-7B", False),  # its class has sdpa from the start
        ("trl", None, "openai/gpt-oss-20b", True),
        ("transformers", "4.35.2", "Qwen2.5-7B", True),  # eager by itself
        ("transformers", "4.48.0", "Qwen2.5-7B", False),
        ("deepspeed", "4.48.0", "google/gemma-2-9b-it", True),
        ("trl", None, "Qwen2.5-7B", False),
        ("trl", None, "google/gemma-2-9b-it", True),
    ],
)
def test_an_implementation_that_nothing_tells_counts_for_the_upper_bound(
    matrix, framework, installed, model, counted
):
    table = {"transformers": Distribution("transformers", installed)} if installed else {}
    bounds = scores(matrix, facts(distributions=table), framework=framework, actor__model=model)
    assert (bounds is not None) == counted
    if counted:
        assert bounds[0] == 0 < bounds[1]
