"""envdoctor as a real child process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.fixture
def envdoctor():
    """Return a function that runs envdoctor and returns the finished process; stdout and stderr are
    bytes.
    """

    def run(*arguments, env=None, **options):
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("timeout", 60)
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)], env=env or environment(), check=False, **options
        )
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
