"""Pasted reports: one golden example for each format, and what single lines mean."""

import json
import py_compile
import sys
from pathlib import Path

import pytest

from envdoctor.errors import InputError
from envdoctor.intake import parse_report
from envdoctor.intake.clean_text import MAX_LINES, MAX_REPORT
from envdoctor.model.evidence import Absent, Known, Unknown
from envdoctor.model.facts import Gpu
from envdoctor.model.serde import dump_facts, load_facts

DATA = Path(__file__).resolve().parent.parent / "data" / "reports"
REPORTS = sorted(DATA.glob("*.txt"))


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_golden(path, request):
    facts = parse_report(path.read_text(encoding="utf-8"))
    document = json.loads(json.dumps(dump_facts(facts)))
    golden = path.with_suffix(".json")
    if request.config.getoption("--update-golden"):
        golden.write_text(
            json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    assert document == json.loads(golden.read_text(encoding="utf-8"))
    assert dict(load_facts(json.dumps(document), "t")) == dict(facts)


WRAPPINGS = {
    "quoted": lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
    "twice quoted": lambda text: "".join(f"> > {line}\n" for line in text.splitlines()),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "fenced": lambda text: f"```\n{text}```\n",
    "indented": lambda text: "".join(f"    {line}\n" for line in text.splitlines()),
    "coloured": lambda text: "".join(f"\x1b[32m{line}\x1b[0m\n" for line in text.splitlines()),
    "no-break spaces": lambda text: text.replace(" ", "\u00a0"),
    "after prose": lambda text: f"Hello, here is my environment, it fails.\n\n{text}\nThanks!\n",
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_wrapping_changes_nothing(path, wrapping):
    text = path.read_text(encoding="utf-8")
    plain, wrapped = parse_report(text), parse_report(WRAPPINGS[wrapping](text))
    assert values(plain) == values(wrapped)


def values(facts):
    """What is known of the environment, without how much of the text was understood."""
    return {
        name: fact.value
        for name, fact in facts
        if isinstance(fact, Known) and not name.startswith("report.")
    }


@pytest.mark.parametrize(
    "first", ["torch_collect_env", "nvidia_smi_table", "machine_commands", "docker_run"]
)
def test_mixtures_keep_what_each_says(first):
    one = (DATA / f"{first}.txt").read_text(encoding="utf-8")
    two = (DATA / "ray_mismatch.txt").read_text(encoding="utf-8")
    mixed = parse_report(f"{one}\n\n{two}")
    for name, fact in parse_report(two):
        if name.startswith("ray."):
            assert mixed.value(name) == fact.value
    for name in (
        "driver.release",
        "gpus",
        "shm.size",
        "memory.limit",
        "rlimit.nofile",
        "torch.version",
    ):
        assert mixed.value(name) == parse_report(one).value(name)


def value(text, field):
    stated = parse_report(text).value(field)
    return stated.settings() if field == "request" else stated


def version(text, name):
    try:
        return parse_report(text).version_of(name)
    except InputError:
        return None


PINNED = """
    aiohttp==3.9.5 certifi==2024.7.4 charset-normalizer==3.3.2 click==8.1.7 einops==0.8.0 filelock==3.15.4 fsspec==2024.6.1
    huggingface-hub==0.24.5 idna==3.7 Jinja2==3.1.4 MarkupSafe==2.1.5 mpmath==1.3.0 networkx==3.3 numpy==1.26.4
    nvidia-cublas-cu12==12.1.3.1 nvidia-nccl-cu12==2.20.5 packaging==24.1 pip==24.2 protobuf==5.27.3 psutil==6.0.0 PyYAML==6.0.1
    ray==2.34.0 regex==2024.7.24 requests==2.32.3 safetensors==0.4.3 sympy==1.13.1 tokenizers==0.19.1 torch==2.4.0 tqdm==4.66.5
    transformers==4.43.3 triton==3.0.0 typing_extensions==4.12.2 urllib3==2.2.2 vllm==0.5.4
"""
ROWS = [tuple(pin.split("==")) for pin in PINNED.split()]


def columns(rows, header=True):
    head = (
        "Package                  Version    Editable project location\n------------------------ ---------- -------------------------\n"
        if header
        else ""
    )
    return head + "".join(f"{name:<24} {number}\n" for name, number in rows)


def freeze(rows):
    return "".join(f"{name}=={number}\n" for name, number in rows)


@pytest.mark.parametrize(
    "text",
    [
        columns(ROWS),
        freeze(ROWS),
        "user@host:~$ pip list\n" + columns(ROWS),
        columns(ROWS) + "\n[notice] A new release of pip is available\n",
    ],
)
def test_a_whole_list_is_complete(text):
    facts = parse_report(text)
    assert facts.value("distributions.complete") is True
    assert len(facts.value("distributions")) == len(ROWS)
    assert facts.version_of("typing-extensions") == "4.12.2"
    assert isinstance(facts.distribution("flash-attn"), Absent)


def test_a_whole_list_may_lack_what_one_of_its_members_needs():
    facts = parse_report(columns([row for row in ROWS if row[0] != "tokenizers"]))
    assert facts.value("distributions.complete") is True


@pytest.mark.parametrize(
    "text",
    [
        columns(ROWS[:8]),
        # torch cannot be installed without one of them, requests not without the other
        columns([row for row in ROWS if row[0] not in ("filelock", "idna")]),
        columns([row for row in ROWS if row[0] not in ("filelock", "pip")]),
        columns(list(reversed(ROWS))),
        columns(ROWS, header=False),
        "$ pip list | grep -i -e torch\n" + columns(ROWS),
        freeze(ROWS[:15]),
        "".join(f"[pip3] {name}=={number}\n" for name, number in ROWS),
    ],
    ids=[
        "few",
        "companions missing",
        "companion and pip missing",
        "no order",
        "no header",
        "filtered",
        "short freeze",
        "excerpt",
    ],
)
def test_an_excerpt_is_not_complete(text):
    facts = parse_report(text)
    assert facts.value("distributions.complete") is False
    assert isinstance(facts.distribution("flash-attn"), Unknown)


def test_editable_and_urls():
    facts = parse_report(
        columns([("torch", "2.4.0")])
        + "verl  0.3.0  /home/u/verl\n\nvllm @ https://u:p@files.example/vllm-0.8.4+cu121-cp38-abi3-manylinux1_x86_64.whl\n-e git+https://x#egg=easyr1\n"
    )
    found = facts.value("distributions")
    assert (found["verl"].editable, found["verl"].location) == (True, "/home/u/verl")
    assert found["vllm"].version == "0.8.4+cu121"
    assert "u:p" not in found["vllm"].direct_url
    assert found["easyr1"].editable


@pytest.mark.parametrize(
    ("text", "field", "expected"),
    [
        ("Nvidia driver version: 535.129.03", "driver.release", "535.129.03"),
        ("driver 535.129.03", "driver.release", "535.129.03"),
        ("NVIDIA Driver: 590.48.01 (CUDA Version: 13.1 in nvidia-smi)", "driver.cuda_version", "13.1"),
        ("CUDA driver: 580.105.08 / CUDA 13.0, torch 2.11.0+cu130", "driver.cuda_version", "13.0"),
        ("CUDA driver: 580.105.08 / CUDA 13.0, torch 2.11.0+cu130", "torch.version", "2.11.0+cu130"),
        ("| NVIDIA-SMI 545.23.05   Driver Version: 545.84   CUDA Version: 12.3 |", "driver.release", "545.84"),
        ("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.183", "driver.nvml_release", "535.183"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure …", "driver.loaded", False),
        ("No devices were found", "gpus", ()),
        ("GPU: 8x H100", "gpus", (Gpu(name="H100"),) * 8),
        ("GPUs: NVIDIA H20 x 8", "gpus", (Gpu(name="NVIDIA H20"),) * 8),
        ("8*A100-SXM4-80GB", "gpus", (Gpu(name="A100-SXM4-80GB"),) * 8),
        ("GPU: RTX4090", "gpus", (Gpu(name="RTX 4090"),)),
        ("GPU: DGX Spark (GB10)", "gpus", (Gpu(name="NVIDIA GB10"),)),
        ("GPU: 2x RTX PRO 6000 Blackwell (sm_120)", "gpus", (Gpu(name="RTX PRO 6000 Blackwell", compute_capability="12.0"),) * 2),
        ("GPU: RTX 3090, 24 GiB", "gpus", (Gpu(name="RTX 3090", memory_total=24 << 30),)),
        ("- GPU type: NVIDIA A100\n- GPU number: 4", "gpus", (Gpu(name="NVIDIA A100"),) * 4),
        ("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n  MIG 2g.20gb     Device  0: (UUID: MIG-2)", "gpus",
         (Gpu(name="NVIDIA H100 80GB HBM3", uuid="GPU-1", mig_mode=True),)),
        ("Python 3.10", "python.version", "3.10"),
        ("OS: Ubuntu 22.04 / Python 3.10.12 / PyTorch 2.3.0 / CUDA 12.1", "python.version", "3.10.12"),
        ("OS: Ubuntu 22.04 / Python 3.10.12 / PyTorch 2.3.0 / CUDA 12.1", "os.name", "Ubuntu 22.04"),
        ("OS: Ubuntu 22.04 / Python 3.10.12 / PyTorch 2.3.0 / CUDA 12.1", "torch.version", "2.3.0"),
        ("torch: 2.6.0 (cu124)", "torch.version", "2.6.0+cu124"),
        ("torch.__version__ = '2.6.0+cu124'", "torch.version", "2.6.0+cu124"),
        ("GPU: GTX 1080Ti", "gpus", (Gpu(name="GTX 1080 Ti"),)),
        ("Hardware: DGX H100 (2 GPUs)", "gpus", (Gpu(name="H100"),) * 2),
        ("kernel module 535.54.03, NVML 535.129.03", "driver.release", "535.54.03"),
        ("kernel module 535.54.03, NVML 535.129.03", "driver.nvml_release", "535.129.03"),
        ("nvidia-driver-535 535.183.01-0ubuntu0.22.04.1", "driver.release", "535.183.01"),
        ("system glibc is 2.28", "glibc.version", "2.28"),
        ("nvcc 12.1", "toolkit.version", "12.1"),
        ("memory.max: 68719476736", "memory.limit", 64 << 30),
        ("Container memory limit: 64Gi", "memory.limit", 64 << 30),
        ("--shm-size 64m", "shm.size", 64 << 20),
        ("Ray cluster: ray 2.40.0, python 3.10.12; driver: ray 2.43.0", "ray.cluster_version", "2.40.0"),
        ("Ray cluster: ray 2.40.0, python 3.10.12; driver: ray 2.43.0", "ray.process_version", "2.43.0"),
        ("python: 3.12.3 (conda)", "python.version", "3.12.3"),
        ("- Python version: 3.10.14", "python.version", "3.10.14"),
        ("Libc version: glibc-2.28", "glibc.version", "2.28"),
        ("glibc: 2.31", "glibc.version", "2.31"),
        ("ldd (Ubuntu GLIBC 2.35-0ubuntu3.8) 2.35", "glibc.version", "2.35"),
        ("CUDA runtime version: 12.4.131", "toolkit.version", "12.4.131"),
        ("nvcc: Cuda compilation tools, release 12.8, V12.8.93", "toolkit.version", "12.8.93"),
        ("system CUDA (nvcc): 11.7", "toolkit.version", "11.7"),
        ("torch CUDA: 12.1", "torch.cuda", "12.1"),
        ("torch._C._GLIBCXX_USE_CXX11_ABI: False", "torch.cxx11abi", False),
        ("torch.cuda.get_arch_list(): ['sm_50', 'sm_80', 'sm_90']", "torch.arch_list", ("sm_50", "sm_80", "sm_90")),
        ("The current PyTorch install supports CUDA capabilities sm_37 sm_50 sm_90.", "torch.arch_list", ("sm_37", "sm_50", "sm_90")),
        ("nvidia-fabricmanager: not installed", "driver.fabric_manager_running", False),
        (
            "Unit nvidia-fabricmanager.service could not be found.",
            "driver.fabric_manager_running",
            False,
        ),
        ("nvidia-fabricmanager-550: 550.90.07", "driver.fabric_manager", "550.90.07"),
        ("ii  nvidia-fabricmanager-550  550.90.07-1  amd64", "driver.fabric_manager", "550.90.07"),
        ("ii  cuda-compat-12-4  550.54.15-1  amd64", "compat.cuda_version", "12.4"),
        ("/dev/shm: 64M", "shm.size", 64 << 20),
        ("shm             64M     0   64M   0% /dev/shm", "shm.size", 64 << 20),
        ("tmpfs  264000000  0 264000000  0% /dev/shm", "shm.size", 264000000 * 1024),
        ("MemTotal:       528214580 kB", "memory.total", 528214580 * 1024),
        ("RAM: 512 GiB", "memory.total", 512 << 30),
        ("ulimit -n: 1024", "rlimit.nofile", 1024),
        ("$ ulimit -l\nunlimited", "rlimit.memlock", -1),
        ("$ ulimit -Hn\n1048576", "rlimit.nofile_hard", 1048576),
        ("ulimit -l: 8192", "rlimit.memlock", 8192 * 1024),
        ("-n: file descriptors                1024", "rlimit.nofile", 1024),
        ("Max locked memory         65536                65536                bytes", "rlimit.memlock", 65536),
        ("working directory: /opt/venv/lib/python3.12/site-packages/vllm", "python.working_directory", "/opt/venv/lib/python3.12/site-packages/vllm"),
        ("export LD_LIBRARY_PATH=/a:/b", "variables", {"LD_LIBRARY_PATH": "/a:/b"}),
        ('export A=1; NCCL_P2P_DISABLE=1 VLLM_USE_V1="0" vllm serve x', "variables", {"NCCL_P2P_DISABLE": "1", "VLLM_USE_V1": "0"}),
        ("ENV CUDA_VERSION=12.4.1", "image.cuda_version", "12.4.1"),
        ("ENV CUDA_VERSION 12.4.1", "variables", {"CUDA_VERSION": "12.4.1"}),
        # as in a shell, the last one
        ("NCCL_DEBUG=INFO\nNCCL_DEBUG=WARN", "variables", {"NCCL_DEBUG": "WARN"}),
        ("vllm serve m --tensor-parallel-size 2 --gpu-memory-utilization=0.9 --enforce-eager", "request",
         {"model": "m", "tensor_parallel_size": "2", "gpu_memory_utilization": "0.9", "enforce_eager": "true"}),
        ("python -m sglang.launch_server --model-path m --tp 8", "request", {"model_path": "m", "tensor_parallel_size": "8"}),
        ("gpu_memory_utilization=0.95", "request", {"gpu_memory_utilization": "0.95"}),
        ("vllm V1, TP + PP", "request", {"engine": "V1"}),
        ("docker run --gpus all --ipc=host img:1", "container.ipc_host", True),
        ("docker run --gpus all img:1", "shm.size", 64 << 20),  # Docker's default
        ("docker run -m 2g img:1", "container.gpus_requested", False),
        ("image: pytorch/pytorch:2.6.0-cuda12.4-cudnn9-devel", "image.cuda_version", "12.4"),
        ("platform: GKE (Helm)", "kubernetes.pod", True),
        ("platform: WSL2", "os.wsl", True),
        ("libcuda.so.1 (libc6,x86-64) => /usr/lib/wsl/lib/libcuda.so.1", "driver.unversioned_libcuda", False),
        ("libcuda.so.1 (libc6,x86-64) => /lib/libcuda.so.1\nlibcuda.so (libc6,x86-64) => /lib/libcuda.so", "driver.unversioned_libcuda", True),
        ("OS: Windows 11\nPython platform: Windows-10-10.0.22631-SP0", "os.platform", "win32"),
        ("Python platform: macOS-14.5-arm64-arm-64bit", "os.platform", "darwin"),
    ],
)  # fmt: skip
def test_lines(text, field, expected):
    assert value(text, field) == expected


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("vllm 0.6.3", "vllm", "0.6.3"),
        ("vLLM Version: 0.6.3.post1", "vllm", "0.6.3.post1"),
        ("vLLM Version                 : 0.11.0 (git sha: 0123)", "vllm", "0.11.0"),
        ("Transformers version\n4.54.1", "transformers", "4.54.1"),
        ("| torch | 2.6.0+cu124 |", "torch", "2.6.0+cu124"),
        ("torch                  2.6.0", "torch", "2.6.0"),
        ("torch 1.12 cu113 (built against another)", "torch", "1.12+cu113"),
        ("Flash Attention: 2.7.4", "flash-attn", "2.7.4"),
        ("flash_attn: 2.7.4.post1", "flash-attn", "2.7.4.post1"),
        ("flashinfer==0.2.2", "flashinfer-python", "0.2.2"),
        ("flashinfer==0.1.6+cu121torch2.4", "flashinfer", "0.1.6+cu121torch2.4"),
        ("pytorch-triton         3.5.0+git7416ffcb", "pytorch-triton", "3.5.0+git7416ffcb"),
        ("pip install 'vllm[audio]==0.8.5' torch==2.6.0", "vllm", "0.8.5"),
        ("pip3 install torch==2.6.0 --index-url https://x.example/whl/cu126", "torch", "2.6.0+cu126"),
        ("[conda] torch                     2.7.0                    pypi_0    pypi", "torch", "2.7.0"),
        ("[conda] pytorch 2.1.0 py3.10_cuda12.1_cudnn8.9.2_0 pytorch", "torch", "2.1.0"),
        ("image: vllm/vllm-openai:v0.9.0.1", "vllm", "0.9.0.1"),
        ("image: rayproject/ray:2.43.0-py311-gpu", "ray", "2.43.0"),
        ("image: hiyouga/verl:ngc-th2.6.0-cu126-vllm0.8.4-flashinfer0.2.2-cxx11abi0", "vllm", "0.8.4"),
        ("vllm 0.6.3 requires torch==2.4.0, but you have torch 2.6.0 which is incompatible.", "torch", "2.6.0"),
        # What is asked for, wished or meant otherwise is no fact.
        ("driver 535.129.03\nplease install torch 2.6.0 instead", "torch", None),
        ("driver 535.129.03\nvllm 0.7 requires torch 2.5.1", "torch", None),
        ("driver 535.129.03\nvllm 2", "vllm", None),
        ("driver 535.129.03\nI read chapter 3.10 of the book", "chapter", None),
        ("driver 535.129.03\nNCCL version 2.21.5", "nvidia-nccl-cu12", None),
        ("image: nvcr.io/nvidia/pytorch:24.03-py3", "torch", None),
        ("image: a/vllm-openai:v0.8.5\nimage: a/vllm-openai:v0.9.0", "vllm", None),
    ],
)  # fmt: skip
def test_versions(text, name, expected):
    assert version(text, name) == expected


@pytest.mark.parametrize(
    ("text", "name", "constraint"),
    [
        ("transformers>=4.48.1", "transformers", ">=4.48.1"),
        ("OpenRLHF < 0.9.5", "openrlhf", "<0.9.5"),
        ("vllm 0.16.0+", "vllm", ">=0.16.0"),
        ("ray: 2.40.0 or later", "ray", ">=2.40.0"),
        ("torch: 2.x", "torch", "==2.*"),
    ],
)
def test_ranges_stay_ranges(text, name, constraint):
    found = parse_report(text).value("distributions")[name]
    assert (found.version, found.constraint) == (None, constraint)


def test_cuda_alone_is_ambiguous():
    facts = parse_report("CUDA 12.4\nPython 3.10")
    assert set(values(facts)) == {"python.version"}


def test_contradictions_are_noted_and_the_more_specific_wins():
    facts = parse_report(
        "driver 535.129.03\nNvidia driver version: 550.54.15\n| NVIDIA-SMI 560.35.03  Driver Version: 560.35.03  CUDA Version: 12.6 |"
    )
    assert facts.value("driver.release") == "550.54.15"  # the first of two tools
    assert "560.35.03" in facts.evidence("driver.release").detail
    assert facts.evidence("driver.release").source == "report, line 2"
    facts = parse_report("PyTorch version: 2.6.0+cu124\n[pip3] torch==2.5.1")
    assert facts.version_of("torch") == "2.6.0+cu124"
    assert "2.5.1" in facts.evidence("distributions").detail


def test_no_torch_no_gpu():
    facts = parse_report(
        "PyTorch version: N/A\nCUDA used to build PyTorch: N/A\nIs CUDA available: N/A\nGPU models and configuration: Could not collect"
    )
    assert all(
        isinstance(facts.get(name), Unknown) for name in ("torch.version", "torch.cuda", "gpus")
    )
    facts = parse_report("PyTorch version: 2.5.1+cpu\nCUDA used to build PyTorch: None")
    assert isinstance(facts.get("torch.cuda"), Absent)
    facts = parse_report(
        "Is CUDA available: False\nGPU models and configuration: Could not collect\nNvidia driver version: 535.129.03"
    )
    assert isinstance(facts.get("gpus"), Unknown)  # nvidia-smi answered for the driver


def test_variables_are_an_excerpt():
    facts = parse_report("NCCL_DEBUG=INFO")
    assert facts.variable("NCCL_DEBUG").value == "INFO"
    assert isinstance(facts.variable("NCCL_P2P_DISABLE"), Unknown)


SECRETS = """
HF_TOKEN=hf_abcdefghijklmnopqrstuv
VLLM_API_KEY=topsecretvalue
export NCCL_SECRET_THING=topsecretvalue
RAY_ADDRESS=https://user:topsecretvalue@cluster.example:8265
VLLM_CONFIG=https://x.example/?token=topsecretvalue&a=1
PIP_INDEX_URL=https://user:topsecretvalue@index.example/simple
docker run -e HF_TOKEN=topsecretvalue -e VLLM_API_KEY=topsecretvalue vllm/vllm-openai:v0.8.5 --api-key topsecretvalue --model m
vllm serve m --api-key topsecretvalue --hf-token=topsecretvalue
pkg @ https://user:topsecretvalue@files.example/pkg-1.0-py3-none-any.whl
-e git+https://topsecretvalue@git.example/x.git#egg=x
"""


def test_secrets_stay_behind():
    text = json.dumps(dump_facts(parse_report(SECRETS)))
    assert "topsecretvalue" not in text
    assert "hf_abcdef" not in text
    assert "cluster.example" in text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "Dear all, it does not work. Please help!",
        "```\n```",
        'Traceback (most recent call last):\n  File "x.py", line 1',
    ],
)
def test_nothing_recognised(text):
    with pytest.raises(InputError, match="nothing about an environment") as caught:
        parse_report(text)
    assert "nvidia-smi" in str(caught.value)


