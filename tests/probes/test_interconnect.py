"""Ports, places on the PCI bus, IOMMU and ACS, from folders like those of a machine."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdoctor.model.evidence import Absent, Known, Unknown
from envdoctor.model.pci import distance
from envdoctor.probes.interconnect import (
    acs_redirects,
    parse_port_state,
    parse_rate,
    probe_interconnect,
)
from envdoctor.probes.machine import Machine

GPU_ALIAS = "pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00"
#: Two GPUs and a card below one switch; a card of the other socket.
PATHS = {
    "0000:18:00.0": "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0",
    "0000:19:00.0": "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0",
    "0000:1a:00.0": "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0",
    "0000:d8:00.0": "pci0000:d0/0000:d0:01.0",
}


def config(control):
    """The configuration space of a bridge: another capability, then ACS with these bits."""
    extended = struct.pack("<I", 0x0001 | 1 << 16 | 0x148 << 20) + b"\0" * 0x44
    extended += struct.pack("<IHH", 0x000D | 1 << 16, 0x5F, control)
    return b"\0" * 0x100 + extended + b"\0" * 0x20


@pytest.fixture
def machine(tmp_path):
    """A node with two GPUs, an InfiniBand and an Ethernet card, and interfaces without a card."""

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(text if isinstance(text, bytes) else f"{text}\n".encode())

    def link(path, target):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).symlink_to(target)

    for bus, above in PATHS.items():
        folder = f"sys/devices/{above}/{bus}"
        write(f"{folder}/numa_node", 1 if bus == "0000:d8:00.0" else 0)
        write(f"{folder}/current_link_width", 8 if bus == "0000:19:00.0" else 16)
        write(f"{folder}/max_link_width", 16)
        gpu = bus in ("0000:18:00.0", "0000:19:00.0")
        write(f"{folder}/modalias", GPU_ALIAS if gpu else "pci:v000015B3bc02sc07i00")
        link(f"sys/bus/pci/devices/{bus}", f"/{folder}")
        for part in above.split("/")[1:]:
            place = tmp_path / f"sys/bus/pci/devices/{part}"
            if not place.exists():
                write(f"sys/bus/pci/devices/{part}/config", config(0))
    card = "sys/class/infiniband/mlx5_0"
    for name, text in (
        ("state", "1: DOWN"),
        ("rate", "400 Gb/sec (4X NDR)"),
        ("link_layer", "InfiniBand"),
    ):
        write(f"{card}/ports/1/{name}", text)
    link(f"{card}/device", "/sys/bus/pci/devices/0000:1a:00.0")
    for name, text in (("type", 1), ("operstate", "up"), ("speed", 100000), ("mtu", 9000)):
        write(f"sys/class/net/eth0/{name}", text)
    link("sys/class/net/eth0/device", "/sys/bus/pci/devices/0000:d8:00.0")
    write("sys/class/net/docker0/operstate", "down")
    write("sys/kernel/iommu_groups/0/type", "identity")
    machine = Machine(str(tmp_path))
    machine.write = write
    return machine


class Recorded(Machine):
    __slots__ = ("write",)


@pytest.fixture(autouse=True)
def with_write(monkeypatch):
    monkeypatch.setattr("tests.probes.test_interconnect.Machine", Recorded)


def test_ports_with_a_card_and_their_link(machine):
    ethernet, infiniband = probe_interconnect(machine)["network.ports"].value
    assert ethernet == ("eth0", "ethernet", "up", 100_000, 9000, "0000:d8:00.0")
    assert infiniband == ("mlx5_0/1", "infiniband", "down", 400_000, None, "0000:1a:00.0")


def test_places_lanes_and_how_near_they_are(machine):
    places = {place.bus: place for place in probe_interconnect(machine)["pci.places"].value}
    assert sorted(places) == sorted(PATHS)
    first, second, near, far = (places[bus]._asdict() for bus in sorted(PATHS))
    assert (second["width"], second["width_max"], second["kind"]) == (8, 16, "gpu")
    assert [distance(first, other) for other in (second, near, far)] == ["PIX", "PIX", "SYS"]


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ("pci0/a/b/c/d", "pci0/a/x/y/z", "PXB"),
        ("pci0/a/b", "pci0/c/d", "PHB"),
        ("pci0/a", "pci1/b", "NODE"),
    ],
)
def test_distances(one, other, words):
    assert distance({"path": one, "numa_node": 0}, {"path": other, "numa_node": 0}) == words


@pytest.mark.parametrize(("control", "expected"), [(0, None), (0x1D, True), (0x11, None)])
def test_acs_of_the_bridges_above_the_gpus(machine, control, expected):
    machine.write("sys/bus/pci/devices/0000:17:00.0/config", config(control))
    fact = probe_interconnect(machine).get("pcie.acs_iommu")
    assert (fact and fact.value) is expected
    if expected:
        assert "0000:17:00.0" in fact.evidence.detail


def test_what_only_the_superuser_reads_is_not_known():
    assert acs_redirects(b"\0" * 64) is None
    assert acs_redirects(config(0b100)) is True
    assert acs_redirects(config(0)) is False


def test_iommu(machine):
    assert probe_interconnect(machine)["iommu.modes"] == Known(
        "identity", probe_interconnect(machine)["iommu.modes"].evidence
    )


def test_a_folder_that_is_no_machine(tmp_path):
    (tmp_path / "etc").mkdir()
    facts = probe_interconnect(Machine(str(tmp_path)))
    assert all(isinstance(fact, Unknown) for fact in facts.values())


def test_this_machine():
    facts = probe_interconnect(Machine())
    assert isinstance(facts["network.ports"], (Known, Unknown))
    assert isinstance(facts["iommu.modes"], (Known, Absent, Unknown))


@given(st.text(max_size=60))
def test_parsers_take_any_text(text):
    parse_port_state(text)
    rate = parse_rate(text)
    assert rate is None or rate >= 0


@given(st.binary(max_size=600))
def test_any_configuration_space(content):
    assert acs_redirects(content) in (None, True, False)


def test_words_of_the_kernel():
    assert [parse_port_state(text) for text in ("4: ACTIVE", "2: INIT", "5: ACTIVE_DEFER")] == [
        "up",
        "initializing",
        "active_defer",
    ]
    assert [parse_rate(text) for text in ("400 Gb/sec (4X NDR)", "2.5 Gb/sec (1X SDR)", "x")] == [
        400_000,
        2_500,
        None,
    ]
