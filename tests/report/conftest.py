"""A report with everything in it, and golden outputs."""

from pathlib import Path

import pytest

from envdoctor.model.differences import Changed, NodeDifference, Since
from envdoctor.model.evidence import Absent, Evidence, Known, Unknown
from envdoctor.model.facts import Distribution, Facts, Gpu
from envdoctor.model.finding import Finding, Gap, Remedy
from envdoctor.model.report import Ignore, Ignored, Report
from envdoctor.model.row import Source

GOLDEN = Path(__file__).parent.parent / "data" / "golden_reports"


def facts(**fields):
    return Facts({name.replace("__", "."): fact for name, fact in fields.items()})


MACHINE = facts(
    python__version=Known("3.10.12", Evidence("/usr/bin/python3.10")),
    torch__version=Known("2.9.0+cu130", Evidence("torch/version.py")),
    torch__cuda=Known("13.0", Evidence("torch/version.py")),
    driver__release=Known("550.54.15", Evidence("/proc/driver/nvidia/version")),
    driver__cuda_version=Known("12.4", Evidence("cuDriverGetVersion")),
    gpus=Known(
        (Gpu(name="NVIDIA H100 80GB HBM3", memory_total=85520809984),) * 8, Evidence("NVML")
    ),
    container__runtime=Known("docker", Evidence("/.dockerenv")),
    memory__limit=Known(64 << 30, Evidence("/sys/fs/cgroup/memory.max")),
    compat__release=Absent(Evidence("ld.so cache")),
    driver__fabric_manager=Unknown("timed out after 2 s", "fabric"),
    distributions=Known(
        {"torch": Distribution("torch", "2.9.0+cu130")}, Evidence("/usr/lib/python3/dist-packages")
    ),
)

ROOT = Finding(
    code="ED101",
    component="nvidia-driver",
    kind="too-old",
    severity="error",
    message="Driver 550.54.15 is too old for CUDA 13.0 of torch 2.9.0+cu130, which needs ≥ "
    "580.65.06",
    evidence=(
        Evidence("/proc/driver/nvidia/version", "first line"),
        Evidence("torch/version.py"),
        Evidence("torch/version.py"),
    ),
    sources=(
        Source(
            "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html",
            "13.x needs >= 580",
        ),
        Source("a second source"),
    ),
    remedies=(
        Remedy(
            "Install the build of torch for CUDA 12",
            (
                (
                    "pip install 'torch==2.9.0+cu128' --index-url "
                    "https://download.pytorch.org/whl/cu128"
                ),
            ),
        ),
        Remedy("Or update the driver to 580.65.06 or newer", (), "changes-host"),
    ),
)
CONSEQUENCE = Finding(
    code="ED121",
    component="vllm",
    kind="cuda-major-mismatch",
    severity="warning",
    message="vllm 0.12.0 loads libcudart.so.13 and cannot start either",
    evidence=(Evidence("vllm/_C.abi3.so"),),
    row="vllm-cuda-13",
    trust="reported",
    caused_by=ROOT.key,
)
ADVICE = Finding(
    code="ED502",
    component="/dev/shm",
    kind="shm-too-small",
    severity="advice",
    message="/dev/shm has 64 MiB; NCCL wants 1 GiB for 8 GPUs",
    nodes=("a", "b"),
)
OPEN = tuple(
    Finding(
        f"ED10{number}",
        "gpu",
        "p2p-blocked",
        "warning",
        "Peer traffic may be redirected",
        "undetermined",
        missing=Gap("field", missing),
    )
    for number, missing in enumerate(["pcie.acs_iommu", "glibc.version", "glibc.version"], 3)
)
ACCEPTED = Ignore("ED304:torch", "2999-12-31", "built from source here", "ignore.txt:2")
EXPIRED = Ignore("ED502", "2020-01-31", "until the new nodes come", "ignore.txt:3")
HIDDEN = Finding(
    "ED304", "torch", "version-mismatch", "error", "vllm 0.12.0 pins torch 2.9.1, found 2.9.0"
)

REPORT = Report(
    (ROOT, CONSEQUENCE, ADVICE),
    OPEN,
    (Ignored(HIDDEN, ACCEPTED),),
    (Ignored(ADVICE, EXPIRED),),
    (MACHINE,),
    "2026-11-21",
    1,
)
HEALTHY = Report((), (), (), (), (MACHINE,), "2026-11-21", 0)

HOSTILE_TEXT = (
    "\x1b]0;owned\x07\x1b[31mred\x1b[0m\r\nsecond line\u202eevil\u2066 \x9b2J \ud800 "
    "\u061c\u00ad\U000e0001\U000e0041\U000e007f\u3164\u034f "
    "`code` **bold** <img src=x> @all %0A::error::x | # ![x](http://x)"
)


def hostile_report():
    """Every text of every record is hostile."""
    text = HOSTILE_TEXT
    evidence = Evidence(text, text)
    finding = Finding(
        code="ED190",
        component=text,
        kind="conflict",
        severity="error",
        message=text,
        subject=text,
        evidence=(evidence, Evidence("/" + text)),
        sources=(Source(text, text), Source("https://x/" + text)),
        remedies=(Remedy(text, (text,)),),
        nodes=(text,),
    )
    node = facts(
        node__name=Known(text, evidence),
        python__version=Known(text, evidence),
        torch__version=Known(text, evidence),
        driver__release=Known(text, evidence),
        driver__cuda_version=Known(text, evidence),
        gpus=Known((Gpu(name=text),), evidence),
        os__name=Unknown(text, "os"),
        variables=Known({text: text}, evidence),
    )
    undetermined = finding._replace(verdict="undetermined", missing=Gap("field", text))
    ignored = Ignored(finding, Ignore(text, text, text, text))
    return Report(
        (finding, finding._replace(caused_by=finding.key, message="x" * 5000)),
        (undetermined,),
        (ignored,),
        (ignored,),
        (node, node),
        "2026-11-21",
        1,
        since=Since(
            text,
            (Changed((text, "b"), (NodeDifference(text, text, text),)),),
            1,
            (text,),
            (text,),
            (finding,),
            (finding,),
            (text,),
        ),
    )


@pytest.fixture
def golden(request):
    """Return a function that compares a text with a golden file, or writes it with
    --update-golden.
    """

    def compare(name, text):
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text

    return compare
