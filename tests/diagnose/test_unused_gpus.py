"""An engine that fills one GPU while others are visible: said of a start that ran out of memory,
and of none whose command or log spreads the model.
"""

import pytest

from envdoctor.app import check
from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix

ENGINES = {
    "vllm serve acme/large": "--tensor-parallel-size 2",
    "python -m vllm.entrypoints.openai.api_server --model acme/large": "--tensor-parallel-size 2",
    "python3 -m sglang.launch_server --model-path acme/large": "--tp-size 2",
    "lmdeploy serve api_server acme/large": "--tp 2",
    "python -m fastchat.serve.model_worker --model-path acme/large": "--num-gpus 2",
}
SERVE = "vllm serve acme/large"
START = """Traceback (most recent call last):
  File "/v/lib/python3.11/site-packages/vllm/worker/model_runner.py", line 900, in load_model
    self.model = get_model(config)
"""
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 500.00 MiB. GPU {gpu} has a "
    "total capacity of 23.65 GiB of which 90.00 MiB is free. Including non-PyTorch memory, this "
    "process has 23.50 GiB memory in use."
)
MATRIX = load_matrix()
TWO = "GPU 0: NVIDIA L4\nGPU 1: NVIDIA L4"


@pytest.fixture
def said(tmp_path):
    """The finding about memory that a report leads to."""

    def run(command=SERVE, gpus=TWO, gpu=0, more=""):
        text = f"It does not start\n\n{gpus}\n\n```\n{command}\n```\n{more}\n\n{START}{OOM.format(gpu=gpu)}\n"
        path = tmp_path / "report.txt"
        path.write_text(text, encoding="utf-8")
        findings = check(parse_report(text), MATRIX, logs=[str(path)]).findings
        return next(one for one in findings if one.code == "ED695")

    return run


@pytest.mark.parametrize("command", ENGINES)
def test_a_second_gpu_is_not_used(said, command):
    finding = said(command)
    assert "2 GPUs are visible, and one is used" in finding.message
    assert finding.remedies[0].commands == (ENGINES[command],)


@pytest.mark.parametrize(
    "case",
    [
        {"command": f"{SERVE} --tensor-parallel-size 2"},
        {"command": f"CUDA_VISIBLE_DEVICES=0 {SERVE}"},
        {"command": "text-generation-launcher --model-id acme/large"},
        {"gpus": "GPU 0: NVIDIA L4"},
        {"gpu": 1},
        {"more": "INFO config: pipeline_parallel_size=2, tensor_parallel_size=1"},
    ],
)
def test_what_spreads_the_model_or_sees_one_gpu_is_not_told_so(said, case):
    assert "one is used" not in said(**case).message


def test_a_logged_size_of_one_is_no_spread(said):
    assert "one is used" in said(more="INFO config: tensor_parallel_size=1").message
