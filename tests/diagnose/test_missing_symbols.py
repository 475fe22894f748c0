"""Lines of the loader, answered from the symbols of torch's wheels."""

import pytest

from envdoctor.app import check, diagnose
from envdoctor.intake import parse_report
from envdoctor.intake.assumptions import parse_assumptions, with_assumptions
from envdoctor.matrix.loader import load_matrix
from envdoctor.matrix.symbols import qualified_name
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Facts

FLASH = "/v/lib/python3.11/site-packages/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
SET_DEVICE = "_ZN3c104cuda9SetDeviceEi"  # its parameter is another type from 2.3 on
NEW_STRING = (
    "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
)


@pytest.fixture
def finding(tmp_path):
    """The first finding of an ImportError with this text."""

    def run(text, *assume):
        path = tmp_path / "run.log"
        path.write_text(f"ImportError: {text}\n", encoding="utf-8")
        facts = with_assumptions(Facts(), dict(parse_assumptions(assume))) if assume else None
        return diagnose([str(path)], facts, load_matrix()).traces[0].finding

    return run


def test_a_symbol_that_torch_lost_tells_for_which_torch_it_was_built(finding):
    said = finding(f"{FLASH}: undefined symbol: {SET_DEVICE}")
    assert "those of 2.1.0 to 2.2.2 export c10::cuda::SetDevice: flash-attn" in said.message
    assert said.severity == "warning"


def test_with_the_installed_torch_it_is_certain(finding):
    said = finding(f"{FLASH}: undefined symbol: {SET_DEVICE}", "torch==2.5.1")
    assert "torch 2.5.1 does not" in said.message
    assert said.severity == "error"
    texts = [remedy.text for remedy in said.remedies]
    assert any("which has wheels for torch 2.5" in text for text in texts)
    assert any("<=2.2.2" in text for text in texts)


def test_a_torch_that_has_it_is_not_accused(finding):
    said = finding(f"{FLASH}: undefined symbol: {SET_DEVICE}", "torch==2.2.1")
    assert "also torch 2.2.1: the program loaded another torch" in said.message
    assert said.severity == "warning"


def test_of_a_torch_that_nobody_measured_nothing_is_said(finding):
    said = finding(f"{FLASH}: undefined symbol: {SET_DEVICE}", "torch==2.5.0a0+872d972e41.nv24.08")
    assert "does not:" not in said.message
    assert said.severity == "warning"


def test_a_name_of_the_new_abi_tells_of_the_abi_and_not_of_the_release(finding):
    said = finding(f"{FLASH}: undefined symbol: {NEW_STRING}", "torch==2.6.0")
    assert "or another torch with that ABI (cxx11abiTRUE)" in said.message
    assert said.severity == "warning"  # its build for CUDA 12.6 has that ABI
    assert not any("it was built against" in remedy.text for remedy in said.remedies)
    unknown = finding(f"{FLASH}: undefined symbol: {NEW_STRING}")
    assert "or another torch with that ABI" in unknown.message
    of_all = finding(f"{FLASH}: undefined symbol: {NEW_STRING}", "torch==2.5.1")
    assert of_all.severity == "error"  # no build of 2.5.1 has it, for either architecture


def test_a_release_that_may_load_is_named_where_none_says_so_itself(finding):
    said = finding(
        f"/x/site-packages/torchcodec/libtorchcodec.so: undefined symbol: {SET_DEVICE}",
        "torch==2.9.1",
    )
    texts = [remedy.text for remedy in said.remedies]
    assert any("needs no symbol that torch 2.9.1 is known to lack" in text for text in texts)


def test_a_module_without_its_path(finding):
    said = finding(f"flash_attn_2_cuda: undefined symbol: {SET_DEVICE}", "torch==2.5.1")
    assert said.component == "flash-attn"
    assert said.severity == "error"


