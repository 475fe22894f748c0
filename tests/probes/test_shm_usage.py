"""What takes the space of /dev/shm: real files, real holders, a tmpfs of the test's own."""

import mmap
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from envdoctor.probes import shm_usage
from envdoctor.probes.shm_usage import list_shared_files

MIB = 1 << 20
ROOT = Path(__file__).resolve().parents[2]

#: In a process namespace of its own, so that every process can be looked at; /dev/shm is a fresh
#: tmpfs.
SCENE = """
import mmap, os, subprocess, sys
from envdoctor.probes import shm_usage
from envdoctor.probes.shm_usage import list_shared_files
shm_usage._BUDGET = 60.0  # whole, however busy the machine is
def make(name, size, keep):
    fd = os.open("/dev/shm/" + name, os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, size)
    area = mmap.mmap(fd, size)
    area.write(b"x" * size)
    if keep == "mapped":
        os.close(fd)
        return area
    area.close()
    if keep == "open":
        return fd
    os.close(fd)
mapped = make("psm_mapped", 3 << 20, "mapped")
opened = make("nccl-open", 2 << 20, "open")
gone = make("torch_gone", 5 << 20, "mapped")
os.unlink("/dev/shm/torch_gone")
closed = make("closed", 1 << 20, "open")
os.unlink("/dev/shm/closed")
os.mkdir("/dev/shm/sub")
make("sub/plasma", 4 << 20, "")
open("/dev/shm/sparse", "wb").truncate(1 << 30)
print(list_shared_files())
"""


@pytest.fixture
def scene(prerequisite):
    command = [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--mount-proc",
        "sh",
        "-ec",
        'mount -t tmpfs -o size=64m tmpfs /dev/shm; exec "$@"',
        "sh",
    ]
    probed = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    prerequisite(probed.returncode == 0, f"namespaces: {probed.stderr.strip()}")

    def run(program):
        done = subprocess.run(
            [*command, sys.executable, "-c", program],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        from envdoctor.model.facts import SharedFile

        return eval(done.stdout, {"SharedFile": SharedFile})

    return run


def test_files_holders_and_what_was_deleted(scene):
    files, whole = scene(SCENE)
    assert whole
    found = {
        file.name: (
            file.memory_size // MIB,
            file.deleted,
            file.holders and [holder.split()[1][:6] for holder in file.holders],
        )
        for file in files
    }
    assert found == {
        "torch_gone": (5, True, ["python"]),
        "sub/plasma": (4, False, ()),
        "psm_mapped": (3, False, ["python"]),
        "nccl-open": (2, False, ["python"]),
        "closed": (1, True, ["python"]),
        "sparse": (0, False, ()),  # what it occupies, not what it claims
    }
    assert [file.name for file in files][:2] == ["torch_gone", "sub/plasma"]


def test_the_fact_adds_up_to_what_the_kernel_counts(scene):
    program = SCENE.replace("print(list_shared_files())", "") + textwrap.dedent(
        """
        from envdoctor.probes.process_limits import PROBES_HERE
        from envdoctor.probes.machine import Machine
        facts = PROBES_HERE[0].function(Machine())
        used = facts["shm.size"].value - facts["shm.available"].value
        print([used, sum(file.memory_size for file in facts["shm.files"].value), facts["shm.files"].evidence.detail])
        """
    )
    used, listed, detail = scene(program)
    assert used == listed == 15 * MIB
    assert detail == "every process that is visible here was looked at"


def test_a_file_of_the_same_name_elsewhere_is_another(tmp_path, monkeypatch):
    """The device and the inode count, not the name."""
    monkeypatch.setattr(shm_usage, "_BUDGET", 60.0)  # every process, however busy the machine is
    with open(tmp_path / "x", "w+b") as file:
        file.write(bytes(MIB))
        file.flush()
        area = mmap.mmap(file.fileno(), MIB)
        files, _ = list_shared_files(str(tmp_path))
        (found,) = files
        assert found.name == "x"
        assert any(holder.startswith(f"{os.getpid()} ") for holder in found.holders or ())
        area.close()


def test_a_folder_that_is_not_there():
    with pytest.raises(FileNotFoundError):
        list_shared_files("/nonexistent")
