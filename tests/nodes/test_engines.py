"""Real engines on this machine: sshd, Slurm, Ray, Open MPI; a node that differs is planted in each.

kubectl runs against no API server here: a program of its name starts what it is told to, in an
environment of its own, so that its words are tried and Kubernetes itself is not.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import closing

import pytest

from tests.containers.conftest import environment_with_ray, ray_python  # noqa: F401 - a fixture
from tests.containers.slurm import NODES, Slurm, require_slurm

pytestmark = pytest.mark.slow

NAMES = ("n1", "n2", "n3", "n4")


def nodes(*arguments, environment=None, code=0):
    """Run ``envdoctor nodes`` and return its JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "envdoctor", "nodes", *map(str, arguments), "--format", "json"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    wanted = (0, 1) if code is None else (code,)
    assert done.returncode in wanted, done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(done.stdout)


def kinds_of(report):
    """Return the names of each kind, and the differences of the others."""
    (part,) = report["parts"]
    return [sorted(kind["nodes"]) for kind in part["kinds"]], [
        (entry["name"], entry["value"]) for kind in part["kinds"] for entry in kind["differences"]
    ]


def free_port():
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def ssh(tmp_path_factory, prerequisite):
    """A PATH on which ssh reaches n1 to n4 through a real sshd; n3 gets another NCCL_ALGO."""
    daemon = shutil.which("sshd") or "/usr/sbin/sshd"
    prerequisite(os.path.exists(daemon) and shutil.which("ssh"), "sshd (Debian: openssh-server)")
    prerequisite(os.geteuid() == 0, "root")
    folder = tmp_path_factory.mktemp("ssh").resolve()
    for name in ("host", "user"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True
        )
    shutil.copy(folder / "user.pub", folder / "authorized")
    os.makedirs("/run/sshd", exist_ok=True)
    port = free_port()
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {folder}/host\nPidFile {folder}/pid\n"
        f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"
        "AcceptEnv NCCL_ALGO NODE\nMaxStartups 100\n"
    )
    (folder / "config").write_text(
        "Host n3\n  SetEnv NCCL_ALGO=Tree NODE=n3\n"
        "Host n1 n2 n4\n  SetEnv NCCL_ALGO=Ring\n"
        f"Host *\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {folder}/user\n"
        "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
    )
    wrapper = folder / "bin/ssh"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/config "$@"\n')
    wrapper.chmod(0o755)
    process = subprocess.Popen([daemon, "-D", "-f", str(folder / "sshd_config")])
    try:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield {**os.environ, "PATH": f"{wrapper.parent}:{os.environ['PATH']}"}
    finally:
        process.terminate()
        process.wait(10)


def test_ssh(ssh, tmp_path):
    file = tmp_path / "cluster.jsonl"
    report = nodes(
        "--ssh", "n[1-4]", "--python", sys.executable, "--deadline", 60, "-o", file, environment=ssh
    )
    kinds, differences = kinds_of(report)
    assert kinds == [["n1", "n2", "n4"], ["n3"]]
    assert differences == [("$NCCL_ALGO", "Tree")]
    assert "ED711" in [finding["code"] for finding in report["parts"][0]["report"]["findings"]]
    # What was written says the same again, without asking anybody.
    assert kinds_of(nodes("--facts", file)) == (kinds, differences)


def test_resume_asks_only_who_did_not_answer(ssh, tmp_path):
    file = tmp_path / "cluster.jsonl"
    nodes("--ssh", "n[1-2]", "--deadline", 60, "-o", file, environment=ssh)
    with file.open("a") as output:
        output.write('{"schema_version": 1, "node": "n4", "failed": "no answer within 1 s"}\n')
        output.write('{"schema_version": 1, "node": "n')  # a kill cut it in two
    report = nodes("--ssh", "n[1-4]", "--deadline", 60, "-o", file, "--resume", environment=ssh)
    assert sorted(name for names in kinds_of(report)[0] for name in names) == list(NAMES)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert sorted(line["node"] for line in lines if "node" in line) == list(NAMES)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory, prerequisite):
    require_slurm(prerequisite)
    cluster = Slurm(tmp_path_factory.mktemp("slurm").resolve())
    try:
        try:
            cluster.start()
        except RuntimeError as error:
            prerequisite(False, f"Slurm does not start here: {error}")
        yield cluster
    finally:
        cluster.stop()


