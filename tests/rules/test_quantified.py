"""What holds for every release, or for most, that a name without a version may mean."""

from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix
from envdoctor.rules import judge

MATRIX = load_matrix()


def is_error(finding):
    return (finding.verdict, finding.severity) == ("violated", "error")


OLD_GPU = "torch: 2.5.1+cu121\ntransformers 4.46.3\nflash-attn: {}\nGPU: Tesla V100\npython 3.10\n"


def findings(text):
    return judge(parse_report(text, MATRIX.package), MATRIX, today="2026-11-21")


def test_what_is_true_of_every_release_is_a_warning_that_says_so():
    (warning,) = [
        entry
        for entry in findings(OLD_GPU.format("installed"))
        if entry.row == "flash-attn-2-before-ampere"
    ]
    assert (warning.verdict, warning.severity, warning.presumed) == ("violated", "warning", True)
    assert "every release of the time that flash-attn" in warning.message


def test_a_range_that_leaves_releases_without_the_fault_is_a_question():
    rows = {entry.row: entry.verdict for entry in findings(OLD_GPU.format("<=2.0.0"))}
    assert rows.get("flash-attn-2-before-ampere") != "violated"


def test_a_range_with_a_wheel_for_this_python_is_not_refused_by_it():
    """numpy 2.0.2, the newest that pip takes for Python 3.9, is in the range."""
    assert not [
        entry for entry in findings("Python 3.9.18\nnumpy>=2.0.0\n") if entry.code == "ED303"
    ]


def test_most_releases_of_a_range_refuse_this_python():
    (warning,) = [
        entry for entry in findings("python: 3.14\nvllm: 2026-02\n") if entry.code == "ED303"
    ]
    assert warning.severity == "warning"
    assert "most releases of vllm <=" in warning.message
    assert not [
        entry for entry in findings("python: 3.11\nvllm: 2026-02\n") if entry.code == "ED303"
    ]


def test_a_branch_of_the_driver_is_too_old_where_all_its_releases_are():
    stack = "torch: 2.11.0+cu130\nGPU: H100\ndriver {}\n"
    assert any(
        entry.code == "ED101" and entry.severity == "error"
        for entry in findings(stack.format("535"))
    )
    # CUDA 13 came with 580.65.06: some releases of the branch will do
    assert not any(
        entry.code == "ED101" and entry.verdict == "violated"
        for entry in findings(stack.format("580"))
    )


def test_what_every_release_of_a_range_pins_is_asked_for():
    (warning,) = [
        entry for entry in findings("torch 2.9.x\ntriton 3.6.0\n") if entry.code == "ED301"
    ]
    assert (warning.component, warning.kind, warning.severity) == ("triton", "too-new", "warning")
    # 2.9 pins 3.5, 2.10 pins 3.6
    assert not [entry for entry in findings("torch >=2.9\ntriton 3.6.0\n") if entry.code == "ED301"]


def test_a_cuda_version_without_an_owner_makes_no_error_of_a_build():
    stack = "PyTorch version 2.2.0\nflash_attn-2.5.5+cu118torch2.2cxx11abiFALSE-cp38-cp38-linux_x86_64.whl\n"
    assert any(entry.code == "ED203" for entry in findings(stack))
    assert not any(entry.code == "ED203" for entry in findings(stack + "CUDA version 11.8\n"))


def test_the_oldest_releases_of_a_range_count_as_well():
    """Older ones of this range do not import what only the newest do."""
    faults = findings("sglang >= 0.4.4\ntransformers 4.49.0\n")
    assert not [entry for entry in faults if "every release" in entry.message]


def test_a_build_of_torch_without_a_release_is_held_against_the_driver():
    """The oracle is NVIDIA's table: CUDA 12 starts with R525, CUDA 11 runs on R470."""
    stack = "CUDA used to build PyTorch: {}\nNvidia driver version: 470.82.01\nGPU 0: NVIDIA A100\n"
    errors = [entry.code for entry in findings(stack.format("12.8")) if is_error(entry)]
    assert errors == ["ED101"]
    assert not any(map(is_error, findings(stack.format("11.8"))))


def test_no_release_with_a_stated_build_has_code_for_a_newer_device():
    """No wheel of CUDA 11.8 holds sm_120; of 12.8 all do."""
    error, warning = [
        entry
        for entry in findings("torch cu118 build on RTX 5090, driver 570.86.10")
        if entry.code == "ED120"
    ]
    assert "the first CUDA that does is 12.8" in error.message
    assert "every release that torch" in warning.message
    assert warning.caused_by == error.key
    assert not [
        entry
        for entry in findings("torch cu128 build on RTX 5090, driver 570.86.10")
        if entry.code == "ED120" and entry.verdict == "violated"
    ]


def test_a_name_alone_is_refused_by_a_python_that_none_of_its_releases_takes():
    (error,) = [
        entry for entry in findings("sglang installed, Python 3.7.9") if entry.code == "ED303"
    ]
    assert error.severity == "error"
    # its first releases took 3.8
    assert not [
        entry
        for entry in findings("sglang installed, Python 3.8.10")
        if entry.code == "ED303" and entry.severity == "error"
    ]


def test_the_remedy_of_a_range_names_the_range():
    (error,) = [entry for entry in findings("vllm 0.8.x with torch 2.4.0") if entry.code == "ED304"]
    (call,) = [call for remedy in error.remedies for call in remedy.commands]
    assert "vllm==0.8.*" in call.packages


PIP_LIST = """$ pip list
Package            Version
------------------ -----------
accelerate         1.2.1
certifi            2024.8.30
charset-normalizer 3.4.0
filelock           3.16.1
fsspec             2024.10.0
idna               3.10
Jinja2             3.1.4
MarkupSafe         3.0.2
mpmath             1.3.0
networkx           3.4.2
numpy              1.26.4
packaging          24.2
pip                24.3.1
psutil             6.1.0
PyYAML             6.0.2
requests           2.32.3
setuptools         75.6.0
sympy              1.13.1
torch              2.5.1+cu124
tqdm               4.67.1
transformers       4.47.0
triton             3.1.0
typing_extensions  4.12.2
urllib3            2.2.3
"""


def test_a_pasted_list_lacks_what_its_members_need():
    """The oracle is the metadata of transformers 4.47.0 and accelerate 1.2.1 on the index."""
    missing = {entry.component: entry for entry in findings(PIP_LIST) if entry.code == "ED302"}
    assert set(missing) == {"huggingface-hub", "safetensors", "tokenizers"}
    assert missing["tokenizers"].packages == ("tokenizers", "transformers")
    whole = PIP_LIST + "huggingface-hub 0.26.5\nsafetensors 0.4.5\ntokenizers 0.21.0\n"
    assert not [entry for entry in findings(whole) if entry.code == "ED302"]


def test_an_excerpt_of_a_list_lacks_nothing():
    excerpt = "\n".join(line for line in PIP_LIST.splitlines() if not line.startswith("pip "))
    assert not [entry for entry in findings(excerpt) if entry.code == "ED302"]
