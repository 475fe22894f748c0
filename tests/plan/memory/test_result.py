"""What is sure of a plan, and what is not."""

from __future__ import annotations

from envdoctor.app import plan
from envdoctor.sources import Sources, gather

from .conftest import RUNS

MACHINE = ["memory=500GB", "gpu=A100-SXM4-80GB:8", "deepspeed==0.13.2"]


def host_finding(tmp_path, matrix, option=""):
    empty = tmp_path / "facts.json"
    empty.write_text('{"schema_version": 1, "facts": {}}')
    (facts,) = gather(Sources(facts=[str(empty)], assume=MACHINE))
    script = tmp_path / "run.sh"
    text = (RUNS / "openrlhf_187.sh").read_text()
    script.write_text(text.replace(" --pretrain ", f" {option} --pretrain ", 1))
    result, _ = plan([str(script)], facts, matrix, framework="openrlhf==0.1.10")
    return next(finding for finding in result.findings if finding.code == "ED601")


def test_a_setting_that_nobody_knows_may_make_it_smaller(tmp_path, matrix):
    assert host_finding(tmp_path, matrix).severity == "error"
    doubted = host_finding(tmp_path, matrix, "--our_own_sharding 4")
    assert doubted.severity == "warning"
    assert "It may take less by settings that are not known here: --our_own_sharding." in (
        doubted.message
    )
