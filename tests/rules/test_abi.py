"""ED4xx: what files prove, what labels say, what releases are built for; and silence where nothing
is known.
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import pytest

from envdoctor.matrix.loader import load_matrix
from envdoctor.model.calls import InstallerCall, OwnCall
from envdoctor.model.facts import Binary, Distribution
from envdoctor.model.finding import Finding

from .conftest import Judge, by_code, codes, distribution, errors, facts_of

SITE = "/venv/lib/python3.11/site-packages/"
_SET_DEVICE = "_ZN3c104cuda9SetDeviceEa"


def extension(path: str, name: str, **values: object) -> Binary:
    values.setdefault("needed", ("libtorch_cpu.so", "libc10.so", "libcudart.so.12"))
    return Binary(SITE + path, name, **values)  # type: ignore[arg-type]


def _four(found: object) -> list:
    return [
        code
        for code in codes(found)
        if code in ("ED401", "ED402", "ED403", "ED404", "ED405", "ED406", "ED407")
    ]  # type: ignore[arg-type]


# ED401


@pytest.mark.parametrize(
    ("line", "torch"),
    [
        ("flash-attn 2.8.3+cu12torch2.7", "2.10.0"),
        ("flash-attn 2.8.3+cu12torch2.7cxx11abiTRUE", "2.8.0+cu128"),
        ("flash-attn 2.8.3+cu130torch2.9", "2.10.0+cu130"),
        ("natten 0.17.1+torch240cu124", "2.5.1+cu124"),
        ("torch-scatter 2.1.2+pt24cu121", "2.5.1+cu121"),
    ],
)
def test_a_label_for_another_torch(judged: Judge, line: str, torch: str) -> None:
    finding = by_code(judged(facts_of([line, f"torch {torch}"])), "ED401")
    assert (finding.component, finding.kind, finding.severity) == (
        line.split()[0],
        "abi-mismatch",
        "error",
    )
    assert torch in finding.message
    assert finding.remedies


def test_a_label_that_is_no_proof_is_advice(judged: Judge) -> None:
    """vLLM's own image of 0.6.6 has this pair."""
    pair = ["flashinfer 0.1.6+cu121torch2.4", "torch 2.5.1+cu124"]
    finding = by_code(judged(facts_of(pair)), "ED401")
    assert (finding.severity, finding.remedies) == ("advice", ())


@pytest.mark.parametrize(
    ("line", "torch"),
    [
        ("flash-attn 2.8.3+cu12torch2.7", "2.7.1+cu126"),
        ("natten 0.17.1+torch240cu124", "2.4.1+cu124"),
        ("torch-scatter 2.1.2+pt210cu126", "2.10.0+cu126"),
        ("flash-attn 2.8.3", "2.8.0"),
        ("torchaudio 2.11.0", "2.14.0"),
        ("xformers 0.0.35", "2.11.0+cu128"),
    ],
)
def test_a_label_or_release_that_fits(judged: Judge, line: str, torch: str) -> None:
    assert not _four(judged(facts_of([line, f"torch {torch}"])))


@pytest.mark.parametrize(
    ("line", "torch", "built"),
    [
        ("vllm 0.6.3", "2.6.0+cu126", "2.4"),
        ("xformers 0.0.30", "2.8.0", "2.7"),
        ("torchvision 0.28.0+cu129", "2.14.0+cu130", "2.13"),
        ("sglang-kernel 0.4.4+cu130", "2.12.1+cu130", "2.11"),
    ],
)
def test_a_release_for_another_torch(judged: Judge, line: str, torch: str, built: str) -> None:
    finding = by_code(judged(facts_of([line, f"torch {torch}"])), "ED401")
    assert (finding.component, finding.kind, finding.severity) == (
        line.split()[0],
        "abi-mismatch",
        "error",
    )
    assert f"torch {built}," in finding.message


@pytest.mark.parametrize(
    ("package", "torch", "pins"),
    [
        (
            distribution("vllm 0.8.5", "torch==2.6.0"),
            "2.7.0",
            ("vllm==0.8.5", "torch==2.6.0"),
        ),  # its metadata's pin
        (
            "sglang-kernel 0.4.4+cu130",
            "2.12.1+cu130",
            ("sglang-kernel==0.4.4", "torch==2.11.*"),
        ),  # what its wheels are built for
        (
            "natten 0.17.1+torch240cu124",
            "2.5.1+cu124",
            ("natten==0.17.1", "torch==2.4.*"),
        ),  # what its label says
    ],
)
def test_the_remedy_names_the_torch_that_fits(
    judged: Judge, package: object, torch: str, pins: Tuple[str, ...]
) -> None:
    finding = by_code(judged(facts_of([package, f"torch {torch}"])), "ED401")
    assert [remedy.commands for remedy in finding.remedies] == [
        (InstallerCall("install", pins),),
        (OwnCall("fix"),),
    ]


