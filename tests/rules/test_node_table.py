"""Many nodes as few kinds."""

from __future__ import annotations

import copy
import random

import pytest

from envdoctor.app import Options, check_cluster
from envdoctor.model.node_answers import Answers, NodeAnswer
from envdoctor.rules.node_table import NodeTable

GIB = 1 << 30


def entry(value):
    return {"value": value, "source": "test"}


BASE = {
    "os.platform": entry("linux"),
    "os.architecture": entry("x86_64"),
    "python.version": entry("3.12.3"),
    "driver.release": entry("570.86.15"),
    "gpus": entry(
        [{"name": "NVIDIA H100 80GB HBM3", "uuid": f"GPU-{n}", "visible": True} for n in range(8)]
    ),
    "distributions": entry(
        [{"name": "torch", "version": "2.6.0"}, {"name": "ray", "version": "2.44.1"}]
    ),
    "distributions.complete": entry(True),
    "variables": entry({"NCCL_ALGO": "Ring", "RANK": "0"}),
    "variables.complete": entry(True),
    "memory.total": entry(1000 * GIB),
    "memory.available": entry(900 * GIB),
    "shm.size": entry(500 * GIB),
    "shm.available": entry(500 * GIB),
    "rlimit.memlock": entry(-1),
}


def cluster(count, changes=None, prefix="gpu"):
    """Return answers of that many nodes; ``changes`` maps a number to what differs there."""
    store, answers = Answers(), []
    for number in range(1, count + 1):
        table = copy.deepcopy(BASE)
        table["node.name"] = entry(f"{prefix}{number:02d}")
        change = (changes or {}).get(number)
        if change is not None:
            change(table)
        answers.append(store.answer_of(f"{prefix}{number:02d}", table, 1.0, 0.0))
    return store, answers


def kinds_of(store, answers):
    table = NodeTable(store.environments)
    for answer in answers:
        table.add(answer)
    return table.kinds()


def setting(field, value):
    return lambda table: table.__setitem__(field, entry(value))


def without_gpu(table):
    table["gpus"] = entry(table["gpus"]["value"][:7])


def test_nodes_that_differ_in_nothing_are_one_kind():
    rng = random.Random(1)
    changes = {
        number: lambda table: table.update(
            {
                "memory.available": entry(rng.randrange(GIB, 900 * GIB)),
                "memory.total": entry(1000 * GIB + rng.randrange(GIB)),  # firmware takes some
                "variables": entry({"NCCL_ALGO": "Ring", "RANK": str(rng.random())}),
            }
        )
        for number in range(1, 41)
    }
    (kind,) = kinds_of(*cluster(40, changes))
    assert kind.folded == "gpu[01-40]"
    assert not kind.differences


def test_no_limit_is_one_size():
    """Sizes are searched for each node: what is equal must not lengthen the list."""
    store, answers = cluster(5, {3: setting("rlimit.memlock", 65536)})
    table = NodeTable(store.environments)
    for answer in answers:
        table.add(answer)
    assert table._sizes["rlimit.memlock"] == [-1, 65536]


@pytest.mark.parametrize(
    ("change", "name", "value", "others"),
    [
        (without_gpu, "GPUs", "7 x NVIDIA H100 80GB HBM3", "8 x NVIDIA H100 80GB HBM3"),
        (setting("driver.release", "550.54.15"), "driver.release", "550.54.15", "570.86.15"),
        (setting("memory.total", 500 * GIB), "memory.total", "500 GiB", "1000 GiB"),
        (setting("rlimit.memlock", 65536), "rlimit.memlock", "64 KiB", "unlimited"),
        (setting("variables", {"NCCL_ALGO": "Tree"}), "$NCCL_ALGO", "Tree", "Ring"),
        (setting("variables", {}), "$NCCL_ALGO", None, "Ring"),
        (
            setting("distributions", [{"name": "torch", "version": "2.6.0"}]),
            "ray",
            None,
            "2.44.1",
        ),
        (
            setting("gpus", [{**gpu, "fault": "GPU is lost"} for gpu in BASE["gpus"]["value"]]),
            "GPU faults",
            "GPU is lost",
            None,
        ),
    ],
)
def test_the_node_that_differs_is_named_with_both_values(change, name, value, others):
    most, odd = kinds_of(*cluster(5, {3: change}))
    assert most.folded == "gpu[01-02,04-05]"
    assert odd.names == ("gpu03",)
    assert [tuple(entry) for entry in odd.differences] == [(name, value, others)]


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, ["files of torch"]),
        ({"distributions": entry([{"name": "torch", "version": "2.7.0"}])}, ["ray", "torch"]),
        ({"python.abi": entry("cp310")}, ["python.abi"]),
        ({"distributions.files": entry({})}, []),
        ({"distributions.files": {"unknown": "took longer than 2 s"}}, []),
    ],
)
def test_files_are_compared_within_a_release(changes, names):
    """Of another release, or for another Python, they are others; without RECORD nothing is
    known.
    """

    def other(table):
        usual(table)
        table.update({"distributions.files": entry({"torch": "bb"}), **changes})

    def usual(table):
        table.update({"distributions.files": entry({"torch": "aa"}), "python.abi": entry("cp312")})

    odd = kinds_of(*cluster(4, {1: usual, 2: usual, 3: usual, 4: other}))[1:]
    assert sorted(one.name for kind in odd for one in kind.differences) == names


