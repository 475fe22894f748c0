"""The use case: what a lock is made for, whoever makes it where."""

from __future__ import annotations

import pytest

from envdoctor import sources
from envdoctor.errors import InputError
from envdoctor.intake import parse_assumptions
from envdoctor.intake.wanted import Wanted, read_wanted
from envdoctor.lock.emit import render
from envdoctor.lock.locking import lock
from envdoctor.lock.solver.objective import applied
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.evidence import Absent, Evidence, Known
from envdoctor.model.facts import Facts
from envdoctor.model.resolution import Explanation, Resolution
from envdoctor.model.versions import parse_version
from envdoctor.rules import judge
from envdoctor.sources import Sources, gather

from ..time_taken import within

HERE = Evidence("here")
MATRIX = load_matrix()
H100 = ("gpu=H100:8", "nvidia-driver=580.95.05", "glibc=2.35")


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_a_lock_for_a_gpu_is_for_linux_wherever_it_is_made(monkeypatch, platform):
    """A lock for macOS would have neither CUDA nor what cures it."""
    workstation = Facts(
        {
            "os.platform": Known(platform, HERE),
            "os.architecture": Known("arm64", HERE),
            "glibc.version": Absent(HERE),
        }
    )
    monkeypatch.setattr(sources, "probe", lambda **_: workstation)
    assumed = ("gpu=H20", "nvidia-driver=535.129.03")
    targets = gather(Sources(assume=assumed, python_version="3.10", elsewhere=True))
    resolution = lock(["torch==2.4.0"], targets)
    assert isinstance(resolution, Resolution)
    assert (resolution.requires.platform, resolution.requires.architecture) == ("linux", "x86_64")
    assert str(resolution.pin("nvidia-cublas-cu12").version) == "12.3.4.1"
    own = gather(Sources(python_version="3.10", elsewhere=True))
    assert lock(["numpy"], own).request.platform == platform
    needs = lock(["torch"], own, python="3.12").requires
    assert (needs.driver, needs.glibc, needs.cuda, needs.sm) == (None, None, None, ())


@pytest.mark.parametrize("version", ["3.10.x", "", "²", "cp310"])
def test_a_python_that_is_no_version_is_said(version):
    facts = Facts({"python.version": Known(version, Evidence("facts.json"))})
    with pytest.raises(
        InputError, match=r"expected a version as python\.version.*--python-version"
    ):
        lock(["vllm"], [facts])


def _asked(*texts: str, **options):
    return lock(list(texts), [Facts({})], python="3.12", others=True, **options)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("vllm==0.99", "the nearest is 0.33.0; 'envdoctor matrix update' may bring newer ones"),
        ("vllm>0.8.5,<0.8.5.post1", "no version can meet this"),
        ("vllm==0.8.6", "the nearest are 0.8.5.post1 and 0.9.0"),
        ("vllm[flashinfr]", "vllm has no extra 'flashinfr' (did you mean flashinfer?)"),
        ("numpy ; python_versio < '3'", "Expected a marker"),
        ("numpy===1.26", "ask for ==1.26 or ===1.26.0"),
        ("numpy ; sys_platform == 'win32'", "nothing of what was asked for is for Python 3.12 on"),
    ],
)
def test_what_there_is_not_is_said(text, words):
    with pytest.raises(InputError) as caught:
        _asked(text)
    assert words in str(caught.value)


@pytest.mark.parametrize(("version", "is_old"), [("2.2.4", True), ("2.3.0", False)])
def test_what_was_measured_of_a_package_without_releases_binds_the_others(version, is_old):
    """mamba-ssm 2.2.4 imports what transformers 5 does not have; its own releases are no table."""
    assert "mamba-ssm" not in MATRIX.packages_known
    resolution = _asked("transformers", f"mamba-ssm=={version}")
    assert isinstance(resolution, Resolution)
    assert (resolution.pin("transformers").version < parse_version("5")) is is_old
    (note,) = [note for note in resolution.notes if "mamba-ssm" in note]
    assert "its imports" in note


@pytest.mark.parametrize(("version", "warned"), [("84.2.1", True), ("81.0.0", False)])
def test_what_works_badly_with_a_package_without_releases_is_said(version, warned):
    """Its command imports what setuptools has no more: nothing that any choice here mends."""
    resolution = _asked("tensorboard==2.19.0", f"setuptools=={version}")
    rows = [reason.row for reason in resolution.warnings]
    assert rows == ["uses-pkg_resources:tensorboard"] * warned


def test_exactly_a_version_is_no_build_with_a_label():
    resolution = _asked("torch===2.6.0", allow_index=["pytorch"])
    assert isinstance(resolution, Resolution)
    assert str(resolution.pin("torch").version) == "2.6.0"
    labelled = _asked("torch===2.6.0+cu126", allow_index=["pytorch"])
    assert isinstance(labelled, Resolution)
    assert str(labelled.pin("torch").version) == "2.6.0+cu126"


def test_what_comes_from_a_repository_is_installed_last_and_not_judged():
    address = "accelerate @ git+https://one.example/accelerate@v9"
    elsewhere = "peft @ git+https://one.example/peft@v9 ; sys_platform == 'win32'"
    resolution = _asked("peft", wanted=Wanted(direct=(address, elsewhere)))
    assert isinstance(resolution, Resolution)
    assert [step.name for step in resolution.sources] == ["accelerate"]
    (note,) = [note for note in resolution.notes if "replaces it" in note]
    assert note.startswith(
        f"accelerate {resolution.pin('accelerate').version} is pinned because others"
    )


