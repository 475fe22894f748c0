"""Functions that return a configuration, read as syntax trees: held against Python, which runs the
same text.
"""

import sys
import types

import pytest

from envdoctor.plan.frameworks import read_workload
from envdoctor.plan.frameworks.declared import nested_defaults
from envdoctor.plan.frameworks.recipe_functions import settings_of

COMMON = """
_LENGTH = 2048

class Part:
    def __init__(self, **given):
        self.__dict__.update(given)

class Container(Part):
    pass

def _common(steps=10, *, peft="none"):
    length = 512
    cfg = Container(
        train=Part(micro_batch_size=4, steps=steps),
        dataset=Part(seq_length=length),
        model=None,
        peft=None,
        optimizer=Part(offload=False, kind="adam"),
    )
    if isinstance(peft, str) and peft.lower() in ["lora", "dora"]:
        cfg.peft = Part(dim=32)
    return cfg

def long_texts(part, factor=2):
    part.seq_length = 4 * 1024 if factor > 2 else 1024
    if not part.seq_length == 1:
        part.is_long = True
"""
RECIPES = """
from common import Container, Part, _common
from common import long_texts as _texts

_MODEL = "Qwen/Qwen3-8B"

def plain_config():
    cfg = _common()
    cfg.model = Part(name=_MODEL, tensor=1)
    cfg.model.tensor = 4
    cfg.train.micro_batch_size = cfg.model.tensor
    return cfg

def tuned_config():
    cfg = _common(20, peft="LoRA")
    cfg.model = Part(name=_MODEL)
    if cfg.train.steps > 10:
        cfg.train.micro_batch_size = 1
    else:
        cfg.train.micro_batch_size = 2
    return cfg

def derived_config():
    cfg = plain_config()
    cfg.model.stages = 2
    cfg.dataset = Part(seq_length=8192)
    return cfg

def wrapped_config():
    return tuned_config()
"""


@pytest.fixture
def modules(monkeypatch):
    """Return the texts of two modules that Python can import as well."""
    for name, text in (("common", COMMON), ("recipes", RECIPES)):
        module = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(text, name, "exec"), module.__dict__)
    return {"common": COMMON, "recipes": RECIPES}


def leaves(part, prefix=""):
    for key, value in vars(part).items():
        if hasattr(value, "__dict__"):
            yield from leaves(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}", value


@pytest.mark.parametrize(
    "name", ["plain_config", "tuned_config", "derived_config", "wrapped_config"]
)
def test_what_is_read_is_what_python_makes(modules, name):
    made = dict(leaves(getattr(sys.modules["recipes"], name)()))
    settings = settings_of(modules.get, "recipes", name)
    read = {
        one.key: one.value
        for one in settings
        if one.value is not None and not one.key.endswith("made_by")
    }
    assert read == made
    assert not [one for one in settings if one.unclear]


def test_what_hangs_on_what_nobody_knows_is_unclear():
    text = """
import os
from elsewhere import change
def f():
    cfg = Container(model=Part(a=1, b=1, c=1))
    if os.cpu_count() > 4:
        cfg.model.a = 2
    cfg.model.b = os.cpu_count()
    change(cfg.model)
    for name in ("c", "d"):
        setattr(cfg.model, name, 3)
    return cfg
"""
    settings = {one.key: one for one in settings_of({"m": text}.get, "m", "f")}
    assert settings["model.a"].unclear == "f sets it under a condition"
    assert settings["model.b"].unclear == "f computes it"
    assert settings["change(cfg.model)"].unclear
    assert any(key.startswith("for name in") for key in settings)


def test_what_a_function_makes_of_a_model_is_the_part_that_it_is_assigned_to():
    texts = {
        "names": '_MODEL = "org/name-7B"',
        "m": """
from typing import cast
from names import _MODEL as _ID
def _model(seq=1):
    provider = cast(Provider, Bridge.from_hf_pretrained(_ID).to_provider(load=False))
    provider.tensor = 2
    provider.seq = seq
    return provider
def _scheduler(**given):
    try:
        other(given)
    except OSError:
        pass
    return Scheduler(**given)
def f():
    cfg = Container(model=None)
    cfg.model = _model(seq=4096)
    cfg.model.stages = 2
    cfg.scheduler = _scheduler(steps=3)
    return cfg
""",
    }
    settings = settings_of(texts.get, "m", "f")
    assert {one.key: one.value for one in settings if not one.unclear} == {
        "model.made_by": "to_provider",
        "model.load": False,
        "model.from_hf": "org/name-7B",
        "model.tensor": 2,
        "model.seq": 4096,
        "model.stages": 2,
        "scheduler.made_by": "_scheduler",
        "scheduler.steps": 3,
    }
    assert not [one.key for one in settings if one.unclear]


def test_a_helper_is_followed_with_the_part_that_it_gets():
    text = """
def helper(part, size=2):
    part.size = size
def f():
    cfg = Container(model=None)
    cfg.model = Bridge.from_hf_pretrained("org/name-7B").to_provider(load=False)
    helper(cfg.model, size=8)
    return cfg
"""
    settings = {one.key: one.value for one in settings_of({"m": text}.get, "m", "f")}
    assert settings == {
        "model.made_by": "to_provider",
        "model.load": False,
        "model.from_hf": "org/name-7B",
        "model.size": 8,
    }


def test_functions_that_call_each_other_end():
    text = "def f():\n    cfg = g_config()\n    return cfg\ndef g_config():\n    return f()\n"
    assert settings_of({"m": text}.get, "m", "f") == []
    assert settings_of({}.get, "m", "f") is None


