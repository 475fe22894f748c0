"""Four nodes under a real Slurm: its memory limits against the kernel's kill, its prolog, epilog
and health check with our files.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .slurm import NODES, Slurm, require_slurm
from .test_oom_oracle import EAT

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
OVERHEAD = 32 * MIB


#: Stands for /opt/envdoctor/envdoctor.pyz: the real one, which is told of an old driver where a
#: node is marked, or does not work at all.
WRAPPER = """import os, sys
def marked(what):
    name = what + "-" + os.environ.get("SLURMD_NODENAME", "")
    return os.path.exists(os.path.join({folder!r}, name))
if marked("crash"):
    sys.exit(3)
more = ["--assume", "torch==2.6.0+cu124", "nvidia-driver=450.80.02", "gpu=H100:8"]
more = more if marked(os.environ["INSTALLED_AS"]) else []
os.execv(sys.executable, [sys.executable, {pyz!r}, *sys.argv[1:], *more])
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The two files as an administrator installs them.

    A file PROGRAM-NODE beside them marks a node.
    """
    folder = tmp_path_factory.mktemp("site").resolve()
    pyz = folder / "real.pyz"
    subprocess.run(
        [sys.executable, str(ROOT / "scripts/build_pyz"), "--output", str(pyz)],
        check=True,
        capture_output=True,
    )
    (folder / "envdoctor.pyz").write_text(WRAPPER.format(folder=str(folder), pyz=str(pyz)))
    return folder


def removed(group):
    """Remove the control group of a run that was killed; False where processes are in it."""
    for folder in [*sorted(group.glob("**/"), reverse=True), group]:
        with contextlib.suppress(OSError):
            folder.rmdir()
    return not group.exists()


@pytest.fixture(scope="module")
def slurm(tmp_path_factory, prerequisite, site):
    """A cluster with our prolog and our health check."""
    require_slurm(prerequisite)
    groups = [group for name in NODES for group in Path("/sys/fs/cgroup").glob(f"*/slurm_{name}")]
    taken = [str(group) for group in groups if not removed(group)]
    prerequisite(not taken, f"no other Slurm with these nodes: {taken}")
    folder = tmp_path_factory.mktemp("slurm").resolve()
    for name in ("slurm-prolog", "slurm-epilog", "slurm-health-check"):
        file = name.replace("epilog", "prolog")  # one file is both
        text = (ROOT / "scripts/integrations" / file).read_text()
        # This Slurm has no /etc/slurm/slurm.conf, and this Python may be another one.
        variables = (
            f"export INSTALLED_AS={name} SLURM_CONF={folder}/slurm.conf "
            f"ENVDOCTOR_PYZ={site}/envdoctor.pyz\n"
        )
        first, _, rest = text.replace("/usr/bin/python3", sys.executable).partition("\n")
        (site / name).write_text(f"{first}\n{variables}{rest}")
        (site / name).chmod(0o755)
    health = (
        f"HealthCheckProgram={site}/slurm-health-check\nHealthCheckInterval=2\n"
        "HealthCheckNodeState=ANY"
    )
    cluster = Slurm(
        folder,
        f"Prolog={site}/slurm-prolog\nPrologFlags=Alloc\nEpilog={site}/slurm-epilog\n{health}",
    )
    try:
        try:
            cluster.start()
        except RuntimeError as error:
            prerequisite(False, f"Slurm does not start here: {error}")
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def mark(site, slurm):
    """Mark nodes for one test; afterwards all are in service again."""
    marks = []

    def make(what):
        marks.append(site / what)
        marks[-1].touch()

    yield make
    for path in marks:
        path.unlink()
    slurm("scontrol", "update", f"nodename={','.join(NODES)}", "state=resume")
    slurm.wait_for(lambda: set(slurm.states().values()) == {"idle"}, "all nodes idle")


def envdoctor(*arguments):
    return [
        "/usr/bin/env",
        f"PYTHONPATH={ROOT}",
        "PYTHONDONTWRITEBYTECODE=1",
        sys.executable,
        "-m",
        "envdoctor",
        *arguments,
    ]


def test_the_limit_of_a_job_is_what_the_kernel_enforces(slurm, tmp_path):
    into = f'exec "$@" >{tmp_path}/$SLURMD_NODENAME.json'
    done = slurm(
        "srun",
        "-N4",
        "--ntasks-per-node=1",
        "--mem=150M",
        "sh",
        "-c",
        into,
        "sh",
        *envdoctor("probe", "--json"),
    )
    assert done.returncode == 0, done.stderr
    files = [tmp_path / f"{name}.json" for name in NODES]
    for path in files:
        node = json.loads(path.read_text())["facts"]
        assert node["memory.limit"]["value"] == 150 * MIB
        assert "/job_" in node["memory.limit"]["source"]
        assert not node["memory.limit"]["source"].startswith("/sys/fs/cgroup/memory/memory.")
        assert node["memory.ray_belief"]["value"] == node["memory.total"]["value"]
    # The leaf, where a naive reader looks, has no limit.
    leaf = (
        "cat /sys/fs/cgroup/memory$(sed -n s/.*:memory://p /proc/self/cgroup)/memory.limit_in_bytes"
    )
    done = slurm("srun", "-N1", "--mem=150M", "sh", "-c", leaf)
    assert int(done.stdout) > 1 << 60, done.stderr
    for name in NODES[:2]:
        done = slurm(
            "srun", "-N1", "-w", name, "--mem=150M", sys.executable, "-c", EAT.format(enough=400)
        )
        assert "Out Of Memory" in done.stderr or "oom-kill" in done.stderr
        assert 150 * MIB - OVERHEAD <= done.stdout.count(".") * MIB <= 150 * MIB
    command = envdoctor(
        "check", "--format", "json", "--assume", "ray==2.49.0", "--facts", *map(str, files)
    )
    judged = subprocess.run(command, capture_output=True, check=False)
    found = [
        entry["message"]
        for entry in json.loads(judged.stdout)["findings"]
        if entry["code"] == "ED501"
    ]
    assert any("Ray will count on" in message and "150 MiB" in message for message in found), judged


def test_prolog_drains_a_node_on_which_jobs_cannot_work(slurm, mark):
    assert slurm("srun", "-N4", "--ntasks-per-node=1", "true").returncode == 0
    mark("slurm-prolog-n3")
    slurm("srun", "-N1", "-w", "n3", "--immediate=5", "true", timeout=30)
    slurm.wait_for(lambda: slurm.states()["n3"].startswith("drain"), "n3 drained")
    assert slurm.reasons() == {"n3": "Prolog error"}
    assert slurm("srun", "-N3", "--ntasks-per-node=1", "true").returncode == 0


def test_epilog_drains_a_node_that_a_job_left_unfit(slurm, mark):
    """The job itself is done, and no other comes to that node."""
    mark("slurm-epilog-n4")
    assert slurm("srun", "-N1", "-w", "n4", "true").returncode == 0
    slurm.wait_for(lambda: slurm.states()["n4"].startswith("drain"), "n4 drained")
    assert slurm.reasons() == {"n4": "Epilog error"}
    assert slurm("srun", "-N3", "--ntasks-per-node=1", "true").returncode == 0


def test_health_check_drains_with_the_verdict_as_its_reason(slurm, mark):
    mark("slurm-health-check-n2")
    slurm.wait_for(lambda: slurm.states()["n2"].startswith("drain"), "n2 drained")
    assert list(slurm.reasons()) == ["n2"]
    assert slurm.reasons()["n2"].startswith("envdoctor: 1 error")


def test_a_check_that_fails_itself_drains_nothing(slurm, mark):
    for name in NODES:
        mark(f"crash-{name}")
    time.sleep(4)  # two rounds of health checks
    assert slurm("srun", "-N4", "--ntasks-per-node=1", "true").returncode == 0
    assert slurm.reasons() == {}
