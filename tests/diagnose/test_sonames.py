"""Shared libraries that were not found: who asks, and what brings them."""

from pathlib import Path

import pytest

from envdoctor.app import check, diagnose
from envdoctor.diagnose.sonames import _OF_DEBIAN
from envdoctor.intake import parse_report
from envdoctor.intake.assumptions import parse_assumptions, with_assumptions
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts

NVRTC = "libnvrtc.so.12: cannot open shared object file: No such file or directory"
CUDNN = "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9}"


@pytest.fixture
def finding(tmp_path):
    """The first finding of a log with this line, in an environment of these packages."""

    def run(text, *assume):
        path = tmp_path / "run.log"
        path.write_text(f"{text}\n", encoding="utf-8")
        facts = with_assumptions(Facts(), dict(parse_assumptions(assume))) if assume else None
        traces = diagnose([str(path)], facts, load_matrix()).traces
        (said,) = [
            trace.finding
            for trace in traces
            if "lib" in trace.finding.message and trace.finding.code in ("ED295", "ED395")
        ]
        return said

    return run


def words(finding):
    return " ".join(remedy.text for remedy in finding.remedies)


def test_a_library_that_torch_brings_is_put_on_the_path(finding):
    said = finding(f"ImportError: {NVRTC}", "torch==2.9.1+cu128", "sgl-kernel==0.3.21")
    assert "sgl-kernel asks for it" in said.message
    assert "nvidia/cuda_nvrtc/lib" in words(said)
    assert "nvidia-cuda-nvrtc-cu12, which torch 2.9.1+cu128 brings" in words(said)
    assert "Install a build" not in words(said)


def test_a_library_of_another_cuda_wants_another_build(finding):
    said = finding(f"ImportError: {NVRTC}", "torch==2.9.1+cu130", "sgl-kernel==0.3.21")
    assert "a build of sgl-kernel for CUDA 13" in words(said)
    assert "LD_LIBRARY_PATH" not in words(said)


def test_a_release_that_is_built_for_the_cuda_that_is_here_is_named(finding):
    line = "ImportError: libcudart.so.12: cannot open shared object file"
    said = finding(line, "torch==2.14.0+cu130", "sglang-kernel==0.4.0")
    assert "sglang-kernel==0.4." in words(said)
    assert "built for CUDA 13" in words(said)


def test_without_torch_both_ways_are_shown(finding):
    said = finding(f"ImportError: {NVRTC}")
    assert "Where torch is for CUDA 12" in words(said)
    assert "for another CUDA" in words(said)


_BINARY = "CUDA SETUP: Loading binary /v/lib/python3.10/site-packages/bitsandbytes/{}..."


@pytest.mark.parametrize(
    ("line", "binary", "cuda"),
    [
        ("libcusparse.so.11: cannot open", "libbitsandbytes_cuda118.so", "11.8"),
        ("libcufft.so.11: cannot open", "libbitsandbytes_cuda124.so", "12.4"),
        ("libcusparse.so.11: cannot open", "libbitsandbytes_cuda121.so", ""),  # of another major
        ("libcusolver.so.11: cannot open", "libbitsandbytes_cuda118.so", ""),  # of 11 and 12
        ("libcusparse.so.11: cannot open", "libbitsandbytes_cpu.so", ""),
    ],
)
def test_the_binary_that_was_taken_tells_which_cuda_asks(finding, line, binary, cuda):
    """Their numbers are their own: cuFFT's 11 is of CUDA 12."""
    said = finding(
        f"{_BINARY.format(binary)}\n{line} shared object file: No such file or directory"
    )
    assert (f"its binary for CUDA {cuda}" in said.message) is bool(cuda)


def test_what_ldd_does_not_find_is_not_found_either(finding):
    assert finding("  libcudart.so.12 => not found").message.startswith("libcudart.so.12")


