"""Trainers that are described by tables: what their scripts and files say, in each of their
forms.
"""

from __future__ import annotations

import pytest

from envdoctor.errors import InputError
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Facts, Gpu
from envdoctor.plan.frameworks import read_workload
from envdoctor.plan.memory.estimate import make_plan, sizes_of
from envdoctor.plan.memory.setting_change import setting_text

NEMO = """
policy:
  model_name: Qwen/Qwen2.5-1.5B
  train_global_batch_size: 512
  train_micro_batch_size: 4
  max_total_sequence_length: 512
  dtensor_cfg: {enabled: true, cpu_offload: false, tensor_parallel_size: 1,
                activation_checkpointing: false, lora_cfg: {enabled: false, dim: 8}}
  megatron_cfg: {enabled: false, tensor_model_parallel_size: 1}
  sequence_packing: {enabled: true,
    train_mb_tokens: "${mul:${policy.max_total_sequence_length}, ${policy.train_micro_batch_size}}"}
  optimizer: {name: torch.optim.AdamW}
  generation:
    backend: vllm
    colocated: {enabled: true}
    vllm_cfg: {tensor_parallel_size: 1, gpu_memory_utilization: 0.6}
grpo: {num_prompts_per_step: 32, num_generations_per_prompt: 16}
loss_fn: {reference_policy_kl_penalty: 0.01}
cluster: {gpus_per_node: 1, num_nodes: 1}
"""
RECIPE = """
defaults: base.yaml
policy:
  model_name: Qwen/Qwen3-30B-A3B
  dtensor_cfg: {enabled: false}
  megatron_cfg: {enabled: true, tensor_model_parallel_size: 4, pipeline_model_parallel_size: 2,
                 expert_model_parallel_size: 8}
cluster: {gpus_per_node: 8, num_nodes: 2}
"""
AXOLOTL = """
base_model: NousResearch/Meta-Llama-3-8B
load_in_4bit: true
adapter: qlora
lora_r: 32
sequence_len: 4096
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 4
optimizer: adamw_bnb_8bit
bf16: auto
gradient_checkpointing: true
"""
TUNE = """
model: {_component_: torchtune.models.llama3_1.lora_llama3_1_8b, lora_rank: 16}
checkpointer: {checkpoint_dir: /tmp/Meta-Llama-3.1-8B-Instruct/}
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer, max_seq_len: 2048}
optimizer: {_component_: torch.optim.AdamW}
loss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}
batch_size: 2
dtype: bf16
enable_activation_checkpointing: true
optimizer_in_bwd: true
"""
AREAL = """
cluster: {n_nodes: 1, n_gpus_per_node: 8}
rollout: {backend: "sglang:d2p1t2"}
actor:
  backend: "fsdp:d4p1t1"
  path: Qwen/Qwen2.5-1.5B-Instruct
  gradient_checkpointing: true
  mb_spec: {max_tokens_per_mb: 10240}
  optimizer: {type: adam}
gconfig: {n_samples: 4, max_new_tokens: 1024}
sglang: {context_length: 32768, mem_fraction_static: 0.8}
train_dataset: {path: openai/gsm8k, batch_size: 256, max_length: 1024}
"""


def values(workload, *fields):
    return [workload.value(field) for field in fields]


@pytest.fixture
def read(tmp_path):
    """Return a function: text of a script, or name of a file, and files beside it -> workload."""

    def run(text, **files):
        for name, content in files.items():
            path = tmp_path / name.replace("__", "/").replace("_yaml", ".yaml")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        if text.endswith(".yaml") and "\n" not in text and " " not in text:
            return read_workload([str(tmp_path / text)], environ={})
        script = tmp_path / "run.sh"
        script.write_text(text + "\n")
        return read_workload([str(script)], environ={})

    return run


def test_nemo_rl_is_read_from_its_file_alone(read):
    workload = read("train.yaml", train_yaml=NEMO)
    assert values(workload, "framework", "algorithm", "actor.strategy", "actor.model") == [
        "nemo-rl",
        "grpo",
        "fsdp2",
        "Qwen/Qwen2.5-1.5B",
    ]
    # ${mul:…}: four sequences of 512 tokens
    assert workload.value("actor.max_tokens_per_gpu") == 2048
    assert values(workload, "rollout.n", "rollout.sleep_level", "ref.present") == [16, 1, True]
    assert values(workload, "actor.lora_rank", "actor.param_dtype") == [0, "fp32"]


def test_nemo_rl_lays_a_recipe_over_the_file_that_it_names(read):
    workload = read("recipe.yaml", recipe_yaml=RECIPE, base_yaml=NEMO)
    assert values(workload, "actor.model", "actor.strategy", "nodes") == [
        "Qwen/Qwen3-30B-A3B",
        "megatron",
        2,
    ]
    assert values(workload, "actor.tensor_parallel", "actor.expert_parallel") == [4, 8]
    assert workload.value("data.max_length") == 512


