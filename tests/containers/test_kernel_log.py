"""The kernel's OOM killer ends a process in a real memory cgroup, and its own line is read."""

from __future__ import annotations

import signal
import subprocess
import sys

from envdoctor.app import diagnose

EAT = "held = []\nwhile True: held.append(b'x' * (1 << 20))\n"


def kernel_log():
    return subprocess.run(["dmesg"], capture_output=True, text=True, check=False)


def test_the_line_of_a_real_kill_is_understood(memory_group, in_group, prerequisite, tmp_path):
    before = kernel_log()
    prerequisite(before.returncode == 0, "the kernel's log cannot be read here")
    leaf = memory_group / "leaf"
    leaf.mkdir()
    (leaf / "memory.limit_in_bytes").write_text(str(64 << 20))
    process = subprocess.Popen(in_group(leaf, [sys.executable, "-c", EAT]))
    assert process.wait(timeout=60) == -signal.SIGKILL
    new = [
        line
        for line in kernel_log().stdout.splitlines()
        if f"process {process.pid} (" in line or f"pid={process.pid}," in line
    ]
    prerequisite(bool(new), "the kernel's log does not show this namespace's processes")
    log = tmp_path / "dmesg.log"
    log.write_text("\n".join(new) + "\n")
    root = diagnose([str(log)]).traces[0]
    assert (root.finding.component, root.finding.kind, root.certainty) == (
        "host-memory",
        "host-oom",
        "established",
    )
    assert f"(pid {process.pid})" in root.finding.message
