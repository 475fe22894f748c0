"""The import contracts, and what they cannot see."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "envdoctor").rglob("*.py"))


@pytest.mark.skipif(sys.version_info < (3, 10), reason="import-linter needs Python 3.10")
def test_import_contracts(prerequisite):
    beside = Path(sys.executable).parent / "lint-imports"
    command = str(beside) if beside.exists() else shutil.which("lint-imports")
    prerequisite(command, "import-linter")
    done = subprocess.run(
        [command, "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_module_level_import_of_what_is_slow():
    """On the path of check these cost more than they give; where they are used, they are imported
    inside functions.
    """
    slow = r"(dataclasses|rich|subprocess|importlib\.metadata|packaging\.(specifiers|requirements|markers)|toml(lib|i)|requests|inspect|asyncio)"
    imports = re.compile(rf"^(?:import|from) {slow}\b.*$", re.MULTILINE)
    matches = {
        str(path.relative_to(ROOT)): [match.group() for match in imports.finditer(text)]
        for path in SOURCES
        for text in [path.read_text(encoding="utf-8")]
    }
    assert len(matches) > 400
    assert {path: lines for path, lines in matches.items() if lines} == {}


def test_names_say_something():
    empty = re.compile(r"(^|_)(utils?|helpers?|managers?|misc|common)$")
    assert [str(path) for path in SOURCES if empty.search(path.stem)] == []


def test_python_39_can_parse_everything():
    """3.9 is the floor, whichever Python runs the tests; ast knows its grammar."""
    import ast

    for path in SOURCES:
        ast.parse(path.read_text(encoding="utf-8"), filename=str(path), feature_version=(3, 9))


def test_every_format_and_command_of_the_documents_exists():
    from envdoctor.cli.main import COMMANDS
    from envdoctor.report import REPORTERS

    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts = [path.read_text(encoding="utf-8") for path in documents]
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", "\n".join(texts), re.DOTALL))
    commands = re.findall(r"envdoctor[ -](?!is\b)([a-z]+)(?= |$)", blocks, re.MULTILINE)
    assert set(commands) == set(COMMANDS)
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    table = page.split("## Formats")[1].split("\n\n")[1]
    assert re.findall(r"^\| `([a-z]+)` \|", table, re.MULTILINE) == list(REPORTERS)


def test_links_of_the_documents_lead_somewhere():
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_readme_fits_a_few_screens():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 200