def test_nemo_rl_without_the_file_that_a_recipe_names_is_not_recognised(read):
    with pytest.raises(InputError, match="nothing here belongs to a framework"):
        read("lone.yaml", lone_yaml=RECIPE.replace("model_name: Qwen/Qwen3-30B-A3B", "x: 1"))


def test_nemo_rl_takes_overrides_and_the_recipe_of_a_suite(read, tmp_path):
    entry = {"examples__run_grpo.py": "from nemo_rl.algorithms.grpo import setup\n"}
    workload = read(
        "uv run examples/run_grpo.py --config train.yaml cluster.gpus_per_node=8",
        train_yaml=NEMO,
        **entry,
    )
    assert values(workload, "framework", "gpus_per_node") == ["nemo-rl", 8]
    (tmp_path / ".git").mkdir()
    suite = tmp_path / "tests" / "test_suites" / "llm" / "one.sh"
    recipe = tmp_path / "examples" / "configs" / "recipes" / "llm" / "one.yaml"
    for path, text in (
        (suite, "source ./common.env\nuv run examples/run_grpo.py --config $CONFIG_PATH\n"),
        (recipe, NEMO),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert read_workload([str(suite)], environ={}).value("actor.model") == "Qwen/Qwen2.5-1.5B"


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (
            (
                "NPROC_PER_NODE=2 CUDA_VISIBLE_DEVICES=0,1 swift sft --tuner_type full "
                "--torch_dtype bfloat16 --deepspeed zero3_offload"
            ),
            {
                "gpus_per_node": 2,
                "actor.strategy": "zero3",
                "actor.offload_optimizer": True,
                "actor.offload_params": True,
                "actor.param_dtype": "bf16",
                "actor.lora_rank": 0,
                "algorithm": "sft",
            },
        ),
        (
            "CUDA_VISIBLE_DEVICES=0 swift sft --quant_bits 4 --quant_method bnb",
            {"gpus_per_node": 1, "actor.quantization": "int4", "actor.lora_rank": 8},
        ),
        (
            (
                "NPROC_PER_NODE=8 megatron sft --tensor_model_parallel_size 2 "
                "--expert_model_parallel_size 4 --recompute_granularity full --packing true "
                "--optimizer_cpu_offload true"
            ),
            {
                "actor.strategy": "megatron",
                "actor.lora_rank": 0,
                "actor.expert_parallel": 4,
                "actor.gradient_checkpointing": True,
                "actor.host_optimizer": True,
            },
        ),
        (
            (
                "NPROC_PER_NODE=8 swift rlhf --rlhf_type grpo --use_vllm true "
                "--vllm_mode colocate --vllm_gpu_memory_utilization 0.5 --num_generations 4 "
                "--deepspeed zero2"
            ),
            {
                "algorithm": "grpo",
                "rollout.engine": "vllm",
                "colocated": True,
                "rollout.n": 4,
                "rollout.gpu_memory_utilization": 0.5,
                "data.max_response_length": 512,
            },
        ),
        (
            "swift rollout --vllm_tensor_parallel_size 2",
            {"algorithm": "serve", "rollout.engine": "vllm", "rollout.tensor_parallel": 2},
        ),
    ],
)
def test_ms_swift_in_each_of_its_programs(read, words, fields):
    workload = read(f"{words} --model Qwen/Qwen2.5-7B-Instruct --max_length 2048")
    assert workload.value("framework") == "ms-swift"
    assert {field: workload.value(field) for field in fields} == fields


def test_ms_swift_spreads_one_process_over_several_gpus(read):
    workload = read("CUDA_VISIBLE_DEVICES=0,1 swift sft --model Qwen/Qwen2.5-7B-Instruct")
    assert workload.value("actor.strategy") is None
    assert "device_map" in workload.get("actor.strategy").reason


@pytest.mark.parametrize(("gpus", "strategy"), [(1, "ddp"), (2, None)])
def test_without_a_variable_a_process_sees_the_gpus_of_its_machine(gpus, strategy):
    facts = Facts({"gpus": Known((Gpu(name="A100"),) * gpus, Evidence("nvidia-smi"))})
    command = "swift sft --model Qwen/Qwen2.5-7B-Instruct --max_length 2048"
    workload = read_workload(command.split(), facts=facts, environ={})
    assert workload.value("gpus_per_node") == gpus
    assert workload.value("actor.strategy") == strategy


