"""Toolkits and ptxas: folders as NVIDIA, Debian and conda lay them out, and the real nvcc where
there is one.
"""

import os
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.model.evidence import Absent, Evidence, Known, Unknown
from envdoctor.model.facts import Gpu, Toolkit
from envdoctor.probes.isolation import run_command
from envdoctor.probes.machine import Machine
from envdoctor.probes.toolkits import (
    parse_cuda_header,
    parse_tool_version,
    parse_version_json,
    parse_version_text,
    probe_toolkits,
)

from ..time_taken import within

# version.json of the CUDA 12.4.1 toolkit, cut.
_JSON = (
    '{"cuda": {"name": "CUDA SDK", "version": "12.4.20240405"}, "cuda_nvcc": {"name": "CUDA '
    'NVCC", "version": "12.4.131"}}'
)
_BANNER = (
    "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2024 NVIDIA Corporation\nBuilt on "
    "Thu_Mar_28_02:18:24_PDT_2024\n"
    "Cuda compilation tools, release 12.4, V12.4.131\nBuild cuda_12.4.r12.4/compiler.34097967_0\n"
)


def make_tool(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def image(tmp_path):
    """Toolkits of three ages below a root."""
    local = tmp_path / "usr" / "local"
    make_tool(local / "cuda-12.4" / "bin" / "nvcc", "")
    (local / "cuda-12.4" / "version.json").write_text(_JSON)
    make_tool(local / "cuda-10.2" / "bin" / "nvcc", "")
    (local / "cuda-10.2" / "version.txt").write_text("CUDA Version 10.2.89\n")
    (local / "cuda-11.8").mkdir()
    (local / "cuda-11.8" / "compat").mkdir()
    (local / "cuda").symlink_to("/usr/local/cuda-12.4")
    return tmp_path


def test_folders_of_an_image(image):
    facts = probe_toolkits(Machine(str(image)))
    assert facts["toolkits"].value == (
        Toolkit("/usr/local/cuda-12.4", "12.4.20240405", "/usr/local", True),
        Toolkit("/usr/local/cuda-10.2", "10.2.89", "/usr/local", True),
    )
    assert facts["toolkit.version"] == Known(
        "12.4.131", Evidence("/usr/local/cuda-12.4/version.json", "found by /usr/local")
    )


def test_the_order_of_torch_extensions(image):
    facts = probe_toolkits(
        Machine(
            str(image), {"PATH": "/usr/local/cuda-10.2/bin", "CUDA_HOME": "/usr/local/cuda-12.4"}
        )
    )
    assert facts["toolkit.version"].value == "12.4.131"
    facts = probe_toolkits(Machine(str(image), {"PATH": "/x:/usr/local/cuda-10.2/bin"}))
    assert facts["toolkit.version"].value == "10.2.89"
    assert facts["toolkits"].value[0].found_via == "PATH"


def test_no_toolkit(tmp_path):
    facts = probe_toolkits(Machine(str(tmp_path)))
    assert facts["toolkits"].value == ()
    assert isinstance(facts["toolkit.version"], Absent)


def test_runtime_image_has_no_nvcc(tmp_path):
    folder = tmp_path / "usr" / "local" / "cuda-12.4"
    folder.mkdir(parents=True)
    (folder / "version.json").write_text(_JSON)
    facts = probe_toolkits(Machine(str(tmp_path)))
    assert facts["toolkits"].value == (
        Toolkit("/usr/local/cuda-12.4", "12.4.20240405", "/usr/local", False),
    )
    assert isinstance(facts["toolkit.version"], Absent)


def test_header_spares_running_nvcc(tmp_path):
    make_tool(tmp_path / "bin" / "nvcc", "#!/bin/sh\nsleep 60\n")
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "cuda.h").write_text(
        "/**\n * CUDA API version number\n */\n#define CUDA_VERSION 12080\n"
    )
    facts = probe_toolkits(Machine(environment={"CUDA_HOME": str(tmp_path)}))
    assert facts["toolkit.version"].value == "12.8"


