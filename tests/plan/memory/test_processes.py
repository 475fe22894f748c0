"""What the plan says of host memory, held against processes that really hold it."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile

import pytest

from tests.containers.conftest import ray_python  # noqa: F401 - a fixture

from .test_estimate import plan_of

SMALL, LARGE = 20_000_000, 60_000_000
_TRAIN = """
import sys, torch
def held():
    line = next(l for l in open("/proc/self/smaps_rollup") if l.startswith("Rss"))
    return int(line.split()[1]) * 1024
count = int(sys.argv[1])
weights = [torch.nn.Parameter(torch.ones(count // 4)) for _ in range(4)]
optimizer = torch.optim.Adam(weights, lr=1e-5)
for _ in range(2):
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    optimizer.step()
print(held())
"""


def test_an_optimizer_on_the_host(torch_python, matrix):
    """Master weights, two moments and gradients in fp32: torch's Adam on the CPU holds the same
    states as DeepSpeed's, of which a wheel would have to be built. Of two sizes the difference
    counts, which leaves out Python and the libraries.
    """
    held = [
        int(
            subprocess.run(
                [torch_python, "-c", _TRAIN, str(count)],
                stdout=subprocess.PIPE,
                check=True,
                # What is freed goes back at once, so that it is not held.
                env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"},
                timeout=120,
            ).stdout
        )
        for count in (SMALL, LARGE)
    ]
    measured = (held[1] - held[0]) / (LARGE - SMALL)
    size = 7.62e9
    for strategy in ("zero1", "zero2"):
        plan = plan_of(matrix, actor__strategy=strategy, actor__offload_optimizer=True)
        (term,) = [
            term
            for term in plan.pool("host").terms
            if term.name == "state on the host" and term.role == "actor"
        ]
        assert term.low / size == pytest.approx(measured, rel=0.03), strategy
        assert term.high / size >= measured * 0.97, strategy


MIB = 1 << 20
#: A /dev/shm that nothing else writes to.
OWN_SHM = ["unshare", "-m", "sh", "-ec", 'mount -t tmpfs -o size=1g none /dev/shm; exec "$@"', "sh"]
_STORE = """
import json, os, sys
os.environ["RAY_raylet_start_wait_time_s"] = "200"  # a busy machine
os.environ["RAY_local_fs_capacity_threshold"] = "0.999"  # and a full one
import ray
asked, put, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
def held():
    shm = os.statvfs("/dev/shm")
    return (shm.f_blocks - shm.f_bfree) * shm.f_frsize
before = held()
ray.init(num_cpus=1, object_store_memory=asked, include_dashboard=False, logging_level="ERROR",
         object_spilling_directory=folder, _temp_dir=sys.argv[4])
size, kept, steps = 16 << 20, [], []
for number in range(put // size):
    kept.append(ray.put(bytes([number]) * size))
    steps.append(held() - before)
right = all(ray.get(kept[number])[7] == number for number in range(len(kept)))
files = [os.path.join(path, name) for path, _, names in os.walk(folder) for name in names]
print(json.dumps({"steps": steps, "right": right, "spilled": sum(map(os.path.getsize, files))}))
ray.shutdown()
"""


@pytest.mark.slow
def test_rays_store_holds_what_is_put_and_no_more_than_was_asked_for(
    ray_python,  # noqa: F811
    matrix,
    tmp_path,
    prerequisite,
):
    """The plan takes batches as lying in /dev/shm once they are put, and a store as filling up to
    what was asked for; beyond that Ray writes files.
    """
    asked, put = 192 * MIB, 320 * MIB
    prerequisite(subprocess.run([*OWN_SHM, "true"]).returncode == 0, "unshare -m (root)")
    folder = tmp_path / "spilled"
    folder.mkdir()
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as session:
        done = subprocess.run(
            [*OWN_SHM, ray_python, "-c", _STORE, str(asked), str(put), str(folder), session],
            capture_output=True,
            text=True,
            timeout=300,
            # Ray keeps a token in ~/.ray, which a cluster of another test would be refused for.
            env={**os.environ, "HOME": session},
        )
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout.strip().splitlines()[-1])
    assert seen["right"]
    early = [step for step in seen["steps"] if step < asked * 0.9]
    assert len(early) >= 8
    for number, step in enumerate(early, 1):
        assert step == pytest.approx(number * 16 * MIB, abs=8 * MIB)
    assert max(seen["steps"]) <= asked * 1.05
    assert seen["spilled"] >= (put - asked) * 0.9
    plan = plan_of(matrix, ray__object_store=asked, data__multimodal=False)
    (term,) = [
        one
        for pool in plan.pools
        for one in pool.terms
        if (pool.name, one.name) == ("shm", "object store")
    ]
    assert term.low == term.high == asked
