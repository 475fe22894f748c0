"""Files and commands made to hurt: each is answered, with an error or a plan, in seconds."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import List

import pytest

from envdoctor.errors import InputError
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts
from envdoctor.plan.frameworks import read_workload
from envdoctor.plan.memory.result import plan_run

_FILES = {
    "cyclic.yaml": b"a: &a\n  b: *a\nmodel_name_or_path: x\n",
    "merged.yaml": b"x: &x {<<: *x}\n",
    "laughs.yaml": b"a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(
        b"a%d: &a%d [%s]\n" % (i, i, b",".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, 10)
    ),
    "deep.yaml": b"a: " + b"[" * 5000 + b"]" * 5000,
    "levels.yaml": b"".join(b" " * i + b"k%d:\n" % i for i in range(1500)),
    "deep.json": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "deep.toml": b"a = " + b"[" * 3000 + b"]" * 3000,
    "parts.toml": b".".join([b"a"] * 5000) + b" = 1\n",
    "wide.yaml": b"".join(b"key%d: %d\n" % (i, i) for i in range(150_000)),
    "latin.yaml": b"model_name_or_path: \xff\xfe\xe9\nstage: sft\nfinetuning_type: lora\n",
    "wide_text.yaml": "stage: sft\nmodel_name_or_path: x\n".encode("utf-16"),
    "object.yaml": b'stage: !!python/object/apply:os.system ["touch made"]\n',
    "bytes.sh": bytes(range(256)) * 100,
    "latin.sh": b"vllm serve Qwen/Qwen2.5-7B \xff\xfe --max-model-len 8192 # caf\xe9\n",
    "nested.sh": b"$(" * 3000 + b"x" + b")" * 3000,
    "open.sh": b'"' * 100_001 + b"\nvllm serve x\n",
    "doubled.sh": b"A=x\n" + b"A=$A$A\n" * 60 + b"vllm serve $A\n",
    "braces.sh": b"vllm serve " + b"{a,b}" * 30,
    "itself.sh": b"f() { f; }; f; . ./itself.sh; bash itself.sh; vllm serve Qwen/Qwen2.5-7B\n",
    "endless.sh": b"while true; do true; done; vllm serve Qwen/Qwen2.5-7B\n",
    "runs.sh": b"".join(b"torchrun t%d.py --output_dir x\n" % i for i in range(500)),
    "numbers.sh": b"vllm serve Qwen/Qwen2.5-7B --max-model-len "
    + b"9" * 5000
    + b" -tp "
    + b"9" * 400
    + b" --gpu-memory-utilization 1e999 --swap-space -1e308 --max-num-seqs 0 --block-size nan\n",
    "nothing.sh": b"srun -N0 -n0 torchrun --nproc_per_node 0 --nnodes 0 pretrain_gpt.py "
    b"--tensor-model-parallel-size 0 --pipeline-model-parallel-size 0 --num-layers 0 "
    b"--hidden-size 0 "
    b"--num-attention-heads 0 --seq-length 0 --micro-batch-size 0 --expert-model-parallel-size 0\n",
    "hosts.sh": b"mpirun -np 0 -npernode 0 -hostfile hosts python pretrain_gpt.py "
    b"--tensor-model-parallel-size 2 --num-layers 4 --hidden-size 512 --num-attention-heads 8 "
    b"--seq-length 1024 --micro-batch-size 1\n",
    "ranks.yaml": b"stage: sft\nfinetuning_type: full\nuse_galore: true\ngalore_rank: 99999999999\n"
    b"model_name_or_path: Qwen/Qwen2.5-7B\ncutoff_len: 99999999999999999999\ntemplate: x\n"
    b"per_device_train_batch_size: 1.0e+300\n",
    "kinds.yaml": b"stage: 2001-01-01\nmodel_name_or_path: 0x1F\ncutoff_len: .nan\n"
    b"per_device_train_batch_size: .inf\nfinetuning_type: {a: b}\nlora_rank: [1, 2]\ntemplate: x\n",
}  # fmt: skip
_MOST_SECONDS = 10  # on a machine that does other work


def _answered(sources: List[str]) -> str:
    started = time.process_time()
    try:
        workload = read_workload(sources, environ={})
        plan_run(workload, Facts(), load_matrix())
        answer = ""
    except InputError as error:
        answer = str(error)
    assert time.process_time() - started < _MOST_SECONDS
    return answer


@pytest.mark.parametrize("name", _FILES)
def test_a_file_that_is_made_to_hurt_is_answered(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(_FILES[name])
    answer = _answered([name])
    assert not answer or answer.startswith(name)
    assert len(answer) < 1000
    assert not (tmp_path / "made").exists()


def test_links_in_a_circle_pipes_and_devices_are_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.yaml").symlink_to("two.yaml")
    (tmp_path / "two.yaml").symlink_to("one.yaml")
    (tmp_path / "self").symlink_to(".")
    os.mkfifo(tmp_path / "pipe.yaml")
    for name in ("one.yaml", "pipe.yaml", "self", "self/self/none.yaml"):
        assert _answered([name])
    script = tmp_path / "run.sh"
    for named in ("one.yaml", "pipe.yaml", "/dev/zero", "self/self/one.yaml"):
        script.write_text(
            f"accelerate launch --config_file {named} -m trl.scripts.sft --config {named} "
            f"--model_name_or_path {named}\n"
        )
        _answered([str(script)])


def test_a_hundred_thousand_options_are_too_many_words_for_a_command() -> None:
    options = [f"--option{number}" for number in range(100_000)]
    assert "at most" in _answered(["srun", *options, "vllm", "serve", "x"])
