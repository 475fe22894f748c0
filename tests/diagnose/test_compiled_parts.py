"""Compiled modules that are parts of a package."""

from __future__ import annotations

import pytest

SITE = "/opt/env/lib/python3.11/site-packages"


def missing(module, file=f"{SITE}/apex/optimizers/fused.py", code=""):
    return (
        "Traceback (most recent call last):\n"
        f'  File "{file}", line 12, in <module>\n    {code or f"import {module}"}\n'
        f"ModuleNotFoundError: No module named '{module}'\n"
    )


@pytest.mark.parametrize(
    ("text", "package"),
    [
        (missing("amp_C"), "apex"),
        (missing("xentropy_cuda", "/srv/megatron/loss.py"), "apex"),
        (missing("syncbn", code="import_module('syncbn')"), "apex"),
        (missing("flash_attn_2_cuda", f"{SITE}/flash_attn/interface.py"), "flash-attn"),
        (missing("selective_scan_cuda", "/srv/ssm/ops.py"), "mamba-ssm"),
        # By who imports it.
        (missing("grouped_gemm_ext", f"{SITE}/megablocks/ops.py"), "megablocks"),
        (missing("rotary_C", f"{SITE}/xformers/ops/rotary.py"), "xformers"),
        (missing("bitsandbytes.fused_cuda", f"{SITE}/bitsandbytes/optim.py"), "bitsandbytes"),
    ],
)
def test_the_package_is_built_again_and_none_of_that_name_installed(said, text, package):
    finding = said(text).traces[0].finding
    assert finding.component == package
    assert f"is a compiled part of {package}" in finding.message
    remedy = finding.remedies[0]
    assert not remedy.commands
    assert "--no-build-isolation" in remedy.text
    assert ("APEX_CUDA_EXT=1" in remedy.text) is (package == "apex")


@pytest.mark.parametrize(
    ("text", "is_installed"),
    [
        (missing("amp_C"), True),
        (missing("amp_C", "/srv/train/step.py"), False),
        (missing("flash_attn_2_cuda", "/srv/train/step.py"), False),
    ],
)
def test_whether_the_package_itself_is_there(said, text, is_installed):
    message = said(text).traces[0].finding.message
    assert ("is here without its extensions" in message) is is_installed
    assert ("is not installed here, or without" in message) is not is_installed


@pytest.mark.parametrize(
    "text",
    [
        missing("deepspeed"),
        missing("apex", "/srv/train/step.py"),
        missing("torchaudio", f"{SITE}/lightning/audio.py"),
        # A package of its own, by whoever it is imported.
        missing("sgl_kernel", f"{SITE}/sglang/srt/layers.py"),
        missing("vllm.lora", f"{SITE}/verl/workers/rollout.py"),
    ],
)
def test_what_is_no_compiled_part(said, text):
    assert "compiled part" not in said(text).traces[0].finding.message


def test_an_extension_of_the_program_itself(said):
    trace = said(missing("deform_conv_cuda", "/srv/seg/ops/deform.py")).traces[0]
    assert "compiled extension" in trace.meaning
    assert "setup.py of the program" in trace.finding.remedies[0].text
    other = said(missing("data_loader", "/srv/seg/ops/deform.py")).traces[0]
    assert "compiled extension" not in other.meaning
