"""Fat binaries that nvcc made, against what it was asked for and what cuobjdump lists; and what is
no fat binary.
"""

import importlib.util
import json
import re
import shutil
import struct
import subprocess
from pathlib import Path

import lz4.block
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from wheel_scan.fatbin import MAGIC, Stream, lz4_prefix, scan

DATA = Path(__file__).parent / "data"
RECORDED = json.loads((DATA / "recorded.json").read_text())


def scanned(*pieces):
    return list(scan(Stream(pieces)))


def recorded(name):
    return (DATA / f"{name}.fatbin").read_bytes()


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_recorded(name):
    (codes,) = scanned(recorded(name))
    assert (codes.signature, codes.odd) == (RECORDED[name]["signature"], "")
    assert codes.kernels == (() if RECORDED[name]["source"] == "empty.cu" else ("_Z5scalePf",))


def test_several_in_other_bytes_and_in_pieces():
    data = (
        b"\x7fELF"
        + b"\0" * 1000
        + recorded("zstd")
        + b"x" * 77
        + recorded("speed")
        + recorded("plain")
        + b"tail"
    )
    expected = [RECORDED[name]["signature"] for name in ("zstd", "speed", "plain")]
    for size in (1, 7, 64, 4096, len(data)):
        assert [
            found.signature
            for found in scanned(*(data[at : at + size] for at in range(0, len(data), size)))
        ] == expected


def test_what_lies_outside_is_kept_at_its_place():
    before, after = b"\x7fELF" + b"a" * 500, b"b" * 300
    kept = bytearray(b"\0" * 9000)

    def keep(offset, piece):
        kept[offset : offset + len(piece)] = piece

    list(scan(Stream([before + recorded("plain") + after], keep)))
    assert kept[: len(before)] == before
    place = len(before) + len(recorded("plain"))
    assert kept[place : place + len(after)] == after
    assert not any(kept[len(before) : place])


@pytest.mark.parametrize("size", [8, 15, 16, 40, 80, 200, 3000])
def test_cut_off(size):
    for found in scanned(recorded("plain")[:size]):
        assert found.odd


def test_a_size_that_lies_does_not_hide_what_follows():
    broken = bytearray(recorded("plain"))
    broken[8:16] = (1 << 62).to_bytes(8, "little")  # all entries
    broken[16 + 8 : 16 + 16] = (1 << 63).to_bytes(8, "little")  # the first one
    codes = scanned(bytes(broken) + recorded("zstd"))
    assert codes[0].odd
    assert codes[-1].signature == RECORDED["zstd"]["signature"]


def test_a_bomb_is_cut():
    data = bytearray(recorded("zstd"))
    text = zstandard.ZstdCompressor().compress(
        b".version 9.0\n.target sm_120\n" + b" " * (64 << 20)
    )
    entry = bytearray(data[16:80])
    entry[0:2] = (1).to_bytes(2, "little")
    entry[4:8] = (64).to_bytes(4, "little")
    entry[8:16] = len(text).to_bytes(8, "little")
    entry[16:20] = (0).to_bytes(4, "little")
    entry[28:32] = (120).to_bytes(4, "little")
    entry[40:48] = (0x8011).to_bytes(8, "little")
    entry[56:64] = (1 << 60).to_bytes(8, "little")
    (codes,) = scanned(MAGIC + (64 + len(text)).to_bytes(8, "little") + bytes(entry) + text)
    assert codes.signature == "ptx=12.0@9.0"
    assert codes.kernels is None  # not unpacked whole


@pytest.mark.parametrize(
    ("architecture", "signature"), [(50, "sass=5.0"), (61, "sass=6.1"), (90, "sass=9.0a")]
)
def test_a_flag_that_older_code_has_too(architecture, signature):
    """The e_flags of code in libcublasLt 12.9.3.13, of which cuobjdump lists sm_50 and sm_90a."""
    cubin = bytearray(b"\x7fELF\x02\x01\x01\x33\x07".ljust(64, b"\0"))
    struct.pack_into("<I", cubin, 48, 0x800 | architecture)
    entry = struct.pack(
        "<HHIQIIHHIIIQQQ", 2, 0, 64, len(cubin), 0, 0, 0, 0, architecture, 0, 0, 0x11, 0, 0
    )
    (codes,) = scanned(MAGIC + struct.pack("<Q", len(entry) + len(cubin)) + entry + bytes(cubin))
    assert (codes.signature, codes.odd) == (signature, "")


