"""What a report is about."""

import pytest

from envdoctor.app import judge
from envdoctor.intake.pasted_report import parse_report
from envdoctor.intake.subject_matter import Complaint, complaint_of, engines_run, hazards_not_met
from envdoctor.matrix.loader import load_matrix

NO_GPU = """PyTorch version: 2.4.0+cu121
Is CUDA available: False
GPU models and configuration: No CUDA
"""


def severities(text):
    findings = judge(parse_report(text), load_matrix())
    return [entry.severity for entry in findings if entry.code == "ED108"]


@pytest.mark.parametrize("text", ["", "it falls back to the cpu\n", "my GPU is not used\n"])
def test_a_report_of_an_environment_alone_or_of_its_gpu_misses_one(text):
    assert severities(f"{NO_GPU}{text}") == ["warning"]


def test_a_report_that_speaks_of_no_gpu_misses_none():
    text = f"{NO_GPU}nvidia-cublas-cu12==12.1.3.1\nThe tokenizer fails at a zero byte.\n"
    assert severities(text) == ["advice"]


@pytest.mark.parametrize(
    ("text", "engines"),
    [
        ("$ vllm serve Qwen/Qwen3-8B -tp 2", {"vllm"}),
        ("python -m sglang.launch_server --model-path /m", {"sglang"}),
        ("from vllm import LLM", {"vllm"}),
        ('File "/e/site-packages/sglang/srt/server.py", line 3, in main', {"sglang"}),
        ("python3 -m sglang.check_env\nvllm: 0.6.4\nsglang: 0.4.1", set()),
        ("I run vllm with flashinfer", set()),
    ],
)
def test_which_engines_commands_and_tracebacks_run(text, engines):
    assert engines_run(text) == engines


ENVIRONMENT = (
    "cuDNN version: Probably /usr/lib/x86_64-linux-gnu/libcudnn.so.9.4.0\nCUDA runtime version: 11.8\n"
    "nvidia-nvjitlink-cu12==12.4.127\nLD_LIBRARY_PATH=/usr/local/cuda/lib64\n"
)


def test_a_report_of_something_else_meets_no_hazard():
    words = (
        "How can I serve on two machines?\nThe second one never sees a single request of mine.\n"
    )
    hazards = {"ED102", "ED108", "ED204", "ED206", "ED207", "ED208", "refuses-python-"}
    hazards |= {"UnpicklingError", "ED502"}
    companions = {"torchaudio", "torchtext", "torchvision"}
    assert hazards_not_met(words + ENVIRONMENT) == hazards | companions | {"wrong-results"}
    told = hazards_not_met(f"# Two machines\n{words}{ENVIRONMENT}")
    assert told == hazards | companions | {"wrong-results", "warning"}
    chinese = "训练之后模型的回答总是重复\n换了另外一个数据集结果也是一样\n"
    assert hazards_not_met(chinese + ENVIRONMENT) == hazards | companions


def test_what_a_form_says_of_itself_shows_nothing():
    words = "The answer lies in another field.\nIt did so with the model of last week as well.\n"
    form = "# Another field\n- [x] I searched and cannot get help.\n* [ ] A report without an error may fail.\n"
    assert "warning" in hazards_not_met(form + words)
    assert "warning" not in hazards_not_met(form.replace("- [x] ", "") + words)


def test_what_tools_print_alone_hides_no_hazard():
    assert hazards_not_met(ENVIRONMENT) == set()
    assert hazards_not_met(f"Serving on two machines hangs for ever\n{ENVIRONMENT}") == set()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("the provided PTX was compiled with an unsupported toolchain.", "ED102"),
        ("The loss is another one than before the upgrade.", "wrong-results"),
        ("每次回答都不一致", "wrong-results"),
        ("RuntimeError: Error compiling objects for extension", "ED206"),
        ("cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH", "ED207"),
        ("undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12", "ED208"),
        ("RuntimeError: No CUDA GPUs are available", "ED108"),
        ("CUDA compiler and CUDA toolkit headers are of different minor releases", "ED204"),
        ("Dynamo is not supported on Python 3.12+", "refuses-python-"),
        ("model = torch.compile(model)", "refuses-python-"),
        ("It ends with a bus error after an hour.", "ED502"),
        ("docker run --ipc=host image", "ED502"),
        ("The server crashes.", "warning"),
        ("Are these two compatible?", "warning"),
        ("服务启动失败", "warning"),
        ("RuntimeError: operator torchvision::nms does not exist", "torchvision"),
        ('File "/e/site-packages/torchaudio/__init__.py", line 1, in <module>', "torchaudio"),
    ],
)
def test_a_hazard_that_was_met_shows(line, code):
    words = (
        "# The server\nI start the server as always\nand it stops with this in the log of today\n"
    )
    assert code not in hazards_not_met(f"{words}{line}\n{ENVIRONMENT}")


LISTED = "\n\n```\nvllm 0.11.0\nray==2.53.0\nimport deepspeed\n```\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("# The newest pyarrow breaks our datasets", Complaint({"pyarrow", "datasets"}, True)),
        (
            "# It ends with AttributeError: 'FastMLP' object has no attribute 'a'",
            Complaint((), True),
        ),
        # The title says nothing of what it is about, or there is none.
        ("# The training hangs", Complaint((), False)),
        ("# It hangs\n\nWe train with trl on the whole node.", Complaint({"trl"}, False)),
        ("The newest pyarrow breaks our datasets", Complaint()),
        ("", Complaint()),
    ],
)
def test_what_a_report_complains_of(text, complaint):
    told = complaint_of(text + LISTED)
    assert (set(told.distributions), told.is_specific) == (set(complaint[0]), complaint[1])