@pytest.mark.parametrize(
    ("assume", "way", "never"),
    [
        (("torch==2.3.1", "ctranslate2==4.5.0"), "torch 2.4 or newer", "site-packages"),
        (("torch==2.5.1", "ctranslate2==4.5.0"), "nvidia/cudnn/lib", "torch 2.4"),
        (("ctranslate2==4.5.0",), "ctranslate2<4.5.0", "torch 2.4"),
    ],
)
def test_cudnn_is_that_of_torch_or_of_what_opens_it(finding, assume, way, never):
    said = finding(CUDNN, *assume)
    assert "ctranslate2 is built for cuDNN 9 from 4.5.0 on" in said.message
    assert way in words(said)
    assert never not in words(said)


def test_cudnn_8_beside_a_torch_with_9(finding):
    line = "libcudnn_ops_infer.so.8: cannot open shared object file: No such file or directory"
    said = finding(line, "torch==2.5.1", "ctranslate2==4.4.0")
    assert said.component == "libcudnn"
    assert "ctranslate2>=4.5.0" in words(said)
    assert "libcudnn8" in words(said)


@pytest.mark.parametrize(
    ("line", "wheel", "folder"),
    [
        (CUDNN, "nvidia-cudnn-cu12==9.7.1.26", "nvidia/cudnn/lib"),
        (NVRTC, "nvidia-cuda-nvrtc-cu12==12.8.61", "nvidia/cuda_nvrtc/lib"),
    ],
)
def test_what_is_installed_is_not_installed_once_more(finding, line, wheel, folder):
    """A library that lies in site-packages is found by what torch or the path names."""
    said = finding(line, wheel)
    (remedy,) = said.remedies
    assert remedy.text.startswith(wheel.replace("==", " ") + " is installed: put its folder, ")
    assert folder in remedy.text
    assert "Install" not in remedy.text
    shown = wheel.replace("==", " ")
    assert (f" {shown} is installed, and holds it: it is not " in said.message) is (line is CUDNN)
    assert "Install" in words(finding(CUDNN, "nvidia-cudnn-cu12==8.9.2.26"))


def test_a_plugin_of_another_jax_is_named(tmp_path):
    log = tmp_path / "run.log"
    log.write_text(
        "RuntimeError: Unable to initialize backend 'cuda': INVALID_ARGUMENT: Mismatched PJRT "
        "plugin PJRT API version (0.54) and framework PJRT API version 0.51).\n"
    )
    finding = diagnose([str(log)], None, load_matrix()).traces[0].finding
    assert (finding.component, finding.kind) == ("jaxlib", "version-mismatch")
    assert "0.54 beside 0.51" in finding.message


def test_a_library_of_the_system_names_its_package(finding):
    said = finding("ImportError: libGL.so.1: cannot open shared object file: No such file")
    assert said.remedies[0].commands == ("sudo apt-get install libgl1",)


def test_the_packages_are_those_of_dpkg(prerequisite):
    """dpkg is the oracle for whatever of them is installed here."""
    listed = Path("/var/lib/dpkg/info")
    names = {entry.stem.partition(":")[0]: entry for entry in listed.glob("lib*.list")}
    prerequisite(names, "dpkg, which lists the files of libraries")
    held = {
        soname: package
        for soname, package in _OF_DEBIAN.items()
        if package in names
        and any(line.endswith(f"/{soname}") for line in names[package].read_text().splitlines())
    }
    elsewhere = {
        soname: name
        for soname in _OF_DEBIAN
        for name, entry in names.items()
        if soname not in held
        and any(line.endswith(f"/{soname}") for line in entry.read_text().splitlines())
    }
    # Ubuntu 24.04 calls those of 64-bit time otherwise, and apt takes the old name.
    assert {name for name in elsewhere.values() if not name.endswith("t64")} <= {
        "libopenblas0-serial",
        "libopenblas0-openmp",
    }
    assert held


