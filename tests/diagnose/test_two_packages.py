"""Exceptions between two packages: what the metadata of the one that asks say of the other.

The tracebacks are Python's own, of modules that stand where packages are installed.
"""

import subprocess
import sys

import pytest

from envdoctor.app import diagnose
from envdoctor.diagnose.two_packages import _ASIDE
from envdoctor.intake.assumptions import parse_assumptions, with_assumptions
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts

SITE = "venv/lib/python3.11/site-packages"
ASKS_MODULE = "import xgrammar\n\n\ndef start():\n    xgrammar.no_such_thing()\n"
CALLS = "from xgrammar import compile_it\n\n\ndef start():\n    compile_it(1, 2, 3)\n"
STARTS = "import vllm.engine\n\nvllm.engine.start()\n"


@pytest.fixture
def message(tmp_path):
    """What is said of a program that runs with some files, and with which versions."""

    def run(files, *assume, program=STARTS, folders=(SITE,)):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        (tmp_path / "run.py").write_text(program, encoding="utf-8")
        paths = [str(tmp_path / folder) for folder in folders]
        lines = f"import sys, runpy; sys.path[:0] = {paths!r}; runpy.run_path('run.py')"
        done = subprocess.run(
            [sys.executable, "-I", "-c", lines], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 1
        log = tmp_path / "run.log"
        log.write_text(done.stderr, encoding="utf-8")
        facts = with_assumptions(Facts(), dict(parse_assumptions(assume))) if assume else None
        traces = diagnose([str(log)], facts, load_matrix()).traces
        return " ".join(trace.finding.message for trace in traces)

    return run


def packages(caller, provider="", place=SITE):
    return {
        f"{place}/vllm/__init__.py": "",
        f"{place}/vllm/engine.py": caller,
        f"{SITE}/xgrammar/__init__.py": provider,
    }


@pytest.mark.parametrize(
    ("caller", "provider"),
    [
        (ASKS_MODULE, ""),
        ("def start():\n    from xgrammar import no_such_thing\n", ""),
        ("def start():\n    import xgrammar.no_such_thing\n", ""),
    ],
)
def test_what_the_release_that_asks_asks_for(message, caller, provider):
    said = message(packages(caller, provider), "vllm==0.8.5", "xgrammar==0.1.10")
    assert "vllm 0.8.5 asks for xgrammar==0.1.18, and xgrammar 0.1.10 is installed." in said


def test_without_a_release_what_its_releases_ask_for(message):
    said = message(packages(ASKS_MODULE), "xgrammar==0.1.10")
    assert "Which vllm is here is not known. Its releases ask for xgrammar" in said
    assert "xgrammar 0.1.10 is installed" in said


def test_sources_are_of_another_time_than_what_is_installed(message):
    root = "workspace/vllm-main"
    files = packages(ASKS_MODULE, place=root)
    said = message(files, "vllm==0.8.5", "xgrammar==0.1.18", folders=(root, SITE))
    assert "and xgrammar 0.1.18 is; but the sources in" in said
    assert "/workspace/vllm-main run" in said
    assert " asks for xgrammar==" in said.partition("they are of another time")[2]


def test_the_newest_that_a_wide_range_admitted(message):
    files = {
        f"{SITE}/trl/__init__.py": "import transformers\ntransformers.no_such_thing\n",
        f"{SITE}/transformers/__init__.py": "",
    }
    said = message(files, "trl==0.12.0", "transformers==4.46.0", program="import trl\n")
    newest = [
        str(version)
        for version, release in load_matrix().package("transformers").releases()
        if release.released <= "2024-11-04" and not version.is_prerelease
    ][-1]
    assert f"on the day of its release is {newest}." in said


def test_what_a_package_refuses_while_another_is_imported(message):
    guard = (
        "class Kernel:\n    def __setattr__(self, name, value):\n"
        "        raise AttributeError(f'{name} is not to be set')\n"
    )
    files = {
        f"{SITE}/xformers/__init__.py": "import triton\ntriton.Kernel().src = 'x'\n",
        f"{SITE}/triton/__init__.py": guard,
    }
    said = message(files, "xformers==0.0.30", "triton==3.4.0", program="import xformers\n")
    assert "xformers 0.0.30 does what triton 3.4.0 refuses (xformers/__init__.py, line 2)" in said


def test_a_class_that_its_own_package_asks_speaks_where_metadata_are_broken(message):
    own = "class Cache:\n    pass\n\n\ndef compile_it(*args):\n    return Cache().size\n"
    said = message(packages(CALLS, own), "vllm==0.8.5", "xgrammar==0.1.10")
    assert "vllm 0.8.5 asks for xgrammar==0.1.18, and xgrammar 0.1.10 is installed." in said
    said = message(packages(CALLS, own), "vllm==0.8.5", "xgrammar==0.1.18")
    assert "asks for xgrammar" not in said


@pytest.mark.parametrize(
    ("caller", "provider", "program"),
    [
        ("", "", "import xgrammar\n\nxgrammar.no_such_thing()\n"),  # a program of one's own
        ("def start():\n    None.size\n", "", STARTS),
        ("import vllm\n\n\ndef start():\n    vllm.no_such_thing()\n", "", STARTS),
        ("def start():\n    raise ValueError('module is wrong')\n", "", STARTS),
        # The folder may be of another package.
        ("def start():\n    import acme.bindings\n", "", STARTS),
        ("import xgrammar\n", "import vllm.engine\nvllm.engine.start\n", "import vllm.engine\n"),
    ],
)
def test_what_is_no_question_of_two_packages(message, caller, provider, program):
    said = message(packages(caller, provider), "vllm==0.8.5", "xgrammar==0.1.18", program=program)
    assert "asks for" not in said
    assert "another release of" not in said


@pytest.mark.parametrize(
    ("extra", "is_aside"),
    [
        *((name, True) for name in ("dev", "dev-torch", "all_dev", "test", "tests", "testing")),
        *((name, True) for name in ("docs", "docs_specific", "linting", "quality", "benchmark")),
        *((name, False) for name in ("device", "latest", "docker", "doctr", "torch", "contest")),
    ],
)
def test_which_extras_are_not_of_the_run(extra, is_aside):
    assert bool(_ASIDE.search(extra)) is is_aside


def test_a_later_release_of_the_one_that_asks_refuses_what_is_here(message):
    """Of what its own metadata admit, the next releases say what they found since."""
    own = "class Cache:\n    pass\n\n\ndef compile_it(*args):\n    return Cache().size\n"
    files = {
        f"{SITE}/unsloth/__init__.py": "from transformers import compile_it\ncompile_it(1)\n",
        f"{SITE}/transformers/__init__.py": own,
    }
    program = "import unsloth\n"
    said = message(files, "unsloth==2025.9.1", "transformers==4.56.1", program=program)
    assert "which admits transformers 4.56.1; unsloth 2025.9.6 no longer does" in said
    assert "it asks for transformers<=4.55.4." in said
    assert "no longer" not in message(
        files, "unsloth==2025.9.1", "transformers==4.55.4", program=program
    )


def test_which_folder_python_took_a_package_from(message, tmp_path):
    home = "home/.local/lib/python3.11/site-packages"
    files = {
        f"{home}/ollama/__init__.py": "",
        f"{SITE}/oterm/__init__.py": "from ollama import Parameters\n",
        f"{SITE}/ollama/__init__.py": "Parameters = 1\n",
    }
    said = message(files, program="import oterm\n", folders=(home, SITE))
    assert f"ollama was loaded from {tmp_path}/{home}, the user's own folder" in said
    files[f"{SITE}/ollama/__init__.py"] = ""
    assert "own folder" not in message(files, program="import oterm\n")


def test_the_folder_of_the_user_comes_before_those_of_the_interpreter(tmp_path):
    """Python itself: the user's folder where it is there, and the first of the others."""
    base = getattr(sys, "_base_executable", sys.executable)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    user = tmp_path / "lib" / version / "site-packages"
    user.mkdir(parents=True)
    program = (
        "import site, sys; print(*[f for f in sys.path if f.endswith('-packages')], sep='\\n')"
    )
    done = subprocess.run(
        [base, "-c", program],
        env={"PYTHONUSERBASE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    folders = done.stdout.splitlines()
    assert folders[0] == str(user)
    assert len(folders) > 1


@pytest.mark.parametrize(
    ("line", "assume", "is_said"),
    [
        ("NameError: name 'PreTrainedConfig' is not defined", "transformers==5.0.0rc1", True),
        ("NameError: name 'PreTrainedConfig' is not defined", "transformers==4.56.2", False),
        ("NameError: name 'the_plate' is not defined", "transformers==5.0.0rc1", False),
    ],
)
def test_a_line_without_its_traceback_speaks_where_metadata_are_broken(
    tmp_path, line, assume, is_said
):
    log = tmp_path / "run.log"
    log.write_text(f"starting\n{line}\n", encoding="utf-8")
    facts = with_assumptions(Facts(), dict(parse_assumptions(["unsloth==2025.9.9", assume])))
    messages = [
        trace.finding.message for trace in diagnose([str(log)], facts, load_matrix()).traces
    ]
    words = "unsloth 2025.9.9 asks for transformers<=4.56.2,>=4.51.3"
    assert any(words in message for message in messages) is is_said