def test_too_large_says_so():
    with pytest.raises(InputError, match="lines"):
        parse_report("\n" * (MAX_LINES + 1))
    with pytest.raises(InputError, match=r"characters.*envdoctor diagnose"):
        parse_report("x" * (MAX_REPORT + 1))


def test_a_binary_is_no_report(tmp_path):
    """Programs, libraries, compiled Python: letters and digits in them name no GPU."""
    compiled = py_compile.compile(pytest.__file__, cfile=str(tmp_path / "pytest.pyc"))
    files = [sys.executable, "/bin/sh", compiled]
    for file in files:
        with open(file, "rb") as binary:
            data = binary.read(MAX_REPORT)
        # What is known of the machine stands in the middle of it, and makes it no text.
        text = f"{data.decode('utf-8', 'replace')}\nGPU: NVIDIA H100\n"[-MAX_REPORT:]
        with pytest.raises(InputError, match="binary data"):
            parse_report(text)


def test_a_hole_in_a_log_makes_no_binary():
    hole = "\0" * 4096  # its file was emptied by another process, and the writer went on
    assert parse_report(f"torch: 2.6.0\n{hole}GPU: NVIDIA H100\n").value("gpus")


def test_a_few_control_characters_make_no_binary():
    """Sparse logs begin with zero bytes, progress bars go back, colours are everywhere."""
    text = "\x00" * 8 + "\x1b[32mok\x1b[0m\x08\x08 torch: 2.6.0\nGPU: NVIDIA H100\n" * 20
    assert parse_report(text).value("gpus")