def test_the_remedy_leaves_to_fix_what_names_no_torch(judged: Judge) -> None:
    broken = extension("natten/_C.so", "natten", undefined=(_SET_DEVICE,))
    finding = by_code(judged(facts_of(["natten 99.0", "torch 2.7.0"], binaries=(broken,))), "ED405")
    assert [remedy.commands for remedy in finding.remedies] == [(OwnCall("fix"),)]


@pytest.mark.parametrize(
    "torch", ["2.6.0a0+ecf3bae40a.nv25.01", "2.7.0.dev20250301+cu128", "2.8.0a0+gitabc"]
)
def test_a_torch_that_no_index_knows_is_no_error(judged: Judge, torch: str) -> None:
    findings = judged(
        facts_of(
            [
                "vllm 0.6.3",
                "xformers 0.0.30",
                "flash-attn 2.4.2",
                "torchvision 0.20.0a0",
                f"torch {torch}",
            ]
        )
    )
    assert not _four(findings)


def test_a_source_build_of_the_user_is_no_error(judged: Judge) -> None:
    vllm = distribution("vllm 0.6.3", editable=True, direct_url="file:///src/vllm")
    assert "ED401" not in codes(judged(facts_of([vllm, "torch 2.6.0"])))


def test_between_two_pins_of_different_torch_nothing_is_said(judged: Judge) -> None:
    # sglang pins sgl-kernel 0.0.9.post2 with torch 2.5.1 and with 2.6.0.
    assert "ED401" not in codes(judged(facts_of(["sgl-kernel 0.0.9.post2", "torch 2.7.0"])))


def test_a_release_without_a_wheel_for_this_torch_is_a_warning(judged: Judge) -> None:
    finding = by_code(judged(facts_of(["flash-attn 2.6.3", "torch 2.5.1"])), "ED401")
    assert (finding.severity, finding.kind) == ("warning", "abi-mismatch")
    assert "source" in finding.message


def test_files_that_fit_outweigh_label_and_release(judged: Judge) -> None:
    fits = extension(
        "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so", "flash-attn", cxx11abi=True
    )
    findings = judged(
        facts_of(["flash-attn 2.6.3", "torch 2.5.1"], binaries=(fits,), torch_version="2.5.1")
    )
    assert not _four(findings)
    labelled = by_code(
        judged(facts_of(["flash-attn 2.8.3+cu12torch2.7", "torch 2.8.0"], binaries=(fits,))),
        "ED401",
    )
    assert labelled.severity == "warning"


def test_a_cpu_torch_under_a_cuda_extension(judged: Judge) -> None:
    broken = extension("vllm/_C.abi3.so", "vllm", missing=("libc10_cuda.so", "libcudart.so.12"))
    finding = by_code(
        judged(
            facts_of(
                ["vllm 0.10.2", "torch 2.8.0+cpu"],
                binaries=(broken,),
                torch_cuda=None,
                torch_version="2.8.0+cpu",
            )
        ),
        "ED401",
    )
    assert "libc10_cuda.so" in finding.message
    assert finding.severity == "error"


# ED402


def test_another_string_abi_by_symbols(judged: Judge) -> None:
    symbol = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
    broken = extension("flash_attn_2_cuda.so", "flash-attn", cxx11abi=False, undefined=(symbol,))
    findings = judged(
        facts_of(["flash-attn 2.7.4", "torch 2.8.0"], binaries=(broken,), torch_cxx11abi=True)
    )
    finding = by_code(findings, "ED402")
    assert (finding.component, finding.kind, finding.severity) == (
        "flash-attn",
        "abi-mismatch",
        "error",
    )
    assert symbol in finding.message
    assert "ED405" not in codes(findings)


@pytest.mark.parametrize(
    ("line", "abi", "fires"),
    [
        ("flash-attn 2.7.4.post1+cu12torch2.6cxx11abiTRUE", False, True),
        ("flash-attn 2.7.4.post1+cu12torch2.6cxx11abiFALSE", True, True),
        ("flash-attn 2.7.4.post1+cu12torch2.6cxx11abiFALSE", False, False),
        (
            "flash-attn 2.8.3+cu12torch2.7cxx11abiFALSE",
            True,
            False,
        ),  # the label of 2.8 does not tell
    ],
)
def test_another_string_abi_by_label(judged: Judge, line: str, abi: bool, fires: bool) -> None:
    torch = "torch 2.7.1" if "torch2.7" in line else "torch 2.6.0"
    assert ("ED402" in codes(judged(facts_of([line, torch], torch_cxx11abi=abi)))) is fires


