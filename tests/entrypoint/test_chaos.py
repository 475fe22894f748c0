"""The chaos table: whatever one probe meets, the verdict comes in time, names it, and the command
runs or is refused as the policy says.
"""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from envdoctor.probes import MODULES, load_probes

from .conftest import environment

FILES = ("missing", "no-permission", "eio", "empty", "binary", "huge")
BEHAVIOUR = ("raise", "exit", "hang", "deaf", "crash", "unkillable")
NAMES = [probe.name for probe in load_probes(MODULES)]
MODES = {
    "check": ["check", "--format", "plain"],
    "warn": ["entrypoint", "--timeout", "1", "--"],
    "enforce": ["entrypoint", "--timeout", "1", "--policy", "enforce", "--"],
    "strict": ["entrypoint", "--timeout", "1", "--policy", "enforce", "--strict", "--"],
}
SCRIPT = Path(__file__).with_name("chaos.py")
COMMAND = ["sh", "-c", "echo ran; exit 7"]


def face(mode, probe, fault, group="-"):
    words = [
        sys.executable,
        str(SCRIPT),
        probe,
        fault,
        group,
        *MODES[mode],
        *(COMMAND if mode != "check" else ()),
    ]
    started = time.monotonic()
    # Files, not pipes: an unkillable child must not hold the report, and does not (it has none of
    # our descriptors).
    done = subprocess.run(
        words,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done, time.monotonic() - started


def judge(mode, probe, fault, done, seconds):
    text = done.stdout + done.stderr
    assert "Traceback" not in text
    first = (done.stdout if mode == "check" else done.stderr).splitlines()[0]
    assert first.startswith("envdoctor: ")
    assert len(first) <= 80
    if fault in FILES:
        # What cannot be read is not known, and never an error.
        assert seconds < 6
        assert (done.returncode, "ran" in text) == (
            (0, False) if mode == "check" else (7, True)
        ) or mode == "strict", text
        return
    assert seconds < (
        6 if mode == "check" else 4
    )  # 1 s, twice 0.2 s to die, and the start of two Pythons on a busy machine
    assert f"probe {probe}" in text
    if mode == "check":
        assert done.returncode == 0, text
    elif mode == "strict":
        assert done.returncode in (69, 78), text
        assert done.stdout == ""
    else:
        assert (done.returncode, done.stdout) == (7, "ran\n"), text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("probe", "fault"),
    [(NAMES[number % len(NAMES)], fault) for number, fault in enumerate((*FILES, *BEHAVIOUR), 3)],
)
def test_one_probe_for_each_fault(mode, probe, fault, request):
    group = request.getfixturevalue("freezer") if fault == "unkillable" else "-"
    judge(mode, probe, fault, *face(mode, probe, fault, group))


@pytest.mark.slow
@pytest.mark.parametrize("fault", [*FILES, *BEHAVIOUR])
@pytest.mark.parametrize("probe", NAMES)
def test_each_probe_and_fault(probe, fault, request):
    for mode in MODES:
        group = request.getfixturevalue("freezer") if fault == "unkillable" else "-"
        judge(mode, probe, fault, *face(mode, probe, fault, group))
        if fault == "unkillable":
            Path(group, "freezer.state").write_text("THAWED")


def test_nothing_of_an_unkillable_child_reaches_the_command(freezer, tmp_path):
    """It holds neither the job's pipes nor its locks, and is no child that the job would wait for,
    once it could be killed.
    """
    lock = tmp_path / "lock"
    words = [
        sys.executable,
        str(SCRIPT),
        "nvidia",
        "unkillable",
        freezer,
        *MODES["warn"],
        "sh",
        "-c",
        "exec 9>&-; flock -n 8 || exit 3; exit 0",
    ]
    with open(lock, "w") as file:
        done = subprocess.run(
            ["sh", "-c", 'exec 8>"$0"; exec "$@"', str(lock), *words],
            env=environment(),
            capture_output=True,
            timeout=30,
            check=False,
        )
        assert file
    assert done.returncode == 0
    again = subprocess.run(["flock", "-n", str(lock), "true"], check=False)
    assert again.returncode == 0  # the frozen child is still there, without the lock
    assert Path(freezer, "cgroup.procs").read_text().strip()