@pytest.mark.parametrize("unseen", ["\u200b", "\u061c", "\U000e0041", "\u2066", "\ufe01", "\x00"])
def test_what_nobody_sees_hides_no_secret(unseen):
    text = f"torch: 2.6.0\nHF_TO{unseen}KEN=hf_{unseen}abcdefghij{unseen}klmnop0123\n{'-' * 300}"
    facts = json.dumps(dump_facts(parse_report(text)))
    assert "abcdefghij" not in facts
    assert "klmnop" not in facts


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("# !pip install peft==0.11.1", None),
        ("  #%pip install -q peft==0.11.1", None),
        ('wanted = "peft==0.11.1" if is_small else "peft==0.17.0"', None),
        ("!pip install peft==0.11.1", "0.11.1"),
        ("# pip install peft==0.11.1", "0.11.1"),  # the prompt of root
    ],
)
def test_what_a_notebook_does_not_run_installs_nothing(line, expected):
    facts = parse_report(f"torch 2.6.0\n{line}\n")
    assert facts.version_of("peft") == expected


def test_a_release_of_cuda_that_never_was_is_another_packages():
    text = "print(torch.__version__)\nprint(torch.version.cuda)\n2.0.1+cu117\n11.7\n"
    facts = parse_report(f"I have the torch version 2.0.1+cu117\n\n{text}")
    assert facts.value("torch.cuda", "11.7").startswith("11.")


