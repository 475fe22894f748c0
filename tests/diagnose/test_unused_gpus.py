"""Memory that ran out on the one GPU that an engine used of several."""

import pytest

from envdoctor.app import diagnose
from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix

MATRIX = load_matrix()

OUT = (
    "Traceback (most recent call last):\n"
    '  File "/v/site-packages/sglang/srt/model_runner.py", line 9, in load_model\n'
    "    self.model = model_class(config=hf_config)\n"
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB. GPU 0 has a "
    "total capacity of 47.50 GiB of which 12.00 MiB is free. Of the allocated memory 46.90 GiB is "
    "allocated by PyTorch, and 10.00 MiB is reserved by PyTorch but unallocated.\n"
)
START = "python -m sglang.launch_server --model-path org/Model-34B"
SEEN = 'CUDA_VISIBLE_DEVICES="0,1,2"'


def _said(tmp_path, text):
    log = tmp_path / "run.log"
    log.write_text(text, encoding="utf-8")
    traces = diagnose([str(log)], parse_report(text, MATRIX.package), MATRIX).traces
    return next(trace.finding for trace in traces if trace.finding.kind == "gpu-oom")


@pytest.mark.parametrize(
    ("start", "option"),
    [
        (f"{SEEN} {START}", "--tp-size 2"),
        (f"{SEEN} vllm serve org/Model-34B", "--tensor-parallel-size 2"),
        ("export CUDA_VISIBLE_DEVICES=2,3\nlmdeploy serve api_server org/Model-34B", "--tp 2"),
    ],
)
def test_the_others_are_named_with_the_option_that_uses_them(tmp_path, start, option):
    """Of three GPUs two are offered: heads divide by it."""
    finding = _said(tmp_path, f"{start}\n{OUT}")
    assert "GPUs are visible, and one is used" in finding.message
    assert finding.remedies[0].commands == (option,)


@pytest.mark.parametrize(
    "text",
    [
        f"{SEEN} {START} --tp 2\n{OUT}",  # spread already
        f"{SEEN} {START}\nserver_args=ServerArgs(tp_size=2)\n{OUT}",
        f"CUDA_VISIBLE_DEVICES=0 {START}\n{OUT}",  # there is no other
        f"{START}\n{OUT}",  # how many there are is not known
        f"{SEEN} python run.py\n{OUT}",  # what starts is no engine with such a default
        f"{SEEN} {START}\n{OUT.replace('GPU 0', 'GPU 2')}",  # another one is used, too
        f"{SEEN} {START}\n{SEEN} vllm serve org/Model-34B\n{OUT}",  # whose it is is not known
    ],
)
def test_nothing_is_said_where_the_model_may_be_spread(tmp_path, text):
    assert "and one is used" not in _said(tmp_path, text).message
