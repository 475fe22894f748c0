"""Functions of CUDA's libraries: tables of symbols against nm, statements against the loader."""

import io
import json
import os
import shutil
import struct
import subprocess
import sys
import zipfile

import pytest
from surface_scan.links import link_statements
from wheel_scan.cuda_spans import asked_of, driver_symbols, libraries_of, major_of
from wheel_scan.cuda_symbols import PROVIDERS, read_cuda
from wheel_scan.dynamic_head import symbols_in_head
from wheel_scan.symbol_architectures import of_aarch64

from envdoctor.matrix.bind import Subject, Target, bind
from envdoctor.matrix.loader import load_matrix
from envdoctor.matrix.measured_rows import DRIVER, Surfaces, compile_surfaces
from envdoctor.matrix.symbols import (
    as_read_on_aarch64,
    askers_of,
    histories_in_libraries,
    symbols_fault,
)
from envdoctor.model.versions import parse_version

NCCL = "nvidia-nccl-cu12"
FUNCTIONS = ["ncclInit", "ncclSend", "ncclReceive", "ncclGroup", "ncclFree", "ncclSplit", "ncclEnd"]


@pytest.fixture
def build(tmp_path, prerequisite):
    for program in ("gcc", "nm"):
        prerequisite(shutil.which(program), program)

    def run(name, source, *options):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        command = [
            "gcc",
            "-shared",
            "-fPIC",
            "-o",
            str(path),
            "-x",
            "c",
            "-",
            "-x",
            "none",
            *options,
        ]
        subprocess.run(command, input=source, text=True, check=True, timeout=60)
        return path

    return run


def provider(functions, padding=0):
    """Source of a library with these functions, and with constants as large as device code."""
    code = "".join(f"int {name}(void) {{ return 1; }}\n" for name in functions)
    constants = f"const char padding[{padding + 1}] = {{1}};"
    return f"{code}{constants} int getpid(void); int ncclOwn(void) {{ return getpid(); }}"


def consumer(functions):
    """Source of a library that calls these, one of them by a pointer."""
    code = "".join(f"int {name}(void);\n" for name in functions)
    calls = " + ".join(f"{name}()" for name in functions)
    return f"{code}int (*held)(void) = {functions[0]}; int use(void) {{ return {calls}; }}"


