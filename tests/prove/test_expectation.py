"""What the hardware carries at most."""

from __future__ import annotations

import pytest

from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Facts, Gpu, NetworkPort
from envdoctor.prove.expectation import expected_bandwidth


def node(gpus=(), ports=()):
    here = Evidence("test")
    return Facts({"gpus": Known(tuple(gpus), here), "network.ports": Known(tuple(ports), here)})


def gpus(count, nvlinks, capability="9.0"):
    return [Gpu(name="x", compute_capability=capability, nvlinks=nvlinks)] * count


RAILS = [NetworkPort(f"mlx5_{n}/1", "infiniband", "up", 400_000) for n in range(8)]
DOWN = [RAILS[0]._replace(state="down"), *RAILS[1:]]
ETHERNET = NetworkPort("eth0", "ethernet", "up", 100_000)


@pytest.mark.parametrize(
    ("nodes", "backend", "expected"),
    [
        # Data sheets: 900, 600 and 1800 GB/s in both directions.
        ([node(gpus(8, 18))], "nccl", (450, "18 NVLinks of 25 GB/s")),
        ([node(gpus(8, 12, "8.0"))], "nccl", (300, "12 NVLinks of 25 GB/s")),
        ([node(gpus(8, 18, "10.0"))], "nccl", (900, "18 NVLinks of 50 GB/s")),
        ([node([*gpus(7, 18), *gpus(1, 17)])], "nccl", (425, "17 NVLinks of 25 GB/s")),
        ([node(gpus(2, 0))], "nccl", None),
        ([node(gpus(2, 18, "12.0"))], "nccl", None),
        (
            [node(gpus(8, 18), RAILS)] * 2,
            "nccl",
            (400, "8 ports, together 3200 Gbit/s"),
        ),
        (
            [node(gpus(8, 18), RAILS), node(gpus(8, 18), DOWN)],
            "nccl",
            (350, "7 ports, together 2800 Gbit/s"),
        ),
        ([node(gpus(8, 18), RAILS), node(gpus(8, 18))], "nccl", None),
        ([node(ports=[ETHERNET, *RAILS])] * 2, "gloo", (12.5, "a port of 100 Gbit/s")),
        ([node(ports=[ETHERNET._replace(speed=None)])] * 2, "gloo", None),
        ([node(ports=[ETHERNET])], "gloo", None),
    ],
)
def test_the_slowest_of_what_all_pass(nodes, backend, expected):
    assert expected_bandwidth(nodes, backend) == expected
