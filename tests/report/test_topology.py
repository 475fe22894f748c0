"""Where GPUs and network cards sit, as boxes in boxes."""

from __future__ import annotations

import re

from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Facts, Gpu, NetworkPort, PciPlace
from envdoctor.report import View, render
from envdoctor.report.topology import topology_of

from .conftest import HEALTHY

HERE = Evidence("test")
PLACES = (
    PciPlace("0000:d8:00.0", "network", "pci0000:d0/0000:d8:00.0", 1),
    PciPlace("0000:18:00.0", "gpu", "pci0000:15/0000:15:01.0/0000:18:00.0", 0, 16, 16),
    PciPlace("0000:19:00.0", "gpu", "pci0000:15/0000:15:01.0/0000:19:00.0", 0, 8, 16),
    PciPlace("0000:1a:00.0", "network", "pci0000:15/0000:15:01.0/0000:1a:00.0", 0, 16, 16),
)
GPUS = (
    Gpu(name="NVIDIA H100", pci_bus="00000000:18:00.0", nvlinks=18),
    Gpu(name="NVIDIA H100", pci_bus="00000000:19:00.0", fault="GPU is lost"),
)
PORTS = (
    NetworkPort("eth0", "ethernet", "up", 100_000, 9000, "0000:d8:00.0"),
    NetworkPort("mlx5_0/1", "infiniband", "down", 400_000, None, "0000:1a:00.0"),
)


def facts(**fields):
    return Facts({name.replace("__", "."): Known(value, HERE) for name, value in fields.items()})


WHOLE = facts(pci__places=PLACES, gpus=GPUS, network__ports=PORTS)


def lines(box, depth=0):
    yield depth, box.title, box.style
    for part in box.parts:
        yield from lines(part, depth + 1)


def test_what_is_in_what():
    box = topology_of(WHOLE, "Topology")
    assert list(lines(box)) == [
        (0, "Topology", ""),
        (1, "NUMA node 0", ""),
        (2, "pci0000:15", ""),
        (3, "root port 0000:15:01.0", ""),
        (4, "0000:18:00.0, NVIDIA H100, x16, 18 NVLinks", "gpu"),
        (4, "0000:19:00.0, NVIDIA H100, x8 of x16, GPU is lost", "error"),
        (4, "mlx5_0/1 (infiniband), down, 400 Gbit/s, x16", "error"),
        (1, "NUMA node 1", ""),
        (2, "pci0000:d0", ""),
        (3, "eth0 (ethernet), up, 100 Gbit/s", "network"),
    ]


def test_without_a_gpu_there_is_none():
    assert topology_of(facts(pci__places=PLACES[:1]), "") is None
    assert topology_of(facts(), "") is None


def test_a_page_shows_it():
    page = render(HEALTHY._replace(nodes=(WHOLE,)), "html", View(80))
    assert re.findall(r'<li class="(\w+)">', page) == ["gpu", "error", "error", "network"]
