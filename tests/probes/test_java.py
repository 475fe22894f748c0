"""The JVM's belief on recorded control groups; real JVMs are asked in
tests/containers/test_java_belief.py.
"""

import json

import pytest

from envdoctor.model.evidence import Known, Unknown
from envdoctor.mounts import parse_mountinfo
from envdoctor.probes.container import parse_cgroup
from envdoctor.probes.java import find_java, java_facts, jvm_memory
from envdoctor.probes.machine import Machine

from .test_container import DATA, Folder

MIB = 1 << 20
TOTAL = 24684084 * 1024
EMPTY = {
    "/proc/self/cgroup": "0::/\n",
    "/proc/self/mountinfo": "",
    "/jdk/release": 'IMPLEMENTOR="x"\nJAVA_VERSION="17.0.9"\n',
}


def beliefs(name):
    files = Folder(json.loads((DATA / f"{name}.json").read_text())["files"])
    groups, mounts = (
        parse_cgroup(files.read_text("/proc/self/cgroup")),
        parse_mountinfo(files.read_text("/proc/self/mountinfo")),
    )
    return [jvm_memory(files, groups, mounts, TOTAL, walks) for walks in (False, True)]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        # As the JVMs 17 and 25 themselves said in these layouts.
        ("v1-runc-host-namespace", 256 * MIB, 256 * MIB),
        ("v1-limit-above-host-namespace", 300 * MIB, TOTAL),
        ("v1-limit-above-own-namespace", 300 * MIB, TOTAL),
        ("v2-ancestor", TOTAL, 150 * MIB),
        ("v2-slurm", TOTAL, 160 * MIB),
        ("v2-root", TOTAL, TOTAL),
        ("v2-own-limit-in-a-namespace", 120 * MIB, 120 * MIB),
    ],
)
def test_recorded(name, old, new):
    assert beliefs(name) == [old, new]


def test_a_kernel_without_cpusets_blinds_older_ones():
    """As Java 17 itself said under the kernel of tests/containers/uml.py."""
    files = Folder(
        {
            **json.loads((DATA / "v2-own-limit-in-a-namespace.json").read_text())["files"],
            "/proc/cgroups": "cpu 0 3 1\ncpuacct 0 3 1\nmemory 0 3 1\n",
        }
    )
    groups, mounts = (
        parse_cgroup(files.read_text("/proc/self/cgroup")),
        parse_mountinfo(files.read_text("/proc/self/mountinfo")),
    )
    assert [jvm_memory(files, groups, mounts, TOTAL, walks) for walks in (False, True)] == [
        TOTAL,
        120 * MIB,
    ]


class Recorded(Folder):
    """A machine as far as the probe asks."""

    root = ""

    def __init__(self, files, **environment):
        super().__init__(files)
        self.environment = environment


def of_release(release, name="v2-slurm"):
    files = json.loads((DATA / f"{name}.json").read_text())["files"]
    return dict(
        java_facts(
            Recorded({**files, "/jdk/release": f'JAVA_VERSION="{release}"\n'}, JAVA_HOME="/jdk/"),
            TOTAL,
        )
    )["memory.jvm_belief"]


def test_the_release_decides():
    assert of_release("17.0.15").value == of_release("11.0.2").value == TOTAL
    assert of_release("25").value == of_release("26-ea").value == 160 * MIB
    assert isinstance(of_release("21.0.8"), Unknown)
    assert isinstance(of_release("1.8.0_402"), Unknown)
    assert of_release("21.0.8", "v2-root").value == TOTAL


def test_where_java_is_found(tmp_path, monkeypatch):
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    path = f"relative::{tmp_path / 'nothing'}:{tmp_path / 'bin'}"
    assert find_java(Machine(), {"PATH": path}) is None  # no release file tells what it is
    (home / "release").write_text('JAVA_VERSION="17.0.9"\n')
    assert find_java(Machine(), {"PATH": path}) == str(home)
    assert find_java(Machine(), {"PATH": path, "JAVA_HOME": "/nonexistent"}) == str(home)
    assert find_java(Machine(), {}) is None


@pytest.mark.parametrize("text", ["", "JAVA_VERSION=\n", "\x00\xff", "JAVA_VERSION"])
def test_a_release_file_that_says_nothing(text):
    found = dict(java_facts(Recorded({**EMPTY, "/jdk/release": text}, JAVA_HOME="/jdk"), TOTAL))
    assert isinstance(found["java.version"], Unknown)
    assert found["memory.jvm_belief"] == Known(
        TOTAL, found["memory.jvm_belief"].evidence
    )  # both algorithms agree
