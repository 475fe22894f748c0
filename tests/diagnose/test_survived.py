"""What logs tell of without failing by it: it is advice, and the failure stands first."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from envdoctor.app import check, diagnose
from envdoctor.model.facts import Facts
from envdoctor.report.diagnosis_text import summary

STEPS = "\n".join(f"step {number} loss {2 - number / 50:.3f}" for number in range(40))


def output_of(program, tmp_path, *arguments):
    path = tmp_path / "serve_it.py"
    path.write_text(textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, str(path), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"},
    )
    return done.stdout


def checked(text, tmp_path, matrix):
    """Return (severity, subject) of all that a check of a text finds in its lines."""
    path = tmp_path / "whole.log"
    path.write_text(text)
    report = check(Facts(), matrix, logs=[str(path)])
    return {
        (finding.severity, finding.subject or finding.code)
        for finding in report.findings
        if finding.verdict == "violated" and finding.caused_by is None
    }


def noted(diagnosis):
    return [(finding.severity, finding.subject) for finding in diagnosis.findings]


LOST = "store of port 29511: recv failed: Connection reset by peer"


@pytest.mark.parametrize(
    "form", ["{}", "node-3: {}", "10.1.2.3: [rank4]:[W403 01:10:27.6 a.cpp:1] {}"]
)
def test_a_connection_that_was_lost_before_a_run_worked_on_ended_nothing(said, form):
    severity = {entry.severity for entry in said(f"{form.format(LOST)}\n{STEPS}\n").traces}
    assert not severity
    assert said(f"{STEPS}\n{LOST}\n").traces


@pytest.mark.parametrize("prefix", ["", "node-3: ", "10.1.2.3: "])
def test_the_level_of_a_line_behind_the_name_of_its_host(said, prefix):
    """DeepSpeed's launcher and pdsh put the host before each line."""
    line = f"{prefix}[rank1]:[W403 01:10:27.604964889 Store.cpp:125] {LOST}"
    assert not said(f"{line}\n").traces
    assert said(f"{line.replace('[W403', '[E403')}\n").traces


ROUTER = """Traceback (most recent call last):
  File "/x/site-packages/wandb/sdk/interface/router.py", line 70, in message_loop
    msg = self._read_message()
  File "/x/site-packages/wandb/sdk/interface/router_sock.py", line 30, in _read_message
    raise MessageRouterClosedError from e
wandb.sdk.interface.router.MessageRouterClosedError
"""


def test_a_thread_of_wandb_that_ends_ends_no_run(said):
    assert not said(f"{ROUTER}Closing mailbox, abandoning 1 handles.\n").traces
    assert said(ROUTER.replace("wandb/sdk/interface/router", "own/router")).traces


def test_what_wandb_sent_at_last_had_only_been_late(said):
    refused = (
        "ConnectTimeout: HTTPSConnectionPool(host='a.example', port=443): Max retries exceeded"
    )
    lines = f"upload failed: requests.exceptions.{refused} with url: /a\nuploading again\n"
    assert said(lines).traces
    assert not said(
        f"{lines}SenderThread:12 [file_stream.py:finish():599] file stream finish is done\n"
    ).traces


def test_a_script_that_went_on_without_a_command(said):
    line = "/opt/job.sh: line 7: ibstatus: command not found\n"
    work = "".join(f"{'abcdefghij'[number % 10] * 5} prepared\n" for number in range(60))
    assert said(line).traces[0].certainty == "likely"
    assert said(f"{line}{work}").traces[0].certainty == "candidate"


LOGGING = """
    import logging, string
    def answer(item):
        try:
            raise ValueError(f"no answer in item {{item}}")
        except ValueError:
            logging.exception("skipped")
    for item in ({items}):
        answer(item)
        for number in range({lines}):
            print("answered", 9 * string.ascii_letters[(item + number) % 52])
    print("bye")
"""


