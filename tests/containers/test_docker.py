"""scripts/integrations/Dockerfile, built and run by a real docker daemon: what is predicted, what
the kernel does, what CMD gets.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from .docker import Docker
from .rootfs import make_rootfs

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
OVERHEAD = 32 * MIB

#: Takes memory, a dot for each MiB.
EAT = "import os\nheld = []\nwhile True:\n held.append(os.urandom(4096) * 256)\n os.write(1, b'.')"
#: Starts processes until the kernel refuses; says how many there were, itself included.
FORK = """
import os, signal
children = []
try:
    while True:
        pid = os.fork()
        if not pid:
            signal.pause()
        children.append(pid)
except OSError as error:
    print(error.errno, len(children) + 1)
for pid in children:
    os.kill(pid, 9)
"""
#: Fills /dev/shm; says how many bytes fitted.
FILL = """
written = 0
try:
    with open("/dev/shm/full", "wb", buffering=0) as file:
        while True:
            written += file.write(bytes(1 << 16))
except OSError as error:
    print(error.errno, written)
"""


@pytest.fixture(scope="module")
def docker(tmp_path_factory, prerequisite):
    """A daemon of our own, by the project's own script."""
    program = next(
        (path for path in ("/usr/bin/docker", "/usr/local/bin/docker") if os.access(path, os.X_OK)),
        "",
    )
    prerequisite(os.geteuid() == 0 and program, "root and the docker client (Debian: docker.io)")
    folder = tmp_path_factory.mktemp("docker").resolve()
    daemon = subprocess.Popen(
        [sys.executable, str(ROOT / "scripts/start_dockerd"), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        name, _, host = daemon.stdout.readline().strip().partition("=")
        prerequisite(
            name == "DOCKER_HOST", f"no docker daemon can run here; its log is {folder / 'log'}"
        )
        yield Docker(program, host)
    finally:
        daemon.stdin.close()
        assert daemon.wait(60) == 0
        assert not list(Path("/sys/fs/cgroup").glob(f"*/envdoctor-docker-{daemon.pid}"))


@pytest.fixture(scope="module")
def built(docker, tmp_path_factory):
    """What ``docker build`` said of the Dockerfile; the image is called checked."""
    folder = tmp_path_factory.mktemp("image")
    packages = make_rootfs(folder / "root")
    torch = packages / "torch-2.6.0+cu124.dist-info"
    torch.mkdir()
    (torch / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.6.0+cu124\n")
    docker.load(folder / "root", "base:1", "ENV PATH=/usr/local/bin:/usr/bin:/bin")
    context = folder / "context"
    context.mkdir()
    subprocess.run(
        [
            sys.executable,
            str(ROOT / "scripts/build_pyz"),
            "--output",
            str(context / "envdoctor.pyz"),
        ],
        check=True,
        capture_output=True,
    )
    dockerfile = ROOT / "scripts/integrations/Dockerfile"

    def build(name, *arguments):
        return docker(
            "build",
            "--network=none",
            "--build-arg=BASE=base:1",
            *arguments,
            "-f",
            dockerfile,
            "-t",
            name,
            context,
        )

    done = build("checked")
    assert done.returncode == 0, done.stdout + done.stderr
    return done, build


@pytest.fixture
def run(docker, built):
    """Run a command in a new container of the image: ``run("sh", "-c", …, options=("-m",
    "64m"))``.
    """

    def start(*command, options=(), **others):
        return docker.run("checked", *command, options=options, **others)

    return start


def facts_and_rest(done):
    first, _, rest = done.stdout.partition("\nEND\n")
    assert rest or first, done.stderr
    return {name: entry.get("value") for name, entry in json.loads(first)["facts"].items()}, rest


def probing(program):
    """Return a command that prints the facts, and then does what the kernel answers."""
    return ("sh", "-c", 'envdoctor probe --json && echo END && exec python3 -c "$0"', program)


def verdict(done):
    """Return the first line of standard error, which is the verdict."""
    first = done.stderr.splitlines()[0]
    assert first.startswith("envdoctor: "), done.stderr
    assert len(first) <= 80
    return first


def test_build_bakes(docker, built):
    done, _ = built
    assert "Baseline written to /usr/local/share/envdoctor/baseline.json" in done.stdout
    assert 'ENV NVIDIA_REQUIRE_CUDA="' in done.stdout
    assert docker.inspect("checked", "Config.Entrypoint") == ["envdoctor-entrypoint", "--"]


def test_build_fails_for_machines_on_which_it_cannot_work(built):
    _, build = built
    done = build("hopeless", "--build-arg=TARGET=nvidia-driver=450.80.02")
    assert done.returncode != 0
    assert "No baseline was written: the image would fail on its target." in done.stdout


def host_tree(group):
    return ("-m", "128m", "-v", "/sys/fs/cgroup:/sys/fs/cgroup:ro")


def below(group):
    (group / "memory.limit_in_bytes").write_text(str(128 * MIB))
    return (f"--cgroup-parent=/{group.name}",)


@pytest.mark.parametrize(
    "layout",
    [
        lambda group: ("-m", "128m", "--cgroupns=host"),
        lambda group: ("-m", "128m", "--cgroupns=private"),
        lambda group: (
            "-m",
            "128m",
            "--cgroupns=private",
            "-v",
            "/sys/fs/cgroup:/sys/fs/cgroup:ro",
        ),
        host_tree,
        below,
        lambda group: (*below(group), "--cgroupns=private"),
        lambda group: (*below(group), "-m", "160m"),
    ],
    ids=[
        "host namespace",
        "own namespace",
        "own namespace, host's tree",
        "host's tree",
        "parent",
        "parent, own namespace",
        "parent below own",
    ],
)
def test_kills_where_predicted(docker, built, memory_group, layout):
    name = f"envdoctor-test-{uuid.uuid4().hex[:12]}"
    done = docker(
        "run", "--name", name, "--network=none", *layout(memory_group), "checked", *probing(EAT)
    )
    try:
        facts, eaten = facts_and_rest(done)
        assert facts["memory.limit"] == 128 * MIB
        assert done.returncode == 128 + signal.SIGKILL
        assert facts["memory.limit"] - OVERHEAD <= eaten.count(".") * MIB <= facts["memory.limit"]
        assert docker.inspect(name, "State.OOMKilled")
    finally:
        docker("rm", "--force", name)


def test_processes_and_shared_memory_end_where_predicted(run):
    facts, said = facts_and_rest(run(*probing(FORK), options=("--pids-limit", "60")))
    assert (facts["pids.limit"], said) == (60, "11 60\n")  # EAGAIN
    facts, said = facts_and_rest(run(*probing(FILL), options=("--shm-size", "96m")))
    assert (facts["shm.size"], facts["shm.available"], said) == (
        96 * MIB,
        96 * MIB,
        f"28 {96 * MIB}\n",
    )  # ENOSPC


def test_command_is_process_1_and_its_code_is_the_container_s(run):
    done = run("sh", "-c", "echo $$; exit 7")
    assert (done.returncode, done.stdout) == (7, "1\n")
    verdict(done)


def test_below_an_init(run, prerequisite):
    done = run("sh", "-c", "cat /proc/1/comm; echo $PPID; exit 7", options=("--init",))
    prerequisite("docker-init" not in done.stderr, "an init for 'docker run --init' (Debian: tini)")
    assert (done.returncode, done.stdout) == (7, "docker-init\n1\n")
    verdict(done)


def test_arguments_variables_and_folder_arrive(run):
    odd = ["a b", "", "--", "-x", "ü\n'\"$HOME"]
    show = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['ODD'], os.getcwd()]))"
    done = run("python3", "-c", show, *odd, options=("-e", "ODD=x=y z", "-w", "/tmp"))
    assert json.loads(done.stdout) == [odd, "x=y z", "/tmp"]


