"""Options whose value is JSON: a secret in them leaves in no format, by no command."""

import json

import pytest

from envdoctor.intake import parse_report
from envdoctor.model.serde import dump_facts
from envdoctor.plan.frameworks import read_workload
from envdoctor.report import REPORTERS

from .test_plan import run

SECRET = "Tok3nTok3nZq7x"
OBJECTS = (
    f'{{"model": "a/b", "token": "{SECRET}"}}',
    f'{{"secret_key": "{SECRET}"}}',
    f'{{"auth": {{"bearer": "{SECRET}"}}}}',
    f'{{"headers": {{"Authorization": "Bearer {SECRET}"}}}}',
    f'{{"password": "{SECRET}", broken',
)
OPTIONS = ("--speculative-config", "--hf-overrides", "--kv-transfer-config", "--compilation-config")
COMMANDS = [
    f"vllm serve Qwen/Qwen2.5-7B-Instruct -tp 2 {option} '{value}'\n"
    for option in OPTIONS
    for value in OBJECTS
]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_read_of_a_command_has_no_secret(command, tmp_path):
    facts = parse_report(f"vllm 0.8.5\nGPU 0: NVIDIA H100\n{command}")
    assert facts.value("report.runs")
    assert SECRET not in json.dumps(dump_facts(facts))
    script = tmp_path / "run.sh"
    script.write_text(command)
    workload = read_workload([str(script)])
    assert SECRET not in repr([fact for _, fact in workload])
    assert SECRET not in repr((workload.settings(), workload.problems, workload.unread))


@pytest.mark.parametrize("format_", sorted(REPORTERS))
def test_no_format_shows_one(format_, tmp_path):
    script = tmp_path / "run.sh"
    script.write_text("".join(COMMANDS))
    for arguments in (["check"], ["plan"]):
        shown = run(*arguments, script, "--format", format_, "--verbose")
        assert SECRET not in shown.stdout + shown.stderr