def test_slurm_with_a_node_that_is_down(slurm):
    slurm("scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=test")
    try:
        report = nodes(
            "--slurm", "-p", "all", "--deadline", 90, environment=slurm.environment, code=1
        )
    finally:
        slurm("scontrol", "update", "NodeName=n2", "State=RESUME")
    assert report["failed"] == [{"node": "n2", "reason": "Slurm says: down"}]
    assert kinds_of(report)[0] == [["n1", "n3", "n4"]]


def test_inside_a_slurm_job(slurm, tmp_path):
    script = tmp_path / "job.sh"
    output = tmp_path / "report.json"
    script.write_text(
        f"#!/bin/sh\n{sys.executable} -m envdoctor nodes --deadline 90 --format json -o {tmp_path}/a.jsonl "
        f"> {output}\n"
    )
    script.chmod(0o755)
    done = slurm("salloc", "-N", len(NODES), script, timeout=200)
    assert done.returncode == 0, done.stderr
    assert kinds_of(json.loads(output.read_text()))[0] == [list(NODES)]


#: What is done to one node before its Python starts -> in what it differs then. ``$ODD`` is another
#: environment with a package more.
PLANTED = {
    "a variable": ("export NCCL_ALGO=Tree", {"$NCCL_ALGO"}),
    "few open files": ("ulimit -n 512", {"rlimit.nofile", "rlimit.nofile_hard"}),
    "little locked memory": ("ulimit -l 64", {"rlimit.memlock"}),
    "a small stack": ("ulimit -s 1024", {"rlimit.stack"}),
    "one CPU": ('exec taskset -c 0 "$PYTHON" "$@"', {"cpu.count"}),
    "another /dev/shm": (
        (
            """exec unshare -m sh -c 'mount -t tmpfs -o size=48m none /dev/shm; exec "$0" "$@"' """
            """ "$PYTHON" "$@" """
        ),
        {"shm.size"},
    ),
    "a package more": ('PYTHON="$ODD"', {"planted", "python.prefix"}),
}


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A Python that is the odd one where $NODE, or Slurm's name of the node, is n3."""
    folder = tmp_path_factory.mktemp("planted").resolve()
    pythons = []
    for name in ("usual", "odd"):
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", str(folder / name / "venv")], check=True
        )
        pythons.append(folder / name / "venv/bin/python")
    (site,) = (folder / "odd").glob("venv/lib/python*/site-packages")
    (site / "planted-1.0.dist-info").mkdir()
    (site / "planted-1.0.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n"
    )
    wrapper = folder / "python"

    def plant(what):
        wrapper.write_text(
            f"#!/bin/sh\nPYTHON={pythons[0]} ODD={pythons[1]}\n"
            f'if [ "${{SLURMD_NODENAME:-$NODE}}" = n3 ]; then\n{what}\nfi\nexec "$PYTHON" "$@"\n'
        )
        wrapper.chmod(0o755)
        return wrapper

    return plant


@pytest.fixture(scope="module")
def mpi(tmp_path_factory, prerequisite):
    """A PATH on which mpirun starts what is for n1 to n4 here, and says for which it is."""
    program = shutil.which("mpirun")
    prerequisite(program, "mpirun (Debian: openmpi-bin)")
    folder = tmp_path_factory.mktemp("mpi").resolve()
    (folder / "hosts").write_text("".join(f"{name} slots=2\n" for name in NAMES))
    wrapper = folder / "bin/mpirun"
    wrapper.parent.mkdir()
    # -np 1 --host NAME …
    wrapper.write_text(
        f'#!/bin/sh\nexport NODE="$4"; shift 4\nexec {program} -np 1 --host localhost -x NODE "$@"\n'
    )
    wrapper.chmod(0o755)
    allowed = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")
    path = f"{wrapper.parent}:{os.environ['PATH']}"
    return ["--mpi", folder / "hosts"], {**os.environ, **allowed, "PATH": path}


