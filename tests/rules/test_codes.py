"""One code is one rule: every code has one record, and a rule emits its own code only."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Dict, Iterator, Set

import pytest
from hypothesis import HealthCheck, given, settings

from envdoctor.matrix.derive import derive_target
from envdoctor.matrix.loader import Matrix
from envdoctor.matrix.schema import default_code
from envdoctor.model.facts import Facts
from envdoctor.rules import Context, all_rules, judge
from envdoctor.rules.codes import CODES, FAMILIES, RETIRED, CodeRecord, code_records, next_free
from envdoctor.rules.registry import CHECKS, load_rules

from .test_properties import FACTS, MATRIX

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"ED\d{3}(?!\d)")


def test_each_code_in_use_has_one_record_of_its_name() -> None:
    codes = [rule.code for rule in all_rules()]
    assert len(codes) == len(set(codes))
    names = {code: record.name for code, record in code_records().items()}
    assert names == {code: name for code, name in CODES.items() if code not in RETIRED}
    assert len(set(CODES.values())) == len(CODES)
    assert set(RETIRED) <= set(CODES)
    assert {code[2] for code in CODES} == set(FAMILIES)


@pytest.mark.parametrize("record", code_records().values(), ids=lambda record: record.code)
def test_each_record_has_a_page(record: CodeRecord) -> None:
    assert re.fullmatch(r"ED[1-9]\d\d", record.code)
    assert record.summary
    assert record.page.strip()


def test_the_next_free_code_was_never_given_out() -> None:
    for digit in FAMILIES:
        code = next_free(digit)
        assert code not in CODES
        assert code[2] == digit
        assert all(f"ED{digit}{number:02}" in CODES for number in range(1, int(code[3:])))


@pytest.mark.parametrize("folder", ["envdoctor", "matrices", "docs"])
def test_no_file_names_a_code_without_a_record(folder: str) -> None:
    known = set(code_records())
    for path in (ROOT / folder).rglob("*"):
        if path.suffix in (".py", ".toml", ".md") and path.is_file():
            named = set(CODE.findall(path.read_text(encoding="utf-8")))
            assert named <= known | set(RETIRED), path


def test_each_row_has_a_code_with_a_record() -> None:
    known = set(code_records())
    assert {row.code for row in MATRIX.rows()} <= known
    assert default_code("shm", "too-small") in known


#: Makes a finding of a rule that raised: the guard in ``rules.judge`` calls it.
GUARD = {"fault_finding": "ED906"}


@pytest.mark.parametrize("module", sorted({rule.function.__module__ for rule in all_rules()}))
def test_each_code_is_named_by_one_rule_function(module: str) -> None:
    """What a function and those that it calls name is the code of its rule, and nobody else's."""
    tree = ast.parse(Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    rules = {
        rule.function.__name__: rule.code
        for rule in all_rules()
        if rule.function.__module__ == module
    }
    emitted: Set[str] = set()
    for name, code in {**rules, **GUARD}.items():
        if name in functions:
            reached = _reached(name, functions)
            emitted |= {other for other in reached if set(_codes(functions[other]))}
            assert {code for other in reached for code in _codes(functions[other])} <= {code}, name
    strays = {name for name, node in functions.items() if set(_codes(node))} - emitted
    assert strays == set(), "a function names a code and belongs to no rule"


def test_only_rules_make_findings_of_a_code() -> None:
    """Elsewhere a finding's code is that of its row, or of what a log says."""
    for path in (ROOT / "envdoctor").rglob("*.py"):
        if path.parent.name == "rules":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding":
                code = next(
                    (word.value for word in node.keywords if word.arg == "code"),
                    node.args[0] if node.args else None,
                )
                literal = str(code.value) if isinstance(code, ast.Constant) else ""
                assert not CODE.fullmatch(literal), (path, node.lineno)


def _reached(name: str, functions: Dict[str, ast.FunctionDef]) -> Set[str]:
    reached: Set[str] = set()
    waiting = [name]
    while waiting:
        function = waiting.pop()
        if function in functions and function not in reached:
            reached.add(function)
            waiting += [
                node.id for node in ast.walk(functions[function]) if isinstance(node, ast.Name)
            ]
    return reached


def _codes(function: ast.FunctionDef) -> Iterator[str]:
    for statement in function.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Constant) and CODE.fullmatch(str(node.value)):
                yield str(node.value)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(FACTS)
def test_a_rule_emits_its_own_code_only(facts: Facts) -> None:
    context = Context(facts, MATRIX, derive_target(facts, MATRIX), (facts, facts), "2026-11-22", {})
    for rule in load_rules(CHECKS):
        assert {finding.code for finding in rule.function(context)} <= {rule.code}


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(FACTS)
def test_every_finding_has_a_rule_with_a_record(facts: Facts) -> None:
    records: Dict[str, CodeRecord] = code_records()
    matrix: Matrix = MATRIX
    for finding in judge(facts, matrix):
        assert finding.code in records
        assert finding.rule == (finding.row or finding.code)
        assert not finding.row or matrix.row(finding.row) is not None


def test_every_cited_document_exists() -> None:
    """References name addresses, programs, files of this project and its own commands: the last two
    have to be there.
    """
    from envdoctor.cli.main import COMMANDS

    for record in code_records().values():
        for document, section in re.findall(
            r'\b(README|CONTRIBUTING|CHANGELOG|docs/[\w-]+\.md)\b(?:, "([^"]+)")?', record.page
        ):
            path = ROOT / (document if "." in document else f"{document}.md")
            assert path.is_file(), (record.code, document)
            heading = re.compile(rf"^#+ {re.escape(section)}$", re.MULTILINE)
            assert not section or heading.search(path.read_text(encoding="utf-8")), record.code
        for command in re.findall(r"\benvdoctor (\w+) --help", record.page):
            assert command in COMMANDS, record.code
