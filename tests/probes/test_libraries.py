"""What ``import torch`` would load: a small torch of real libraries, and a real process that loads
it as the oracle.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdoctor.model.evidence import Absent, Known, Unknown
from envdoctor.probes import distributions, interpreter, libraries, native, torch_build
from envdoctor.probes.machine import Machine

from .compiled import build, output, plain_environment

# As torch's own code does it: global dependencies first, then, since torch 2.6, NVIDIA's wheels by
# path.
_IMPORT_2_5 = """
import ctypes, os
_here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
ctypes.CDLL(os.path.join(_here, "libtorch_global_deps.so"), mode=ctypes.RTLD_GLOBAL)
"""
_IMPORT_2_8 = (
    _IMPORT_2_5
    + """
import glob, sys
def _preload_cuda_deps(lib_folder, lib_name):
    for path in sys.path:
        found = glob.glob(os.path.join(path, "nvidia", lib_folder, "lib", lib_name))
        if found:
            ctypes.CDLL(found[0])
            return
    raise ValueError(lib_name)
with open("/proc/self/maps") as f:
    _maps = f.read()
if "nvidia/cuda_runtime/lib/libcudart.so" in _maps:
    try:
        _preload_cuda_deps("cuda_nvrtc", "libnvrtc.so.*[0-9]")
        _preload_cuda_deps("nvjitlink", "libnvJitLink.so.*[0-9]")
    except Exception:
        pass
"""
)
_REST = """
for _name in ("libtorch_python.so", "libtorch_cuda.so", "libtorch_cuda_linalg.so"):
    ctypes.CDLL(os.path.join(_here, _name))
