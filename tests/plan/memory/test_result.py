"""What is sure of a plan, and what is not."""

from __future__ import annotations

import pytest

from envdoctor.app import plan
from envdoctor.sources import Sources, gather

from .conftest import RUNS

MACHINE = ["memory=500GB", "gpu=A100-SXM4-80GB:8", "deepspeed==0.13.2"]


def host_finding(tmp_path, matrix, option=""):
    empty = tmp_path / "facts.json"
    empty.write_text('{"schema_version": 1, "facts": {}}')
    (facts,) = gather(Sources(facts=[str(empty)], assume=MACHINE))
    script = tmp_path / "run.sh"
    text = (RUNS / "openrlhf_187.sh").read_text()
    script.write_text(text.replace(" --pretrain ", f" {option} --pretrain ", 1))
    result, _ = plan([str(script)], facts, matrix, framework="openrlhf==0.1.10")
    return next(finding for finding in result.findings if finding.code == "ED601")


def test_a_setting_that_nobody_knows_may_make_it_smaller(tmp_path, matrix):
    assert host_finding(tmp_path, matrix).severity == "error"
    doubted = host_finding(tmp_path, matrix, "--our_own_sharding 4")
    assert doubted.severity == "warning"
    assert "It may take less by settings that are not known here: --our_own_sharding." in (
        doubted.message
    )


_LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
_SFT = f"-m trl.scripts.sft --model_name_or_path {_LLAMA} --max_length 2048 --bf16"


def verdicts(tmp_path, matrix, text, changes=()):
    empty = tmp_path / "facts.json"
    empty.write_text('{"schema_version": 1, "facts": {}}')
    (facts,) = gather(Sources(facts=[str(empty)], assume=["memory=2TB", "gpu=T4:8"]))
    script = tmp_path / "run.sh"
    script.write_text(text + "\n")
    made = plan([str(script)], facts, matrix, changes=changes)[0].plan
    return {pool.verdict for pool in made.pools} | ({made.cache.verdict} if made.cache else set())


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("vllm serve {model} -tp $(nvidia-smi -L | wc -l)", "vllm serve {model} -tp 1"),
        ("vllm serve {model} --quantization $(cat kind)", "vllm serve {model} --dtype bfloat16"),
        (
            "accelerate launch --use_fsdp --num_machines $(nodes) --num_processes 8 {sft}",
            "accelerate launch --use_fsdp --num_machines 1 --num_processes 8 {sft}",
        ),
    ],
)
def test_what_is_given_by_a_command_may_make_it_smaller(tmp_path, matrix, text, known):
    parts = {"model": _LLAMA, "sft": _SFT}
    assert "does not fit" in verdicts(tmp_path, matrix, known.format(**parts))
    assert "does not fit" not in verdicts(tmp_path, matrix, text.format(**parts))


def test_a_warning_on_the_cache_names_what_is_not_known(tmp_path, matrix):
    empty = tmp_path / "facts.json"
    empty.write_text('{"schema_version": 1, "facts": {}}')
    (facts,) = gather(Sources(facts=[str(empty)], assume=["gpu=T4:8"]))
    script = tmp_path / "run.sh"
    script.write_text(f"vllm serve {_LLAMA} -tp $(nvidia-smi -L | wc -l) --max-model-len 8192\n")
    findings = plan([str(script)], facts, matrix)[0].findings
    finding = next(finding for finding in findings if finding.code == "ED603")
    assert finding.severity == "warning"
    assert "settings that are not known here: --tensor-parallel-size" in finding.message


def test_what_is_stated_of_an_unclear_setting_makes_it_sure(tmp_path, matrix):
    text = f"vllm serve {_LLAMA} -tp $(nvidia-smi -L | wc -l)"
    assert "does not fit" in verdicts(tmp_path, matrix, text, ["rollout.tensor_parallel=1"])