def test_nvcc_is_run_where_nothing_else_tells(tmp_path):
    make_tool(tmp_path / "bin" / "nvcc", f"#!/bin/sh\ncat <<'X'\n{_BANNER}X\n")
    facts = probe_toolkits(
        Machine(environment={"CUDA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    )
    assert facts["toolkit.version"].value == "12.4.131"
    make_tool(tmp_path / "bin" / "nvcc", "#!/bin/sh\nsleep 60\n")
    machine = Machine(
        environment={"CUDA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, deadline=0.3
    )
    assert isinstance(probe_toolkits(machine)["toolkit.version"], Unknown)


def test_real_nvcc(nvcc):
    said = parse_tool_version(run_command([nvcc, "--version"], 20).output)
    found = probe_toolkits(Machine(environment={"PATH": f"{os.path.dirname(nvcc)}:/usr/bin:/bin"}))[
        "toolkit.version"
    ].value
    assert said.split(".")[:2] == found.split(".")[:2]


def test_ptxas_of_triton(tmp_path):
    tool = tmp_path / "triton" / "backends" / "nvidia" / "bin" / "ptxas"
    make_tool(tool, f"#!/bin/sh\ncat <<'X'\n{_BANNER}X\n")
    make_tool(
        tool.with_name("ptxas-blackwell"),
        f"#!/bin/sh\ncat <<'X'\n{_BANNER.replace('12.4', '12.9')}X\n",
    )
    machine = Machine(environment={"PATH": "/usr/bin:/bin"})
    machine.facts["python.search_path"] = Known((str(tmp_path),), Evidence("test"))
    assert probe_toolkits(machine)["ptxas.version"].value == "12.4.131"
    machine.facts["gpus"] = Known((Gpu(compute_capability="9.0"),), Evidence("test"))
    assert probe_toolkits(machine)["ptxas.version"].value == "12.4.131"
    machine.facts["gpus"] = Known((Gpu(compute_capability="12.0"),), Evidence("test"))
    assert probe_toolkits(machine)["ptxas.version"].value == "12.9.131"


def test_ptxas_by_variable_and_without_the_right_to_run(tmp_path):
    (tmp_path / "ptxas").write_bytes(
        os.urandom(5000)
        + b"Cuda compilation tools, release %d.%d,\0"
        + _BANNER.encode()
        + os.urandom(5000)
    )
    facts = probe_toolkits(Machine(str(tmp_path), {"TRITON_PTXAS_PATH": "/ptxas"}))
    assert facts["ptxas.version"] == Known("12.4.131", Evidence("/ptxas"))
    (tmp_path / "ptxas").write_bytes(b"")
    assert isinstance(
        probe_toolkits(Machine(str(tmp_path), {"TRITON_PTXAS_PATH": "/ptxas"}))["ptxas.version"],
        Unknown,
    )


def test_version_of_the_image():
    assert (
        probe_toolkits(
            Machine(environment={"CUDA_VERSION": "12.4.1", "NVIDIA_REQUIRE_CUDA": "cuda>=12.4"})
        )["image.cuda_version"].value
        == "12.4.1"
    )
    assert isinstance(
        probe_toolkits(Machine(environment={"CUDA_VERSION": "12.4.1"}))["image.cuda_version"],
        Unknown,
    )


@settings(max_examples=300)
@given(
    st.one_of(
        st.text(max_size=300),
        st.lists(
            st.sampled_from(
                [
                    '{"cuda":',
                    '{"version":',
                    '"12.4"',
                    "}",
                    "[",
                    "#define CUDA_VERSION ",
                    "12040",
                    "Cuda compilation tools, release 12.4, V12.4.131",
                    "\n",
                ]
            ),
            max_size=20,
        ).map("".join),
    )
)
def test_parsers_take_anything(text):
    for version in (
        *parse_version_json(text),
        parse_version_text(text),
        parse_cuda_header(text),
        parse_tool_version(text.encode("utf-8", "replace")),
    ):
        assert version is None or (isinstance(version, str) and len(version) < 40)


def test_deep_json_does_not_recurse():
    assert parse_version_json("[" * 200_000) == (None, None)


def test_one_long_line_of_a_header_is_read_once():
    text = "CUDA_VERSION " * 200_000
    defined = f"{text}\n#  define CUDA_VERSION 12040 /* {text} */\n"
    found = within(2, lambda: (parse_cuda_header(text), parse_cuda_header(defined)))
    assert found == (None, "12.4")