@pytest.fixture(params=["ssh", "slurm", "mpi"])
def engine(request):
    """The options of an engine with n1 to n4, and its environment."""
    value = request.getfixturevalue(request.param)
    if request.param == "mpi":
        return value
    if request.param == "slurm":
        # A job whose srun was killed may go on until its time is over.
        value("scancel", "--user=root")
        value.wait_for(lambda: set(value.states().values()) == {"idle"}, "all nodes idle", 60)
        return ["--slurm", "-p", "all"], value.environment
    return ["--ssh", "n[1-4]"], value


@pytest.mark.parametrize("kind", PLANTED)
def test_what_is_planted_in_one_node_is_found_there_and_nothing_else(engine, planted, kind):
    what, names = PLANTED[kind]
    options, environment = engine
    file = str(planted(what))
    report = nodes(
        *options, "--python", file, "--deadline", 120, environment=environment, code=None
    )
    kinds, differences = kinds_of(report)
    assert report["failed"] == []
    assert kinds == [["n1", "n2", "n4"], ["n3"]], differences
    # The sshd of these tests gives each node a variable of its own, too.
    odd = {name for name, _ in differences} - ({"$NCCL_ALGO"} if "--ssh" in options else set())
    assert odd == names - ({"$NCCL_ALGO"} if "--ssh" in options else set())


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("exit 3", "exit code 3"),
        ("kill -9 $$", ""),
        ("yes | head -c 100000000; exit 0", "more than 8 MiB of output"),
        ("sleep 600", "no answer within 40 s"),
    ],
    ids=["dies", "is killed", "floods", "hangs"],
)
def test_a_node_that_fails_stops_no_other(engine, planted, what, words):
    options, environment = engine
    began = time.monotonic()
    report = nodes(
        *options,
        "--python",
        # Whether it is a Python is asked first, with -c.
        str(planted(f'if [ "$1" != -c ]; then\n{what}\nfi')),
        "--deadline",
        40,
        environment=environment,
        code=1,
    )
    assert time.monotonic() - began < 40 + 20
    assert sorted(name for names in kinds_of(report)[0] for name in names) == ["n1", "n2", "n4"]
    ((node, reason),) = [(entry["node"], entry["reason"]) for entry in report["failed"]]
    assert node == "n3"
    assert words in reason


