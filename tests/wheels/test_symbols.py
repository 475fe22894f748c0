"""Symbols of libraries in wheels: against nm on libraries that a compiler made."""

import io
import json
import shutil
import subprocess
import zipfile

import pytest
from wheel_scan.symbol_abis import write_abis
from wheel_scan.symbol_spans import document_of
from wheel_scan.symbols import SymbolRecords, read_consumer, read_torch

from envdoctor.matrix.symbols import symbols_fault
from envdoctor.probes.elf import is_torch_symbol

PROVIDER = """
namespace c10 { int gone(int x) { return x; } struct Error { virtual ~Error(); }; Error::~Error() {} }
namespace own { int other() { return 1; } }
"""
CONSUMER = """
namespace c10 { int gone(int); __attribute__((weak)) int may_be(); }
int use() { return c10::gone(2) + (c10::may_be ? 1 : 0); }
"""


@pytest.fixture
def built(tmp_path, prerequisite):
    prerequisite(shutil.which("g++"), "g++")
    prerequisite(shutil.which("nm"), "nm")

    def build(name, source):
        path = tmp_path / name
        (tmp_path / "source.cpp").write_text(source, encoding="utf-8")
        command = ["g++", "-shared", "-fPIC", "-o", str(path), str(tmp_path / "source.cpp")]
        subprocess.run(command, check=True, timeout=60)
        return path

    return build


def wheel(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return file.getvalue()


def names(path, *options):
    """What nm says, without weak undefined symbols."""
    lines = subprocess.run(
        ["nm", "-D", *options, str(path)], check=True, capture_output=True, text=True, timeout=60
    ).stdout.splitlines()
    entries = [line.split() for line in lines]
    return {entry[-1] for entry in entries if entry[-2] not in ("w", "v")}


def test_exports_are_those_of_nm(built, opened, tmp_path):
    path = built("libc10.so", PROVIDER)
    archive = opened(wheel(**{"torch/lib/libc10.so": path.read_bytes(), "torch/x.so": b"no"}))
    record = {}
    records = SymbolRecords(str(tmp_path))
    for changed in read_torch(archive, record):
        records.keep("a" * 64, changed)
    expected = {name for name in names(path, "--defined-only") if is_torch_symbol(name)}
    assert set(record["exports"]["libc10.so"].split("\n")) == expected
    assert "_ZN3c104goneEi" in expected
    assert records.load("a" * 64) == record
    assert records.load("b" * 64) == {}


def test_what_a_package_needs_is_what_nm_says(built, opened):
    path = built("_C.so", CONSUMER)
    record = {}
    list(read_consumer(opened(wheel(**{"a/_C.so": path.read_bytes(), "a/b.so": b"no"})), record))
    library = record["libraries"]["a/_C.so"]
    wanted = {name for name in names(path, "--undefined-only") if is_torch_symbol(name)}
    assert set(library["undefined"]) == wanted == {"_ZN3c104goneEi"}
    assert record["libraries"]["a/b.so"] == {"fault": "no ELF header"}


STRINGS = """
#define _GLIBCXX_USE_CXX11_ABI %d
#include <string>
namespace c10 { void raise(const std::string&); }
extern "C" int torch_from_blob(int);
extern "C" int torch_cuda_stream_of(int);
void use() { c10::raise(std::string()); torch_cuda_stream_of(torch_from_blob(1)); }
"""


@pytest.mark.parametrize("abi", [0, 1])
def test_the_abi_of_a_build_is_that_of_its_symbols(built, opened, tmp_path, abi):
    path = built("_C.so", STRINGS % abi)
    record = {}
    list(read_consumer(opened(wheel(**{"a/_C.so": path.read_bytes()})), record))
    wanted = record["libraries"]["a/_C.so"]["undefined"]
    assert "torch_from_blob" in wanted  # of torch's stable interface
    assert "torch_cuda_stream_of" not in wanted  # may be of a library that is not read
    builds = [{"cuda": "12"}, {"cxx11abi": True}, {"index_name": "github", "variant": "cu12"}]
    document = {
        "schema": 1,
        "name": "a",
        "source": "wheels",
        "date": "2026-11-01",
        "trust": "established",
        "releases": [
            {"version": "1.0", "released": "2026-01-01", "requires": [], "builds": builds}
        ],
    }
    file = tmp_path / "a.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    assert list(write_abis(tmp_path, {"a": {"1.0": record}}))
    (release,) = json.loads(file.read_text("utf-8"))["releases"]
    assert [build.get("cxx11abi") for build in release["builds"]] == [bool(abi), True, None]
    assert not list(write_abis(tmp_path, {"a": {"1.0": record}, "none": {}}))


def test_what_varies_is_kept_and_what_fits_is_worked_out():
    gone, came = "_ZN3c104goneEv", "_ZN3c104cameEv"
    inner, instance = "_ZN2at6native4goneEv", "_ZN3c104goneIiEEvv"
    document = document_of(
        {
            "x86_64": {
                "2.0.0": {"libc10.so": frozenset([gone, inner, instance, "_ZN3c104evenEv"])},
                "2.1.0": {"libc10.so": frozenset([came, "_ZN3c104evenEv"])},
            },
            "aarch64": {"2.0.0": {"libc10.so": frozenset([came])}},
        },
        {
            "user": {
                "1.0": frozenset([gone, "_ZN2at4cuda4warpEv"]),
                "0.9": frozenset(["_ZN3c106olderEv"]),
                "2.0": frozenset([inner, came]),
            }
        },
        "2026-11-23",
    )
    assert symbols_fault(document) == ""
    assert document["symbols"] == {"0": f"{inner} {gone}", "0-1": came}
    assert document["x86_64"] == {"1": came}
    assert instance not in str(document)
    assert document["fits"] == {"user": {"1.0": "0"}}
