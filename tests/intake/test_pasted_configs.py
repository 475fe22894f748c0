"""Configurations in a report: where they begin and end, and what they are called."""

import pytest

from envdoctor.intake.pasted_configs import pasted_configs

YAML = "model_name_or_path: a/b\nfinetuning_type: full\n\nlist:\n  - path: c\n    type: d"
JSON = '{\n  "zero_optimization": {"stage": 2}\n}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"```yaml\n{YAML}\n```", {"report.yaml": YAML}),
        (f"```\n{JSON}\n```", {"report.json": JSON}),
        (f"My `ds.json`:\n\n```\n{JSON}\n```", {"ds.json": JSON}),
        (f"a/b.yml\n~~~\n{YAML}\n~~~\n", {"a/b.yml": YAML}),
        (f"a.yaml or b.yaml\n```\n{YAML}\n```", {"report.yaml": YAML}),
        (f"a.json\n```\n{YAML}\n```", {"report.yaml": YAML}),
        (f"Hello\n\n{YAML}\n\nIt fails.\n", {"report.yaml": YAML}),
        (f"```\n{YAML}", {"report.yaml": YAML}),  # a fence that nobody closed
        (f"```\n%%writefile x/y.yaml\n{YAML}\n```", {"x/y.yaml": YAML}),
        (f"```sh\ncat > y.yaml <<'EOF'\n{YAML}\nEOF\nls\n```", {"y.yaml": YAML}),
        (f"```\n{YAML}\n```\n```\n{YAML}\n```", {"report.yaml": YAML, "report.2.yaml": YAML}),
        ("```\nname: a\nversion: 1\n```", {}),
        ("The model_name_or_path: it is wrong", {}),
        ("", {}),
    ],
)
def test_configurations_of_a_report(text, expected):
    assert pasted_configs(text) == expected


def test_a_token_in_a_configuration_is_hidden():
    token = "hf_abcdefghijklmnopqrstuvwxyz0123456789"
    (text,) = pasted_configs(f"```\n{YAML}\nhub_token: {token}\n```").values()
    assert "hub_token" in text
    assert token not in text