def test_what_one_node_could_not_read_is_no_difference():
    changes = {
        2: lambda table: table.update(
            {
                "driver.release": {"unknown": "took longer than 2 s"},
                "distributions": {"unknown": "permission"},
                "variables": {"unknown": "not read"},
            }
        )
    }
    (kind,) = kinds_of(*cluster(4, changes))
    assert len(kind.names) == 4


def report_of(store, answers, **options):
    return check_cluster(answers, store.environments, options=Options(), **options)


def codes_of(report, part=0):
    return {
        finding.code: finding
        for finding in report.sections[part].report.findings
        if finding.code.startswith("ED7")
    }


def test_a_lost_gpu_is_an_error_on_its_node():
    findings = codes_of(report_of(*cluster(6, {4: without_gpu})))
    assert findings["ED710"].severity == "error"
    assert findings["ED710"].nodes == ("gpu04",)


@pytest.mark.parametrize(("count", "nodes"), [(4, 6), (7, 2), (8, 6)])
def test_a_number_that_is_built_or_two_nodes_are_no_lost_gpu(count, nodes):
    change = {1: setting("gpus", BASE["gpus"]["value"][:count])}
    assert "ED710" not in codes_of(report_of(*cluster(nodes, change)))


def test_variables_by_which_ranks_agree():
    findings = codes_of(report_of(*cluster(4, {2: setting("variables", {"NCCL_ALGO": "Tree"})})))
    assert "Tree on gpu02" in findings["ED711"].message
    store, answers = cluster(
        4, {2: setting("variables", {"NCCL_ALGO": "Ring", "VLLM_HOST_IP": "a"})}
    )
    assert "ED711" not in codes_of(report_of(store, answers))


@pytest.mark.parametrize(
    ("first", "second", "severity"),
    [
        ("Ring", "Tree", "error"),
        ("ring,NVLS", "tree", "error"),
        ("Ring,Tree", "tree", "warning"),  # one entry is in both
        ("Ring", "^Ring", "warning"),  # all but one
        ("Ring", "allreduce:Tree", "warning"),  # for one collective alone
        ("Ring", "", "warning"),  # NCCL chooses, and may choose Ring
    ],
)
def test_ranks_without_a_common_choice(first, second, severity):
    def choosing(value):
        return setting("variables", {"NCCL_ALGO": value} if value else {})

    changes = {number: choosing(second if number == 2 else first) for number in range(1, 5)}
    assert codes_of(report_of(*cluster(4, changes)))["ED711"].severity == severity


@pytest.mark.parametrize(
    ("offset", "severity"), [(0.5, None), (-43.0, "advice"), (400.0, "warning")]
)
def test_clocks(offset, severity):
    store, answers = cluster(3)
    answers[1] = answers[1]._replace(clock_offset=offset)
    finding = codes_of(report_of(store, answers)).get("ED712")
    assert (finding and finding.severity) == severity
    if finding:
        assert finding.nodes == ("gpu02",)


def test_the_majority_is_counted_in_nodes_not_in_kinds():
    def other(table):
        table["distributions"] = entry([{"name": "ray", "version": "2.40.0"}])

    changes = {1: other, 2: lambda table: (other(table), without_gpu(table))}
    finding = codes_of(report_of(*cluster(9, changes)))["ED703"]
    assert "most have 2.44.1" in finding.remedies[0].text


def test_parts_are_compared_among_each_other_only():
    old = setting("driver.release", "550.54.15")
    store, answers = cluster(4, {3: old, 4: old})
    report = report_of(store, answers, parts={"old": ["gpu03", "gpu04"]})
    assert [(part.name, len(part.kinds)) for part in report.sections] == [("old", 1), ("", 1)]
    assert not codes_of(report, 0)
    assert report.exit_code == 0