@pytest.mark.parametrize(
    "options",
    [
        ("--read-only",),
        ("--user", "12345"),
        (
            "--read-only",
            "--user",
            "12345:54321",
            "-e",
            "HOME=",
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
        ),
    ],
    ids=["read-only root", "unknown user", "both"],
)
def test_bare_surroundings(run, options):
    done = run("sh", "-c", "id -u; exit 5", options=options)
    assert (done.returncode, done.stdout) == (5, "12345\n" if "--user" in options else "0\n")
    assert "no verdict" not in verdict(done)
    assert "judged whole" not in done.stderr  # the baseline holds for every user


@pytest.mark.parametrize(
    "outputs", [">&-", "2>&-", ">&- 2>&-", ">/dev/full 2>/dev/full", "<&- >&- 2>&-"]
)
def test_closed_and_full_outputs(docker, built, outputs):
    """Python ends with 120 where its own output fails; the command's code must come through."""
    inner = "'test -d /proc/self && exit 9'"
    done = docker.run(
        "checked",
        "-c",
        f"exec envdoctor-entrypoint -- sh -c {inner} {outputs}",
        options=("--entrypoint", "/bin/sh"),
    )
    assert done.returncode == 9


def test_stop_reaches_the_command(docker, built):
    script = "trap 'echo got TERM; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    name = f"envdoctor-test-{uuid.uuid4().hex[:12]}"
    docker(
        "run",
        "--detach",
        "--name",
        name,
        "--network=none",
        "checked",
        "sh",
        "-c",
        script,
        check=True,
    )
    try:
        end = time.monotonic() + 20
        while "ready" not in docker("logs", name).stdout and time.monotonic() < end:
            time.sleep(0.05)
        begun = time.monotonic()
        docker("stop", "--time", "15", name, check=True)
        assert time.monotonic() - begun < 10
        logs = docker("logs", name)
        assert (docker.inspect(name, "State.ExitCode"), logs.stdout) == (5, "ready\ngot TERM\n")
        verdict(logs)
    finally:
        docker("rm", "--force", name)