def test_a_symbol_that_was_not_measured_changes_nothing(finding):
    said = finding(f"{FLASH}: undefined symbol: _ZN2at4_ops5nosuch4callEv", "torch==2.5.1")
    assert "torch's wheels" not in said.message
    assert said.severity == "warning"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found", "Ubuntu 22.04"),
        ("/lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found", "GCC 12.1"),
        ("/lib/libstdc++.so.6: version `CXXABI_1.3.15' not found", "GCC 14.1"),
    ],
)
def test_a_version_of_a_system_library_names_who_has_it(finding, line, said):
    assert said in finding(f"{line} (required by /x/_C.so)").message


@pytest.mark.parametrize(
    ("system", "words"),
    [
        ("Ubuntu 22.04.4 LTS", "This system has glibc 2.28."),  # which has 2.35: another one's
        ("Debian 10", "Debian 10 has glibc 2.28."),
        ("TencentOS Server 3.1", "TencentOS Server 3.1 has glibc 2.28."),
    ],
)
def test_a_glibc_is_of_the_named_system_where_that_may_have_it(system, words, tmp_path):
    here = Evidence("test")
    facts = Facts({"os.name": Known(system, here), "glibc.version": Known("2.28", here)})
    log = tmp_path / "run.log"
    log.write_text("/lib64/libc.so.6: version `GLIBC_2.32' not found (required by /x/_C.so)\n")
    assert words in diagnose([str(log)], facts, load_matrix()).traces[0].finding.message


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        (SET_DEVICE, "c10::cuda::SetDevice"),
        (NEW_STRING, "c10::Error::Error"),
        ("_ZNK2at10TensorBase8data_ptrIfEEPT_v", "at::TensorBase::data_ptr"),
        ("_ZTVN5torch8autograd4NodeE", "torch::autograd::Node"),
        ("THPVariableClass", ""),
    ],
)
def test_the_qualified_name_of_a_symbol(symbol, name):
    assert qualified_name(symbol) == name


@pytest.mark.parametrize("file", ["", "linux-gnu.so: ", "x86_64-linux-gnu.so: "])
def test_a_line_without_the_name_of_the_file_is_answered(finding, file):
    said = finding(f"{file}undefined symbol: {SET_DEVICE}", "torch==2.5.1")
    assert "does not: the extension was built against" in said.message
    assert "linux-gnu" not in said.message
    deleter = "_ZN3c104impl3cow11cow_deleterEPv"
    named = finding(f"{file}undefined symbol: {deleter}", "torch==2.1.2", "flash-attn==2.5.8")
    assert "does not: flash-attn was built against" in named.message


@pytest.mark.parametrize(
    "symbol",
    [
        "c10::cuda::SetDevice(int)",
        "c10::cuda::SetDevice(int) const",
    ],
)
def test_a_symbol_as_people_read_it_is_the_same(finding, symbol):
    said = finding(f"{FLASH}: undefined symbol: {symbol}")
    assert "those of 2.1.0 to 2.2.2 export c10::cuda::SetDevice: flash-attn" in said.message


@pytest.mark.parametrize(
    ("symbol", "releases"),
    [
        ("c10::cuda::SetDevice(signed char)", "2.3.0 to 2.7.1"),
        ("torch::jit::parseSchemaOrName(std::string const&, bool)", "2.4.0 to 2.6.0"),
        ("c10::cuda::SetDevice", None),  # its overloads came and went apart
        ("c10::operator<<(int)", None),
        ("c10::no::such::Function(int)", None),
    ],
)
def test_its_parameters_tell_overloads_apart(symbol, releases):
    history = load_matrix().symbol_history(symbol)
    assert (history and history.releases()) == releases


def test_a_single_release_is_named_by_its_number(finding):
    said = finding(
        "/v/lib/python3.11/site-packages/sgl_kernel/common_ops.abi3.so: undefined symbol: "
        "c10::MessageLogger::MessageLogger(char const*, int, int, bool)",
        "torch==2.12.0",
    )
    assert any("torch==2.10.0" in remedy.text for remedy in said.remedies)