def test_ms_swift_trains_before_it_serves(read):
    workload = read(
        "swift infer --model Qwen/Qwen2.5-14B-Instruct --infer_backend vllm\n"
        "CUDA_VISIBLE_DEVICES=0 swift sft --model Qwen/Qwen2.5-7B"
    )
    assert workload.value("actor.model") == "Qwen/Qwen2.5-7B"


def test_axolotl_alone_and_with_its_program(read):
    fields = ("framework", "actor.lora_rank", "actor.quantization", "actor.optimizer")
    expected = ["axolotl", 32, "int4", "adamw_8bit"]
    assert values(read("train.yaml", train_yaml=AXOLOTL), *fields) == expected
    workload = read("axolotl train train.yaml", train_yaml=AXOLOTL)
    assert values(workload, *fields) == expected
    assert values(workload, "actor.micro_batch", "data.max_prompt_length") == [2, 4096]
    assert values(workload, "actor.padding_free", "actor.param_dtype") == [True, "bf16"]


@pytest.mark.parametrize(
    ("model", "unread"),
    [("AutoModelForCausalLM", ()), ("AutoModelForSequenceClassification", ("model_type",))],
)
def test_what_of_axolotl_lowers_nothing(read, model, unread):
    """Data, tokens and watchdogs; the class of the model where it makes logits for each token."""
    text = (
        f"{AXOLOTL}datasets: [{{path: a/b, type: alpaca}}]\nstrict: false\nmodel_type: {model}\n"
        "dataset_prepared_path: x\nspecial_tokens: {pad_token: <pad>}\nloss_watchdog_patience: 3\n"
    )
    assert read("train.yaml", train_yaml=text).unread == unread


@pytest.mark.parametrize(("device", "unread"), [("cuda", ()), ("cpu", ("device",))])
def test_what_of_torchtune_lowers_nothing(read, device, unread):
    text = (
        f"{TUNE}device: {device}\nmetric_logger: {{log_dir: /tmp/x}}\nmax_steps_per_epoch: null\n"
        "lr_scheduler: {num_warmup_steps: 100}\n"
    )
    assert read("train.yaml", train_yaml=text).unread == unread


def test_axolotl_with_fsdp_and_without_adapters(read):
    text = AXOLOTL.replace("adapter: qlora\n", "").replace("load_in_4bit: true\n", "")
    workload = read(
        "train.yaml", train_yaml=f"{text}fsdp_version: 2\nfsdp_config: {{offload_params: true}}\n"
    )
    assert values(workload, "actor.strategy", "actor.cpu_offload", "actor.lora_rank") == [
        "fsdp2",
        True,
        0,
    ]


@pytest.mark.parametrize(
    ("setting", "alone"),
    [
        ("cpu_ram_efficient_loading: true", True),
        ("fsdp_cpu_ram_efficient_loading: false", False),
        ("offload_params: true", None),
    ],
)
def test_which_ranks_load_is_read_of_axolotl_by_both_names(read, setting, alone):
    workload = read("train.yaml", train_yaml=f"{AXOLOTL}fsdp_config: {{{setting}}}\n")
    assert workload.value("actor.rank0_init") is alone


def test_torchtune_reads_the_file_and_its_overrides(read):
    workload = read(
        "tune run --nproc_per_node 2 lora_finetune_distributed --config train.yaml batch_size=4",
        train_yaml=TUNE,
    )
    assert values(workload, "framework", "actor.strategy", "gpus_per_node") == [
        "torchtune",
        "fsdp2",
        2,
    ]
    assert values(workload, "actor.micro_batch", "actor.lora_rank", "data.max_length") == [
        4,
        16,
        2048,
    ]
    assert values(workload, "actor.fused_backward", "actor.loss_chunks") == [True, 8]


def test_torchtune_takes_the_longest_text_from_the_builder_of_the_checkout(read, tmp_path):
    builder = tmp_path / "torchtune" / "models" / "llama3_1" / "_model_builders.py"
    builder.parent.mkdir(parents=True)
    builder.write_text("def llama3_1_8b():\n    return llama3_1(max_seq_len=131072)\n")
    (tmp_path / "torchtune" / "_cli").mkdir()
    (tmp_path / "torchtune" / "_cli" / "tune.py").write_text("")
    text = TUNE.replace("max_seq_len: 2048", "max_seq_len: null")
    workload = read("8B_lora_single_device.yaml", **{"8B_lora_single_device_yaml": text})
    assert values(workload, "data.max_length", "gpus_per_node") == [131072, 1]


def test_areal_gives_trainer_and_engines_gpus_of_their_own(read):
    workload = read("train.yaml", train_yaml=AREAL)
    assert values(workload, "framework", "colocated", "actor.gpus_per_node") == ["areal", False, 4]
    assert values(workload, "rollout.engine", "rollout.engines", "rollout.tensor_parallel") == [
        "sglang",
        2,
        2,
    ]
    assert workload.value("actor.max_tokens_per_gpu") == 10240