@pytest.mark.parametrize(
    ("wheel", "python"),
    [
        ("torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl", "3.12"),
        ("torch-2.8.0-cp312-cp312-win_amd64.whl", "3.12"),
        ("torch-2.8.0-cp312-cp312-manylinux_2_28_aarch64.whl", "3.12"),
        ("torch-2.8.0-cp313-cp313t-manylinux_2_28_x86_64.whl", "3.13"),
    ],
)
def test_a_wheel_that_the_target_cannot_install_is_refused(wheel, python):
    wanted = Wanted(("torch==2.8.0",), wheels=(wheel,))
    with pytest.raises(InputError, match=f"expected a wheel for Python {python} on linux x86_64"):
        lock((), [Facts({})], python=python, wanted=wanted)
    assert isinstance(lock(("six",), [Facts({})], python=python, others=True), Resolution)


@pytest.mark.parametrize(
    ("index", "version", "wheel"),
    [
        ("github", "2.8.3+cu12torch2.8cxx11abiTRUE", "flash_attn-{}-cp312-cp312-linux_x86_64.whl"),
        ("pytorch", "2.8.0+cu129", "torch-{}-cp312-cp312-manylinux_2_28_x86_64.whl"),
    ],
)
def test_a_build_that_is_given_needs_no_further_option(index, version, wheel):
    name = wheel.partition("-")[0].replace("_", "-")
    asked = (f"{name}=={version}", "torch==2.8.0" if index == "github" else "numpy")
    assert isinstance(_asked(wanted=Wanted(asked)), Explanation)
    resolution = _asked(wanted=Wanted(asked, wheels=(wheel.format(version),)))
    assert isinstance(resolution, Resolution)
    assert resolution.pin(name).index_name == index


def test_a_wheel_that_is_given_by_its_address_is_installed_from_there():
    file = "flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl"
    address = f"https://github.com/Dao-AILab/flash-attention/releases/download/v2.8.3/{file}"
    wanted = read_wanted([f"flash-attn @ {address}", "torch"])
    resolution = _asked(wanted=wanted)
    assert isinstance(resolution, Resolution)
    lines = render(resolution, "1", MATRIX)["requirements.txt"].splitlines()
    assert f"flash-attn @ {address}" in lines
    assert not any("--find-links FOLDER" in line for line in lines)


def test_constraints_bound_and_ask_for_nothing():
    bounds = Wanted(("transformers",), constraints=("numpy<2", "torch<2.6", "tokenizers<=0.21"))
    resolution = _asked(wanted=bounds, as_of="latest")
    assert isinstance(resolution, Resolution)
    assert resolution.pin("torch") is None
    assert resolution.pin("numpy").version < parse_version("2")
    assert resolution.pin("tokenizers").version <= parse_version("0.21")
    header = render(resolution, "1", MATRIX)["requirements.txt"].partition("\n\n")[0]
    assert "\n# constraints: numpy<2, tokenizers<=0.21\n" in header
    refused = _asked(wanted=Wanted(("numpy>=2",), constraints=("numpy<2",)))
    assert isinstance(refused, Explanation)
    assert any("kept out by the constraint numpy<2" in cause.text for cause in refused.causes)


def test_a_project_says_for_which_python_it_is():
    with pytest.raises(InputError, match=r"asks for Python >=3\.13, but the lock is for 3\.12"):
        _asked(wanted=Wanted(("numpy",), pythons=(">=3.13",)))


def test_a_file_of_400_lines_takes_no_second():
    lines = tuple(f"some-package-{number}>={number}" for number in range(380))
    wanted = Wanted((*lines, "vllm==0.9.2", "ray[default]", "numpy"))
    # Half a second on a machine with nothing else to do.
    found = within(3, lambda: _asked(wanted=wanted))
    assert isinstance(found, Resolution)
    assert len(found.request.others) == 380
    assert len(found.notes) < 10


@pytest.mark.parametrize("roots", [("torch", "flashinfer-python", "nvidia-cuda-nvcc"), ("vllm",)])
def test_a_warning_of_check_about_the_pins_is_named(roots):
    facts = Facts(parse_assumptions([*H100, "os.platform=linux", "os.architecture=x86_64"]))
    resolution = lock(roots, (facts,), MATRIX, python="3.12")
    assert isinstance(resolution, Resolution)
    pins = {pin.name for pin in resolution.pins}
    warned = {
        finding.row or finding.code
        for finding in judge(applied(resolution, facts), MATRIX, today=MATRIX.date)
        if finding.severity == "warning" and finding.component in pins
    }
    assert warned <= {reason.row for reason in resolution.warnings}
    assert ("ED204" in warned) is ("nvidia-cuda-nvcc" in roots)


def test_torch_is_taken_with_what_imports_it_and_does_not_ask_for_it():
    facts = Facts(parse_assumptions([*H100, "os.platform=linux", "os.architecture=x86_64"]))
    resolution = lock(("torchao",), (facts,), MATRIX, python="3.12")
    assert isinstance(resolution, Resolution)
    assert [root.name for root in resolution.request.roots] == ["torchao"]
    (reason,) = [reason for reason in resolution.pin("torch").reasons if reason.kind == "required"]
    assert (
        reason.text
        == f"torchao {resolution.pin('torchao').version} imports it, and does not ask for it"
    )
    alone = lock(("numpy", "datasets"), (facts,), MATRIX, python="3.12")
    assert alone.pin("torch") is None
    old = Facts(parse_assumptions(["gpu=T4", "nvidia-driver=470.57.02"]))
    without = lock(("torchao",), (old,), MATRIX, python="3.13")
    lacking = "imports torch, which it does not ask for, and no torch fits it here"
    assert [note for note in without.notes if note.endswith(lacking)]
