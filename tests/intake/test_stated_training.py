"""A stage of DeepSpeed that a text names, and when it counts."""

from __future__ import annotations

import pytest

from envdoctor.intake.pasted_report import parse_report


def settings(text):
    request = parse_report(f"torch 2.6.0\n{text}\n").value("request")
    return request.settings() if request is not None else {}


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        ("Full fine-tuning of Llama-2-70B with DeepSpeed ZeRO-3 crashes", "3"),
        ("I train Qwen2.5-14B with zero2 on one machine", "2"),
        ("training with ZeRO stage 3, then ZeRO-3 saves nothing", "3"),
        ("用 deepspeed zero3 全参数微调 Qwen2.5-14B", "3"),
    ],
)
def test_a_stage_that_a_sentence_names(text, stage):
    assert settings(text)["zero_stage"] == stage
    assert "optimizer_offload" not in settings(text)


@pytest.mark.parametrize(
    "text",
    [
        "LoRA fine-tuning with ZeRO-3",
        "training with ZeRO-3 on 2 nodes",
        "training works with ZeRO-2, and fails with ZeRO-3",
        "training with ZeRO-3 and CPU offload",
        "training with ZeRO-3 and 8-bit Adam",
        "training: --deepspeed configs/zero3.json",
        "ZeRO-3 is a nice paper",
        "training from zero 3 times",
    ],
)
def test_a_stage_that_decides_nothing(text):
    assert "zero_stage" not in settings(text)


def test_the_optimizer_on_the_host():
    text = "training with ZeRO-3 and CPU offload of optimizer and parameters"
    assert settings(text)["zero_stage"] == "3"
    assert settings(text)["optimizer_offload"] == "true"


@pytest.mark.parametrize(
    ("text", "is_full"),
    [
        ("We full fine-tune a 70B llama", True),
        ("full-parameter fine-tuning of Qwen2.5-7B", True),
        ("全参微调 Qwen2.5-72B", True),
        ("LoRA instead of full fine-tuning of Qwen2.5-7B", False),
        ("full fine-tuning of Qwen2.5-7B on 4 nodes", False),
        ("full fine-tuning of Qwen2.5-7B with CPU offload", False),
        ("the fine-tuning script of Qwen2.5-7B", False),
    ],
)
def test_all_parameters(text, is_full):
    assert ("finetuning_type" in settings(text)) is is_full