# ED405


def test_a_package_that_works_without_its_extension_is_a_warning(judged: Judge) -> None:
    """torchao guards the load: `import torchao` works beside a torch of the other ABI."""
    broken = extension("torchao/_C.abi3.so", "torchao", cxx11abi=False, undefined=(_SET_DEVICE,))
    facts = facts_of(["torchao 0.9.0", "torch 2.9.1"], binaries=(broken,), torch_cxx11abi=True)
    assert by_code(judged(facts), "ED402").severity == "warning"


def test_undefined_symbols_prove_it(judged: Judge) -> None:
    broken = extension(
        "sgl_kernel/common_ops.abi3.so", "sgl-kernel", cxx11abi=True, undefined=(_SET_DEVICE,)
    )
    finding = by_code(
        judged(
            facts_of(["sgl-kernel 0.9.9", "torch 2.8.0"], binaries=(broken,), torch_cxx11abi=True)
        ),
        "ED405",
    )
    assert finding.severity == "error"
    assert _SET_DEVICE in finding.message
    assert finding.evidence[0].source.endswith("common_ops.abi3.so")


def test_one_plugin_of_many_is_a_warning(judged: Judge) -> None:
    files = (
        extension("vllm/_C.abi3.so", "vllm"),
        extension("vllm/_flashmla_C.abi3.so", "vllm", undefined=(_SET_DEVICE,)),
    )
    assert (
        by_code(judged(facts_of(["vllm 0.10.2", "torch 2.8.0"], binaries=files)), "ED405").severity
        == "warning"
    )


def test_a_known_torch_makes_it_a_mismatch_of_releases(judged: Judge) -> None:
    broken = extension("xformers/_C.so", "xformers", undefined=(_SET_DEVICE,))
    findings = judged(
        facts_of(
            [distribution("xformers 0.0.30", "torch==2.7.0"), "torch 2.8.0"], binaries=(broken,)
        )
    )
    assert _SET_DEVICE in by_code(findings, "ED401").message
    assert "ED405" not in codes(findings)


# ED403


def test_a_glibc_that_is_too_old(judged: Judge) -> None:
    files = (extension("flash_attn_2_cuda.so", "flash-attn", glibc="2.32"),)
    finding = by_code(
        judged(facts_of(["flash-attn 2.8.2", "torch 2.8.0"], binaries=files, glibc_version="2.31")),
        "ED403",
    )
    assert (finding.component, finding.kind, finding.severity) == ("glibc", "too-old", "error")
    assert "2.31" in finding.message
    assert "2.32" in finding.message
    assert "ED403" not in codes(
        judged(facts_of(["flash-attn 2.8.2", "torch 2.8.0"], binaries=files, glibc_version="2.32"))
    )
    assert "ED403" not in codes(
        judged(facts_of(["flash-attn 2.8.2", "torch 2.8.0"], binaries=files))
    )


def test_one_bundled_file_that_asks_for_more_is_a_warning(judged: Judge) -> None:
    files = (
        extension("vllm/_C.abi3.so", "vllm", glibc="2.14"),
        extension("vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so", "vllm", glibc="2.32"),
    )
    finding = by_code(
        judged(facts_of(["vllm 0.10.2", "torch 2.8.0"], binaries=files, glibc_version="2.28")),
        "ED403",
    )
    assert finding.severity == "warning"


def test_a_release_whose_wheel_asks_for_more(judged: Judge) -> None:
    # vllm 0.5.2's extension asks for GLIBC_2.32, as its wheel says.
    findings = judged(facts_of(["vllm 0.5.2"], glibc_version="2.31", os_architecture="x86_64"))
    assert by_code(findings, "ED403").component == "glibc"
    assert "ED403" not in codes(
        judged(facts_of(["vllm 0.5.2"], glibc_version="2.35", os_architecture="x86_64"))
    )


def test_a_libstdcxx_that_is_too_old(judged: Judge) -> None:
    files = (extension("vllm/_C.abi3.so", "vllm", glibcxx="3.4.32"),)
    finding = by_code(
        judged(facts_of(["vllm 0.10.2", "torch 2.8.0"], binaries=files, glibcxx_version="3.4.30")),
        "ED403",
    )
    assert finding.component == "libstdc++"
    assert "ED403" not in codes(
        judged(facts_of(["vllm 0.10.2", "torch 2.8.0"], binaries=files, glibcxx_version="3.4.32"))
    )


