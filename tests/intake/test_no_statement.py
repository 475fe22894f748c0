"""Lines that state nothing of an environment, and those that do in the same words."""

import pytest

from envdoctor.intake.no_statement import states_nothing
from envdoctor.intake.pasted_report import parse_report


@pytest.mark.parametrize(
    "line",
    [
        "PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)",
        "GPU0    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID",
        "Vulnerability Spectre v2: Mitigation; Enhanced IBRS, IBPB conditional",
        "NUMA node1 CPU(s):    16-31,144-159",
        "Flags:                fpu vme de pse sse4_1 avx2",
        'File "/x/site-packages/vllm/engine.py", line 135, in apply',
        "[rank0]: RuntimeError: CUDA error: no kernel image is available",
        "[Bug]: ModuleNotFoundError: No module named 'vllm._C'",
        "/x/vllm/__init__.py:5: RuntimeWarning: Failed to read commit hash:",
        "![image](https://github.com/user-attachments/assets/12)",
        "This may be related to #8096 @somebody",
        "I searched and found a [discussion](https://example.org/a/1) with the same error: none",
        "def multi_turn(s, question_1, question_2):",
        "response = client.chat.completions.create(",
        "if chunk.choices[0].delta.content is not None:",
        "python3 -m sglang.check_env",
        "Hello, and thank you for this project",
        "time=2025-10-14T21:18:01.270+02:00 level=INFO source=routes.go:1481 msg=listening",
        "llm_load_print_meta: EOT token        = 128009 '<|eot_id|>'",
        "[+] Running 21/21",
        "-rw-rw-r-- 1 a a 2471677246 Dec  8 20:40 model.pth",
        "GPU Memory Temperature: Tile 0: avg: N/A, min: N/A, max: N/A, current: N/A",
        "fpu vme de pse tsc msr pae mce cx8 apic sep sse4_1 avx2",
        "{'loss': 0.8026, 'grad_norm': 17.79, 'learning_rate': 1.5e-05, 'epoch': 0.05}",
        "Iter 000100/100000. train loss : 4.211. lr : 0.00000. ETA : 04h16min.",
        "trainable params: 18,882,560 || all params: 8,607,498,496 || trainable%: 0.2194%",
        "Get:5 http://security.ubuntu.com/ubuntu jammy-security/restricted amd64 Packages [5 kB]",
        "╰─> [26 lines of output]",
        "import flash_attn_2_cuda as flash_attn_gpu",
        "A new release of pip is available: 24.1.2 -> 25.0.1",
        "128001,",
    ],
)
def test_what_states_nothing(line):
    assert states_nothing(line)


@pytest.mark.parametrize(
    "line",
    [
        "max_steps = 1500,",
        "learning_rate: 2e-5",
        '"num_hidden_layers": 36',
        "ROCm userspace: 7.2.4",
        "with vllm 0.6.1 and the model of last week it works:",
        "Issue: the older release 0.4.1 works",
        "python -m vllm.entrypoints.openai.api_server --tensor-parallel-size 8",
        "the error is gone after 0.8.5 (see #1234)",
        "for information, my box is running 3090 GPUs:",
        "driver: 550.54",
        "qwen2.5-instruct-7B",
    ],
)
def test_what_may_state_something(line):
    assert not states_nothing(line)


def test_what_prose_tells_was_understood():
    """Releases of sentences are read behind the lines, from the whole text."""
    facts = parse_report("I use peft 0.18.0 here and it fails.\nfrob level: 3\n")
    assert facts.version_of("peft") == "0.18.0"
    assert facts.value("report.unread") == ("2: frob level: 3",)
    assert facts.value("report.lines") == 2


def test_the_same_value_of_the_next_device_is_no_other_statement():
    facts = parse_report("CUDA Driver Version: 535.104.05\n535.104.05\n535.104.05\n")
    assert facts.value("report.unread") == ()


def test_many_alike_are_counted_or_not_as_the_first():
    topology = "".join(f"NUMA node{n} CPU(s): {n}-{n}\n" for n in range(9))
    frob = "".join(f"frob level {n}: {n}\n" for n in range(9))
    assert parse_report(f"torch 2.6.0\n{topology}").value("report.unread") == ()
    assert len(parse_report(f"torch 2.6.0\n{frob}").value("report.unread")) == 9


def test_the_times_of_a_build_stand_before_what_is_read():
    text = "\n".join(
        f"{seconds} {line}"
        for seconds, line in [
            ("54.11", "ERROR: Cannot install x"),
            ("54.11", "torch==2.5.1"),
            ("54.12", "numpy==1.26.4"),
            ("54.43", "peft==0.14.0"),
        ]
    )
    facts = parse_report(text)
    assert {name: facts.version_of(name) for name in ("torch", "numpy", "peft")} == {
        "torch": "2.5.1",
        "numpy": "1.26.4",
        "peft": "0.14.0",
    }
    assert parse_report("12.4 CUDA\n2.5.1 torch").version_of("torch") == "2.5.1"