def prove(*arguments, environment=None):
    """Run ``envdoctor prove --nccl`` across nodes and return its JSON."""
    done = subprocess.run(
        [
            *[sys.executable, "-m", "envdoctor", "prove", "--nccl", *map(str, arguments)],
            *["--deadline", "120", "--format", "json"],
        ],
        capture_output=True,
        text=True,
        env=environment,
        timeout=400,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def test_all_nodes_reduce_together(engine, torch_python):
    options, environment = engine
    document = prove(*options, "--python", torch_python, environment=environment)
    steps = [step for step in document["steps"] if step["name"].startswith("all-reduce")]
    assert {step["outcome"] for step in document["steps"]} == {"works"}, document["steps"]
    assert [step["subject"] for step in steps] == ["gloo over 4 processes on 4 nodes"] * 2
    assert all(step["value"] > 0 for step in steps)


def test_a_node_without_torch_is_named(ssh, torch_python, planted):
    wrapper = planted('exec /usr/bin/env python3 "$@"')
    wrapper.write_text(wrapper.read_text().replace("PYTHON=", f"PYTHON={torch_python} #", 1))
    document = prove("--ssh", "n[1-4]", "--python", wrapper, environment=ssh)
    assert document["exit_code"] == 1
    bad = {step["node"] for step in document["steps"] if step["outcome"] != "works"}
    assert "n3" in bad


RAY_CLUSTER = """
import os, sys, time
os.environ["RAY_raylet_start_wait_time_s"] = "200"  # a busy machine
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
for number in range(3):
    odd = {"num_cpus": 2, "env_vars": {"NCCL_ALGO": "Tree"}} if number == 1 and "odd" in sys.argv else {"num_cpus": 1}
    cluster.add_node(**odd)
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


def test_ray(ray_python):  # noqa: F811 - the fixture
    process = subprocess.Popen(
        [ray_python, "-c", RAY_CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        address = process.stdout.readline().strip()
        report = nodes("--ray", address, "--python", ray_python, "--deadline", 240)
        ((names,), differences) = kinds_of(report)
        assert len(names) == 4
        assert differences == []
    finally:
        process.communicate("", timeout=60)


def test_ray_with_an_odd_node(ray_python):  # noqa: F811
    """What Ray counts there, and what its processes there are given."""
    process = subprocess.Popen(
        [ray_python, "-c", RAY_CLUSTER, "odd"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        address = process.stdout.readline().strip()
        report = nodes("--ray", address, "--python", ray_python, "--deadline", 240, code=None)
        kinds, differences = kinds_of(report)
        assert [len(names) for names in kinds] == [3, 1]
        assert dict(differences) == {"ray.resources": "CPU 2", "$NCCL_ALGO": "Tree"}
    finally:
        process.communicate("", timeout=60)


def test_the_nodes_of_ray_reduce_together(torch_python, tmp_path, prerequisite):
    python = environment_with_ray(
        torch_python, tmp_path / "ray", prerequisite, "--system-site-packages"
    )
    process = subprocess.Popen(
        [python, "-c", RAY_CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        address = process.stdout.readline().strip()
        document = prove("--ray", address, "--python", python)
        assert {step["outcome"] for step in document["steps"]} == {"works"}, document["steps"]
    finally:
        process.communicate("", timeout=60)


def test_a_ray_that_is_not_there(ray_python):  # noqa: F811
    report = nodes("--ray", "127.0.0.1:1", "--python", ray_python, "--deadline", 90, code=1)
    assert len(report["failed"]) == 1


def test_mpi(tmp_path, prerequisite):
    prerequisite(shutil.which("mpirun"), "mpirun (Debian: openmpi-bin)")
    hosts = tmp_path / "hosts"
    hosts.write_text("# two names of this machine\nlocalhost slots=2\n127.0.0.1:4\n")
    environment = {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    report = nodes("--mpi", hosts, "--deadline", 90, environment=environment)
    assert sorted(kinds_of(report)[0][0]) == ["127.0.0.1", "localhost"]


KUBECTL = """#!/bin/sh
case "$*" in
*" get pods "*|"get pods "*)
    echo '{"items": [
      {"metadata": {"name": "w-0"}, "status": {"phase": "Running", "containerStatuses":
        [{"name": "x", "imageID": "docker.io/x@sha256:aaaa"}]}},
      {"metadata": {"name": "w-1"}, "status": {"phase": "Running", "containerStatuses":
        [{"name": "x", "imageID": "docker.io/x@sha256:bbbb"}]}},
      {"metadata": {"name": "w-2"}, "status": {"phase": "Pending"}}]}' ;;
*)
    while [ "$1" != -- ]; do pod=$1; shift; done
    shift
    [ "$pod" = w-1 ] && export VLLM_USE_V1=0
    exec "$@" ;;
esac
"""


def test_kubectl(tmp_path):
    program = tmp_path / "kubectl"
    program.write_text(KUBECTL)
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    report = nodes("--kubectl", "app=verl", "--deadline", 60, environment=environment, code=1)
    assert report["failed"] == [{"node": "w-2", "reason": "the pod is Pending"}]
    assert {name for name, _ in kinds_of(report)[1]} == {"$VLLM_USE_V1", "image.digest"}
