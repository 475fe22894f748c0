"""Wheels of release pages: the workflow's steps and setup.py themselves are run, to hold what is
read of them against what bash, awk and Python make of them.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.version import parse
from surface_scan.fetched_wheels import fetched_statements
from wheel_scan.release_pages import (
    Torch,
    UnreadText,
    fetched_wheel,
    page_builds,
    torch_builds,
    wheels_of,
)

from envdoctor import app
from envdoctor.intake import parse_report
from envdoctor.matrix.bind import bind
from envdoctor.matrix.derive import derive_target
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Distribution, Facts

STEPS = r"""
          echo "MATRIX_CUDA_VERSION=$(echo ${{ matrix.cuda-version }} | awk -F \. {'print $1 $2'})" >> $GITHUB_ENV
          echo "MATRIX_TORCH_VERSION=$(echo ${{ matrix.torch-version }} | awk -F \. {'print $1 "." $2'})" >> $GITHUB_ENV
          echo "WHEEL_CUDA_VERSION=$(echo ${{ matrix.cuda-version }} | awk -F \. {'print $1'})" >> $GITHUB_ENV
"""
TABLES = r"""
          export TORCH_CUDA_VERSION=$(python -c "from os import environ as env; \
            minv = {'2.5': 118, '2.6': 118}[env['MATRIX_TORCH_VERSION']]; \
            maxv = {'2.5': 124, '2.6': 126}[env['MATRIX_TORCH_VERSION']]; \
            print(PRINTED)" \
          )
"""
NAMED = "          tmpname=cu${WHEEL}torch${MATRIX_TORCH_VERSION}cxx11abi${{ matrix.cxx11_abi }}\n"
#: How the workflow chooses torch's CUDA: to v2.6.3, and from v2.7.0 on.
CHOICES = (
    "max(min(int(env['MATRIX_CUDA_VERSION']), maxv), minv)",
    "minv if int(env['MATRIX_CUDA_VERSION']) < 120 else maxv",
)


def workflow(printed=CHOICES[1], wheel="WHEEL_CUDA_VERSION", image="ubuntu-22.04"):
    """A workflow as flash-attn has it."""
    script = STEPS + TABLES.replace("PRINTED", printed) + NAMED.replace("WHEEL", wheel, 1)
    return f"""
jobs:
  build_wheels:
    strategy:
      matrix:
          os: [{image}]
          python-version: ['3.9', '3.10']
          torch-version: ['2.5.1', '2.6.0']
          cuda-version: ['11.8.0', '12.9.1']
          cxx11_abi: ['FALSE', 'TRUE']
          exclude:
            - torch-version: '2.5.1'
              python-version: '3.10'
    steps:
      - name: Build
        run: |
{script}
"""


@pytest.mark.parametrize("printed", CHOICES)
@pytest.mark.parametrize("wheel", ["WHEEL_CUDA_VERSION", "MATRIX_CUDA_VERSION"])
def test_labels_and_torch_are_what_the_steps_themselves_make(printed, wheel, tmp_path):
    wheels = list(wheels_of(workflow(printed, wheel)))
    assert len(wheels) == 2 * 2 * (2 + 2) - 2 * 2
    for one in wheels[::3]:
        label, cuda = _run_by_bash(printed, wheel, one, tmp_path)
        assert (one.label, one.torch_cuda) == (label, cuda)


def _run_by_bash(printed, wheel, one, folder):
    """What bash says of the combination of which a wheel is."""
    cuda = "11.8.0" if "cu11" in one.label else "12.9.1"
    values = {
        "cuda-version": cuda,
        "torch-version": one.torch,
        "cxx11_abi": one.label.rpartition("cxx11abi")[2],
    }
    first, second = (
        re.sub(r"\$\{\{ matrix\.([\w-]+) \}\}", lambda match: values[match[1]], text)
        for text in (STEPS, TABLES.replace("PRINTED", printed) + NAMED.replace("WHEEL", wheel, 1))
    )
    made = folder / "env"
    made.write_text("")
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    if not (tools / "python").exists():
        (tools / "python").symlink_to(sys.executable)
    path = f"export PATH={tools}:$PATH GITHUB_ENV={made}\n"
    script = f'{path}{first}\nset -a; . {made}\n{second}\necho "$tmpname $TORCH_CUDA_VERSION"'
    done = subprocess.run(["bash", "-ec", script], capture_output=True, text=True, check=True)
    return tuple(done.stdout.split())


def test_a_workflow_in_another_form_is_not_read():
    with pytest.raises(UnreadText):
        list(wheels_of("jobs: {build: {steps: [{run: make}]}}"))


HEAD = """
PACKAGE_NAME = "flash_attn"
BASE_WHEEL_URL = "https://example.org/releases/download/{tag_name}/{wheel_name}"
def get_wheel_url():
    torch_version_raw = parse(torch.__version__)
    torch_cuda_version = parse(torch.version.cuda)
