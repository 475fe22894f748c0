"""Sentences in which programs say what is wrong, in words that differ from program to program."""

from __future__ import annotations

import pytest

from envdoctor.app import check
from envdoctor.model.facts import Facts

from .traces import roots


def subjects(found):
    return [trace.finding.subject for trace in found.traces if trace.finding.caused_by is None]


@pytest.mark.parametrize(
    ("line", "component", "kind"),
    [
        ("ImportError: Please install einops to use this model.", "einops", "missing"),
        (
            "ImportError: sentencepiece is required for the slow tokenizer of this model",
            "sentencepiece",
            "missing",
        ),
        (
            "ERROR 01-02 03:04:05 Could not load the video: run `pip install decord` first",
            "decord",
            "missing",
        ),
        ("`librosa` is required to read audio files.", "librosa", "missing"),
        (
            "vllm: error: argument subcommand: invalid choice: 'bench' (choose from 'serve')",
            "vllm",
            "version-mismatch",
        ),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: 'ninja'",
            "command",
            "missing",
        ),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: 'data/train.jsonl'",
            "files",
            "missing",
        ),
        ("OSError: Folder '/models/none' does not exist", "files", "missing"),
        (
            (
                "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='mirror.example', "
                "port=443): Max retries exceeded with url: /a (Caused by NewConnectionError('<x>: "
                "Failed to establish a new connection: [Errno 113] No route to host'))"
            ),
            "network",
            "missing",
        ),
        ("    PyTorch 2.5.1+cu121 (you have 2.7.0+cu128)", "xformers", "abi-mismatch"),
        (
            "OpenBLAS blas_thread_init: pthread_create: Resource temporarily unavailable",
            "pids",
            "too-small",
        ),
        (
            "session-3.scope: A process of this unit has been killed by the OOM killer.",
            "host-memory",
            "host-oom",
        ),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "gpu", "hardware-fault"),
        (
            "ptxas error : Feature 'bf16 arithmetic' requires .target sm_80 or higher",
            "gpu",
            "arch-missing",
        ),
        ("it stopped: the root disk is full", "disk", "too-small"),
        (
            "AttributeError: module 'transformer_engine' has no attribute 'pytorch'",
            "transformer-engine",
            "missing",
        ),
        ('    so_path = next(so_dir.glob(f"*.{extension}"))', "transformer-engine", "missing"),
    ],
)
def test_what_is_wrong(said, line, component, kind):
    assert (component, kind) in [(name, is_kind) for name, is_kind, _ in roots(said(f"{line}\n"))]


@pytest.mark.parametrize(
    "line",
    [
        "Make sure that you have enough disk space before you start.",
        "If the disk is full, the trainer stops.",
        "    PyTorch 2.7.0+cu128 (you have 2.7.0+cu128)",
        "Python is required to run the script.",
        "INFO: torch >= 2.1 is installed",
        "You may want to run pip install tensorboard to see the curves.",
        "requires at least 16 GB, 80 GB are installed",
        "loss: 1.2, grad_norm: nan",  # once, while a loss scale is sought
    ],
)
def test_what_says_nothing_of_the_kind(said, line):
    assert subjects(said(f"{line}\n")) == []


def test_the_caller_is_the_package_of_the_last_place(said):
    trace = (
        'Traceback (most recent call last):\n  File "/app/run.py", line 3, in <module>\n'
        "    trainer.train()\n"
        '  File "/v/lib/python3.11/site-packages/lightning/trainer.py", line 8, in train\n'
        "    self.step(batch, index=1)\n"
        "TypeError: Mine.step() got an unexpected keyword argument 'index'\n"
    )
    assert roots(said(trace)) == [("lightning", "version-mismatch", "likely")]
    own = trace.replace("TypeError", '  File "/app/own.py", line 9, in step\nTypeError')
    assert roots(said(own)) == [("python", "version-mismatch", "likely")]


def test_an_error_in_the_record_of_a_log_is_an_exception(said):
    found = said("2025-01-02 03:04:05,678 - server - ERROR - app.py:53 - KeyError: 'bucket'\n")
    assert subjects(found) == ["raised"]


@pytest.mark.parametrize(
    ("line", "is_believed"),
    [
        (
            (
                "lib/torch/cuda/__init__.py:180: UserWarning: CUDA initialization: The NVIDIA driver "
                "on your system is too old (found version 11040)."
            ),
            True,
        ),
        ("[WARNING] async_io: please install the libaio-dev package with apt", False),
    ],
)
def test_a_warning_that_somebody_shows(tmp_path, matrix, line, is_believed):
    """Alone it is what they complain of; that something is missing may not matter."""
    log = tmp_path / "issue.md"
    log.write_text(f"{line}\n", encoding="utf-8")
    report = check(Facts(), matrix, logs=[str(log)])
    assert bool(report.findings) is is_believed


def test_what_programs_only_warn_of_as_missing_is_no_failure(said):
    warning = (
        "WARNING 04-12 18:36:24 [topk_topp_sampler.py:69] FlashInfer is not available. Falling back "
        "to the PyTorch-native implementation of top-p & top-k sampling.\n"
    )
    assert not said(warning + "INFO 04-12 18:37:00 served 12 requests\n").traces


def test_an_option_is_looked_for_in_the_program_that_refuses_it(said):
    (trace,) = said("vllm: error: unrecognized arguments: --lora-path x\n").traces
    assert "sglang" not in trace.finding.message
    (trace,) = said("launch_server.py: error: unrecognized arguments: --enable-ep-moe\n").traces
    assert "sglang knows --enable-ep-moe in " in trace.finding.message
    (trace,) = said("train.py: error: unrecognized arguments: --enable-ep-moe\n").traces
    assert "sglang" not in trace.finding.message


def test_an_option_that_a_program_asks_for_is_one_that_it_knows(said):
    line = "launch_server.py: error: the following arguments are required: --enable-ep-moe\n"
    (trace,) = said(line).traces
    assert "knows" not in trace.finding.message
