"""Compiled extensions against an installed torch: small real C++ libraries, and the real loader's
verdict as the oracle.
"""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from envdoctor.model.evidence import Absent, Known
from envdoctor.probes import binaries, distributions, interpreter, native
from envdoctor.probes.isolation import run_command
from envdoctor.probes.machine import Machine

from .compiled import build, output, plain_environment

_C10 = """
#include <string>
namespace c10 {
namespace cuda { void SetDevice(signed char) {} }
namespace detail { void torchCheckFail(char const*, char const*, unsigned, std::string const&) {} }
}
"""
_CPU = (
    "namespace at { namespace _ops { struct zeros { static int call(int); }; int "
    "zeros::call(int x) { return x; } } }"
)

_FITS = """
#include <string>
namespace c10 { namespace cuda { void SetDevice(signed char); } }
namespace c10 { namespace detail { void torchCheckFail(char const*, char const*, unsigned, std::string const&); } }
namespace at { namespace _ops { struct zeros { static int call(int); }; } }
extern "C" int PyInit_x() { c10::cuda::SetDevice(1); c10::detail::torchCheckFail("", "", 1, std::string("")); return at::_ops::zeros::call(1); }
"""
#: As extensions for torch 2.7 ask 2.8: SetDevice had one parameter, then two.
_NEWER = """
namespace c10 { namespace cuda { void SetDevice(signed char, bool); } }
extern "C" int PyInit_x() { c10::cuda::SetDevice(1, true); return 0; }
"""
_WEAK = """
namespace c10 { namespace cuda { void __attribute__((weak)) Maybe(int); } }
extern "C" int PyInit_x() { if (&c10::cuda::Maybe) c10::cuda::Maybe(1); return 0; }
"""


TORCH = ("libc10.so", "libtorch_cpu.so", "libtorch_python.so")


@pytest.fixture(scope="session")
def libraries(tmp_path_factory, prerequisite):
    """Compile the libraries of torch, which know each other by places relative to their own."""
    prerequisite(shutil.which("g++"), "g++")
    folder = tmp_path_factory.mktemp("libraries")
    cudart = build(folder / "nvidia" / "cuda_runtime" / "lib" / "libcudart.so.12")
    options = [
        "-Wl,-rpath,$ORIGIN:$ORIGIN/../../nvidia/cuda_runtime/lib",
        "-Wl,--disable-new-dtags",
        "-lstdc++",
    ]
    c10, cpu, own = (folder / "torch" / "lib" / name for name in TORCH)
    build(c10, _C10, *options, compiler="g++")
    build(cpu, _CPU, *options, needs=[c10], compiler="g++")
    build(own, "", *options, needs=[cpu, cudart])
    return folder


class Environment:
    """A virtual environment with a torch of three libraries; extensions are added by the tests."""

    def __init__(self, folder, libraries):
        output(
            sys.executable, "-m", "venv", "--without-pip", folder, environment=plain_environment()
        )
        self.python = folder / "bin" / "python"
        self.site = next((folder / "lib").glob("python3.*")) / "site-packages"
        shutil.copytree(libraries, self.site, dirs_exist_ok=True)
        library = self.site / "torch" / "lib"
        self.cudart = self.site / "nvidia" / "cuda_runtime" / "lib" / "libcudart.so.12"
        self.c10, self.cpu, self.own = (library / name for name in TORCH)
        (self.site / "torch" / "__init__.py").write_text("")
        (self.site / "torch" / "version.py").write_text(
            "__version__ = '2.8.0+cu128'\ncuda = '12.8'\n"
        )
        self.install("torch", "2.8.0+cu128")

    def install(self, name, version="1.0"):
        folder = self.site / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir(exist_ok=True)
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\n"
        )

    def extension(self, path, source, *options, needs=None, distribution=None):
        self.install(distribution or path.split("/")[0])
        return build(
            self.site / path,
            source,
            *options,
            needs=[self.cpu, self.c10, self.cudart] if needs is None else needs,
            compiler="g++",
        )

    def read(self, deep=False):
        machine = Machine(python=str(self.python), environment=plain_environment(), deep=deep)
        for function in (interpreter.probe_interpreter, distributions.probe_distributions):
            machine.facts.update(function(machine))
        found = native.probe_binaries(machine)
        return {
            os.path.relpath(entry.path, self.site): entry for entry in found["binaries"].value
        }, found

    def loads(self, path):
        """Whether a real process loads the extension after torch's libraries, all symbols bound at
        once, and what it says.
        """
        code = (
            f"import ctypes, os; ctypes.CDLL({str(self.own)!r}); "
            f"ctypes.CDLL({str(self.site / path)!r}, mode=os.RTLD_NOW)"
        )
        outcome = run_command([str(self.python), "-c", code], 30, plain_environment(), stderr=True)
        return outcome.status == 0, outcome.text


