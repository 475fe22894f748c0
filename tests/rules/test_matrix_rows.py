"""Rows as findings: severity, both values, merging, what is undetermined.

The rows are a site's own, loaded as every row is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Sequence

import pytest

from envdoctor.app import judge
from envdoctor.intake.pasted_report import parse_report
from envdoctor.matrix.loader import Matrix, load_matrix
from envdoctor.model.calls import InstallerCall
from envdoctor.model.facts import Gpu
from envdoctor.model.finding import Gap

from .conftest import Judge, by_code, codes, facts_of

_ROW = """
[[row]]
id = "{id}"
title = "Widget {id} breaks"
effect = "{effect}"
trust = "{trust}"
component = "{component}"
kind = "bad-version"
code = "ED390"
when = [{when}]
symptom = "it breaks"
fix = "Install another widget."
pins = ["widget>=2"]
sources = [{{ address = "https://example.org/1" }}]
established_by = "test"
date = "2026-01-01"
{more}
"""


@pytest.fixture
def site(tmp_path: Path):
    def load(*rows: dict) -> Matrix:
        defaults = {"effect": "blocks", "trust": "established", "component": "widget", "more": ""}
        text = "".join(
            _ROW.format(**{"id": f"w-{number}", **defaults, **row})
            for number, row in enumerate(rows)
        )
        (tmp_path / "rows.toml").write_text(text)
        return load_matrix([str(tmp_path)])

    return load


OLD = '{ env = "widget", in = "<2" }'


@pytest.mark.parametrize(
    ("effect", "trust", "severity"),
    [
        ("blocks", "established", "error"),
        ("blocks", "reported", "warning"),
        ("degrades", "established", "warning"),
        ("wrong-results", "established", "warning"),
        ("note", "established", "advice"),
        ("note", "reported", "advice"),
    ],
)
def test_severity(judged: Judge, site, effect: str, trust: str, severity: str) -> None:
    findings = judged(
        facts_of(["widget 1.0"]), matrix=site({"effect": effect, "trust": trust, "when": OLD})
    )
    finding = by_code(findings, "ED390")
    assert finding.severity == severity
    assert finding.row == "w-0"
    assert "widget 1.0" in finding.message
    assert finding.remedies[0].commands == (InstallerCall("install", ("widget>=2",)),)


def test_satisfied(judged: Judge, site) -> None:
    matrix = site({"when": OLD})
    assert codes(judged(facts_of(["widget 2.0"]), matrix=matrix)) == []
    assert codes(judged(facts_of(["gadget 1.0"]), matrix=matrix)) == []


def test_unindexed_build_is_no_error_and_named(judged: Judge, site) -> None:
    finding = by_code(
        judged(facts_of(["widget 1.0a0+1234abc.nv25"]), matrix=site({"when": OLD})), "ED390"
    )
    assert finding.severity == "warning"
    assert finding.message.endswith(
        "widget is a build that no index has, and may differ from the release."
    )
    assert (
        "no index"
        not in by_code(
            judged(facts_of(["widget 1.0"]), matrix=site({"when": OLD})), "ED390"
        ).message
    )


def test_undetermined_by_one_missing_fact(judged: Judge, site) -> None:
    matrix = site({"when": OLD + ', { gpu = "model", any = ["H20"] }'})
    findings = judged(facts_of(["widget 1.0"]), matrix=matrix)
    assert [(finding.verdict, str(finding.missing)) for finding in findings] == [
        ("undetermined", "the GPU")
    ]
    assert "not known" in findings[0].message
    assert (
        by_code(
            judged(facts_of(["widget 1.0"], gpus=["NVIDIA H20", "NVIDIA H100"]), matrix=matrix),
            "ED390",
        ).severity
        == "error"
    )
    assert judged(facts_of(["widget 1.0"], gpus=[]), matrix=matrix) == []


def test_two_missing_facts_are_no_finding(judged: Judge, site) -> None:
    matrix = site(
        {"when": OLD + ', { gpu = "model", any = ["H20"] }, { host = "glibc", in = "<2.30" }'}
    )
    assert judged(facts_of(["widget 1.0"]), matrix=matrix) == []
    assert [
        str(finding.missing)
        for finding in judged(facts_of(["widget 1.0"], glibc_version="2.28"), matrix=matrix)
    ] == ["the GPU"]


def test_host_terms_alone_ask_nobody(judged: Judge, site) -> None:
    matrix = site({"when": '{ host = "glibc", in = "<2.30" }, { env = "widget", in = "<2" }'})
    assert judged(facts_of(glibc_version="2.28"), matrix=matrix) == []


def test_mitigation(judged: Judge, site) -> None:
    matrix = site({"when": OLD, "more": 'mitigations = [{ var = "WIDGET", value = "0" }]'})
    assert codes(judged(facts_of(["widget 1.0"], variables={"WIDGET": "0"}), matrix=matrix)) == []
    finding = by_code(judged(facts_of(["widget 1.0"], variables={}), matrix=matrix), "ED390")
    assert finding.remedies[-1].commands == ("export WIDGET=0",)
    assert finding.remedies[-1].safety == "safe"


def test_one_old_driver_is_one_finding(judged: Judge) -> None:
    facts = facts_of(
        ["torch 2.9.0+cu130", "sgl-kernel 0.3.20+cu130"],
        driver_release="535.161.08",
        gpus=["NVIDIA H20"],
        torch_cuda="13.0",
    )
    finding = by_code(judged(facts), "ED101")
    assert (finding.component, finding.kind, finding.severity) == (
        "nvidia-driver",
        "too-old",
        "error",
    )
    assert "535.161.08" in finding.message
    assert not any(
        isinstance(command, InstallerCall)
        for remedy in finding.remedies
        for command in remedy.commands
    )


def test_every_kind_of_device_that_is_hit_is_named(judged: Judge, site) -> None:
    matrix = site({"when": OLD + ', { gpu = "model", any = ["H20", "H100"] }'})
    findings = judged(
        facts_of(
            ["widget 1.0"],
            gpus=[Gpu(name="NVIDIA A10"), Gpu(name="NVIDIA H20"), Gpu(name="NVIDIA H100 PCIe")],
        ),
        matrix=matrix,
    )
    message = by_code(findings, "ED390").message
    assert "H20" in message
    assert "A10" not in message


def test_generations_ask_one_question(judged: Judge) -> None:
    findings = [
        finding
        for finding in judged(facts_of(["sgl-kernel 0.1.2"]))
        if finding.verdict == "undetermined"
    ]
    assert len([finding for finding in findings if finding.missing == Gap("gpu")]) <= 1


def test_a_package_is_not_for_whoever_runs_the_machine(judged: Judge) -> None:
    finding = by_code(
        judged(
            facts_of(["torch 2.5.1+cu124"], gpus=["NVIDIA GeForce RTX 5090"], torch_cuda="12.4")
        ),
        "ED120",
    )
    assert [remedy.safety for remedy in finding.remedies] == ["changes-environment"]
    old = facts_of(
        ["torch 2.9.0+cu130"], driver_release="535.161.08", gpus=["NVIDIA H20"], torch_cuda="13.0"
    )
    assert "changes-host" in [remedy.safety for remedy in by_code(judged(old), "ED101").remedies]


def test_a_special_case_of_a_row_is_no_second_finding(site, judged: Judge) -> None:
    gadget = '{ env = "gadget", present = true }'
    facts = facts_of(["widget 1.0", "gadget 1.0"])
    rows = ({"when": OLD, "effect": "note"}, {"when": f"{OLD}, {gadget}", "effect": "degrades"})
    finding = by_code(judged(facts, matrix=site(*rows)), "ED390")
    assert (finding.row, finding.packages) == ("w-1", ("widget", "gadget"))
    other = {"when": '{ env = "widget", in = "<3" }', "effect": "degrades"}
    assert codes(judged(facts, matrix=site(rows[1], other))) == ["ED390", "ED390"]


def test_what_is_too_old_for_another_may_stay(judged: Judge) -> None:
    findings = judged(facts_of(["peft 0.17.1", "transformers 4.37.2", "accelerate 1.3.0"]))
    finding = next(entry for entry in findings if entry.row == "peft-0.14-transformers-4.43")
    texts = [remedy.text for remedy in finding.remedies]
    assert "Or, where transformers has to stay, install peft before 0.14.0." in texts


@pytest.mark.parametrize(
    ("also", "severity"), [("sglang: 0.4.3", "advice"), ("openai: 1.60.0", "warning")]
)
def test_what_vllm_cannot_serve_is_advice_where_sglang_is(also: str, severity: str) -> None:
    """SGLang took layers of vLLM and served models that its vLLM does not know."""
    facts = parse_report(f"torch 2.5.1\nvllm: 0.6.4.post1\n{also}\nWe serve DeepSeek-V3.\n")
    findings = [entry for entry in judge(facts, load_matrix()) if entry.row == "deepseek-v3-vllm"]
    assert [entry.severity for entry in findings] == [severity]


VOLTA = "GPU 0: Tesla V100-SXM2-32GB"


@pytest.mark.parametrize(
    ("lines", "row"),
    [
        (
            ("vllm 0.5.5", "vllm serve Qwen/Qwen2-7B --dtype bfloat16", VOLTA),
            "dtype-bfloat16-vllm-on-6.0-7.5",
        ),
        (
            ("vllm 0.5.3", "vllm serve Qwen/Qwen2-7B --enable-lora", VOLTA),
            "vllm-punica-before-ampere",
        ),
        (("vllm 0.5.5", "vllm serve Qwen/Qwen2-7B --dtype half", VOLTA), ""),
        (("vllm 0.5.5", "vllm serve Qwen/Qwen2-7B --dtype bfloat16", "GPU 0: NVIDIA A10"), ""),
        (("vllm 0.5.4", "vllm serve Qwen/Qwen2-7B --enable-lora", VOLTA), ""),
        # which takes float16 instead, and says so
        (
            (
                "vllm 0.5.5",
                "python -m sglang.launch_server --model-path Qwen/Qwen2-7B --dtype bfloat16",
                VOLTA,
            ),
            "",
        ),
    ],
)
def test_a_setting_that_asks_for_what_the_gpu_lacks(
    judged: Judge, matrix: Matrix, lines: Sequence[str], row: str
) -> None:
    facts = parse_report("\n".join(lines) + "\n", matrix.package)
    errors = [finding.row for finding in judged(facts) if finding.severity == "error"]
    about = [entry for entry in errors if entry.startswith(("vllm-punica", "dtype-"))]
    assert about == ([row] if row else [])


SERVED = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --attention-backend {}\n"


@pytest.mark.parametrize(
    ("sglang", "gpu", "backend", "is_refused"),
    [
        ("0.4.6", "RTX 4090", "fa3", True),  # Hopper alone, and newer
        ("0.4.6", "H100", "fa3", False),
        ("0.4.6.post4", "RTX 4090", "fa3", False),
        ("0.4.9", "Tesla T4", "fa3", True),
        ("0.5.2", "NVIDIA B200", "fa3", True),
        ("0.5.2", "NVIDIA B200", "triton", False),
    ],
)
def test_an_attention_backend_that_the_gpu_has_not(sglang, gpu, backend, is_refused):
    text = f"sglang {sglang}\nGPU 0: {gpu}\n{SERVED.format(backend)}"
    rows = [entry for entry in judge(parse_report(text), load_matrix()) if "-fa3-" in entry.row]
    assert [entry.severity for entry in rows] == ["error"] * is_refused


@pytest.mark.parametrize(
    ("torch", "transformers", "gpu", "is_refused"),
    [
        ("2.2.2", "4.44.2", "Tesla T4", True),
        ("2.3.1", "4.44.2", "Tesla T4", False),  # made of float32
        ("2.3.1", "4.34.1", "Tesla T4", True),  # which does not ask torch
        ("2.2.2", "4.44.2", "A100", False),
    ],
)
def test_bf16_that_transformers_refuses(torch, transformers, gpu, is_refused):
    packages = f"torch {torch}\ntransformers {transformers}\nGPU 0: {gpu}\n"
    for flag, said in (("--bf16", is_refused), ("--fp16", False)):
        text = f"{packages}python run_clm.py --model_name_or_path gpt2 {flag} --output_dir out\n"
        rows = [entry for entry in judge(parse_report(text), load_matrix()) if "bf16" in entry.row]
        assert [entry.severity for entry in rows] == ["warning"] * said
