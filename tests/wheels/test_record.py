"""From a wheel to a build of the matrix: which members, what is said of them, and how it is
merged.
"""

import io
import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wheel_scan.builds import _joined, builds_of, merge
from wheel_scan.members import PROFILES, bundled, choose_wheel, wanted
from wheel_scan.record import Records, _elf_parts, _family, read_wheel

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (
            [
                "a-1-cp39-cp39-linux_x86_64.whl",
                "a-1-cp312-cp312-linux_x86_64.whl",
                "a-1-cp313-cp313t-linux_x86_64.whl",
            ],
            1,
        ),
        (["a-1-cp38-abi3-manylinux1_x86_64.whl", "a-1-cp312-cp312-manylinux1_x86_64.whl"], 0),
        (
            [
                "a-1-py3-none-any.whl",
                "a-1-py3-none-manylinux_2_28_x86_64.whl",
                "a-1-py3-none-win_amd64.whl",
            ],
            1,
        ),
        (["a-1-py3-none-any.whl", "a-1-cp310-abi3-manylinux2014_aarch64.whl"], 0),
        (["a-1-cp310-cp310-win_amd64.whl", "a-1.tar.gz"], None),
    ],
)
def test_which_wheel(names, chosen):
    assert choose_wheel(names, "x86_64") == (None if chosen is None else names[chosen])


def test_which_members():
    names = [
        "torch/version.py",
        "torch/lib/libtorch_cuda.so",
        "torch/lib/libtorch_python.so",
        "torch/lib/libcudnn.so.9",
        "torch/x/version.py",
    ]
    assert [name for name, _ in wanted(PROFILES["torch"], names, deep=False)] == [
        "torch/lib/libtorch_python.so",
        "torch/version.py",
    ]
    assert ("torch/lib/libtorch_cuda.so", "code") in list(
        wanted(PROFILES["torch"], names, deep=True)
    )
    assert bundled([*names, "a.libs/libgomp-a34b3233.so.1.0.0", "a/_C.abi3.so"]) == [
        "libcudnn.so.9",
        "libgomp-a34b3233.so.1.0.0",
    ]


@pytest.mark.parametrize(
    ("kernel", "family"),
    [
        ("_ZN6marlin6MarlinILl1125899906910725EEEvPK4int4", "marlin::Marlin"),
        (
            "_ZN71_GLOBAL__N__d1ef4c6b_4_x_cu_00000000_00000000_0_000000_000000000_00000005scaleEv",
            "scale",
        ),
        ("_Z5scalePf", "scale"),
        ("plain_c_kernel", "plain_c_kernel"),
    ],
)
def test_family_of_a_kernel(kernel, family):
    assert _family(kernel) == family


