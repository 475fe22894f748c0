"""What is there and cannot be read is said in every output, and is never taken for health."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from envdoctor.app import Options, check
from envdoctor.entrypoint.options import parse_settings
from envdoctor.entrypoint.verdict import _answer
from envdoctor.model.evidence import Known
from envdoctor.model.facts import Facts
from envdoctor.model.serde import dump_facts, load_facts
from envdoctor.probes import load_probes, run_probes
from envdoctor.probes.isolation import run_isolated
from envdoctor.probes.machine import Machine
from envdoctor.report import REPORTERS, render
from envdoctor.report.monitoring import render_status
from envdoctor.report.view import View
from tests.fuse import mounted

SITE = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
PROBES = load_probes(("interpreter", "distributions", "torch_build"))


@pytest.fixture(scope="module")
def made():
    """An environment that everybody may read, but for what a test forbids."""
    base = Path(tempfile.mkdtemp(prefix="envdoctor-unread-"))
    base.chmod(0o755)
    command = [sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(base / "made")]
    subprocess.run(command, check=True)
    for name, version in (("tokenizers", "0.21.0"), ("filelock", "3.16.0")):
        folder = base / "made" / SITE / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n\n")
        (folder / "RECORD").write_text("")
    yield base / "made"
    shutil.rmtree(base)


@pytest.fixture
def venv(made):
    copy = made.with_name("venv")
    shutil.copytree(made, copy, symlinks=True)
    yield copy
    subprocess.run(["chmod", "-R", "u+rwX", str(copy)], check=True)
    shutil.rmtree(copy)


def give_up_rights() -> None:
    """Hold root to the permissions of files as everybody is: capset(2) without CAP_DAC_OVERRIDE and
    CAP_DAC_READ_SEARCH.
    """
    header, sets = struct.pack("<Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.capget(header, sets) == 0
    for place in (0, 4):  # effective, permitted
        sets[place] = bytes([sets.raw[place] & ~0b110])
    assert libc.capset(header, sets) == 0, os.strerror(ctypes.get_errno())


def read(prefix: Path, deep: bool = False, start: str = "") -> Facts:
    """Read an environment in a process of its own, as a user without the rights of root; as a start
    does, under a policy, where no row speaks of what is installed.
    """

    def body() -> bytes:
        give_up_rights()
        machine = Machine(python=str(prefix / "bin" / "python"), environment={}, deep=deep)
        if start:
            machine.described, machine.strict = frozenset(), start == "strict"
        return json.dumps(dump_facts(run_probes(machine, PROBES))).encode()

    outcome = run_isolated(body, 20)
    assert not outcome.reason, outcome.reason
    return load_facts(outcome.text, "test")


def assert_said(facts: Facts, path: Path, name: str) -> None:
    """Hold every format, the codes for monitoring and the policies to saying what was not read."""
    reason = f"{name}: {os.strerror(getattr(errno, name))}" if hasattr(errno, name) else name
    assert facts.value("distributions.complete") in (False, None)
    report = check((facts,), None, Options(fail_on="undetermined"))
    assert report.exit_code == 1
    assert [(found.code, found.subject) for found in report.unread] == [("ED907", str(path))]
    for form in REPORTERS:
        text = render(report, form, View(2000))
        text = text.replace("\\", "") if form == "markdown" else text
        assert "ED907" in text, form
        assert str(path) in text.replace("%2C", ","), form
        assert reason in text, form
        assert "no problem found" not in text, form
    for style, wanted in (("nagios", 3), ("nhc", 0)):
        text, code = render_status(report, style)
        assert code == wanted
        assert style == "nhc" or (reason in text and "ENVDOCTOR UNKNOWN" in text)
    answer = _answer(report, parse_settings(["--", "true"], {}))
    assert answer.kind == "undetermined"
    assert reason in answer.details
    assert "no problem found" not in answer.line


def test_the_environment_is_whole_otherwise(venv):
    facts = read(venv)
    assert facts.value("distributions.complete") is True
    assert set(facts.value("distributions")) == {"tokenizers", "filelock"}
    assert not check((facts,), None, Options()).unread
    assert "files.unread" not in dict(facts)


METADATA = f"{SITE}/filelock-3.16.0.dist-info/METADATA"
PLACES = {
    "site-packages": SITE,
    "the folder of a distribution": os.path.dirname(METADATA),
    "METADATA": METADATA,
    "a .pth file": f"{SITE}/extra.pth",
    "pyvenv.cfg": "pyvenv.cfg",
}


@pytest.mark.parametrize(
    "inside",
    [
        METADATA,
        METADATA.replace("METADATA", "WHEEL"),
        f"{SITE}/extra.pth",
        f"{SITE}/old.egg-link",
        f"{SITE}/old.egg-info",
    ],
)
def test_a_pipe_in_place_of_a_file(venv, inside):
    path = venv / inside
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    assert_said(read(venv), path, "not a regular file")


@pytest.mark.parametrize("what", PLACES)
def test_refused_by_permissions(venv, what):
    (venv / SITE / "extra.pth").write_text("")
    path = venv / PLACES[what]
    path.chmod(0o000)
    facts = read(venv)
    if what == "the folder of a distribution":
        path /= "METADATA"
    assert_said(facts, path, "EACCES")
    if "dist-info" in str(path):  # the name of its folder still says what is installed
        assert facts.version_of("filelock") == "3.16.0"
        assert facts.value("distributions")["filelock"].requires is None


@pytest.mark.parametrize("start", ["warn", "strict"])
@pytest.mark.parametrize("what", ["the folder of a distribution", "METADATA"])
def test_a_start_says_what_it_may_not_read_of_any_package(venv, what, start):
    path = venv / PLACES[what]
    path.chmod(0o000)
    facts = read(venv, start=start)
    assert_said(facts, venv / METADATA, "EACCES")
    assert facts.version_of("filelock") == "3.16.0"


@pytest.mark.parametrize(("start", "count"), [("warn", 0), ("strict", 1)])
def test_a_strict_start_opens_the_metadata_of_every_package(venv, start, count):
    (venv / METADATA).unlink()
    os.mkfifo(venv / METADATA)
    assert len(check((read(venv, start=start),), None, Options()).unread) == count


def test_a_folder_that_may_be_entered_and_not_listed(venv):
    (venv / SITE).chmod(0o111)
    assert_said(read(venv), venv / SITE, "EACCES")


def test_files_that_may_be_listed_and_not_read_are_one_finding(venv):
    (venv / SITE).chmod(0o444)
    report = check((read(venv),), None, Options())
    assert [found.code for found in report.unread] == ["ED907"]
    assert "2 files in" in report.unread[0].message


def test_a_file_where_the_folder_is_expected(venv):
    shutil.rmtree(venv / SITE)
    (venv / SITE).write_text("")
    assert_said(read(venv), venv / SITE, "ENOTDIR")


@pytest.fixture
def mirror(made, prerequisite):
    """Mount the environment as a FUSE file system with faults; give the place."""
    prerequisite(os.path.exists("/dev/fuse") and os.geteuid() == 0, "root and /dev/fuse")
    place = made.with_name("mirror")
    place.mkdir()
    with contextlib.ExitStack() as stack:

        def mount(**faults):
            return place, stack.enter_context(mounted(made, place, faults))

        yield mount
    place.rmdir()


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.ETIMEDOUT])
@pytest.mark.parametrize("what", ["site-packages", "METADATA", "pyvenv.cfg"])
def test_an_error_of_the_disk(mirror, made, what, number):
    place, _ = mirror(**{os.path.basename(PLACES[what]): number})
    facts = read(place)
    path = place / PLACES[what]
    if what == "METADATA":  # of both
        report = check((facts,), None, Options())
        assert "2 files in" in report.unread[0].message
        assert errno.errorcode[number] in report.unread[0].message
    else:
        assert_said(facts, path, errno.errorcode[number])


def test_a_record_that_cannot_be_read_says_nothing_of_missing_files(mirror, made):
    facts = read(mirror(RECORD=errno.EIO)[0], deep=True)
    assert [oddity.kind for oddity in facts.value("distributions.oddities")] == []


def test_a_mount_whose_server_is_gone(mirror, made, tmp_path):
    """The folder of PYTHONPATH, or of a .pth file: the kernel says ENOTCONN."""
    place, server = mirror()
    server.kill()
    server.wait()
    machine = Machine(environment={"PYTHONPATH": str(place)}, python=str(made / "bin/python"))
    facts = run_probes(machine, PROBES)
    assert_said(facts, place, "ENOTCONN")
    assert set(facts.value("distributions")) == {"tokenizers", "filelock"}


def test_an_image_is_read_the_same_way(tmp_path):
    site = tmp_path / "usr/local/lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (tmp_path / "usr/local/bin").mkdir()
    (tmp_path / "usr/local/bin/python3.11").write_bytes(b"\0003.11.9\0")
    (site.parent / "dist-packages").mkdir()
    site.rmdir()
    site.write_text("")
    facts = run_probes(Machine(str(tmp_path)), PROBES)
    assert isinstance(facts.get("files.unread"), Known)
    assert not check((facts,), None, Options()).findings


def test_the_commands_say_so(mirror, made):
    """As users call them: PYTHONPATH names a folder on a failing disk."""
    place, _ = mirror(**{"": errno.EIO})
    command = [sys.executable, "-m", "envdoctor"]
    variables = {**os.environ, "PYTHONPATH": str(place)}

    def run(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*command, *arguments], env=variables, capture_output=True, text=True, timeout=60
        )

    monitored = run("check", "--python", str(made), "--exit-style", "nagios")
    assert monitored.returncode == 3
    assert f"{place} cannot be read (EIO: Input/output error)" in monitored.stdout
    for options, code in ((["--strict"], 78), ([], 0)):
        started = run("entrypoint", "--policy", "enforce", *options, "--", "echo", "started")
        assert started.returncode == code, started.stderr
        assert f"{place} cannot be read (EIO: Input/output error)" in started.stderr
        assert ("started" in started.stdout) is (code == 0)
