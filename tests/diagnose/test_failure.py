"""What followed from what, and what facts say of it."""

from __future__ import annotations

import pytest

from envdoctor.app import check
from envdoctor.matrix.loader import load_matrix

from .traces import roots

CGROUP = (
    "[Fri Nov 21 10:05:00 2025] Memory cgroup out of memory: Killed process 9187 "
    "(ray::WorkerDict) total-vm:2kB, anon-rss:16736460kB\n"
)
DIED = (
    "2025-11-21 10:05:03,000 ERROR ray.exceptions.ActorDiedError: The actor died unexpectedly "
    "before finishing this task.\n"
)
GUESS = (
    "Worker unexpectedly exits with a connection error code 2. End of file. There are some "
    "potential root causes. "
    "(1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop "
    "--force is called. "
    "(3) The worker is crashed unexpectedly due to SIGSEGV or other unexpected errors.\n"
)
TIMEOUT = (
    "[rank3]:[E1121 10:15:21.426415540 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught "
    "collective operation timeout: "
    "WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
    "600081 milliseconds before timing out.\n"
)


# --------------------------------------------------------------------------------------------------
# what followed from what


def test_the_first_cause_is_the_root_and_the_rest_hangs_under_it(said):
    found = said(CGROUP + DIED + GUESS + TIMEOUT)
    assert roots(found) == [("host-memory", "host-oom", "established")]
    assert len(found.traces) == 4
    assert found.exit_code == 1


def test_the_kernel_log_may_be_a_file_of_its_own_in_any_order(said):
    assert (
        roots(said(DIED + GUESS, CGROUP))
        == roots(said(CGROUP, DIED + GUESS))
        == [("host-memory", "host-oom", "established")]
    )


def test_rays_guesses_are_no_evidence(said):
    found = said(DIED + GUESS)
    assert "segmentation-fault" not in {trace.finding.subject for trace in found.traces}
    assert {certainty for _, _, certainty in roots(found)} == {"candidate"}
    assert all(
        trace.finding.verdict == "undetermined"
        for trace in found.traces
        if trace.finding.caused_by is None
    )
    assert any(
        suspect.kind == "host-oom" and suspect.collect
        for trace in found.traces
        for suspect in trace.suspects
    )


def test_a_warning_at_the_start_does_not_take_the_blame(said):
    found = said(
        "ImportError: libfoo.so.3: cannot open shared object file: No such file or directory\n"
        + CGROUP
        + DIED
    )
    assert roots(found)[0] == ("host-memory", "host-oom", "established")


@pytest.mark.parametrize(
    "text",
    [  # vllm 0.11.0, DeepSpeed 0.16.0 and sglang 0.5.9 go on after these
        "FooForCausalLM has no vLLM implementation, falling back to Transformers implementation.",
        (
            "max_model_len (9) is greater than the derived max_model_len (x=8 or y=9). This may "
            "lead "
            "to CUDA errors. Make sure the value is correct"
        ),
        (
            "Installed CUDA version 12.8 does not match the version torch was compiled with "
            "11.8.Detected `DS_SKIP_CUDA_CHECK=1`: Allowing this"
        ),
        "TokenizerManager watchdog timeout (self.watchdog_timeout=300, self.soft=True)",
    ],
)
def test_what_a_program_only_warns_of_is_no_cause(said, text):
    assert roots(said(f"{text}\n")) == []


def test_what_a_warning_goes_on_with_is_one(said):
    """The words of Python's warnings module, of which the message has two lines."""
    text = "/x/vllm/connections.py:8: RuntimeWarning: Failed to read commit hash:\n"
    found = said(f"{text}No module named 'vllm._version'\n  from vllm.version import x\n")
    assert {trace.certainty for trace in found.traces} <= {"candidate"}


def test_a_title_and_its_traceback_tell_of_one_library(said):
    symbol = "undefined symbol: _ZNK5torch8autograd4Node4nameB5cxx11Ev"
    library = "intel_extension_for_pytorch/lib/libintel-ext-pt-gpu.so"
    diagnosis = said(
        f"libintel-ext-pt-gpu.so: {symbol}\n"
        f"ImportError: /opt/lib/python3.11/site-packages/{library}: {symbol}\n"
    )
    (trace,) = [entry for entry in diagnosis.traces if entry.role == "cause"]
    assert library in trace.finding.message
    assert trace.times == 2


def test_nothing_found_says_so(said):
    found = said("INFO all is well\n" * 10)
    assert (found.traces, found.exit_code) == ((), 0)
    assert found.looked_for > 200


# --------------------------------------------------------------------------------------------------
# joined with facts


def test_a_floating_point_exception_on_an_h20_with_old_cublas(said):
    text = "Floating point exception (core dumped)\n"
    assert roots(said(text))[0][2] == "candidate"
    found = said(text, assume=["gpu=H20:8", "nvidia-cublas-cu12==12.1.3.1"])
    assert roots(found)[0] == ("nvidia-cublas-cu12", "too-old", "established")


def test_a_floating_point_exception_elsewhere_is_not_blamed_on_cublas(said):
    found = said(
        "Floating point exception (core dumped)\n",
        assume=["gpu=A100:8", "nvidia-cublas-cu12==12.1.3.1"],
    )
    assert not [
        suspect
        for trace in found.traces
        for suspect in trace.suspects
        if "cublas" in suspect.component
    ]
    assert "nvidia-cublas-cu12" not in [component for component, _, _ in roots(found)]


def test_a_bus_error_with_a_small_shm(said):
    assert roots(said("Bus error (core dumped)\n", assume=["shm=64MiB"]))[0][:2] == (
        "/dev/shm",
        "shm-too-small",
    )
    assert roots(said("Bus error (core dumped)\n"))[0][2] == "candidate"


