"""With ``--assume`` or ``--target`` nothing of the machine that plans is a limit, whatever reads
the run.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from envdoctor import sources
from envdoctor.app import plan
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Facts, Gpu
from envdoctor.model.serde import dump_facts
from envdoctor.model.workload import Workload
from envdoctor.plan.memory.inputs import Inputs
from envdoctor.plan.memory.pool_limits import gpu_limit
from envdoctor.sources import Sources, gather
from tests.containers.conftest import in_group, memory_group  # noqa: F401 - fixtures

from .conftest import RUNS as FOLDER
from .test_monotony import RUNS, SEEDS, written

PLACE = Evidence("this machine")
#: A machine on which none of these runs would fit.
POOR = {
    "memory.total": Known(1 << 30, PLACE),
    "memory.available": Known(1 << 29, PLACE),
    "memory.limit": Known(1 << 28, PLACE),
    "shm.size": Known(1 << 20, PLACE),
    "gpus": Known((Gpu("Tesla T4", memory_total=16 << 30),), PLACE),
}
ASSUMED = ["memory=2TB", "gpu=H100-SXM5-80GB:8"]


def planned_on(path, matrix, framework):
    (facts,) = gather(Sources(assume=ASSUMED, elsewhere=True))
    result, code = plan([str(path)], facts, matrix, framework=framework)
    said = [(one.code, one.message, one.severity) for one in result.findings]
    return result.plan, said, code


@pytest.fixture
def poor(monkeypatch):
    """Make this machine one of 1 GiB."""

    def make():
        read = sources.probe
        monkeypatch.setattr(
            sources, "probe", lambda **asked: Facts({**dict(read(**asked)), **POOR})
        )

    return make


@pytest.mark.parametrize("name", sorted([*RUNS, *SEEDS]))
def test_a_poor_machine_changes_nothing(matrix, tmp_path, poor, name):
    path, framework = FOLDER / name, None
    if name in RUNS:
        path = written(name, tmp_path)
    else:
        framework = SEEDS[name][1]
    here = planned_on(path, matrix, framework)
    poor()
    assert planned_on(path, matrix, framework) == here
    limits = [pool.limit for pool in here[0].pools if pool.name in ("host", "gpu")]
    assert all(limit is not None and limit.size > 70 << 30 for limit in limits)


def test_that_machine_is_poor_where_it_counts(matrix, tmp_path, poor):
    """Without assumptions the same facts are the limits."""
    poor()
    path = tmp_path / "ms-swift.sh"
    path.write_text(RUNS["ms-swift.sh"] + "\n")
    (facts,) = gather(Sources())
    result, _ = plan([str(path)], facts, matrix)
    assert result.plan.pool("host").limit.size <= 1 << 30


def planned_in(command, path, *options):
    """Return what the program itself says, started by a command; without how long it took."""
    words = [sys.executable, "-m", "envdoctor", "plan", str(path), "--format", "json", *options]
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1, 2), done.stderr
    return json.loads(done.stdout)


#: /dev/shm of 1 MiB, in a mount namespace that ends with the program.
TINY_SHM = [
    "unshare",
    "-m",
    "sh",
    "-ec",
    'mount -t tmpfs -o size=1m none /dev/shm; exec "$@"',
    "sh",
]


@pytest.mark.parametrize("name", ["ms-swift-grpo.sh", "verl_lora.sh", "prime-rl.toml", "serve.sh"])
def test_a_machine_that_is_really_poor_changes_nothing(
    tmp_path,
    prerequisite,
    memory_group,  # noqa: F811
    in_group,  # noqa: F811
    name,
):
    """Under a memory limit of the kernel and with a /dev/shm that nothing fits into."""
    prerequisite(subprocess.run([*TINY_SHM, "true"]).returncode == 0, "unshare -m (root)")
    (memory_group / "memory.limit_in_bytes").write_text(str(600 << 20))
    path = written(name, tmp_path) if name in RUNS else FOLDER / name
    (facts,) = gather(Sources(assume=ASSUMED, elsewhere=True))
    target = tmp_path / "target.json"
    target.write_text(json.dumps(dump_facts(facts)))
    poor = in_group(memory_group, TINY_SHM)
    for machine in (["--assume", *ASSUMED], ["--target", str(target)]):
        rich = planned_in([], path, *machine)
        assert planned_in(poor, path, *machine) == rich
    # Without assumptions the same program sees both.
    own = {pool["name"]: pool["limit"] for pool in planned_in(poor, path)["pools"]}
    assert own["host"]["size"] <= 600 << 20
    assert "shm" not in own or own["shm"]["size"] == 1 << 20


@pytest.mark.parametrize(
    ("gpu", "mib"),
    [
        ("T4", 15360),  # with ECC, of 16 GB
        ("L4", 23034),
        ("A10G", 23028),
        ("L40S", 46068),
        ("H100-SXM5-80GB", 81559),
        ("H100", 81559),
        ("A100-SXM4-80GB", 81920),
        ("V100-SXM2-32GB", 32768),
    ],
)
def test_a_gpu_that_is_assumed_has_what_nvidia_smi_shows_of_its_model(matrix, gpu, mib):
    machine = gather(Sources(assume=[f"gpu={gpu}:1"], elsewhere=True))[0]
    limit = gpu_limit(Inputs(Workload({}), {}, machine), matrix)
    assert limit is not None
    assert (limit.size, limit.usable) == (mib << 20, mib << 20)