def test_areal_without_a_gpu_is_no_error(read):
    workload = read(
        "train.yaml", train_yaml=AREAL.replace("n_gpus_per_node: 8", "n_gpus_per_node: 0")
    )
    assert not workload.problems


def test_slime_that_trains_alone_has_no_engine(read):
    workload = read(
        "python3 train_async.py --actor-num-gpus-per-node 8 --hf-checkpoint /root/Qwen3-4B "
        "--rollout-batch-size 128 --debug-train-only --max-tokens-per-gpu 9216"
    )
    assert values(workload, "framework", "algorithm", "colocated") == ["slime", "sft", True]
    assert workload.value("rollout.engine") is None


def test_slime_by_options_that_it_alone_has(read):
    workload = read(
        "ray job submit -- python3 train.py --actor-num-gpus-per-node 8 --colocate "
        "--hf-checkpoint $(cat root)/Qwen3-30B-A3B --rollout-batch-size 32 --n-samples-per-prompt 8 "
        "--rollout-num-gpus-per-engine 8 --tensor-model-parallel-size 4 "
        "--expert-model-parallel-size 8 --expert-tensor-parallel-size 1 "
        "--optimizer-cpu-offload --use-dynamic-batch-size --max-tokens-per-gpu 20480"
    )
    # The folder is not known, the model's own name is.
    assert values(workload, "framework", "actor.model") == ["slime", "Qwen3-30B-A3B"]
    assert values(workload, "actor.host_optimizer", "actor.expert_parallel") == [True, 8]
    assert values(workload, "colocated", "actor.max_tokens_per_gpu") == [True, 20480]


def test_a_train_script_of_nobody_is_refused(read):
    with pytest.raises(InputError, match="expected a command that starts training"):
        read("python3 train.py --batch-size 32 --model-name Qwen3-8B")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("litgpt finetune_lora meta-llama/Llama-3.1-8B --devices 8", "litgpt finetune_lora"),
        (
            "torchrun --nproc_per_node=8 -m scripts.base_train -- --depth=20",
            "torchrun scripts.base",
        ),
        ("text-generation-launcher --model-id x --num-shard 4", "text-generation-launcher --model"),
        (
            "sleep 5; colossalai run benchmark.py -c 7b; ls",
            "colossalai run benchmark.py -c 7b (line",
        ),
        ("llama-server -m x.gguf --api-key hunter2hunter2", "llama-server -m x.gguf --api-key"),
        ("if [ 1 -gt 0 ]; then\n  exit\nfi\n", "it starts nothing, and it ends at line 2;"),
    ],
)
def test_of_what_nobody_knows_it_is_said_what_was_read(read, text, says):
    with pytest.raises(InputError) as raised:
        read(text)
    assert says in str(raised.value)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("command", "port", "option"),
    [
        ("torchrun --nproc_per_node 2 --master_port 18765", 18765, "--master_port"),
        ("torchrun --nproc_per_node 2", 29500, "--master_port"),
        ("torchrun --nproc_per_node 2 --standalone", None, None),
        ("torchrun --nproc_per_node 2 --rdzv-backend c10d --rdzv-endpoint h:1", None, None),
        ("torchrun --nnodes 2 --nproc_per_node 2 --master_port 18765", None, None),
        ("accelerate launch --num_processes 2 --main_process_port 7", 7, "--main_process_port"),
        ("deepspeed --num_gpus 2 --module", 29500, "--master_port"),
    ],
)
def test_the_port_at_which_processes_meet(read, command, port, option):
    module = "" if command.endswith("--module") else "-m "
    workload = read(f"{command} {module}trl.scripts.sft --model_name_or_path Qwen/Qwen2.5-7B")
    assert workload.value("port") == port
    assert option is None or workload.key_of("port") == option


MEGATRON = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
    "--ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention "
    "--num-query-groups 8 --seq-length 8192 --micro-batch-size 1 --swiglu "
    "--untie-embeddings-and-output-weights --tensor-model-parallel-size 2 --sequence-parallel "
    "--use-distributed-optimizer --bf16"
)


def test_megatron_saves_without_its_optimizer(read):
    command = "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen2.5-7B --micro_batch_size 1"
    workload = read(f"{command} --no_save_optim true")
    assert workload.value("checkpoint.model_only") is True
    assert not [key for key in workload.unread if "save_optim" in key]
    assert read(command).value("checkpoint.model_only") is None


def test_megatron_makes_the_model_of_its_options(read):
    from envdoctor.plan.memory.estimate import sizes_of

    workload = read(f"{MEGATRON} --vocab-size 128256")
    assert values(workload, "framework", "actor.strategy", "gpus_per_node") == [
        "megatron",
        "megatron",
        8,
    ]
    assert values(workload, "actor.sequence_split", "data.max_length") == [True, 8192]
    size = sizes_of(workload)["actor"]
    # Llama 3 8B
    assert size.low <= 8_030_261_248 <= size.high
    assert not size.rough


