"""ED314: what the writer saw cure it; ED312: what the metadata of both releases say."""

from __future__ import annotations

import pytest

from envdoctor.model.finding import Finding

from .conftest import Judge, by_code, codes, facts_of


def cured(judged: Judge, change: str, *packages: str) -> Finding:
    facts = facts_of(list(packages), complete=False, report_cures={change: "3: that cured it"})
    return by_code(judged(facts), "ED314")


@pytest.mark.parametrize(
    ("change", "component", "kind", "words", "command"),
    [
        ("NCCL_P2P_DISABLE=1", "NCCL_P2P_DISABLE", "misconfigured",
         "with NCCL_P2P_DISABLE=1, which switches off peer-to-peer copies", "export"),
        ("--enforce-eager", "enforce-eager", "misconfigured", "switches off CUDA graphs", ""),
        ("CUDA_LAUNCH_BLOCKING=1", "CUDA_LAUNCH_BLOCKING", "misconfigured",
         "changes only the timing", "export"),
        ("VLLM_USE_V1=1", "VLLM_USE_V1", "misconfigured", "works with VLLM_USE_V1=1.", "export"),
        ("use_cache=False", "use_cache", "misconfigured", "works with use_cache=False.", ""),
        ("unset NCCL_GRAPH_FILE", "NCCL_GRAPH_FILE", "misconfigured",
         "works without NCCL_GRAPH_FILE", "unset NCCL_GRAPH_FILE"),
        ("unset --enforce-eager", "enforce-eager", "misconfigured", "without --enforce-eager", ""),
        ("uninstall xformers", "xformers", "conflict", "once xformers is uninstalled",
         "pip uninstall --yes xformers"),
        ("numpy<2", "numpy", "too-new", "works with numpy<2", "numpy<2"),
        ("peft>=0.13", "peft", "too-old", "works with peft>=0.13", "peft>=0.13"),
    ],
)  # fmt: skip
def test_a_cure_is_a_warning_with_the_same_to_do(
    judged: Judge, change: str, component: str, kind: str, words: str, command: str
) -> None:
    finding = cured(judged, change)
    assert (finding.component, finding.kind) == (component, kind)
    assert (finding.severity, finding.trust) == ("warning", "reported")
    assert words in finding.message
    commands = " ".join(map(str, finding.remedies[0].commands))
    assert command in commands
    assert bool(command) == bool(commands)
    assert finding.evidence[0].source == "report, line 3"


def test_what_is_done_already_is_no_finding(judged: Judge) -> None:
    facts = facts_of(["numpy 1.26.4"], complete=False, report_cures={"numpy<2": "1: x"})
    assert "ED314" not in codes(judged(facts))
    facts = facts_of(["numpy 1.26.4"], report_cures={"uninstall xformers": "1: x"})
    assert "ED314" not in codes(judged(facts))
    assert cured(judged, "numpy<2", "numpy 2.1.0").severity == "warning"


@pytest.mark.parametrize("change", ["NCCL_DEBUG=INFO", "--verbose", "VLLM_LOGGING_LEVEL=DEBUG"])
def test_what_only_prints_more_cures_nothing(judged: Judge, change: str) -> None:
    facts = facts_of([], complete=False, report_cures={change: "1: x"})
    assert "ED314" not in codes(judged(facts))


def test_metadata_of_both_releases_stand_beside_a_comparison(judged: Judge) -> None:
    works = {"transformers": "4.44.2"}
    facts = facts_of(
        ["transformers 4.45.0", "tokenizers 0.19.1"], complete=False, report_works_with=works
    )
    message = by_code(judged(facts), "ED312").message
    assert "asks for tokenizers<0.21,>=0.20 (4.44.2: <0.20,>=0.19; 0.19.1 is here)" in message
    alike = facts_of(["peft 0.18.0"], complete=False, report_works_with={"peft": "<0.18"})
    assert "metadata" not in by_code(judged(alike), "ED312").message


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"torch_cuda": "11.1"}, "too-old"),
        ({"report_cuda": "12.8"}, "too-new"),
        ({"toolkit_version": "12.5.1"}, None),
        ({"torch_cuda": "11.1", "report_cuda": "12.4"}, None),  # which one counts, nobody says
        ({}, None),
    ],
)
def test_a_stated_range_of_the_machine_against_all_that_is_here(
    judged: Judge, fields: dict[str, str], kind: str
) -> None:
    takes = {"bitsandbytes CUDA": ">=11.7,<=12.5"}
    facts = facts_of(["bitsandbytes 0.44.1"], complete=False, report_takes=takes, **fields)
    findings = judged(facts)
    if kind is None:
        assert "ED315" not in codes(findings)
        return
    finding = by_code(findings, "ED315")
    assert (finding.component, finding.kind, finding.severity) == ("cuda", kind, "warning")
    assert "takes CUDA>=11.7,<=12.5" in finding.message


@pytest.mark.parametrize(
    ("specifier", "release", "is_taken"),
    [
        (">=525.60.13", "525.60.13", True),  # a patch release is compared with the whole
        (">=525.60.13", "525.60.11", False),
        (">=525", "525.60.13", True),
        ("<=550.54", "550.54.15", True),
        ("<=550.54", "560.35.3", False),
    ],
)
def test_a_range_with_a_patch_release_is_met_by_it(
    judged: Judge, specifier: str, release: str, is_taken: bool
) -> None:
    takes = {"vllm driver": specifier}
    facts = facts_of(["vllm 0.6.3"], complete=False, report_takes=takes, driver_release=release)
    assert ("ED315" not in codes(judged(facts))) is is_taken
