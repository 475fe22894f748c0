"""The ELF reader against binutils on real libraries, and against bytes that are no ELF file."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.probes.elf import (
    ElfError,
    cxx11_abi_of,
    gnu_hash,
    highest,
    is_torch_symbol,
    open_elf,
)

from .compiled import build, output


def libraries(count):
    """Real libraries of this machine: of the interpreter, its extensions and the system."""
    folders = [
        sysconfig.get_path("stdlib") + "/lib-dynload",
        sysconfig.get_config_var("LIBDIR") or "/usr/lib",
        "/lib/x86_64-linux-gnu",
        "/usr/lib64",
    ]
    found = []
    for folder in folders:
        if os.path.isdir(folder):
            found += sorted(
                path
                for path in (os.path.join(folder, name) for name in os.listdir(folder))
                if ".so" in path and os.path.isfile(path)
            )
    real = []
    for path in found:
        with open(path, "rb") as file:
            if file.read(4) == b"\x7fELF":
                real.append(path)
    return real[:: max(1, len(real) // count)][:count]


@pytest.fixture(scope="module")
def binutils(prerequisite):
    prerequisite(shutil.which("readelf") and shutil.which("nm"), "binutils (readelf, nm)")


@pytest.mark.parametrize("path", libraries(25))
def test_the_dynamic_section_is_as_readelf_says(path, binutils):
    told = output("readelf", "-dW", path)
    with open_elf(path) as elf:
        assert list(elf.needed) == re.findall(r"\(NEEDED\).*\[(.*)\]", told)
        assert [elf.soname] == (re.findall(r"\(SONAME\).*\[(.*)\]", told) or [None])
        assert [elf.rpath] == (re.findall(r"\(RPATH\).*\[(.*)\]", told) or [None])
        assert [elf.runpath] == (re.findall(r"\(RUNPATH\).*\[(.*)\]", told) or [None])


@pytest.mark.parametrize("path", libraries(25))
def test_symbols_and_versions_are_as_nm_says(path, binutils):
    told = [line.split() for line in output("nm", "-D", path).splitlines()]
    undefined = {entry[1].split("@")[0] for entry in told if entry[0] == "U"}
    weak = {entry[1].split("@")[0] for entry in told if entry[0] in "wv"}
    defined = {
        entry[2].split("@")[0] for entry in told if len(entry) == 3 and entry[1] not in "UNa"
    }
    wanted = {
        match
        for entry in told
        if entry[0] in ("U", "w")
        for match in re.findall(r"@(GLIBC_[\d.]+)", entry[1])
    }
    with open_elf(path) as elf:
        assert set(elf.undefined()) == undefined - weak
        assert all(elf.defines(name) is not False for name in defined)
        assert not any(elf.defines(name) for name in sorted(undefined)[:200] if name not in defined)
        assert not elf.defines("no_library_defines_this")
        needs = {version for several in elf.version_needs().values() for version in several}
        assert wanted <= needs


def test_the_interpreter_of_a_program():
    with open_elf(os.path.realpath(sys.executable)) as elf:
        assert elf.interpreter
        assert os.path.exists(elf.interpreter)


def test_a_folder_a_fifo_and_a_text_are_refused_at_once(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    text = tmp_path / "text.so"
    text.write_text("INPUT(-lncurses)")
    for path in (fifo, text, tmp_path):
        with pytest.raises((ElfError, OSError)):
            open_elf(str(path))


def test_highest_counts_numbers_and_keeps_families_apart():
    assert highest(["GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.4", "GLIBC_PRIVATE"], "GLIBC") == "2.17"
    assert highest(["GLIBCXX_3.4.9", "GLIBCXX_3.4.30", "CXXABI_1.3.13"], "GLIBCXX") == "3.4.30"
    assert highest(["GLIBCXX_3.4"], "GLIBC") is None
    assert highest([], "GLIBC") is None


def test_the_hash_of_the_gnu_table():
    # The values of the specification's test: https://flapenguin.me/elf-dt-gnu-hash
    assert gnu_hash(b"") == 0x1505
    assert gnu_hash(b"printf") == 0x156B2BB8
    assert gnu_hash(b"exit") == 0x7C967E3F


_STRINGS = """
#include <string>
namespace c10 { namespace detail {
void torchCheckFail(char const*, char const*, unsigned, std::string const&);
}}
extern "C" void call() { c10::detail::torchCheckFail("", "", 1, std::string("x")); }
"""


@pytest.mark.parametrize("new", [True, False])
def test_the_abi_of_strings_shows_in_the_symbols(tmp_path, prerequisite, new):
    prerequisite(shutil.which("g++"), "g++")
    path = build(
        tmp_path / "ext.so", _STRINGS, f"-D_GLIBCXX_USE_CXX11_ABI={int(new)}", compiler="g++"
    )
    with open_elf(str(path)) as elf:
        names = [name for name in elf.undefined() if is_torch_symbol(name)]
    assert len(names) == 1
    assert cxx11_abi_of(names) is new
    assert cxx11_abi_of(["_ZN3c104cuda9SetDeviceEa"]) is None
    warning = "_ZN3c107WarningC1ESt7variantIJNS0_11UserWarningEEERKNS_14SourceLocation"
    assert cxx11_abi_of([f"{warning}ESsb"]) is False
    assert cxx11_abi_of([f"{warning}ESsize"]) is None


def test_symbols_of_torch_are_told_from_others():
    for name in (
        "_ZN3c104cuda9SetDeviceEa",
        "_ZN2at4_ops5zeros4callE",
        "_ZNK5torch8autograd4NodeE",
        "_ZTIN3c105ErrorE",
        "aoti_torch_empty",
    ):
        assert is_torch_symbol(name), name
    for name in (
        "_ZN4vllm3c103fooE",
        "cudaMalloc",
        "_ZSt4cout",
        "_ZN6at_bat3fooEv",
        "PyErr_Format",
    ):
        assert not is_torch_symbol(name), name


def _read_all(path):
    with open_elf(str(path)) as elf:
        elf.undefined()
        elf.version_needs()
        elf.version_definitions()
        elf.defines("malloc")
        elf.mentions(b"x")


@settings(max_examples=150, deadline=2000)
@given(st.binary(max_size=600))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.so"
    path.write_bytes(b"\x7fELF\x02\x01" + content)
    with contextlib.suppress(ElfError):
        _read_all(path)


@pytest.fixture(scope="module")
def victim(tmp_path_factory):
    path = build(
        tmp_path_factory.mktemp("victim") / "victim.so",
        "extern int other(void); int mine(void) { return other(); }",
    )
    return path.read_bytes()


@settings(max_examples=250, deadline=2000)
@given(data=st.data())
def test_a_damaged_library_is_read_or_refused(tmp_path_factory, victim, data):
    content = bytearray(victim)
    for _ in range(data.draw(st.integers(1, 12))):
        place = data.draw(st.one_of(st.integers(0, 1200), st.integers(0, len(content) - 1)))
        content[place] = data.draw(st.integers(0, 255))
    content = (
        content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content
    )
    path = Path(tmp_path_factory.getbasetemp()) / "damaged.so"
    path.write_bytes(content)
    with contextlib.suppress(ElfError):
        _read_all(path)
