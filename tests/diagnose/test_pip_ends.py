"""What pip's end says. pip is really run, on packages that are made here."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import pytest

#: A module that an index is known to have, and that no test has.
ABSENT = "deepspeed"


def sources(folder, name, text, version="1.0"):
    """Make the sources of a package whose build ends with Microsoft's words, or, where a text is
    given, before that with it; return their folder.
    """
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
    )
    (folder / "backend.py").write_text(
        "import os, sys\n"
        "def build_wheel(folder, settings=None, metadata=None):\n"
        "    sys.exit('error: Microsoft Visual C++ 14.0 or greater is required. Get it with')\n"
        "def prepare_metadata_for_build_wheel(folder, settings=None):\n"
        f"    if {text!r}: sys.exit({text!r})\n"
        f"    place = '{name}-{version}.dist-info'\n"
        "    os.mkdir(os.path.join(folder, place))\n"
        "    with open(os.path.join(folder, place, 'METADATA'), 'w') as file:\n"
        f"        file.write('Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n')\n"
        "    return place\n"
    )
    return folder


def wheel(folder, name, version):
    """Make a wheel of a package without a module; return its path."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    place = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        words = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        file.writestr(f"{place}/METADATA", words)
        words = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        file.writestr(f"{place}/WHEEL", words)
        file.writestr(f"{place}/RECORD", "")
    return path


def installs(run_pip, target, *arguments):
    options = ("--no-index", "--disable-pip-version-check", "--target", target)
    done = run_pip("install", *options, *arguments)
    return done.stdout + done.stderr


def imported(tmp_path):
    """Return what Python prints of a program that imports what no index had given it."""
    path = tmp_path / "train.py"
    path.write_text(f"import {ABSENT}\n")
    command = [sys.executable, "-S", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize("error", ["", "error: Microsoft Visual C++ 14.0 is required. Get it with"])
def test_a_compiler_that_is_not_there_is_why_the_build_failed(said, run_pip, tmp_path, error):
    """Once while the wheel is built, once while its metadata are made."""
    log = installs(run_pip, tmp_path / "t", sources(tmp_path / "sparse", "sparse", error))
    assert "Microsoft" in log, log
    roots = [trace for trace in said(log).traces if trace.finding.caused_by is None]
    assert [trace.finding.subject for trace in roots] == ["msvc-missing"]


def test_the_package_is_named_that_pip_got_no_metadata_of(said, run_pip, tmp_path):
    refused = "meson.build:1:0: ERROR: Problem encountered: Spare needs GCC >= 8"
    log = installs(run_pip, tmp_path / "t", sources(tmp_path / "thin-part", "thin-part", refused))
    assert "metadata-generation-failed" in log, log
    trace = said(log).traces[0]
    assert trace.finding.subject == "meson-problem"
    assert "Spare needs GCC >= 8" in trace.finding.message


def test_a_package_without_a_record(said, tmp_path, environment_with_pip):
    environment_with_pip(tmp_path / "env")
    pip = [tmp_path / "env/bin/python", "-m", "pip", "install", "--no-index"]
    for version in ("1.0", "2.0"):
        made = wheel(tmp_path, "slim_part", version)
        log = subprocess.run([*pip, made], capture_output=True, text=True, check=False)
        for record in (tmp_path / "env").glob("lib/*/site-packages/slim_part-1.0.dist-info/RECORD"):
            record.unlink()
    assert log.returncode != 0, log
    trace = said(log.stdout + log.stderr).traces[0]
    assert trace.finding.subject == "pip-no-record"
    assert "slim_part" in trace.finding.message or "slim-part" in trace.finding.message


def test_what_pip_refused_is_why_a_module_is_missing(said, run_pip, tmp_path):
    log = installs(run_pip, tmp_path / "t", "ipython==9.4.0") + imported(tmp_path)
    first, *others = said(log).traces
    assert first.finding.subject == "pip-no-matching"
    assert ABSENT in first.meaning
    (missing,) = [trace for trace in others if trace.finding.subject == "module-missing"]
    assert missing.finding.caused_by == first.finding.key


def test_not_where_pip_installed_since(said, run_pip, tmp_path):
    log = installs(run_pip, tmp_path / "t", "ipython==9.4.0")
    log += installs(run_pip, tmp_path / "t", wheel(tmp_path, "slim_part", "1.0"))
    assert "Successfully installed" in log
    first = said(log + imported(tmp_path)).traces[0]
    assert first.finding.subject == "module-missing"


def test_not_of_a_folder_of_the_program_itself(said, run_pip, tmp_path):
    log = installs(run_pip, tmp_path / "t", "ipython==9.4.0")
    log += imported(tmp_path).replace(ABSENT, "our_own_helpers")
    assert said(log).traces[0].finding.subject == "module-missing"


@pytest.mark.parametrize("line", ["scatter=2.1", "scatter ==2.1 x"])
def test_a_line_that_is_no_requirement(said, run_pip, tmp_path, line):
    listed = tmp_path / "requirements.txt"
    listed.write_text(f"{line}\n")
    done = run_pip("install", "--no-index", "-r", listed)
    assert "Invalid requirement" in done.stderr
    (trace,) = said(f"{done.stdout}{done.stderr}").traces
    assert f"does not take {line} for a requirement" in trace.finding.message