@pytest.mark.parametrize("deep", ["x" + ".a" * 20000, "f(" * 80 + ")" * 80, "not " * 20000 + "x"])
def test_what_is_nested_too_deep_ends(deep):
    body = f"    cfg = Container(a=1)\n    cfg.b = {deep}()\n    return cfg\n"
    read = {"m": f"def f():\n{body}"}.get
    settings = settings_of(read, "m", "f")
    assert settings is None or [one.key for one in settings][:1] in ([], ["a"])
    model = f"class M:\n    a: int = {deep}()\n    b: int = 1\n"
    assert nested_defaults({"m": model}.get, "m", "M").get("b") in (None, 1)


RECIPE = '''
from megatron.bridge.recipes.common import _sft_common
def qwen3_8b_sft_4gpu_config():
    """Fine-tunes all of it."""
    cfg = _sft_common()
    cfg.model = AutoBridge.from_hf_pretrained("Qwen/Qwen3-8B").to_megatron_provider(load_weights=False)
    cfg.model.tensor_model_parallel_size = 4
    cfg.model.sequence_parallel = True
    cfg.model.recompute_granularity = "full"
    cfg.model.recompute_method = "uniform"
    cfg.model.recompute_num_layers = 1
    cfg.optimizer.use_precision_aware_optimizer = False
    return cfg
def vanilla_pretrain_config():
    cfg = _sft_common()
    cfg.model = GPTProvider(num_layers=2, hidden_size=256, num_attention_heads=4, vocab_size=1000)
    return cfg
def qwen3_8b_peft_config():
    cfg = qwen3_8b_sft_4gpu_config()
    cfg.peft = LoRA(dim=16)
    return cfg
'''
SHARED = """
def _sft_common():
    cfg = ConfigContainer(
        train=TrainingConfig(micro_batch_size=1),
        dataset=default_squad_config(seq_length=2048),
        ddp=DDP(grad_reduce_in_fp32=True),
        checkpoint=CheckpointConfig(save_interval=100),
        mixed_precision="bf16_mixed",
        peft=None,
    )
    return cfg
"""


@pytest.fixture
def bridge(tmp_path):
    """Return a function: words of a command -> workload, in a checkout with three recipes."""
    recipes = tmp_path / "src/megatron/bridge/recipes"
    (recipes / "qwen").mkdir(parents=True)
    (tmp_path / "src/megatron/bridge/__init__.py").write_text("")
    (recipes / "common.py").write_text(SHARED)
    (recipes / "qwen/qwen3.py").write_text(RECIPE)
    (recipes / "qwen/__init__.py").write_text(
        "from megatron.bridge.recipes.qwen.qwen3 import (\n"
        "    qwen3_8b_sft_4gpu_config as qwen3_8b_sft_config,\n)\n"
    )
    (tmp_path / "scripts/training").mkdir(parents=True)
    (tmp_path / "scripts/training/run_recipe.py").write_text("")

    def read(command):
        script = tmp_path / "run.sh"
        script.write_text(f"torchrun --nproc_per_node 4 scripts/training/run_recipe.py {command}\n")
        return read_workload([str(script)], environ={})

    return read


def values(workload, *fields):
    return [workload.value(field) for field in fields]


@pytest.mark.parametrize("choice", ["--recipe qwen3_8b_sft_config", "--model qwen3_8b --mode sft"])
def test_a_recipe_is_what_the_checkout_says(bridge, choice):
    workload = bridge(choice)
    assert values(workload, "framework", "actor.model", "gpus_per_node", "actor.strategy") == [
        "megatron-bridge",
        "Qwen/Qwen3-8B",
        4,
        "megatron",
    ]
    assert values(workload, "actor.tensor_parallel", "actor.sequence_split") == [4, True]
    assert values(workload, "data.max_length", "actor.micro_batch", "actor.lora_rank") == [
        2048,
        1,
        0,
    ]
    assert values(workload, "actor.gradient_checkpointing", "actor.optimizer") == [True, "adamw"]
    assert values(workload, "actor.grad_dtype", "checkpoint.save_freq") == ["fp32", 100]
    assert not workload.unread
    assert "recipes.qwen.qwen3:" in str(workload.place("actor.tensor_parallel"))


def test_options_and_overrides_come_before_the_recipe(bridge):
    workload = bridge(
        "--recipe qwen3_8b_peft_config -tp 2 -mb 4 --seq_length 8192 peft.dim=64 "
        "model.context_parallel_size=2 optimizer.optimizer_cpu_offload=true model.unheard=1"
    )
    assert values(workload, "actor.tensor_parallel", "actor.micro_batch", "data.max_length") == [
        2,
        4,
        8192,
    ]
    assert values(workload, "actor.lora_rank", "actor.sequence_parallel") == [64, 2]
    assert workload.value("actor.host_optimizer") is True
    assert workload.unread == ("model.unheard",)
    assert workload.keys["actor.tensor_parallel"] == "model.tensor_model_parallel_size"


def test_a_model_without_a_name_has_the_dimensions_of_its_recipe(bridge):
    workload = bridge("--recipe vanilla_pretrain_config model.num_layers=4")
    assert workload.value("actor.config")["num_hidden_layers"] == "4"
    assert workload.value("actor.config")["hidden_size"] == "256"


def test_a_recipe_that_is_not_at_hand_tells_nothing(bridge):
    workload = bridge("--recipe qwen9_config -tp 2")
    assert workload.value("actor.tensor_parallel") == 2
    assert "qwen9_config" in workload.get("actor.model").reason
    assert "qwen9_config" in workload.get("actor.pipeline_parallel").reason
