"""Fake driver libraries, compiled here, and a way to run the real probe over them in a process of
its own.
"""

import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from envdoctor.model.serde import load_facts
from envdoctor.probes.isolation import run_command

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

_SHOW = """
import json, sys, time
from envdoctor.model.serde import dump_facts
from envdoctor.probes import Machine, run_probes
from envdoctor.probes import nvidia
start = time.monotonic()
facts = run_probes(Machine(deadline=float(sys.argv[1])), nvidia.PROBES_HERE)
print(json.dumps([dump_facts(facts), time.monotonic() - start]))
"""


def _compile(source, target, soname, *options):
    outcome = run_command(
        [
            "gcc",
            "-shared",
            "-fPIC",
            "-Wall",
            "-Wno-unused-parameter",
            *options,
            str(source),
            "-o",
            str(target),
            f"-Wl,-soname,{soname}",
        ],
        60,
        stderr=True,
    )
    assert outcome.status == 0, outcome.text


@pytest.fixture(scope="session")
def fakes(tmp_path_factory, prerequisite):
    """A folder with libnvidia-ml.so.1 and libcuda.so.1 (release 570.86.15), and beside it a
    cuda-compat 13.0 of release 580.65.06.
    """
    header = (
        importlib.util.find_spec("nvidia.nvml_dev") if importlib.util.find_spec("nvidia") else None
    )
    prerequisite(shutil.which("gcc") is not None, "gcc")
    prerequisite(header is not None, "NVIDIA's nvml.h (pip install nvidia-nvml-dev-cu12)")
    folder = tmp_path_factory.mktemp("fakes")
    include = Path(next(iter(header.submodule_search_locations))) / "include"
    _compile(
        HERE / "fake_nvml.c",
        folder / "libnvidia-ml.so.1",
        "libnvidia-ml.so.1",
        f"-I{include}",
        "-DNVML_NO_UNVERSIONED_FUNC_DEFS",
    )
    _compile(HERE / "fake_cuda.c", folder / "libcuda.so.570.86.15", "libcuda.so.1")
    (folder / "libcuda.so.1").symlink_to("libcuda.so.570.86.15")
    compat = folder / "cuda-13.0" / "compat"
    compat.mkdir(parents=True)
    _compile(
        HERE / "fake_cuda.c", compat / "libcuda.so.580.65.06", "libcuda.so.1", "-DFAKE_CUDA=13000"
    )
    (compat / "libcuda.so.1").symlink_to("libcuda.so.580.65.06")
    return folder


@pytest.fixture
def probe(fakes):
    """Return a function that runs the NVIDIA probe in a new process: settings of the fakes,
    variables, what comes first.
    """

    def run(settings="", variables=None, before="", folders=None, deadline=5.0):
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "FAKE_NVIDIA": settings,
            "LD_LIBRARY_PATH": ":".join(map(str, folders or [fakes])),
            **(variables or {}),
        }
        command = [sys.executable, "-c", _SHOW, str(deadline)]
        if before:
            command = ["unshare", "-m", "/bin/sh", "-ec", before + '\nexec "$@"', "sh", *command]
        outcome = run_command(command, deadline + 20, environment, stderr=True)
        assert outcome.status == 0, outcome.text
        table, seconds = json.loads(outcome.text)  # any noise of the libraries would break this
        facts = load_facts(json.dumps(table), "probe")
        return facts, seconds

    return run


@pytest.fixture
def namespaces(prerequisite):
    """Mount namespaces of our own, to lay a driver's files over /proc/driver, /sys/module and
    /dev.
    """
    prerequisite(run_command(["unshare", "-m", "/bin/true"], 10).status == 0, "unshare -m (root)")