def test_megatron_without_its_vocabulary_is_a_range(read):
    from envdoctor.plan.memory.estimate import sizes_of

    size = sizes_of(read(MEGATRON))["actor"]
    assert size.rough
    assert size.low < 7_000_000_000 < 8_030_261_248 < size.high


def test_megatron_without_a_distributed_optimizer_keeps_it_on_each_gpu(read):
    workload = read(MEGATRON.replace("--use-distributed-optimizer ", ""))
    assert workload.value("actor.shard_ranks") == 2


CHAT = """
import argparse
from dschat.utils.model.model_utils import create_hf_model

def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_name_or_path", type=str)
    parser.add_argument("--per_device_train_batch_size", type=int, default=16)
    parser.add_argument("--max_seq_len", type=int, default=512)
    parser.add_argument("--zero_stage", type=int, default=0)
    parser.add_argument("--offload", action="store_true")
    parser.add_argument("--lora_dim", type=int, default=0)
    parser.add_argument("--gradient_checkpointing", action="store_true")
    return parser.parse_args()
"""


def test_deepspeed_chat_has_the_defaults_of_its_own_parser(read):
    workload = read(
        "deepspeed --num_gpus 4 main.py --model_name_or_path facebook/opt-1.3b --zero_stage 2",
        **{"main.py": CHAT},
    )
    assert values(workload, "framework", "algorithm", "actor.strategy", "gpus_per_node") == [
        "deepspeed-chat",
        "sft",
        "zero2",
        4,
    ]
    assert values(workload, "actor.micro_batch", "data.max_prompt_length") == [16, 512]


def test_a_main_that_imports_nothing_of_it_is_not_deepspeed_chat(read):
    with pytest.raises(InputError):
        read("deepspeed main.py --model_name_or_path x", **{"main.py": "import torch\n"})


def test_verl_without_reinforcement(read):
    workload = read(
        "torchrun --standalone --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer "
        "model.partial_pretrain=google/gemma-2b-it data.micro_batch_size_per_gpu=2 "
        "data.max_length=2048"
    )
    assert values(workload, "framework", "algorithm", "actor.strategy", "actor.micro_batch") == [
        "verl-sft",
        "sft",
        "fsdp2",
        2,
    ]


def test_the_second_form_of_llama_factory(read):
    text = "model: Qwen/Qwen3-4B\ntrain_dataset: x\nmicro_batch_size: 2\ncutoff_len: 4096\n"
    full = read("train.yaml", train_yaml=f"{text}dist_config: {{name: fsdp2}}\n")
    assert values(full, "actor.model", "actor.strategy", "actor.lora_rank") == [
        "Qwen/Qwen3-4B",
        "fsdp2",
        0,
    ]
    lora = read("train.yaml", train_yaml=f"{text}peft_config: {{name: lora, r: 16}}\n")
    assert lora.value("actor.lora_rank") == 16


@pytest.mark.parametrize(
    ("command", "file", "more", "algorithm", "reference"),
    [
        ("llamafactory-cli dpo {}", "a.yaml", "", "dpo", True),
        ("llamafactory-cli dpo {}", "a.yaml", "peft_config: {name: lora, r: 16}\n", "dpo", False),
        ("llamafactory-cli sft {}", "dpo.yaml", "", "sft", False),
        ("llamafactory-cli train {}", "a.yaml", "", "sft", False),
        ("{}", "a.yaml", "pref_beta: 0.2\n", "dpo", True),
        ("{}", "a.yaml", "", "sft", False),
        ("{}", "my_dpo.yaml", "", None, None),
    ],
)
def test_the_command_of_the_second_form_says_the_stage(
    read, command, file, more, algorithm, reference
):
    text = "model: Qwen/Qwen3-4B\ntrain_dataset: x\ndist_config: {name: fsdp2}\n"
    workload = read(command.format(file), **{file.replace(".", "_"): text + more})
    assert workload.value("algorithm") == algorithm
    assert workload.value("ref.present") == reference


def test_openrlhf_trains_without_generating(read):
    workload = read(
        "deepspeed --module openrlhf.cli.train_sft --model.model_name_or_path "
        "meta-llama/Meta-Llama-3-8B --data.max_len 2048 --train.micro_batch_size 2 "
        "--ds.zero_stage 2"
    )
    assert values(workload, "algorithm", "actor.model", "data.max_length") == [
        "sft",
        "meta-llama/Meta-Llama-3-8B",
        2048,
    ]