@pytest.mark.parametrize(("items", "lines", "traces"), [("7, 12, 31, 44", 60, 0), ("7,", 5, 1)])
def test_what_a_program_logs_of_one_item_after_the_other(said, tmp_path, items, lines, traces):
    """The last one stands near the end of the log, and was handled as those before it were."""
    text = output_of(LOGGING.format(items=items, lines=lines), tmp_path)
    cut = text.rfind("ValueError") + 200
    assert len(said(text[:cut]).traces) == traces


PASSED_OVER = (
    "2026-02-03 10:00:01 WARNING registry.py:7 fused kernels are off:\n{notice}\n",
    "[2026-02-03 10:00:01] Ignoring an optional import error of plugins.audio: {notice}\n",
    "{notice}\n",
)


@pytest.mark.parametrize("form", PASSED_OVER)
def test_an_import_that_a_run_went_on_without_is_not_its_failure(said, tmp_path, matrix, form):
    notice = "cannot import name 'AudioConfigOfTomorrow' from 'transformers' (/x/__init__.py)"
    end = output_of("def main():\n    raise ValueError('vocabulary of 0 words')\nmain()", tmp_path)
    text = form.format(notice=notice) + "reading shards\n" + end
    found = said(text)
    assert "ValueError: vocabulary of 0 words" in found.traces[0].finding.message
    assert [trace.finding.subject for trace in found.traces] == ["raised"]
    severities = dict(map(reversed, checked(text, tmp_path, matrix)))
    assert severities["raised"] == "error"
    assert severities.get("import-name", "advice") == "advice"


def test_the_import_that_ended_the_run_is_the_failure(said, tmp_path):
    program = """
        import logging
        try:
            from transformers import AudioConfigOfTomorrow
        except ImportError as error:
            logging.warning("no audio: %s", error)
        from json import no_such_name
    """
    found = said(output_of(program, tmp_path))
    assert "no_such_name" in found.traces[0].finding.message
    assert noted(found) == []


def test_what_waits_for_a_server_says_only_that_it_did_not_start(said):
    found = said(
        "Traceback (most recent call last):\n"
        '  File "/srv/engine/worker.py", line 31, in capture\n    return run(graph)\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 48.00 MiB. GPU 0 has a total"
        " capacity of 23.64 GiB of which 12.06 MiB is free.\n"
        "\n[2026-02-03 10:00:09] a child process failed\n"
        "2026-02-03 10:05:09 ERROR client.py:12 gave up\nTraceback (most recent call last):\n"
        '  File "/srv/client/remote.py", line 68, in wait\n'
        '    raise TimeoutError("server startup failed")\n'
        "TimeoutError: server startup failed\n"
    )
    assert found.traces[0].finding.subject == "cuda-out-of-memory"
    assert found.traces[0].certainty == "established"


def test_what_a_run_worked_on_after_is_advice(said, tmp_path, matrix):
    refused = "ERROR hub.py: You are trying to access a gated repo.\n"
    text = f"{refused}again, with a token\n{STEPS}\n"
    assert checked(text, tmp_path, matrix) == {("advice", "gated-model")}
    assert checked(refused, tmp_path, matrix) == {("error", "gated-model")}
    found = said(text)
    assert (found.traces, found.exit_code) == ((), 0)
    assert noted(found) == [("advice", "gated-model")]


def test_a_look_up_that_a_library_went_on_without_is_advice(tmp_path, matrix):
    warned = (
        "/x/adapters/saving.py:41: UserWarning: Unable to fetch the base's configuration:"
        " HTTPSConnectionPool(host='hub.example', port=443): Max retries exceeded"
        " (Caused by NameResolutionError: Temporary failure in name resolution)"
        " - silently ignoring the lookup.\n"
    )
    for text in (f"{warned}{STEPS}\n", f"{' ' * 400}{warned}{STEPS}\n"):
        assert {severity for severity, _ in checked(text, tmp_path, matrix)} <= {"advice"}


