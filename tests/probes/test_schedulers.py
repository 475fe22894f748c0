"""Slurm's variables, the downward API, Ray's session folder."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.model.evidence import Absent, Evidence, Known, Unknown
from envdoctor.model.facts import Distribution
from envdoctor.probes.machine import Machine
from envdoctor.probes.schedulers import (
    parse_quantity,
    parse_ray_usage,
    probe_schedulers,
    slurm_memory,
)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"SLURM_MEM_PER_NODE": "65536"}, (64 << 30, "SLURM_MEM_PER_NODE")),
        (
            {"SLURM_MEM_PER_CPU": "2048", "SLURM_CPUS_ON_NODE": "16"},
            (32 << 30, "SLURM_MEM_PER_CPU × SLURM_CPUS_ON_NODE"),
        ),
        (
            {"SLURM_MEM_PER_GPU": "1024", "SLURM_GPUS_ON_NODE": "8"},
            (8 << 30, "SLURM_MEM_PER_GPU × SLURM_GPUS_ON_NODE"),
        ),
        ({"SLURM_MEM_PER_CPU": "2048"}, None),
        ({"SLURM_MEM_PER_NODE": "0"}, None),  # the whole node
        ({"SLURM_MEM_PER_NODE": "64G"}, None),
        ({"SLURM_MEM_PER_NODE": "٦٤"}, None),
        ({}, None),
    ],
)
def test_slurm_memory(environment, expected):
    assert slurm_memory(environment) == expected


def test_slurm_job_without_names_of_people():
    environment = {
        "SLURM_JOB_ID": "7",
        "SLURM_MEM_PER_NODE": "1024",
        "SLURM_JOB_USER": "somebody",
        "SLURM_JOB_ACCOUNT": "a",
        "SLURM_SUBMIT_HOST": "h",
        "SLURM_JOB_PARTITION": "gpu",
    }
    facts = probe_schedulers(Machine(environment=environment))
    assert facts["slurm.job"].value == {
        "SLURM_JOB_ID": "7",
        "SLURM_MEM_PER_NODE": "1024",
        "SLURM_JOB_PARTITION": "gpu",
    }
    assert facts["memory.scheduler_limit"].value == 1 << 30
    facts = probe_schedulers(Machine(environment={}))
    assert isinstance(facts["slurm.job"], Absent)
    assert isinstance(facts["memory.scheduler_limit"], Absent)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("68719476736", 64 << 30),
        ("64Gi", 64 << 30),
        ("64G", 64 * 10**9),
        ("65536Mi\n", 64 << 30),
        ("65536", None),  # the divisor was Mi or Gi
        ("64", None),
        ("", None),
        ("-1", None),
        ("1e9", None),
        ("9223372036854771712", None),  # no limit
    ],
)
def test_quantities(text, expected):
    assert parse_quantity(text) == expected


def test_downward_api(tmp_path):
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert isinstance(
        probe_schedulers(Machine(str(tmp_path), environment))["memory.scheduler_limit"], Unknown
    )
    (tmp_path / "etc" / "podinfo").mkdir(parents=True)
    (tmp_path / "etc" / "podinfo" / "mem_limit").write_text("34359738368")
    assert probe_schedulers(Machine(str(tmp_path), environment))["memory.scheduler_limit"] == Known(
        32 << 30, Evidence("/etc/podinfo/mem_limit")
    )
    environment["MEMORY_LIMIT"] = "16Gi"
    assert probe_schedulers(Machine(str(tmp_path), environment))["memory.scheduler_limit"] == Known(
        16 << 30, Evidence("environment", "MEMORY_LIMIT")
    )


def test_ray_of_this_process():
    machine = Machine(environment={})
    machine.facts.update(
        {
            "distributions": Known({"ray": Distribution("ray", "2.46.0")}, Evidence("site")),
            "distributions.complete": Known(True, Evidence("site")),
            "python.version": Known("3.10.12", Evidence("python")),
        }
    )
    facts = probe_schedulers(machine)
    assert facts["ray.process_version"] == Known("2.46.0", Evidence("site"))
    assert facts["ray.process_python"].value == "3.10.12"
    machine.facts["distributions"] = Known({}, Evidence("site"))
    facts = probe_schedulers(machine)
    assert isinstance(facts["ray.process_version"], Absent)
    assert "ray.process_python" not in facts


@pytest.mark.parametrize(
    ("listening", "version"), [("session_2", "2.46.0"), ("session_1", None), ("", None)]
)
def test_a_session_counts_where_its_raylet_listens(listening, version):
    """A Ray that was killed leaves its session, and the file that says which is current."""
    sockets = f"0: 2 0 10000 1 1 5 /tmp/ray/{listening}/sockets/raylet\n"
    files = {
        "/tmp/ray/ray_current_cluster": "192.0.2.1:6379",
        "/tmp/ray/session_latest/usage_stats.json": '{"ray_version": "2.46.0"}',
        "/proc/net/unix": sockets if listening else "",
    }

    class OneFolder(Machine):
        def exists(self, path):
            return path in files

        def read_text(self, path, limit=0):
            return files.get(path)

        def realpath(self, path):
            return path.replace("session_latest", "session_2")

    assert probe_schedulers(OneFolder(environment={})).get("ray.cluster_version") == (
        version and Known(version, Evidence("/tmp/ray/session_latest/usage_stats.json"))
    )


def test_ray_usage_file():
    assert parse_ray_usage(
        json.dumps(
            {
                "usage_stats": {
                    "ray_version": "2.46.0",
                    "python_version": "3.10.12",
                    "session_id": "x",
                }
            }
        )
    ) == (
        "2.46.0",
        "3.10.12",
    )
    assert parse_ray_usage(json.dumps({"ray_version": "3.0.0.dev0"})) == ("3.0.0.dev0", None)
    for text in (
        "",
        "[]",
        '{"usage_stats": 1}',
        '{"usage_stats": {"ray_version": {}}}',
        "[" * 100_000,
        '{"ray_version": "' + "9" * 500 + '"}',
    ):
        assert parse_ray_usage(text) == (None, None), text[:40]


@settings(max_examples=200)
@given(st.text(max_size=200))
def test_parsers_take_anything(text):
    size = parse_quantity(text)
    assert size is None or 0 < size < 1 << 62
    for version in parse_ray_usage(text):
        assert version is None or len(version) < 64
    granted = slurm_memory(
        {"SLURM_MEM_PER_NODE": text, "SLURM_MEM_PER_CPU": text, "SLURM_CPUS_ON_NODE": text}
    )
    assert granted is None or granted[0] > 0