@pytest.fixture
def environment(tmp_path, libraries):
    return Environment(tmp_path / "env", libraries)


def test_an_extension_that_fits(environment):
    environment.extension("vllm/_C.abi3.so", _FITS)
    binary = environment.read()[0]["vllm/_C.abi3.so"]
    assert environment.loads("vllm/_C.abi3.so")[0]
    assert (binary.undefined, binary.missing) == ((), ())
    assert binary.distribution == "vllm"
    assert binary.cxx11abi is True
    assert "libcudart.so.12" in binary.needed
    assert binary.glibc


def test_an_extension_for_another_torch(environment):
    environment.extension("vllm/_C.abi3.so", _NEWER)
    binary = environment.read()[0]["vllm/_C.abi3.so"]
    loads, text = environment.loads("vllm/_C.abi3.so")
    assert not loads
    assert binary.undefined == ("_ZN3c104cuda9SetDeviceEab",)
    assert binary.undefined[0] in text


def test_an_extension_with_the_other_string_abi(environment):
    environment.extension("xformers/_C.so", _FITS, "-D_GLIBCXX_USE_CXX11_ABI=0")
    binary = environment.read()[0]["xformers/_C.so"]
    loads, text = environment.loads("xformers/_C.so")
    assert not loads
    assert binary.cxx11abi is False
    assert len(binary.undefined) == 1
    assert binary.undefined[0] in text


def test_a_weak_symbol_may_be_absent(environment):
    environment.extension("torchvision/_C.so", _WEAK)
    assert environment.loads("torchvision/_C.so")[0]
    assert environment.read()[0]["torchvision/_C.so"].undefined == ()


def test_symbols_of_a_companion_library_count(environment):
    helper = environment.extension(
        "deep_ep/libhelper.so",
        "namespace c10 { namespace cuda { void SetDevice(signed char, bool) {} } }",
        distribution="deep-ep",
    )
    environment.extension(
        "deep_ep/deep_ep_cpp.so",
        _NEWER,
        "-Wl,-rpath,$ORIGIN",
        needs=[environment.c10, helper],
        distribution="deep-ep",
    )
    assert environment.loads("deep_ep/deep_ep_cpp.so")[0]
    assert environment.read()[0]["deep_ep/deep_ep_cpp.so"].undefined == ()


def test_a_cuda_library_of_another_major(environment, tmp_path):
    other = build(tmp_path / "libcudart.so.99")
    driver = build(tmp_path / "libcuda.so.1")
    environment.extension(
        "vllm/_C.abi3.so", _FITS, needs=[environment.cpu, environment.c10, other, driver]
    )
    binary = environment.read()[0]["vllm/_C.abi3.so"]
    loads, text = environment.loads("vllm/_C.abi3.so")
    assert not loads
    assert "libcudart.so.99" in text
    assert binary.missing == ("libcudart.so.99",)  # the driver's library is another question


