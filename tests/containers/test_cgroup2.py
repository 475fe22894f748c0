"""cgroup v2 with all controllers, by a kernel of its own (User-Mode Linux) that boots in two
seconds on any host.
"""

from __future__ import annotations

import json
import os
import sys

import pytest

from .uml import POINT, boot, can_boot

pytestmark = pytest.mark.slow

MIB = 1 << 20
OVERHEAD = 32 * MIB

#: Each scenario: what is set, where the process is put, and how it is started ($RUN prints the
#: facts).
SCENARIOS = {
    "root": ("", ".", "$RUN"),
    "ancestor": (
        "mkdir -p one/two/three; echo 150M >one/memory.max; echo 200M >one/two/memory.high",
        "one/two/three",
        "$RUN",
    ),
    "own mount of a namespace": (
        "mkdir -p outer/inner; echo 150M >outer/memory.max",
        "outer/inner",
        "unshare -m -C sh -c 'umount {0}; mount -t cgroup2 x {0}; $RUN'",
    ),
    "own limit in a namespace": (
        "mkdir -p pod/box; echo 300M >pod/memory.max; echo 120M >pod/box/memory.max",
        "pod/box",
        "unshare -m -C sh -c 'umount {0}; mount -t cgroup2 x {0}; $RUN'",
    ),
    "old mount in a namespace": (
        "mkdir -p up/down; echo 140M >up/memory.max",
        "up/down",
        "unshare -C sh -c '$RUN'",
    ),
    "part of the tree mounted": (
        "mkdir -p job/leaf; echo 130M >job/memory.max",
        "job/leaf",
        "unshare -m sh -c 'mount --bind {0}/job/leaf {0}; $RUN'",
    ),
    "slurm": (
        (
            "mkdir -p system.slice/n_slurmstepd.scope/job_5/step_0/user/task_0; echo 160M "
            ">system.slice/n_slurmstepd.scope/job_5/step_0/user/memory.max"
        ),
        "system.slice/n_slurmstepd.scope/job_5/step_0/user/task_0",
        "$RUN",
    ),
    "other controllers": (
        (
            "mkdir -p c/low; echo '150000 100000' >c/cpu.max; echo '400000 100000' >c/low/cpu.max; "
            "echo 55 >c/pids.max; echo 99 >c/low/pids.max"
        ),
        "c/low",
        "$RUN",
    ),
    "killed": (
        "mkdir -p eat/leaf; echo 120M >eat/memory.max; echo 0 >eat/memory.swap.max",
        "eat/leaf",
        "$EAT; $RUN",
    ),
}

#: Every group that has one below it passes its controllers on; a leaf must not, or no process may
#: join it.
ENABLE = f"""enable() {{
  find {POINT} -mindepth 1 -type d | while read -r folder; do echo "+memory +cpu +pids" >"${{folder%/*}}/cgroup.subtree_control"; done
}}
cd {POINT}"""

EAT = """
import os
held = []
for count in range(200):
    held.append(bytes(bytearray(os.urandom(4096)) * 256))
    os.write(1, b".")
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory, prerequisite, describe):
    """Boot once, run every scenario, return the facts (and bytes eaten) of each."""
    prerequisite(*can_boot())
    folder = tmp_path_factory.mktemp("uml").resolve()
    (folder / "describe.py").write_text(describe)
    (folder / "eat.py").write_text(EAT)
    for name, source in (("run", "describe.py"), ("eat", "eat.py")):
        script = folder / name
        # The dots of the eater go to a file of their own; $OUT is set for each scenario.
        target = "$OUT.facts" if name == "run" else "$OUT.eaten"
        script.write_text(
            f'#!/bin/sh\n"{sys.executable}" "{folder / source}" >"{target}" 2>"$OUT.errors"\n'
        )
        script.chmod(0o755)
    body = [ENABLE, "enable"]
    for number, (setup, leaf, command) in enumerate(SCENARIOS.values()):
        # Groups inherit controllers only where every ancestor passes them on: enable after each
        # mkdir, before any limit.
        steps = setup.split("; ") if setup else []
        prepare = "; ".join([*steps[:1], "enable", *steps[1:]]) if steps else ":"
        run = command.format(POINT)
        body.append(
            f"( {prepare}; echo 0 >{POINT}/{leaf}/cgroup.procs; export OUT={folder}/{number}; cd "
            f"/; {run} )"
        )
    boot_console = boot(folder, "\n".join(body), RUN=folder / "run", EAT=folder / "eat")
    found = {}
    for number, name in enumerate(SCENARIOS):
        path = folder / f"{number}.facts"
        errors = folder / f"{number}.errors"
        assert path.exists(), boot_console
        assert path.read_text(), errors.read_text()
        eaten = folder / f"{number}.eaten"
        found[name] = (json.loads(path.read_text()), eaten.stat().st_size if eaten.exists() else 0)
    if os.environ.get("ENVDOCTOR_RECORD"):
        for name, (answer, _) in found.items():
            (folder / f"record {name}.json").write_text(json.dumps(answer))
    return {name: (answer["facts"], eaten) for name, (answer, eaten) in found.items()}


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("ancestor", 150 * MIB),
        ("own limit in a namespace", 120 * MIB),
        ("old mount in a namespace", 140 * MIB),
        ("slurm", 160 * MIB),
        ("killed", 120 * MIB),
    ],
)
def test_finds_the_limit(answers, name, limit):
    facts, _ = answers[name]
    assert facts["memory.limit"][:2] == ["Known", limit], facts["memory.limit"]
    assert facts["cgroup.version"][1] == "v2"


def test_the_real_root_has_no_limit_and_hides_none(answers):
    facts, _ = answers["root"]
    assert facts["memory.limit"][0] == "Absent"
    assert facts["memory.limit_hidden"][1] is False
    assert facts["pids.limit"][1] == -1
    assert facts["cpu.quota"][0] == "Absent"


@pytest.mark.parametrize("name", ["own mount of a namespace", "part of the tree mounted"])
def test_never_says_unlimited_where_an_ancestor_cannot_be_seen(answers, name):
    facts, _ = answers[name]
    assert facts["memory.limit"][0] == "Unknown"
    assert "outer" in facts["memory.limit"][2]
    assert facts["memory.limit_hidden"][1] is True
    assert facts["pids.limit"][0] == "Unknown"


def test_a_limit_in_a_namespace_may_have_a_smaller_one_above(answers):
    assert answers["own limit in a namespace"][0]["memory.limit_hidden"][1] is True


def test_reads_high_cpu_and_pids_on_the_way_up(answers):
    assert answers["ancestor"][0]["memory.high"][1] == 200 * MIB
    facts, _ = answers["other controllers"]
    assert facts["cpu.quota"][1] == 1.5
    assert facts["pids.limit"][1] == 55


def test_the_kernel_kills_where_predicted_and_the_kill_is_counted(answers):
    facts, eaten = answers["killed"]
    assert facts["memory.limit"][1] - OVERHEAD <= eaten * MIB <= facts["memory.limit"][1]
    assert facts["memory.oom_kills"][1] == 1
    assert facts["swap.limit"][1] == 0


def test_ray_reads_the_root_and_is_wrong_below_it(answers):
    facts, _ = answers["slurm"]
    assert facts["memory.ray_belief"][1] == facts["memory.total"][1] > facts["memory.limit"][1]
