"""Remedies for another system, the host of a WSL or another vendor's devices are none here.

Oracles: which of these words a system has at all; the remedies of all cases in view.
"""

import pytest

from envdoctor import app
from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.calls import InstallerCall
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Distribution, Facts
from envdoctor.model.finding import Finding, Remedy
from envdoctor.rules.built_on_torch import ways_by_torch
from envdoctor.rules.remedy_place import (
    fitted_to_place,
    is_of_another_place,
    without_other_places,
)

MATRIX = load_matrix()


def machine(**fields):
    return Facts(
        {name.replace("_", "."): Known(value, Evidence("test")) for name, value in fields.items()}
    )


WINDOWS, MACOS, LINUX = (machine(os_platform=name) for name in ("win32", "darwin", "linux"))
WSL = machine(os_platform="linux", os_wsl=True)
ROCM = machine(os_platform="linux", torch_version="2.6.0+rocm6.2")
CUDA = machine(os_platform="linux", torch_version="2.6.0+cu124")


@pytest.mark.parametrize(
    ("text", "facts", "is_elsewhere"),
    [
        ("Take the system's cuDNN off LD_LIBRARY_PATH.", WINDOWS, True),
        ("Take the system's cuDNN off LD_LIBRARY_PATH.", MACOS, True),
        ("Take the system's cuDNN off LD_LIBRARY_PATH.", LINUX, False),
        ("Take the system's cuDNN off LD_LIBRARY_PATH.", Facts(), False),
        ("Put the folder on LD_LIBRARY_PATH, on Windows on PATH.", WINDOWS, False),
        ("Install torch 2.4.0.", WINDOWS, False),
        ("Reload it: modprobe nvidia_uvm.", WSL, True),
        ("Reload it: modprobe nvidia_uvm.", LINUX, False),
        ("Reboot; in WSL: wsl --shutdown.", WSL, False),
        ("Look at nvidia-smi for another process.", ROCM, True),
        ("Look at nvidia-smi for another process.", CUDA, False),
        ("Start the container with --gpus all.", ROCM, True),
        ("Start the container with --gpus all.", CUDA, False),
    ],
)
def test_words_of_another_place(text, facts, is_elsewhere):
    assert is_of_another_place(Remedy(text), facts) is is_elsewhere


def test_commands_count_as_words_do():
    remedy = Remedy("Install a compiler.", ("apt-get install build-essential",))
    assert is_of_another_place(remedy, WINDOWS)
    assert not is_of_another_place(remedy, LINUX)


def test_what_is_left_keeps_its_order():
    ways = (Remedy("Set LD_PRELOAD."), Remedy("Install a."), Remedy("Install b."))
    (judged,) = without_other_places(
        [Finding("ED390", "a", "too-old", "error", "It fails.", remedies=ways)], WINDOWS
    )
    assert judged.remedies == ways[1:]


MISMATCH = "RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"


@pytest.mark.parametrize(
    ("system", "has_remedy"),
    [
        ("OS: Microsoft Windows 11 Home (10.0.26200 64-bit)", False),
        ("OS: Ubuntu 22.04.5 LTS (x86_64)", True),
    ],
)
def test_of_a_text_the_system_decides(system, has_remedy, tmp_path):
    text = f"PyTorch version: 2.6.0+cu124\n{system}\n\n```\n{MISMATCH}\n```\n"
    file = tmp_path / "issue.txt"
    file.write_text(text, encoding="utf-8")
    report = app.check(parse_report(text, MATRIX.package), MATRIX, logs=[str(file)])
    of_line = [one for one in report.findings if "cuDNN" in one.message]
    assert of_line
    assert [bool(one.remedies) for one in of_line] == [has_remedy] * len(of_line)


