"""Real messages of the loader, the shell, pip, uv and Python."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import zipfile

import pytest

from .traces import roots


def ended(*command, **options):
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, **options
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("number", "signature"),
    [
        (signal.SIGKILL, "killed-by-signal"),
        (signal.SIGSEGV, "segmentation-fault"),
        (signal.SIGFPE, "floating-point-exception"),
        (signal.SIGBUS, "bus-error"),
    ],
)
def test_exit_codes_of_a_real_shell(said, number, signature):
    script = f"bash -c 'kill -{number.value} $$'; echo \"process ended: exit code $?\""
    found = said(ended("bash", "-c", script, env={**os.environ, "LC_ALL": "C"}))
    assert signature in {trace.finding.subject for trace in found.traces}


@pytest.fixture
def library(tmp_path, prerequisite):
    prerequisite(shutil.which("gcc") is not None, "gcc is not installed")
    (tmp_path / "have.c").write_text("int have(void) { return 1; }\n")
    (tmp_path / "want.c").write_text(
        "int _ZN3c105ErrorC2Ev(void); int have(void); int want(void) { return _ZN3c105ErrorC2Ev() "
        "+ have(); }\n"
    )
    subprocess.run(
        [
            "gcc",
            "-shared",
            "-fPIC",
            "-o",
            tmp_path / "libcudart.so.12",
            tmp_path / "have.c",
            "-Wl,-soname,libcudart.so.12",
        ],
        check=True,
    )
    made = tmp_path / "flash_attn_2_cuda.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", made, tmp_path / "want.c", tmp_path / "libcudart.so.12"],
        check=True,
    )
    return made


def load(path, **variables):
    return ended(
        sys.executable,
        "-c",
        f"import ctypes, os; ctypes.CDLL({str(path)!r}, os.RTLD_NOW)",
        env={**os.environ, **variables},
    )


def test_the_loaders_undefined_symbol(said, library):
    found = said(load(library, LD_LIBRARY_PATH=str(library.parent)))
    assert roots(found) == [("flash-attn", "abi-mismatch", "likely")]


def test_the_loaders_missing_library(said, library):
    found = said(load(library))
    assert roots(found)[0][1:] == ("cuda-major-mismatch", "likely")


def test_a_library_whose_number_is_no_cuda_version(said, library):
    cudnn = library.parent / "libcudnn.so.9"
    subprocess.run(
        [
            "gcc",
            "-shared",
            "-fPIC",
            "-o",
            cudnn,
            library.parent / "have.c",
            "-Wl,-soname,libcudnn.so.9",
        ],
        check=True,
    )
    (library.parent / "call.c").write_text("int have(void); int call(void) { return have(); }\n")
    made = library.parent / "libprovider.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", made, library.parent / "call.c", cudnn], check=True
    )
    assert roots(said(load(made))) == [("libcudnn", "missing", "likely")]


@pytest.mark.parametrize(
    ("name", "function", "cause"),
    [
        ("libmade.so.1", "newer", ("version-mismatch", "likely")),
        ("libbitsandbytes_cpu.so", "cquantize_blockwise_fp16_nf4", ("missing", "established")),
        ("libnccl.so.2", "ncclCommWindowRegister", ("shadowed", "likely")),
    ],
)
def test_a_function_that_ctypes_does_not_find(said, library, name, function, cause):
    """The library is not the one that asks."""
    made = library.parent / name
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", made, library.parent / "have.c"], check=True)
    found = said(
        ended(sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(made)!r}).{function}")
    )
    assert [root[1:] for root in roots(found)] == [cause]
    assert not any(
        "asks for" in trace.finding.message or "by /" in trace.finding.message
        for trace in found.traces
    )


def test_the_loaders_missing_version(said, tmp_path, prerequisite):
    prerequisite(shutil.which("gcc") is not None, "gcc is not installed")
    (tmp_path / "map").write_text("GLIBC_2.99 { global: newer; };\n")
    (tmp_path / "new.c").write_text("int newer(void) { return 1; }\n")
    (tmp_path / "use.c").write_text("int newer(void); int use(void) { return newer(); }\n")
    build = ["gcc", "-shared", "-fPIC"]
    subprocess.run(
        [
            *build,
            "-o",
            tmp_path / "libx.so",
            tmp_path / "new.c",
            f"-Wl,--version-script={tmp_path / 'map'},-soname,libx.so",
        ],
        check=True,
    )
    subprocess.run(
        [*build, "-o", tmp_path / "use.so", tmp_path / "use.c", tmp_path / "libx.so"], check=True
    )
    subprocess.run(
        [*build, "-o", tmp_path / "libx.so", tmp_path / "new.c", "-Wl,-soname,libx.so"], check=True
    )
    (tmp_path / "old").write_text("GLIBC_2.1 { global: newer; };\n")
    subprocess.run(
        [
            *build,
            "-o",
            tmp_path / "libx.so",
            tmp_path / "new.c",
            f"-Wl,--version-script={tmp_path / 'old'},-soname,libx.so",
        ],
        check=True,
    )
    text = load(tmp_path / "use.so", LD_LIBRARY_PATH=str(tmp_path))
    assert "GLIBC_2.99' not found" in text
    assert roots(said(text)) == [("glibc", "too-old", "established")]


def test_pythons_import_errors(said):
    text = ended(sys.executable, "-c", "from json import no_such_name")
    assert roots(said(text)) == [("json", "version-mismatch", "likely")]
    assert roots(said(ended(sys.executable, "-c", "import flash_attn_not_there"))) == [
        ("flash-attn-not-there", "missing", "likely")
    ]


def test_a_file_that_hides_a_module_by_its_name(said, tmp_path):
    """Python 3.8 to 3.12 and 3.13 have different words for it."""
    hiding = tmp_path / "colorsys.py"
    hiding.write_text("import colorsys\ncolorsys.rgb_to_hsv\n")
    text = ended(sys.executable, str(hiding))
    assert {
        (suspect.component, suspect.kind)
        for trace in said(text).traces
        for suspect in trace.suspects
    } >= {("colorsys", "shadowed")}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.11 and newer say it")
def test_a_submodule_that_is_not_imported_to_its_end(said, tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "__init__.py").write_text("")
    (tmp_path / "made" / "part.py").write_text("import made\nmade.part.name\n")
    text = ended(
        sys.executable, "-c", "import made.part", env={**os.environ, "PYTHONPATH": str(tmp_path)}
    )
    found = [trace for trace in said(text).traces if trace.finding.subject == "import-circular"]
    components = {suspect.component for trace in found for suspect in trace.suspects}
    assert "made" in components
    assert "?" not in components


@pytest.fixture
def index(tmp_path):
    """Wheels that exclude each other: a needs c 1, b needs c 2."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, version, needs in (
        ("made-a", "1", "made-c==1"),
        ("made-b", "1", "made-c==2"),
        ("made-c", "1", ""),
        ("made-c", "2", ""),
    ):
        stem = f"{name.replace('-', '_')}-{version}"
        with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
            requires = f"Requires-Dist: {needs}\n" if needs else ""
            wheel.writestr(
                f"{stem}.dist-info/METADATA",
                f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
            )
            wheel.writestr(
                f"{stem}.dist-info/WHEEL",
                "Wheel-Version: 1.0\nGenerator: made\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            )
            wheel.writestr(f"{stem}.dist-info/RECORD", "")
    return str(folder)


@pytest.mark.parametrize(
    ("wanted", "excluded"),
    [
        (("made-a", "made-b"), ("made-a 1 asks for made-c==1", "made-b 1 for made-c==2")),
        (("made-a", "made-c==2"), ("the user asks for made-c==2", "made-a 1 for made-c==1")),
    ],
)
def test_pips_resolution_impossible(said, index, tmp_path, wanted, excluded):
    target = str(tmp_path / "target")
    text = ended(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-index",
        "--find-links",
        index,
        "--target",
        target,
        *wanted,
    )
    assert "ResolutionImpossible" in text
    assert roots(said(text)) == [("requirements", "conflict", "established")]
    (message,) = [trace.finding.message for trace in said(text).traces]
    assert all(words in message for words in excluded), message


def test_each_refusal_of_pip_has_its_own_pair(said, index, tmp_path):
    """The same package is asked for in both, by others: nobody of the one is held against the
    other.
    """
    install = [sys.executable, "-m", "pip", "install", "--no-index", "--find-links", index]
    install += ["--target", str(tmp_path / "target")]
    text = ended(*install, "made-a", "made-c==2") + ended(*install, "made-b", "made-c==1")
    (message,) = [trace.finding.message for trace in said(text).traces]
    first = "the user asks for made-c==1, made-b 1 for made-c==2"
    second = "the user asks for made-c==2, made-a 1 for made-c==1"
    assert f": {first}; {second}." in message


def test_uvs_no_solution(said, index, tmp_path, prerequisite):
    uv = shutil.which("uv") or os.path.join(os.path.dirname(sys.executable), "uv")
    prerequisite(os.path.exists(uv), "uv is not installed")
    command = (
        uv,
        "pip",
        "install",
        "--no-index",
        "--find-links",
        index,
        "--target",
        str(tmp_path / "target"),
        "made-a",
        "made-b",
    )
    text = ended(*command, env={**os.environ, "NO_COLOR": "1"})
    assert roots(said(text)) == [("requirements", "conflict", "likely")]
    (message,) = [trace.finding.message for trace in said(text).traces]
    assert "made-a" in message
    assert "for made-c==1" in message
    assert "made-b" in message
    assert "for made-c==2" in message


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_the_shells_export_of_a_dotted_key(said, shell, prerequisite):
    prerequisite(shutil.which(shell), f"{shell} is not installed")
    text = ended(shell, "-c", "export a.b.c=0.6", env={**os.environ, "LC_ALL": "C"})
    assert roots(said(text)) == [("configuration", "unsupported", "established")]


def test_files_that_cannot_be_opened_any_more(said):
    text = ended(
        "bash",
        "-c",
        f"ulimit -n 20; exec {sys.executable} -c 'import os; [os.dup(0) for _ in range(40)]'",
    )
    assert roots(said(text)) == [("rlimit-nofile", "too-small", "established")]


def test_a_full_tmpfs_is_a_bus_error(said, tmp_path, prerequisite):
    """The kernel itself: memory that a full /dev/shm cannot back raises SIGBUS."""
    mounted = (
        subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
    )
    prerequisite(mounted, "no mount namespace can be made here")
    script = (
        f"ulimit -c 0; mount -t tmpfs -o size=64k none {tmp_path} && {sys.executable} -c 'import "
        "mmap, os; "
        f'f = os.open("{tmp_path}/x", os.O_RDWR | os.O_CREAT); os.ftruncate(f, 1 << 20); '
        "mmap.mmap(f, 1 << 20).write(bytes(1 << 20))'; echo exit code $?"
    )
    text = ended("unshare", "-m", "bash", "-c", script, env={**os.environ, "LC_ALL": "C"})
    assert "135" in text, text
    assert "bus-error" in {trace.finding.subject for trace in said(text).traces}
