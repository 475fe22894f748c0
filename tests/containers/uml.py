"""Boots User-Mode Linux: a kernel of its own with cgroup v2 and all controllers, in two seconds, on
any host.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Tuple

import pytest

__all__ = ["POINT", "boot", "can_boot"]

POINT = "/sys/fs/cgroup"

_INIT = """#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t tmpfs tmpfs /run
export PATH={path} PYTHONDONTWRITEBYTECODE=1 {variables}
mount -t cgroup2 none {point}
{body}
echo o >/proc/sysrq-trigger
sleep 5
"""


def can_boot() -> Tuple[bool, str]:
    """Tell whether it can be booted here, and what it takes."""
    return shutil.which(
        "linux.uml"
    ) is not None and os.geteuid() == 0, "User-Mode Linux (Debian: user-mode-linux), as root"


def boot(folder: Path, body: str, **variables: object) -> str:
    """Boot, run a shell script as root of that kernel (its files are the host's), and return the
    end of its console.

    Args:
        folder: Where it may write.
        body: The script; it begins at ``/``, with proc, sysfs and the cgroup2 mount there.
        variables: Exported to it.
    """
    init = folder / "init.sh"
    exports = " ".join(f"{name}={value}" for name, value in variables.items())
    init.write_text(
        _INIT.format(path=os.environ["PATH"], variables=exports, point=POINT, body=body)
    )
    init.chmod(0o755)
    command = [sys.executable, str(Path(__file__).with_name("start_uml.py")), "linux.uml"]
    command += [
        "mem=512M",
        "rootfstype=hostfs",
        "rootflags=/",
        "rw",
        f"init={init}",
        "con=null",
        "con0=null,fd:1",
        "quiet",
    ]
    # Only SSE registers survive a switch of processes with old FP registers: keep the C library
    # from the wider ones.
    narrow = "-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-EVEX,-ERMS,-FSRM,-XSAVE,-XSAVEC,-AVX_Fast_Unaligned_Load"
    command.append(f"GLIBC_TUNABLES=glibc.cpu.hwcaps={narrow}")
    with (folder / "console").open("w+b") as console:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            cwd=folder,
            start_new_session=True,
        )
        try:
            child.wait(timeout=120)
        except subprocess.TimeoutExpired:
            pytest.fail("User-Mode Linux did not end within 120 s")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return (folder / "console").read_text(errors="replace")[-3000:]
