"""A dozen conditions of the chaos table in real containers (runc, cgroup v1)."""

from __future__ import annotations

import pytest

from ..containers.conftest import runc  # noqa: F401 - a fixture
from ..entrypoint.conftest import write_lock
from ..entrypoint.test_guard import JOB, POLICIES, make_environment, script_of
from .conftest import fits

pytestmark = pytest.mark.slow

MIB = 1 << 20


def process(**fields):
    return lambda spec: spec["process"].update(fields)


def environment(*entries):
    return lambda spec: spec["process"]["env"].extend(entries)


def without_mount(*places):
    def change(spec):
        spec["mounts"] = [entry for entry in spec["mounts"] if entry["destination"] not in places]

    return change


def memory(size):
    def change(spec):
        spec["linux"]["resources"]["memory"] = {"limit": size}

    return change


def processes(count):
    def change(spec):
        spec["linux"]["resources"]["pids"] = {"limit": count}

    return change


def without_capabilities(spec):
    spec["process"]["capabilities"] = {}


def without_namespaces(spec):
    kept = ("mount", "pid", "uts")
    namespaces = spec["linux"]["namespaces"]
    spec["linux"]["namespaces"] = [entry for entry in namespaces if entry["type"] in kept]


#: Expected as in conditions.py; the letters were written before the first run.
CONTAINERS = {
    "nothing wrong": ("rrr", lambda spec: None, ()),
    "an error": ("rxx", lambda spec: None, ("--lock", "{bad}")),
    "wrong usage": ("ruu", lambda spec: None, ("--lock", "{folder}/none")),
    "a user without an entry": ("rre", process(user={"uid": 12345, "gid": 12345}), ()),
    "no capabilities": ("rrr", without_capabilities, ()),
    "24 MiB": ("rrn", memory(24 * MIB), ()),
    "48 MiB": ("rre", memory(48 * MIB), ()),
    "8 processes": ("rre", processes(8), ()),
    "2 processes": ("rre", processes(2), ()),
    "no /sys": ("rre", without_mount("/sys", "/sys/fs/cgroup"), ()),
    "no /dev/shm": ("rre", without_mount("/dev/shm"), ()),
    "the host's namespaces": ("rrr", without_namespaces, ()),
    "PYTHONHOME": ("rrr", environment("PYTHONHOME=/nonexistent"), ()),
    "a folder without an end": ("rrr", process(cwd="/proc/self"), ()),
    "12 files": (
        "rre",
        process(rlimits=[{"type": "RLIMIT_NOFILE", "soft": 12, "hard": 12}]),
        (),
    ),
}


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chaos-containers")
    folder.chmod(0o755)
    environment = make_environment(folder / "env")
    return folder, environment, write_lock(folder / "bad", "vllm==0.6.3", roots=["vllm"])


@pytest.mark.parametrize("name", CONTAINERS)
def test_in_a_container(runc, places, name):  # noqa: F811
    folder, script, bad = places[0], script_of(places[1]), places[2]
    letters, change, options = CONTAINERS[name]
    given = [text.format(bad=bad, folder=folder) for text in options]
    mount = {"destination": str(folder), "type": "none", "source": str(folder)}
    faults = []
    for letter, (policy, words) in zip(letters, POLICIES.items()):

        def prepare(spec, words=(script, *words, *given, "--", *JOB)):
            spec["process"]["args"] = list(words)
            spec["mounts"].append({**mount, "options": ["rbind", "ro"]})
            change(spec)

        done = runc.run("", prepare)
        ran = (done.returncode, done.stdout) == (7, "ran\n")
        state = "runs" if ran else str(done.returncode)
        is_waved = policy == "strict" and ran and "no verdict" in done.stderr
        if is_waved or not fits(letter, state):
            faults.append(f"{policy}: {state}, expected {letter}: {done.stderr[-400:]}")
    assert not faults, "\n".join(faults)