# ED404


def test_a_cuda_library_of_another_major(judged: Judge) -> None:
    files = (extension("vllm/_C.abi3.so", "vllm", missing=("libcudart.so.12", "libsox.so")),)
    findings = judged(
        facts_of(
            ["vllm 0.99", "torch 2.11.0+cu130"],
            binaries=files,
            torch_cuda="13.0",
            torch_version="2.11.0+cu130",
        )
    )
    finding = by_code(findings, "ED404")
    assert (finding.component, finding.kind, finding.severity) == (
        "vllm",
        "cuda-major-mismatch",
        "error",
    )


def test_a_cuda_library_of_torch_itself_that_is_missing(judged: Judge) -> None:
    files = (
        Binary(
            SITE + "torch/lib/libtorch_cuda.so",
            "torch",
            needed=("libcudnn.so.9",),
            missing=("libcudnn.so.9",),
        ),
    )
    finding = by_code(judged(facts_of(["torch 2.8.0"], binaries=files)), "ED404")
    assert (finding.component, finding.kind, finding.severity) == ("libcudnn", "missing", "error")


def test_other_missing_libraries_are_not_judged(judged: Judge) -> None:
    files = (
        extension("torchaudio/lib/libtorchaudio_sox.so", "torchaudio", missing=("libsox.so",)),
    )
    assert not _four(judged(facts_of(["torchaudio 2.8.0", "torch 2.8.0"], binaries=files)))


def test_a_release_linked_to_another_runtime(judged: Judge) -> None:
    packages = ["torchaudio 2.9.0", "torch 2.9.0"]
    facts = facts_of(packages, torch_cuda="13.0", os_architecture="x86_64")
    bare = load_matrix().without_written_rows()
    finding = by_code(judged(facts, matrix=bare), "ED407")
    assert (finding.component, finding.kind, finding.severity) == (
        "torchaudio",
        "cuda-major-mismatch",
        "warning",
    )


# ED406


def test_files_of_another_python(judged: Judge) -> None:
    files = (extension("flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so", "flash-attn"),)
    finding = by_code(
        judged(
            facts_of(
                ["flash-attn 2.8.3", "torch 2.8.0"],
                binaries=files,
                python_abi="cp311",
                python_version="3.11.7",
            )
        ),
        "ED406",
    )
    assert finding.severity == "error"
    assert "3.10" in finding.message
    assert "ED406" not in codes(
        judged(facts_of(["flash-attn 2.8.3", "torch 2.8.0"], binaries=files, python_abi="cp310"))
    )
    mixed = (*files, extension("other.abi3.so", "flash-attn"))
    assert "ED406" not in codes(
        judged(facts_of(["flash-attn 2.8.3", "torch 2.8.0"], binaries=mixed, python_abi="cp311"))
    )


# Silence


def test_nothing_known_nothing_said(judged: Judge) -> None:
    assert not _four(judged(facts_of()))
    assert not _four(
        judged(facts_of(["vllm 0.6.3", "flash-attn 2.8.3+cu12torch2.7"], complete=False))
    )
    assert not _four(judged(facts_of(["torch 2.8.0", "vllm unknown", "flash-attn"])))


def test_a_healthy_stack_has_no_error(judged: Judge) -> None:
    packages = [
        "torch 2.8.0",
        "vllm 0.10.2",
        "xformers 0.0.32.post1",
        "flash-attn 2.8.3",
        "torchvision 0.23.0",
        "torchaudio 2.8.0",
    ]
    files = tuple(
        extension(f"{name}/_C.so", name, glibc="2.14", glibcxx="3.4.21", cxx11abi=True)
        for name in ("vllm", "xformers", "torchvision")
    )
    findings = judged(
        facts_of(
            packages,
            binaries=files,
            glibc_version="2.35",
            glibcxx_version="3.4.30",
            torch_cxx11abi=True,
            torch_cuda="12.8",
        )
    )
    assert not errors(findings)
    assert not _four(findings)


def test_a_wheel_made_for_a_nightly_of_this_torch(judged: Judge) -> None:
    # 2.5.7 was built for 2.3.0.dev20240207, 2.5.8 for 2.3.0 (publish.yml at their tags)
    here: Dict[str, Any] = {"os_architecture": "x86_64", "python_version": "3.10.12"}

    def found(flash: str, torch: str) -> List[Finding]:
        facts = facts_of([Distribution("flash-attn", flash), f"torch {torch}"], **here)
        return [entry for entry in judged(facts) if entry.code == "ED401"]

    for flash in ("2.5.7", "2.5.7+cu122torch2.3cxx11abifalse"):
        (finding,) = found(flash, "2.3.0+cu121")
        assert (finding.component, finding.severity) == ("flash-attn", "warning")
        assert "nightly" in finding.message
    assert not found("2.5.8", "2.3.0+cu121")
    assert not found("2.5.7", "2.2.0+cu121")