def test_what_is_left_of_two_causes_waits_for_its_own_sign(said):
    """That a GPU is no H20 is no sign that the kernel killed a process."""
    text = "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR\n"
    for assume in ((), ("gpu=H100",)):
        assert {certainty for _, _, certainty in roots(said(text, assume=assume))} == {"candidate"}
    kernel = "memory: usage 1kB\nMemory cgroup out of memory: Killed process 7 (python)\n"
    assert "host-oom" in {kind for _, kind, _ in roots(said(kernel + text, assume=("gpu=H100",)))}


def test_a_release_that_computes_wrongly_raises_nothing(said):
    """The row is about the package that lacks the name, and no reason why it does."""
    text = "ImportError: cannot import name 'GRPOConfig' from 'trl'\n"
    found = said(text, assume=("trl==0.13.0", "transformers==4.46.3", "torch==2.5.1"))
    row = "transformers-4.46-gradient-accumulation"
    assert row in {entry.row for entry in check(found.nodes[0], load_matrix()).findings}
    assert row not in {trace.finding.row for trace in found.traces}
    assert "0.14.0" in found.traces[0].finding.message


def test_a_symptom_of_a_row_that_the_facts_refute_is_not_claimed(said):
    text = (
        "ImportError: cannot import name 'ForkingPickler' from 'torch.multiprocessing.reductions'\n"
    )
    rows = {
        name
        for trace in said(text).traces
        for name in (
            trace.finding.row,
            *trace.finding.rows,
            *(suspect.row for suspect in trace.suspects),
        )
    }
    assert any("tensordict" in name for name in rows)


def traceback_of(package, last):
    """A traceback as Python prints it, through the code of a package."""
    frame = f'  File "/venv/lib/python3.12/site-packages/{package}/x.py", line 1, in <module>\n'
    return (
        f'Traceback (most recent call last):\n  File "run.py", line 1, in <module>\n{frame}{last}\n'
    )


def test_what_any_program_can_print_is_a_rows_only_where_its_packages_are_named(said):
    last = "ImportError: cannot import name 'clear_device_cache' from 'accelerate.utils.memory'"
    row = "peft-0.15-accelerate-0.32"
    assert row in {
        trace.finding.row
        for trace in said(traceback_of("peft", last)).traces
        if trace.certainty == "likely"
    }
    other = said(traceback_of("somebodys", last))
    assert not [trace for trace in other.traces if trace.finding.row]
    assert row in {
        suspect.row
        for trace in other.traces
        for suspect in trace.suspects
        if suspect.confidence == "low"
    }


def test_a_symptom_of_several_rows_claims_none_of_them(said):
    found = said("ImportError: [sgl_kernel] CRITICAL: Could not load any common_ops library!\n")
    (trace,) = found.traces
    assert trace.certainty == "candidate"
    assert len({suspect.row for suspect in trace.suspects}) > 1


def test_a_library_that_tensorflow_looks_for_is_no_fault_of_torchaudio(said):
    # the words are those of tensorflow/stream_executor/platform/default/dso_loader.cc in 2.10
    library = "libcudart.so.11.0"
    found = said(
        "2026-11-22 10:00:01.123456: W "
        "tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic "
        f"library '{library}'; "
        f"dlerror: {library}: cannot open shared object file: No such file or directory\n"
    )
    assert all(trace.certainty == "candidate" for trace in found.traces)


def test_what_its_launcher_calls_failed_did_not_work_on(said):
    """Other ranks print on for a while: that the program ended with a code outweighs it."""
    raised = (
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/app/train.py", line 9, in <module>\n'
        "[rank1]:     train(sizes)\n"
        "[rank1]: IndexError: list index out of range\n"
    )
    others = "".join(f"processing image {number} of them\n" for number in range(12))
    ended = "[ERROR] [launch.py:325:sigkill_handler] ['train.py'] exits with return code = 1\n"
    assert said(raised + others).traces == ()
    root = said(raised + others + ended).traces[0]
    assert root.certainty == "established"
    assert "IndexError: list index out of range" in root.finding.message


def test_who_waits_in_vain_fails_by_what_failed_before(said):
    engine = (
        "Process EngineCore_0:\n"
        "Traceback (most recent call last):\n"
        '  File "/usr/lib/python3.12/multiprocessing/process.py", line 314, in _bootstrap\n'
        "    self.run()\n"
        "OSError: no such adapter: base\n"
    )
    client = (
        "Traceback (most recent call last):\n"
        '  File "/app/serve.py", line 7, in <module>\n'
        "    main()\n"
        "TimeoutError: Timed out waiting for engines to send initial message\n"
    )
    assert "no such adapter" in said(engine + client).traces[0].finding.message
    assert "Timed out waiting" in said(client).traces[0].finding.message


def test_what_a_command_said_stands_with_the_exception(said):
    head = (
        'Traceback (most recent call last):\n  File "/opt/own.py", line 3, in <module>\n    run()\n'
    )
    text = (
        f"{head}RuntimeError: cannot fetch it.\nCommand: git fetch\nstderr: fatal: no such host\n"
    )
    assert "cannot fetch it. (fatal: no such host)" in said(text).traces[0].finding.message


def test_the_rest_of_a_bar_is_no_part_of_a_message(said):
    head = (
        'Traceback (most recent call last):\n  File "/opt/own.py", line 3, in <module>\n    run()\n'
    )
    text = f"{head}RuntimeError: File a.pt cannot be opened. | 2/24 [00:24<04:33, 12.42s/it]\n"
    message = said(text).traces[0].finding.message
    assert "cannot be opened" in message
    assert "/24" not in message