"""
TAIL = """
    python_version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform_name = get_platform()
    flash_version = get_package_version()
    torch_version = f"{torch_version_raw.major}.{torch_version_raw.minor}"
    cxx11_abi = str(torch._C._GLIBCXX_USE_CXX11_ABI).upper()
    wheel_filename = f"{PACKAGE_NAME}-{flash_version}+cu{cuda_version}torch{torch_version}cxx11abi{cxx11_abi}-{python_version}-{python_version}-{platform_name}.whl"
    wheel_url = BASE_WHEEL_URL.format(tag_name=f"v{flash_version}", wheel_name=wheel_filename)
    return wheel_url, wheel_filename
"""
BOTH = '    cuda_version = f"{torch_cuda_version.major}{torch_cuda_version.minor}"\n'
MAJOR = '    cuda_version = f"{torch_cuda_version.major}"\n'
ONE_OF_TWO = (
    '    torch_cuda_version = parse("11.8") if torch_cuda_version.major == 11 else parse("12.3")\n'
)
#: By release: how setup.py chooses the wheel's CUDA.
SETUPS = {
    "2.3.0": """
    if torch_version_raw.major == 2 and torch_version_raw.minor == 1:
        torch_cuda_version = parse("12.2")
"""
    + BOTH,
    "2.5.8": ONE_OF_TWO + BOTH,
    "2.8.3": ONE_OF_TWO + MAJOR,
    "2.8.3.post1": """
    if torch_cuda_version.major == 11:
        torch_cuda_version = parse("11.8")
    elif torch_cuda_version.major == 12:
        torch_cuda_version = parse("12.3")
    else:
        torch_cuda_version = parse("13.0")
