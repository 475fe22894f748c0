"""What Poetry and PDM print of each package, as they print it."""

from __future__ import annotations

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
