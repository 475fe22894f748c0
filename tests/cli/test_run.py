"""``envdoctor run``: checks, watches and diagnoses, and ends as the command does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import environment

REPOSITORY = Path(__file__).resolve().parents[2]
RUN = [sys.executable, "-m", "envdoctor", "run"]


def run(*arguments, variables=None, **options):
    done = subprocess.run(
        [*RUN, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(**(variables or {})),
        **options,
    )
    assert "Traceback" not in done.stderr.replace("Traceback (most recent call last):\n  File", "")
    return done


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 64", 64),
        ("exit 255", 255),
        ("ulimit -c 0; kill -SEGV $$", 128 + signal.SIGSEGV),
        ("kill -KILL $$", 137),
    ],
)
def test_ends_as_the_command_ends(program, code):
    done = run("--", "sh", "-c", f"cat; echo said >&2; {program}", input="given\n")
    assert done.returncode == code
    assert done.stdout == "given\n"
    assert "said\n" in done.stderr
    assert done.stderr.startswith("envdoctor: ")  # the check comes first


def test_says_why_the_command_failed():
    done = run("--quiet", "--", sys.executable, "-c", "print('out'); {}['missing-key']")
    assert (done.returncode, done.stdout) == (1, "out\n")
    assert "The run failed with KeyError: 'missing-key'" in done.stderr
    assert "watched for" not in done.stderr


def test_errors_stop_the_command_under_enforce_only(tmp_path):
    """A lock that cannot be read is wrong usage of the check, not of the command."""
    options = ("--lock", str(tmp_path / "missing"))
    done = run(*options, "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    done = run(*options, "--policy", "enforce", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (64, "")
    done = run(*options, "--", "echo", "ran", variables={"ENVDOCTOR_POLICY": "enforce"})
    assert (done.returncode, done.stdout) == (64, "")


def test_says_whether_its_memory_will_do(tmp_path):
    """A command that is no training is not planned, and starts all the same; verl is not here."""
    done = run("--plan", "--", "sh", "-c", "echo ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "envdoctor run: not planned: " in done.stderr
    script = tmp_path / "train.sh"
    script.write_text(
        "echo ran\npython3 -m verl.trainer.main_ppo trainer.n_gpus_per_node=8 trainer.nnodes=1 "
        "actor_rollout_ref.model.path=Qwen/Qwen2.5-72B-Instruct "
        "actor_rollout_ref.actor.fsdp_config.optimizer_offload=True\n"
    )
    done = run("--plan", "--", "sh", str(script))
    assert (done.returncode, done.stdout) == (1, "ran\n")
    assert "envdoctor run: this run does not fit (host memory)" in done.stderr
    planned = run("--plan", str(script), "--policy", "enforce", "--", "sh", "-c", "echo ran")
    assert (planned.returncode, planned.stdout) == (78, "")
    assert "refused: it does not fit" in planned.stderr


@pytest.mark.parametrize("variables", [{"ENVDOCTOR_DISABLE": "1"}, {"ENVDOCTOR_POLICY": "off"}])
def test_can_be_turned_off(variables):
    done = run("--quiet", "--", "sh", "-c", "echo ran; exit 3", variables=variables)
    assert (done.returncode, done.stdout) == (3, "ran\n")
    assert "problem" not in done.stderr
    assert ("none of the known causes" in done.stderr) == ("ENVDOCTOR_POLICY" in variables)


@pytest.mark.parametrize(("command", "code"), [("no-such-command", 127), ("/proc", 126)])
def test_a_command_that_cannot_be_run(command, code):
    done = run("--", command)
    assert (done.returncode, done.stdout) == (code, "")
    assert f"'{command}' cannot be run" in done.stderr
    assert (f"No command {command} was found" in done.stderr) is (code == 127)


def test_nothing_is_ahead_of_a_command_that_has_ended():
    """Its first second is no trend."""
    program = "import time\nblocks = []\nfor _ in range(15):\n"
    program += "    blocks.append(bytearray(8 << 20)); time.sleep(0.1)\n"
    done = run("--interval", "0.1", "--", sys.executable, "-c", program)
    assert done.returncode == 0
    assert "watched for" in done.stderr
    assert "meets the limit" not in done.stderr
    assert "growing fastest" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "expected a command"),
        (("--policy", "maybe", "--", "true"), "--policy"),
        (("--no-such-option", "--", "true"), "no such option: --no-such-option"),
        (("--interval", "0", "--", "true"), "--interval: expected"),
        (("--svg", "/proc", "--", "true"), "--svg /proc: expected a file"),
    ],
)
def test_wrong_arguments(arguments, words):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGRTMIN])
def test_signals_reach_the_command_once(number):
    program = (
        "import signal, sys, time\n"
        "got = []\n"
        f"signal.signal({int(number)}, lambda *_: got.append(1))\n"
        "print('up', flush=True)\n"
        "while not got: time.sleep(0.05)\n"
        "time.sleep(0.3)\n"
        "sys.exit(100 + len(got))"
    )
    process = subprocess.Popen(
        [*RUN, "--", sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stdout.readline() == "up\n"
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 101
    assert "asked to end" in errors


def test_what_the_command_finds_is_what_it_would_find_without(tmp_path):
    """Variables, folder, mask, dispositions, and descriptors beyond the standard ones."""
    program = (
        "import json, os, re, signal\n"
        "state = open('/proc/self/status').read()\n"
        "print(json.dumps([sorted(os.environ.items()), os.getcwd(), os.umask(0),\n"
        "  re.findall(r'Sig(?:Blk|Ign|Cgt):.*', state), sorted(os.listdir('/proc/self/fd')),\n"
        "  os.getpgrp() == os.getsid(0)]))"
    )
    plain = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment(ODD="="),
        cwd=tmp_path,
        input="",
    )
    done = run("--", sys.executable, "-c", program, variables={"ODD": "="}, cwd=tmp_path, input="")
    assert done.stdout == plain.stdout


@pytest.mark.slow
def test_as_the_first_process_of_a_container_it_takes_the_ends_of_orphans(prerequisite):
    program = (
        "for i in 1 2 3; do (sleep 0.2 &) ; done; sleep 1; "
        "cat /proc/[0-9]*/status | grep -c 'State:.Z'; exit 4"
    )
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", *RUN, "--", "sh", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    prerequisite("unshare:" not in done.stderr, "a PID namespace")
    assert (done.returncode, done.stdout) == (4, "0\n"), done.stderr
