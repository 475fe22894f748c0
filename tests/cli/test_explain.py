"""``envdoctor explain``: every name that it takes, as text and as JSON held to its schema."""

import json
import re

from ..schemas import unproduced
from .conftest import ROOT

LOCK = ("lock", "vllm==0.8.5", "--assume", "gpu=H100", "nvidia-driver=550.54.14", "--no-close")


def test_explain_code_and_row(envdoctor):
    text = envdoctor("explain", "ed101").stdout.decode()
    assert text.startswith("ED101 ")
    assert text.count("How to fix") == 1
    text = envdoctor("explain", "ed108").stdout.decode()
    assert text.count("The host's GPUs are not visible here") == 1


def test_explain_lists_the_codes_and_what_is_free(envdoctor):
    from envdoctor.rules.codes import CODES, next_free

    text = envdoctor("explain", "codes").stdout.decode()
    assert all(f"\n  {code}: " in text for code in CODES)
    assert f"(next free: {next_free('1')})" in text


def test_explanations_of_the_documents(envdoctor):
    asked = re.findall(
        r"^envdoctor explain (\S+)(?: +#.*)?$",
        (ROOT / "docs" / "check.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert len(asked) >= 2
    for what in asked:
        done = envdoctor("explain", what)
        assert (done.returncode, done.stderr) == (0, b""), what


def test_every_rule_and_a_row_of_each_code_can_be_explained(capsys, monkeypatch):
    from envdoctor.cli.main import run
    from envdoctor.matrix import loader
    from envdoctor.rules import all_rules

    matrix = loader.load_matrix()
    monkeypatch.setattr(loader, "load_matrix", lambda _extra: matrix)
    rows = {row.code: row.id for row in matrix.rows()}
    for what in {*(rule.code for rule in all_rules()), *rows, *rows.values()}:
        code = run(["explain", what])
        assert (code, capsys.readouterr().err) == (0, ""), what


def test_json_has_all_of_the_published_schema_and_no_more(envdoctor, tmp_path):
    locked = envdoctor(*LOCK, "--python-version", "3.12", "-o", str(tmp_path / "lock"))
    assert locked.returncode == 0, locked.stderr
    queries = [
        ("codes",),
        ("ED101",),
        ("cublas-12.1-sigfpe-h20",),
        ("bus-error",),
        ("torch", "--lock", str(tmp_path / "lock")),
    ]
    answers = [
        json.loads(envdoctor("explain", *words, "--format", "json").stdout) for words in queries
    ]
    assert [answer["kind"] for answer in answers] == ["codes", "code", "row", "signature", "pin"]
    assert unproduced("explain", answers) == set()
    assert "cublas-12.1-sigfpe-h20" in answers[2]["row"]["id"]


def test_rows_and_texts_under_a_code_are_named(envdoctor):
    rows = json.loads(envdoctor("explain", "ED190", "--format", "json").stdout)
    assert rows["rows"]
    for name in (
        rows["rows"][0],
        json.loads(envdoctor("explain", "ED195", "--format", "json").stdout)["signatures"][0],
    ):
        assert envdoctor("explain", name).returncode == 0