#: ms-swift's own scripts at 3602360a5 and what they say each GPU held, GiB
#: (tests/data/memory/scripts.toml).
LORA = (
    "--model Qwen/Qwen2.5-7B-Instruct --tuner_type lora --torch_dtype bfloat16 --max_length 2048 "
    "--per_device_train_batch_size 1 --lora_rank 8"
)
HELD = [
    (f"CUDA_VISIBLE_DEVICES=0 swift sft {LORA}", 22),
    (f"CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 swift sft {LORA} --deepspeed zero2", 18),
    (f"CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 swift sft {LORA} --deepspeed zero3", 16),
    (f"CUDA_VISIBLE_DEVICES=0 swift sft {LORA} --quant_bits 4 --quant_method bnb", 10),
    (f"CUDA_VISIBLE_DEVICES=0 swift sft {LORA.replace('lora ', 'full ')}", 76),
]


@pytest.mark.parametrize(("command", "held"), HELD)
def test_what_gpus_held_lies_inside_of_the_bounds(read, command, held):
    from envdoctor.matrix.loader import load_matrix
    from envdoctor.plan.memory.estimate import make_plan, sizes_of

    workload = read(command)
    pool = make_plan(workload, sizes_of(workload, load_matrix())).pool("gpu")
    assert pool.low / 2**30 <= held <= pool.high / 2**30


def test_accelerate_makes_fp32_of_what_fsdp_trains(read):
    full = AXOLOTL.replace("adapter: qlora\n", "").replace("load_in_4bit: true\n", "")
    spread = full + "fsdp_version: 2\nfsdp_config: {offload_params: false}\n"
    assert read("a.yaml", a_yaml=full).value("actor.param_dtype") == "bf16"
    assert read("a.yaml", a_yaml=spread).value("actor.param_dtype") is None
    adapters = AXOLOTL + "fsdp_config: {offload_params: false}\n"
    assert read("a.yaml", a_yaml=adapters).value("actor.param_dtype") == "bf16"


@pytest.mark.parametrize(
    ("option", "others"),
    [
        ("--teacher_model Qwen/Qwen3-32B", "teacher_model=Qwen/Qwen3-32B"),
        ("--teacher_model_server http://host:8000/v1", None),
        ("--reward_funcs a/b.py", None),
    ],
)
def test_a_model_beside_those_that_are_understood_is_named(read, option, others):
    run = read(f"swift rlhf --rlhf_type grpo --model Qwen/Qwen3-8B {option}")
    assert run.value("others") == others


def test_teachers_in_a_list_are_models_beside(read):
    """What they take is not known, so nothing is an upper bound."""
    text = AXOLOTL + "teachers:\n  - model_name: Qwen/Qwen3-4B\n    weight: 1.0\n"
    workload = read("train.yaml", train_yaml=text)
    assert workload.value("others") == "teachers.0.model_name=Qwen/Qwen3-4B"


MEGATRON_ENGINE = """
defaults: base.yaml
policy:
  dtensor_cfg: {enabled: false}
  megatron_cfg: {enabled: true}
  generation:
    backend: megatron
    mcore_generation_config: {buffer_size_gb: 10, max_tokens: 16384,
                              kv_cache_management_mode: persist, num_cuda_graphs: 4}
"""


def test_nemo_rl_generates_with_the_trainers_weights(read):
    matrix = load_matrix()
    workload = read("own.yaml", own_yaml=MEGATRON_ENGINE, base_yaml=NEMO)
    assert values(workload, "rollout.engine", "rollout.cache_size") == ["megatron", 10 << 30]
    assert workload.value("rollout.free_cache_engine") is False
    off = ("policy.generation.", "policy.dtensor_cfg.", "policy.megatron_cfg.")
    assert not [key for key in workload.unread if key.startswith(off)]
    plan = make_plan(workload, sizes_of(workload, matrix), None, matrix)
    gpu = plan.pool("gpu")
    assert not gpu.missing
    for phase in ("rollout", "update"):
        held = [term for term in gpu.terms if term.name == "KV cache" and phase in term.phases]
        assert [(term.low, term.high) for term in held] == [(10 << 30, 10 << 30)]
    given_back = MEGATRON_ENGINE.replace("persist", "offload")
    workload = read("own.yaml", own_yaml=given_back, base_yaml=NEMO)
    gpu = make_plan(workload, sizes_of(workload, matrix), None, matrix).pool("gpu")
    assert [term.phases for term in gpu.terms if term.name == "KV cache"] == [("rollout",)]


