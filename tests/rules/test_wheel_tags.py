"""ED310: a wheel file that is named, against the Python, the machine and the glibc."""

from __future__ import annotations

from typing import Any, Dict

import pytest
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

from envdoctor.intake.package_lists import wheel_file
from envdoctor.model.facts import Distribution
from envdoctor.rules import wheel_tags

from .conftest import Judge, by_code, codes, facts_of

HERE: Dict[str, Any] = {
    "python_version": "3.12.3",
    "glibc_version": "2.34",
    "os_architecture": "x86_64",
    "os_platform": "linux",
}


def named(file: str, location: str = "") -> Distribution:
    """A wheel as a text names it; with a location it is installed."""
    wheel = wheel_file(file)
    assert wheel is not None
    return Distribution(wheel[0], wheel[1], location, tags=wheel[2])


@pytest.mark.parametrize(
    ("file", "component", "kind"),
    [
        ("x_y-0.19+cu130-cp312-cp312-manylinux_2_35_x86_64.whl", "glibc", "too-old"),
        ("x_y-1.0-cp310-cp310-linux_x86_64.whl", "python", "too-new"),
        ("x_y-1.0-cp313-cp313-linux_x86_64.whl", "python", "too-old"),
        ("x_y-1.0-cp312-cp312-manylinux2014_aarch64.whl", "x-y", "unsupported"),
    ],
)
def test_what_pip_refuses(judged: Judge, file: str, component: str, kind: str) -> None:
    finding = by_code(judged(facts_of([named(file)], complete=False, **HERE)), "ED310")
    assert (finding.component, finding.kind, finding.severity) == (component, kind, "warning")
    assert "x-y" in finding.message


FITTING = [
    "x_y-1.0-cp312-cp312-manylinux_2_34_x86_64.whl",
    "x_y-1.0-cp38-abi3-manylinux1_x86_64.whl",
    "x_y-1.0-py3-none-any.whl",
    "x_y-1.0-py2.py3-none-any.whl",
    "x_y-1.0-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "x_y-1.0-cp312-cp312-linux_x86_64.whl",
]


@pytest.mark.parametrize("file", FITTING)
def test_what_pip_takes(judged: Judge, file: str) -> None:
    assert "ED310" not in codes(judged(facts_of([named(file)], complete=False, **HERE)))
    # packaging, which pip asks, agrees
    platforms = [f"manylinux_2_{minor}_x86_64" for minor in range(34, 4, -1)]
    platforms += ["manylinux2014_x86_64", "manylinux1_x86_64", "linux_x86_64"]
    supported = {
        *cpython_tags((3, 12), platforms=platforms),
        *compatible_tags((3, 12), "cp312", platforms),
        Tag("py2", "none", "any"),
    }
    assert supported & parse_wheel_filename(file)[3]


def test_silent_without_the_fact_and_for_what_is_installed(judged: Judge) -> None:
    wheel = "x_y-1.0-cp310-cp310-manylinux_2_35_x86_64.whl"
    assert "ED310" not in codes(judged(facts_of([named(wheel)], complete=False)))
    there = named(wheel, "/site-packages/x_y-1.0.dist-info")
    assert "ED310" not in codes(judged(facts_of([there], complete=False, **HERE)))
    windows = {**HERE, "os_platform": "win32"}
    assert "ED310" not in codes(judged(facts_of([named(wheel)], complete=False, **windows)))


def test_one_of_several_files_fits(judged: Judge) -> None:
    both = named("x_y-1.0-cp310-cp310-linux_x86_64.whl")._replace(
        tags=("cp310-cp310-linux_x86_64", "cp312-cp312-linux_x86_64")
    )
    assert "ED310" not in codes(judged(facts_of([both], complete=False, **HERE)))
    assert wheel_tags.RULES_HERE[0].code == "ED310"


WINDOWS = {"os_platform": "win32", "os_architecture": "x86_64"}
MAC = {"os_platform": "darwin", "os_architecture": "arm64"}
ARM = {"os_platform": "linux", "os_architecture": "aarch64"}
OLD = {"os_platform": "linux", "os_architecture": "x86_64", "glibc_version": "2.27"}


