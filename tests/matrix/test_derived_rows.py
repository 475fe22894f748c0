"""Rows that follow from the tables, against what is published, on whole targets."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.matrix.bind import bind
from envdoctor.matrix.derive import derive_target
from envdoctor.matrix.derived_rows import (
    entry_demands,
    ptx_demands,
    runs_on,
    toolkit_of_ptx,
)
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.evidence import Absent, Evidence, Known
from envdoctor.model.facts import Binary, Distribution, Facts, Gpu
from envdoctor.model.version import Version

HERE = Evidence("test")
MATRIX = load_matrix()


def make_facts(packages=None, gpu=None, driver=None, architecture="x86_64", **fields):
    table = {
        name.replace("__", "."): value if isinstance(value, Absent) else Known(value, HERE)
        for name, value in fields.items()
    }
    table["distributions"] = Known(
        {name: Distribution(name, version) for name, version in (packages or {}).items()}, HERE
    )
    table["distributions.complete"] = Known(True, HERE)
    if gpu is not None:
        table["gpus"] = Known((Gpu(name=gpu),), HERE)
    if driver is not None:
        table["driver.release"] = Known(driver, HERE)
    if architecture is not None:
        table["os.architecture"] = Known(architecture, HERE)
    return Facts(table)


def violated(**given_facts):
    """The ids of the derived rows that a target violates."""
    facts = make_facts(**given_facts)
    target = derive_target(facts, MATRIX)
    rows = MATRIX.rows_about(facts.value("distributions"))
    return {row.id for row in rows if row.title and bind(row, target).outcome == "violated"}


def torch(version, gpu=None, driver=None, **more):
    return violated(packages={"torch": version}, gpu=gpu, driver=driver, **more)


@pytest.mark.parametrize(
    ("version", "driver", "expected"),
    [
        ("2.8.0+cu128", "550.54.15", False),  # minor-version compatibility
        ("2.8.0+cu128", "525.60.13", False),
        ("2.8.0+cu128", "520.61.05", True),
        ("2.8.0", "535.129.03", False),
        ("2.11.0+cu130", "570.86.15", True),
        ("2.11.0+cu130", "580.65.06", False),
        ("2.11.0+cu130", "615.10", False),
        ("2.11.0+cu130", "700.10", False),  # of a branch that no row knows yet
        ("2.11.0", "570.86.15", True),  # the default build is cu130
        ("2.11.0+cu128", "570.86.15", False),
        ("2.0.1+cu118", "470.82.01", False),
        ("2.0.1+cu118", "440.33", True),
        ("2.1.0", "470.82.01", True),
    ],
)
def test_cuda_major_against_driver(version, driver, expected):
    found = torch(version, driver=driver)
    assert any(row_id.startswith("driver-for-cuda-") for row_id in found) is expected


@pytest.mark.parametrize(
    ("package", "version", "gpu", "expected"),
    [
        ("torch", "2.11.0", "Tesla V100-SXM2-16GB", True),
        ("torch", "2.10.0", "Tesla V100-SXM2-16GB", False),
        ("torch", "2.11.0+cu126", "Tesla V100-SXM2-16GB", False),
        ("torch", "2.7.1+cu128", "Tesla V100-SXM2-16GB", True),
        ("torch", "2.8.0", "NVIDIA GeForce GTX 1080 Ti", True),
        ("torch", "2.7.1", "NVIDIA GeForce GTX 1080 Ti", False),  # 6.0 code runs on 6.1
        ("torch", "2.6.0", "NVIDIA L40S", False),  # 8.6 code runs on 8.9
        ("torch", "2.0.1", "NVIDIA H100 80GB HBM3", True),  # cu117 has no 9.0
        ("torch", "2.0.1+cu118", "NVIDIA H100 80GB HBM3", False),
        ("torch", "2.6.0", "NVIDIA GeForce RTX 5090 D", True),
        ("torch", "2.7.0", "NVIDIA GeForce RTX 5090", True),
        ("torch", "2.7.0+cu128", "NVIDIA GeForce RTX 5090", False),
        ("torch", "2.8.0", "NVIDIA GB300", False),  # 10.0 code runs on 10.3
        ("torch", "2.8.0", "NVIDIA GB10", False),  # 12.0 code runs on 12.1
        ("vllm", "0.4.0", "Tesla T4", True),
        ("vllm", "0.4.0.post1", "Tesla T4", False),
        ("vllm", "0.9.1", "NVIDIA GeForce RTX 5090", False),  # no 12.0 code, but PTX of 9.0
        ("vllm", "0.8.5", "NVIDIA GeForce RTX 5090", True),
        ("vllm", "0.20.0", "Tesla V100-SXM2-32GB", True),
        ("vllm", "0.19.1", "Tesla V100-SXM2-32GB", False),
        (
            "vllm",
            "0.9.1",
            "NVIDIA GeForce GTX 1080 Ti",
            True,
        ),  # the 5.2 entry is an artefact of the build
        ("sgl-kernel", "0.3.8", "Tesla T4", True),
        ("sgl-kernel", "0.3.3", "Tesla T4", False),
        ("sgl-kernel", "0.3.8", "NVIDIA B200", True),  # neither machine code nor PTX
        ("sgl-kernel", "0.3.9", "NVIDIA B200", False),
        ("sgl-kernel", "0.3.9", "NVIDIA GB300", True),  # 10.0a runs on 10.0 alone
        ("sgl-kernel", "0.3.9", "NVIDIA GB10", True),
        (
            "torchao",
            "0.17.0",
            "NVIDIA A100-SXM4-80GB",
            False,
        ),  # its kernels are extras for newer GPUs
    ],
)
def test_gpu_code(package, version, gpu, expected):
    capability = MATRIX.gpu(gpu, None).compute_capability
    violations = violated(packages={package: version}, gpu=gpu, driver="580.95.05")
    assert (f"code-for-{capability}:{package}" in violations) is expected


def test_without_the_package_there_is_no_verdict():
    assert violated(packages={}, gpu="Tesla V100-SXM2-16GB", driver="580.95.05") == set()


def test_builds_that_no_index_knows_have_no_code():
    gpu = "NVIDIA GeForce RTX 5090"
    for version in (
        "2.6.0a0+ecf3bae40a.nv25.1",
        "2.6.0+local",
        "2.9.0.dev20250801+cu128",
        "2.6.0+cpu",
    ):
        assert not torch(version, gpu, "580.95.05")
    conda = Distribution("torch", "2.6.0", build="py3.10_cuda12.4_cudnn9.1.0_0")
    facts = make_facts(gpu=gpu, driver="580.95.05").updated(
        {"distributions": Known({"torch": conda}, HERE)}
    )
    assert dict(derive_target(facts, MATRIX).environment("torch").attributes) == {
        "version": Version("2.6.0")
    }


@pytest.mark.parametrize(
    ("gpu", "driver", "expected"),
    [
        ("NVIDIA B200", "550.54.15", {"driver-since-10.0"}),
        ("NVIDIA B200", "570.86.15", set()),
        ("NVIDIA GeForce RTX 5090", "565.57.01", {"driver-since-12.0"}),
        ("Tesla V100-SXM2-16GB", "580.95.05", set()),
        ("Tesla V100-SXM2-16GB", "590.44.01", {"driver-until-7.0"}),
        ("Tesla T4", "615.10", set()),
        ("NVIDIA H100 80GB HBM3", "515.65.01", {"driver-since-9.0"}),
    ],
)
def test_generation_against_branch(gpu, driver, expected):
    assert violated(gpu=gpu, driver=driver) == expected


def test_generation_rows_say_how_sure_they_are():
    assert MATRIX.row("driver-since-10.0").trust == "established"
    assert MATRIX.row("driver-until-7.0").trust == "established"
    assert MATRIX.row("driver-since-9.0").trust == "reported"


def test_ptx_newer_than_the_driver_warns_of_vllm_alone():
    violations = violated(
        packages={"vllm": "0.12.0", "torch": "2.9.0"},
        gpu="NVIDIA H100 80GB HBM3",
        driver="550.54.15",
    )
    assert violations == {
        "ptx-12.9-on-9.0-some:vllm"
    }  # FlashAttention 2 and Marlin: the wheel's compiler was newer than its torch's CUDA
    row = MATRIX.row("ptx-12.9-on-9.0-some:vllm")
    assert (row.effect, row.trust, row.code) == ("degrades", "established", "ED102")
    assert "flash" in row.title
    assert (
        violated(
            packages={"vllm": "0.12.0", "torch": "2.9.0"},
            gpu="NVIDIA H100 80GB HBM3",
            driver="570.86.15",
        )
        == violations
    )
    assert not violated(
        packages={"vllm": "0.12.0", "torch": "2.9.0"},
        gpu="NVIDIA H100 80GB HBM3",
        driver="575.51.03",
    )
    assert not violated(
        packages={"vllm": "0.12.0", "torch": "2.9.0"},
        gpu="NVIDIA A100-SXM4-80GB",
        driver="550.54.15",
    )  # machine code throughout
    assert not violated(
        packages={"vllm": "0.10.2", "torch": "2.8.0"}, gpu="NVIDIA L40S", driver="550.54.15"
    )
    assert not violated(
        packages={"torch": "2.9.0"}, gpu="NVIDIA H100 80GB HBM3", driver="550.54.15"
    )
    assert not violated(
        packages={"vllm": "0.6.0", "torch": "2.4.0"},
        gpu="NVIDIA H100 80GB HBM3",
        driver="525.85.12",
    )  # 9.0+PTX for all sources


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        # What lies in another fat binary does not help: 9.0 gets the second one as PTX.
        (["sass=8.0,9.0;ptx=9.0@8.7", "sass=8.0;ptx=8.0@8.7"], {"some:9.0@12.8"}),
        (["sass=8.0,9.0;ptx=9.0@8.7"], set()),
        (["sass=8.0;ptx=8.0@8.5"], {"all:9.0@12.5"}),
        (["sass=9.0a", "sass=8.0"], set()),  # no PTX: nothing to compile
        (
            ["sass=8.0,9.0;in=_C", "sass=8.0;ptx=8.0@8.7,9.0@8.8;in=_C;kernels=marlin"],
            {"some:9.0@12.9"},
        ),  # the driver takes the highest that fits
        (["sass=9.0;in=_C", "sass=8.0;ptx=8.0@8.4", "sass=8.0;ptx=8.0@8.8"], {"some:9.0@12.9"}),
        (["sass=8.0;ptx=8.0@?"], set()),
        (["sass=8.0,9.0", "sass=8.0;ptx=9.0a@8.7"], {"some:9.0@12.8"}),
        (["sass=5.2;ptx=5.2@8.7", "sass=8.0,9.0"], {"some:9.0@12.8"}),
        (
            ["sass=5.2;ptx=5.2@8.7"],
            set(),
        ),  # without anything else that serves it, it is no package for this device
    ],
)
def test_fat_binaries_one_by_one(entries, expected):
    assert {label for label in entry_demands(tuple(entries)) if ":9.0@" in label} == expected
    assert {
        (cuda, capability, kind)
        for cuda, capability, kind, _ in ptx_demands(
            [{"entries": entries, "ptx_cuda": "12.8", "sass": ["8.0"], "ptx": ["8.0"]}]
        )
    } == {
        (label.split("@")[1], label.split(":")[1].split("@")[0], label.split(":")[0])
        for label in entry_demands(tuple(entries))
    }


@pytest.mark.parametrize(
    ("version", "toolkit"),
    [
        ("7.8", "11.8"),
        ("8.5", "12.5"),
        ("8.7", "12.8"),
        ("9.0", "13.0"),
        ("9.2", "13.2"),
        ("6.5", None),
        ("x", None),
    ],
)
def test_toolkit_of_a_ptx_version(version, toolkit):
    assert toolkit_of_ptx(version) == toolkit


def test_ptx_demands():
    assert ptx_demands([{"sass": ["8.0"], "ptx": ["8.0"], "ptx_cuda": "12.4"}])[:2] == [
        ["12.4", "10.0", "only"],
        ["12.4", "10.1", "only"],
    ]
    assert ["12.8", "9.0", "partly"] in ptx_demands(
        [{"sass": ["8.0", "9.0"], "ptx": ["8.0"], "ptx_cuda": "12.8"}]
    )
    assert (
        ptx_demands(
            [{"sass": ["8.0", "9.0", "10.0", "11.0", "12.0"], "ptx": ["12.0"], "ptx_cuda": "12.9"}]
        )
        == []
    )
    assert ptx_demands([{"sass": ["8.0"], "ptx": ["8.0"]}]) == []


@pytest.mark.parametrize(
    ("code", "capability", "runs"),
    [
        ("sass:8.6", "8.9", True),
        ("sass:8.9", "8.6", False),
        ("sass:9.0", "12.0", False),
        ("sass:10.0", "10.3", True),
        ("sass:12.0", "9.0", False),
        ("sass:9.0a", "9.0", True),
        ("sass:10.0a", "10.3", False),
        ("sass:10.0f", "10.3", True),
        ("ptx:8.0", "12.0", True),
        ("ptx:12.0", "9.0", False),
        ("ptx:9.0a", "10.0", False),
        ("ptx:9.0a", "9.0", True),
    ],
)
def test_what_runs_where(code, capability, runs):
    assert (code in runs_on(capability)) is runs


# --------------------------------------------------------------------------------------------------
# builds


def attributes(name, version, **fields):
    facts = make_facts({name: version}, **fields)
    return derive_target(facts, MATRIX).environment(name).attributes


def test_which_build_an_installed_torch_is():
    assert str(attributes("torch", "2.6.0")["cuda"]) == "12.4"
    assert attributes("torch", "2.6.0")["cxx11abi"] == "false"
    assert str(attributes("torch", "2.6.0", torch__cuda="12.6")["cuda"]) == "12.6"
    assert attributes("torch", "2.6.0+cu126")["cxx11abi"] == "true"
    assert "cuda" not in attributes("torch", "2.6.0", torch__cuda=Absent(HERE))  # a CPU build
    assert "cuda" not in attributes(
        "torch", "2.6.0", architecture="aarch64"
    )  # CPU only on the default index
    assert "code" not in attributes(
        "torch", "2.11.0", architecture=None
    )  # x86_64 and aarch64 differ
    assert (
        str(attributes("torch", "2.11.0", architecture=None)["cuda"]) == "13.0"
    )  # and agree in this
    assert "sass:11.0" in attributes("torch", "2.11.0", architecture="aarch64")["code"]
    assert "sass:7.5" in attributes("vllm", "0.33.0", architecture="x86_64")["code"]
    assert "sass:7.5" not in attributes("vllm", "0.33.0", architecture="aarch64")["code"]
    assert "sass:8.6" in attributes("torch", "2.11.0", architecture=None, gpu="NVIDIA H20")["code"]
    assert (
        "sass:8.6"
        not in attributes("torch", "2.11.0", architecture=None, gpu="NVIDIA GH200 480GB")["code"]
    )
    assert "code" not in attributes("torch", "2.11.0", architecture=None, gpu="NVIDIA X9000")


def test_a_label_of_flash_attn_tells_its_build():
    found = attributes("flash-attn", "2.8.3+cu12torch2.6cxx11abiFALSE")
    assert (found["variant"], str(found["cuda"]), str(found["torch"]), found["cxx11abi"]) == (
        "cu12",
        "12",
        "2.6",
        "true",  # whatever its label says: the torch 2.6 that compiled it is one for CUDA 12.6
    )
    assert attributes("flash-attn", "2.7.4.post1+cu12torch2.6cxx11abiFALSE")["cxx11abi"] == "false"
    assert set(attributes("flash-attn", "2.8.3")) == {"version"}


def test_what_is_linked_wins_over_what_the_index_has():
    plain = attributes("vllm", "0.19.1")
    assert str(plain["cuda"]) == "12.8"
    linked = attributes(
        "vllm", "0.19.1", binaries=(Binary("vllm/_C.abi3.so", "vllm", ("libcudart.so.13",)),)
    )
    assert str(linked["cuda"]) == "13"
    assert "code" not in linked
    same = attributes(
        "vllm", "0.19.1", binaries=(Binary("vllm/_C.abi3.so", "vllm", ("libcudart.so.12",)),)
    )
    assert same["code"] == plain["code"]


# --------------------------------------------------------------------------------------------------
# properties

DRIVERS = [
    "450.80.02",
    "470.82.01",
    "515.65.01",
    "525.60.13",
    "535.129.03",
    "550.54.15",
    "565.57.01",
    "570.86.15",
    "575.57.08",
    "580.65.06",
    "580.95.05",
]
TORCH = [str(version) for version in MATRIX.package("torch").versions]
VLLM = [str(version) for version in MATRIX.package("vllm").versions]
GPUS = [model.name for model in MATRIX.gpus]


@settings(max_examples=150)
@given(
    st.sampled_from(TORCH),
    st.sampled_from(VLLM),
    st.sampled_from(GPUS),
    st.sampled_from(DRIVERS),
    st.sampled_from(DRIVERS),
)
def test_a_newer_driver_never_breaks_what_works(torch_version, vllm_version, gpu, one, other):
    """Within the branches whose PTX is known, up to R580, the last that knows every GPU here."""
    older, newer = sorted((one, other), key=Version)
    packages = {"torch": torch_version, "vllm": vllm_version}
    assert violated(packages=packages, gpu=gpu, driver=newer) <= violated(
        packages=packages, gpu=gpu, driver=older
    )


@settings(max_examples=100)
@given(
    st.sampled_from(TORCH), st.sampled_from(["590.44.01", "595.45.04", "610.10", "615.10", "700.1"])
)
def test_nor_after_that_for_a_gpu_that_is_still_supported(torch_version, driver):
    assert torch(torch_version, "NVIDIA H100 80GB HBM3", driver) <= torch(
        torch_version, "NVIDIA H100 80GB HBM3", "580.95.05"
    )


# the assembler of triton


@pytest.mark.parametrize(
    ("triton", "gpu", "lacks"),
    [
        # as the ptxas of each wheel says itself
        ("3.2.0", "NVIDIA GeForce RTX 5090", True),
        ("3.4.0", "NVIDIA GeForce RTX 5090", False),
        ("3.5.1", "NVIDIA GB10", True),
        ("3.6.0", "NVIDIA GB10", False),
        ("3.2.0", "NVIDIA H100 80GB HBM3", False),
    ],
)
def test_the_assembler_of_triton(triton, gpu, lacks):
    rows = violated(packages={"triton": triton}, gpu=gpu, variables={})
    assert any(row.startswith("ptxas-without-") for row in rows) is lacks


def test_another_assembler_was_not_looked_at():
    rows = violated(
        packages={"triton": "3.2.0"},
        gpu="NVIDIA GeForce RTX 5090",
        variables={"TRITON_PTXAS_PATH": "/usr/local/cuda/bin/ptxas"},
    )
    assert not any(row.startswith("ptxas-without-") for row in rows)


# builds beside torch's


@pytest.mark.parametrize(
    ("packages", "expected"),
    [
        ({"vllm": "0.20.0", "torch": "2.11.0+cu129"}, ""),  # somebody wrote of these releases
        ({"vllm": "0.12.0", "torch": "2.9.0+cu130"}, "cuda-12-beside-another:vllm"),
        ({"vllm": "0.12.0", "torch": "2.9.0"}, ""),
        # torch 2.6.0 of the default index has the old ABI, that for CUDA 12.6 the new one
        ({"vllm": "0.8.5", "torch": "2.6.0+cu126"}, "cxx11abi-false-beside-true:vllm"),
        ({"vllm": "0.8.5", "torch": "2.6.0"}, ""),
        ({"torchao": "0.16.0", "torch": "2.9.1+cu130"}, "cuda-12-beside-another:torchao"),
    ],
)
def test_builds_beside_torch(packages, expected):
    rows = [row for row in violated(packages=packages) if "-beside-" in row]
    assert rows == ([expected] if expected else [])


def test_without_torch_nothing_is_built_beside_it():
    assert not [row for row in violated(packages={"vllm": "0.20.0"}) if "-beside-" in row]


@pytest.mark.parametrize(
    ("package", "beside_torch", "on_the_driver"),
    [
        # Their import goes on where the library does not load: tried with xformers 0.0.22.post7 and
        # 0.0.27.post2 and torchao 0.8.0 beside torch 2.15.0.
        ("torchao", "note", "note"),
        ("xformers", "degrades", "degrades"),
        ("vllm", "degrades", "blocks"),
    ],
)
def test_what_works_without_its_library_is_not_stopped(package, beside_torch, on_the_driver):
    assert MATRIX.row(f"cuda-12-beside-another:{package}").effect == beside_torch
    assert MATRIX.row(f"driver-for-cuda-12:{package}").effect == on_the_driver


def test_ptx_that_a_driver_does_not_take_means_what_no_code_means():
    row = MATRIX.row("ptx-12.1-on-9.0-all:xformers")
    assert (row.effect, MATRIX.code_demands["xformers"].effect) == ("degrades", "degrades")
    stack = {"xformers": "0.0.27.post2", "torch": "2.4.0"}
    gpu = "NVIDIA H100 80GB HBM3"
    assert row.id in violated(packages=stack, gpu=gpu, driver="525.85.12")
    assert row.id not in violated(packages=stack, gpu=gpu, driver="530.30.02")