@pytest.mark.parametrize(
    "change", [("backend: megatron", "backend: trtllm"), ("buffer_size_gb: 10, ", "")]
)
def test_nemo_rl_of_another_engine_nothing_is_known(read, change):
    workload = read("own.yaml", own_yaml=MEGATRON_ENGINE.replace(*change), base_yaml=NEMO)
    assert "is not known" in workload.get("rollout.engine").reason


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (["swift", "sft", "--model", "Qwen/Qwen2.5-7B", "--attn_impl", "eager"], "eager"),
        (["swift", "sft", "--model", "Qwen/Qwen2.5-7B", "--attn_impl", "flash_attn"], "fused"),
        (["llamafactory-cli", "train", "flash_attn=disabled"], "eager"),
        (
            ["megatron", "sft", "--model", "Qwen/Qwen2.5-7B", "--attention_backend", "flash"],
            "fused",
        ),
        (["megatron", "sft", "--model", "a/b", "--attention_backend", "unfused"], "eager"),
        (
            [
                "torchrun",
                "pretrain_gpt.py",
                "--tensor-model-parallel-size",
                "2",
                "--num-layers",
                "24",
                "--attention-backend",
                "local",
            ],
            "eager",
        ),
        (["llamafactory-cli", "train", "flash_attn=fa2"], "fused"),
        (["llamafactory-cli", "train", "flash_attn=auto"], None),
        (["axolotl", "train", "--eager-attention", "true"], "eager"),
        (["axolotl", "train", "--sdp-attention", "true", "--eager-attention", "false"], "fused"),
        (["trl", "sft", "--attn_implementation", "eager"], "eager"),
        (["trl", "sft", "--attn_implementation", "kernels-community/flash-attn2"], "fused"),
        (["trl", "sft", "--attn_implementation", "of-my-own"], None),
        (["deepspeed", "--module", "openrlhf.cli.train_sft", "--flash_attn"], "fused"),
        (
            [
                "python3",
                "-m",
                "verl.trainer.main_ppo",
                "+actor_rollout_ref.model.override_config.attn_implementation=eager",
            ],
            "eager",
        ),
        (["python3", "-m", "verl.trainer.main_ppo", "trainer.nnodes=1"], "fused"),
    ],
)
def test_how_attention_is_computed(command, kind):
    assert read_workload(command, environ={}).value("actor.attention") == kind


def test_openrlhf_without_its_switch_is_eager_in_the_releases_that_have_one():
    command = ["deepspeed", "--module", "openrlhf.cli.train_sft", "--zero_stage", "2"]
    old, new = (
        read_workload(command, framework=f"openrlhf=={version}", environ={}).value(
            "actor.attention"
        )
        for version in ("0.5.3", "0.9.5")
    )
    assert (old, new) == ("eager", "fused")


OF_A_CHECKOUT = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--train.micro_batch_size", type=int, default=3)
parser.add_argument("--train.batch_size", type=int, default=96)
parser.add_argument("--ds.zero_stage", type=int, default=1)
parser.add_argument("--ds.packing_samples", action="store_true")
parser.add_argument("--model.model_name_or_path", type=str)
parser.add_argument("--of_this_fork_alone", type=int, default=5)
args = parser.parse_args()
"""


def test_openrlhf_takes_options_and_defaults_from_the_parser_of_its_checkout(tmp_path):
    folder = tmp_path / "openrlhf" / "cli"
    folder.mkdir(parents=True)
    (folder / "train_sft.py").write_text(OF_A_CHECKOUT)
    (folder / "train_ppo_ray.py").write_text("")
    script = tmp_path / "run.sh"
    script.write_text(
        "deepspeed --module openrlhf.cli.train_sft --ds.packing_samples --of_this 1 \\\n"
        "  --model.model_name_or_path Qwen/Qwen2.5-7B --ds.adam_offload --train.batch 64\n"
    )
    run = read_workload([str(script)], environ={})
    assert run.value("actor.micro_batch") == 3
    assert run.value("actor.strategy") == "zero1"
    assert run.value("actor.padding_free") is True
    assert run.value("actor.mini_batch") == 64  # argparse takes what can only be one option
    unknown = [problem for problem in run.problems if problem.kind == "unknown-key"]
    assert [problem.key for problem in unknown] == ["--ds.adam_offload"]
    assert "openrlhf/cli/train_sft.py of this checkout" in unknown[0].message
    assert unknown[0].certain  # its parser refuses it


def test_a_switch_for_sleep_mode_takes_no_value():
    command = ["python3", "-m", "openrlhf.cli.train_ppo_ray", "--vllm_num_engines", "4"]
    run = read_workload(command, framework="openrlhf==0.9.5", environ={})
    assert setting_text(run, "rollout.sleep_level", 1) == "--vllm_enable_sleep"


VERL = ["python3", "-m", "verl.trainer.main_ppo", "actor_rollout_ref.model.path=Qwen/Qwen2.5-7B"]


@pytest.mark.parametrize(
    ("setting", "field", "value"),
    [
        ("actor_rollout_ref.model.use_fused_kernels=True", "actor.loss_piece", 512),
        (
            "actor_rollout_ref.model.enable_activation_offload=True",
            "actor.activation_offload",
            True,
        ),
        ("actor_rollout_ref.actor.freeze_vision_tower=True", "actor.frozen_vision", True),
        ("actor_rollout_ref.rollout.quantization=fp8", "rollout.quantization", "fp8"),
        ("actor_rollout_ref.rollout.quantization=of-my-own", "rollout.quantization", "unknown"),
        ("actor_rollout_ref.actor.fsdp_config.offload_policy=True", "actor.cpu_offload", False),
        ("actor_rollout_ref.model.lora_rank=40", "rollout.adapter_rank", 64),
        ("actor_rollout_ref.model.lora_rank=40", "rollout.adapters", 1),
    ],
)
def test_what_verl_offers_against_memory_is_understood(setting, field, value):
    run = read_workload([*VERL, setting], framework="verl==0.7.0", environ={})
    assert run.value(field) == value
    assert setting.partition("=")[0] not in run.unread


@pytest.mark.parametrize(
    ("version", "settings", "in_place"),
    [
        ("0.4.0", (), True),  # entropy_coeff is 0 by default
        ("0.3.0.post1", (), None),  # and was 0.001
        ("0.3.0.post1", ("actor_rollout_ref.actor.entropy_coeff=0",), None),  # taken all the same
        ("0.7.0", ("actor_rollout_ref.actor.entropy_coeff=0.001",), None),
        ("0.7.0", ("actor_rollout_ref.actor.calculate_entropy=True",), None),
        ("0.7.0", ("trainer.device=npu",), None),
        ("0.7.0", ("--config-name=ppo_megatron_trainer",), None),
    ],
)
def test_verl_s_loss_is_in_place_where_no_step_takes_the_entropy(version, settings, in_place):
    """As the wheels' dp_actor.py has it: inplace_backward unless calculate_entropy."""
    run = read_workload([*VERL, *settings], framework=f"verl=={version}", environ={})
    assert run.value("actor.loss_in_place") is in_place