def test_a_node_without_an_answer_is_a_failure_until_it_answers():
    store, answers = cluster(2)
    report = report_of(store, [*answers, NodeAnswer("gpu03", failed="no answer within 30 s")])
    assert [answer.node for answer in report.failed] == ["gpu03"]
    assert report.exit_code == 1
    again = report_of(store, [NodeAnswer("gpu01", failed="x"), *answers])
    assert not again.failed


GPUS = BASE["gpus"]["value"]
LIMITED = {"rlimit.memlock": entry(8 << 20)}


def older(table):
    """An older partition: other GPUs, driver, torch and engine."""
    table["gpus"] = entry([{"name": "NVIDIA A100-SXM4-80GB"}] * 4)
    table["driver.release"] = entry("550.54.15")
    table["distributions"] = entry([{"name": "torch", "version": "2.4.0"}])


def without_devices(table):
    table["gpus"] = entry([])
    table["driver.release"] = {"absent": True, "source": "t"}
    table["distributions"] = entry([{"name": "ray", "version": "2.44.1"}])


#: Clusters as they are built: none has an error.
HEALTHY = {
    "one node": cluster(1),
    "a head without GPUs": cluster(5, {1: setting("gpus", [])}),
    "a login node without a driver": cluster(
        5,
        {
            1: lambda table: table.update(
                {"gpus": entry([]), "driver.release": {"absent": True, "source": "t"}}
            )
        },
    ),
    "two kinds of GPUs": cluster(
        8, {n: setting("gpus", [{"name": "NVIDIA A100-SXM4-80GB"}] * 8) for n in (5, 6, 7, 8)}
    ),
    "nodes with four and with eight": cluster(
        8, {n: setting("gpus", BASE["gpus"]["value"][:4]) for n in (5, 6, 7, 8)}
    ),
    "nodes with two sizes of memory": cluster(
        8, {n: setting("memory.total", 2000 * GIB) for n in (1, 2)}
    ),
    "one node that is busy": cluster(6, {2: setting("memory.available", 300 * GIB)}),
    "an interface of its own": cluster(
        4, {2: setting("variables", {"NCCL_ALGO": "Ring", "NCCL_SOCKET_IFNAME": "eth1"})}
    ),
    "two partitions with drivers and torches of their own": (
        *cluster(8, dict.fromkeys((5, 6, 7, 8), older)),
        {"new": ["gpu01", "gpu02", "gpu03", "gpu04"], "old": ["gpu05", "gpu06", "gpu07", "gpu08"]},
    ),
    "a partition of CPUs with another stack": (
        *cluster(6, dict.fromkeys((5, 6), without_devices)),
        {"cpu": ["gpu05", "gpu06"]},
    ),
    "a head without GPUs or torch": cluster(5, {1: without_devices}),
    "every node is another": cluster(
        6, {n: setting("memory.total", n * 100 * GIB) for n in range(1, 7)}
    ),
    "hidden GPUs on a node that is shared": cluster(
        4,
        {2: setting("gpus", [{**gpu, "visible": n < 4} for n, gpu in enumerate(GPUS)])},
    ),
    "MIG on one of four": cluster(
        4, {2: setting("gpus", [{**gpu, "mig_mode": True} for gpu in GPUS])}
    ),
    "a kernel that is newer after a reboot": cluster(4, {3: setting("os.kernel", "6.8.0-60")}),
    "a driver of the same branch": cluster(6, {6: setting("driver.release", "570.124.06")}),
    "names of hosts and ranks in variables": cluster(
        4,
        {
            n: setting("variables", {"NCCL_ALGO": "Ring", "RANK": str(n), "VLLM_HOST_IP": f"::{n}"})
            for n in range(1, 5)
        },
    ),
    "what was not read on one": cluster(
        4, {2: lambda table: table.update({"gpus": {"unknown": "not permitted"}})}
    ),
    "memory locked by a limit on the login node": cluster(
        5, {1: lambda table: (without_devices(table), table.update(LIMITED))}
    ),
    "an idle and a full machine of each kind": cluster(
        4, {n: setting("memory.available", n * 200 * GIB) for n in range(1, 5)}
    ),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_clusters_have_no_error(name):
    store, answers, *parts = HEALTHY[name]
    report = report_of(store, answers, **({"parts": parts[0]} if parts else {}))
    assert [
        f.code for part in report.sections for f in part.report.findings if f.severity == "error"
    ] == []


def test_a_node_that_is_in_two_files_is_one_node():
    store, answers = cluster(3)
    again = answers[1]._replace(host=None, environment="", failed="no answer within 30 s")
    report = report_of(store, [*answers, *answers, again])
    assert report.sections[0].size == 3
    assert not report.failed
