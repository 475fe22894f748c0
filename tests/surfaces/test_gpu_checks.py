"""GPUs that the code of packages refuses: held against that code itself, run on each capability."""

import shutil
import subprocess
import sys
import textwrap

import pytest
from surface_scan.gpu_answers import CAPABILITIES, refused_spans
from surface_scan.gpu_statements import gpu_statements
from surface_scan.measure import Measurement
from surface_scan.torch_checks import checks_devices, read_device_checks

from envdoctor.matrix.bind import bind
from envdoctor.matrix.derive import derive_target
from envdoctor.matrix.loader import load_matrix
from envdoctor.matrix.measured_rows import GPU, Surfaces, compile_surfaces
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Distribution, Facts, Gpu
from envdoctor.model.workload import stated_workload

#: torch, as far as it is asked: the capability is in an environment variable.
TORCH = """
import os
from types import SimpleNamespace
__version__ = "2.0"
version = SimpleNamespace(hip=None, cuda="12.1")
"""
CUDA = """
import os
import torch
from types import SimpleNamespace
def is_available():
    return True
def current_device():
    return 0
def get_device_properties(device):
    major, minor = os.environ["CAPABILITY"].split(".")
    return SimpleNamespace(major=int(major), minor=int(minor))
"""
OLD = """
def is_bf16_supported():
    if torch.version.hip:
        return True
    cu_vers = torch.version.cuda
    if cu_vers is not None:
        enough = int(cu_vers.split(".")[0]) >= 11
    else:
        enough = False
    return torch.cuda.get_device_properties(torch.cuda.current_device()).major >= 8 and enough
"""
NEW = """
def is_bf16_supported(including_emulation: bool = True):
    if not is_available():
        return False
    if torch.cuda.get_device_properties(0).major >= 8:
        return True
    if not including_emulation:
        return False
    return _works()
def _works():
    try:
        return True
    except Exception:
        return False
"""
HERE = """
from .other import is_half_available
"""
OF_TORCH = """
def is_torch_xpu_available():
    return False
def is_half_available():
    import torch
    if is_torch_xpu_available():
        return False
    return torch.cuda.is_available() and torch.cuda.is_bf16_supported()
"""
OWN = """
def is_half_available():
    import torch
    if torch.cuda.is_available() and torch.version.cuda is not None:
        if torch.cuda.get_device_properties(torch.cuda.current_device()).major < 9:
            return False
        if int(torch.version.cuda.split(".")[0]) < 11:
            return False
    else:
        return False
    return True
"""
ARGUMENTS = """
from dataclasses import dataclass, field
from .utils import is_half_available
@dataclass
class Arguments:
    half: bool = field(default=False, metadata={})
    full: bool = False
    cpu: bool = field(default=False)
    def __post_init__(self):
        self._validate()
    def _validate(self):
        if self.half or self.full:
            if not self.cpu and not is_half_available():
                words = "No half here."
                raise ValueError(words)
        if self.full and self.half:
            raise ValueError("not both")
"""


@pytest.fixture
def measured(workshop):
    files = {"user/__init__.py": "", "user/arguments.py": ARGUMENTS, "user/utils/__init__.py": HERE}
    workshop.release("user", {**files, "user/utils/other.py": OWN}, "1.0")
    workshop.release("user", {**files, "user/utils/other.py": OF_TORCH}, "2.0")
    for version, supported in (("2.0", OLD), ("2.3", NEW)):
        source = {"torch/__init__.py": TORCH, "torch/cuda/__init__.py": CUDA + supported}
        workshop.release("torch", source, version)
    packages = workshop.packages._replace(
        modules={**workshop.packages.modules, "torch": ("torch",)},
        starts={"user": {"user.arguments:Arguments.__post_init__": "the trainer"}},
        refused_gpu={"user": {"half": "Leave it."}},
    )
    return Measurement(packages, workshop.sources, workshop.folder)


