"""envdoctor as a child process: a fork of one that has imported it, or one that is started."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .forked import ForkServer

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "envdoctor"]

# Driver 470 serves CUDA 11 at most; torch wants 13: an error on any reading of NVIDIA's tables.
BROKEN = {
    "schema_version": 1,
    "facts": {
        "node.name": {"value": "node-a", "source": "test"},
        "os.platform": {"value": "linux", "source": "test"},
        "os.architecture": {"value": "x86_64", "source": "test"},
        "glibc.version": {"value": "2.35", "source": "test"},
        "python.version": {"value": "3.11.7", "source": "test"},
        "driver.release": {"value": "470.57.02", "source": "/proc/driver/nvidia/version"},
        "driver.exposed": {"value": True, "source": "test"},
        "driver.loaded": {"value": True, "source": "test"},
        "gpus": {
            "value": [{"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0"}],
            "source": "NVML",
        },
        "torch.version": {"value": "2.9.0+cu130", "source": "torch/version.py"},
        "torch.cuda": {"value": "13.0", "source": "torch/version.py"},
        "distributions": {
            "value": [{"name": "torch", "version": "2.9.0+cu130"}],
            "source": "site-packages",
        },
        "variables": {"value": {}, "source": "environment"},
    },
}


def environment(**changes):
    """A small environment: what a variable changes, changes nothing else. None removes."""
    base = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": "/dev/null/home",
        "LC_ALL": "C.UTF-8",
    }
    base.update(changes)
    return {name: value for name, value in base.items() if value is not None}


@pytest.fixture(scope="session")
def fork_server():
    """Return the process whose forks run the command lines."""
    server = ForkServer()
    yield server
    server.close()


#: What the interpreter itself reads when it starts.
AT_START = ("PYTHON", "LC_", "LANG", "LD_", "PATH")


@pytest.fixture
def envdoctor(fork_server):
    """Return a function that runs envdoctor and returns the finished process; stdout and stderr are
    bytes. It starts an interpreter where anything but plain variables, the working directory or
    bytes as input is asked for.
    """

    def run(*arguments, env=None, **options):
        env = env or environment()
        differing = {name for name, _ in set(env.items()) ^ set(environment().items())}
        if options.keys() <= {"input", "cwd", "timeout"} and not any(
            name.startswith(AT_START) for name in differing
        ):
            done = fork_server.run(
                list(map(str, arguments)),
                env,
                options.get("cwd") or os.getcwd(),
                options.get("input"),
                options.get("timeout", 60),
            )
            assert b"Traceback" not in done.stderr
            return done
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("timeout", 60)
        done = subprocess.run([*COMMAND, *map(str, arguments)], env=env, check=False, **options)
        assert b"Traceback" not in (done.stderr or b"")
        return done

    return run


@pytest.fixture
def broken(tmp_path):
    """Return a facts file of a machine on which CUDA cannot start."""
    path = tmp_path / "node-a.json"
    path.write_text(json.dumps(BROKEN))
    return path


@pytest.fixture
def refused(envdoctor):
    """Return a function that runs envdoctor, expects exit 2 and one line, and returns that line."""

    def run(*arguments, **options):
        done = envdoctor(*arguments, **options)
        message = done.stderr.decode()
        assert done.returncode == 2, message
        assert message.startswith("envdoctor: error: ")
        assert message.count("envdoctor: error: ") == 1
        assert done.stdout == b""
        return message

    return run
