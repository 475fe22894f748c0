"""Symbols of libraries in wheels: against nm on libraries that a compiler made."""

import io
import shutil
import subprocess
import zipfile

import pytest
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