CUDA = (
    "/v/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommShrink"
)


def test_a_function_of_nccl_tells_which_releases_have_it_and_who_asks(finding):
    said = finding(CUDA)
    assert "2.27.3 and newer" in said.message
    assert said.severity == "warning"


@pytest.mark.parametrize(
    "symbol",
    [
        "ncclCommRegister",
        "__nvJitLinkAddData_12_1",
        "cublasLtGetEnvironmentMode",
        "cudnnGetVersion",
        "cusparseSpMM_bufferSize",
        "cudaGetDriverEntryPointByVersion",
        "nvshmem_selected_device_transport",
    ],
)
def test_a_function_of_any_of_nvidia_s_libraries_is_one_of_theirs(finding, symbol):
    said = finding(f"/v/ext.so: undefined symbol: {symbol}")
    assert said.message.startswith(f"{symbol} is in no loaded library of NVIDIA's, and /v/ext.so")
    assert said.component not in ("", "cuda-libraries")


def test_without_a_known_cuda_no_package_is_chosen(finding):
    said = finding("/v/ext.so: undefined symbol: ncclCommRegister")
    first = said.remedies[0]
    assert "nvidia-nccl-cu11>=2.19.3 or nvidia-nccl-cu12>=2.19.3" in first.text
    assert not first.commands


@pytest.mark.parametrize(
    ("version", "severity", "word"),
    [
        ("2.26.2", "error", "cannot be loaded with nvidia-nccl-cu12"),
        ("2.27.5", "warning", "another copy was loaded instead"),
    ],
)
def test_with_the_installed_library_it_is_certain(finding, version, severity, word):
    said = finding(
        CUDA,
        "torch==2.10.0",
        f"nvidia-nccl-cu12=={version}",
        "platform=linux",
        "architecture=x86_64",
    )
    assert said.severity == severity
    assert word in said.message


def test_a_function_of_the_driver_tells_its_cuda(finding):
    said = finding("/v/ext.so: undefined symbol: cuGreenCtxCreate")
    assert "The driver has it from CUDA 12.4 on" in said.message


MEMORY = "ImportError: /v/torch/lib/libtorch_cuda.so: undefined symbol: ncclMemFree"


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        ("", ""),
        ("export LD_LIBRARY_PATH=/usr/local/nccl-2.18/lib\n", "names /usr/local/nccl-2.18/lib, "),
        ("export LD_LIBRARY_PATH=/opt/mine\n", ""),
    ],
)
def test_another_copy_that_is_told_is_the_culprit(tmp_path, beside, said):
    """torch 2.7.1 asks for an NCCL that has it: what comes first on the path has not."""
    text = f"torch 2.7.1+cu126\nPython 3.11\n{beside}{MEMORY}\n"
    path = tmp_path / "issue.txt"
    path.write_text(text)
    matrix = load_matrix()
    finding = check(parse_report(text, matrix.package), matrix, logs=[str(path)]).findings[0]
    commands = [str(call) for way in finding.remedies for call in way.commands]
    assert said in finding.message
    assert ("LD_LIBRARY_PATH names" in finding.message) is bool(said)
    assert ("'nvidia-nccl-cu12==2.26.2'" in " ".join(commands)) is not bool(said)


def test_files_of_another_torch_are_told_from_its_library(tmp_path):
    """torch 2.7.1 calls no ncclCommWindowRegister, 2.8.0 does."""
    text = MEMORY.replace("ncclMemFree", "ncclCommWindowRegister")
    path = tmp_path / "issue.txt"
    path.write_text(f"torch 2.7.1\nPython 3.11\n{text}\n")
    matrix = load_matrix()
    facts = parse_report(path.read_text(), matrix.package)
    finding = check(facts, matrix, logs=[str(path)]).findings[0]
    assert "torch 2.7.1 does not need it: files of another torch lie there" in finding.message
    assert finding.remedies[0].commands[0].packages == ("torch==2.7.1",)