def test_what_lies_beside_a_file_is_not_missing(environment):
    inner = environment.extension("torchaudio/lib/libtorchaudio.so", _FITS)
    environment.extension("torchaudio/lib/_torchaudio.so", "", needs=[inner])
    binaries = environment.read()[0]
    assert binaries["torchaudio/lib/_torchaudio.so"].missing == ()


def test_a_torch_without_its_cuda_wheel(environment):
    environment.cudart.unlink()
    (environment.site / "torch/lib/libtorch_cuda.so").write_bytes(environment.own.read_bytes())
    binary = environment.read()[0]["torch/lib/libtorch_cuda.so"]
    assert binary.distribution == "torch"
    # libtorch_python is of the same file here, and asked first.
    assert binary.missing in ((), ("libcudart.so.12",))


def test_files_of_another_python_are_told_and_not_judged(environment):
    environment.extension(
        "flash_attn_2_cuda.cpython-33-x86_64-linux-gnu.so", _NEWER, distribution="flash-attn"
    )
    binary = environment.read()[0]["flash_attn_2_cuda.cpython-33-x86_64-linux-gnu.so"]
    assert binary.undefined == ()
    abi = "cp{}{}".format(*sys.version_info[:2])
    assert binaries.foreign_python(binary.path, abi) == "cpython-33"
    assert binaries.foreign_python(f"x.cpython-{abi[2:]}-x86_64-linux-gnu.so", abi) is None
    assert binaries.foreign_python("x.abi3.so", abi) is None
    assert binaries.foreign_python("x.so", abi) is None


def test_of_several_variants_only_the_chosen_one_is_read(environment):
    for number in ("124", "128"):
        environment.extension(f"bitsandbytes/libbitsandbytes_cuda{number}.so", "", needs=[])
    environment.extension("torchao/_C_torch27.so", _NEWER)
    assert [path for path in environment.read()[0] if not path.startswith("torch/")] == [
        "bitsandbytes/libbitsandbytes_cuda128.so"
    ]


def test_files_that_are_no_libraries_are_passed_over(environment):
    environment.install("vllm")
    (environment.site / "vllm").mkdir()
    (environment.site / "vllm" / "_C.abi3.so").write_bytes(
        b"version https://git-lfs.github.com/spec/v1\n"
    )
    (environment.site / "vllm" / "x.so").symlink_to("/nowhere")
    assert not [path for path in environment.read()[0] if path.startswith("vllm")]


def test_deep_finds_extensions_of_any_package(environment):
    environment.extension("some_kernels/ops/_fast.so", _NEWER, distribution="some-kernels")
    environment.extension("plain/_speed.so", "", needs=[], distribution="plain")
    assert "some_kernels/ops/_fast.so" not in environment.read()[0]
    binaries = environment.read(deep=True)[0]
    assert binaries["some_kernels/ops/_fast.so"].undefined
    assert binaries["some_kernels/ops/_fast.so"].distribution == "some-kernels"
    assert "plain/_speed.so" not in binaries


def test_the_c_plus_plus_library_that_is_loaded(environment):
    fact = environment.read()[1]["glibcxx.version"]
    assert isinstance(fact, Known)
    assert fact.value.startswith("3.4.")
    told = output("nm", "-D", fact.evidence.source)
    numbers = {
        tuple(map(int, word.split("GLIBCXX_3.4.")[1].split()))
        for word in told.split()
        if "GLIBCXX_3.4." in word
    }
    assert int(fact.value.split(".")[2]) >= max(numbers)[0]


def test_without_torch_nothing_is_claimed_about_symbols(tmp_path):
    output(
        sys.executable,
        "-m",
        "venv",
        "--without-pip",
        tmp_path / "env",
        environment=plain_environment(),
    )
    found = native.probe_binaries(
        Machine(python=str(tmp_path / "env"), environment=plain_environment())
    )
    assert found["binaries"].value == ()
    assert isinstance(found["glibcxx.version"], Absent)
