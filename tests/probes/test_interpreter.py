"""The judged interpreter: real ones of this machine, real virtual environments, and images in a
folder.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdoctor.model.evidence import Known, Unknown
from envdoctor.probes.interpreter import (
    find_executable,
    interpreter_of,
    parse_pth,
    parse_pyvenv,
    probe_interpreter,
)
from envdoctor.probes.machine import Machine

from .compiled import output, plain_environment


def _interpreters():
    """Every Python from 3.8 on that lies on PATH or beside the one that runs the tests."""
    paths = [path for minor in range(8, 15) for path in [shutil.which(f"python3.{minor}")] if path]
    paths += glob.glob(os.path.join(os.path.dirname(sys.base_prefix), "*", "bin", "python3"))
    paths.append(sys.executable)
    kept = {}
    for path in paths:
        try:
            document = json.loads(
                output(
                    path,
                    "-c",
                    "import sys, json; print(json.dumps([sys.version_info[:3], sys.prefix]))",
                    environment=plain_environment(),
                )
            )
        except (AssertionError, ValueError):
            continue  # a shim without a version behind it
        if document[0] >= [3, 8]:
            kept.setdefault(tuple(document[0]), path)
    return sorted(kept.values())


INTERPRETERS = _interpreters()


def _sites(paths):
    """Entries of a sys.path that may hold distributions: without the working directory and the
    standard library.
    """
    return [
        os.path.realpath(path)
        for path in paths
        if path
        and not path.endswith("lib-dynload")
        and not os.path.exists(os.path.join(path, "os.py"))
    ]


@pytest.mark.parametrize("python", INTERPRETERS)
def test_another_interpreter_is_read_as_it_is(python):
    environment = plain_environment()
    machine = Machine(python=python, environment=environment)
    interpreter = interpreter_of(machine)
    document = json.loads(
        output(
            python,
            "-c",
            "import sys, json, platform; "
            "print(json.dumps([platform.python_version(), sys.prefix, 'cp%d%d' % "
            "sys.version_info[:2], sys.implementation.name]))",
            environment=environment,
        )
    )
    assert [
        interpreter.version,
        interpreter.prefix,
        interpreter.abi,
        interpreter.implementation,
    ] == document
    assert [os.path.realpath(path) for path in interpreter.search_path] == _sites(
        _real_path(python, environment)
    )


def _real_path(python, environment):
    # -P is 3.11; the first entry under -c is the working directory, "".
    return json.loads(
        output(
            python,
            "-c",
            "import sys, json, os; print(json.dumps([p for p in sys.path[1:] if "
            "os.path.isdir(p)]))",
            environment=environment,
        )
    )


@pytest.fixture(params=[False, True], ids=["isolated", "system-site"])
def venv(request, tmp_path):
    folder = tmp_path / "env"
    output(
        sys.executable,
        "-m",
        "venv",
        "--without-pip",
        *(["--system-site-packages"] if request.param else []),
        folder,
        environment=plain_environment(),
    )
    return folder


def test_a_virtual_environment_with_pth_files(venv, tmp_path):
    site = next((venv / "lib").glob("python3.*")) / "site-packages"
    added = tmp_path / "added"
    (added / "below").mkdir(parents=True)
    trap = tmp_path / "trap"
    (site / "b.pth").write_text(
        f"# a comment\n\n{added}\n{tmp_path}/absent\nimport os; open({str(trap)!r}, 'w')\n"
    )
    (site / "a.pth").write_text(f"../{os.path.relpath(added / 'below', site.parent)}\n{added}\n")
    (site / "not-a-pth").write_text(f"{tmp_path}\n")
    front = tmp_path / "front"
    front.mkdir()
    environment = plain_environment(PYTHONPATH=f"{front}:{tmp_path}/gone")
    interpreter = interpreter_of(
        Machine(python=str(venv / "bin" / "python"), environment=environment)
    )
    assert not trap.exists(), "a .pth file of the judged environment was executed"
    assert interpreter.unexecuted >= 1
    assert [os.path.realpath(path) for path in interpreter.search_path] == _sites(
        _real_path(str(venv / "bin" / "python"), environment)
    )
    assert trap.exists()  # the real interpreter runs it
    assert interpreter.environment == "venv"
    assert interpreter.prefix == str(venv)
    assert interpreter.system_site is ("true" in (venv / "pyvenv.cfg").read_text())


def test_a_folder_without_a_slash_names_an_environment(venv, monkeypatch):
    monkeypatch.chdir(venv.parent)
    machine = Machine(environment={"PATH": "/nowhere"})
    assert find_executable(machine, venv.name) == str(venv / "bin" / "python3")
    monkeypatch.chdir(venv)
    assert find_executable(machine, ".") == str(venv / "bin" / "python3")
    assert find_executable(machine, "lib") is None


def test_a_folder_a_prefix_and_a_command_name_an_interpreter(venv):
    machine = Machine(environment={"PATH": f"/nowhere:{venv}/bin"})
    expected = str(venv / "bin" / "python3")
    assert find_executable(machine, str(venv)) == expected
    assert find_executable(machine, "python3") == expected
    assert find_executable(machine, str(venv / "bin" / "python")) == str(venv / "bin" / "python")
    assert find_executable(machine, "python9.9") is None
    assert find_executable(machine, "/nowhere/python") is None


def test_an_interpreter_that_hangs_is_read_from_its_folder(venv):
    python = venv / "bin" / "python3"
    python.unlink()
    python.write_text("#!/bin/sh\nsleep 60\n")
    python.chmod(0o755)
    start = time.monotonic()
    interpreter = interpreter_of(Machine(python=str(python), environment=plain_environment()))
    assert time.monotonic() - start < 5
    assert "no answer within" in interpreter.trouble
    assert interpreter.version == "{}.{}.{}".format(*sys.version_info[:3])
    assert any(path.startswith(str(venv)) for path in interpreter.search_path)


@pytest.mark.parametrize(
    "script", ["#!/bin/sh\nexit 3\n", "#!/bin/sh\nhead -c 3000000 /dev/zero\n", "not a program", ""]
)
def test_an_interpreter_that_answers_nonsense(venv, script):
    python = venv / "bin" / "python3"
    python.unlink()
    python.write_text(script)
    python.chmod(0o755)
    interpreter = interpreter_of(Machine(python=str(python), environment=plain_environment()))
    assert interpreter.trouble
    assert interpreter.minor == "{}.{}".format(*sys.version_info[:2])


def test_a_missing_interpreter_is_unknown_and_says_so():
    facts = probe_interpreter(Machine(python="/nowhere/python", environment={}))
    assert all(
        isinstance(fact, Unknown) and "/nowhere/python" in fact.reason for fact in facts.values()
    )


def test_this_interpreter():
    facts = probe_interpreter(Machine())
    assert (
        facts["python.version"].value == "{}.{}.{}".format(*sys.version_info[:3])
        or sys.version_info.releaselevel != "final"
    )
    assert facts["python.prefix"].value == sys.prefix
    import packaging

    assert os.path.dirname(os.path.dirname(packaging.__file__)) in facts["python.search_path"].value
    assert os.path.dirname(os.__file__) not in facts["python.search_path"].value


# Images


def _image(root, prefix, version, patch, site="site-packages", header=True, python=True):
    library = root / prefix.lstrip("/") / "lib" / f"python{version}"
    (library / site).mkdir(parents=True)
    (library / "os.py").write_text("")
    if python:
        (root / prefix.lstrip("/") / "bin").mkdir(exist_ok=True)
        (root / prefix.lstrip("/") / "bin" / f"python{version}").write_bytes(
            b"\x7fELF....\0" + f"{version}.{patch}".encode() + b"\0..."
        )
        (root / prefix.lstrip("/") / "bin" / "python3").symlink_to(f"python{version}")
    if header:
        include = root / prefix.lstrip("/") / "include" / f"python{version}"
        include.mkdir(parents=True)
        (include / "patchlevel.h").write_text(f'#define PY_VERSION      "{version}.{patch}"\n')
    return library / site


@pytest.mark.parametrize("header", [True, False])
def test_an_image_with_one_interpreter(tmp_path, header):
    _image(tmp_path, "/usr/local", "3.11", 9, header=header)
    interpreter = interpreter_of(Machine(str(tmp_path)))
    assert (interpreter.version, interpreter.abi, interpreter.prefix, interpreter.environment) == (
        "3.11.9",
        "cp311",
        "/usr/local",
        "system",
    )
    assert interpreter.search_path == ("/usr/local/lib/python3.11/site-packages",)


def test_an_image_whose_environment_holds_torch(tmp_path):
    _image(tmp_path, "/usr", "3.10", 12, "dist-packages")
    (tmp_path / "usr/lib/python3/dist-packages").mkdir(parents=True)
    (tmp_path / "usr/local/lib/python3.10/dist-packages").mkdir(parents=True)
    environment = tmp_path / "opt" / "venv"
    site = environment / "lib" / "python3.10" / "site-packages"
    (site / "torch").mkdir(parents=True)
    (site / "torch" / "version.py").write_text("__version__ = '2.6.0'\n")
    (environment / "bin").mkdir()
    (environment / "bin" / "python3").symlink_to(
        "/usr/bin/python3"
    )  # of the image, not of this machine
    (environment / "pyvenv.cfg").write_text(
        "home = /usr/bin\ninclude-system-site-packages = true\nversion = 3.10.12\n"
    )
    interpreter = interpreter_of(Machine(str(tmp_path)))
    assert interpreter.version == "3.10.12"
    assert interpreter.prefix == "/opt/venv"
    assert interpreter.search_path == (
        "/opt/venv/lib/python3.10/site-packages",
        "/usr/local/lib/python3.10/dist-packages",
        "/usr/lib/python3/dist-packages",
        "/usr/lib/python3.10/dist-packages",
    )


def test_an_image_with_conda(tmp_path):
    _image(tmp_path, "/opt/conda", "3.11", 7, header=False)
    (tmp_path / "opt/conda/conda-meta").mkdir()
    (tmp_path / "opt/conda/conda-meta/python-3.11.7-h955ad1f_0.json").write_text("{}")
    (tmp_path / "opt/conda/bin/python3.11").write_bytes(b"stripped")
    interpreter = interpreter_of(Machine(str(tmp_path)))
    assert (interpreter.version, interpreter.environment) == ("3.11.7", "conda")


def test_folders_of_an_interpreter_that_is_not_there_are_none(tmp_path):
    """Debian keeps /usr/local/lib/python3.11/dist-packages without that Python."""
    _image(tmp_path, "/usr", "3.10", 4)
    _image(tmp_path, "/usr/local", "3.12", 1, "dist-packages", python=False, header=False)
    assert interpreter_of(Machine(str(tmp_path))).version == "3.10.4"


def test_an_image_without_python(tmp_path):
    facts = probe_interpreter(Machine(str(tmp_path)))
    assert all(isinstance(fact, Unknown) for fact in facts.values())


def test_a_named_interpreter_of_an_image_is_not_started(tmp_path):
    _image(tmp_path, "/opt/tool", "3.9", 2)
    _image(tmp_path, "/usr", "3.12", 3)
    interpreter = interpreter_of(Machine(str(tmp_path), python="/opt/tool/bin/python3"))
    assert interpreter.version == "3.9.2"
    assert isinstance(
        probe_interpreter(Machine(str(tmp_path)))["python.working_directory"], Unknown
    )
    assert isinstance(probe_interpreter(Machine())["python.working_directory"], Known)


# Parsers


@given(st.text(max_size=500))
def test_any_pyvenv_is_read(text):
    found = parse_pyvenv(text)
    assert all(key == key.strip().lower() for key in found)


@given(st.text(max_size=500))
def test_any_pth_is_read(text):
    paths, code = parse_pth(text)
    assert all("\0" not in path and path.strip() for path in paths)
    assert code >= 0


def test_pth_lines():
    assert parse_pth("/a\nimport x\nimport\ty\nimportant\n  \n# /b\n/c  \n") == (
        ["/a", "important", "/c"],
        2,
    )
