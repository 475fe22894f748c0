"""Through what a call went: parts that are at work unnamed, and arguments within a dict."""

import subprocess
import sys

import pytest

from envdoctor.app import diagnose
from envdoctor.diagnose.passed_through import of_parts, remedy_of_parts
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts
from envdoctor.model.log import Frame, LogLine, Raised

MATRIX = load_matrix()
LINE = LogLine("run.log", 1, "")
SITE = "/opt/venv/lib/python3.11/site-packages"
SCALER = "not implemented for 'BFloat16'"


def output_of(command, cwd, program=None):
    done = subprocess.run(
        command,
        input=program,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        cwd=cwd,
        check=False,
    )
    return done.stdout


def first_of(text, tmp_path):
    log = tmp_path / "run.log"
    log.write_text(text, encoding="utf-8")
    return diagnose([str(log)], Facts(), MATRIX).traces[0]


@pytest.mark.parametrize(
    ("file", "message", "words"),
    [
        ("torch/nn/parallel/data_parallel.py", "chunk expects", "DataParallel is at work"),
        ("torch/amp/grad_scaler.py", SCALER, "Set bf16 in place of fp16"),
        ("torch/cuda/amp/grad_scaler.py", "Attempting to unscale FP16 gradients.", "float32"),
        ("torch/amp/grad_scaler.py", "No inf checks were recorded", ""),
        ("transformers/integrations/integration_utils.py", "not configured", 'report_to="none"'),
        ("transformers/trainer.py", "x", ""),
        (
            "torch/nn/modules/batchnorm.py",
            "Default process group has not been initialized, please make sure to call it.",
            "SyncBatchNorm",
        ),
        ("torch/nn/modules/linear.py", "Default process group has not been initialized", ""),
        ("torch/utils/checkpoint.py", "Expected to mark a variable ready only once.", ""),
        (
            "torch/_inductor/scheduler.py",
            "Cannot find a working triton installation.",
            "that torch's own metadata ask for",
        ),
    ],
)
def test_what_is_at_work(file, message, words):
    frames = (Frame("/x/train.py", 3, "main", ""), Frame(f"{SITE}/{file}", 1, "step", ""))
    raised = Raised("RuntimeError", message, frames, "ended", LINE, LINE, 1, 1)
    answer = f"{of_parts(raised)} {remedy_of_parts(raised)}".strip()
    assert words in answer
    assert bool(answer) == bool(words)


def test_a_breakpoint_that_was_left_in(tmp_path):
    path = tmp_path / "evaluate_it.py"
    path.write_text("def score():\n    breakpoint()\n    return 1\nscore()\n")
    trace = first_of(output_of([sys.executable, str(path)], tmp_path, ""), tmp_path)
    assert "A breakpoint was left in the program" in trace.meaning


def test_a_program_of_a_shell(tmp_path):
    program = "rows = 3\nfor row in rows:\n    pass\n"
    trace = first_of(output_of([sys.executable, "-"], tmp_path, program), tmp_path)
    assert "a program that a shell handed to Python's standard input" in trace.meaning


HANDING = """
class Model:
    def __init__(self, size):
        self.size = size
def from_pretrained(name, **kwargs):
    return build(**kwargs)
def build(**kwargs):
    return Model(3, **kwargs)
def trainer(config):
    return from_pretrained("m", **config)
"""


@pytest.mark.parametrize(
    ("call", "handed", "may_be_release"),
    [
        ('trainer({"system_prompt": "a"})', 'from_pretrained("m", **config)', False),
        ('from_pretrained("m",\n    system_prompt="a")', "return build(**kwargs)", True),
        ('from_pretrained("m", system_prompt="a")', "", False),
        ('Model(3, system_prompt="a")', "", False),
    ],
)
def test_a_key_too_many(call, handed, may_be_release, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(f"{HANDING}\n{call}\n")
    trace = first_of(output_of([sys.executable, str(path)], tmp_path), tmp_path)
    assert ("a key of what is handed on to it" in trace.finding.message) is bool(handed)
    assert handed in trace.finding.message
    assert ("other releases take" in trace.meaning) is may_be_release


#: The places of peft 0.15 and those below it, where the call of the wrapper goes on in a line that
#: a traceback does not show.
TASK = """Traceback (most recent call last):
  File "/srv/vision.py", line 224, in run
    trainer.train()
  File "{site}/transformers/trainer.py", line 3625, in compute_loss
    outputs = model(**inputs)
  File "{site}/peft/{file}", line 1379, in forward
    return self.base_model(
  File "{site}/peft/tuners/tuners_utils.py", line 188, in forward
    return self.model.forward(*args, **kwargs)
TypeError: ViTForImageClassification.forward() got an unexpected keyword argument 'input_ids'
"""


@pytest.mark.parametrize(("file", "is_task"), [("peft_model.py", True), ("mixed_model.py", False)])
def test_the_arguments_of_a_task_type(file, is_task, tmp_path):
    trace = first_of(TASK.format(site=SITE, file=file), tmp_path)
    assert ("peft hands 'input_ids' over by itself" in trace.finding.message) is is_task
    assert ("a key of what is handed on" in trace.finding.message) is not is_task
    assert ("task_type" in trace.finding.remedies[0].text) is is_task


def test_arguments_that_were_left_out(tmp_path):
    program = (
        "import argparse\nparser = argparse.ArgumentParser(prog='train.py')\n"
        "parser.add_argument('--output_dir', required=True)\nparser.parse_args()\n"
    )
    trace = first_of(output_of([sys.executable, "-c", program], tmp_path), tmp_path)
    assert trace.finding.message == (
        "The program was started without arguments that it asks for: --output_dir."
    )


def test_a_hangup_is_the_end_of_a_session(tmp_path):
    line = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 9 got signal: 1"
    assert "end of a terminal or of an ssh session" in first_of(line, tmp_path).finding.message
    line = line.replace("signal: 1", "signal: 15")
    assert "ssh session" not in first_of(line, tmp_path).finding.message


def test_what_a_program_says_of_the_reason(tmp_path):
    program = (
        "raise OSError('file has size 3, not 5\\n"
        "This is usually due to network issues while downloading. Please retry.')"
    )
    trace = first_of(output_of([sys.executable, "-c", program], tmp_path), tmp_path)
    assert "says: This is usually due to network issues while downloading." in trace.meaning


def test_checkpoints_are_reentrant_where_their_own_backward_pass_is_seen():
    message = "Expected to mark a variable ready only once. This error is caused by one of"
    place = f"{SITE}/torch/utils/checkpoint.py"
    for function, words in (("backward", "use_reentrant"), ("unpack_hook", "")):
        frames = (Frame("/x/train.py", 3, "main"), Frame(place, 321, function))
        raised = Raised("RuntimeError", message, frames, "ended", LINE, LINE, 1, 1)
        assert words in remedy_of_parts(raised)
        assert bool(remedy_of_parts(raised)) == bool(words)


def test_on_windows_torch_brings_no_triton():
    place = "C:/envs/a/lib/site-packages/torch/_inductor/scheduler.py"
    frames = (Frame("C:/x/train.py", 3, "main"), Frame(place, 5, "create_backend"))
    message = "Cannot find a working triton installation. Either the package is not installed"
    raised = Raised("TritonMissing", message, frames, "ended", LINE, LINE, 1, 1)
    assert "triton-windows" in remedy_of_parts(raised)