def test_python_itself_is_no_package_to_be_built_against_torch():
    torch = Distribution("torch", "2.3.1.post0+cxx11.abi")
    facts = Facts({"distributions": Known({"torch": torch}, Evidence("here"))})
    remedy = Remedy("Install the runtime of the compiler.")
    finding = Finding("ED495", "python", "abi-mismatch", "warning", "A DLL does not start.")
    assert ways_by_torch(finding._replace(remedies=(remedy,)), facts) is None
    built = ways_by_torch(finding._replace(component="torchaudio", remedies=(remedy,)), facts)
    assert built is not None
    assert "torchaudio" in built[0].text


@pytest.mark.parametrize(
    ("code", "kind", "is_built"),
    [
        ("ED495", "too-old", False),
        ("ED495", "abi-mismatch", True),
        ("ED304", "too-old", True),  # an engine that is built for a newer torch
        ("ED304", "too-new", True),
    ],
)
def test_a_library_of_the_system_is_not_built_against_torch(code, kind, is_built):
    nightly = Distribution("torch", "2.7.0.dev20250204+cu126")
    facts = Facts({"distributions": Known({"torch": nightly}, Evidence("test"))})
    finding = Finding(
        code=code,
        component="flash-attn" if is_built else "glibc",
        kind=kind,
        severity="error",
        message="",
        evidence=(),
        remedies=(Remedy("Use an image with a newer glibc."),),
        packages=("flash-attn", "torch"),
    )
    ways = ways_by_torch(finding, facts)
    assert bool(ways) is is_built
    assert all("glibc" not in way.text for way in ways or ())


def fitted(remedy, facts):
    finding = Finding("ED390", "a", "too-old", "error", "It fails.", remedies=(remedy,))
    return fitted_to_place([finding], facts, MATRIX)[0].remedies[0]


@pytest.mark.parametrize(
    ("command", "facts", "expected"),
    [
        ("export NCCL_P2P_DISABLE=1", WINDOWS, ("set NCCL_P2P_DISABLE=1",)),
        ("export CUDA_HOME=/usr/local/cuda-12.4", WINDOWS, ()),
        ("unset NCCL_GRAPH_FILE", WINDOWS, ("set NCCL_GRAPH_FILE=",)),
        ("wsl --shutdown", WINDOWS, ("wsl --shutdown",)),
        ("export NCCL_P2P_DISABLE=1", LINUX, ("export NCCL_P2P_DISABLE=1",)),
        (
            "export CUDA_HOME=/usr/local/cuda-12.4",
            MACOS,
            ("export CUDA_HOME=/usr/local/cuda-12.4",),
        ),
        ("export NCCL_P2P_DISABLE=1", Facts(), ("export NCCL_P2P_DISABLE=1",)),
    ],
)
def test_variables_are_set_as_the_shell_of_the_system_does(command, facts, expected):
    assert fitted(Remedy("Set it.", (command,)), facts).commands == expected


@pytest.mark.parametrize(
    ("package", "facts", "is_kept"),
    [
        ("vllm>=0.8.5", ROCM, False),
        ("vllm>=0.8.5", CUDA, True),
        ("vllm>=0.8.5", Facts(), True),
        ("torch==2.6.0", ROCM, False),
        ("transformers<4.50", ROCM, True),
        ("bitsandbytes>=0.49", ROCM, True),
        ("uvloop", WINDOWS, False),
        ("uvloop", LINUX, True),
        ("uvicorn", WINDOWS, True),
    ],
)
def test_what_is_not_made_for_a_place_is_not_installed_there(package, facts, is_kept):
    remedy = fitted(Remedy("Install it.", (InstallerCall("install", (package,)),)), facts)
    assert bool(remedy.commands) is is_kept
    assert (remedy.text == "Install it.") is is_kept


def test_an_index_that_is_named_decides():
    call = InstallerCall(
        "install", ("torch==2.6.0",), indexes=("https://download.pytorch.org/whl/rocm6.2",)
    )
    assert fitted(Remedy("Install it.", (call,)), ROCM).commands == (call,)
    gone = InstallerCall("uninstall", ("vllm",))
    assert fitted(Remedy("Take it out.", (gone,)), ROCM).commands == (gone,)