def test_arguments_that_a_later_start_took_are_no_failure_any_more(said, tmp_path, matrix):
    program = """
        import argparse, socket
        parser = argparse.ArgumentParser()
        parser.add_argument("--port", type=int)
        asked = parser.parse_args()
        with socket.socket() as first:
            first.bind(("127.0.0.1", 0))
            socket.socket().bind(first.getsockname())
    """
    refused = output_of(program, tmp_path, "--fast-kernels")
    assert "error: unrecognized arguments" in refused
    text = refused + output_of(program, tmp_path, "--port", "1")
    assert [trace.finding.subject for trace in said(text).traces] == ["port-in-use"]
    assert ("advice", "arguments-refused") in checked(text, tmp_path, matrix)
    # A client that fails for want of its server takes nothing back of what ended the server.
    (tmp_path / "other").mkdir()
    client = output_of("raise ConnectionError('no server')", tmp_path).replace(
        "serve_it.py", "client.py"
    )
    subjects = [trace.finding.subject for trace in said(refused + client).traces]
    assert "arguments-refused" in subjects


def test_what_a_table_refuses_and_a_run_did_is_advice(tmp_path, matrix, said):
    banner = "unsloth==2024.8\nxformers==0.0.27.post2\ntorch==2.4.0\n"
    assert ("error", "ED309") in checked_codes(banner, tmp_path, matrix)
    ran = f"{banner}{STEPS}\n"
    assert ("advice", "ED309") in checked_codes(ran, tmp_path, matrix)
    failed = ran + output_of("raise ImportError('no fused kernels')", tmp_path)
    assert ("error", "ED309") in checked_codes(failed, tmp_path, matrix)
    assert "ED309" in {finding.code for finding in said(ran).findings}


def checked_codes(text, tmp_path, matrix):
    path = tmp_path / "stated.log"
    path.write_text(text)
    report = check(Facts(), matrix, logs=[str(path)])
    return {(finding.severity, finding.code) for finding in report.findings}


def test_a_known_warning_alone_is_named_without_a_failure(said):
    found = said("A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.1.3 as it\n")
    assert (found.traces, found.exit_code) == ((), 0)
    assert noted(found) == [("advice", "numpy-abi-said")]
    assert summary(found) == "envdoctor: the log shows no known failure; 1 note below"


@pytest.mark.parametrize("last", ["KeyboardInterrupt", "[rank0] Received signal 15"])
def test_a_run_that_was_stopped_is_a_note_of_a_check(tmp_path, last):
    path = tmp_path / "run.log"
    path.write_text(f"torch 2.6.0\nstep 1 loss 2.5\n{last}\n")
    report = check(Facts(), logs=[str(path)])
    (finding,) = [entry for entry in report.findings if entry.code == "ED395"]
    assert (finding.severity, finding.remedies) == ("advice", ())
    assert "stopped from outside" in finding.message
    assert "likely" not in finding.message
    assert report.exit_code == 0


def test_what_a_program_falls_back_from_is_no_failure(tmp_path, matrix):
    error = "2026-04-14T15:52:02Z ERROR server.rs:1672: Failed to import: ModuleNotFoundError: No module named 'transformers'\n"
    falls = "2026-04-14T15:52:02Z WARN server.rs:1440: Odd tokenizer, falling back on legacy\n"
    assert checked(error, tmp_path, matrix)
    assert not checked(error + falls, tmp_path, matrix)
    assert checked(f"{error}{'x' * 8}\n{falls}", tmp_path, matrix)


def test_a_trace_of_a_loader_is_no_error(tmp_path, matrix):
    """Level Zero's loader tries drivers of devices that a machine need not have."""
    said = "libze_intel_vpu.so.1: cannot open shared object file: No such file or directory\n"
    assert checked(f"ImportError: {said}", tmp_path, matrix)
    assert not checked(f"ZE_LOADER_DEBUG_TRACE:Load Library failed with {said}", tmp_path, matrix)