def said(*entries: Distribution, **fields: Any) -> Any:
    """Facts of a report that only speaks of these."""
    names = tuple(sorted(entry.name for entry in entries))
    return facts_of(list(entries), complete=False, distributions_said=names, **fields)


@pytest.mark.parametrize(
    ("name", "version", "machine", "words"),
    [
        ("triton", "3.0.0", WINDOWS, "triton 3.0.0 has no wheel for Windows on the index."),
        ("triton", None, WINDOWS, "No release of triton has a wheel for Windows on the index."),
        ("vllm", "0.6.3", MAC, "vllm 0.6.3 has no wheel for macOS on the index. pip builds it"),
        ("vllm", "0.6.3", ARM, "vllm 0.6.3 has no wheel for Linux on aarch64 on the index."),
        ("torch", "2.7.1", OLD, "torch 2.7.1 has no wheel for Linux with glibc 2.27 on the index."),
    ],
)
def test_what_has_no_wheel_for_a_platform(
    judged: Judge, name: str, version: str, machine: Dict[str, Any], words: str
) -> None:
    finding = by_code(judged(said(Distribution(name, version), **machine)), "ED311")
    assert (finding.component, finding.severity) == (name, "warning")
    assert finding.message.startswith(words)


@pytest.mark.parametrize(
    ("name", "version", "machine"),
    [
        ("triton", "3.0.0", {"os_platform": "linux", "os_architecture": "x86_64"}),
        ("torch", "2.5.1", WINDOWS),
        ("torch", "2.5.1", MAC),
        ("torch", None, ARM),
        ("torch", "2.6.0", OLD),  # tagged for glibc 2.5, and asks for no more than 2.17
        ("torch", "2.7.1", {**OLD, "glibc_version": "2.28"}),
        ("transformers", "4.50.0", WINDOWS),  # of any platform
        ("flash-attn", "2.7.4.post1", WINDOWS),  # no wheel for anything
        ("triton", "99.0", WINDOWS),
        ("vllm", "0.6.3+cu118", WINDOWS),  # of another index
    ],
)
def test_what_has_one_or_is_not_known(
    judged: Judge, name: str, version: str, machine: Dict[str, Any]
) -> None:
    assert "ED311" not in codes(judged(said(Distribution(name, version), **machine)))


def test_what_was_seen_installed_got_there_somehow(judged: Judge) -> None:
    listed = facts_of([Distribution("triton", "3.0.0")], complete=False, **WINDOWS)
    assert "ED311" not in codes(judged(listed))


def test_the_remedies_of_a_platform_without_wheels(judged: Judge) -> None:
    """Another distribution, an older release, or another system; a release exists on the index."""
    triton = by_code(judged(said(Distribution("triton", "3.0.0"), **WINDOWS)), "ED311")
    assert [remedy.text for remedy in triton.remedies] == [
        "Install triton-windows, which others build for Windows.",
        "Use WSL 2, where the wheels for Linux work.",
    ]


def test_what_every_release_requires_has_to_be_there_for_the_platform(judged: Judge) -> None:
    named = {"distributions_absent": ("liger-kernel",), "distributions_said": ("liger-kernel",)}
    macos = {"os_platform": "darwin", **named}
    finding = by_code(judged(facts_of(**macos)), "ED311")
    assert finding.component == "triton"
    assert "liger-kernel requires triton in every release" in finding.message

    assert "ED311" not in codes(judged(facts_of(**{**macos, "os_platform": "linux"})))
    transformers = ("transformers",)
    others = {"distributions_absent": transformers, "distributions_said": transformers}
    assert "ED311" not in codes(judged(facts_of(**{**macos, **others})))


def test_what_a_list_has_as_not_installed_nobody_misses(judged: Judge) -> None:
    """ "DeepSpeed version: not installed", as transformers-cli env prints it."""
    listed = facts_of(os_platform="darwin", distributions_absent=("liger-kernel",))
    assert "ED311" not in codes(judged(listed))


def test_what_is_built_everywhere_lacks_no_wheel(judged: Judge) -> None:
    """openrlhf requires deepspeed, whose releases are archives save a few for Windows."""
    named = {"distributions_absent": ("openrlhf",), "distributions_said": ("openrlhf",)}
    facts = facts_of(glibc_version="2.35", **named)
    assert [entry for entry in judged(facts) if "deepspeed" in entry.packages] == []