def wheel(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(name.replace("__", "/"), content)
    return file.getvalue()


def fatbin(name):
    return (DATA / f"{name}.fatbin").read_bytes()


def read(archive, package, may_read=lambda _: True, record=None, kept=lambda _: None):
    record = record or {"sha256": "0" * 64, "file": "a.whl", "members": {}}
    complete = read_wheel(archive, record, PROFILES[package], False, may_read, kept)
    return record, complete


def test_a_wheel(opened):
    content = wheel(
        **{
            "vllm___C.abi3.so": fatbin("plain") + fatbin("empty"),
            "vllm__fa__two.so": fatbin("speed"),
            "vllm__code.py": b"x",
        }
    )
    record, complete = read(opened(content), "vllm")
    assert complete
    (build,) = builds_of("vllm", record)
    assert build["sass"] == ["7.5", "8.0"]
    assert build["entries"] == [
        "sass=7.5,8.0;ptx=8.0@9.0;in=fa/two;kernels=scale",
        "sass=8.0;ptx=9.0@9.0;in=_C;kernels=scale",
    ]
    assert build["ptx_cuda"] == "13.0"


def test_what_was_read_is_not_read_again(opened, server, tmp_path):
    content = wheel(
        **{"vllm__a.so": fatbin("plain"), "vllm__b.so": os.urandom(200_000) + fatbin("speed")}
    )
    records = Records(str(tmp_path))
    record, complete = read(
        opened(content), "vllm", may_read=lambda size: size < 10_000, kept=records.keep
    )
    assert not complete
    assert list(record["members"]) == ["vllm/a.so"]
    again = records.load("0" * 64)
    archive = opened(content)
    record, complete = read(archive, "vllm", record=again)
    assert complete
    assert set(record["members"]) == {"vllm/a.so", "vllm/b.so"}
    assert records.load("1" * 64) is None


def test_merging(opened, tmp_path):
    record, _ = read(opened(wheel(**{"vllm___C.so": fatbin("speed")})), "vllm")
    records = Records(str(tmp_path / "cache"))
    records.keep(record)
    results = tmp_path / "scanned.json"
    results.write_text(json.dumps({"vllm": {"x86_64": {"1.0": "0" * 64, "9.9": "0" * 64}}}))
    kept = [
        {"index_name": "github", "cuda": "12.9", "source": "x"},
        {"cuda": "13.0", "architecture": "aarch64", "source": "x"},
    ]
    before = {
        "cuda": "12.8",
        "sass": ["8.0", "9.0"],
        "torch": "2.9",
        "trust": "reported",
        "source": "a guess",
    }
    release = {
        "version": "1.0",
        "released": "2025-01-01",
        "requires": ["torch"],
        "builds": [before, *kept],
    }
    document = {
        "schema": 1,
        "name": "vllm",
        "source": "s",
        "date": "2026-01-01",
        "trust": "established",
        "releases": [release],
    }
    path = tmp_path / "vllm.json"
    path.write_text(json.dumps(document))
    assert any("left for another run" in line for line in merge(tmp_path, results, records))
    os.utime(path, (1, 1))
    lines = list(merge(tmp_path, results, records))
    assert "vllm 1.0 x86_64: sass: 8.0 9.0 → 7.5 8.0" in lines
    assert "vllm 9.9: is not in the package file" in lines
    builds = json.loads(path.read_text())["releases"][0]["builds"]
    assert builds[1:] == kept
    assert (builds[0]["cuda"], builds[0]["torch"], builds[0]["sass"]) == (
        "12.8",
        "2.9",
        ["7.5", "8.0"],
    )
    assert "trust" not in builds[0]
    os.utime(path, (1, 1))
    assert not any(
        "written" in line for line in merge(tmp_path, results, records)
    )  # again changes nothing


def test_the_wheel_of_one_machine_says_nothing_of_another(opened, tmp_path):
    records = Records(str(tmp_path / "cache"))
    for sha256, name in (("1" * 64, "plain"), ("2" * 64, "speed")):
        record, _ = read(opened(wheel(**{"vllm___C.so": fatbin(name)})), "vllm")
        records.keep({**record, "sha256": sha256})
    results = tmp_path / "listing.json"
    listing = {"x86_64": {"1.0": "1" * 64}, "aarch64": {"1.0": "2" * 64}}
    results.write_text(json.dumps({"vllm": listing}))
    before = [
        {"cuda": "12.8", "sass": ["9.0"], "source": "x"},
        {"cuda": "13.0", "architecture": "aarch64", "trust": "reported", "source": "not read"},
        {"index_name": "github", "cuda": "12.9", "architecture": "aarch64", "source": "x"},
    ]
    release = {"version": "1.0", "released": "2025-01-01", "requires": [], "builds": before}
    document = {"schema": 1, "name": "vllm", "source": "s", "date": "2026-01-01"}
    path = tmp_path / "vllm.json"
    path.write_text(json.dumps({**document, "trust": "established", "releases": [release]}))
    os.utime(path, (1, 1))
    list(merge(tmp_path, results, records))
    x86, arm, elsewhere = json.loads(path.read_text())["releases"][0]["builds"]
    assert (x86["cuda"], x86["sass"], x86.get("architecture")) == ("12.8", ["8.0"], None)
    assert (arm["cuda"], arm["sass"], arm["architecture"]) == ("13.0", ["7.5", "8.0"], "aarch64")
    assert "trust" not in arm
    assert elsewhere == before[2]


@pytest.mark.parametrize(("content", "cuda"), [(b"no code", None), (fatbin("speed"), "13.0")])
def test_a_cuda_that_was_supposed_goes_where_the_wheel_has_no_code(opened, content, cuda):
    record, _ = read(opened(wheel(**{"vllm___C.so": content})), "vllm")
    before = {"cuda": "13.0", "torch": "2.9", "trust": "reported", "source": "as torch"}
    joined = _joined("vllm", before, builds_of("vllm", record)[0])
    assert (joined.get("cuda"), joined.get("torch")) == (cuda, "2.9")


def test_one_build_for_each_alternative(opened):
    members = {
        f"bitsandbytes__libbitsandbytes_cuda{number}.so": fatbin("speed")
        for number in ("118", "130")
    }
    record, _ = read(opened(wheel(**members)), "bitsandbytes")
    assert [build["cuda"] for build in builds_of("bitsandbytes", record)] == ["11.8", "13.0"]


def test_elf_parts_of_a_real_library(prerequisite, tmp_path):
    prerequisite(shutil.which("gcc"), "gcc")
    source, made = tmp_path / "a.c", tmp_path / "a.so"
    source.write_text("#include <math.h>\ndouble f(double x) { return pow(x, 2.5); }\n")
    subprocess.run(
        [
            "gcc",
            "-shared",
            "-fPIC",
            "-O0",
            "-Wl,-soname,libf.so.3",
            "-o",
            str(made),
            str(source),
            "-lm",
        ],
        check=True,
    )
    with made.open("rb") as file:
        found = _elf_parts(file.fileno())
    assert found["soname"] == "libf.so.3"
    assert {"libm.so.6", "libc.so.6"} & set(found["needed"])
    assert found["glibc"]


@given(st.binary(max_size=2000))
@settings(max_examples=200)
def test_elf_parts_of_any_bytes(data):
    with tempfile.TemporaryFile() as file:
        file.write(b"\x7fELF\x02\x01\x01" + data)
        file.flush()
        assert isinstance(_elf_parts(file.fileno()), dict)