@pytest.mark.parametrize(("more", "kind"), [("", Unknown), ("pip==24.0\n", Absent)])
def test_what_pip_freeze_leaves_out_is_not_absent(more, kind):
    rows = "".join(f"package-{number}==1.{number}\n" for number in range(60))
    facts = parse_report(f"### pip freeze\n```\n{rows}torch==2.5.1\ntriton==3.1.0\n{more}```\n")
    facts = facts.updated({"distributions.complete": Known(True, facts.evidence("distributions"))})
    assert isinstance(facts.distribution("setuptools"), kind)
    assert isinstance(facts.distribution("vllm"), Absent)


def test_seconds_of_a_build_are_no_releases():
    """BuildKit shows the end of a step that failed behind the seconds alone."""
    report = (
        "#8 [4/5] RUN pip install -r requirements.txt\n"
        "#8 159.5 Successfully installed rich-14.0.0\n"
        "------\n"
        " > [4/5] RUN pip install -r requirements.txt:\n"
        "159.5     instructor 1.15.4 depends on rich<15.0.0\n"
    )
    installed = parse_report(report).value("distributions")
    assert installed["rich"].version == "14.0.0"
    assert set(installed) <= {"rich", "instructor", "pip"}


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("AMD Instinct MI250X (gfx90a:sramecc+:xnack-)", ("AMD Instinct MI250X (gfx90a)",)),
        ("Radeon RX 7900 XTX (gfx1100)", ("Radeon RX 7900 XTX (gfx1100)",)),
        ("NVIDIA A100-SXM4-80GB", None),
        ("Could not collect", None),
        ("(gfx", None),
    ],
)
def test_gpus_of_amd_by_their_name_and_architecture(value, names):
    facts = parse_report(f"PyTorch version: 2.7.0\nGPU models and configuration: {value}\n")
    assert facts.value("gpus.other") == names


def test_an_exception_is_no_distribution():
    text = "vllm 0.8.5\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    assert list(parse_report(text).value("distributions")) == ["vllm"]
