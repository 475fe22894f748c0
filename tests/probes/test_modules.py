"""Modules that stand in front of installed ones; a real interpreter started from that folder is the
oracle.
"""

from __future__ import annotations

import os
import sys

import pytest

from envdoctor.model.evidence import Absent, Known, Unknown
from envdoctor.model.facts import ShadowedModule
from envdoctor.probes import distributions, interpreter, modules
from envdoctor.probes.machine import Machine

from .compiled import output, plain_environment


class Place:
    """A virtual environment with packages of no content, and a working directory."""

    def __init__(self, folder):
        self.working = folder / "work"
        self.working.mkdir()
        output(
            sys.executable,
            "-m",
            "venv",
            "--without-pip",
            folder / "env",
            environment=plain_environment(),
        )
        self.python = folder / "env" / "bin" / "python"
        self.site = next((folder / "env" / "lib").glob("python3.*")) / "site-packages"
        for name in ("ray", "vllm", "torch", "PyYAML"):
            self.install(name)

    def install(self, name):
        module = "yaml" if name == "PyYAML" else name
        (self.site / module).mkdir()
        (self.site / module / "__init__.py").write_text("")
        (self.site / f"{name}-1.0.dist-info").mkdir()
        (self.site / f"{name}-1.0.dist-info" / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n\n"
        )

    def read(self, monkeypatch, **variables):
        monkeypatch.chdir(self.working)
        machine = Machine(python=str(self.python), environment=plain_environment(**variables))
        for function in (interpreter.probe_interpreter, distributions.probe_distributions):
            machine.facts.update(function(machine))
        return modules.probe_modules(machine)

    def truth(self, module, **variables):
        """Where a real import finds the module, when Python is started from the working
        directory.
        """
        code = f"import {module}; print({module}.__file__)"
        return os.path.realpath(
            output(
                self.python,
                "-c",
                code,
                environment=plain_environment(**variables),
                folder=self.working,
            ).strip()
        )


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def _write(folder, *files):
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("")


@pytest.mark.parametrize(
    ("files", "hidden"),
    [
        (["ray/__init__.py"], ["ray: {}/ray"]),
        (["ray.py"], ["ray: {}/ray.py"]),
        (["yaml.py"], ["yaml: {}/yaml.py"]),
        (
            ["ray/core.py", "torch/x/__init__.py"],
            [],
        ),  # a namespace portion: the installed package wins
        (["raylib/__init__.py", "tests/__init__.py", "setup.py", "ray.txt"], []),
        (
            ["random.py", "typing/__init__.py", "time.py"],
            ["random: {}/random.py", "typing: {}/typing"],
        ),
        ([], []),
    ],
)
def test_what_the_working_directory_hides(place, monkeypatch, files, hidden):
    _write(place.working, *files)
    shadowed = place.read(monkeypatch)["shadowed_modules"].value
    lines = [f"{module.name}: {module.path}" for module in shadowed]
    assert sorted(lines) == sorted(entry.format(place.working) for entry in hidden)
    for module in ("ray", "yaml", "torch"):
        real = (
            place.truth(module)
            if not any(file.startswith(("random", "typing")) for file in files)
            else ""
        )
        assert real.startswith(str(place.working)) is any(
            entry.startswith(module + ":") for entry in hidden
        )


def test_a_working_directory_inside_a_package(place, monkeypatch):
    _write(place.site, "vllm/ray/__init__.py", "vllm/engine/__init__.py")
    place.working = place.site / "vllm"
    module = place.read(monkeypatch)
    assert module["shadowed_modules"].value == (ShadowedModule("ray", f"{place.site}/vllm/ray"),)
    assert module["ray.module_path"].value == f"{place.site}/vllm/ray"
    assert place.truth("ray") == str(place.site / "vllm" / "ray" / "__init__.py")


def test_the_folder_of_the_distributions_hides_nothing(place, monkeypatch):
    place.working = place.site
    module = place.read(monkeypatch)
    assert module["shadowed_modules"].value == ()
    assert module["ray.module_path"].value == f"{place.site}/ray"


def test_a_link_to_the_installed_package_hides_nothing(place, monkeypatch):
    (place.working / "ray").symlink_to(place.site / "ray")
    assert place.read(monkeypatch)["shadowed_modules"].value == ()


def test_pythonpath_hides_and_an_overlay_with_metadata_does_not(place, monkeypatch, tmp_path):
    _write(tmp_path / "front", "ray/__init__.py", "random.py")
    _write(tmp_path / "overlay", "vllm/__init__.py")
    (tmp_path / "overlay" / "vllm-2.0.dist-info").mkdir()
    (tmp_path / "overlay" / "vllm-2.0.dist-info" / "METADATA").write_text(
        "Name: vllm\nVersion: 2.0\n\n"
    )
    variables = {"PYTHONPATH": f"{tmp_path}/front:{tmp_path}/overlay"}
    module = place.read(monkeypatch, **variables)
    assert module["shadowed_modules"].value == (ShadowedModule("ray", f"{tmp_path}/front/ray"),)
    assert place.truth("ray", **variables) == f"{tmp_path}/front/ray/__init__.py"


def test_ray_is_found_where_an_import_finds_it(place, monkeypatch):
    module = place.read(monkeypatch)["ray.module_path"]
    assert isinstance(module, Known)
    assert module.value + "/__init__.py" == place.truth("ray")
    (place.site / "ray" / "__init__.py").unlink()
    assert isinstance(place.read(monkeypatch)["ray.module_path"], Absent)


def test_an_image_has_no_working_directory(tmp_path):
    site = tmp_path / "usr/local/lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (tmp_path / "usr/local/bin").mkdir()
    (tmp_path / "usr/local/bin/python3").write_bytes(b"\0" + b"3.11.9\0")
    assert isinstance(modules.probe_modules(Machine(str(tmp_path)))["shadowed_modules"], Unknown)