@pytest.mark.parametrize(
    "line", ["libcuda.so.1: cannot open shared object file: No such file", NVRTC]
)
def test_a_library_of_cuda_in_an_environment_of_rocm(finding, tmp_path, line):
    log = (
        'Traceback (most recent call last):\n  File "/opt/python3.10/site-packages/sgl_kernel/'
        f'__init__.py", line 12, in <module>\n    from sgl_kernel import ops\nImportError: {line}'
    )
    said = finding(log, "torch==2.4.0+rocm6.1")
    assert "is a build for CUDA" in said.message
    assert "sgl-kernel" in said.message
    assert "for ROCm" in said.message
    assert not any(word in words(said) for word in ("--gpus", "LD_LIBRARY_PATH", "driver."))


@pytest.mark.parametrize(
    ("wanted", "beside", "sentence"),
    [
        (
            "7",
            "libsycl.so.8 => /opt/intel/lib/libsycl.so.8",
            "2024, and the oneAPI that is here is of 2025",
        ),
        (
            "7",
            "libmkl_core.so.2 => /opt/intel/oneapi/mkl/2025.0/lib/libmkl_core.so.2",
            "is of 2025",
        ),
        ("8", "libsvml.so => /opt/intel/oneapi/compiler/2024.1/lib/libsvml.so", "is of 2024"),
        (
            "7",
            "libtbb.so.12 => /opt/intel/oneapi/tbb/2022.0/lib/libtbb.so.12",
            "oneAPI 2024, whose",
        ),
        ("7", "libsycl.so.8 => not found", "oneAPI 2024, whose folders are on the path only where"),
    ],
)
def test_of_which_year_a_library_of_oneapi_is(tmp_path, wanted, beside, sentence):
    text = (
        "intel-extension-for-pytorch 2.3.110+xpu on Ubuntu 22.04\n"
        f"ldd ./main\n\t{beside} (0x0000)\n"
        f"./main: error while loading shared libraries: libsycl.so.{wanted}: cannot open shared "
        "object file: No such file or directory\n"
    )
    path = tmp_path / "report.txt"
    path.write_text(text, encoding="utf-8")
    report = check(parse_report(text, load_matrix().package), load_matrix(), logs=[str(path)])
    said = next(finding for finding in report.findings if "libsycl" in finding.message)
    assert sentence in said.message


def test_a_library_of_oneapi_is_on_the_path_after_its_script(finding):
    said = finding("ImportError: libmkl_core.so.2: cannot open shared object file: No such file")
    assert "Intel's oneAPI" in said.message
    assert "setvars.sh" in words(said)


@pytest.mark.parametrize(
    ("library", "part", "fix"),
    [
        ("libatb.so", "NNAL", "nnal/atb/set_env.sh"),
        ("libhccl.so", "Ascend's toolkit", "ascend-toolkit/set_env.sh"),
        ("libascend_hal.so", "Ascend's driver", "driver/lib64"),
    ],
)
def test_of_which_part_of_cann_a_library_is(finding, library, part, fix):
    line = f"ImportError: {library}: cannot open shared object file: No such file or directory"
    said = finding(line, "torch==2.5.1+cpu", "torch-npu==2.5.1")
    assert part in said.message
    assert fix in words(said)
    assert "apt-file" not in words(said)
    assert part not in finding(line, "torch==2.5.1+cu124").message


def test_what_finds_no_device_on_an_npu_sends_nobody_to_the_driver_of_nvidia(tmp_path):
    text = (
        "torch                 2.5.1+cpu\ntorch-npu             2.5.1\n"
        "vllm_ascend           0.7.3\n"
        "\nRuntimeError: Failed to infer device type\n"
    )
    path = tmp_path / "report.txt"
    path.write_text(text, encoding="utf-8")
    findings = check(parse_report(text), load_matrix(), logs=[str(path)]).findings
    assert "Ascend NPUs" in next(one.message for one in findings if one.code == "ED903")
    assert not any("nvidia" in str(one.missing).lower() for one in findings)
    path.write_text(text.replace("torch-npu ", "torch_xpu ").replace("vllm_ascend", "vllm_other"))
    findings = check(parse_report(path.read_text()), load_matrix(), logs=[str(path)]).findings
    assert any("nvidia" in str(one.missing).lower() for one in findings)
