"""``envdoctor lock`` with real uv against an index of our own: closed files, faults of the index,
installs by pip and by uv.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ..lock.closing.synthetic_index import Index, served
from .conftest import COMMAND, environment

PYTHON = f"3.{min(sys.version_info[1], 12)}"  # of the lock: torch 2.4.0 has wheels up to 3.12
H20 = ("--assume", "gpu=H20", "nvidia-driver=535.129.03", "glibc=2.31", "--python-version", PYTHON)
CLOSED = {
    "constraints.txt",
    "envdoctor.lock.json",
    "overrides.txt",
    "pylock.toml",
    "requirements.txt",
}


@pytest.fixture
def uv(prerequisite):
    find = pytest.importorskip("uv") if not os.environ.get("CI") else __import__("uv")
    prerequisite(find, "uv")
    return find.find_uv_bin()


@pytest.fixture
def lock(envdoctor, tmp_path, uv):
    """Return a function that locks against an index, with a cache and a pip configuration of its
    own.
    """

    def run(*arguments, env=None, **options):
        variables = {
            "HOME": str(tmp_path),
            "UV_CACHE_DIR": str(tmp_path / "cache"),
            "UV_HTTP_RETRIES": "0",
            "PIP_CONFIG_FILE": os.devnull,
            **(env or {}),
        }
        return envdoctor("lock", *arguments, env=environment(**variables), **options)

    return run


@pytest.fixture(scope="session")
def torch_pins(tmp_path_factory):
    """Return the core pins of torch 2.4.0 on an H20, as this envdoctor chooses them."""
    folder = tmp_path_factory.mktemp("pins")
    subprocess.run(
        [*COMMAND, "lock", "--no-close", "torch==2.4.0", *H20, "-o", folder],
        env=environment(),
        check=True,
        capture_output=True,
    )
    return json.loads((folder / "envdoctor.lock.json").read_text())["pins"]


@pytest.fixture
def index(torch_pins):
    """Serve wheels of the same shape: torch pins its nvidia packages exactly, and needs two
    packages that the matrix does not know.
    """
    found = Index()
    pinned = {pin["name"]: pin["version"] for pin in torch_pins}
    wanted = {**pinned, "nvidia-cublas-cu12": "12.1.3.1"}
    exact = [
        f"{name}=={wanted[name]}" if name.startswith("nvidia-") else name
        for name in pinned
        if name != "torch"
    ]
    for name, version in pinned.items():
        found.add(name, version, [*exact, "filelock>=3", "jinja2"] if name == "torch" else [])
    found.add("nvidia-cublas-cu12", "12.1.3.1").add("filelock", "3.20.0").add(
        "filelock", "2.0"
    ).add("jinja2", "3.1.6", ["markupsafe>=2"]).add("markupsafe", "3.0.3")
    with served(found):
        yield found


def written(folder):
    return {entry.name: entry.read_text() for entry in folder.iterdir()}


def test_every_line_is_pinned_and_hashed_and_says_why_it_is_there(lock, index, tmp_path):
    done = lock("torch==2.4.0", *H20, "--index-url", index.address, "-o", tmp_path / "lock")
    assert done.returncode == 0, done.stderr
    files = written(tmp_path / "lock")
    assert set(files) >= CLOSED
    assert files["requirements.txt"].startswith("# a full lock: every line is pinned and hashed")
    document = json.loads(files["envdoctor.lock.json"])
    assert document["closed"] is True
    lines = {line["name"]: line for line in document["closure"]["lines"]}
    assert set(lines) >= {"torch", "filelock", "jinja2", "markupsafe", "nvidia-cublas-cu12"}
    for name, line in lines.items():
        assert set(line["hashes"]) <= index.hashes(name), name
        assert line["hashes"], name
    assert lines["markupsafe"]["via"] == ["jinja2"]
    assert lines["nvidia-cublas-cu12"]["version"] == "12.3.4.1"
    assert "[row cublas-12.1-sigfpe-h20]" in files["requirements.txt"]
    assert "nvidia-cublas-cu12==12.3.4.1" in files["overrides.txt"].splitlines()
    assert "markupsafe==3.0.3" in files["constraints.txt"].splitlines()
    assert "nvidia-cublas-cu12==12.3.4.1" not in files["constraints.txt"].splitlines()


def test_the_pylock_is_one_to_packaging_and_to_uv(lock, index, uv, tmp_path, prerequisite):
    from importlib import import_module
    from importlib.util import find_spec

    prerequisite(find_spec("packaging.pylock"), "packaging 26 or newer")
    pylock = import_module("packaging.pylock")

    tomllib = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    assert (
        lock("torch==2.4.0", *H20, "--index-url", index.address, "-o", tmp_path / "lock").returncode
        == 0
    )
    path = tmp_path / "lock" / "pylock.toml"
    found = pylock.Pylock.from_dict(tomllib.loads(path.read_text()))
    assert {str(package.name): str(package.version) for package in found.packages}[
        "nvidia-cublas-cu12"
    ] == "12.3.4.1"
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, tmp_path / "venv"], check=True)
    for name in ("pylock.toml", "requirements.txt"):
        command = [
            uv,
            "pip",
            "sync",
            "--dry-run",
            "--python",
            tmp_path / "venv",
            "--index-url",
            index.address,
            tmp_path / "lock" / name,
        ]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env=environment(HOME=str(tmp_path), UV_CACHE_DIR=str(tmp_path / "cache")),
        )
        assert done.returncode == 0, done.stderr
        assert f"Would install {len(found.packages)} packages" in done.stderr


@pytest.fixture
def install(index, uv, environment_with_pip, tmp_path):
    """Return a function that runs the command of a header in a new environment and returns what pip
    then lists.
    """

    def run(folder, tool):
        venv = tmp_path / "venv"
        environment_with_pip(venv)
        header = (folder / "requirements.txt").read_text().splitlines()
        (command,) = [
            line.partition(": ")[2]
            for line in header
            if line.startswith(f"# install with {tool}: ")
        ]
        variables = environment(
            PATH=f"{venv / 'bin'}:{Path(uv).parent}:{os.environ['PATH']}",
            HOME=str(tmp_path),  # uv keeps files there
            VIRTUAL_ENV=str(venv),
            UV_CACHE_DIR=str(tmp_path / "cache"),
            UV_DEFAULT_INDEX=index.address,
            PIP_INDEX_URL=index.address,
            PIP_CONFIG_FILE=os.devnull,
            PIP_NO_CACHE_DIR="1",
        )
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}"],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        listed = subprocess.run(
            [venv / "bin" / "pip", "list", "--format", "json"],
            capture_output=True,
            text=True,
            check=True,
            env=variables,
        )
        return {entry["name"].lower(): entry["version"] for entry in json.loads(listed.stdout)}

    return run


@pytest.mark.parametrize(
    ("closed", "tool"),
    [
        (False, "uv"),
        pytest.param(False, "pip", marks=pytest.mark.slow),
        pytest.param(True, "uv", marks=pytest.mark.slow),
        pytest.param(True, "pip", marks=pytest.mark.slow),
    ],
)
def test_the_printed_command_installs_an_override_and_check_accepts_it(
    lock, install, envdoctor, index, tmp_path, tool, closed
):
    close = () if closed else ("--no-close",)
    assert (
        lock(
            "torch==2.4.0", *H20, *close, "--index-url", index.address, "-o", tmp_path / "lock"
        ).returncode
        == 0
    )
    versions = install(tmp_path / "lock", tool)
    assert versions["nvidia-cublas-cu12"] == "12.3.4.1"
    assert versions["torch"] == "2.4.0"
    assert versions["markupsafe"] == "3.0.3"
    checked = envdoctor(
        "check", "--python", tmp_path / "venv", *H20[:4], "--only", "ED2", "ED3", "--format", "json"
    )
    errors = [
        finding
        for finding in json.loads(checked.stdout)["findings"]
        if finding["severity"] == "error"
    ]
    assert errors == []


@pytest.mark.parametrize("tool", [pytest.param("uv", marks=pytest.mark.slow), "pip"])
def test_the_plain_build_is_locked_where_a_folder_has_the_same_release_with_a_label(
    lock, install, index, tmp_path, tool
):
    # What pip and uv prefer by themselves: 2.4.0+cpu is newer than 2.4.0 (PEP 440).
    other = Index().add("torch", "2.4.0+cpu").write(tmp_path / "wheels")
    done = lock(
        "torch==2.4.0",
        *H20,
        "--index-url",
        index.address,
        "--find-links",
        other,
        "-o",
        tmp_path / "lock",
    )
    assert done.returncode == 0, done.stderr
    files = written(tmp_path / "lock")
    assert "torch===2.4.0 \\" in files["requirements.txt"].splitlines()
    assert not [name for name, text in files.items() if str(tmp_path) in text]
    assert "uv's index strategy" not in files["requirements.txt"]  # one index
    torch = next(
        line
        for line in json.loads(files["envdoctor.lock.json"])["closure"]["lines"]
        if line["name"] == "torch"
    )
    assert set(torch["hashes"]) <= index.hashes("torch")
    assert install(tmp_path / "lock", tool)["torch"] == "2.4.0"


def test_what_only_a_folder_here_has_is_named_and_the_folder_is_not(lock, install, index, tmp_path):
    """A lock travels: no other machine has that folder."""
    held = {name: entry for name, entry in index.files.items() if entry[0] == "jinja2"}
    index.files = {name: entry for name, entry in index.files.items() if name not in held}
    folder = Index()
    folder.files = held
    place = folder.write(tmp_path / "wheels")
    done = lock(
        "torch==2.4.0",
        *H20,
        *("--index-url", index.address, "--extra-index-url", f"{index.address}../simple/"),
        *("--find-links", place, "-o", tmp_path / "lock"),
    )
    assert done.returncode == 0, done.stderr
    files = written(tmp_path / "lock")
    assert not [name for name, text in files.items() if str(tmp_path) in text or "file:" in text]
    assert "pylock.toml" not in files
    for name in ("requirements.txt", "install.sh", "Dockerfile", "environment.yml"):
        assert f"# indexes: {index.address.rstrip('/')}" in files[name], name
        assert "uv's index strategy: unsafe-best-match" in files[name]
        assert "from a folder of the machine that closed this: jinja2;" in files[name]
    assert 'echo "install.sh: jinja2 came from a folder' in files["install.sh"]
    assert "--index-strategy unsafe-best-match" in files["install.sh"]
    held_by = json.loads(files["envdoctor.lock.json"])["closure"]
    assert held_by["local"] == ["jinja2"]
    places = ("--index-url", index.address, "--find-links", place)
    done = lock("torch==2.4.0", *H20, *places, "--print", "pylock.toml")
    assert done.returncode == 2
    assert b"it needs an address for each file, and from a folder came jinja2" in done.stderr


def test_no_setup_code_runs_and_a_source_archive_tells_what_it_requires(lock, index, tmp_path):
    index.files = {name: entry for name, entry in index.files.items() if entry[0] != "jinja2"}
    egg_info = {
        "x.egg-info/SOURCES.txt": "setup.py\n",
        "x.egg-info/requires.txt": "markupsafe\n\n[dev]\nno-such-thing\n",
    }
    index.add_sdist(
        "jinja2",
        "3.1.6",
        {"PKG-INFO": "Metadata-Version: 2.1\nName: jinja2\nVersion: 3.1.6\n", **egg_info},
    )
    done = lock("torch==2.4.0", *H20, "--index-url", index.address, "-o", tmp_path / "lock")
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""  # progress is for terminals
    lines = {
        line["name"]: line
        for line in json.loads((tmp_path / "lock" / "envdoctor.lock.json").read_text())["closure"][
            "lines"
        ]
    }
    assert lines["markupsafe"]["via"] == ["jinja2"]
    assert set(lines["jinja2"]["hashes"]) == index.hashes("jinja2")


def test_a_source_archive_that_does_not_tell_is_no_full_lock(lock, index, tmp_path):
    index.files = {name: entry for name, entry in index.files.items() if entry[0] != "jinja2"}
    index.add_sdist(
        "jinja2", "3.1.6", {"PKG-INFO": "Metadata-Version: 1.0\nName: jinja2\nVersion: 3.1.6\n"}
    )
    done = lock("torch==2.4.0", *H20, "--index-url", index.address, "-o", tmp_path / "lock")
    assert done.returncode == 1
    assert b"--allow-build jinja2" in done.stderr
    assert "pylock.toml" not in written(tmp_path / "lock")


def test_what_uv_refuses_is_shown_below_our_choice_with_what_to_loosen(lock, index, tmp_path):
    index.files = {name: entry for name, entry in index.files.items() if entry[0] != "markupsafe"}
    index.add("markupsafe", "1.0")
    done = lock("torch==2.4.0", *H20, "--index-url", index.address, "-o", tmp_path / "lock")
    text = done.stderr.decode()
    assert done.returncode == 1
    assert "No solution found" in text
    assert "markupsafe" in text
    assert "what could be loosened" in text
    files = written(tmp_path / "lock")
    assert CLOSED - set(files) == {"pylock.toml"}
    assert "torch==2.4.0" in files["requirements.txt"].splitlines()
    assert "core pins, not a full lock" in files["requirements.txt"].splitlines()[0]


def test_without_uv_there_are_core_pins_that_say_so(envdoctor, tmp_path):
    (tmp_path / "uv.py").write_text("raise ImportError('not installed')\n")
    variables = environment(
        PATH="/usr/bin:/bin", PYTHONPATH=f"{tmp_path}:{environment()['PYTHONPATH']}"
    )
    done = envdoctor("lock", "torch==2.4.0", *H20, "-o", tmp_path / "lock", env=variables)
    assert done.returncode == 0
    assert "pip install uv" in (tmp_path / "lock" / "requirements.txt").read_text().splitlines()[0]


@pytest.mark.parametrize("fault", ["down", "half-way", "hangs", "offline"])
def test_without_an_index_there_are_core_pins_and_a_closed_lock_stays(lock, index, tmp_path, fault):
    folder = tmp_path / "lock"
    assert lock("torch==2.4.0", *H20, "--index-url", index.address, "-o", folder).returncode == 0
    before = written(folder)
    index.requests.clear()
    address, more = index.address, ()
    if fault == "down":
        address = "http://127.0.0.1:9/simple/"
    elif fault == "half-way":
        index.dies_after = 5
    elif fault == "hangs":
        index.hangs = True
    else:
        more = ("--offline",)
    variables = {"UV_CACHE_DIR": str(tmp_path / "empty"), "UV_HTTP_TIMEOUT": "1"}
    kept = lock("torch==2.4.0", *H20, *more, "--index-url", address, "-o", folder, env=variables)
    assert kept.returncode == 2, kept.stderr
    assert b"left as they are" in kept.stderr
    assert written(folder) == before
    if fault == "half-way":
        assert len(index.requests) > 5
        index.requests.clear()
    done = lock(
        "torch==2.4.0", *H20, *more, "--index-url", address, "-o", tmp_path / "other", env=variables
    )
    assert done.returncode == 1
    assert b"not closed, core pins only" in done.stderr
    assert (
        "core pins, not a full lock"
        in (tmp_path / "other" / "requirements.txt").read_text().splitlines()[0]
    )
    assert json.loads((tmp_path / "other" / "envdoctor.lock.json").read_text())["closed"] is False
    if fault == "down":
        assert b"Failed to fetch: http://127.0.0.1:9/simple/" in done.stderr
        assert f"install --index-url {address}" in (tmp_path / "other" / "install.sh").read_text()


def test_an_extra_that_there_is_not_is_named(lock, index, tmp_path):
    """uv only warns of it, and so does pip; of what the matrix knows no other extra is like it."""
    done = lock(
        *("torch[gpu]==2.4.0", "jinja2[i18n]", *H20, "--index-url", index.address),
        *("-o", tmp_path / "lock"),
    )
    assert done.returncode == 0, done.stderr
    for name in ("requirements.txt", "install.sh"):
        text = (tmp_path / "lock" / name).read_text()
        assert "# note: torch[gpu]: there is no such extra, so it adds nothing" in text
        assert "# note: jinja2[i18n]: there is no such extra, so it adds nothing" in text


def test_core_pins_asked_for_replace_a_closed_lock_whole(lock, index, tmp_path):
    folder = tmp_path / "lock"
    assert lock("torch==2.4.0", *H20, "--index-url", index.address, "-o", folder).returncode == 0
    assert lock("torch==2.4.0", *H20, "--no-close", "-o", folder).returncode == 0
    assert CLOSED - set(written(folder)) == {"pylock.toml"}


def test_an_interruption_leaves_the_files_as_they_were_and_no_child(index, uv, tmp_path):
    folder = tmp_path / "lock"
    folder.mkdir()
    (folder / "requirements.txt").write_text("mine\n")
    index.hangs = True
    command = [
        *COMMAND,
        "lock",
        "torch==2.4.0",
        *H20,
        "--index-url",
        index.address,
        "-o",
        str(folder),
    ]
    variables = environment(
        HOME=str(tmp_path),
        UV_CACHE_DIR=str(tmp_path / "cache"),
        TMPDIR=str(tmp_path),
        PIP_CONFIG_FILE=os.devnull,
    )
    child = subprocess.Popen(command, env=variables, stderr=subprocess.PIPE)
    end = time.monotonic() + 30
    while not index.requests and time.monotonic() < end:
        time.sleep(0.05)
    assert index.requests
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=20)
    assert child.returncode == 130
    assert b"interrupted" in errors
    assert written(folder) == {"requirements.txt": "mine\n"}
    assert not list(tmp_path.glob("envdoctor-*"))


def test_credentials_reach_the_index_and_no_file(lock, index, tmp_path):
    index.password = "s3cret"
    address = index.address.replace("://", "://user:s3cret@")
    done = lock("torch==2.4.0", *H20, "-o", tmp_path / "lock", env={"PIP_INDEX_URL": address})
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "lock" / "envdoctor.lock.json").read_text())["closed"] is True
    assert b"s3cret" not in done.stdout + done.stderr
    assert not [name for name, text in written(tmp_path / "lock").items() if "s3cret" in text]
    index.password = "changed"
    done = lock(
        "torch==2.4.0",
        *H20,
        "-o",
        tmp_path / "other",
        env={"PIP_INDEX_URL": address, "UV_CACHE_DIR": str(tmp_path / "empty")},
    )
    assert b"s3cret" not in done.stdout + done.stderr
    assert not [name for name, text in written(tmp_path / "other").items() if "s3cret" in text]


def test_what_the_matrix_does_not_know_is_closed_and_marked(lock, index, tmp_path):
    index.add("unheard-of", "1.0", ["torch>=2", "markupsafe"])
    done = lock(
        "torch==2.4.0", "unheard-of", *H20, "--index-url", index.address, "-o", tmp_path / "lock"
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "lock" / "requirements.txt").read_text()
    assert "# asked for; not judged by envdoctor\nunheard-of==1.0 \\" in text
    assert "unheard-of is not judged by envdoctor" in " ".join(done.stdout.decode().split())
    done = lock("torch==2.4.0", "unheard-of", *H20, "--no-close", "-o", tmp_path / "core")
    assert done.returncode == 0
    text = (tmp_path / "core" / "requirements.txt").read_text()
    assert "unheard-of" in text.splitlines()
    assert "# note: unheard-of is not judged by envdoctor" in text
    assert "not pinned" in text


def test_what_uv_brings_is_chosen_by_us_where_it_does_not_fit(lock, index, tmp_path):
    # Alone, uv takes the newest torch that it sees, and with it the cuBLAS that dies on an H20.
    index.add("unheard-of", "1.0", ["torch<2.5"])
    done = lock(
        "unheard-of",
        *H20,
        "--as-of",
        "2024-08-23",
        "--index-url",
        index.address,
        "-o",
        tmp_path / "lock",
    )
    assert done.returncode == 0, done.stderr
    lines = {
        line["name"]: line["version"]
        for line in json.loads((tmp_path / "lock" / "envdoctor.lock.json").read_text())["closure"][
            "lines"
        ]
    }
    assert lines["nvidia-cublas-cu12"] == "12.3.4.1"


def test_what_a_tail_package_needs_of_the_core_is_learned(lock, index, tmp_path):
    # Only metadata on the index says that jinja2 needs an old fsspec; the matrix does not know
    # jinja2.
    index.files = {name: entry for name, entry in index.files.items() if entry[0] != "jinja2"}
    index.add("jinja2", "3.1.6", ["fsspec<2024.4"]).add("fsspec", "2024.3.1")
    done = lock(
        "torch==2.4.0", "fsspec", *H20, "--index-url", index.address, "-o", tmp_path / "lock"
    )
    assert done.returncode == 0, done.stderr
    assert (
        "fsspec==2024.3.1 \\" in (tmp_path / "lock" / "requirements.txt").read_text().splitlines()
    )


def test_releases_of_a_tail_package_that_ask_for_different_things_are_tried_in_turn(
    lock, index, tmp_path
):
    # What uv says of all of them excludes itself; the one in between has a source archive alone,
    # whose hint says nothing of the others.
    index.files = {name: entry for name, entry in index.files.items() if entry[0] != "jinja2"}
    index.add("jinja2", "3.1.6", ["fsspec<2024.4"]).add("fsspec", "2024.3.1")
    index.add_sdist("jinja2", "3.2.0", {"PKG-INFO": "Metadata-Version: 2.2\nName: jinja2\n"})
    index.add("jinja2", "4.0", ["fsspec>=2031"])
    done = lock(
        "torch==2.4.0", "fsspec", *H20, "--index-url", index.address, "-o", tmp_path / "lock"
    )
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "lock" / "requirements.txt").read_text().splitlines()
    assert "fsspec==2024.3.1 \\" in lines
    assert "jinja2==3.1.6 \\" in lines


@pytest.mark.parametrize("cure", [True, False])
def test_what_uv_brings_and_check_warns_of_is_chosen_again_or_named(lock, index, tmp_path, cure):
    # A compiler of another CUDA minor than the headers that torch pins: no row says so, a rule does.
    needed = "nvidia-cuda-nvcc-cu12" if cure else "nvidia-cuda-nvcc-cu12>12.4"
    index.add("unheard-of", "1.0", ["torch", "deepspeed", needed]).add("deepspeed", "0.15.4")
    index.add("nvidia-cuda-nvcc-cu12", "12.5.40").add("nvidia-cuda-nvcc-cu12", "12.1.105")
    done = lock(
        *("torch==2.4.0", "unheard-of", *H20, "--index-url", index.address),
        *("-o", tmp_path / "lock"),
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "lock" / "requirements.txt").read_text()
    warned = [line for line in text.splitlines() if line.endswith("[ED204]")]
    if cure:
        assert "nvidia-cuda-nvcc-cu12==12.1.105 \\" in text.splitlines()
        assert not warned
    else:
        assert "nvidia-cuda-nvcc-cu12==12.5.40 \\" in text.splitlines()
        assert (
            "nvidia-cuda-nvcc-cu12 12.5.40 compiles against headers of another minor" in warned[0]
        )


def test_what_check_refuses_of_what_uv_brought_is_chosen_again(lock, index, tmp_path):
    # adapters, of which the matrix has no releases, imports what huggingface-hub 1.0 removed.
    index.add("adapters", "1.2.0", ["huggingface-hub"]).add("huggingface-hub", "1.0.0")
    for pin in pins_of("numpy==2.1.0", "huggingface-hub<1"):
        index.add(pin["name"], pin["version"])
    request = ("numpy==2.1.0", "adapters==1.2.0", *H20, "--index-url", index.address)
    done = lock(*request, "-o", tmp_path / "lock")
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "lock" / "requirements.txt").read_text().splitlines()
    assert [line for line in lines if line.startswith("huggingface-hub==0.")]
    assert "check refuses" not in done.stdout.decode()


@pytest.mark.parametrize("lacking", ["torch", "jinja2"])
def test_what_the_index_lacks_is_no_reason_for_nothing(lock, index, tmp_path, lacking):
    # A mirror that is behind: it lacks the newest release, or something that this asks for.
    for pin in pins_of("torch==2.3.1"):
        index.add(pin["name"], pin["version"])
    index.files = {
        name: entry for name, entry in index.files.items() if not name.startswith("torch-2.4.0")
    }
    if lacking == "jinja2":
        index.add("torch", "2.4.0", ["jinja2>=99"])
    done = lock(
        "torch>=2.3.1,<=2.4.0",
        *H20,
        "--as-of",
        "2024-08-23",
        "--index-url",
        index.address,
        "-o",
        tmp_path / "lock",
    )
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "lock" / "envdoctor.lock.json").read_text())
    assert document["closed"] is True
    torch = next(pin for pin in document["pins"] if pin["name"] == "torch")
    assert torch["version"] == "2.3.1"
    (note,) = [note for note in document["notes"] if "the index at hand" in note]
    assert "torch 2.4.0" in note
    assert ("jinja2>=99" in note) is (lacking == "jinja2")
    assert f"not 2.4.0: {note}" in [reason["text"] for reason in torch["reasons"]]
    assert document["request"]["roots"] == ["torch>=2.3.1,<=2.4.0"]
    # What was asked for by name is not exchanged.
    done = lock("torch==2.4.0", *H20, "--index-url", index.address, "-o", tmp_path / "exact")
    assert done.returncode == 1
    assert "--extra-index-url" in done.stderr.decode()
    assert "ask for torch!=2.4.0" in done.stderr.decode()


def test_a_name_that_nobody_knows_is_one_message(lock, index, tmp_path):
    folder = tmp_path / "lock"
    folder.mkdir()
    (folder / "requirements.txt").write_text("mine\n")
    for request in (("torch==2.4.0", "tranformers"), ("tranformers",)):
        done = lock(*request, *H20, "--index-url", index.address, "-o", folder)
        assert done.returncode == 2
        assert "neither the matrix nor an index" in done.stderr.decode().splitlines()[-1]
        assert "did you mean transformers" in done.stderr.decode()
        assert written(folder) == {"requirements.txt": "mine\n"}


def test_one_file_goes_to_standard_output(lock, index, refused, tmp_path):
    done = lock("torch==2.4.0", *H20, "--index-url", index.address, "--print", "pylock.toml")
    assert done.returncode == 0, done.stderr
    assert 'lock-version = "1.0"' in done.stdout.decode()
    done = lock("torch==2.4.0", *H20, "--index-url", index.address, "-o", "-")
    assert done.stdout.startswith(b"# a full lock")
    assert "pylock.toml" in refused(
        "lock", "torch==2.4.0", *H20, "--no-close", "--print", "pylock.toml"
    )
    assert "expected one of" in refused("lock", "torch==2.4.0", *H20, "--print", "poetry.lock")


def test_a_lock_of_the_time_bounds_the_tail_too(lock, index, tmp_path):
    index.add("filelock", "3.21.0")
    index.uploaded["filelock-3.21.0-py3-none-any.whl"] = "2025-06-01T00:00:00Z"
    done = lock("torch==2.4.0", *H20, "--index-url", index.address, "-o", tmp_path / "lock")
    assert done.returncode == 0, done.stderr
    assert "time of torch==2.4.0" in done.stdout.decode()
    assert "filelock==3.20.0" in (tmp_path / "lock" / "constraints.txt").read_text().splitlines()


def test_what_has_nothing_of_the_time_is_taken_newer_unless_the_date_was_asked_for(
    lock, index, tmp_path
):
    index.uploaded["markupsafe"] = "2025-06-01T00:00:00Z"
    done = lock("torch==2.4.0", *H20, "--index-url", index.address, "-o", tmp_path / "lock")
    assert done.returncode == 0, done.stderr
    assert "markupsafe==3.0.3" in (tmp_path / "lock" / "constraints.txt").read_text().splitlines()
    done = lock(
        "torch==2.4.0",
        *H20,
        "--as-of",
        "2024-08-23",
        "--index-url",
        index.address,
        "-o",
        tmp_path / "strict",
    )
    assert done.returncode == 1
    assert "a later --as-of" in done.stderr.decode()


def test_an_index_that_does_not_say_when_is_no_reason_for_nothing(lock, index, tmp_path):
    index.times = False
    done = lock("torch==2.4.0", *H20, "--index-url", index.address, "-o", tmp_path / "lock")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "lock" / "envdoctor.lock.json").read_text())["closed"] is True
    assert "does not say when" in (tmp_path / "lock" / "requirements.txt").read_text()


@pytest.mark.parametrize("named", [True, False])
def test_an_index_of_uvs_own_configuration_is_used(lock, index, tmp_path, named):
    configuration = tmp_path / "config" / "uv" / "uv.toml"
    configuration.parent.mkdir(parents=True)
    configuration.write_text(f'[[index]]\nurl = "{index.address}"\ndefault = true\n')
    env = (
        {"UV_CONFIG_FILE": str(configuration)}
        if named
        else {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    )
    # A source archive makes us write a configuration of our own, which must not hide theirs.
    index.files = {name: entry for name, entry in index.files.items() if entry[0] != "jinja2"}
    index.add_sdist(
        "jinja2", "3.1.6", {"PKG-INFO": "Metadata-Version: 2.2\nName: jinja2\nVersion: 3.1.6\n"}
    )
    done = lock("torch==2.4.0", *H20, "-o", tmp_path / "lock", env=env)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "lock" / "envdoctor.lock.json").read_text())
    assert document["closed"] is True
    assert {line["index"].rstrip("/") for line in document["closure"]["lines"]} == {
        index.address.rstrip("/")
    }


def test_what_only_a_release_page_has_is_named_and_the_rest_is_closed(lock, index, tmp_path):
    metadata = (
        "Metadata-Version: 2.2\nName: flash-attn\nVersion: 2.6.3\nRequires-Dist: "
        "torch\nRequires-Dist: einops\nRequires-Dist: markupsafe\n"
    )
    index.add_sdist("flash-attn", "2.6.3", {"PKG-INFO": metadata})
    for pin in pins_of("torch==2.4.0", "flash-attn==2.6.3", "--allow-index", "github"):
        index.add(pin["name"], pin["version"]) if pin["name"] in (
            "einops",
            "packaging",
            "ninja",
        ) else None
    index.uploaded["flash-attn"] = "2024-07-25T00:00:00Z"
    done = lock(
        "torch==2.4.0",
        "flash-attn==2.6.3",
        "--allow-index",
        "github",
        *H20,
        "--index-url",
        index.address,
        "-o",
        tmp_path / "lock",
    )
    assert done.returncode == 0, done.stderr
    files = written(tmp_path / "lock")
    assert CLOSED - set(files) == {"pylock.toml"}
    assert files["requirements.txt"].startswith("# partially closed")
    assert "no hash is to be had for flash-attn" in files["requirements.txt"].splitlines()[0]
    document = json.loads(files["envdoctor.lock.json"])
    assert document["closed"] == "partial"
    lines = {line["name"]: line for line in document["closure"]["lines"]}
    assert lines["flash-attn"]["version"].startswith("2.6.3+cu123torch2.4")
    assert not lines["flash-attn"]["hashes"]
    assert all(line["hashes"] for name, line in lines.items() if name != "flash-attn")
    assert "einops" in lines


def pins_of(*arguments):
    command = [*COMMAND, "lock", "--no-close", *arguments, *H20, "--print", "envdoctor.lock.json"]
    return json.loads(
        subprocess.run(command, env=environment(), check=True, capture_output=True).stdout
    )["pins"]


def test_an_index_of_other_builds_has_to_be_named(lock, index, tmp_path):
    request = (
        "torch==2.4.0",
        "--allow-index",
        "pytorch",
        "--assume",
        "gpu=V100",
        "nvidia-driver=470.57.02",
        "--python-version",
        PYTHON,
    )
    done = lock(*request, "-o", tmp_path / "lock")
    assert done.returncode == 0, done.stderr
    assert b"+cu118" in done.stdout
    assert b"give its address with --extra-index-url" in done.stderr
    pins = json.loads((tmp_path / "lock" / "envdoctor.lock.json").read_text())["pins"]
    other = Index()
    for pin in pins:
        other.add(pin["name"], pin["version"])
    with served(other):
        done = lock(
            *request,
            "--index-url",
            index.address,
            "--extra-index-url",
            other.address,
            "-o",
            tmp_path / "closed",
        )
    assert done.returncode == 0, done.stderr
    files = written(tmp_path / "closed")
    assert json.loads(files["envdoctor.lock.json"])["closed"] is True
    assert any(
        line.startswith("torch==2.4.0+cu118") for line in files["requirements.txt"].splitlines()
    )
    assert f"--extra-index-url {other.address}" in files["requirements.txt"]