def _raises(workshop, user, torch, setting):
    """The capabilities on which the arguments raise, really made."""
    program = textwrap.dedent(
        f"""
        import os, sys
        sys.path[:0] = {[str(workshop.folder / f"{name}") for name in (user, torch)]!r}
        import torch.cuda
        from user.arguments import Arguments
        for text in {CAPABILITIES!r}:
            os.environ["CAPABILITY"] = text
            try:
                Arguments({setting}=True)
            except ValueError as error:
                assert str(error) == "No half here."
                print(text)
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert not done.stderr
    return done.stdout.split()


def test_a_setting_is_refused_where_the_code_raises(workshop, measured):
    statements = gpu_statements(measured, "user")
    assert len(statements) == 4  # two settings of each release
    for user, torch, setting in [
        (user, torch, setting)
        for user in ("1.0", "2.0")
        for torch in ("2.0", "2.3")
        for setting in ("half", "full")
    ]:
        said = [
            span
            for one in statements
            if [f"--{setting}", "true"] in one["with"] and [user, user] in one["in"]
            if ["torch", f">={torch},<={torch}"] in one["with"] or len(one["with"]) == 1
            for span in one["lacking"]
        ]
        raising = _raises(workshop, f"user-{user}", f"torch-{torch}", setting)
        assert said == refused_spans(raising), (user, torch, setting)
    assert [one["id"] for one in statements if one.get("fix")] == [
        "refuses-gpus-6.0-8.9-half",
        "refuses-gpus-6.0-7.5-half-with-torch",
    ]
    assert {(one["text"], one["use"], one["path"]) for one in statements} == {
        ("No half here.", "the trainer", "user/arguments.py")
    }


@pytest.mark.parametrize(
    ("gpu", "torch", "half", "violated"),
    [
        ("TITAN RTX", "2.0", "True", True),
        ("TITAN RTX", "2.0", "false", False),
        ("TITAN RTX", "2.3", "True", False),
        ("H100 80GB HBM3", "2.0", "true", False),
        ("TITAN RTX", "2.0", None, False),
    ],
)
def test_the_row_of_a_statement(measured, gpu, torch, half, violated):
    statements = gpu_statements(measured, "user")
    document = {"name": "user", "date": "2026-11-28", "statements": statements}
    rows = list(Surfaces(compile_surfaces([document])).rows(["user", "torch"]))
    row = next(row for row in rows if row.id == "refuses-gpus-6.0-7.5-half-with-torch:user")
    here = Evidence("test")
    installed = {"user": Distribution("user", "2.0"), "torch": Distribution("torch", torch)}
    table = {
        "distributions": Known(installed, here),
        "distributions.complete": Known(True, here),
        "gpus": Known((Gpu(name=gpu),), here),
    }
    if half is not None:
        table["request"] = Known(stated_workload({"half": half}, here), here)
    matrix = load_matrix()
    assert (bind(row, derive_target(Facts(table), matrix)).outcome == "violated") is violated
    assert row.title == (
        "the trainer of user 2.0 with half and this torch refuses GPUs of compute capability "
        "up to 7.5"
    )
    assert (row.terms[1].component, GPU) == ("gpu", "cuda-gpu")


FRAME = """
#include <cstdlib>
#include <stdexcept>
struct Properties {{ int major, minor; }};
static Properties device;
namespace at {{ namespace cuda {{ Properties *getCurrentDeviceProperties() {{ return &device; }} }} }}
struct Pair {{ int a, b; }};
static Pair get_compute_capability(int) {{ return {{device.major, device.minor}}; }}
#define TORCH_CHECK(test, ...) if (!(test)) throw std::runtime_error("refused")
{source}
int main(int count, char **words) {{
    device = {{std::atoi(words[1]), std::atoi(words[2])}};
    {calls}
    return 0;
}}
"""
SOURCES = {
    "properties of the device": """
void forward(int head) {
    auto dprops = at::cuda::getCurrentDeviceProperties();
    // bool is_sm75 = dprops->major == 7 && dprops->minor == 5;
    bool is_sm8x = dprops->major == 8 && dprops->minor >= 0;
    bool is_sm90 = dprops->major == 9 && dprops->minor == 0;
    TORCH_CHECK(is_sm90 || is_sm8x, "Only Ampere or newer.");
    if (head > 64) {
        TORCH_CHECK(is_sm90, "large heads");
    }
    TORCH_CHECK(head < 256, "heads");
}
""",
    "two numbers": """
namespace kernels {
void forward(int head) {
    auto [cc_major, cc_minor] = get_compute_capability(0);
    bool is_new = cc_major >= 8;
    TORCH_CHECK(is_new && !(cc_major == 12 && cc_minor == 1), "Only",
                " these.");
}
}
using kernels::forward;
""",
}


@pytest.mark.parametrize("what", SOURCES)
def test_what_compiled_code_refuses(what, tmp_path, prerequisite):
    prerequisite(shutil.which("g++"), "a C++ compiler")
    source = SOURCES[what]
    (tmp_path / "a.cpp").write_text(FRAME.format(source=source, calls="forward(0);"))
    subprocess.run(["g++", "-std=c++17", "-o", "a", "a.cpp"], cwd=tmp_path, check=True)
    refused = {
        text
        for text in CAPABILITIES
        if subprocess.run([tmp_path / "a", *text.split(".")], capture_output=True).returncode
    }
    assert checks_devices(source.encode())
    check = read_device_checks(source.encode())
    assert check.refused == refused
    assert source.splitlines()[check.line - 1].strip().startswith("TORCH_CHECK")
    assert check.message in ("Only Ampere or newer.", "Only these.")


def test_what_one_function_alone_refuses_is_not_said_of_the_source():
    second = """void backward() {
    auto p = at::cuda::getCurrentDeviceProperties();
    TORCH_CHECK(p->major == 8 || p->major == 7, "backward");
}
"""
    source = SOURCES["properties of the device"] + second
    refused = read_device_checks(source.encode()).refused
    assert refused == {text for text in CAPABILITIES if float(text) < 7 or float(text) >= 10}
    assert read_device_checks(b"void f() { TORCH_CHECK(n > 1); }") is None
