"""Rows of dpkg, apt and rpm: what is installed, held, or was removed."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from envdoctor.intake.pasted_report import parse_report

DPKG = """$ dpkg -l | grep -E 'nccl|cudnn|cuda|nvidia|libc6|python'
ii  cuda-toolkit-12-8             12.8.1-1                     amd64  CUDA Toolkit 12.8 meta-package
ii  libcudnn9-cuda-12             9.8.0.87-1                   amd64  cuDNN runtime for CUDA 12.8
hi  libnccl2                      2.25.1-1+cuda12.8            amd64  NVIDIA Collective Library
ii  libc6:amd64                   2.35-0ubuntu3.8              amd64  GNU C Library
ii  nvidia-driver-550-server      550.127.05-0ubuntu0.22.04.1  amd64  NVIDIA Server Driver
rc  nvidia-driver-535             535.183.01-0ubuntu0.22.04.1  amd64  NVIDIA driver metapackage
ii  nvidia-fabricmanager-550      550.127.05-1                 amd64  Fabric Manager
ii  python3.10                    3.10.12-1~22.04.6            amd64  language (version 3.10)
"""
APT = """nvidia-driver-550-server/jammy,now 550.127.05-0ubuntu0.22.04.1 amd64 [installed]
libnccl2/unknown,now 2.25.1-1+cuda12.8 amd64 [installed,upgradable to: 2.26.2-1+cuda12.8]
libcudnn9-cuda-12/unknown,now 9.8.0.87-1 amd64 [installed,automatic]
libc6/jammy,now 2.35-0ubuntu3.8 amd64 [installed]
"""
RPM = """nvidia-driver-550.127.05-1.el8.x86_64
libnccl-2.25.1-1+cuda12.8.x86_64
libcudnn9-9.8.0.87-1.cuda12.8.x86_64
glibc-2.35-251.el8.x86_64
"""


@pytest.mark.parametrize("text", [DPKG, APT, RPM], ids=["dpkg", "apt", "rpm"])
def test_packages_of_the_system(text):
    facts = parse_report(text)
    assert facts.value("driver.release") == "550.127.05"
    assert facts.value("glibc.version") == "2.35"
    assert facts.value("cudnn.system_version") == "9.8.0"
    (nccl,) = facts.value("libraries")
    assert (nccl.name, nccl.version, nccl.loaded) == ("libnccl", "2.25.1", False)
    assert not facts.value("report.disputed")


def test_what_was_removed_states_nothing_and_the_system_s_python_is_not_the_judged_one():
    facts = parse_report(DPKG)
    assert facts.value("python.version") is None
    assert facts.value("driver.fabric_manager") == "550.127.05"
    assert [(one.path, one.version) for one in facts.value("toolkits")] == [
        ("/usr/local/cuda-12.8", "12.8.1")
    ]


def test_dpkg_of_this_machine(prerequisite):
    prerequisite(shutil.which("dpkg"), "dpkg")
    shown = subprocess.run(["dpkg", "-l", "libc6"], capture_output=True, text=True, check=False)
    prerequisite(shown.returncode == 0, "libc6 as a package of dpkg")
    library, version = os.confstr("CS_GNU_LIBC_VERSION").split()
    assert library == "glibc"
    assert parse_report(shown.stdout).value("glibc.version") == version