def with_driver(fakes, release):
    """Mount a driver's libraries as NVIDIA's container runtime does; they claim a release."""
    mounts = [
        f"{fakes / name}:/usr/lib/{name}:ro" for name in ("libnvidia-ml.so.1", "libcuda.so.1")
    ]
    return (
        *(word for mount in mounts for word in ("-v", mount)),
        "-e",
        f"FAKE_NVIDIA=driver={release}",
    )


def test_refuses_a_driver_on_which_the_image_cannot_work(run, fakes, tmp_path):
    log = tmp_path / "termination-log"
    log.touch()
    options = (*with_driver(fakes, "450.80.02"), "-v", f"{log}:/dev/termination-log")
    refused = run("echo", "ran", options=(*options, "-e", "ENVDOCTOR_POLICY=enforce"))
    assert (refused.returncode, refused.stdout) == (78, ""), refused.stderr
    assert "450.80.02" in refused.stderr
    assert log.read_text().splitlines()[0] == verdict(refused)
    log.write_text("")
    warned = run("echo", "ran", options=options)
    assert (warned.returncode, warned.stdout) == (0, "ran\n")
    assert verdict(warned) == verdict(refused)
    assert log.read_text().startswith("envdoctor: 1 error")


def test_lets_a_driver_pass_on_which_it_works(run, fakes):
    done = run(
        "echo", "ran", options=(*with_driver(fakes, "570.86.15"), "-e", "ENVDOCTOR_POLICY=enforce")
    )
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr


def test_codes_of_commands_that_do_not_start(docker, run):
    """As docker itself says it, without our entrypoint."""
    for command, code in (("/nonexistent", 127), ("/etc/passwd", 126)):
        own = docker.run("base:1", command)
        ours = run(command)
        assert own.returncode == ours.returncode == code, (own.stderr, ours.stderr)
        verdict(ours)


def test_ends_with_64_where_there_is_no_command(docker, built):
    done = docker(
        "run", "--rm", "--network=none", "--entrypoint", "envdoctor-entrypoint", "checked", "--"
    )
    assert done.returncode == 64
