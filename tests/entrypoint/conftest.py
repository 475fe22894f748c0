"""envdoctor entrypoint as a real process that becomes another one."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "envdoctor", "entrypoint"]


def environment(**changes):
    """A small environment; None removes."""
    base = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": "/dev/null/home",
        "LC_ALL": "C.UTF-8",
        **changes,
    }
    return {name: value for name, value in base.items() if value is not None}


def write_lock(folder, *pins, roots=(), schema_version=1, **requires):
    """Write a lock as far as its reader and the rules need it; pins are ``name==version``."""
    folder.mkdir(exist_ok=True)
    document = {
        "schema_version": schema_version,
        "request": {"roots": list(roots), "allow_index": []},
        "requires": {"python": ".".join(map(str, sys.version_info[:2])), "sm": [], **requires},
        "pins": [dict(zip(("name", "version"), pin.split("=="))) for pin in pins],
        "settings": {},
        "overrides": [],
    }
    (folder / "envdoctor.lock.json").write_text(json.dumps(document))
    return folder


@pytest.fixture
def start():
    """Return a function that runs the entrypoint with arguments and returns the finished process;
    outputs are bytes.
    """

    def run(*arguments, **options):
        options.setdefault("env", environment())
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("timeout", 60)
        return subprocess.run([*COMMAND, *arguments], check=False, **options)

    return run


@pytest.fixture
def freezer(prerequisite):
    """Return a v1 freezer group: what is frozen there is in state D and dies of no signal, as in a
    hung ioctl.
    """
    root = "/sys/fs/cgroup/freezer"
    prerequisite(
        os.geteuid() == 0 and os.access(f"{root}/cgroup.procs", os.W_OK),
        "root and a v1 freezer cgroup",
    )
    group = f"{root}/envdoctor-chaos-{os.getpid()}"
    os.mkdir(group)
    yield group
    Path(group, "freezer.state").write_text("THAWED")
    for _ in range(300):
        try:
            os.rmdir(group)
            break
        except OSError:  # the kill that was waiting for the thaw is on its way
            time.sleep(0.01)
    assert not os.path.exists(group)
