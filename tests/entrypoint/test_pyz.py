"""envdoctor.pyz under bare interpreters, without site-packages: it starts, hands off, and says what
the installed one says.
"""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from .conftest import ROOT, environment

MACHINES = sorted((ROOT / "tests" / "data" / "machines").glob("*/facts.json"))


def interpreters():
    """Return Pythons of this machine from 3.9 on, one of each minor: those of pyenv, those on PATH,
    and the one that runs the tests.
    """
    found = {sys.version_info[:2]: sys.executable}
    places = [
        *Path.home().glob(".pyenv/versions/3.*/bin/python"),
        *filter(None, map(shutil.which, (f"python3.{minor}" for minor in range(9, 20)))),
    ]
    for path in map(str, places):
        asked = subprocess.run(
            [path, "-I", "-S", "-c", "import sys; print(*sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        minor = tuple(map(int, asked.stdout.split())) if asked.returncode == 0 else (0, 0)
        if minor >= (3, 9):
            found.setdefault(minor, path)
    return found


PYTHONS = interpreters()


def run(python, pyz, *arguments, flags=("-I", "-S"), **variables):
    command = [python, *flags, str(pyz), *map(str, arguments)]
    return subprocess.run(
        command,
        env=environment(PYTHONPATH=None, **variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd="/",
    )


@pytest.mark.parametrize(
    "minor",
    [
        # The oldest; what follows is of the one that runs the tests. The others are slow tests.
        pytest.param(
            minor,
            id=f"{minor[0]}.{minor[1]}",
            marks=[] if minor == min(PYTHONS) else [pytest.mark.slow],
        )
        for minor in PYTHONS
    ],
)
def test_bare_interpreters(pyz, minor):
    python = PYTHONS[minor]
    started = run(python, pyz, "entrypoint", "--", "sh", "-c", "echo ran; exit 7")
    assert (started.returncode, started.stdout) == (7, "ran\n")
    assert started.stderr.startswith("envdoctor: ")
    assert "no verdict" not in started.stderr
    facts = json.loads(run(python, pyz, "probe", "--json").stdout)
    assert facts["facts"]["python.version"]["value"].startswith(f"{minor[0]}.{minor[1]}.")
    found = run(python, pyz, "check", "--facts", MACHINES[0], "--format", "json")
    assert "findings" in json.loads(found.stdout)
    assert run(python, pyz, "explain", "ED101").returncode == 0


def test_same_verdicts_as_the_installed_one(pyz, broken_facts):
    codes = set()
    for machine in (*MACHINES, broken_facts):
        arguments = ["check", "--format", "json", "--facts", str(machine)]
        ours = run(sys.executable, pyz, *arguments)
        installed = subprocess.run(
            [sys.executable, "-m", "envdoctor", *arguments],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ours.returncode, ours.stdout) == (installed.returncode, installed.stdout)
        codes.update(entry["code"] for entry in json.loads(ours.stdout)["findings"])
    assert codes


def test_sources_and_remedies_are_inside(pyz, broken_facts):
    document = json.loads(
        run(sys.executable, pyz, "check", "--format", "json", "--facts", broken_facts).stdout
    )
    errors = [entry for entry in document["findings"] if entry["severity"] == "error"]
    assert errors
    assert all(entry["sources"] and entry["remedies"] for entry in errors)
    shown = run(sys.executable, pyz, "check", "--facts", broken_facts)
    assert "ED101 error" in shown.stdout


@pytest.fixture
def broken_facts(tmp_path):
    from ..cli.conftest import BROKEN as FACTS

    path = tmp_path / "facts.json"
    path.write_text(json.dumps(FACTS))
    return path


def test_colour_is_there(pyz, broken_facts):
    """The drawing of a terminal needs nothing that is not inside."""
    command = f"{sys.executable} -I -S {pyz} check --facts {broken_facts}"
    done = subprocess.run(
        ["script", "-qec", command, "/dev/null"],
        env=environment(TERM="xterm"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "\x1b[1;31mED101 error" in done.stdout


@pytest.mark.slow
def test_bytes_are_the_same_each_time(pyz, tmp_path):
    again = tmp_path / "again.pyz"
    subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "build_pyz"), "--output", str(again)],
        check=True,
        capture_output=True,
        timeout=300,
    )
    assert again.read_bytes() == pyz.read_bytes()
    assert os.access(again, os.X_OK)
    names = zipfile.ZipFile(again).namelist()
    assert {
        "licenses/packaging/LICENSE",
        "licenses/envdoctor/LICENSE",
        "envdoctor/_compiled/core.json",
    } <= set(names)
    assert not [name for name in names if name.startswith("/") or ".." in name]


@pytest.mark.parametrize("linked", [False, True], ids=["", "through a link"])
def test_script_beside_the_archive(pyz, tmp_path, linked):
    """As images install both; the python3 on PATH is judged, whatever its variables say."""
    folder = tmp_path / "bin"
    folder.mkdir()
    shutil.copy(pyz, folder / "envdoctor")
    shutil.copy(pyz.with_name("envdoctor-entrypoint"), folder)
    script = folder / "envdoctor-entrypoint"
    if linked:
        script = tmp_path / "start"
        script.symlink_to(folder / "envdoctor-entrypoint")
    for options, code in (([], 7), (["--policy", "enforce", "--strict", "--lock", "/none"], 64)):
        done = subprocess.run(
            [str(script), *options, "--", "sh", "-c", "exit 7"],
            env=environment(PYTHONPATH=None, PYTHONHOME="/nonexistent"),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode == code
        assert "no verdict" not in done.stderr
