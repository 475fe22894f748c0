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


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_level_import_of_what_is_slow(path):
    """On the path of check these cost more than they give; where they are used, they are imported
    inside functions.
    """
    slow = r"(dataclasses|rich|subprocess|importlib\.metadata|packaging\.(specifiers|requirements|markers)|toml(lib|i)|requests|inspect|asyncio)"
    text = path.read_text(encoding="utf-8")
    found = re.findall(rf"^(?:import|from) {slow}\b.*$", text, re.MULTILINE)
    assert not found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_say_something(path):
    assert not re.search(r"(^|_)(utils?|helpers?|managers?|misc|common)$", path.stem)


def test_python_39_can_parse_everything():
    """3.9 is the floor, whichever Python runs the tests; ast knows its grammar."""
    import ast

    for path in SOURCES:
        ast.parse(path.read_text(encoding="utf-8"), filename=str(path), feature_version=(3, 9))


def test_generated_schemas_are_current():
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "generate_schemas"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_every_format_and_command_of_the_readme_exists():
    from envdoctor.cli.main import COMMANDS
    from envdoctor.report import REPORTERS

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(
        re.findall(
            r"envdoctor (?!is\b)([a-z]+)(?= |$)",
            "\n".join(re.findall(r"```sh\n(.*?)```", readme, re.DOTALL)),
            re.MULTILINE,
        )
    ) == set(COMMANDS)
    table = readme.split("## Reports")[1].split("\n\n")[1]
    assert re.findall(r"^\| `([a-z]+)` \|", table, re.MULTILINE) == list(REPORTERS)
