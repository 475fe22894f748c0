"""scripts/score_cases on cases of our own, and the adapter for stated facts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "data" / "cases" / "own.jsonl"
sys.path.insert(0, str(ROOT / "scripts"))

from case_facts import case_facts  # noqa: E402 - found through the path above

from envdoctor.model.facts import Gpu  # noqa: E402


def run(*arguments, stdin=None):
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "score_cases"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        input=stdin,
    )


def test_score():
    done = run(str(CASES))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == [
        "classes 1-8: 2/2 named (100 %); classes 1-9: 2/3 named (67 %)",
        "cases: 2/3 named, 0 false alarms on 1 healthy, 0 unrelated errors",
    ]


def test_verbose_has_a_line_for_each_case():
    lines = run(str(CASES), "--verbose").stdout.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("own-")] == [
        "own-1",
        "own-2",
        "own-3",
        "own-4",
        "own-5",
    ]
    assert any(line.startswith("own-1") and "named [needs: meets]" in line for line in lines)
    assert any(line.startswith("own-5") and "silent" in line for line in lines)


def test_with_log_counts_what_needs_it():
    assert "/4 named" in run(str(CASES), "--with-log").stdout.splitlines()[-1]


def test_bad_input_is_one_line():
    done = run("-", stdin='{"id": 1}\n')
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "-:1" in done.stderr
    assert run("/nonexistent").returncode == 2


def test_an_error_on_health_is_a_false_alarm():
    case = {
        "id": "x",
        "class": 10,
        "env_kind": "report",
        "env_text": "Nvidia driver version: 470.57.02\nPyTorch version: 2.11.0+cu130",
        "expected": [{"kind": "none"}],
    }
    last = run("-", stdin=json.dumps(case) + "\n").stdout.splitlines()[-1]
    assert last.startswith("cases: 0/0 named, ")
    assert ", 0 false alarms" not in last


@pytest.mark.parametrize(
    ("stated", "field", "expected"),
    [
        ({"driver": "535.161.08 (R535)"}, "driver.release", "535.161.08"),
        ({"driver_cuda": "12.4"}, "driver.cuda_version", "12.4"),
        ({"gpu": "NVIDIA H20 x8"}, "gpus", (Gpu(name="NVIDIA H20"),) * 8),
        (
            {"gpu": "Tesla V100", "gpu_arch": "sm_70"},
            "gpus",
            (Gpu(name="Tesla V100", compute_capability="7.0"),),
        ),
        ({"gpu": "none visible in container"}, "gpus", ()),
        (
            {"gpu": "RTX 3090", "gpu_memory_gib": 24},
            "gpus",
            (Gpu(name="RTX 3090", memory_total=24 << 30),),
        ),
        ({"torch": "2.8.0+cu129"}, "torch.version", "2.8.0+cu129"),
        ({"torch_cuda": "12.1"}, "torch.cuda", "12.1"),
        ({"nvcc": "12.8.93"}, "toolkit.version", "12.8.93"),
        ({"cuda_runtime": "12.4.131 (system toolkit)"}, "toolkit.version", "12.4.131"),
        ({"python": "3.11"}, "python.version", "3.11"),
        ({"glibc": "2.31"}, "glibc.version", "2.31"),
        ({"os": "CentOS 7"}, "os.platform", "linux"),
        ({"platform": "WSL2"}, "os.wsl", True),
        ({"cpu_arch": "aarch64"}, "os.architecture", "aarch64"),
        ({"dev_shm": "16MB"}, "shm.size", 16 << 20),
        ({"nofile_soft": 1024}, "rlimit.nofile", 1024),
        ({"memlock_kb": 8192}, "rlimit.memlock", 8192 * 1024),
        ({"host_memory_gb": 252}, "memory.total", 252 * 10**9),
        ({"cluster_ray": "2.43.0"}, "ray.cluster_version", "2.43.0"),
        ({"process_ray": "2.44.1"}, "ray.process_version", "2.44.1"),
        ({"fabricmanager": "550.90.07"}, "driver.fabric_manager", "550.90.07"),
        ({"cxx11_abi": False}, "torch.cxx11abi", False),
        ({"cuda_available": False}, "torch.cuda_available", False),
        ({"pcie_acs_iommu": "enabled"}, "pcie.acs_iommu", True),
        ({"cwd": "site-packages/vllm"}, "python.working_directory", "site-packages/vllm"),
        ({"image": "vllm/vllm-openai:v0.9.0"}, "image.name", "vllm/vllm-openai:v0.9.0"),
        (
            {"LD_LIBRARY_PATH": "/opt/conda/lib first"},
            "variables",
            {"LD_LIBRARY_PATH": "/opt/conda/lib"},
        ),
        ({"vllm_engine": "V1"}, "request", {"engine": "V1"}),
        ({"tensor_parallel": 2}, "request", {"tensor_parallel_size": "2"}),
    ],
)
def test_stated_facts(stated, field, expected):
    value = case_facts(stated).value(field)
    assert (value.settings() if field == "request" else value) == expected


@pytest.mark.parametrize(
    ("stated", "name", "version", "constraint"),
    [
        ({"vllm": "0.7.3 (some index, CUDA 12.4)"}, "vllm", "0.7.3", ""),
        ({"flash_attn": "2.8.3+cu12torch2.7"}, "flash-attn", "2.8.3+cu12torch2.7", ""),
        ({"vllm": ">=0.16.0"}, "vllm", None, ">=0.16.0"),
        ({"flash_attn": "2.x wheel"}, "flash-attn", None, "==2.*"),
        ({"some-unheard-of": "1.2.3"}, "some-unheard-of", "1.2.3", ""),
        ({"nvidia-cublas-cu12": "12.1.3.1"}, "nvidia-cublas-cu12", "12.1.3.1", ""),
        ({"torch": "2.11rc"}, "torch", "2.11rc", ""),
    ],
)
def test_stated_packages(stated, name, version, constraint):
    found = case_facts(stated).value("distributions")[name]
    assert (found.version, found.constraint) == (version, constraint)


def test_numbers_are_no_packages():
    assert (
        case_facts({"weights_gb": 14.99, "kv_tokens": 23648, "gpu_gb_after_prepare": 46}).value(
            "distributions"
        )
        is None
    )
