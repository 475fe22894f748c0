"""What Poetry, PDM, uv and pip print of each package, as they print it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from envdoctor.intake.pasted_report import parse_report

POETRY = """Package operations: 5 installs, 2 updates, 1 removal

  - Installing nvidia-cublas-cu12 (12.4.5.8)
  - Installing torch (2.5.1)
  - Updating numpy (1.26.4 -> 2.1.0)
  - Installing torch (2.5.1): Failed
  - Installing xformers (0.0.28.post3): Skipped for the following reason: Not required
  - Installing triton (3.1.0): Skipped for the following reason: Already installed
  - Removing apex (0.1)
  • Installing vllm (0.6.4 1a2b3c4): Downloading... 10%
"""
PDM = """  ✔ Install numpy 1.26.4 successful
  ✖ Install torch 2.5.1 failed
  ✔ Update transformers 4.46.0 -> 4.47.1 successful
"""


def test_what_somebody_says_to_do_is_not_done():
    facts = parse_report("Python 3.11\n- Remove xformers 0.0.28\n- Remove apex (0.1)\n")
    assert not facts.value("distributions.absent")


@pytest.mark.parametrize(
    ("text", "installed"),
    [
        (POETRY, {"nvidia-cublas-cu12": "12.4.5.8", "numpy": "2.1.0", "triton": "3.1.0"}),
        (PDM, {"numpy": "1.26.4", "transformers": "4.47.1"}),
    ],
)
def test_what_failed_is_not_there(text, installed):
    facts = parse_report(text)
    listed = {name: one.version for name, one in facts.value("distributions").items()}
    assert installed.items() <= listed.items()
    assert not {"torch", "xformers", "apex"} & set(listed)
    assert "torch" in facts.value("distributions.absent")


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("  ERROR: Failed building wheel for flash-attn", ["flash-attn"]),
        ("Failed to build flash-attn xformers", ["flash-attn", "xformers"]),
        (
            (
                "ERROR: Could not build wheels for deepspeed, xformers, which is required to "
                "install pyproject.toml-based projects"
            ),
            ["deepspeed", "xformers"],
        ),
        (
            (
                "ERROR: Failed to build installable wheels for some pyproject.toml based projects "
                "(flash-attn)"
            ),
            ["flash-attn"],
        ),
        (
            "flash-attn installation failed. I could not install xformers.",
            ["flash-attn", "xformers"],
        ),
        ("We are unable to build flash-attn with gcc 13", ["flash-attn"]),
        ("安装 flash-attn 失败，无法安装 xformers", ["flash-attn", "xformers"]),
    ],
)
def test_what_could_not_be_built_is_not_there(text, missing):
    facts = parse_report(f"torch==2.6.0\n{text}\n")
    assert list(facts.value("distributions.absent")) == missing


@pytest.mark.parametrize(
    "text",
    [
        "Failed to install the driver on vllm nodes",
        "Failed to build the docker image",
        "It does not fail to build",
        "Failed to download the weights of the model with transformers",
    ],
)
def test_what_else_fails_is_no_package(text):
    assert not parse_report(f"torch==2.6.0\n{text}\n").value("distributions.absent")


@pytest.mark.parametrize(
    "text",
    [
        "error: Failed to download `vllm==0.8.5`",
        "  × Failed to build `vllm==0.8.5`",
        "  × Failed to download and build `vllm==0.8.5`",
        "ERROR: No matching distribution found for vllm==0.8.5",
    ],
)
def test_the_release_that_was_asked_for_is_kept(text):
    assert parse_report(text).value("distributions")["vllm"].version == "0.8.5"
    built = parse_report(f"{text}\nSuccessfully installed vllm-0.8.4\n")
    assert built.value("distributions")["vllm"].version == "0.8.4"


@pytest.fixture
def wheels(tmp_path):
    """Two releases of torch as far as an installer looks: their metadata."""
    for version in ("2.8.0", "2.9.0.dev20250908"):
        with zipfile.ZipFile(tmp_path / f"torch-{version}-py3-none-any.whl", "w") as wheel:
            info = f"torch-{version}.dist-info"
            wheel.writestr(
                f"{info}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"
            )
            wheel.writestr(
                f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{info}/RECORD", f"{info}/METADATA,,\n{info}/WHEEL,,\n")
    return tmp_path


@pytest.mark.parametrize("prefix", ["", "#12 12254.0 "])
def test_what_uv_replaced_is_not_there_any_more(wheels, prerequisite, prefix):
    uv = shutil.which("uv") or os.path.join(os.path.dirname(sys.executable), "uv")
    prerequisite(os.path.exists(uv), "uv is not installed")
    subprocess.run([uv, "venv", "--quiet", wheels / "env"], check=True)
    text = ""
    for version in ("2.9.0.dev20250908", "2.8.0"):
        command = (uv, "pip", "install", "--offline", "--no-index", "--find-links", wheels)
        done = subprocess.run(
            [*command, f"torch=={version}"],
            env={**os.environ, "VIRTUAL_ENV": str(wheels / "env"), "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        text += "".join(f"{prefix}{line}\n" for line in done.stderr.splitlines())
    facts = parse_report(text)
    assert facts.value("distributions")["torch"].version == "2.8.0", text
    assert facts.value("torch.version") == "2.8.0"


def test_the_last_release_that_pip_installed_is_there():
    text = "Successfully installed fsspec-2024.12.0 torch-2.6.0+cu124\n"
    text += "gcsfs 2025.3.2 requires fsspec==2025.3.2, but you have fsspec 2024.12.0 which is "
    text += "incompatible.\nSuccessfully installed fsspec-2025.3.2 torch-2.7.1\n"
    facts = parse_report(text)
    assert facts.value("distributions")["fsspec"].version == "2025.3.2"
    assert facts.value("torch.version") == "2.7.1"
    assert facts.value("torch.cuda") is None


def test_of_what_pip_refuses_nothing_is_there():
    text = "vllm 0.6.3\nERROR: Cannot install torch==2.1.1 and peft==0.5.4 because these package "
    text += "versions have conflicting dependencies.\n\nThe conflict is caused by:\n    The user "
    text += "requested torch==2.1.1\n    peft 0.5.4 depends on torch==2.4.0\n\ntransformers 4.45.0"
    assert set(parse_report(text).value("distributions")) == {"vllm", "transformers"}


def test_what_pip_shows_that_torch_requires_tells_its_cuda():
    text = "Name: torch\nVersion: 2.2.1\nSummary: Tensors\nRequires: filelock, "
    text += "nvidia-cuda-runtime-cu12, sympy\nRequired-by: peft\n"
    assert "nvidia-cuda-runtime-cu12" in parse_report(text).value("distributions")


def test_what_a_dry_run_would_do_is_not_there():
    """What uv 0.9 prints of ``uv pip install --dry-run``, and pip 25 of its own."""
    text = (
        "Using Python 3.11.7 environment at: venv\n"
        "Would download 2 packages\nWould uninstall 1 package\nWould install 2 packages\n"
        " + nvidia-cublas-cu12==12.1.3.1\n - torch==2.15.0\n + torch==2.4.0\n"
        "vllm==0.8.5\n"
    )
    assert set(parse_report(text).value("distributions")) == {"vllm"}
    text = "Would install torch-2.6.0 numpy-2.1.0\nvllm==0.8.5\n"
    assert set(parse_report(text).value("distributions")) == {"vllm"}


def test_trees_of_uv_and_pipdeptree():
    text = (
        "torch v2.6.0\n├── cuda-toolkit v13.2.2\n│   └── nvidia-cublas v13.4.1.3 (*)\n"
        "└── sympy [required: ==1.13.1, installed: 1.13.1]\n"
    )
    facts = parse_report(text)
    assert {name: one.version for name, one in facts.value("distributions").items()} == {
        "torch": "2.6.0",
        "cuda-toolkit": "13.2.2",
        "nvidia-cublas": "13.4.1.3",
        "sympy": "1.13.1",
    }
    assert facts.value("toolkit.version") is None


PIP_REPLACES = (
    "  Attempting uninstall: numpy\n    Found existing installation: numpy 2.0.1\n"
    "    Uninstalling numpy-2.0.1:\n"
)


@pytest.mark.parametrize(
    ("behind", "version"),
    [
        ("", "2.0.1"),
        ("      Successfully uninstalled numpy-2.0.1\n", None),
        (
            "      Successfully uninstalled numpy-2.0.1\nSuccessfully installed numpy-1.26.4\n",
            "1.26.4",
        ),
        (
            "      Successfully uninstalled numpy-2.0.1\nSuccessfully installed numpy-2.0.1\n",
            "2.0.1",
        ),
    ],
)
def test_what_pip_took_away_is_not_there(behind, version):
    """pip 25.0, req/req_install.py; numpy 2.0.1 is replaced, whatever the text says of it first."""
    facts = parse_report(f"Python version: 3.11.4\nI had numpy 2.0.1 here\n{PIP_REPLACES}{behind}")
    assert facts.version_of("numpy") == version