def test_verl_with_fsdp_2_keeps_parameters_on_the_host():
    settings = [
        "actor_rollout_ref.actor.strategy=fsdp2",
        "actor_rollout_ref.actor.fsdp_config.offload_policy=True",
    ]
    run = read_workload([*VERL, *settings], framework="verl==0.7.0", environ={})
    assert run.value("actor.cpu_offload") is True


@pytest.mark.parametrize(
    ("command", "frozen"),
    [
        (["swift", "sft", "--model", "Qwen/Qwen2.5-VL-7B-Instruct"], True),
        (
            ["swift", "sft", "--model", "Qwen/Qwen2.5-VL-7B-Instruct", "--freeze_vit", "false"],
            False,
        ),
        (["llamafactory-cli", "train", "model_name_or_path=Qwen/Qwen2.5-VL-7B-Instruct"], True),
    ],
)
def test_the_tower_of_images_is_frozen_where_the_trainer_does_it(command, frozen):
    assert read_workload(command, environ={}).value("actor.frozen_vision") is frozen


def test_the_reference_of_megatron_has_the_parallel_state_of_the_actor():
    settings = [
        "--config-name=ppo_megatron_trainer.yaml",
        "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4",
        "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2",
        "actor_rollout_ref.ref.megatron.param_offload=True",
        "actor_rollout_ref.actor.use_kl_loss=True",
        "trainer.n_gpus_per_node=8",
        "+actor_rollout_ref.actor.megatron.override_transformer_config.recompute_method=uniform",
        "+actor_rollout_ref.actor.megatron.override_transformer_config.recompute_granularity=full",
        "+actor_rollout_ref.actor.megatron.override_transformer_config.recompute_num_layers=1",
    ]
    run = read_workload([*VERL, *settings], framework="verl==0.6.1", environ={})
    assert (run.value("ref.tensor_parallel"), run.value("ref.pipeline_parallel")) == (4, 2)
    assert run.value("actor.gradient_checkpointing") is True
    assert run.value("actor.sequence_split") is True
    matrix = load_matrix()
    gpu = make_plan(run, sizes_of(run, matrix), None, matrix).pool("gpu")
    weights = [term for term in gpu.terms if (term.name, term.role) == ("weights", "ref")]
    # They visit the GPU for a pass, an eighth of them each, and are on the host otherwise.
    assert all(term.low == 0 and "rollout" not in term.phases for term in weights)
    assert all(term.high <= 2 * 7.7e9 / 8 for term in weights)
    host = make_plan(run, sizes_of(run, matrix), None, matrix).pool("host")
    assert any(term.name == "reference model" and term.low > 0 for term in host.terms)
