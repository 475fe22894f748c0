"""ED118, ED119, ED714, ED715: faults of what joins GPUs and nodes."""

from __future__ import annotations

import pytest

from tests.rules.test_node_table import GIB, cluster, entry, report_of, setting

PORTS = [
    {"name": "mlx5_0/1", "kind": "infiniband", "state": "up", "speed": 400_000},
    {"name": "eth0", "kind": "ethernet", "state": "up", "speed": 100_000, "mtu": 9000},
]
FAILURE = {"report": "dcgm", "part": "memory of GPU 3"}
MOUNT = {"point": "/data", "kind": "nfs4", "source": "nfs01:/x", "size": 100 << 40}


def findings_of(change, count=6, number=4):
    """Return the findings of these rules where one of several nodes is changed."""

    def changed(table):
        table.update({"network.ports": entry(PORTS), "mounts.shared": entry([MOUNT])})
        table["gpus"] = entry([{**gpu, "nvlinks": 18} for gpu in table["gpus"]["value"]])
        table["gpus.xids"] = entry([])

    def both(table):
        changed(table)
        change(table)

    changes = {**dict.fromkeys(range(1, count + 1), changed), number: both}
    report = report_of(*cluster(count, changes))
    wanted = ("ED118", "ED119", "ED125", "ED714", "ED715")
    return [one for one in report.sections[0].report.findings if one.code in wanted]


def xid(number, times):
    return {"pci_bus": "0000:18:00", "number": number, "times": times}


def links(*counts):
    return lambda table: table.__setitem__(
        "gpus",
        entry([{**gpu, "nvlinks": n} for gpu, n in zip(table["gpus"]["value"], counts)]),
    )


@pytest.mark.parametrize(
    ("change", "code", "severity", "words"),
    [
        (
            setting("gpus.xids", [xid(79, 2)]),
            "ED118",
            "warning",
            "2 times: it fell off the bus",
        ),
        (links(18, 18, 17, 18, 18, 18, 18, 18), "ED119", "warning", "17 NVLinks up"),
        (
            setting("network.ports", [{**PORTS[0], "state": "down"}, PORTS[1]]),
            "ED714",
            "warning",
            "mlx5_0/1 is down on gpu04, and up on most nodes",
        ),
        (
            setting("network.ports", [{**PORTS[0], "speed": 100_000}, PORTS[1]]),
            "ED714",
            "warning",
            "at 100 Gbit/s on gpu04, and up at 400 Gbit/s",
        ),
        (
            setting("network.ports", [PORTS[0], {**PORTS[1], "state": "down"}]),
            "ED714",
            "advice",
            "eth0 is down",
        ),
        (
            setting("health.failures", [{**FAILURE, "reason": "DBE."}]),
            "ED125",
            "warning",
            "dcgm: memory of GPU 3 fails: DBE.",
        ),
        (
            setting("health.failures", [{**FAILURE, "reason": "x is off (a setting)"}]),
            "ED125",
            "warning",  # by the tool's severity, not by its words
            "fails: x is off (a setting).",
        ),
        (
            setting("health.failures", [{**FAILURE, "setting": True}]),
            "ED125",
            "advice",
            "dcgm: memory of GPU 3 fails (a setting).",
        ),
        (setting("mounts.shared", []), "ED715", "warning", "/data is not mounted: 5 of 6"),
        (
            setting("mounts.shared", [{**MOUNT, "error": "ESTALE: Stale file handle"}]),
            "ED715",
            "warning",
            "does not respond: ESTALE",
        ),
        (
            setting("mounts.shared", [{**MOUNT, "available": GIB}]),
            "ED715",
            "advice",
            "is full: 1 GiB left",
        ),
    ],
)
def test_what_is_wrong_on_one_node_is_said_of_it(change, code, severity, words):
    (finding,) = findings_of(change)
    assert (finding.code, finding.severity, finding.nodes) == (code, severity, ("gpu04",))
    assert words in finding.message


@pytest.mark.parametrize(
    "change",
    [
        lambda table: None,
        setting("gpus.xids", [xid(31, 5), xid(43, 1)]),  # programs'
        links(18, 18, 18, 18, 0, 0, 0, 0),  # bridges between some
        setting("network.ports", []),  # other names, or not read: no port is down
        lambda table: table.__setitem__("mounts.shared", {"unknown": "not read"}),
        lambda table: table.__setitem__("network.ports", {"unknown": "not read"}),
    ],
)
def test_what_is_no_fault(change):
    assert findings_of(change) == []


def test_two_nodes_tell_nothing_of_what_is_usual():
    assert findings_of(setting("mounts.shared", []), count=2, number=2) == []


def lost(bus):
    """The last GPU stands where the kernel says so; NVML writes the domain with eight digits."""

    def change(table):
        table["gpus"]["value"][-1]["pci_bus"] = bus
        table["gpus.xids"] = entry([xid(79, 2)])

    return change


@pytest.mark.parametrize(
    ("change", "gpus"),
    [
        (lost("00000000:18:00.0"), (7,)),
        (lost("00000001:18:00.0"), ()),
        (links(18, 18, 17, 18, 18, 18, 18, 18), (2,)),
    ],
)
def test_which_gpu_has_the_fault(change, gpus):
    (fault,) = findings_of(change)
    assert fault.gpus == gpus
