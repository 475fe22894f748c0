"""Operating system and C library, against getconf and the files of this machine."""

import os
import platform
import shutil
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.model.evidence import Absent, Known, Unknown
from envdoctor.probes.isolation import run_command
from envdoctor.probes.machine import FOLDER_ONLY, Machine
from envdoctor.probes.system import parse_elf_machine, parse_glibc, parse_os_release, probe_system


def test_this_machine():
    facts = probe_system(Machine())
    assert facts["os.platform"].value == sys.platform
    assert facts["os.kernel"].value == platform.release()
    assert facts["os.architecture"].value == platform.machine()
    assert (
        facts["glibc.version"].value
        == run_command(["getconf", "GNU_LIBC_VERSION"], 10).text.split()[1]
    )
    assert facts["os.wsl"].value is False


def test_slurm_node_name():
    assert probe_system(Machine(environment={"SLURMD_NODENAME": "n7"}))["node.name"].value == "n7"


def test_folder_with_this_machines_libc(tmp_path):
    """The banner inside libc.so.6 and confstr must agree: the same library, read in two ways."""
    architecture = platform.machine()
    libc = next(
        path
        for path in (
            f"/lib/{architecture}-linux-gnu/libc.so.6",
            "/lib64/libc.so.6",
            "/usr/lib/libc.so.6",
        )
        if os.path.exists(path)
    )
    target = tmp_path / "usr" / "lib" / f"{architecture}-linux-gnu"
    target.mkdir(parents=True)
    shutil.copy(libc, target / "libc-copy")
    (target / "libc.so.6").symlink_to("libc-copy")
    (tmp_path / "lib").symlink_to("usr/lib")
    (tmp_path / "bin").mkdir()
    shutil.copy(os.path.realpath("/bin/sh"), tmp_path / "bin" / "dash")
    (tmp_path / "bin" / "sh").symlink_to("/bin/dash")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "os-release").write_text(
        'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 22.04.3 LTS"\n'
    )
    facts = probe_system(Machine(str(tmp_path)))
    assert (
        facts["glibc.version"].value
        == run_command(["getconf", "GNU_LIBC_VERSION"], 10).text.split()[1]
    )
    assert facts["os.architecture"].value == architecture
    assert facts["os.platform"].value == "linux"
    assert facts["os.name"].value == "Ubuntu 22.04.3 LTS"
    assert facts["node.name"].value == str(tmp_path)
    assert facts["os.kernel"] == Unknown(FOLDER_ONLY)


def test_old_libc_names_itself_in_its_file_name(tmp_path):
    (tmp_path / "bin").mkdir()
    shutil.copy(os.path.realpath("/bin/sh"), tmp_path / "bin" / "sh")
    (tmp_path / "lib64").mkdir()
    (tmp_path / "lib64" / "libc-2.17.so").write_bytes(b"")
    (tmp_path / "lib64" / "libc.so.6").symlink_to("libc-2.17.so")
    assert probe_system(Machine(str(tmp_path)))["glibc.version"].value == "2.17"


def test_musl_folder(tmp_path):
    (tmp_path / "bin").mkdir()
    shutil.copy(os.path.realpath("/bin/sh"), tmp_path / "bin" / "busybox")
    (tmp_path / "bin" / "sh").symlink_to("/bin/busybox")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "ld-musl-x86_64.so.1").write_bytes(b"")
    assert isinstance(probe_system(Machine(str(tmp_path)))["glibc.version"], Absent)


def test_empty_folder(tmp_path):
    facts = probe_system(Machine(str(tmp_path)))
    for name in ("os.name", "os.architecture", "os.platform", "glibc.version", "os.kernel"):
        assert isinstance(facts[name], Unknown), name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\n',
            "Debian GNU/Linux 12 (bookworm)",
        ),
        ("NAME=Fedora\nVERSION_ID=40\n", "Fedora 40"),
        ("# nothing\n\n", None),
        ("", None),
    ],
)
def test_os_release(text, expected):
    assert parse_os_release(text) == expected


def test_glibc_banners():
    assert (
        parse_glibc(
            b"\0GNU C Library (Ubuntu GLIBC 2.35-0ubuntu3.4) stable release version "
            b"2.35.\nCopyright"
        )
        == "2.35"
    )
    assert (
        parse_glibc(
            b"\0GNU C Library (GNU libc) stable release version 2.17, by Roland McGrath et al."
        )
        == "2.17"
    )
    assert parse_glibc(b"GNU C Library") is None


def test_elf_machines():
    with open(sys.executable, "rb") as file:
        assert parse_elf_machine(file.read(64)) == platform.machine()
    assert parse_elf_machine(b"#!/bin/sh\n" + bytes(20)) is None
    assert parse_elf_machine(b"\x7fELF") is None


@settings(max_examples=200)
@given(
    st.binary(max_size=300),
    st.lists(
        st.sampled_from(
            [
                b"NAME=",
                b"PRETTY_NAME=",
                b'"',
                b"\n",
                b"GNU C Library ",
                b"release version 2.3",
                b"\x7fELF\x02\x01",
            ]
        ),
        max_size=12,
    ),
)
def test_parsers_take_anything(raw, pieces):
    for content in (raw, b"".join(pieces) + raw):
        name = parse_os_release(content.decode("utf-8", "replace"))
        assert name is None or len(name) <= 401
        parse_glibc(content)
        parse_elf_machine(content)


def test_known_on_this_machine():
    assert isinstance(probe_system(Machine())["os.name"], Known)
