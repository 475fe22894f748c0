"""What the plan says of host memory, held against processes that really hold it."""

from __future__ import annotations

import os
import subprocess

import pytest

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