def names(path, *options):
    command = ["nm", "-D", *options, str(path)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    entries = [line.split() for line in lines.splitlines()]
    return {entry[-1].split("@")[0] for entry in entries if entry[-2] not in ("w", "v")}


@pytest.mark.parametrize("options", [(), ("-Wl,--hash-style=sysv",), ("-g",)])
def test_the_beginning_of_a_library_tells_its_symbols(build, options):
    path = build("libnccl.so.2", provider(FUNCTIONS, 1 << 20), "-Wl,-soname,libnccl.so.2", *options)
    head = path.read_bytes()[: 1 << 16]
    symbols = symbols_in_head(head)
    assert set(symbols.exported) == names(path, "--defined-only") > set(FUNCTIONS)
    assert set(symbols.undefined) == names(path, "--undefined-only")
    assert {"libnccl.so.2", "libc.so.6"} <= set(symbols.libraries)
    assert symbols_in_head(head[:700]) is None


def test_sections_in_the_table_are_no_symbols(build):
    """GNU ld leaves two in each library for aarch64: ``SECTION LOCAL DEFAULT 10 .init``."""
    path = build("libnccl.so.2", provider(FUNCTIONS), "-Wl,-soname,libnccl.so.2")
    content = path.read_bytes()
    whole = symbols_in_head(content)
    first = next(
        place
        for place in range(64, len(content), 8)
        if content[place : place + 24] == bytes(24) and content[place + 28] >> 4 in (1, 2)
    )
    section = struct.pack("<IBBHQQ", 0, 3, 0, 10, 0xAD88, 0)
    after = first + 24
    assert symbols_in_head(content[:after] + 2 * section + content[after:]) == whole
    assert set(whole.exported) == names(path, "--defined-only")


def test_a_table_that_is_not_there_is_not_made_up(build):
    path = build("libnccl.so.2", provider(FUNCTIONS))
    content = path.read_bytes()
    names_at = content.index(b"\0ncclInit\0")
    wiped = content[:names_at] + b"\0" + b"X" * 4000 + content[names_at + 4001 :]
    assert symbols_in_head(wiped) is None  # as patchelf leaves what it moved
    assert symbols_in_head(b"\x7fELF\x02\x01" + bytes(1 << 16)) is None
    assert symbols_in_head(b"") is None


@pytest.fixture
def read(opened):
    """The record of a wheel with these files."""

    def run(version, **files):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
            for name, path in files.items():
                content = path if isinstance(path, bytes) else path.read_bytes()
                made.writestr(name, content)
        record = {"archive": f"a-{version}.whl"}
        list(read_cuda(opened(file.getvalue()), record))
        return record

    return run


@pytest.fixture
def measured(build, read):
    """Three releases of a library, and two of a torch: the second calls what came with the third of
    the library. Also the files, by release.
    """
    soname = "-Wl,-soname,libnccl.so.2"
    with_split = [name for name in FUNCTIONS if name != "ncclEnd"]
    libraries = {
        "2.1": build("1/libnccl.so.2", provider([*FUNCTIONS[:5], "ncclEnd"]), soname),
        "2.2": build("2/libnccl.so.2", provider(with_split, 4 << 20), soname),
        "2.3": build("3/libnccl.so.2", provider(FUNCTIONS), soname),
    }
    runtime = build("0/libcudart.so.12", "int cudaInit(void) { return 0; }",
                    "-Wl,-soname,libcudart.so.12")  # fmt: skip
    linked = ("-Wl,-soname,libtorch_cuda.so,--no-as-needed", libraries["2.3"], runtime)
    files = {
        "1.0": build("a/libtorch_cuda.so", consumer(["ncclSend", "ncclSplit"]), *linked),
        "1.1": build("b/libtorch_cuda.so", consumer(["ncclSplit", "ncclEnd"]), *linked),
    }
    records = {
        NCCL: {
            version: read(version, **{"nvidia/nccl/lib/libnccl.so.2": path})
            for version, path in libraries.items()
        },
        "torch": {
            version: read(
                version,
                **{
                    "torch/lib/libtorch_cuda.so": path,
                    "torch/_C.abi3.so": build("_C.abi3.so", "int x;", "-Wl,--no-as-needed", path),
                },
            )
            for version, path in files.items()
        },
    }
    return records, libraries, files


def document_of(records, earlier=None):
    libraries = libraries_of(records, (earlier or {}).get("libraries", {}))
    asked = asked_of(records, libraries, (earlier or {}).get("asked", {}), {})
    spans = {part: {} for part in ("symbols", "cuda", "x86_64", "fits")}
    return {"schema": 1, "versions": ["1.0"], **spans, "libraries": libraries, "asked": asked}


def test_what_varies_and_who_needs_it(measured):
    document = document_of(measured[0])
    assert symbols_fault(document) == ""
    assert document["libraries"][NCCL] == {
        "versions": ["2.1", "2.2", "2.3"],
        "symbols": {"0,2": "ncclEnd", "1-2": "ncclSplit"},
        "files": ["libnccl.so.2"],
    }
    asked = document["asked"]["torch"]
    assert asked["symbols"] == {
        NCCL: {"torch/lib/libtorch_cuda.so": {"0-1": "ncclSplit", "1": "ncclEnd"}}
    }
    assert asked["loaded"] == ["torch/lib/libtorch_cuda.so"]
    (history,) = histories_in_libraries(document, "ncclSplit")
    assert (history.package, history.releases()) == (NCCL, "2.2 and newer")
    assert history.requirement() == f"{NCCL}>=2.2"
    (asker,) = askers_of(document, NCCL, "ncclEnd")
    assert (asker.package, asker.releases) == ("torch", (("1.1", "1.1"),))
    assert histories_in_libraries(document, "ncclInit") == []


def loads(library, path):
    """What the loader says of a library beside another, "" where it binds all symbols."""
    code = "import ctypes, sys, os; ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        env={**os.environ, "LD_LIBRARY_PATH": f"{library.parent}:{path.parent.parent / '0'}"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.stderr.strip().rpartition("\n")[2] if done.returncode else ""


def test_the_loader_says_the_same(measured, tmp_path):
    records, libraries, files = measured
    (tmp_path / "symbols.json").write_text(json.dumps(document_of(records)), "utf-8")
    statements = link_statements(tmp_path, "torch")
    said = {}
    for entry in statements:
        assert (entry["provider"], entry["effect"]) == (NCCL, "blocks")
        for first, last in entry["in"]:
            for release in files:
                for oldest, newest in entry["lacking"]:
                    said.update(
                        ((release, version), entry["text"])
                        for version in libraries
                        if first <= release <= last and oldest <= version <= newest
                    )
    assert set(said) == {("1.0", "2.1"), ("1.1", "2.1"), ("1.1", "2.2")}
    for release, path in files.items():
        for version, library in libraries.items():
            text = loads(library, path)  # which of several it names first is its own affair
            assert ("undefined symbol: nccl" in text) is ((release, version) in said)
            assert bool(text) is ((release, version) in said)
    document = {"name": "torch", "date": "2026-11-27", "statements": statements}
    rows = list(Surfaces(compile_surfaces([document])).rows(["torch", NCCL]))
    assert {(row.code, row.component) for row in rows} == {("ED409", NCCL)}
    assert {row.pins for row in rows} == {(f"{NCCL}>=2.2",), (f"{NCCL}>=2.3",)}


def test_each_machine_hears_of_its_own_wheels(measured, build, tmp_path):
    """The wheel of torch 1.0 for aarch64 needs nothing of the library; that of 1.1 is as the other,
    and of the library 2.1 has none.
    """
    records = measured[0]
    document = document_of(records)
    runtime = {"torch/lib/libtorch_cuda.so": {"exported": [], "undefined": [], "needed": []}}
    arm = {
        NCCL: {version: records[NCCL][version] for version in ("2.2", "2.3")},
        "torch": {"1.0": {"archive": "arm.whl", "cuda": runtime}, "1.1": records["torch"]["1.1"]},
    }
    document["aarch64"] = own = of_aarch64(document, document, arm, {}, {}, {})
    assert symbols_fault(document) == ""
    assert own["versions"] == {NCCL: "2.2 2.3", "torch": "1.0 1.1"}
    assert sorted(own) == ["asked", "versions"]  # the libraries are the same
    again = of_aarch64({**document}, document, {}, {}, {}, {})
    assert again == own  # what was not read here stays
    (asker,) = askers_of(as_read_on_aarch64(document), NCCL, "ncclSplit")
    assert asker.releases == (("1.1", "1.1"),)
    (history,) = histories_in_libraries(as_read_on_aarch64(document), "ncclEnd")
    assert (history.versions, history.has(parse_version("2.1"))) == (("2.2", "2.3"), None)
    (tmp_path / "symbols.json").write_text(json.dumps(document), "utf-8")
    statements = link_statements(tmp_path, "torch")
    surface = {"name": "torch", "date": "2026-11-27", "statements": statements}
    rows = list(Surfaces(compile_surfaces([surface])).rows(["torch", NCCL]))
    for machine, torch, nccl, fails in (
        *(("x86_64", "1.0", "2.1", True), ("aarch64", "1.0", "2.1", False)),
        *(("x86_64", "1.1", "2.2", True), ("aarch64", "1.1", "2.2", True)),
        *(("x86_64", "1.0", "2.2", False), ("aarch64", "1.1", "2.3", False)),
    ):
        versions = {"torch": torch, NCCL: nccl}
        target = Target(
            Subject(True, {"platform": "linux", "architecture": machine}),
            (),
            lambda _: Subject(False),
            lambda _: Subject(False),
            lambda name, versions=versions: Subject(
                True, {"version": parse_version(versions[name])}
            ),
        )
        outcomes = {bind(row, target).outcome for row in rows}
        assert ("violated" in outcomes) is fails, (machine, torch, nccl)


def test_a_later_release_opens_more(measured):
    """As torch does whose wheels for aarch64 have CUDA from 2.11 on."""
    records = measured[0]
    nothing = {"exported": [], "undefined": [], "needed": []}
    extension = {"torch/_C.abi3.so": {**nothing, "needed": ["libtorch_python.so"]}}
    cuda = {
        **extension,
        "torch/lib/libtorch_python.so": {**nothing, "needed": ["libtorch_cuda.so"]},
        "torch/lib/libtorch_cuda.so": records["torch"]["1.1"]["cuda"]["torch/lib/libtorch_cuda.so"],
    }
    torch = {
        "0.9": {"archive": "a", "cuda": {**extension, "torch/lib/libtorch_python.so": nothing}},
        "1.1": {"archive": "b", "cuda": cuda},
    }
    document = document_of({**records, "torch": torch})
    assert document["asked"]["torch"]["loaded"] == ["torch/lib/libtorch_cuda.so"]


def test_a_library_of_another_name_may_be_found_elsewhere(measured, build, read, tmp_path):
    records = dict(measured[0])
    old = build("old/libnccl.so.1", provider(FUNCTIONS[:3]), "-Wl,-soname,libnccl.so.1")
    records[NCCL] = {"1.9": read("1.9", **{"nvidia/nccl/lib/libnccl.so.1": old}), **records[NCCL]}
    document = document_of(records)
    assert "libnccl.so.2" in document["libraries"][NCCL]["symbols"]["1-3"].split()
    (tmp_path / "symbols.json").write_text(json.dumps(document), "utf-8")
    lacking = [span for entry in link_statements(tmp_path, "torch") for span in entry["lacking"]]
    assert lacking
    assert "1.9" not in {end for span in lacking for end in span}


def test_what_was_not_read_here_stays(measured, read):
    records = measured[0]
    earlier = document_of(records)
    assert document_of({}, earlier)["asked"] == earlier["asked"]
    fewer = {**records, NCCL: {"2.3": records[NCCL]["2.3"]}, "torch": {}}
    assert document_of(fewer, earlier)["libraries"] == earlier["libraries"]
    assert document_of(fewer, earlier)["asked"]["torch"] == earlier["asked"]["torch"]
    broken = {**records, NCCL: {**records[NCCL], "2.4": read("2.4", **{"a/lib/a.so": b"no"})}}
    assert document_of(broken)["libraries"][NCCL]["versions"] == ["2.1", "2.2", "2.3"]


def test_who_is_read_alone_is_held_against_what_was_read_of_the_libraries_before(measured):
    """Else what a package needs is lost where NVIDIA's packages were read on another machine."""
    records = measured[0]
    earlier = document_of(records)
    alone = document_of({"torch": records["torch"]}, earlier)
    assert alone["asked"] == earlier["asked"]
    new = document_of({"torch": records["torch"]}, {**earlier, "asked": {}})
    assert new["asked"] == {"torch": earlier["asked"]["torch"]}


def test_the_driver_counts_by_the_cuda_that_its_functions_came_with(tmp_path):
    types = [
        "PFN_cuCtxCreate_v2000)", "PFN_cuCtxCreate_v3020)", "PFN_cuCtxCreate_v11040)",
        "PFN_cuCtxCreate_v12050)", "PFN_cuGreenCtxCreate_v12040)", "PFN_cuInit_v2000)",
        "PFN_cuGreenCtxStreamCreate_v12050)", "PFN_cuStreamWaitValue32_v8000_ptsz)",
        "PFN_cuStreamWaitValue32_v8000)", "PFN_cuStreamWaitValue32_v11070)",
        "PFN_cuStreamWaitValue32_v11070_ptsz)",
    ]  # fmt: skip
    came = {}
    for version, there in driver_symbols(types).items():
        came.update((name, version) for name in sorted(there) if name not in came)
    assert came == {
        "cuCtxCreate_v3": "11.4", "cuStreamWaitValue32_v2": "11.7",
        "cuStreamWaitValue32_v2_ptsz": "11.7", "cuGreenCtxCreate": "12.4",
        "cuCtxCreate_v4": "12.5", "cuGreenCtxStreamCreate": "12.5",
    }  # fmt: skip
    wheel = {
        "archive": "user-1.0.whl",
        "cuda": {
            "user/a.so": {
                "exported": [],
                "undefined": ["cuGreenCtxCreate", "cuStreamWaitValue32_v2"],
                "needed": ["libcuda.so.1", "libcudart.so.12"],
            },
            "user/b.so": {"exported": [], "undefined": ["cuCtxCreate_v4"], "needed": ["libc.so.6"]},
        },
    }
    records = {"nvidia-cuda-runtime": {"13.0": {"typedefs": types}}, "user": {"1.0": wheel}}
    document = document_of(records)
    # Every driver that serves CUDA 12 has what came with 11.7; what is looked up later counts not.
    assert document["asked"]["user"]["symbols"] == {
        DRIVER: {"user/a.so": {"0": "cuGreenCtxCreate"}}
    }
    (tmp_path / "symbols.json").write_text(json.dumps(document), "utf-8")
    (statement,) = link_statements(tmp_path, "user")
    assert (statement["effect"], statement["use"]) == ("degrades", "a.so")
    text = {"name": "user", "date": "2026-11-27", "statements": [statement]}
    (row,) = Surfaces(compile_surfaces([text])).rows(["user"])
    driver = next(term for term in row.terms if term.attribute == "ptx")
    assert parse_version("12.2") in driver.argument
    assert parse_version("12.4") not in driver.argument
    assert row.title.startswith("a.so of user 1.0 cannot be loaded with a driver that serves CUDA")


def test_majors():
    assert [major_of(name) for name in (NCCL, "nvidia-nccl-cu13", "nvidia-cublas")] == [12, 13, 13]
    assert len(set(PROVIDERS)) == len(PROVIDERS)


def test_no_release_is_said_to_fail_with_what_torch_pins():
    """The surest witness that is not the loader: who built torch pins what it was built with."""
    matrix = load_matrix()
    package = matrix.package("torch")
    rows = [row for row in matrix.rows() if row.code == "ED409" and len(row.packages) > 1]
    judged = 0
    for version in package.versions:
        pins = {"torch": str(version)}
        for line in package.release(version).requires or ():
            name, _, pin = line.partition(";")[0].strip().partition("==")
            if pin and name.startswith("nvidia-"):
                pins[name] = pin
        for row in rows:
            own, other = row.terms[0], row.terms[1]
            if own.component in pins and other.component in pins:
                judged += 1
                fits = parse_version(pins[other.component]) not in other.argument
                assert fits or parse_version(pins[own.component]) not in own.argument, row.id
    assert judged > 100
