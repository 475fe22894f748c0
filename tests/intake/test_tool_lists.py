"""What tools list as JSON, in trees and in columns; pip itself is the oracle."""

import json
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from envdoctor.intake import parse_report
from envdoctor.model.versions import canonicalize_name

INSTALLED = {canonicalize_name(one.metadata["Name"]): one.version for one in distributions()}


def pip(*arguments):
    """Return what pip prints of this environment."""
    command = [sys.executable, "-m", "pip", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def versions(text):
    """Return what a text says is installed."""
    listed = parse_report(text).value("distributions") or {}
    return {name: one.version for name, one in listed.items()}


@pytest.mark.parametrize(
    "arguments", [("list", "--format", "json"), ("inspect",), ("list",), ("freeze", "--all")]
)
def test_what_pip_lists_is_what_is_installed(arguments):
    listed = versions(f"I have this environment:\n\n{pip(*arguments)}\nIt fails.")
    assert listed
    assert {name: INSTALLED[name] for name in listed if listed[name]} == {
        name: version for name, version in listed.items() if version
    }
    if arguments[0] != "freeze":  # which leaves out what is editable
        assert len(listed) == len(INSTALLED)


def test_what_pip_inspects_tells_the_interpreter():
    facts = parse_report(pip("inspect"))
    assert facts.value("python.version") == sys.version.split()[0]
    assert facts.value("os.platform") == sys.platform
    assert facts.value("distributions.complete")


def test_what_pip_carries_itself_is_not_installed():
    assert not set(versions(pip("debug"))) - {"pip"}


def test_a_list_that_was_cut_is_none():
    text = json.dumps([{"name": "numpy", "version": "1.26.4"}])[:-5]
    assert versions(f"torch 2.5.1\n{text}").keys() <= {"torch", "numpy"}


HEALTH = Path(__file__).parents[1] / "data" / "health"
#: Whole environments, as uv closed them.
WHOLE = [
    path.read_text("utf-8")
    for path in sorted(HEALTH.glob("*.txt"))
    if path.stem in ("torch-2.5.1", "vllm-0.11.0", "sglang-0.5.12", "trl-latest")
]


def is_whole(rows):
    return parse_report("\n".join(rows)).value("distributions.complete", False)


@pytest.mark.parametrize("listed", WHOLE)
def test_a_list_of_which_rows_were_left_out_is_not_whole(listed):
    rows = [row for row in listed.split("\n") if "==" in row]
    third = len(rows) // 3
    assert is_whole(rows) == (len(rows) >= 30)
    for mark in ("[...]", "...", "…", "# ... 20 more", "(省略)", "<snip>"):
        assert not is_whole([*rows[:third], mark, *rows[third + 3 :]])
        assert not is_whole([mark, *rows[3:]])
    assert not is_whole(rows[:third])
    assert not is_whole([row for row in rows if not "g" <= row[0].lower() <= "p"])
    assert not is_whole([row for row in rows if row[0].lower() >= "p"])


def test_the_list_of_conda_has_builds_and_channels():
    entry = {"name": "pytorch", "version": "2.5.1", "channel": "conda-forge"}
    build = {"build_string": "cuda126_py311_200", "base_url": "https://conda.anaconda.org/x"}
    facts = parse_report(json.dumps([{**build, **entry}, {**entry, "name": "numpy"}], indent=2))
    assert facts.version_of("torch") == "2.5.1"
    assert facts.value("torch.cuda") == "12.6"
    assert facts.value("python.version") == "3.11"


# poetry 2.5.1, run on a lock of three packages of which one is not installed
POETRY = """$ poetry show
packaging   26.4   Core utilities for Python packages
safetensors 0.8.0  
peft    (!) 0.17.0 Parameter-Efficient Fine-Tuning (PEFT)
"""  # noqa: W291
ONE = """ name         : peft
 version      : 0.17.0
 description  : Parameter-Efficient Fine-Tuning (PEFT)
"""


def test_what_poetry_shows():
    facts = parse_report(POETRY)
    assert versions(POETRY) == {"packaging": "26.4", "safetensors": "0.8.0"}
    assert facts.value("distributions.absent") == ("peft",)
    assert versions(ONE) == {"peft": "0.17.0"}


# uv 0.13.9 pip tree
TREE = """accelerate v1.15.0
├── huggingface-hub v2.4.0
│   └── tqdm v4.70.1
└── torch v2.15.0 (*)
backports-zstd v1.8.0
"""


def test_the_roots_of_a_tree_are_installed():
    assert versions(TREE)["backports-zstd"] == "1.8.0"
    assert len(versions(TREE)) == 5


COLUMNS = """Package   Version  Build              Size      Kind   Source
numpy     1.26.4   py311h64a7726_0    6.2 MiB   conda  https://conda.anaconda.org/conda-forge/
pytorch   2.5.1    cuda126_py311_200  30 MiB    conda  https://conda.anaconda.org/conda-forge/
vllm      0.8.5                       300 MiB   pypi   vllm-0.8.5-cp38-abi3-manylinux1_x86_64.whl
"""
MAMBA = """List of packages in environment: "/opt/conda"

  Name     Version  Build              Channel
──────────────────────────────────────────────────
  numpy    1.26.4   py311h64a7726_0    conda-forge
  pytorch  2.5.1    cuda126_py311_200  conda-forge
"""


@pytest.mark.parametrize("text", [COLUMNS, MAMBA])
def test_builds_in_columns(text):
    facts = parse_report(text)
    assert facts.version_of("torch") == "2.5.1"
    assert facts.version_of("numpy") == "1.26.4"
    assert facts.value("torch.cuda") == "12.6"
    assert facts.value("python.environment") == "conda"


INFO = """          conda version : 24.9.2
         python version : 3.12.7.final.0
       virtual packages : __archspec=1=zen3
                          __cuda=12.4=0
                          __glibc=2.35=0
                          __linux=5.15.0=0
               platform : linux-aarch64
"""


def test_what_conda_says_of_the_machine():
    facts = parse_report(INFO)
    fields = ("driver.cuda_version", "glibc.version", "os.kernel", "os.architecture")
    assert [facts.value(field) for field in fields] == ["12.4", "2.35", "5.15.0", "aarch64"]
    assert facts.value("os.name") is None
    assert facts.value("report.unread") == ()


def test_a_name_above_its_version():
    assert versions("autoawq\nVersion: 0.2.5\n\ntorch\nVersion: 2.6.0+cu124\n") == {
        "autoawq": "0.2.5",
        "torch": "2.6.0+cu124",
    }


def test_a_program_says_its_version():
    assert versions("ray, version 2.60.0") == {"ray": "2.60.0"}
    assert versions("4.55.4 transformers pytorch 2.6.0") == {
        "torch": "2.6.0",
        "transformers": "4.55.4",
    }