"""
_SHOW = (
    "import json, torch; print(json.dumps(sorted({line.split()[-1] for line in "
    "open('/proc/self/maps') if '.so' in line})))"
)

_WHEELS = {
    "cuda_runtime": ("nvidia-cuda-runtime-cu12", "12.4.127", "libcudart.so.12"),
    "cublas": ("nvidia-cublas-cu12", "12.4.5.8", "libcublas.so.12"),
    "nvjitlink": ("nvidia-nvjitlink-cu12", "12.4.127", "libnvJitLink.so.12"),
    "cusparse": ("nvidia-cusparse-cu12", "12.3.1.170", "libcusparse.so.12"),
    "cudnn": ("nvidia-cudnn-cu12", "9.1.0.70", "libcudnn.so.9"),
    "cuda_nvrtc": ("nvidia-cuda-nvrtc-cu12", "12.4.127", "libnvrtc.so.12"),
}


class Stack:
    """A virtual environment with a torch whose libraries are linked as those of the real wheels are
    (DT_RPATH, NVIDIA's DT_RUNPATH).
    """

    def __init__(self, folder: Path, code: str) -> None:
        self.folder = folder
        self.environment = folder / "env"
        output(
            sys.executable,
            "-m",
            "venv",
            "--without-pip",
            self.environment,
            environment=plain_environment(),
        )
        self.python = self.environment / "bin" / "python"
        self.site = next((self.environment / "lib").glob("python3.*")) / "site-packages"
        made = {}
        for part, (name, version, soname) in _WHEELS.items():
            needs = [made["libnvJitLink.so.12"]] if part == "cusparse" else []
            options = (
                ["-Wl,-rpath,$ORIGIN/../../nvjitlink/lib:$ORIGIN", "-Wl,--enable-new-dtags"]
                if needs
                else []
            )
            made[soname] = build(
                self.site / "nvidia" / part / "lib" / soname, "", *options, needs=needs
            )
            self.install(name, version)
        rpath = ":".join(f"$ORIGIN/../../nvidia/{part}/lib" for part in _WHEELS) + ":$ORIGIN"
        library = self.site / "torch" / "lib"
        options = [f"-Wl,-rpath,{rpath}", "-Wl,--disable-new-dtags"]
        c10 = build(library / "libc10.so", "", *options)
        build(library / "libtorch_global_deps.so", "", *options, needs=[made["libcudart.so.12"]])
        cpu = build(library / "libtorch_cpu.so", "", *options, needs=[c10])
        cuda = build(
            library / "libtorch_cuda.so",
            "",
            *options,
            needs=[
                c10,
                cpu,
                made["libcudart.so.12"],
                made["libcusparse.so.12"],
                made["libcublas.so.12"],
                made["libcudnn.so.9"],
            ],
        )
        build(library / "libtorch_python.so", "", *options, needs=[c10, cpu])
        build(
            library / "libtorch_cuda_linalg.so",
            "",
            *options,
            needs=[cuda, made["libnvJitLink.so.12"]],
        )
        (self.site / "torch" / "__init__.py").write_text(code + _REST)
        (self.site / "torch" / "version.py").write_text(
            "from typing import Optional\n__version__ = '2.5.1+cu124'\ncuda: Optional[str] = "
            "'12.4'\nhip: Optional[str] = None\n"
        )
        self.install("torch", "2.5.1+cu124")

    def install(self, name: str, version: str) -> None:
        folder = self.site / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\n"
        )

    def facts(self, **variables):
        machine = Machine(python=str(self.python), environment=plain_environment(**variables))
        for function in (
            interpreter.probe_interpreter,
            distributions.probe_distributions,
            torch_build.probe_torch,
            native.probe_libraries,
        ):
            machine.facts.update(function(machine))
        return machine.facts

    def truth(self, **variables):
        """What a real process has mapped after ``import torch``."""
        return {
            os.path.realpath(path)
            for path in json.loads(
                output(self.python, "-c", _SHOW, environment=plain_environment(**variables))
            )
        }


@pytest.fixture(scope="module", params=["2.5", "2.8"])
def stack(request, tmp_path_factory, prerequisite):
    prerequisite(shutil.which("gcc"), "gcc")
    return Stack(
        tmp_path_factory.mktemp("torch"), _IMPORT_2_8 if request.param == "2.8" else _IMPORT_2_5
    )


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """A folder with another copy of everything, as a system toolkit has it: versioned files and
    links.
    """
    folder = tmp_path_factory.mktemp("cuda-12.1")
    for soname, version in (
        ("libcublas.so.12", "12.1.3.1"),
        ("libnvJitLink.so.12", "12.1.105"),
        ("libcudart.so.12", "12.1.105"),
        ("libcudnn.so.9", "9.0.0"),
        ("libnccl.so.2", "2.18.3"),
    ):
        stem = soname.split(".so")[0]
        build(folder / f"{stem}.so.{version}", soname=soname)
        (folder / soname).symlink_to(f"{stem}.so.{version}")
        (folder / f"{stem}.so").symlink_to(soname)
    return folder


def _names(found):
    return {os.path.realpath(entry.path) for entry in found if entry.loaded}


_OURS = re.compile(r"/lib(cu|nv|nccl)[^/]*\.so")


def _clean(paths):
    return {path for path in paths if _OURS.search(path)}


def test_without_a_library_path_everything_is_from_the_wheels(stack):
    facts = stack.facts()
    loaded = [entry for entry in facts["libraries"].value if entry.loaded]
    assert _names(loaded) == _clean(stack.truth())
    by_name = {entry.name: entry for entry in loaded}
    assert by_name["libcublas"].version == "12.4.5.8"
    assert by_name["libcublas"].distribution == "nvidia-cublas-cu12"
    assert by_name["libcublas"].needed_by == "libtorch_cuda.so"
    assert by_name["libcudart"].version == "12.4.127"
    assert "//" not in by_name["libcublas"].path
    assert ".." not in by_name["libcublas"].path
    assert [
        entry.name
        for entry in facts["libraries"].value
        if not entry.loaded and entry.origin == "wheel"
    ] == ([] if "libnvrtc" in by_name else ["libnvrtc"])


def test_a_library_path_shadows_what_is_searched_by_runpath(stack, others):
    """pytorch issue 138460: libcusparse looks for libnvJitLink after LD_LIBRARY_PATH; torch 2.6
    began to load it first.
    """
    facts = stack.facts(LD_LIBRARY_PATH=str(others))
    loaded = {entry.name: entry for entry in facts["libraries"].value if entry.loaded}
    assert _names(loaded.values()) == _clean(stack.truth(LD_LIBRARY_PATH=str(others)))
    repaired = "_preload_cuda_deps" in (stack.site / "torch/__init__.py").read_text()
    if repaired:
        assert loaded["libnvJitLink"].distribution == "nvidia-nvjitlink-cu12"
        assert loaded["libnvJitLink"].needed_by == "torch/__init__.py"
    else:
        assert (loaded["libnvJitLink"].origin, loaded["libnvJitLink"].version) == (
            "LD_LIBRARY_PATH",
            "12.1.105",
        )
    assert loaded["libcublas"].distribution == "nvidia-cublas-cu12"
    copies = {
        entry.soname: entry
        for entry in facts["libraries"].value
        if not entry.loaded and entry.origin == "LD_LIBRARY_PATH"
    }
    assert copies["libcublas.so.12"].version == "12.1.3.1"
    assert copies["libnccl.so.2"].version == "2.18.3"
    assert ("libnvJitLink.so.12" in copies) is repaired
    assert "--list" in facts["libraries"].evidence.detail


def test_a_preloaded_library_comes_first(stack, others):
    variables = {"LD_PRELOAD": str(others / "libcublas.so.12")}
    facts = stack.facts(**variables)
    loaded = {entry.name: entry for entry in facts["libraries"].value if entry.loaded}
    assert _names(loaded.values()) == _clean(stack.truth(**variables))
    assert (loaded["libcublas"].origin, loaded["libcublas"].version) == ("LD_PRELOAD", "12.1.3.1")


def test_a_cudnn_outside_the_wheels(stack, others, tmp_path):
    assert stack.facts(LD_LIBRARY_PATH=str(others))["cudnn.system_version"].value == "9.0.0"
    build(tmp_path / "libcudnn.so.9")
    fact = stack.facts(LD_LIBRARY_PATH=str(tmp_path))["cudnn.system_version"]
    assert isinstance(fact, (Known, Unknown))  # the header of an installed cuDNN may tell
    if not any(
        "libcudnn" in name
        for name in torch_build.torch_process(
            Machine(python=str(stack.python), environment=plain_environment())
        ).links.loader.cache
    ):
        assert isinstance(stack.facts()["cudnn.system_version"], Absent)


def test_torch_is_described_without_importing_it(stack):
    facts = stack.facts()
    assert facts["torch.version"].value == "2.5.1+cu124"
    assert facts["torch.cuda"].value == "12.4"
    assert isinstance(facts["torch.hip"], Absent)
    assert isinstance(
        facts["torch.cxx11abi"], Unknown
    )  # this libc10 has no symbol that shows its C++ ABI


@pytest.mark.parametrize("new", [True, False])
def test_the_abi_of_torch(tmp_path, prerequisite, new):
    prerequisite(shutil.which("g++"), "g++")
    source = (
        "#include <string>\nnamespace c10 { namespace detail { void torchCheckFail(char "
        "const*, char const*, unsigned, std::string const&) {} } }\n"
    )
    build(
        tmp_path / "torch" / "lib" / "libc10.so",
        source,
        f"-D_GLIBCXX_USE_CXX11_ABI={int(new)}",
        compiler="g++",
    )
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.5.1'\ncuda = None\n")
    machine = Machine(
        python=sys.executable, environment=plain_environment(PYTHONPATH=str(tmp_path))
    )
    found = torch_build.probe_torch(machine)
    assert found["torch.cxx11abi"].value is new
    assert isinstance(found["torch.cuda"], Absent)


def test_an_environment_without_torch_pays_nothing(tmp_path):
    output(
        sys.executable,
        "-m",
        "venv",
        "--without-pip",
        tmp_path / "env",
        environment=plain_environment(),
    )
    machine = Machine(
        python=str(tmp_path / "env"), environment=plain_environment(LD_LIBRARY_PATH="/usr/lib")
    )
    for probe in (torch_build.probe_torch, native.probe_libraries):
        assert all(isinstance(fact, Absent) for fact in probe(machine).values())
    assert torch_build.torch_process(machine) is None


def test_an_image_is_read_without_starting_anything(stack, tmp_path):
    """The same environment in a folder that stands for /, where this machine's loader and cache
    have no say.
    """
    root = tmp_path / "root"
    target = root / "opt" / "venv"
    shutil.copytree(stack.environment, target, symlinks=True)
    machine = Machine(str(root), {"LD_LIBRARY_PATH": "/nowhere"})
    for function in (
        interpreter.probe_interpreter,
        distributions.probe_distributions,
        torch_build.probe_torch,
        native.probe_libraries,
    ):
        machine.facts.update(function(machine))
    loaded = {entry.name: entry for entry in machine.facts["libraries"].value if entry.loaded}
    site = stack.site.relative_to(stack.environment)
    assert loaded["libcublas"].path == f"/opt/venv/{site}/nvidia/cublas/lib/libcublas.so.12"
    assert loaded["libcublas"].version == "12.4.5.8"
    assert machine.facts["libraries"].evidence.detail == "loader rules"


def test_two_wheels_over_one_file_have_no_version(stack):
    extra = stack.site / "nvidia_nvjitlink_cu13-13.0.0.dist-info"
    assert libraries.wheel_names("libnccl", "12.8")[0] == "nvidia-nccl-cu12"
    assert libraries.wheel_names("libcublasLt", "13.0")[:2] == (
        "nvidia-cublas-cu13",
        "nvidia-cublas",
    )
    assert not extra.exists()


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("/usr/lib/libcublas.so.12.4.5.8", "12.4.5.8"),
        ("/usr/lib/libcudnn.so.8.9.7", "8.9.7"),
        ("/x/libcublas.so.12", None),
        ("/x/libcudart.so", None),
        ("/torch/lib/libcudart-d0da41ae.so.11.0", "11.0"),
    ],
)
def test_versions_in_file_names(path, version):
    assert libraries.version_of_file(path) == version


@given(st.text(max_size=300))
def test_any_version_file_is_read(text):
    assert set(torch_build.parse_version_file(text)) <= {"__version__", "cuda", "hip"}