def test_what_cannot_be_imported_for_another_reason_is_there(tmp_path, matrix):
    said = "RuntimeError: Failed to import trl.models.utils because of the following error:\n"
    name = "cannot import name 'FSDPModule' from 'torch.distributed.fsdp' (/x/fsdp/__init__.py)\n"
    subjects = {subject for _, subject in checked(said + name, tmp_path, matrix)}
    assert not subjects & {"module-missing", "module-part-missing"}


def test_a_request_that_a_server_refused_ended_nothing(tmp_path, matrix):
    refused = (
        "(APIServer pid=1) vllm.exceptions.VLLMValidationError: This model's maximum context length is"
        " 8192 tokens. However, you requested 512 output tokens and your prompt contains at least 7681"
        " input tokens, for a total of at least 8193 tokens.\n"
    )
    served = (
        '(APIServer pid=1) INFO:     172.17.0.1:41626 - "POST /v1/completions HTTP/1.1" 200 OK\n'
    )
    assert ("error", "prompt-too-long") in checked(refused, tmp_path, matrix) or (
        "warning",
        "prompt-too-long",
    ) in checked(refused, tmp_path, matrix)
    severities = {severity for severity, _ in checked(refused + 12 * served, tmp_path, matrix)}
    assert severities <= {"advice"}


CAUGHT = """
import os, signal, sys, traceback
def step(number):
    print("step", number, "loss", 1 / number, flush=True)
step(1)
try:
    {}["hook"]
except KeyError:
    traceback.print_exc()
for number in range(2, 2 + STEPS):
    step(number)
os.kill(os.getpid(), signal.SIGINT)
signal.pause()
"""


@pytest.mark.parametrize(("steps", "failed"), [(0, True), (3, False), (9, False)])
def test_what_was_caught_before_a_run_was_stopped(steps, failed, tmp_path, matrix):
    """Really caught, and stopped really: where steps come behind, it had not failed."""
    path = tmp_path / "run.log"
    path.write_text(output_of(CAUGHT.replace("STEPS", str(steps)), tmp_path))
    traces = diagnose([str(path)], Facts(), matrix).traces
    assert any("KeyError" in trace.finding.message for trace in traces) is failed


@pytest.mark.parametrize("ends", [True, False])
def test_an_error_that_a_callback_prints_is_no_end_of_a_run_that_ended_well(tmp_path, matrix, ends):
    """What stands below such a line is work, not its message."""
    program = """
        import sys
        for epoch in range(3):
            print({"loss": 3.4 - epoch / 10, "learning_rate": 1e-06, "epoch": epoch + 0.5})
            try:
                {}["perplexity"]
            except KeyError as error:
                print(f"Error: {error}")
        if sys.argv[1] == "True":
            print({"train_runtime": 35.2, "train_loss": 3.3, "epoch": 3.0})
            print({"train_runtime": 35.2, "train_samples_per_second": 17.2, "epoch": 3.0})
    """
    path = tmp_path / "run.log"
    path.write_text(output_of(program, tmp_path, str(ends)))
    diagnosis = diagnose([str(path)], matrix=matrix)
    assert bool(diagnosis.traces) is not ends


TOLD = "Error loading model: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"


@pytest.mark.parametrize(
    ("behind", "certainty"),
    [
        ("The answer is 5.\nIt is 25 by 5.\nDone with 12 questions.\n", "candidate"),
        ("Saving what there is\nExiting with status 1\nBye\n", "established"),
        ("", "established"),
    ],
)
def test_an_error_that_a_program_told_of_and_went_on_is_not_established(said, behind, certainty):
    (trace,) = said(f"Loading model\n{TOLD} capacity of 14.74 GiB\n{behind}").traces
    assert (trace.finding.subject, trace.certainty) == ("cuda-out-of-memory", certainty)