"""
    + MAJOR,
}


@pytest.mark.parametrize("release", SETUPS)
@pytest.mark.parametrize("torch", ["2.1.2", "2.6.0+cu124", "2.9.1"])
@pytest.mark.parametrize("cuda", ["11.8", "12.6", "13.0"])
@pytest.mark.parametrize("abi", [False, True])
def test_the_wheel_is_the_one_that_setup_itself_asks_for(release, torch, cuda, abi):
    setup = HEAD + SETUPS[release] + TAIL
    names = {
        "torch": SimpleNamespace(
            __version__=torch,
            version=SimpleNamespace(cuda=cuda),
            _C=SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=abi),
        ),
        "sys": sys,
        "parse": parse,
        "get_platform": lambda: "linux_x86_64",
        "get_package_version": lambda: release,
    }
    exec(compile(setup, "setup.py", "exec"), names)
    asked = names["get_wheel_url"]()[1]
    assert f"+{fetched_wheel(setup, release, torch, cuda, abi)}-" in asked


@pytest.mark.parametrize(
    "body", ["    return os.system('true')\n", "    pass\n", "    url = 1\n", ""]
)
def test_a_setup_in_another_form_is_not_read(body):
    setup = f"def get_wheel_url():\n{body}" if body else "VERSION = '1'\n"
    with pytest.raises(UnreadText):
        fetched_wheel(setup, "1.0", "2.6.0", "12.4", True)


def test_a_label_counts_no_more_than_the_torch_that_a_wheel_is_built_with():
    torch = [
        *(Torch("2.5", "124", False), Torch("2.6", "118", False)),
        *(Torch("2.6", "124", False), Torch("2.6", "126", True)),
    ]
    setup = HEAD + SETUPS["2.8.3"] + TAIL
    builds = page_builds({"version": "2.8.3"}, workflow(), setup, torch)
    abis = {
        (build["torch"], build["variant"], build.get("labelled_abi", build["cxx11abi"])): build[
            "cxx11abi"
        ]
        for build in builds
    }
    assert abis.pop(("2.6", "cu12", False)) is True  # the torch of CUDA 12.6 has the new one
    assert all(label is real for (_, _, label), real in abis.items())
    assert {build["glibc"] for build in builds} == {"2.32"}
    older = page_builds({"version": "2.8.3"}, workflow(image="ubuntu-20.04"), setup, torch)
    assert not any("glibc" in build for build in older)


def test_shared_pointers_of_this_compiler_need_glibc_2_32(prerequisite, tmp_path):
    prerequisite(shutil.which("g++") and shutil.which("objdump"), "g++ and objdump")
    major = int(subprocess.run(["g++", "-dumpversion"], capture_output=True).stdout.split(b".")[0])
    prerequisite(major >= 11, "GCC 11 or newer")
    source = "#include <memory>\nvoid drop(std::shared_ptr<int> one) { auto two = one; }\n"
    (tmp_path / "pointer.cpp").write_text(source)
    library = tmp_path / "pointer.so"
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-O0", tmp_path / "pointer.cpp", "-o", library], check=True
    )
    symbols = subprocess.run(["objdump", "-T", library], capture_output=True, text=True).stdout
    assert re.search(r"GLIBC_2\.32\)? +__libc_single_threaded", symbols)


# what follows, in the matrix

HERE = Evidence("here")
MATRICES = Path(__file__).resolve().parents[2] / "matrices"


def findings_of(flash_attn, torch, glibc="2.35", python="3.12.3"):
    """The ids of what the statements say of a machine."""
    matrix = load_matrix()
    facts = Facts(
        {
            "os.platform": Known("linux", HERE),
            "os.architecture": Known("x86_64", HERE),
            "python.version": Known(python, HERE),
            "glibc.version": Known(glibc, HERE),
            "distributions": Known(
                {
                    "flash-attn": Distribution("flash-attn", flash_attn),
                    "torch": Distribution("torch", torch),
                },
                HERE,
            ),
        }
    )
    rows = [
        row
        for row in matrix.rows_about(["flash-attn", "torch"])
        if row.id.startswith("fetches-") and row.id.endswith(":flash-attn")
    ]
    target = derive_target(facts, matrix)
    assert all(row.effect in ("degrades", "note") for row in rows)
    return {row.kind for row in rows if bind(row, target).outcome == "violated"}


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (("2.8.2", "2.6.0"), {"abi-mismatch"}),
        (("2.8.3", "2.6.0+cu124"), {"abi-mismatch"}),
        (("2.8.2", "2.6.0+cu126"), set()),
        (("2.8.2", "2.6.0+cu118"), set()),  # no such wheel: built
        (("2.7.4.post1", "2.6.0"), set()),
        (("2.8.2", "2.5.1"), set()),
        (("2.8.3", "2.9.1+cu130"), {"cuda-major-mismatch"}),
        (("2.8.3", "2.9.1"), set()),
        (("2.8.3", "2.9.1+cu130", "2.35", "3.11.9"), set()),
        (("2.8.3.post1", "2.9.1+cu130"), set()),  # its setup.py asks for CUDA 13
        (("2.3.0", "2.1.0+cu118", "2.35", "3.10.9"), {"cuda-major-mismatch"}),
        (("2.3.2", "2.1.0+cu118", "2.35", "3.10.9"), set()),
        (("2.8.3", "2.8.0", "2.31"), {"too-old"}),
        (("2.8.3", "2.8.0", "2.34"), set()),  # RHEL 9
        (("2.7.4.post1", "2.6.0", "2.28"), set()),
    ],
)
def test_a_statement_speaks_of_the_machines_where_a_wheel_is_fetched(machine, said):
    assert findings_of(*machine) == said


def test_no_statement_without_wheels_of_a_release_page():
    assert fetched_statements(MATRICES, "flash-attn")
    assert not fetched_statements(MATRICES, "torch")


def test_builds_of_torch_are_those_for_cuda():
    document = {
        "releases": [
            {
                "version": "2.6.0",
                "builds": [
                    {"variant": "cu124", "cuda": "12.4", "cxx11abi": False},
                    {"variant": "cpu"},
                    {"variant": "cu126", "architecture": "aarch64"},
                ],
            }
        ]
    }
    assert torch_builds(document) == [Torch("2.6", "124", False)]


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (  # https://github.com/Dao-AILab/flash-attention/issues/1708
            "flash-attn 2.8.0.post2\nNVIDIA A100\ntorch 2.5.1+cu121\nUbuntu 20.04",
            "fetches-glibc-2.32-too-old-2.8.0.post2:flash-attn",
        ),
        (  # https://github.com/Dao-AILab/flash-attention/issues/2118
            "flash-attn 2.8.3\ntorch 2.9.1+cu130\nPython 3.12",
            "fetches-torch-2.9-cuda-major-mismatch-2.8.1:flash-attn",
        ),
    ],
)
def test_threads_of_people_who_met_it(text, row):
    def said(environment):
        findings = app.judge(parse_report(environment, load_matrix().package), load_matrix())
        return {finding.row: finding.severity for finding in findings if finding.row == row}

    assert said(text)[row] in ("warning", "advice")
    others = ("Ubuntu 20.04", "Ubuntu 22.04"), ("cu130", "cu128")
    for old, new in others:
        text = text.replace(old, new)
    assert not said(text)
