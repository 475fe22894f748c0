"""What a start may cost: modules that must not be loaded, which is exact where a time is not."""

import json
import shutil
import statistics
import subprocess
import sys
import time
from ctypes.util import find_library
from pathlib import Path

import packaging
import pytest

from .conftest import COMMAND, environment

FORBIDDEN = {
    "rich",
    "requests",
    "urllib3",
    "importlib.metadata",
    "dataclasses",
    "subprocess",
    "packaging.requirements",
    "packaging.specifiers",
    "packaging.markers",
}
FORBIDDEN |= {
    "tomllib",
    "tomli",
    "asyncio",
    "email",
    "inspect",
    "tempfile",
    "pynvml",
    "torch",
    "ray",
    "vllm",
    "jsonschema",
    "difflib",
    "pathlib",
}
# Where neither torch nor a driver is there, nothing reads ELF files, starts a child or calls a
# library.
UNNEEDED = {
    "ctypes",
    "mmap",
    "select",
    "struct",
    *(
        f"envdoctor.probes.{name}"
        for name in ("binaries", "elf", "isolation", "libraries", "dynamic_loader", "nvidia_calls")
    ),
}


def imported(command):
    """Return the modules that a run imports beyond a bare interpreter; -X importtime is the
    oracle.
    """
    return trace(command) - trace([command[0], "-c", "pass"])


def trace(command):
    command = [command[0], "-X", "importtime", *command[1:]]
    lines = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=False, timeout=60
    ).stderr.splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


def test_check_of_this_machine_loads_nothing_heavy(tmp_path):
    """Judged is a bare environment: odd markers of whatever is installed beside pytest may need
    packaging.markers.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    command = [str(tmp_path / "bin" / "python"), "-m", "envdoctor", "check", "--format", "json"]
    site = next((tmp_path / "lib").glob("python*/site-packages"))
    shutil.copytree(Path(packaging.__file__).parent, site / "packaging")
    modules = imported(command)
    assert sorted(modules & FORBIDDEN) == []
    if not (Path("/proc/driver/nvidia").exists() or find_library("cuda")):
        assert sorted(modules & UNNEEDED) == []


def test_check_of_facts_loads_nothing_heavy_and_no_probe(broken):
    modules = imported([*COMMAND, "check", "--format", "json", "--facts", str(broken)])
    assert sorted(modules & FORBIDDEN) == []
    assert not [
        name for name in modules if name.startswith(("envdoctor.probes.", "envdoctor.intake."))
    ]


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_help_loads_almost_nothing(arguments):
    modules = imported([*COMMAND, *arguments])
    assert not modules & {
        "argparse",
        "json",
        "re",
        "packaging.version",
        "envdoctor.model.facts",
        "envdoctor.app",
    }


def test_other_commands_are_not_loaded():
    modules = imported([*COMMAND, "explain", "--help"])
    assert "envdoctor.cli.check" not in modules
    assert "envdoctor.cli.probe" not in modules


@pytest.mark.slow
def test_time_over_bare_python(broken):
    """A generous bound on CPU-bound start-up, best of several; scripts/bench has the figures."""

    def best(command):
        times = []
        for _ in range(12):
            started = time.perf_counter()
            subprocess.run(command, env=environment(), capture_output=True, check=False)
            times.append(time.perf_counter() - started)
        return min(times), statistics.median(times)

    bare, _ = best([sys.executable, "-c", "pass"])
    check, _ = best([*COMMAND, "check", "--format", "json", "--facts", str(broken)])
    assert check < bare * 12, json.dumps({"bare": bare, "check": check})