@given(st.binary(max_size=3000), st.sampled_from([1, 50, 4000]))
@settings(max_examples=300)
def test_any_bytes(data, size):
    data = MAGIC + data
    for found in scanned(*(data[at : at + size] for at in range(0, len(data), size))):
        assert isinstance(found.signature, str)


@given(
    st.sampled_from(sorted(RECORDED)),
    st.lists(st.tuples(st.integers(0, 700), st.integers(0, 255)), min_size=1, max_size=8),
)
@settings(max_examples=300)
def test_damaged(name, changes):
    data = bytearray(recorded(name))
    for place, value in changes:
        data[place] = value
    for found in scanned(bytes(data)):
        assert isinstance(found.signature, str)
        assert found.kernels is None or isinstance(found.kernels, tuple)


@given(st.binary(min_size=1, max_size=400).map(lambda part: part * 7), st.integers(1, 500))
@settings(max_examples=200)
def test_lz4_prefix_is_what_the_library_unpacks(content, wanted):
    packed = lz4.block.compress(content, store_size=False)
    assert lz4_prefix(packed, wanted) == content[:wanted]


@given(st.binary(max_size=300), st.integers(1, 4096))
@settings(max_examples=300)
def test_lz4_prefix_of_any_bytes(data, wanted):
    found = lz4_prefix(data, wanted)
    assert found is None or len(found) <= wanted


def cuobjdump():
    beside = shutil.which("cuobjdump")
    if beside:
        return beside
    for package in ("nvidia", "triton"):
        spec = importlib.util.find_spec(package)
        for folder in spec.submodule_search_locations or () if spec else ():
            for path in Path(folder).rglob("cuobjdump"):
                return str(path)
    return None


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode",
    [
        "--no-compress",
        "--compress-mode=size",
        "--compress-mode=speed",
        "--compress-mode=balance",
        "",
    ],
)
@pytest.mark.parametrize(
    "targets",
    [
        "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=compute_90",
        (
            "-gencode arch=compute_90a,code=[sm_90a,compute_90a] -gencode "
            "arch=compute_90,code=compute_90"
        ),
        (
            "-gencode arch=compute_75,code=sm_75 -gencode arch=compute_103a,code=sm_103a -gencode "
            "arch=compute_120,code=[sm_120,compute_120]"
        ),
        "-gencode arch=compute_100f,code=[sm_100f,compute_100f]",
    ],
)
def test_against_cuobjdump(prerequisite, nvcc, tmp_path, mode, targets):
    tool = cuobjdump()
    prerequisite(tool, "cuobjdump (pip install nvidia-cuda-cuobjdump)")
    made = tmp_path / "made.fatbin"
    command = [
        nvcc,
        "-fatbin",
        *targets.split(),
        *mode.split(),
        "-o",
        str(made),
        str(DATA / "scale.cu"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    listed = subprocess.run(
        [tool, "--list-elf", "--list-ptx", str(made)], capture_output=True, text=True, check=False
    ).stdout
    names = re.findall(r"\.sm_(\d+[af]?)\.(cubin|ptx)", listed)
    (codes,) = scanned(made.read_bytes())
    # cuobjdump does not tell family-specific machine code from plain one.
    ours = [
        (
            code.architecture.replace(".", "").rstrip("f" if code.kind == "sass" else ""),
            "cubin" if code.kind == "sass" else "ptx",
        )
        for code in codes.codes
    ]
    assert sorted(ours) == sorted(names)
    version = re.search(
        r"release (\d+)\.(\d+)",
        subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout,
    )
    if int(version.group(1)) >= 13:
        assert {code.version for code in codes.codes if code.kind == "ptx"} <= {
            f"{int(version.group(1)) - 4}.{version.group(2)}"
        }
