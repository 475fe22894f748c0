"""Scripts of one's own: which of their options name the model and bound a text."""

import pytest

from envdoctor.plan.frameworks import read_workload
from envdoctor.plan.frameworks.own_script import ScriptOptions, script_options

#: As people write them: the arguments in dataclasses, one of them of a trainer's own.
SCRIPT = """
from dataclasses import dataclass, field
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer

@dataclass
class ScriptConfig:
    base: str = field(default="Qwen/Qwen2.5-7B-Instruct")
    window: int = field(default=2048, metadata={"help": "tokens"})
    judge: str = "Qwen/Qwen2.5-72B-Instruct"

@dataclass
class Arguments(transformers.TrainingArguments):
    gradient_checkpointing: bool = True
    cache: str = None

def train():
    parser = transformers.HfArgumentParser((ScriptConfig, Arguments))
    config, args = parser.parse_args_into_dataclasses()
    model = AutoModelForCausalLM.from_pretrained(config.base, cache_dir=args.cache)
    tokenizer = AutoTokenizer.from_pretrained(config.judge, model_max_length=config.window)
    Trainer(model, args).train()
"""


def test_what_the_code_loads_and_cuts_names_the_options() -> None:
    options = script_options(SCRIPT)
    assert (options.model, options.length) == ("base", "window")
    assert options.defaults["window"] == 2048
    assert options.defaults["gradient_checkpointing"] is True


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("(config.base,", "(config.base if x else config.judge,", ("", "window")),
        ("(config.base,", '("Qwen/Qwen3-8B",', ("", "window")),
        ("(config.base,", "(other.base,", ("base", "window")),
        ("(config.base,", "(config.unheard,", ("", "window")),
        ("AutoModelForCausalLM.from", "PeftModel.from", ("", "window")),
        ("model_max_length=config.window", "use_fast=True", ("base", "")),
        ("    Trainer(", "    args.max_seq_length = args.cache\n    Trainer(", ("base", "")),
        ("HfArgumentParser", "ArgumentParser", ("", "")),
        ("(config.base,", "(config.base", ("", "")),  # no Python
    ],
)
def test_what_is_open_stays_open(old: str, new: str, expected: object) -> None:
    assert old in SCRIPT
    options = script_options(SCRIPT.replace(old, new))
    assert (options.model, options.length) == expected


def test_two_models_that_are_loaded_name_none() -> None:
    text = SCRIPT.replace(
        "    Trainer(", "    AutoModel.from_pretrained(config.judge)\n    Trainer("
    )
    assert not script_options(text).model


@pytest.mark.parametrize("text", ["", "(" * 5000, "\0", "class A: pass\nHfArgumentParser(A)\n"])
def test_other_texts_tell_nothing(text: str) -> None:
    assert script_options(text) == ScriptOptions()


@pytest.mark.parametrize(
    ("words", "model", "length"),
    [
        ("--base Qwen/Qwen3-4B --window 512", "Qwen/Qwen3-4B", 512),
        ("--bf16", "Qwen/Qwen2.5-7B-Instruct", 2048),
    ],
)
def test_a_run_is_read_by_the_options_of_its_script(tmp_path, words, model, length) -> None:
    (tmp_path / "mine.py").write_text(SCRIPT.replace("Trainer(model, args)", "TrainingArguments()"))
    script = tmp_path / "run.sh"
    script.write_text(f"torchrun --nproc-per-node 4 mine.py {words} --output_dir out\n")
    workload = read_workload([str(script)], environ={})
    assert workload.value("framework") == "transformers"
    assert workload.value("actor.model") == model
    assert workload.value("data.max_prompt_length") == length
    assert workload.value("actor.gradient_checkpointing") is True
    assert workload.unread == ("the code of mine.py",)