def test_a_package_for_cuda_beside_a_torch_without(judged: Judge) -> None:
    finding = by_code(judged(facts_of(["torch 2.9.0+cpu", "torchvision 0.24.0"])), "ED408")
    assert (finding.component, finding.severity) == ("torchvision", "warning")
    for fitting in (
        facts_of(["torch 2.9.0+cpu", "torchvision 0.24.0+cpu"]),
        facts_of(["torch 2.9.0", "torchvision 0.24.0"]),
        facts_of(["torch 2.9.0+cpu", "torchvision 0.24.0"], os_architecture="aarch64"),
        facts_of(["torch 2.9.0+cpu", "torchvision 0.24.0"], os_platform="win32"),
    ):
        assert "ED408" not in codes(judged(fitting))


def test_a_torchvision_for_the_cpu_beside_a_torch_for_cuda(judged: Judge) -> None:
    cuda = {"torch_cuda": "12.1"}
    finding = by_code(
        judged(facts_of(["torch 2.4.0+cu121", "torchvision 0.19.0+cpu"], **cuda)), "ED408"
    )
    assert (finding.component, finding.severity) == ("torchvision", "warning")
    for fitting in (["torchvision 0.19.0+cu121"], ["torchvision 0.19.0"], ["torchaudio 2.4.0+cpu"]):
        assert "ED408" not in codes(judged(facts_of(["torch 2.4.0+cu121", *fitting], **cuda)))


# ED409


@pytest.mark.parametrize(
    ("lines", "severity"),
    [
        (("torchtext 0.18.0", "torch 2.8.0"), "error"),
        (("torchtext 0.18.0", "torch 2.3.1"), None),
        (("torchtext 0.18.0", "torch 2.8.0a0+gitabc"), None),  # built here: so may the other be
        (("torchtext 0.18.0+cpu", "torch 2.8.0"), None),
    ],
)
def test_a_wheel_that_needs_symbols_of_another_torch(
    judged: Judge, lines: Tuple[str, ...], severity: Any
) -> None:
    findings = judged(facts_of(list(lines)))
    said = [finding for finding in findings if finding.code == "ED409"]
    assert [finding.severity for finding in said] == ([severity] if severity else [])


def test_files_that_were_read_are_the_better_witness(judged: Judge) -> None:
    binary = extension("torchtext/lib/libtorchtext.so", "torchtext", undefined=())
    findings = judged(facts_of(["torchtext 0.18.0", "torch 2.8.0"], binaries=(binary,)))
    assert "ED409" not in [finding.code for finding in findings]


@pytest.mark.parametrize(("torch", "severity"), [("2.12.0", "advice"), ("2.8.0", "error")])
def test_a_wheel_that_finds_its_symbols_is_not_said_to_fail(
    judged: Judge, torch: str, severity: str
) -> None:
    """xformers 0.0.34 was measured: its symbols are in torch 2.12, not in 2.8."""
    found = judged(facts_of([f"torch {torch}", "xformers 0.0.34"]))
    assert [entry.severity for entry in found if entry.code == "ED401"] == [severity]


def test_wheels_of_the_old_abi_beside_nvidia_s_torch(judged):
    """vllm 0.8.5 is built against torch 2.6.0 of the index, with the old C++ ABI."""
    facts = facts_of(["torch 2.6.0a0+ecf3bae40a.nv25.01", "vllm 0.8.5"], complete=False)
    (finding,) = [entry for entry in judged(facts) if entry.code == "ED410"]
    assert (finding.component, finding.kind, finding.verdict) == (
        "vllm",
        "abi-mismatch",
        "violated",
    )
    new = facts_of(["torch 2.7.0a0+7c8ec84dab.nv25.03", "vllm 0.9.2"], complete=False)
    assert "ED410" not in codes(judged(new))


def test_flash_attn_beside_a_torch_for_the_cpu(judged):
    facts = facts_of(["torch 2.5.1+cpu", "flash-attn 2.7.2.post1"], complete=False)
    assert by_code(judged(facts), "ED408").component == "flash-attn"
    with_cuda = facts_of(["torch 2.5.1+cu124", "flash-attn 2.7.2.post1"], complete=False)
    assert "ED408" not in codes(judged(with_cuda))
